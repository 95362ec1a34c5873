//! Logs for administrators: each request, requests that took long, and changes.
//!
//! | log    | a line for each                       | form                              |
//! |--------|---------------------------------------|-----------------------------------|
//! | access | request, when its answer is over      | Common Log Format, or JSON        |
//! | slow   | query or update that took so long     | JSON, with its plan and its reads |
//! | audit  | change that was made                  | JSON                              |
//!
//! Files are appended to, so that they can be rotated by copying and truncating, or by renaming
//! them: [`Logs::reopen`] makes them anew. A line that cannot be written is lost: a full disk must
//! not stop the server.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use hyper::{HeaderMap, Request, StatusCode, header};
use serde_json::{Value, json};

/// A log.
pub struct Log {
    /// none: standard error
    path: Option<PathBuf>,
    to: Mutex<Box<dyn Write + Send>>,
}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Log")
    }
}

impl Log {
    /// The end of a file, made when it is not there; `-` is standard error.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        let log = |path, to| Self { path, to: Mutex::new(to) };
        if path == Path::new("-") {
            return Ok(log(None, Box::new(io::stderr())));
        }
        Ok(log(Some(path.to_owned()), Box::new(end_of(path)?)))
    }

    /// Goes on in the file that its name means now.
    fn reopen(&self) -> io::Result<()> {
        if let Some(path) = &self.path {
            let file =
                end_of(path).map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", path.display())))?;
            *self.to.lock().expect("no holder panics") = Box::new(file);
        }
        Ok(())
    }

    fn line(&self, mut line: String) {
        line.push('\n');
        // One write: lines of two servers do not mix.
        let _ = self.to.lock().expect("no holder panics").write_all(line.as_bytes());
    }
}

fn end_of(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).open(path)
}

/// Forms of the access log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AccessForm {
    /// the Common Log Format
    #[default]
    Common,
    /// a line of JSON
    Json,
}

/// The logs that are kept.
#[derive(Debug, Default)]
pub struct Logs {
    /// of requests
    pub access: Option<Log>,
    /// its form
    pub access_form: AccessForm,
    /// of queries and updates that take so long
    pub slow: Option<(Log, Duration)>,
    /// of changes
    pub audit: Option<Log>,
}

/// A request, for its line in the access log.
pub struct RequestLine {
    peer: String,
    user: Option<String>,
    method: String,
    target: String,
    version: String,
    agent: Option<String>,
}

/// A query or an update that took long.
pub struct SlowRequest<'a> {
    /// query or update
    pub kind: &'a str,
    /// its text
    pub text: &'a str,
    /// from its turn to its end
    pub took: Duration,
    /// of the answer, or changed
    pub rows: u64,
    /// reads and time
    pub activity: String,
    /// of a query
    pub plan: Option<String>,
    /// why it failed
    pub error: Option<String>,
}

impl RequestLine {
    /// The line of a request as it comes.
    pub fn new<B>(request: &Request<B>, peer: String) -> Self {
        let agent = request.headers().get(header::USER_AGENT);
        Self {
            peer,
            user: None,
            method: request.method().to_string(),
            target: request.uri().to_string(),
            version: format!("{:?}", request.version()),
            agent: agent.map(|agent| String::from_utf8_lossy(agent.as_bytes()).into_owned()),
        }
    }

    /// The user of it is known.
    pub fn by(self, user: Option<&str>) -> Self {
        Self { user: user.map(str::to_owned), ..self }
    }
}

impl Logs {
    /// Goes on in the files that their names mean now: those that were renamed are complete.
    ///
    /// # Errors
    /// One cannot be opened; it goes on where it was.
    pub fn reopen(&self) -> io::Result<()> {
        let all = [self.access.as_ref(), self.slow.as_ref().map(|(log, _)| log), self.audit.as_ref()];
        let done: Vec<io::Result<()>> = all.into_iter().flatten().map(Log::reopen).collect();
        done.into_iter().collect()
    }

    /// A request is over: `bytes` of its answer were sent.
    pub fn request(
        &self,
        line: &RequestLine,
        status: StatusCode,
        bytes: u64,
        took: Duration,
        headers: &HeaderMap,
    ) {
        let Some(log) = &self.access else { return };
        let RequestLine { peer, user, method, target, version, agent } = line;
        let now = SystemTime::now();
        log.line(match self.access_form {
            AccessForm::Common => {
                let host = peer.rsplit_once(':').map_or(peer.as_str(), |(host, _)| host);
                let user = user.as_deref().unwrap_or("-");
                // A quote in an address would end the field.
                let target = target.replace('"', "%22");
                format!(
                    "{host} - {user} [{}] \"{method} {target} {version}\" {} {bytes}",
                    clf_time(now),
                    status.as_u16()
                )
            }
            AccessForm::Json => {
                let activity = headers.get("snowmelt-activity").and_then(|value| value.to_str().ok());
                json!({
                    "time": rfc3339(now), "peer": peer, "user": user, "method": method, "target": target,
                    "status": status.as_u16(), "bytes": bytes, "ms": took.as_secs_f64() * 1e3,
                    "agent": agent, "activity": activity,
                })
                .to_string()
            }
        });
    }

    /// How long a request takes that is written down as slow.
    pub fn is_slow(&self, took: Duration) -> bool {
        self.slow.as_ref().is_some_and(|(_, least)| took >= *least)
    }

    /// One that was.
    pub fn slow(&self, request: &SlowRequest<'_>) {
        let Some((log, _)) = &self.slow else { return };
        let SlowRequest { kind, text, took, rows, activity, plan, error } = request;
        let plan: Option<Vec<&str>> = plan.as_ref().map(|plan| plan.lines().collect());
        log.line(
            json!({
                "time": rfc3339(SystemTime::now()), "kind": kind, "seconds": took.as_secs_f64(), "rows": rows,
                "activity": activity, "error": error, "text": text, "plan": plan,
            })
            .to_string(),
        );
    }

    /// A change was made: `what` says which.
    pub fn change(&self, peer: SocketAddr, user: Option<&str>, what: &Value) {
        let Some(log) = &self.audit else { return };
        let mut line = json!({ "time": rfc3339(SystemTime::now()), "peer": peer.to_string(), "user": user });
        if let (Some(line), Some(what)) = (line.as_object_mut(), what.as_object()) {
            line.extend(what.clone());
        }
        log.line(line.to_string());
    }
}

/// Day, month and so on of a time, as HTTP writes them: `Sun, 06 Nov 1994 08:49:37 GMT`.
fn parts(time: SystemTime) -> Vec<String> {
    httpdate::fmt_http_date(time).split_whitespace().map(str::to_owned).collect()
}

/// `06/Nov/1994:08:49:37 +0000`
fn clf_time(time: SystemTime) -> String {
    match &parts(time)[..] {
        [_, day, month, year, clock, ..] => format!("{day}/{month}/{year}:{clock} +0000"),
        _ => String::new(),
    }
}

/// `1994-11-06T08:49:37Z`
fn rfc3339(time: SystemTime) -> String {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    match &parts(time)[..] {
        [_, day, month, year, clock, ..] => {
            let month = 1 + MONTHS.iter().position(|name| name == month).unwrap_or(0);
            format!("{year}-{month:02}-{day}T{clock}Z")
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::UNIX_EPOCH;

    #[test]
    fn times_are_written_as_each_log_has_them() {
        let time = UNIX_EPOCH + Duration::from_secs(784_111_777);
        assert_eq!(clf_time(time), "06/Nov/1994:08:49:37 +0000");
        assert_eq!(rfc3339(time), "1994-11-06T08:49:37Z");
    }

    #[test]
    fn a_log_that_was_renamed_is_made_anew() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("audit.log");
        let logs = Logs { audit: Some(Log::open(&path).unwrap()), ..Logs::default() };
        let peer = SocketAddr::from(([127, 0, 0, 1], 80));
        logs.change(peer, None, &json!({ "text": "before" }));
        let old = dir.path().join("audit.log.1");
        std::fs::rename(&path, &old).unwrap();
        logs.change(peer, None, &json!({ "text": "between" }));
        logs.reopen().unwrap();
        logs.change(peer, None, &json!({ "text": "after" }));
        let lines = |path| std::fs::read_to_string(path).unwrap().lines().count();
        assert_eq!((lines(&old), lines(&path)), (2, 1));
    }

    #[test]
    fn a_request_is_one_line_whatever_it_asks_for() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("access.log");
        let request = Request::get("/sparql?query=ASK%20%7B%7D").body(()).unwrap();
        for access_form in [AccessForm::Common, AccessForm::Json] {
            let logs = Logs { access: Some(Log::open(&path).unwrap()), access_form, ..Logs::default() };
            let line = RequestLine::new(&request, "[::1]:4711".into()).by(Some("anna"));
            logs.request(&line, StatusCode::OK, 7, Duration::from_millis(3), &HeaderMap::new());
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("[::1] - anna ["), "{text}");
        assert!(lines[0].ends_with("] \"GET /sparql?query=ASK%20%7B%7D HTTP/1.1\" 200 7"), "{text}");
        let json: Value = serde_json::from_str(lines[1]).unwrap();
        assert_eq!(
            (&json["user"], &json["status"], &json["bytes"]),
            (&"anna".into(), &200.into(), &7.into())
        );
        assert_eq!(lines.len(), 2);
    }
}
