//! An engine that answers SQL as the target of a run: each client has a session of its own.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::Result;
use snowmelt_bsbm::Query;
use snowmelt_engines::{Asked, Engine, Session};

use snowmelt_workload::target::{Answered, Failure, Target};

/// A started engine.
pub struct SqlTarget<'a> {
    engine: &'a Engine,
    timeout: Option<Duration>,
    /// Sessions that no client uses now.
    idle: Mutex<Vec<Session<'a>>>,
}

impl<'a> SqlTarget<'a> {
    /// Sessions are started as clients need them.
    pub fn new(engine: &'a Engine, timeout: Option<Duration>) -> Self {
        Self { engine, timeout, idle: Mutex::new(Vec::new()) }
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Session<'a>>> {
        self.idle.lock().expect("taking a session does not panic")
    }
}

impl Target for SqlTarget<'_> {
    fn answer(&self, query: &Query, answer: &mut Vec<u8>) -> Result<Answered> {
        let begun = Instant::now();
        let idle = self.idle().pop();
        let mut session = idle.map_or_else(|| self.engine.session(), Ok)?;
        let connect_ns = begun.elapsed().as_nanos() as u64;
        let asked = session.ask(&query.text, self.timeout)?;
        let failed = match asked {
            Asked::Rows(text) => {
                answer.extend_from_slice(text.as_bytes());
                None
            }
            Asked::Failed(why) => Some(Failure::Broken(why)),
            Asked::Late => {
                let seconds = self.timeout.unwrap_or_default().as_secs_f64();
                let why = Failure::Timeout(format!("no answer within {seconds} s"));
                return Ok(Answered { connect_ns, failed: Some(why), ..Answered::default() });
            }
        };
        self.idle().push(session);
        Ok(Answered { connect_ns, failed, ..Answered::default() })
    }
}
