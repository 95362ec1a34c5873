//! Values of arguments that several commands take: on and off, engines, patterns; and which
//! switches stand on the command line, so that one without an effect is refused.

use std::collections::BTreeSet;
use std::ffi::OsStr;

use clap::parser::ValueSource;
use clap::{ArgMatches, Command, FromArgMatches};
use serde::Serialize;
use snowmelt_io::{IoEngine, JobEngine, Pattern};
use snowmelt_io_experiments::engine_named;

use crate::{LabError, size};

/// The switches on the command line, without those that have their default. It must be the first
/// field of a command's arguments: reading a field takes its values out of the matches.
#[derive(Debug, Clone, Default)]
pub struct Given(BTreeSet<String>);

impl FromArgMatches for Given {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Given, clap::Error> {
        let stands = |id: &&clap::Id| matches.value_source(id.as_str()) == Some(ValueSource::CommandLine);
        Ok(Given(matches.ids().filter(stands).map(|id| id.as_str().replace('_', "-")).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Given::from_arg_matches(matches)?;
        Ok(())
    }
}

impl clap::Args for Given {
    fn augment_args(command: Command) -> Command {
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        command
    }
}

/// A switch, by the name of its field with hyphens; whether it would change nothing; and what to
/// do about it.
pub type Idle<'a> = (&'a str, bool, &'a str);

impl Given {
    /// Refuses the first switch that stands on the command line and would change nothing: its
    /// cells would be there without what they are called by.
    ///
    /// # Errors
    /// The refusal.
    pub fn refuse_idle(&self, switches: &[Idle<'_>]) -> Result<(), LabError> {
        let idle = switches.iter().find(|(switch, is_idle, _)| *is_idle && self.0.contains(*switch));
        idle.map_or(Ok(()), |(switch, _, instead)| {
            Err(LabError::Argument(format!("--{switch} would change nothing here: {instead}")))
        })
    }
}

/// On or off; fio's 1 and 0 as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)] // they would make the help of every such argument longer
pub enum OnOff {
    #[value(alias = "1")]
    On,
    #[value(alias = "0")]
    Off,
}

impl OnOff {
    /// True for on.
    pub fn is_on(self) -> bool {
        self == OnOff::On
    }
}

impl std::fmt::Display for OnOff {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.is_on() { "on" } else { "off" })
    }
}

/// Engines by their names on the command line: fio's names and ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineName(pub JobEngine);

impl std::str::FromStr for EngineName {
    type Err = String;
    fn from_str(name: &str) -> Result<EngineName, String> {
        let engine = match name {
            "uring" | "io_uring" => JobEngine::Uring,
            "threads" => JobEngine::Threads,
            "inline" | "psync" => JobEngine::Inline,
            "mmap" => JobEngine::Mmap,
            "vectored" | "vsync" => JobEngine::Vectored,
            other => {
                // Whatever engine the library has can serve through a queue.
                let name = if other == "posixaio" { "posix-aio" } else { other };
                let engine = engine_named(name).ok_or_else(|| {
                    format!(
                        "no engine is called '{other}': there are uring, threads, inline, mmap, vectored and posix-aio"
                    )
                })?;
                JobEngine::Queue(engine)
            }
        };
        Ok(EngineName(engine))
    }
}

impl EngineName {
    /// fio's name where it has one.
    pub fn name(self) -> &'static str {
        match self.0 {
            JobEngine::Uring | JobEngine::Queue(IoEngine::Uring) => "io_uring",
            JobEngine::Threads | JobEngine::Queue(IoEngine::Threads) => "threads",
            JobEngine::Inline | JobEngine::Queue(IoEngine::Inline) => "psync",
            JobEngine::Mmap => "mmap",
            JobEngine::Vectored => "vsync",
            JobEngine::Queue(IoEngine::Other(_)) => "posixaio",
        }
    }

    /// True where the C library's threads carry the requests out.
    pub fn is_posix_aio(self) -> bool {
        matches!(self.0, JobEngine::Queue(IoEngine::Other(_)))
    }

    /// True where a queue could not have it.
    pub fn goes_below_queues(self) -> bool {
        matches!(self.0, JobEngine::Mmap | JobEngine::Vectored)
    }

    /// This engine behind a queue of ours.
    pub fn queued(self) -> EngineName {
        let engine = match self.0 {
            JobEngine::Uring => IoEngine::Uring,
            JobEngine::Threads => IoEngine::Threads,
            JobEngine::Inline | JobEngine::Mmap | JobEngine::Vectored => IoEngine::Inline,
            JobEngine::Queue(engine) => engine,
        };
        EngineName(JobEngine::Queue(engine))
    }
}

/// Refuses words of a command line that are no text: names of files in run folders and in the
/// journal of changes are.
///
/// # Errors
/// The first such word.
pub fn check_text<'a>(mut words: impl Iterator<Item = &'a OsStr>) -> Result<(), LabError> {
    words.find(|word| word.to_str().is_none()).map_or(Ok(()), |word| {
        Err(LabError::refused(
            format!("{:?}", word.to_string_lossy()),
            "is not UTF-8, and results and the journal of changes keep names as text",
            "give the file or folder another name, or a link of another name",
        ))
    })
}

/// Seconds above 0 and up to a year: a clock may count them.
///
/// # Errors
/// The text is anything else.
pub fn seconds(text: &str) -> Result<f64, String> {
    const YEAR_S: f64 = 365.0 * 86_400.0;
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds <= YEAR_S => Ok(seconds),
        _ => Err(format!("{text:?} is no time: write seconds above 0 and up to {YEAR_S}")),
    }
}

/// A pattern as said on the command line: `random`, `sequential`, `stride:1m`.
pub fn parse_pattern(text: &str) -> Result<Pattern, String> {
    match text.split_once(':') {
        None if text == "random" => Ok(Pattern::Random),
        None if text == "sequential" => Ok(Pattern::Sequential),
        None if text == "stride" => Err("how far? write for example stride:1m".into()),
        Some(("stride", bytes)) => Ok(Pattern::Stride(size::parse(bytes)?)),
        _ => Err(format!("no pattern is called '{text}': there are random, sequential and stride:SIZE")),
    }
}

/// A pattern as it is said.
pub fn show_pattern(pattern: Pattern) -> String {
    match pattern {
        Pattern::Random => "random".into(),
        Pattern::Sequential => "sequential".into(),
        Pattern::Stride(bytes) => format!("stride:{}", size::exact(bytes)),
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn on_and_off_have_the_names_of_fio_too() {
        for (text, value) in [("on", OnOff::On), ("1", OnOff::On), ("off", OnOff::Off), ("0", OnOff::Off)] {
            assert_eq!(OnOff::from_str(text, false), Ok(value));
        }
        assert_eq!(OnOff::On.to_string(), "on");
        assert_eq!(serde_json::to_string(&OnOff::Off).unwrap(), "\"off\"");
    }

    #[test]
    fn engines_have_the_names_of_fio_and_ours() {
        for (text, name) in [
            ("uring", "io_uring"),
            ("io_uring", "io_uring"),
            ("inline", "psync"),
            ("psync", "psync"),
            ("mmap", "mmap"),
            ("threads", "threads"),
        ] {
            assert_eq!(text.parse::<EngineName>().unwrap().name(), name);
        }
        let error = "libaio".parse::<EngineName>().unwrap_err();
        assert!(error.contains("libaio") && error.contains("uring"), "{error}");
    }

    #[test]
    fn names_are_text() {
        use std::os::unix::ffi::OsStrExt;
        let check = |words: &[&[u8]]| check_text(words.iter().map(|word| OsStr::from_bytes(word)));
        assert!(check(&[b"read", "f\u{e4}".as_bytes()]).is_ok());
        let error = check(&[b"read", b"f\xff\x1b[2J"]).unwrap_err().to_string();
        assert!(error.contains("is not UTF-8") && !error.contains(char::is_control), "{error:?}");
    }

    #[test]
    fn seconds_are_those_that_a_clock_counts() {
        for (text, is_taken) in [
            ("0.2", true),
            ("1", true),
            ("1e3", true),
            ("0", false),
            ("-1", false),
            ("nan", false),
            ("inf", false),
            ("1e30", false),
            ("1 s", false),
            ("", false),
        ] {
            assert_eq!(seconds(text).is_ok(), is_taken, "{text}");
        }
    }

    #[test]
    fn patterns() {
        for text in ["random", "sequential", "stride:1m"] {
            assert_eq!(show_pattern(parse_pattern(text).unwrap()), text);
        }
        assert!(parse_pattern("stride").unwrap_err().contains("stride:1m"));
        assert!(parse_pattern("zipf").unwrap_err().contains("zipf"));
        assert!(parse_pattern("stride:x").is_err());
    }
}
