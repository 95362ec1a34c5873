//! One request, up to the head of its answer: connections, redirects, and what is tried again.
//!
//! An agent serves one request at a time, so that ending it breaks off that request alone. It
//! keeps its connection, and waits for the next request of the same place.

use std::collections::HashMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustls::crypto::ring;
use snowmelt_base::{printable, service_depth};
use ureq::http::{Method, Request, Response, header};
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::unversioned::transport::DefaultConnector;
use ureq::{Agent, Body};

use crate::fault::Fault;
use crate::lookup::GuardedLookup;
use crate::meter::Meters;
use crate::place::{Allowed, Place};
use crate::slots::{Slot, Slots};

/// Redirects that are followed.
const MOST_REDIRECTS: usize = 4;
/// Times that a request is sent again.
const MOST_RETRIES: u32 = 3;
/// Pause before the first of these; each further one is four times as long.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The longest pause that an endpoint can ask for.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// Agents that wait for requests, of one place.
const MOST_IDLE: usize = 8;
/// Places whose agents wait; when there are more, all of them go.
const MOST_PLACES: usize = 64;
/// Longest address; a longer question goes into the body.
const MOST_ADDRESS_BYTES: usize = 2000;
/// Bytes of an error's text that are shown.
const SHOWN_BYTES: usize = 300;
/// How long an error's text may take.
const TEXT_PATIENCE: Duration = Duration::from_secs(1);

/// Files with the certificates of authorities, as systems keep them.
const AUTHORITIES: [&str; 5] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// A question, and what its answer may be.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    /// the query; none: the document itself
    pub query: Option<String>,
    pub accept: &'static str,
    /// of the request that asks it within others
    pub depth: u32,
}

/// The reader of an answer, as its thread sees it.
///
/// Invariant: once its reader has gone, it holds neither agent nor place, whatever its thread does.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    is_gone: AtomicBool,
    agent: Mutex<Option<Agent>>,
    /// the place among the requests under way
    slot: Mutex<Option<Slot>>,
}

impl Watch {
    /// Breaks the request off.
    pub fn cancel(&self) {
        self.is_gone.store(true, Ordering::Release);
        if let Some(agent) = self.agent.lock().take() {
            agent.shutdown();
        }
        self.free();
    }

    /// Gives the place back.
    pub fn free(&self) {
        drop(self.slot.lock().take());
    }

    fn hold(&self, slot: Slot) -> Result<(), Fault> {
        *self.slot.lock() = Some(slot);
        if self.is_wanted() {
            return Ok(());
        }
        // one that went in between has found no place
        self.free();
        Err(Fault::Cancelled)
    }

    pub fn is_wanted(&self) -> bool {
        !self.is_gone.load(Ordering::Acquire)
    }

    fn set(&self, agent: Option<Agent>) -> Result<(), Fault> {
        *self.agent.lock() = agent;
        // one that went in between has found no agent
        if self.is_wanted() { Ok(()) } else { Err(Fault::Cancelled) }
    }

    /// Waits, unless the reader goes.
    fn sleep(&self, pause: Duration) -> Result<(), Fault> {
        let until = Instant::now() + pause;
        while self.is_wanted() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(Duration::from_millis(20)));
        }
        Err(Fault::Cancelled)
    }
}

/// All that requests share.
#[derive(Debug)]
pub(crate) struct Exchanges {
    pub lookup: GuardedLookup,
    pub slots: Arc<Slots>,
    pub meters: Meters,
    pub patience: Duration,
    pub authorities: Option<PathBuf>,
    pub roots: OnceLock<Option<RootCerts>>,
    pub idle: Mutex<HashMap<String, Vec<Agent>>>,
}

/// The head of an answer, and its agent.
pub(crate) struct Answered {
    pub response: Response<Body>,
    /// requests that were sent for it
    pub requests: u64,
    pub agent: Agent,
    /// that has answered, after redirects
    pub place: Place,
}

/// Why a request was not answered, and whether and when it may be sent again.
struct Failure {
    fault: Fault,
    again: Option<Duration>,
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        Self { fault, again: None }
    }
}

impl Exchanges {
    /// Sends a question until there is the head of an answer that is none of a failure.
    pub fn ask(
        &self,
        place: &Place,
        question: &Question,
        allowed: &Allowed,
        watch: &Watch,
    ) -> Result<Answered, Fault> {
        let (begun, mut requests, mut redirects) = (Instant::now(), 0, 0);
        let (mut place, mut retries) = (place.clone(), 0);
        loop {
            requests += 1;
            let failure = match self.send(&place, question, watch) {
                Ok((response, agent)) if response.status().is_redirection() => {
                    redirects += 1;
                    if redirects > MOST_REDIRECTS {
                        return Err(Fault::Redirects(MOST_REDIRECTS));
                    }
                    let to = target(&place, &response, question, allowed)?;
                    drop(response);
                    watch.free();
                    self.release(watch, place.origin(), agent);
                    place = to;
                    if begun.elapsed() > self.patience {
                        return Err(Fault::Late(self.patience));
                    }
                    continue;
                }
                Ok((response, agent)) => {
                    return Ok(Answered { response, requests, agent, place });
                }
                Err(failure) => failure,
            };
            watch.free();
            let Some(asked) = failure.again else { return Err(failure.fault) };
            let pause = (FIRST_PAUSE * 4u32.pow(retries)).max(asked).min(LONGEST_PAUSE);
            if retries == MOST_RETRIES || begun.elapsed() + pause > self.patience {
                return Err(failure.fault);
            }
            retries += 1;
            self.meters.of(&place.origin(), |meter| meter.retries += 1);
            watch.sleep(pause)?;
        }
    }

    /// Sends a question once; its place is the watch's then.
    fn send(
        &self,
        place: &Place,
        question: &Question,
        watch: &Watch,
    ) -> Result<(Response<Body>, Agent), Failure> {
        let origin = place.origin();
        let slot = self.slots.take(&origin, question.depth, self.patience, || watch.is_wanted());
        let busy = || Fault::Busy { under_way: self.slots.under_way(), waited: self.patience };
        watch.hold(slot.ok_or_else(|| if watch.is_wanted() { busy() } else { Fault::Cancelled })?)?;
        let agent = self.agent(place, &origin)?;
        watch.set(Some(agent.clone()))?;
        self.meters.of(&origin, |meter| meter.requests += 1);
        let answered = request(&agent, place, question);
        if !watch.is_wanted() {
            return Err(Fault::Cancelled.into());
        }
        let response = answered.map_err(|error| self.failure(error))?;
        match response.status().as_u16() {
            // others have a part of the answer, or none
            200 | 203 | 300..400 => Ok((response, agent)),
            status => {
                // Its text is read to its end, within few bytes and little time, or its
                // connection closed.
                let (failure, is_whole) = refused(status, response, TEXT_PATIENCE.min(self.patience));
                match is_whole {
                    true => self.release(watch, origin, agent),
                    false => agent.shutdown(),
                }
                Err(failure)
            }
        }
    }

    /// The meaning of an error of the library, before there is the head of an answer.
    fn failure(&self, error: ureq::Error) -> Failure {
        let at_once = Some(Duration::ZERO);
        match error {
            ureq::Error::Timeout(_) => Fault::Late(self.patience).into(),
            ureq::Error::Other(error) => match error.downcast::<Fault>() {
                Ok(fault) => (*fault).into(),
                Err(error) => Fault::Unreachable(error.to_string()).into(),
            },
            ureq::Error::Io(error) => {
                let again = at_once.filter(|_| may_pass(error.kind()));
                Failure { fault: Fault::Unreachable(error.to_string()), again }
            }
            ureq::Error::Rustls(error) => Fault::Unreachable(error.to_string()).into(),
            error => Fault::Unreachable(printable::line(&error.to_string()).into_owned()).into(),
        }
    }

    /// An agent for a request of a place.
    fn agent(&self, place: &Place, origin: &str) -> Result<Agent, Fault> {
        if let Some(agent) = self.idle.lock().get_mut(origin).and_then(Vec::pop) {
            return Ok(agent);
        }
        let patience = Some(self.patience);
        let mut config = Agent::config_builder()
            .http_status_as_error(false)
            // no proxy of the environment: it would look names up itself
            .proxy(None)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .user_agent(concat!("snowmelt/", env!("CARGO_PKG_VERSION")))
            .timeout_connect(patience)
            .timeout_send_request(patience)
            .timeout_send_body(patience)
            .timeout_recv_response(patience)
            .timeout_per_read(patience)
            .max_idle_connections(1);
        if place.is_encrypted {
            let roots = self.roots.get_or_init(|| authorities(self.authorities.as_deref()));
            let tls = TlsConfig::builder()
                .root_certs(roots.clone().ok_or(Fault::NoAuthorities)?)
                .unversioned_rustls_crypto_provider(Arc::new(ring::default_provider()));
            config = config.tls_config(tls.build());
        }
        Ok(Agent::with_parts(config.build(), DefaultConnector::new(), self.lookup.clone()))
    }

    /// Takes an agent back whose request has ended, out of the reach of that request's reader.
    pub fn release(&self, watch: &Watch, origin: String, agent: Agent) {
        if watch.set(None).is_err() {
            return;
        }
        let mut idle = self.idle.lock();
        if idle.len() >= MOST_PLACES && !idle.contains_key(&origin) {
            idle.clear();
        }
        let waiting = idle.entry(origin).or_default();
        if waiting.len() < MOST_IDLE {
            waiting.push(agent);
        }
    }
}

/// Errors of a server that begins, or of one that has closed a connection that was kept.
fn may_pass(kind: io::ErrorKind) -> bool {
    use io::ErrorKind as K;
    matches!(
        kind,
        K::ConnectionRefused
            | K::ConnectionReset
            | K::ConnectionAborted
            | K::BrokenPipe
            | K::NotConnected
            | K::UnexpectedEof
    )
}

fn request(agent: &Agent, place: &Place, question: &Question) -> Result<Response<Body>, ureq::Error> {
    let request = Request::builder()
        .header(header::ACCEPT, question.accept)
        .header(service_depth::HEADER, question.depth.saturating_add(1));
    let Some(query) = &question.query else {
        return agent.run(request.method(Method::GET).uri(place.to_string()).body(())?);
    };
    let form = form_urlencoded::Serializer::new(String::new()).append_pair("query", query).finish();
    let address = place.with_parameter(&form);
    if address.len() <= MOST_ADDRESS_BYTES {
        return agent.run(request.method(Method::GET).uri(address).body(())?);
    }
    let request = request.method(Method::POST).uri(place.to_string());
    agent.run(request.header(header::CONTENT_TYPE, "application/x-www-form-urlencoded").body(form)?)
}

/// The place that a redirect names, if it may be asked. The query is sent along anew, so one that
/// the redirect has kept is dropped.
fn target(
    place: &Place,
    response: &Response<Body>,
    question: &Question,
    allowed: &Allowed,
) -> Result<Place, Fault> {
    let location = response.headers().get(header::LOCATION).and_then(|to| to.to_str().ok());
    let location = location.ok_or(Fault::Nowhere)?;
    let refused = |why: Fault| {
        let to = printable::line(location).chars().take(SHOWN_BYTES).collect();
        Fault::Redirected { to, why: Box::new(why) }
    };
    let to = place.redirected(location).map_err(refused)?;
    let to = if question.query.is_some() { to.without_parameter("query") } else { to };
    allowed.check(&to).map_err(refused)?;
    Ok(to)
}

/// The failure that a status is, and whether its text has ended. A thread that still waits for the
/// text then ends with its connection.
fn refused(status: u16, response: Response<Body>, patience: Duration) -> (Failure, bool) {
    let seconds = response.headers().get(header::RETRY_AFTER).and_then(|after| after.to_str().ok());
    let asked = seconds.and_then(|seconds| seconds.trim().parse().ok()).map(Duration::from_secs);
    let again = matches!(status, 429 | 503).then(|| asked.unwrap_or_default());
    let (text, is_whole) = beginning(response.into_body(), patience);
    let text = String::from_utf8_lossy(&text);
    let said = match printable::line(text.lines().next().unwrap_or_default().trim()) {
        text if text.is_empty() || text.starts_with('<') => String::new(),
        text => format!(": {text}"),
    };
    (Failure { fault: Fault::Status { status, said }, again }, is_whole)
}

/// The first bytes of a body, as far as they come in time; and whether the reading of it has ended.
/// Timeouts of the library are those of each read, so a thread of its own reads.
fn beginning(body: Body, patience: Duration) -> (Vec<u8>, bool) {
    let (sender, receiver) = std::sync::mpsc::sync_channel(1);
    let read = move || {
        let (mut reader, mut part) = (body.into_reader().take(SHOWN_BYTES as u64), [0; SHOWN_BYTES]);
        // what cannot be read is not shown
        while let Ok(len @ 1..) = reader.read(&mut part) {
            if sender.send(part[..len].to_vec()).is_err() {
                break;
            }
        }
    };
    let (mut text, until) = (Vec::new(), Instant::now() + patience);
    if std::thread::Builder::new().name("refusal".to_owned()).spawn(read).is_err() {
        return (text, false);
    }
    loop {
        match receiver.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(part) => text.extend(part),
            Err(RecvTimeoutError::Disconnected) => return (text, true),
            Err(RecvTimeoutError::Timeout) => return (text, false),
        }
    }
}

/// The certificates of authorities of a file, or of this machine.
fn authorities(file: Option<&Path>) -> Option<RootCerts> {
    let read = |path: &Path| {
        let text = std::fs::read(path).ok()?;
        let items = parse_pem(&text).filter_map(Result::ok);
        let certificates = items.filter_map(|item| match item {
            PemItem::Certificate(certificate) => Some(certificate),
            _ => None,
        });
        let certificates: Vec<_> = certificates.collect();
        (!certificates.is_empty()).then(|| RootCerts::new_with_certs(&certificates))
    };
    match file {
        Some(file) => read(file),
        None => AUTHORITIES.iter().find_map(|path| read(Path::new(path))),
    }
}
