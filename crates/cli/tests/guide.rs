//! The first page of the guide is true: its file is made, its commands are run one after the
//! other, and each says what the page says it does, but for sizes and times.

use std::fs;
use std::path::Path;
use std::process::Command;

/// A code block of the page.
#[derive(Debug, PartialEq)]
enum Block {
    /// Fenced, with its language.
    Fenced(String, String),
    /// Indented: a command.
    Indented(String),
}

/// The code blocks of a page, in their order.
fn blocks(page: &str) -> Vec<Block> {
    let mut found = Vec::new();
    let mut fence: Option<(String, String)> = None;
    for line in page.lines() {
        match (line.strip_prefix("```"), &mut fence) {
            (Some(language), None) => fence = Some((language.to_owned(), String::new())),
            (Some(_), Some(_)) => {
                let (language, text) = fence.take().expect("it is there");
                found.push(Block::Fenced(language, text));
            }
            (None, Some((_, text))) => text.push_str(&format!("{line}\n")),
            (None, None) => match (line.strip_prefix("    "), found.last_mut()) {
                (Some(code), Some(Block::Indented(text))) if !text.ends_with("\n\n") => {
                    text.push_str(&format!("{code}\n"));
                }
                (Some(code), _) => found.push(Block::Indented(format!("{code}\n"))),
                (None, Some(Block::Indented(text))) => text.push_str("\n\n"),
                (None, _) => {}
            },
        }
    }
    found
}

/// Sizes, rates and times differ from run to run: every number with a point, and what follows it
/// in rates, becomes `#`.
fn without_measures(text: &str) -> String {
    let words = text.lines().map(|line| {
        let words = line.split(' ').map(|word| match word.chars().any(|c| c.is_ascii_digit()) {
            true if word.contains('.') || line.contains("triples/s") => "#",
            _ => word,
        });
        words.collect::<Vec<_>>().join(" ").trim_end().to_owned()
    });
    words.collect::<Vec<_>>().join("\n").trim().to_owned()
}

/// Runs a command of the page by a shell in `folder`; what it printed, errors first.
fn run(command: &str, folder: &Path) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_snowmelt"));
    let bin = program.parent().expect("a program lies in a folder");
    let path = std::env::var("PATH").unwrap_or_default();
    let done = Command::new("sh")
        .args(["-c", command])
        .current_dir(folder)
        .env("PATH", format!("{}:{path}", bin.display()))
        .output()
        .unwrap();
    let [errors, answers] = [done.stderr, done.stdout].map(|text| String::from_utf8(text).unwrap());
    assert!(done.status.success(), "{command}: {errors}");
    format!("{errors}{answers}")
}

#[test]
fn the_first_steps_do_what_the_guide_says() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/guide/first-steps.md");
    let blocks = blocks(&fs::read_to_string(page).unwrap());
    let folder = tempfile::tempdir().unwrap();
    let mut compared = 0;
    for (at, block) in blocks.iter().enumerate() {
        match block {
            Block::Fenced(language, text) if language == "turtle" => {
                fs::write(folder.path().join("people.ttl"), text).unwrap();
            }
            Block::Indented(command) if command.contains("people.db") && !command.contains("serve") => {
                let said = run(command, folder.path());
                let Some(Block::Fenced(_, expected)) = blocks.get(at + 1) else { continue };
                assert_eq!(without_measures(&said), without_measures(expected), "{command}");
                compared += 1;
            }
            _ => {}
        }
    }
    assert_eq!(compared, 3, "a load, a query and an update have their output on the page");
}

#[test]
fn code_is_found_and_measures_are_left_out() {
    let page = "text\n\n    one 'a\n    b'\n\n```text\nout\n```\n\n    two\n";
    let expected = [
        Block::Indented("one 'a\nb'\n\n\n".into()),
        Block::Fenced("text".into(), "out\n".into()),
        Block::Indented("two\n".into()),
    ];
    assert_eq!(blocks(page), expected);
    assert_eq!(without_measures("9 rows in 0.02 s  \n"), "9 rows in # s");
    assert_eq!(without_measures("9 triples in 0.02 s, 368 triples/s"), "# triples in # s, # triples/s");
}
