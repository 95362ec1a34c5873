//! Each switch, written as its table shows it, reaches the switch: a value that is printed behind a
//! space where the program wants `=` would be taken for an argument of the command.

use clap::{Arg, ArgAction, Command};

use super::{built, leaves, switch};

/// A switch as it is written, and the value that must arrive.
#[derive(Debug, PartialEq)]
struct Form {
    words: Vec<String>,
    value: Option<String>,
}

/// The forms that a cell of the table, as `--meters[=table|json]`, allows with values known to be
/// right: those it lists, and `examples`. A switch whose values are not known has none.
fn forms(cell: &str, examples: &[String]) -> Vec<Form> {
    let shown = cell.trim_matches('`');
    let shown = &shown[shown.find("--").unwrap_or(0)..];
    let (name, value) = shown.split_at(shown.find([' ', '[', '=']).unwrap_or(shown.len()));
    let is_optional = value.contains('[');
    let listed = value.trim_matches([' ', '[', ']', '=']).split('|').map(str::to_owned);
    let is_literal = |value: &String| value.bytes().all(|byte| !byte.is_ascii_uppercase());
    let values = listed.filter(|value| !value.is_empty() && is_literal(value)).chain(examples.to_vec());
    let with = |given: String| match value.contains('=') {
        true => Form { words: vec![format!("{name}={given}")], value: Some(given) },
        false => Form { words: vec![name.to_owned(), given.clone()], value: Some(given) },
    };
    let alone = Form { words: vec![name.to_owned()], value: None };
    let has_alone = value.is_empty() || is_optional;
    has_alone.then_some(alone).into_iter().chain(values.map(with)).collect()
}

fn examples(arg: &Arg) -> Vec<String> {
    if !arg.get_action().takes_values() {
        return Vec::new();
    }
    let possible = arg.get_possible_values().into_iter().map(|value| value.get_name().to_owned());
    let defaults = arg.get_default_values().iter().map(|value| value.to_string_lossy().into_owned());
    let mut all: Vec<String> = possible.chain(defaults).filter(|value| !value.contains(',')).collect();
    all.dedup();
    all
}

/// Why a form does not reach its switch.
fn failure(command: &Command, arg: &Arg, form: &Form) -> Option<String> {
    let words = [command.get_name().to_owned()].into_iter().chain(form.words.clone());
    // Errors about other arguments of the command are not of interest.
    let matches = command.clone().ignore_errors(true).try_get_matches_from(words).ok()?;
    let id = arg.get_id().as_str();
    let is_given = matches.value_source(id) == Some(clap::parser::ValueSource::CommandLine);
    let raw = matches.get_raw(id).into_iter().flatten();
    let got: Vec<String> = raw.map(|value| value.to_string_lossy().into_owned()).collect();
    let arrives = form.value.as_ref().is_none_or(|value| got == [value.clone()]);
    (!is_given || !arrives).then(|| format!("{} gives {got:?}", form.words.join(" ")))
}

#[test]
fn every_switch_can_be_written_as_it_is_shown() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for program in [snowmelt_cli::command(), crate::command()].map(built) {
        for command in leaves(&program) {
            let is_ours = |arg: &&Arg| {
                let ends = matches!(
                    arg.get_action(),
                    ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong | ArgAction::Version
                );
                arg.get_long().is_some() && !ends
            };
            for arg in command.get_arguments().filter(is_ours) {
                for form in forms(&switch(arg), &examples(arg)) {
                    count += 1;
                    let name = command.get_bin_name().unwrap_or(command.get_name());
                    wrong.extend(failure(command, arg, &form).map(|why| format!("{name}: {why}")));
                }
            }
        }
    }
    assert!(count > 300, "only {count} forms");
    assert!(wrong.is_empty(), "{} of {count} forms fail:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn forms_are_those_of_the_cell() {
    let form = |words: &[&str], value: Option<&str>| Form {
        words: words.iter().map(|word| (*word).to_owned()).collect(),
        value: value.map(str::to_owned),
    };
    let optional = [form(&["--m"], None), form(&["--m=a"], Some("a")), form(&["--m=b"], Some("b"))];
    assert_eq!(forms("`-m, --m[=a|b]`", &[]), optional);
    assert_eq!(forms("`--m WHAT`", &["7".into()]), [form(&["--m", "7"], Some("7"))]);
    assert_eq!(forms("`--m`", &[]), [form(&["--m"], None)]);
}
