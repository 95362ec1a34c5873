//! Endpoints that may be asked, and the bounds of asking them.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;

use crate::answer::{Answer, Document, Errand};
use crate::exchange::{Exchanges, Question};
use crate::fault::Fault;
use crate::guard::{AddressRange, Guard};
use crate::lookup::{GuardedLookup, Lookup, SystemLookup};
use crate::meter::{EndpointMeter, Meters};
use crate::place::{Allowed, Place, PlacePrefix};
use crate::slots::Slots;

/// Formats of results, the quickest to read first.
const RESULTS: &str = "application/sparql-results+json, application/sparql-results+xml;q=0.8, \
     text/tab-separated-values;q=0.5";

/// Formats of documents, the quickest to read first.
const DOCUMENTS: &str = "application/n-quads, application/n-triples, application/trig;q=0.9, \
     text/turtle;q=0.9, application/rdf+xml;q=0.7, application/ld+json;q=0.6, */*;q=0.1";

/// Bytes of a row beside its longest term.
const BESIDE_A_TERM: u64 = 1 << 20;

/// Bounds of asking, and what may be asked.
#[derive(Clone, Debug)]
pub struct FederationSettings {
    /// Beginnings of addresses that may be asked; none: nothing may.
    pub allowed: Vec<PlacePrefix>,
    /// Addresses of machines that may be reached although they are not public.
    pub addresses: Vec<AddressRange>,
    /// How long an endpoint may let a request wait without a row.
    pub patience: Duration,
    /// Requests at the same time; of one endpoint half as many.
    pub at_once: usize,
    /// Bytes of an answer.
    pub answer_bytes: u64,
    /// Bytes of the longest term; a row has at most 1 MiB more.
    pub longest_term: u64,
    /// A file with the certificates of authorities; none: those of the machine.
    pub authorities: Option<PathBuf>,
}

impl Default for FederationSettings {
    fn default() -> Self {
        Self {
            allowed: Vec::new(),
            addresses: Vec::new(),
            patience: Duration::from_secs(30),
            at_once: 32,
            answer_bytes: 1 << 30,
            longest_term: 16 << 20,
            authorities: None,
        }
    }
}

/// Endpoints that may be asked. Copies share connections, places and meters.
#[derive(Clone, Debug)]
pub struct Federation {
    exchanges: Arc<Exchanges>,
    allowed: Allowed,
    answer_bytes: u64,
    longest_term: u64,
    /// of the request that asks within others
    depth: u32,
}

impl Federation {
    /// Of some settings.
    pub fn new(settings: FederationSettings) -> Self {
        Self::with_lookup(settings, Arc::new(SystemLookup))
    }

    /// With a lookup of names of one's own.
    pub fn with_lookup(settings: FederationSettings, lookup: Arc<dyn Lookup>) -> Self {
        let guard = Guard::new(settings.addresses);
        let exchanges = Exchanges {
            lookup: GuardedLookup { lookup, guard, patience: settings.patience },
            slots: Arc::new(Slots::new(settings.at_once)),
            meters: Meters::default(),
            patience: settings.patience,
            authorities: settings.authorities,
            roots: OnceLock::new(),
            idle: Mutex::default(),
        };
        Self {
            exchanges: Arc::new(exchanges),
            allowed: Allowed::new(settings.allowed),
            answer_bytes: settings.answer_bytes,
            longest_term: settings.longest_term,
            depth: 0,
        }
    }

    /// Only those endpoints that these prefixes allow, too.
    #[must_use]
    pub fn narrowed(&self, to: Vec<PlacePrefix>) -> Self {
        Self { allowed: self.allowed.narrowed(to), ..self.clone() }
    }

    /// For a request that is itself within so many others. Endpoints are told.
    #[must_use]
    pub fn at_depth(&self, depth: u32) -> Self {
        Self { depth, ..self.clone() }
    }

    /// Asks an endpoint for the rows of a query in these variables, of which there is one at least.
    ///
    /// # Errors
    /// The endpoint may not be asked. What it answers, or that it does not, is told by the answer.
    pub fn select(&self, endpoint: &str, query: String, variables: Vec<String>) -> Result<Answer, Fault> {
        Answer::begin(self.errand(endpoint, Some(query), variables, RESULTS)?)
    }

    /// Asks for a document; waits for the head of the answer while `go_on` says so.
    ///
    /// # Errors
    /// The place may not be asked, or gives no answer.
    pub fn fetch(&self, address: &str, go_on: Box<dyn Fn() -> bool + Send>) -> Result<Document, Fault> {
        Document::begin(self.errand(address, None, Vec::new(), DOCUMENTS)?, go_on)
    }

    /// The meters of the endpoints that were asked.
    pub fn meters(&self) -> Vec<EndpointMeter> {
        self.exchanges.meters.list()
    }

    /// Requests under way.
    pub fn under_way(&self) -> usize {
        self.exchanges.slots.under_way()
    }

    fn errand(
        &self,
        address: &str,
        query: Option<String>,
        variables: Vec<String>,
        accept: &'static str,
    ) -> Result<Errand, Fault> {
        let place = Place::parse(address)?;
        self.allowed.check(&place)?;
        Ok(Errand {
            exchanges: Arc::clone(&self.exchanges),
            place,
            question: Question { query, accept, depth: self.depth },
            variables,
            allowed: self.allowed.clone(),
            most_bytes: self.answer_bytes,
            most_bytes_of_row: self.longest_term.saturating_add(BESIDE_A_TERM),
        })
    }
}
