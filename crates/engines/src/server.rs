//! A started engine: ready, then stopped or crashed.

use std::time::{Duration, Instant};

use crate::engine::Engine;
use crate::error::EngineError;
use crate::process::Process;
use crate::ready::Probe;

/// The time between two looks whether it is ready.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// A server under way.
pub struct Server<'a> {
    engine: &'a Engine,
    process: Process,
    ready_s: f64,
}

impl<'a> Server<'a> {
    pub(crate) fn start(engine: &'a Engine) -> Result<Self, EngineError> {
        let words = engine.values().fill_all(&engine.adapter().start);
        let log = engine.fresh_log("server")?;
        let begun = Instant::now();
        let process = engine.runner().spawn(&words, &log, None)?;
        let mut server = Self { engine, process, ready_s: 0.0 };
        server.wait_until_ready(begun)?;
        server.ready_s = begun.elapsed().as_secs_f64();
        Ok(server)
    }

    fn wait_until_ready(&mut self, begun: Instant) -> Result<(), EngineError> {
        let ready = &self.engine.adapter().ready;
        let probe = Probe::new(ready, self.engine.values());
        let limit = Duration::from_secs(ready.seconds);
        loop {
            if let Some(status) = self.process.ended() {
                return Err(EngineError::Ended {
                    engine: self.title(),
                    status: status.to_string(),
                    log: self.process.log_tail(),
                });
            }
            if probe.is_ready(&|words| self.succeeds(words)) {
                return Ok(());
            }
            if self.engine.is_interrupted() {
                return Err(EngineError::Interrupted);
            }
            if begun.elapsed() > limit {
                let (engine, seconds, probe) = (self.title(), ready.seconds, probe.text());
                return Err(EngineError::NotReady { engine, seconds, probe, log: self.process.log_tail() });
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    fn succeeds(&self, words: &[String]) -> bool {
        let Ok(log) = self.engine.fresh_log("probe") else { return false };
        let Ok(mut probe) = self.engine.runner().spawn(words, &log, None) else { return false };
        let stopped = || self.engine.is_interrupted();
        probe.wait(Duration::from_secs(10), &stopped).is_some_and(|status| status.success())
    }

    fn title(&self) -> String {
        self.engine.adapter().title.clone()
    }

    /// Its engine.
    pub fn engine(&self) -> &'a Engine {
        self.engine
    }

    /// Number of its first process, for watching the tree.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Seconds from its start until it was ready.
    pub fn ready_s(&self) -> f64 {
        self.ready_s
    }

    /// Stops it in its ordinary way; the seconds that took.
    ///
    /// # Errors
    /// It did not end in time, and was killed; or its stop command failed, and it was killed.
    pub fn stop(mut self) -> Result<f64, EngineError> {
        let begun = Instant::now();
        let stop = &self.engine.adapter().stop;
        let seconds = stop.seconds;
        let words = self.engine.values().fill_all(&stop.command);
        let limit = Duration::from_secs(seconds);
        let mut asking = None;
        if words.is_empty() {
            self.process.ask_to_end();
        } else {
            asking = Some(self.engine.runner().spawn(&words, &self.engine.fresh_log("stop")?, None)?);
        }
        let ended = self.process.wait(limit, &|| false).is_some();
        if let Some(asking) = &mut asking {
            // It ends with the server; its answer does not matter.
            asking.wait(limit.saturating_sub(begun.elapsed()).max(Duration::from_secs(1)), &|| false);
        }
        if ended {
            return Ok(begun.elapsed().as_secs_f64());
        }
        let log = asking.map_or_else(String::new, |asking| asking.log_tail()) + &self.process.log_tail();
        self.process.kill();
        Err(EngineError::StopHung { engine: self.title(), seconds, log })
    }

    /// Kills it and everything it started, as a power cut of its machine would do to its memory.
    pub fn crash(mut self) {
        self.process.kill();
    }
}
