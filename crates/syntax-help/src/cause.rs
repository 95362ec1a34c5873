//! Likely causes of errors, guessed from the token that stands there and those expected.

use snowmelt_base::prefixes::known_namespace;
use snowmelt_syntax::tree::{AggregateFunction, Function};
use snowmelt_syntax::{ErrorCode, SyntaxError};

use crate::near::nearest;

/// The likely cause of one error, without those after it. `prefixes`: prefixes that the data have,
/// with their namespaces.
#[must_use]
pub fn likely_cause(error: &SyntaxError, prefixes: &[(String, String)]) -> Option<String> {
    match error.code {
        ErrorCode::Prefix => of_prefix(error, prefixes),
        ErrorCode::Token if error.found == "&" => Some("the sign of \"and\" is &&".to_owned()),
        ErrorCode::Unexpected => of_token(error),
        _ => None,
    }
}

/// A declaration that is missing, or a declared prefix that is near.
fn of_prefix(error: &SyntaxError, prefixes: &[(String, String)]) -> Option<String> {
    let prefix = error.found.strip_suffix(':')?;
    let of_data = prefixes.iter().find(|(known, _)| known == prefix);
    let namespace = of_data.map(|(_, namespace)| namespace.as_str()).or_else(|| known_namespace(prefix));
    if let Some(namespace) = namespace {
        return Some(format!("begin with PREFIX {prefix}: <{namespace}>"));
    }
    let declared = error.expected.iter().filter_map(|known| known.strip_suffix(':'));
    nearest(prefix, declared).map(|near| format!("is {near}: meant?"))
}

fn of_token(error: &SyntaxError) -> Option<String> {
    let expects = |what: &str| error.expected.iter().any(|expected| expected == what);
    let found = error.found.as_str();
    let cause = match found {
        "" => {
            let open = error.open?;
            return Some(format!(
                "the {} at line {}, column {} is not closed",
                open.bracket, open.line, open.column
            ));
        }
        _ if is_word(found) => return of_word(error),
        _ if is_iri(found) && expects("<") => {
            "without blanks it reads as an IRI; a blank after < makes it a comparison"
        }
        _ if begins_term(found) && expects(".") => "is a . missing before it?",
        "=" if expects("an expression") => "the sign of equality is =",
        "}" if expects("the end") => "there is one } too many",
        "}" | "." if expects("an object") => "a triple is a subject, a predicate and an object",
        _ => return None,
    };
    Some(cause.to_owned())
}

fn of_word(error: &SyntaxError) -> Option<String> {
    let expects = |what: &str| error.expected.iter().any(|expected| expected == what);
    let functions = Function::ALL.iter().map(|function| function.text());
    let functions = functions.chain(AggregateFunction::ALL.iter().map(|function| function.text()));
    let calls = functions.chain(["EXISTS"]).filter(|_| expects("an expression"));
    let expected = error.expected.iter().map(|expected| &**expected);
    if let Some(known) = nearest(&error.found, expected.chain(calls)) {
        return Some(format!("is {known} meant?"));
    }
    match error.found.to_ascii_uppercase().as_str() {
        "AND" if expects("&&") => Some("the sign of \"and\" is &&".to_owned()),
        "OR" if expects("||") => Some("the sign of \"or\" is ||".to_owned()),
        _ => None,
    }
}

fn is_word(found: &str) -> bool {
    found.starts_with(|c: char| c.is_ascii_alphabetic()) && !found.contains(':')
}

/// Whether a token is an IRI in angle brackets, of which long ones are cut; `<<(` is none.
fn is_iri(found: &str) -> bool {
    found.starts_with('<') && found.len() > 2 && !found.starts_with("<<")
}

fn begins_term(found: &str) -> bool {
    let mut chars = found.chars();
    let (first, second) = (chars.next(), chars.next());
    match first {
        Some('?' | '$') => second.is_some(),
        Some('+' | '-' | '.') => second.is_some_and(|c| c.is_ascii_digit() || c == '.'),
        Some('"' | '\'' | '(' | '[') => true,
        Some('<') => is_iri(found) || found == "<<",
        Some(first) => first.is_ascii_digit() || found.contains(':'),
        None => false,
    }
}
