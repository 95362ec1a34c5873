//! A digest of an answer that does not depend on the order of its solutions or triples.
//!
//! A digest is the sum of the digests of the parts: each solution of a SPARQL XML result, and
//! each property of an RDF/XML graph together with the element that names its subject. Whatever
//! stands before the first part (head, name spaces) counts as a part.

use anyhow::Result;
use memchr::memmem::{self, find};
use snowmelt_bsbm::QueryKind;
use twox_hash::XxHash3_64;

/// The digest of a serialised answer.
pub fn digest(answer: &[u8]) -> u64 {
    let (before, solutions) = parts(answer, b"<result>");
    if solutions.is_empty() && find(answer, b"<rdf:Description").is_some() {
        return graph(answer);
    }
    solutions.iter().map(|part| hash(trim_tail(part))).fold(hash(before), u64::wrapping_add)
}

fn graph(answer: &[u8]) -> u64 {
    let (_, subjects) = parts(answer, b"<rdf:Description");
    subjects.iter().map(|part| subject(part)).fold(0, u64::wrapping_add)
}

/// The sum over the properties of one `rdf:Description` element.
fn subject(element: &[u8]) -> u64 {
    let end = find(element, b"</rdf:Description>").unwrap_or(element.len());
    let head = element.iter().position(|b| *b == b'>').map_or(end, |i| i + 1).min(end);
    let seed = hash(&element[..head]);
    let mut sum = 0u64;
    let mut rest = &element[head..end];
    while let Some(length) = property_bytes(rest) {
        sum = sum.wrapping_add(XxHash3_64::oneshot_with_seed(seed, rest[..length].trim_ascii()));
        rest = &rest[length..];
    }
    sum
}

/// Length of the first property element: `<p …/>` or `<p …>text</p>`. Text cannot contain a raw
/// `<`.
fn property_bytes(text: &[u8]) -> Option<usize> {
    let open = text.iter().position(|b| *b == b'<')?;
    let close = open + text[open..].iter().position(|b| *b == b'>')?;
    if text[close - 1] == b'/' {
        return Some(close + 1);
    }
    let tail = find(&text[close..], b"</")? + close;
    Some(tail + text[tail..].iter().position(|b| *b == b'>')? + 1)
}

/// The text before the first `mark`, and the pieces that begin with one.
fn parts<'a>(text: &'a [u8], mark: &[u8]) -> (&'a [u8], Vec<&'a [u8]>) {
    let starts: Vec<usize> = memmem::find_iter(text, mark).collect();
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    let pieces = starts.iter().zip(ends).map(|(start, end)| &text[*start..end]).collect();
    (&text[..starts.first().copied().unwrap_or(text.len())], pieces)
}

/// A solution without what follows its end, so that the last one is like the others.
fn trim_tail(solution: &[u8]) -> &[u8] {
    const END: &[u8] = b"</result>";
    let trimmed = solution.trim_ascii_end();
    if trimmed.ends_with(END) {
        return trimmed;
    }
    find(solution, END).map_or(solution, |at| &solution[..at + END.len()])
}

fn hash(bytes: &[u8]) -> u64 {
    XxHash3_64::oneshot(bytes)
}

/// Facts about a whole answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Content {
    /// Solutions, or distinct triples.
    pub rows: u64,
    /// Equal for equal answers.
    pub digest: u64,
}

/// How an answer is read, from its kind, its bytes, and the number of rows that the target counted.
pub type Reading = fn(QueryKind, &[u8], u64) -> Result<Content>;

/// Its bytes, whatever their order: cheap, and compares runs of one engine.
///
/// # Errors
/// None.
pub fn as_written(_: QueryKind, answer: &[u8], rows: u64) -> Result<Content> {
    Ok(Content { rows, digest: digest(answer) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn solutions(rows: &[&str]) -> u64 {
        let rows: String = rows.iter().map(|row| format!("<result>{row}</result>")).collect();
        digest(format!("<sparql><head/><results>{rows}</results></sparql>").as_bytes())
    }

    #[test]
    fn order_of_solutions_does_not_matter_but_everything_else_does() {
        assert_eq!(solutions(&["a", "b", "b"]), solutions(&["b", "a", "b"]));
        assert_ne!(solutions(&["a", "b", "b"]), solutions(&["a", "b"]));
        assert_ne!(solutions(&["a", "b"]), solutions(&["ab"]));
        assert_ne!(solutions(&[]), solutions(&["a"]));
    }

    #[test]
    fn grouping_of_triples_does_not_matter() {
        let one =
            "<r><rdf:Description rdf:about=\"s\"><p>1</p>\n<q rdf:resource=\"o\"/></rdf:Description></r>";
        let two = "<r><rdf:Description rdf:about=\"s\">\n<q rdf:resource=\"o\"/></rdf:Description>\
                   <rdf:Description rdf:about=\"s\"><p>1</p></rdf:Description></r>";
        let other =
            "<r><rdf:Description rdf:about=\"t\"><p>1</p><q rdf:resource=\"o\"/></rdf:Description></r>";
        assert_eq!(digest(one.as_bytes()), digest(two.as_bytes()));
        assert_ne!(digest(one.as_bytes()), digest(other.as_bytes()));
        assert_ne!(digest(one.as_bytes()), digest(one.replace("1", "2").as_bytes()));
    }

    #[test]
    fn odd_texts_do_not_panic() {
        for text in ["", "<", "<result>", "<rdf:Description", "<rdf:Description><p", "<rdf:Description><p>x"]
        {
            digest(text.as_bytes());
        }
    }
}
