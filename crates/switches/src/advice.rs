//! Errors as a command tells them: with the switch that changes a limit, and what else to do.

use std::error::Error;

use snowmelt_graph::GraphError;
use snowmelt_graph::load::LoadError;
use snowmelt_sparql::{LoadRefusal, QueryError, SparqlLanguage};

const LONGEST_TERM: &str = "; --longest-term SIZE changes that";

/// An error's text, and the advice that follows on it.
pub struct Told {
    /// Says what is wrong.
    pub text: String,
    /// Begins with its own separator; empty where there is none.
    pub advice: String,
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
        } else {
            Self { text: error.to_string(), advice: String::new() }
        }
    }

    /// An error of a query or an update.
    pub fn from_query(error: &QueryError) -> Self {
        let advice = match error {
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
            error => (error.to_string(), ""),
        };
        Self { text, advice: advice.to_owned() }
    }

    fn from_graph(error: &GraphError) -> Self {
        let advice = match error {
            GraphError::TermTooLong { .. } => LONGEST_TERM,
            _ => "",
        };
        Self { text: error.to_string(), advice: advice.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use snowmelt_graph::load::LoadOption;

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
        let update = QueryError::WrongLanguage { found: SparqlLanguage::Update, line: 1, column: 1 };
        assert!(told(update).ends_with("this is an update, not a query; run it with `snowmelt update`"));
    }

    #[test]
    fn errors_of_loads_are_known_within_those_of_queries() {
        let stored = || GraphError::TermTooLong { bytes: 7, most: 5 };
        for told in [told(stored()), told(LoadError::from(stored())), told(QueryError::from(stored()))] {
            assert!(told.ends_with("has 5; --longest-term SIZE changes that"), "{told}");
        }
        let option = LoadError::Option { option: LoadOption::Graph, message: "a is no IRI".to_owned() };
        assert_eq!(told(QueryError::from(option)), "--graph: a is no IRI");
        assert_eq!(told(std::io::Error::other("a disk")), "a disk");
    }
}
