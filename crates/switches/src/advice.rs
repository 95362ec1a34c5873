//! Errors as a command shows them, with the switch that changes a limit or another remedy.

use std::error::Error;

use snowmelt_graph::GraphError;
use snowmelt_graph::load::{DocumentSetting, LoadError};
use snowmelt_sparql::{LoadRefusal, QueryError, RemoteFaultKind, SparqlLanguage};
use snowmelt_store::StoreError;
use snowmelt_syntax_help::{Report, likely_cause};

const LONGEST_TERM: &str = "; --longest-term SIZE changes that";
const DAMAGE: &str = "; restore the database from a copy";
const MEMORY: &str = "; give more with --memory";

/// The text of an error, and advice.
pub struct Told {
    /// Says what is wrong.
    pub text: String,
    /// Begins with its own separator; empty where there is none.
    pub advice: String,
}

/// The faults of a text in full, with the lines they stand in and a mark below each; none if the
/// error is another.
pub fn faults(error: &anyhow::Error) -> Option<String> {
    let syntax = error.chain().find_map(|cause| match cause.downcast_ref() {
        Some(QueryError::Parse { syntax: Some(syntax), .. }) => Some(syntax),
        _ => None,
    })?;
    Some(Report::new(syntax, &[]).to_string())
}

impl Told {
    /// The text of an error alone, without its causes.
    pub fn from_error(error: &(dyn Error + 'static)) -> Self {
        if let Some(error) = error.downcast_ref::<QueryError>() {
            Self::from_query(error)
        } else if let Some(error) = error.downcast_ref::<LoadError>() {
            Self::from_load(error)
        } else if let Some(error) = error.downcast_ref::<GraphError>() {
            Self::from_graph(error)
        } else if let Some(error) = error.downcast_ref::<StoreError>() {
            Self::from_store(error)
        } else {
            Self { text: error.to_string(), advice: String::new() }
        }
    }

    /// An error of a query or an update.
    pub fn from_query(error: &QueryError) -> Self {
        let advice = match error {
            QueryError::Parse { syntax: Some(syntax), .. } => {
                let advice = likely_cause(syntax, &[]).map(|cause| format!("; {cause}"));
                return Self { text: error.to_string(), advice: advice.unwrap_or_default() };
            }
            QueryError::WrongLanguage { found: SparqlLanguage::Query, .. } => {
                "; run it with `snowmelt query`"
            }
            QueryError::WrongLanguage { found: SparqlLanguage::Update, .. } => {
                "; run it with `snowmelt update`"
            }
            QueryError::TooLarge { limit, .. } => {
                let switch = limit.replace('_', "-");
                let advice = format!("; make it smaller, or raise the limit (--{switch})");
                return Self { text: error.to_string(), advice };
            }
            QueryError::OperationTooLong { .. } => " (--max-update)",
            QueryError::Memory { .. } | QueryError::TooMuch => {
                "; give it more with --memory or make it smaller"
            }
            QueryError::TextMemory { .. } => {
                "; make it smaller, send it in several parts, or give more with --memory"
            }
            QueryError::Busy { .. } => "; try again later, or give more with --memory",
            QueryError::TermTooLong { .. } => LONGEST_TERM,
            QueryError::LoadRefused { why: LoadRefusal::NoFolder, .. } => {
                "; allow a folder with --allow-load DIR"
            }
            QueryError::LoadRefused { why: LoadRefusal::OtherFolder, .. } => " (--allow-load)",
            QueryError::Service { .. } | QueryError::LoadFailed { .. } => of_endpoint(error),
            QueryError::Load(error) => return Self::from_load(error),
            QueryError::Store(error) => return Self::from_graph(error),
            _ => "",
        };
        Self { text: error.to_string(), advice: advice.to_owned() }
    }

    fn from_load(error: &LoadError) -> Self {
        let (text, advice) = match error {
            LoadError::Option { option, message } => (format!("--{option}: {message}"), ""),
            LoadError::TooManyLeftOut { .. } => (error.to_string(), ". --lenient-most PERCENT lets more go"),
            LoadError::Graph(error) => return Self::from_graph(error),
            LoadError::Store(error) => return Self::from_store(error),
            error => {
                let advice = match error.setting() {
                    Some(DocumentSetting::LongestTerm) => LONGEST_TERM,
                    Some(DocumentSetting::Memory) => MEMORY,
                    Some(DocumentSetting::Contexts) => " (--context ADDRESS=FILE)",
                    None => "",
                };
                (error.to_string(), advice)
            }
        };
        Self { text, advice: advice.to_owned() }
    }

    fn from_graph(error: &GraphError) -> Self {
        let advice = match error {
            GraphError::TermTooLong { .. } => LONGEST_TERM,
            GraphError::Store(error) => return Self::from_store(error),
            error if error.is_damage() => DAMAGE,
            _ => "",
        };
        Self { text: error.to_string(), advice: advice.to_owned() }
    }

    fn from_store(error: &StoreError) -> Self {
        let advice = match error {
            StoreError::Memory { .. } => MEMORY,
            StoreError::NeedsWriting { .. } => " (--memory)",
            StoreError::BlockDevice { .. } => "; --destroy takes it all the same",
            StoreError::JournalDamaged { is_cuttable: true, .. } => "; --salvage opens what is before",
            error if error.is_damage() => DAMAGE,
            _ => "",
        };
        Self { text: error.to_string(), advice: advice.to_owned() }
    }
}

/// Advice for an endpoint that gave no answer.
fn of_endpoint(error: &QueryError) -> &'static str {
    match error.remote_fault() {
        Some(RemoteFaultKind::NoneAllowed | RemoteFaultKind::NotAllowed) => {
            "; allow it with --allow-service PREFIX"
        }
        Some(RemoteFaultKind::Private) => "; name it with --service-address ADDRESS",
        Some(RemoteFaultKind::Late) => "; --service-timeout SECONDS gives it more",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use snowmelt_graph::load::LoadOption;
    use snowmelt_sparql::RemoteFault;

    use super::*;

    fn told(error: impl Error + 'static) -> String {
        let Told { text, advice } = Told::from_error(&error);
        text + &advice
    }

    #[test]
    fn errors_name_the_switch_that_changes_their_limit() {
        let large = QueryError::TooLarge { limit: "query_depth", most: 5, line: 1, column: 2 };
        assert_eq!(
            told(large),
            "line 1, column 2: the text goes beyond query_depth = 5 here; make it smaller, or raise the \
             limit (--query-depth)"
        );
        let memory = QueryError::Memory { share_bytes: 10, what: "a sort" };
        assert!(told(memory).ends_with("of memory (a sort); give it more with --memory or make it smaller"));
        let term = QueryError::TermTooLong { bytes: 7, most: 5 };
        assert!(told(term).ends_with(", 5 bytes; --longest-term SIZE changes that"));
        let load = QueryError::LoadRefused { source_iri: "file:///a".to_owned(), why: LoadRefusal::NoFolder };
        assert!(told(load).ends_with("; allow a folder with --allow-load DIR"));
        let service = |kind| {
            let fault = RemoteFault { kind, why: "it is a fault".to_owned() };
            told(QueryError::Service { endpoint: "http://e/".to_owned(), fault })
        };
        assert_eq!(
            service(RemoteFaultKind::NoneAllowed),
            "SERVICE <http://e/>: it is a fault; allow it with --allow-service PREFIX"
        );
        assert!(service(RemoteFaultKind::Private).ends_with("; name it with --service-address ADDRESS"));
        assert!(service(RemoteFaultKind::Late).ends_with("; --service-timeout SECONDS gives it more"));
        let update = QueryError::WrongLanguage { found: SparqlLanguage::Update, line: 1, column: 1 };
        assert!(told(update).ends_with("this is an update, not a query; run it with `snowmelt update`"));
    }

    /// However deep it was found, damage is answered in one way.
    #[test]
    fn damage_is_answered_with_a_copy() {
        let stored = || StoreError::Corrupt { path: "a".into(), why: "it is cut off".to_owned() };
        let graph = || GraphError::Dictionary { tree: "iri", number: 7, why: "it is not UTF-8".to_owned() };
        for told in [
            told(stored()),
            told(LoadError::from(stored())),
            told(QueryError::from(GraphError::from(stored()))),
            told(graph()),
            told(LoadError::from(graph())),
            told(QueryError::from(graph())),
        ] {
            assert!(told.ends_with("; restore the database from a copy"), "{told}");
        }
    }

    #[test]
    fn errors_of_loads_are_known_within_those_of_queries() {
        let stored = || GraphError::TermTooLong { bytes: 7, most: 5 };
        for told in [told(stored()), told(LoadError::from(stored())), told(QueryError::from(stored()))] {
            assert!(told.ends_with("has 5; --longest-term SIZE changes that"), "{told}");
        }
        let document = |setting| LoadError::Syntax {
            file: "a.ttl".to_owned(),
            line: 2,
            column: 1,
            message: "a fault".to_owned(),
            setting,
        };
        assert_eq!(told(document(None)), "a.ttl:2:1: a fault");
        assert_eq!(
            told(document(Some(DocumentSetting::LongestTerm))),
            "a.ttl:2:1: a fault; --longest-term SIZE changes that"
        );
        assert!(
            told(document(Some(DocumentSetting::Contexts))).ends_with("a fault (--context ADDRESS=FILE)")
        );
        assert!(told(document(Some(DocumentSetting::Memory))).ends_with("a fault; give more with --memory"));
        let option = LoadError::Option { option: LoadOption::Graph, message: "a is no IRI".to_owned() };
        assert_eq!(told(QueryError::from(option)), "--graph: a is no IRI");
        assert_eq!(told(std::io::Error::other("a disk")), "a disk");
    }

    #[test]
    fn errors_of_the_store_are_known_within_all_others() {
        let memory = || StoreError::Memory { what: "a pool".to_owned(), wanted: 7, free: 5, total: 9 };
        for told in [
            told(memory()),
            told(GraphError::from(memory())),
            told(LoadError::from(memory())),
            told(QueryError::from(GraphError::from(memory()))),
        ] {
            assert!(told.ends_with("are free; give more with --memory"), "{told}");
        }
        let device =
            StoreError::BlockDevice { path: "/dev/x".into(), found: "there is ext4 on it".to_owned() };
        assert_eq!(
            told(device),
            "/dev/x is a block device (there is ext4 on it): all on it would be lost; --destroy takes it all \
             the same"
        );
        let cut = |is_cuttable| StoreError::JournalDamaged {
            file: "j".into(),
            offset: 4,
            why: "it is short".to_owned(),
            is_cuttable,
        };
        assert_eq!(told(cut(true)), "j: byte 4: it is short; --salvage opens what is before");
        assert_eq!(told(cut(false)), "j: byte 4: it is short; restore the database from a copy");
    }
}
