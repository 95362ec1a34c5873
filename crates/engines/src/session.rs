//! A session: a process of the adapter that reads statements from its input and answers them one
//! by one, so that no answer waits for a client to start.

use std::io::{BufRead, BufReader, Write};
use std::process::ChildStdin;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use crate::adapter::SessionCommand;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::process::Process;
use crate::values::Values;

/// The line that ends an answer begins so.
const MARK: &str = "~~ answered, failed:";
/// The time between two looks whether the work was interrupted.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Time that a client may take to cancel its statement.
const CANCEL: Duration = Duration::from_secs(3);

/// A session under way.
pub struct Session<'a> {
    engine: &'a Engine,
    command: &'a SessionCommand,
    process: Process,
    input: ChildStdin,
    lines: Receiver<String>,
}

/// The outcome of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Its rows: a line each, `|` between fields.
    Rows(String),
    /// The engine refused it, or failed at it.
    Failed(String),
    /// It was not answered in time, and was cancelled. The session is over.
    Late,
}

impl<'a> Session<'a> {
    pub(crate) fn start(engine: &'a Engine, command: &'a SessionCommand) -> Result<Self, EngineError> {
        let words = engine.values().with(&[("mark", MARK)]).fill_all(&command.run);
        let (process, input, output) = engine.runner().converse(&words, &engine.fresh_log("session")?)?;
        let (told, lines) = channel();
        // It ends with the process, whose end closes the pipe.
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                let Ok(line) = line else { return };
                if told.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Self { engine, command, process, input, lines })
    }

    /// Asks a statement.
    ///
    /// # Errors
    /// The session ended, or the work was interrupted.
    pub fn ask(&mut self, text: &str, limit: Option<Duration>) -> Result<Asked, EngineError> {
        let mut values = Values::default();
        values.set("text", text);
        values.set("mark", MARK);
        let sent = self.input.write_all(values.fill(&self.command.ask).as_bytes());
        if sent.and_then(|()| self.input.flush()).is_err() {
            return Err(self.ended());
        }
        let until = limit.map(|limit| Instant::now() + limit);
        let mut rows = String::new();
        loop {
            let left = until.map_or(LOOK_EVERY, |until| until.saturating_duration_since(Instant::now()));
            match self.lines.recv_timeout(left.min(LOOK_EVERY)) {
                Ok(line) => match line.strip_prefix(MARK) {
                    Some(end) => return Ok(outcome(end, rows)),
                    None => {
                        rows += &line;
                        rows.push('\n');
                    }
                },
                Err(RecvTimeoutError::Disconnected) => return Err(self.ended()),
                Err(RecvTimeoutError::Timeout) if self.engine.is_interrupted() => {
                    return Err(EngineError::Interrupted);
                }
                Err(RecvTimeoutError::Timeout) if until.is_some_and(|until| Instant::now() >= until) => {
                    self.process.interrupt();
                    self.process.wait(CANCEL, &|| self.engine.is_interrupted());
                    return Ok(Asked::Late);
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    fn ended(&mut self) -> EngineError {
        let status =
            self.process.wait(CANCEL, &|| false).map_or("it closed its output".into(), |s| s.to_string());
        EngineError::Command {
            engine: self.engine.adapter().title.clone(),
            command: self.command.run.join(" "),
            status,
            log: self.process.log_tail(),
        }
    }
}

/// From what follows the mark: ` false`, or ` true REASON`.
fn outcome(end: &str, rows: String) -> Asked {
    match end.trim().strip_prefix("true") {
        Some(why) => Asked::Failed(why.trim().to_owned()),
        None => Asked::Rows(rows),
    }
}
