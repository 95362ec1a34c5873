//! `--config FILE`: switches from a file in TOML.
//!
//! A key is the long name of a switch: `memory = "4GiB"`, `read-only = true`, `stripe = ["/a",
//! "/b"]`. Keys at the top are for every command that has such a switch; those of a table named
//! after a command (`[serve]`) are for that command alone and must be switches of it. What
//! stands on the command line counts before the file. Without `--config`, the file
//! `snowmelt.toml` in the database directory is read if it is there.
//!
//! The file is turned into arguments, so that a value is checked and named as one of the command
//! line is.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};
use toml::{Table, Value};

/// The name of the file that is read without being named.
pub const NAME: &str = "snowmelt.toml";

/// Arguments with those of a configuration file added; as they are when there is none.
///
/// # Errors
/// A file that cannot be read or is no TOML, and keys that are no switches.
pub fn with_config(command: &Command, args: Vec<OsString>) -> anyhow::Result<Vec<OsString>> {
    // Wrong arguments are told without the file.
    let Ok(matches) = command.clone().try_get_matches_from(&args) else { return Ok(args) };
    let (mut sub, mut matches) = (command, &matches);
    while let Some((name, inner)) = matches.subcommand() {
        let Some(found) = sub.find_subcommand(name) else { return Ok(args) };
        (sub, matches) = (found, inner);
    }
    let Some(path) = config_path(matches) else { return Ok(args) };
    let failed = || format!("cannot read the configuration file {}", path.display());
    let text = std::fs::read_to_string(&path).with_context(failed)?;
    let table: Table = text.parse().with_context(failed)?;
    let added = Additions { path: &path, command, sub, matches }.collect(&table)?;
    Ok(args.into_iter().chain(added.into_iter().map(OsString::from)).collect())
}

/// Looks at a file for every command that it has switches of: the words of which command each
/// would get.
///
/// # Errors
/// As [`with_config`], and values that a command does not take.
pub fn check(command: &Command, path: &Path) -> anyhow::Result<Vec<(String, usize)>> {
    let failed = || format!("cannot read the configuration file {}", path.display());
    let text = std::fs::read_to_string(path).with_context(failed)?;
    let table: Table = text.parse().with_context(failed)?;
    let none = Command::new("none").get_matches_from(["none"]);
    let mut taken = Vec::new();
    // A table is named after the last word of a command; the shorter one is meant.
    let is_shadowed = |words: &[String]| {
        words.len() > 1 && words.last().is_some_and(|last| command.find_subcommand(last).is_some())
    };
    for words in leaves(command).into_iter().filter(|words| !is_shadowed(words)) {
        let sub =
            words.iter().fold(command, |of, word| of.find_subcommand(word).expect("it was found there"));
        let added = Additions { path, command, sub, matches: &none }.collect(&table)?;
        let args = [command.get_name().to_owned()].into_iter().chain(words.clone()).chain(added.clone());
        match command.clone().try_get_matches_from(args) {
            // Its other needs do not stand in a file.
            Err(error) if error.kind() == ErrorKind::MissingRequiredArgument => {}
            Err(error) => {
                bail!("{}: {}", path.display(), error.to_string().trim_start_matches("error: ").trim())
            }
            Ok(_) => {}
        }
        if !added.is_empty() {
            taken.push((words.join(" "), added.len()));
        }
    }
    Ok(taken)
}

/// The words of every command that does something.
fn leaves(command: &Command) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for sub in command.get_subcommands() {
        let name = sub.get_name().to_owned();
        match sub.has_subcommands() {
            true => found.extend(leaves(sub).into_iter().map(|rest| [vec![name.clone()], rest].concat())),
            false => found.push(vec![name]),
        }
    }
    found
}

/// The file that is named, or that of the database.
fn config_path(matches: &ArgMatches) -> Option<PathBuf> {
    let named = matches.try_get_one::<PathBuf>("config").ok().flatten();
    let db = || matches.try_get_one::<PathBuf>("db").ok().flatten();
    let default = || db().map(|db| db.join(NAME)).filter(|path| path.is_file());
    named.cloned().or_else(default)
}

struct Additions<'a> {
    path: &'a Path,
    command: &'a Command,
    sub: &'a Command,
    matches: &'a ArgMatches,
}

impl Additions<'_> {
    /// The arguments that the file adds: switches of the command line are left out.
    fn collect(&self, table: &Table) -> anyhow::Result<Vec<String>> {
        let mut added = Vec::new();
        for (key, value) in table {
            match value {
                Value::Table(own) if key == self.sub.get_name() => {
                    for (key, value) in own {
                        let Some(arg) = find(self.sub, key) else {
                            bail!(self.unknown(key, self.sub.get_name()))
                        };
                        self.add(&mut added, arg, key, value)?;
                    }
                }
                Value::Table(_) if all(self.command).any(|command| command.get_name() == key) => {}
                _ => match find(self.sub, key) {
                    Some(arg) => self.add(&mut added, arg, key, value)?,
                    None if all(self.command).any(|command| find(command, key).is_some()) => {}
                    None => bail!(self.unknown(key, "any command")),
                },
            }
        }
        Ok(added)
    }

    fn unknown(&self, key: &str, whose: &str) -> String {
        format!(
            "{}: {key} is not a switch of {whose}; see `{} COMMAND --help`",
            self.path.display(),
            self.command.get_name()
        )
    }

    fn add(&self, added: &mut Vec<String>, arg: &Arg, key: &str, value: &Value) -> anyhow::Result<()> {
        let is_known = self.matches.ids().any(|id| id == arg.get_id());
        if is_known && self.matches.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine) {
            return Ok(());
        }
        let values = match value {
            Value::Array(values) => values.as_slice(),
            one => std::slice::from_ref(one),
        };
        for value in values {
            let text = match value {
                Value::String(text) => text.clone(),
                Value::Integer(number) => number.to_string(),
                Value::Float(number) => number.to_string(),
                Value::Boolean(is_on) if !arg.get_action().takes_values() => {
                    added.extend(is_on.then(|| format!("--{key}")));
                    continue;
                }
                Value::Boolean(is_on) => if *is_on { "on" } else { "off" }.to_owned(),
                other => bail!("{}: {key}: a {} is no value", self.path.display(), other.type_str()),
            };
            added.push(format!("--{key}={text}"));
        }
        Ok(())
    }
}

/// The switch of a long name; not the one that names the file.
fn find<'a>(command: &'a Command, key: &str) -> Option<&'a Arg> {
    command.get_arguments().find(|arg| arg.get_long() == Some(key) && key != "config")
}

/// A command and all below it.
fn all(command: &Command) -> Box<dyn Iterator<Item = &Command> + '_> {
    Box::new(std::iter::once(command).chain(command.get_subcommands().flat_map(all)))
}
