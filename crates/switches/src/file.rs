//! `--config FILE`: switches from a file in TOML.
//!
//! A key is the long name of a switch: `memory = "4GiB"`, `read-only = true`, `stripe = ["/a",
//! "/b"]`. Keys at the top are for every command that has such a switch; those of a table named
//! after a command (`[serve]`) are for that command alone and must be switches of it. The command
//! line has precedence over the file. Without `--config`, the file `snowmelt.toml` in the database
//! directory is read if it is there.
//!
//! A file may have settings of both programs: what is a switch of another command, of either of
//! them, is passed over ([`names`]).
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

use crate::names::{self, NamedCommand};

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
    let added = Additions { path: &path, sub, matches }.collect(&table)?;
    Ok(args.into_iter().chain(added.into_iter().map(OsString::from)).collect())
}

/// Checks a file for every command that it has switches of, and returns the words of these commands
/// with the number of switches.
///
/// # Errors
/// As [`with_config`], and values that a command does not take.
pub fn check(command: &Command, path: &Path) -> anyhow::Result<Vec<(String, usize)>> {
    let failed = || format!("cannot read the configuration file {}", path.display());
    let text = std::fs::read_to_string(path).with_context(failed)?;
    let table: Table = text.parse().with_context(failed)?;
    check_tables(path, &table)?;
    let none = Command::new("none").get_matches_from(["none"]);
    let mut taken = Vec::new();
    // A table is named after the last word of a command; the shorter one is meant.
    let is_shadowed = |words: &[String]| {
        words.len() > 1 && words.last().is_some_and(|last| command.find_subcommand(last).is_some())
    };
    for words in leaves(command).into_iter().filter(|words| !is_shadowed(words)) {
        let sub =
            words.iter().fold(command, |of, word| of.find_subcommand(word).expect("it was found there"));
        let added = Additions { path, sub, matches: &none }.collect(&table)?;
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
    let others = names::all().filter(|other| other.program != command.get_name());
    let set_for = |other: &NamedCommand<'_>| {
        let own = table.get(other.table()).and_then(Value::as_table).into_iter().flat_map(Table::keys);
        table.keys().chain(own).filter(|key| other.has(key)).count()
    };
    let of_others = others.map(|other| (format!("{} {}", other.program, other.words), set_for(&other)));
    taken.extend(of_others.filter(|(_, count)| *count > 0));
    Ok(taken)
}

/// Refuses tables that no command has, and keys in them that are no switches of theirs.
fn check_tables(path: &Path, table: &Table) -> anyhow::Result<()> {
    for (name, value) in table {
        let Value::Table(own) = value else { continue };
        check_table_name(path, name)?;
        let is_known = |key: &str| names::all().any(|command| command.table() == name && command.has(key));
        if let Some(key) = own.keys().find(|key| !is_known(key)) {
            bail!(unknown(path, key, name));
        }
    }
    Ok(())
}

/// Refuses a table that is named after no command, or after one without switches.
fn check_table_name(path: &Path, name: &str) -> anyhow::Result<()> {
    let has_switches = |command: &NamedCommand<'_>| command.switches().next().is_some();
    if names::all().any(|command| command.table() == name && has_switches(&command)) {
        return Ok(());
    }
    let path = path.display();
    let is_below = |command: &NamedCommand<'_>| command.words.split(' ').next() == Some(name);
    let below = names::all().find(|command| is_below(command) && has_switches(command));
    let of_lab = || names::all().find(|command| command.program != "snowmelt" && has_switches(command));
    match below.or_else(|| of_lab().filter(|_| name == "lab")) {
        Some(command) => bail!(
            "{path}: [{name}] has no switches of its own: its commands have tables of their own, such as [{}]",
            command.table()
        ),
        None if names::all().any(|command| command.table() == name) => {
            bail!("{path}: {name} has no switches")
        }
        None => bail!("{path}: [{name}] is named after no command"),
    }
}

fn unknown(path: &Path, key: &str, whose: &str) -> String {
    let path = path.display();
    match names::all().find(|command| command.table() == whose) {
        Some(command) => {
            format!(
                "{path}: {key} is not a switch of {whose}; see `{} {} --help`",
                command.program, command.words
            )
        }
        None => format!("{path}: {key} is not a switch of {whose}; see `snowmelt COMMAND --help`"),
    }
}

/// The words of every command without subcommands.
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
    sub: &'a Command,
    matches: &'a ArgMatches,
}

impl Additions<'_> {
    /// The arguments that the file adds: switches of the command line are left out.
    fn collect(&self, table: &Table) -> anyhow::Result<Vec<String>> {
        let mut added = Vec::new();
        for (key, value) in table {
            match value {
                Value::Table(own) => {
                    check_table_name(self.path, key)?;
                    if key == self.sub.get_name() {
                        self.add_all(&mut added, key, own)?;
                    }
                }
                _ => match find(self.sub, key) {
                    Some(arg) => self.add(&mut added, arg, key, value)?,
                    None if names::all().any(|command| command.has(key)) => {}
                    None => bail!(unknown(self.path, key, "any command")),
                },
            }
        }
        Ok(added)
    }

    /// The switches of the command's own table, `name`.
    fn add_all(&self, added: &mut Vec<String>, name: &str, own: &Table) -> anyhow::Result<()> {
        for (key, value) in own {
            match find(self.sub, key) {
                Some(arg) => self.add(added, arg, key, value)?,
                // `check` and `device check` have one table.
                None if names::all().any(|command| command.table() == name && command.has(key)) => {}
                None => bail!(unknown(self.path, key, name)),
            }
        }
        Ok(())
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
