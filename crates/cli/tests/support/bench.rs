//! Runs of the command in a folder of their own, with what they print.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// Five triples about two people.
pub const DATA: &str = r#"@prefix ex: <http://example.org/> .
ex:anna ex:name "Anna" ; ex:age 31 ; ex:knows ex:ben .
ex:ben ex:name "Ben"@en ; ex:age 7 .
"#;

/// A folder in which commands run.
pub struct Bench {
    dir: TempDir,
}

impl Bench {
    pub fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    /// With `DATA` loaded into `db`.
    pub fn loaded() -> Self {
        let bench = Self::new();
        bench.write("data.ttl", DATA);
        bench.ok(&["load", "db", "data.ttl"]);
        bench
    }

    /// With so many triples, one property of as many subjects, loaded into `db`.
    pub fn with_triples(triples: usize, text: &str) -> Self {
        let bench = Self::new();
        let lines: String = (0..triples).map(|i| format!("<urn:s{i}> <urn:p> \"{text} {i}\" .\n")).collect();
        bench.write("data.nt", &lines);
        bench.ok(&["load", "db", "data.nt"]);
        bench
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// A copy of the command. Another process makes it: a file that this one has open for writing
    /// may be inherited by a command that another test starts at the same time, and then it
    /// cannot be run.
    pub fn copy_of_the_command(&self) -> PathBuf {
        let copy = self.path("snowmelt");
        let made = Command::new("cp").arg(super::snowmelt().get_program()).arg(&copy).status();
        assert!(made.unwrap().success());
        copy
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    /// The command in the folder, not yet run.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = super::snowmelt();
        command.current_dir(self.dir()).args(args);
        command
    }

    pub fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    #[track_caller]
    pub fn ok(&self, args: &[&str]) -> String {
        let [out, _] = self.both(args);
        out
    }

    /// Standard output and standard error of a command that succeeds.
    #[track_caller]
    pub fn both(&self, args: &[&str]) -> [String; 2] {
        let output = self.run(args);
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap())
    }

    /// Runs what must fail with exit code 1 and one line on standard error; returns the line.
    #[track_caller]
    pub fn error(&self, args: &[&str]) -> String {
        let output = self.run(args);
        let line = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{args:?}: {line}");
        // after it only the lines of a text that are wrong, with marks, and further faults
        let is_of_fault = |line: &str| line.starts_with("  ") || line.starts_with("line ");
        assert!(line.lines().skip(1).all(is_of_fault), "{args:?}: {line}");
        line
    }
}

/// Asserts that a text has all the parts.
#[track_caller]
pub fn has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in {text:?}");
    }
}
