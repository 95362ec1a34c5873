//! `--help TOPIC`: switches that few need are listed under a topic, and left out of `--help`.
//!
//! A switch belongs to a topic by its help heading. `--help` says which topics a command has.

use std::ffi::OsString;

use clap::{Arg, Command};

/// Topics, and the help headings of their switches.
const TOPICS: [(&str, &[&str]); 4] = [
    ("io", &["New database", "I/O", "Journal"]),
    ("limits", &["Limits", "Limits of queries and updates"]),
    ("logs", &["Logs"]),
    ("service", &["Federation"]),
];

/// Prepares the help of a command and its subcommands: switches of topics are hidden, and the
/// topics are named.
pub fn hide(command: Command) -> Command {
    let command = command.mut_subcommands(hide);
    let topics = TOPICS.iter().filter(|(_, headings)| has(&command, headings));
    let asked: Vec<String> = topics.map(|(topic, _)| format!("--help {topic}")).collect();
    if asked.is_empty() {
        return command;
    }
    let more = format!("More switches: {}. A file can set them all: --config FILE.", asked.join(", "));
    let hide = |arg: Arg| {
        let heading = arg.get_help_heading();
        let is_of_topic =
            heading.is_some_and(|heading| TOPICS.iter().any(|(_, headings)| headings.contains(&heading)));
        if is_of_topic { arg.hide(true) } else { arg }
    };
    command.mut_args(hide).after_help(more)
}

/// The help that the arguments of the process ask for by `--help TOPIC`, if they do.
pub fn asked(command: &Command, args: &[OsString]) -> Option<String> {
    let at = args.iter().position(|arg| arg == "--help")?;
    let topic = args.get(at + 1)?;
    let (_, headings) = TOPICS.iter().find(|(name, _)| topic == name)?;
    let mut asked = command.clone();
    asked.build();
    for name in args.iter().skip(1) {
        match asked.find_subcommand(name) {
            Some(sub) => asked = sub.clone(),
            None => break,
        }
    }
    if !has(&asked, headings) {
        return None;
    }
    let only_topic = |arg: Arg| {
        let is_shown = arg.get_help_heading().is_some_and(|heading| headings.contains(&heading));
        arg.hide(!is_shown)
    };
    let mut only = asked
        .mut_args(only_topic)
        .disable_help_flag(true)
        .disable_version_flag(true)
        .after_help(None::<&str>)
        .help_template("{all-args}");
    Some(only.render_help().to_string())
}

fn has(command: &Command, headings: &[&str]) -> bool {
    command.get_arguments().any(|arg| arg.get_help_heading().is_some_and(|h| headings.contains(&h)))
}
