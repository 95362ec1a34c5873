//! The names of all switches of both programs, which one configuration file may set.
//!
//! A program knows its own commands, and those of the other one by a list: neither links the other.
//! `names/PROGRAM.txt` has a line for each command: its words, a colon, its switches. A test of
//! each program compares its list with its commands; `SNOWMELT_WRITE=1` writes it.

use std::fmt::Write;
use std::path::Path;

use clap::Command;

/// The programs, and their lists.
const PROGRAMS: [(&str, &str); 2] = [
    ("snowmelt", include_str!("names/snowmelt.txt")),
    ("snowmelt-lab", include_str!("names/snowmelt-lab.txt")),
];

/// A command of either program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedCommand<'a> {
    /// Its program.
    pub program: &'a str,
    /// Its words, of which the last one names its table in a file.
    pub words: &'a str,
    switches: &'a str,
}

impl<'a> NamedCommand<'a> {
    fn from_line(program: &'a str, line: &'a str) -> Self {
        let (words, switches) = line.split_once(':').expect("each line of a list has a colon");
        Self { program, words, switches: switches.trim() }
    }

    /// The name of its table in a file.
    pub fn table(&self) -> &'a str {
        self.words.rsplit(' ').next().unwrap_or(self.words)
    }

    /// The long names of its switches.
    pub fn switches(&self) -> impl Iterator<Item = &'a str> {
        self.switches.split(' ').filter(|name| !name.is_empty())
    }

    /// Whether it has a switch of that long name.
    pub fn has(&self, switch: &str) -> bool {
        self.switches().any(|name| name == switch)
    }
}

/// The commands of both programs, without those that only have subcommands.
pub fn all() -> impl Iterator<Item = NamedCommand<'static>> {
    let of_program = |(program, list): (&'static str, &'static str)| {
        list.lines().map(move |line| NamedCommand::from_line(program, line))
    };
    PROGRAMS.into_iter().flat_map(of_program)
}

/// A program's list, as its commands are.
fn listed(program: &Command) -> String {
    let mut list = String::new();
    list_below(program, &mut Vec::new(), &mut list);
    list
}

fn list_below<'a>(command: &'a Command, words: &mut Vec<&'a str>, list: &mut String) {
    for sub in command.get_subcommands() {
        words.push(sub.get_name());
        if sub.has_subcommands() {
            list_below(sub, words, list);
        } else {
            let mut names: Vec<&str> = sub.get_arguments().filter_map(|arg| arg.get_long()).collect();
            names.sort_unstable();
            writeln!(list, "{}: {}", words.join(" "), names.join(" ")).expect("text takes all");
        }
        words.pop();
    }
}

/// For the test of a program: compares its list with its commands. With `SNOWMELT_WRITE=1` it is
/// written.
///
/// # Panics
/// They differ.
pub fn assert_listed(program: &Command) {
    let name = program.get_name();
    let (_, list) = PROGRAMS.iter().find(|(listed, _)| *listed == name).expect("it has a list");
    let found = listed(program);
    if std::env::var("SNOWMELT_WRITE").is_ok_and(|value| value == "1") {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("src/names/{name}.txt"));
        std::fs::write(&path, found).expect("the list can be written");
        return;
    }
    assert!(*list == found, "the switches of {name} have changed: SNOWMELT_WRITE=1 with this test\n{found}");
}
