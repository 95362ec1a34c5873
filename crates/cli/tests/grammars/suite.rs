//! The server under attack, and what may come of a request.

use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::client::{Answer, Reply, ask, percent_encode};
use crate::shot::{Place, Shot};
use crate::storm::{Bounds, Clients, state_after, storm};
use crate::target::Target;

/// How a request ended that ended well.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    Taken,
    Refused,
}

/// A running suite: the server, started again after it died.
pub struct Suite<'a> {
    bounds: &'a Bounds,
    pub target: Target,
}

impl<'a> Suite<'a> {
    /// Starts a server on a new database with a few triples.
    pub fn start(dir: &Path, bounds: &'a Bounds) -> Self {
        let (db, data) = (dir.join("db"), dir.join("data.nt"));
        std::fs::write(&data, "<urn:o0> <urn:p0> <urn:o0> .\n").expect("the disk has room");
        let mut load = Command::new(env!("CARGO_BIN_EXE_snowmelt"));
        let done = load.arg("load").args([&db, &data]).output().expect("it runs");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        Suite { bounds, target: bounds.start(db) }
    }

    /// Sends one request. One copy must be taken; more may be refused by a limit.
    pub fn alone(&mut self, shot: &Shot) -> Result<Outcome, String> {
        self.target.forget_peak();
        let outcome = send(shot, &self.target, self.bounds, Clients::One);
        let outcome = self.after().and(outcome);
        outcome.map_err(|error| format!("{error}\n    {}", shot.shown()))
    }

    fn after(&mut self) -> Result<(), String> {
        state_after(&mut self.target, self.bounds, probe)
    }

    /// All these requests from many clients.
    pub fn storm(&mut self, shots: &[Shot]) -> Vec<String> {
        self.target.forget_peak();
        let (bounds, target) = (self.bounds, &self.target);
        let mut wrong = storm(
            shots,
            |shot| {
                let outcome = send(shot, target, bounds, Clients::Many);
                outcome.map(drop).map_err(|error| format!("{} × {}: {error}", shot.name, shot.copies))
            },
            || probe(target, bounds.patience(Clients::Many)),
        );
        wrong.truncate(20);
        wrong.extend(self.after().err());
        wrong
    }

    /// The time that a request may take.
    pub fn time_limit(&self) -> Duration {
        Duration::from_secs(self.bounds.timeout_s)
    }

    /// Seconds of a core that the server has used.
    pub fn cpu_seconds(&self) -> f64 {
        self.target.cpu_ticks() as f64 / rustix::param::clock_ticks_per_second() as f64
    }
}

fn send(shot: &Shot, target: &Target, bounds: &Bounds, clients: Clients) -> Result<Outcome, String> {
    let host = target.address.to_string();
    let send = |out: &mut dyn Write| shot.send(&host, out);
    let begun = Instant::now();
    let reply = ask(target.address, bounds.patience(clients), true, &send);
    let answer = match &reply {
        Reply::Answer(answer) => answer,
        // Joins of copies have more rows than time, or than memory that others want, too: their
        // answer has begun when that is over.
        Reply::Cut(answer) if answer.status == 200 && ends_within(answer, begun, bounds, clients) => {
            return Ok(Outcome::Refused);
        }
        _ => return Err(reply.tell()),
    };
    match answer.status {
        200 | 201 | 204 => Ok(Outcome::Taken),
        status if status >= 400 && is_named(&answer.body, shot.copies, clients) => Ok(Outcome::Refused),
        _ => Err(reply.tell()),
    }
}

/// Whether an answer may have met a limit on its way.
fn ends_within(answer: &Answer, begun: Instant, bounds: &Bounds, clients: Clients) -> bool {
    begun.elapsed() >= Duration::from_secs(bounds.timeout_s) || (clients == Clients::Many && answer.lines > 0)
}

/// Whether an error says which limit it is, by that word or by its switch, what is not supported,
/// or which file or endpoint may not be asked. The smallest document meets no limit.
fn is_named(text: &str, copies: usize, clients: Clients) -> bool {
    let lower = text.to_lowercase();
    let may_be_limit = copies > 1 || clients == Clients::Many;
    let is_limit = may_be_limit && (lower.contains("limit") || text.contains("--"));
    // an endpoint that is a variable, which nothing binds
    let is_unbound = text.starts_with("SERVICE ?");
    let is_not_allowed = ["--allow-load", "--allow-service"].iter().any(|switch| text.contains(switch));
    is_limit || is_not_allowed || is_unbound || lower.contains("not supported")
}

/// The query of an innocent client.
fn probe(target: &Target, patience: Duration) -> Result<(), String> {
    let query = "SELECT ?x { VALUES ?y { 20 } BIND(?y + 22 AS ?x) }";
    let request = format!(
        "GET /sparql?query={} HTTP/1.1\r\nHost: {}\r\nAccept: text/csv\r\n\r\n",
        percent_encode(query),
        target.address
    );
    let reply = ask(target.address, patience, true, &|out| out.write_all(request.as_bytes()));
    match &reply {
        Reply::Answer(answer) if answer.status == 200 && answer.body == "x\r\n42\r\n" => Ok(()),
        _ => Err(format!("the next query got {}", reply.tell())),
    }
}

/// A line of the list.
struct Listed {
    language: &'static str,
    begin: &'static str,
    held_off: bool,
}

/// The list of cases that do not hold yet.
pub struct Unmended(Vec<Listed>);

impl Unmended {
    pub fn read() -> Self {
        let lines = include_str!("unmended.txt").lines();
        let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        let listed = |line: &'static str| {
            let mut fields = line.splitn(3, '\t');
            let (language, begin) = (fields.next().unwrap_or(""), fields.next().unwrap_or(""));
            assert!(fields.next().is_some(), "{line}: language, beginning of the name and reason, with tabs");
            Listed { language, begin, held_off: false }
        };
        Unmended(lines.map(listed).collect())
    }

    fn line(&mut self, place: &Place) -> Option<&mut Listed> {
        let (language, name) = place.parts();
        self.0.iter_mut().find(|line| line.language == language && name.starts_with(line.begin))
    }

    pub fn has(&self, place: &Place) -> bool {
        let (language, name) = place.parts();
        self.0.iter().any(|line| line.language == language && name.starts_with(line.begin))
    }

    /// Judges an outcome by the list. Returns the fault, if there is one.
    pub fn judge(&mut self, place: &Place, outcome: Result<(), String>) -> Option<String> {
        match (outcome, self.line(place)) {
            (Err(_), Some(line)) => {
                line.held_off = true;
                None
            }
            (Err(error), None) => Some(format!("{}: {error}", place.name)),
            (Ok(()), _) => None,
        }
    }

    /// Lines of which all places hold.
    pub fn unused(&self) -> Vec<String> {
        let held = self.0.iter().filter(|line| !line.held_off);
        held.map(|line| format!("{}: {} holds, and is to be taken off", line.language, line.begin)).collect()
    }
}
