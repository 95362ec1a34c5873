//! The text of a question: the pattern, and the values that are sent along.

use std::fmt::Write;
use std::sync::Arc;

use oxrdf::Triple;
use rustc_hash::FxHashMap;
use snowmelt_base::iri::{is_turtle_iri, is_turtle_tag};
use snowmelt_graph::{BaseDirection, TermId, TermRef};

use super::seeds::{SeedRows, ServiceSpec, Waiting};
use crate::algebra::{Service, TextPiece};
use crate::exec::{Result, Run};
use crate::plan::SentValue;
use crate::remote::RemoteQuestion;
use crate::value::iri::STRING;

/// Bytes of values of a question.
const MOST_BYTES: usize = 512 << 10;

/// Makes the questions of a SERVICE.
pub(super) struct Questions {
    service: Arc<Service>,
    /// the pattern without its braces, with the constants of this query
    body: String,
    sent: Vec<SentValue>,
    /// places of the names whose values are put out
    new: Vec<u16>,
    is_distinct: bool,
    /// rows are told apart by numbers
    has_numbers: bool,
}

/// A question for an endpoint.
pub(super) struct Question {
    pub endpoint: String,
    pub seeds: Arc<SeedRows>,
    /// the seeds that were sent: the n-th has the number n
    pub numbers: Vec<u32>,
    /// seeds that match nothing there
    pub unsent: Vec<u32>,
    /// the first column of the answer has numbers
    pub has_numbers: bool,
    /// columns of the answer that must be unbound, by number of a seed
    pub blank: FxHashMap<u32, Vec<u16>>,
    text: String,
    variables: Vec<String>,
}

impl Question {
    /// As it is sent.
    pub fn remote(&self) -> RemoteQuestion {
        let (text, variables) = (self.text.clone(), self.variables.clone());
        RemoteQuestion { endpoint: self.endpoint.clone(), text, variables }
    }
}

impl Questions {
    pub fn new(spec: &ServiceSpec, has_input: bool, run: &Run) -> Self {
        let mut body = String::new();
        for piece in &spec.service.body {
            match piece {
                TextPiece::Text(text) => body.push_str(text),
                TextPiece::Const(c) => {
                    let term = run.query.constant_term(*c);
                    // one that cannot be written is none that an endpoint has
                    if !push_term(&mut body, crate::exec::source::term_ref(&term)) {
                        body.push_str("<urn:x-unwritable>");
                    }
                }
            }
        }
        Self {
            service: Arc::clone(&spec.service),
            body,
            sent: spec.sent.clone(),
            new: spec.new.iter().map(|(name, _)| *name).collect(),
            is_distinct: spec.is_distinct,
            has_numbers: has_input && !spec.sent.is_empty(),
        }
    }

    fn name(&self, place: u16) -> &str {
        &self.service.names[usize::from(place)].0
    }

    /// The next question for an endpoint; `None` where no seed is to be sent.
    pub fn next(&self, waiting: &mut Waiting, values: usize, run: &mut Run) -> Result<Option<Question>> {
        if !self.has_numbers {
            let numbers: Vec<u32> = waiting.numbers.drain(..).collect();
            return Ok(Some(self.question(waiting, SentRows { numbers, ..SentRows::default() })));
        }
        let taken = values.min(waiting.numbers.len());
        let ids = waiting.numbers.iter().take(taken).flat_map(|seed| self.values(&waiting.seeds, *seed));
        let ids: Vec<TermId> = ids.collect();
        run.terms.begin_batch();
        run.terms.prefetch_whole(&mut run.source.session, ids)?;
        let mut rows = SentRows::default();
        for _ in 0..taken {
            if rows.text.len() > MOST_BYTES {
                break;
            }
            let Some(seed) = waiting.numbers.pop_front() else { break };
            self.push_row(&mut rows, &waiting.seeds, seed, run);
        }
        let is_any = !rows.numbers.is_empty();
        Ok(is_any.then(|| self.question(waiting, rows)))
    }

    /// The values of a seed.
    fn values<'s>(&'s self, seeds: &'s SeedRows, seed: u32) -> impl Iterator<Item = TermId> + 's {
        let row = seeds.firsts[seed as usize] as usize;
        self.sent.iter().map(move |value| seeds.batch.cols[usize::from(value.col)][row])
    }

    /// Adds a seed as a row of VALUES, or to those that are not sent.
    fn push_row(&self, rows: &mut SentRows, seeds: &SeedRows, seed: u32, run: &Run) {
        let (begin, number) = (rows.text.len(), rows.numbers.len());
        let mut blank = Vec::new();
        write!(rows.text, "( {number} ").expect("a text takes all that is written");
        for (value, id) in self.sent.iter().zip(self.values(seeds, seed)) {
            let before = rows.text.len();
            let is_sent = run.terms.with_term(id, |term| push_term(&mut rows.text, term));
            if is_sent == Some(true) {
                rows.text.push(' ');
                continue;
            }
            if is_sent == Some(false) && value.is_certain {
                rows.text.truncate(begin);
                rows.unsent.push(seed);
                return;
            }
            if is_sent == Some(false) {
                blank.push(value.name);
            }
            rows.text.truncate(before);
            rows.text.push_str("UNDEF ");
        }
        rows.text.push_str(") ");
        rows.numbers.push(seed);
        if !blank.is_empty() {
            rows.blank.insert(number as u32, blank);
        }
    }

    fn question(&self, waiting: &Waiting, rows: SentRows) -> Question {
        let mut variables: Vec<String> = Vec::with_capacity(self.new.len() + 1);
        let mut columns = self.new.clone();
        columns.extend(rows.blank.values().flatten());
        let mut seen = Vec::with_capacity(columns.len());
        columns.retain(|name| {
            let is_first = !seen.contains(name);
            seen.push(*name);
            is_first
        });
        if self.has_numbers {
            variables.push(self.service.free_name.clone());
        }
        variables.extend(columns.iter().map(|place| self.name(*place).to_owned()));
        let mut text = String::from(if self.is_distinct { "SELECT DISTINCT" } else { "SELECT" });
        for name in &variables {
            text.push_str(" ?");
            text.push_str(name);
        }
        if variables.is_empty() {
            text.push_str(" (1 AS ?");
            text.push_str(&self.service.free_name);
            text.push(')');
            variables.push(self.service.free_name.clone());
        }
        text.push_str(" WHERE { ");
        if self.has_numbers {
            text.push_str("VALUES ( ?");
            text.push_str(&self.service.free_name);
            for value in &self.sent {
                text.push_str(" ?");
                text.push_str(self.name(value.name));
            }
            text.push_str(" ) { ");
            text.push_str(&rows.text);
            text.push_str("} ");
        }
        let is_apart = self.has_numbers && !self.service.is_flat;
        text.push_str(if is_apart { "{ " } else { "" });
        text.push_str(&self.body);
        text.push_str(if is_apart { "} }" } else { "}" });
        // the places of the columns that are to be unbound, in the answer
        let place = |name: &u16| columns.iter().position(|column| column == name).map(|at| at as u16);
        let blank = rows.blank.iter().map(|(n, names)| (*n, names.iter().filter_map(place).collect()));
        Question {
            endpoint: waiting.endpoint.clone(),
            seeds: Arc::clone(&waiting.seeds),
            numbers: rows.numbers,
            unsent: rows.unsent,
            has_numbers: self.has_numbers,
            blank: blank.collect(),
            text,
            variables,
        }
    }
}

/// Rows of VALUES.
#[derive(Default)]
struct SentRows {
    text: String,
    numbers: Vec<u32>,
    unsent: Vec<u32>,
    blank: FxHashMap<u32, Vec<u16>>,
}

/// Writes a term as SPARQL does; false, and nothing, where it has no notation, or none that means
/// the same elsewhere.
fn push_term(out: &mut String, term: TermRef<'_>) -> bool {
    let begin = out.len();
    let is_written = match term {
        TermRef::Blank(_) => false,
        TermRef::Iri(iri) => push_iri(out, iri),
        TermRef::Literal { lexical, lang, direction, datatype } => {
            push_quoted(out, lexical);
            match lang {
                Some(tag) => push_tag(out, tag, direction),
                None if datatype == STRING => true,
                None => {
                    out.push_str("^^");
                    push_iri(out, datatype)
                }
            }
        }
        TermRef::Triple(triple) => push_triple(out, triple),
    };
    if !is_written {
        out.truncate(begin);
    }
    is_written
}

/// Writes a triple term; one of its objects may be another.
fn push_triple(out: &mut String, triple: &Triple) -> bool {
    let (mut levels, mut at) = (1, triple);
    loop {
        out.push_str("<<( ");
        for term in [TermRef::from(at.subject.as_ref()), at.predicate.as_ref().into()] {
            if !push_term(out, term) {
                return false;
            }
            out.push(' ');
        }
        let oxrdf::Term::Triple(inner) = &at.object else { break };
        (levels, at) = (levels + 1, inner);
    }
    let is_written = push_term(out, at.object.as_ref().into());
    (0..levels).for_each(|_| out.push_str(" )>>"));
    is_written
}

fn push_tag(out: &mut String, tag: &str, direction: Option<BaseDirection>) -> bool {
    out.push('@');
    out.push_str(tag);
    if let Some(direction) = direction {
        out.push_str("--");
        out.push_str(&direction.to_string());
    }
    is_turtle_tag(tag)
}

fn push_iri(out: &mut String, iri: &str) -> bool {
    let is_iri = is_turtle_iri(iri);
    if is_iri {
        out.push('<');
        out.push_str(iri);
        out.push('>');
    }
    is_iri
}

fn push_quoted(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(term: TermRef<'_>) -> Option<String> {
        let mut out = String::new();
        push_term(&mut out, term).then_some(out)
    }

    #[test]
    fn terms_are_written_so_that_they_are_read_alike() {
        let text = "a\"b\\c\nd\re\tf – \u{1}";
        let told_text = told(TermRef::string(text)).unwrap();
        let query = format!("SELECT * {{ VALUES ?x {{ {told_text} }} }}");
        let parsed = spargebra::SparqlParser::new().parse_query(&query).unwrap().to_string();
        assert!(parsed.contains("a\\\"b\\\\c\\nd\\re\\tf –"), "{parsed}");
        assert_eq!(told(TermRef::tagged("x", "en-GB")).unwrap(), "\"x\"@en-GB");
        assert_eq!(told(TermRef::typed("x", "e:t")).unwrap(), "\"x\"^^<e:t>");
        assert_eq!(told(TermRef::Iri("e:a")).unwrap(), "<e:a>");
        for term in
            [TermRef::Blank("b"), TermRef::Iri("e:a b"), TermRef::Iri("e:>"), TermRef::tagged("x", "1")]
        {
            assert_eq!(told(term), None, "{term:?}");
        }
    }

    /// One that has a blank node somewhere has no notation, and leaves nothing behind.
    #[test]
    fn triple_terms_are_written_with_all_in_them() {
        let node = |iri: &str| oxrdf::NamedNode::new_unchecked(iri);
        let literal = oxrdf::Literal::new_directional_language_tagged_literal_unchecked(
            "x\"",
            "en",
            BaseDirection::Rtl,
        );
        let inner = Triple::new(node("e:a"), node("e:p"), literal);
        let outer = Triple::new(node("e:b"), node("e:q"), inner);
        let text = r#"<<( <e:b> <e:q> <<( <e:a> <e:p> "x\""@en--rtl )>> )>>"#;
        assert_eq!(told(TermRef::Triple(&outer)).unwrap(), text);
        let query = format!("SELECT * {{ VALUES ?x {{ {text} }} }}");
        let parsed = spargebra::SparqlParser::new().parse_query(&query).unwrap().to_string();
        assert!(parsed.contains("<e:p> \"x\\\"\"@en--rtl"), "{parsed}");
        let blank = oxrdf::BlankNode::new_unchecked("b");
        for of_blank in [
            Triple::new(blank.clone(), node("e:p"), node("e:a")),
            Triple::new(node("e:b"), node("e:q"), Triple::new(node("e:a"), node("e:p"), blank)),
        ] {
            let mut out = "before ".to_owned();
            assert!(!push_term(&mut out, TermRef::Triple(&of_blank)), "{out}");
            assert_eq!(out, "before ");
        }
    }
}
