//! Switches about endpoints elsewhere: which may be asked, and for how long.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use snowmelt_base::size;
use snowmelt_federation::{
    AddressRange, Answer, AnswerPart, AnswerUse, Fault, Federation, FederationSettings, NotAPrefix,
    PlacePrefix,
};
use snowmelt_sparql::{
    RemoteAnswer, RemoteDocument, RemoteEndpoints, RemoteFault, RemoteFaultKind, RemotePart, RemoteQuestion,
    RemoteTotals, RemoteUse,
};

/// Switches of SERVICE, and of LOAD from elsewhere.
#[derive(Clone, Debug, clap::Args)]
pub struct ServiceArgs {
    /// Let SERVICE ask endpoints, and LOAD get documents, whose addresses begin like this
    /// (repeatable) [default: none]
    #[arg(long, value_name = "PREFIX")]
    allow_service: Vec<PlacePrefix>,
    /// An address, or a range like 10.1.0.0/16, that they may have although it is private; a
    /// prefix with an address in it, or with localhost, needs none (repeatable)
    #[arg(long, value_name = "ADDRESS", help_heading = "Federation")]
    service_address: Vec<AddressRange>,
    /// An endpoint that sends no row for so many seconds has not answered
    #[arg(
        long,
        value_name = "SECONDS",
        value_parser = seconds,
        default_value_t = FederationSettings::default().patience.as_secs_f64(),
        help_heading = "Federation"
    )]
    service_timeout: f64,
    /// Requests at the same time; to one endpoint half as many
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u16).range(1..=1000),
        default_value_t = FederationSettings::default().at_once as u16,
        help_heading = "Federation"
    )]
    service_limit: u16,
    /// Longest answer to a request
    #[arg(
        long,
        value_name = "SIZE",
        value_parser = size::parse,
        default_value_t = FederationSettings::default().answer_bytes,
        help_heading = "Federation"
    )]
    service_size: u64,
    /// Certificates in PEM that may sign those of endpoints [default: the machine's]
    #[arg(long, value_name = "FILE", help_heading = "Federation")]
    service_cacert: Option<PathBuf>,
}

/// A beginning of addresses, as it was written. One that is none would allow nothing.
///
/// # Errors
/// Fails if it does not begin an address of HTTP.
pub fn prefix(text: &str) -> Result<String, NotAPrefix> {
    text.parse::<PlacePrefix>().map(|_| text.to_owned())
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.001..=86_400.0).contains(&seconds) => Ok(seconds),
        _ => Err("use 0.001 to 86400 seconds".to_owned()),
    }
}

impl ServiceArgs {
    /// The endpoints, whose rows have terms of at most so many bytes; none where none may be asked.
    pub fn endpoints(&self, longest_term: u64) -> Option<Arc<dyn RemoteEndpoints>> {
        if self.allow_service.is_empty() {
            return None;
        }
        Some(endpoints(FederationSettings {
            allowed: self.allow_service.clone(),
            addresses: self.service_address.clone(),
            patience: Duration::from_secs_f64(self.service_timeout),
            at_once: usize::from(self.service_limit),
            answer_bytes: self.service_size,
            longest_term,
            authorities: self.service_cacert.clone(),
        }))
    }
}

/// Endpoints that are asked over HTTP.
pub fn endpoints(settings: FederationSettings) -> Arc<dyn RemoteEndpoints> {
    Arc::new(HttpEndpoints(Federation::new(settings)))
}

/// Endpoints, as queries ask them.
#[derive(Debug)]
struct HttpEndpoints(Federation);

struct HttpAnswer(Answer);

impl RemoteAnswer for HttpAnswer {
    fn next(&mut self, wait: Duration) -> Result<RemotePart, RemoteFault> {
        Ok(match self.0.next(wait).map_err(fault)? {
            AnswerPart::Rows(rows) => RemotePart::Rows(rows),
            AnswerPart::Waiting => RemotePart::Waiting,
            AnswerPart::End(AnswerUse { requests, rows, bytes, time }) => {
                RemotePart::End(RemoteUse { requests, rows, bytes, time })
            }
        })
    }
}

impl RemoteEndpoints for HttpEndpoints {
    fn select(&self, question: RemoteQuestion) -> Result<Box<dyn RemoteAnswer>, RemoteFault> {
        let RemoteQuestion { endpoint, text, variables } = question;
        let answer = self.0.select(&endpoint, text, variables).map_err(fault)?;
        Ok(Box::new(HttpAnswer(answer)))
    }

    fn document(
        &self,
        address: &str,
        go_on: Box<dyn Fn() -> bool + Send>,
    ) -> Result<RemoteDocument, RemoteFault> {
        let document = self.0.fetch(address, go_on).map_err(fault)?;
        let media_type = document.media_type().map(str::to_owned);
        let moved_to = document.moved_to().map(str::to_owned);
        Ok(RemoteDocument { media_type, moved_to, read: Box::new(document) })
    }

    fn narrowed(&self, prefixes: &[String]) -> Arc<dyn RemoteEndpoints> {
        // a text that is no prefix allows nothing
        let prefixes = prefixes.iter().filter_map(|prefix| prefix.parse().ok()).collect();
        Arc::new(Self(self.0.narrowed(prefixes)))
    }

    fn at_depth(&self, depth: u32) -> Option<Arc<dyn RemoteEndpoints>> {
        Some(Arc::new(Self(self.0.at_depth(depth))))
    }

    fn totals(&self) -> Vec<RemoteTotals> {
        let totals = self.0.meters().into_iter().map(|meter| RemoteTotals {
            endpoint: meter.endpoint,
            done: RemoteUse {
                requests: meter.requests,
                rows: meter.rows,
                bytes: meter.bytes,
                time: meter.time,
            },
            retries: meter.retries,
            failed: meter.failed,
        });
        totals.collect()
    }
}

fn fault(fault: Fault) -> RemoteFault {
    let kind = match &fault {
        Fault::NoneAllowed => RemoteFaultKind::NoneAllowed,
        Fault::Private { .. } => RemoteFaultKind::Private,
        Fault::Redirected { why, .. } if matches!(**why, Fault::Private { .. }) => RemoteFaultKind::Private,
        fault if fault.is_refusal() => RemoteFaultKind::NotAllowed,
        fault if fault.is_of_time() => RemoteFaultKind::Late,
        fault if fault.is_of_length() => RemoteFaultKind::TooLong,
        _ => RemoteFaultKind::Failed,
    };
    RemoteFault { kind, why: fault.to_string() }
}
