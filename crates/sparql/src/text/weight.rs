//! The memory that the trees of a text take, estimated before it is parsed.
//!
//! 1. A tree has each IRI in full. A prefixed name stands for its namespace, a relative IRI for
//!    the base, a comma for subject and predicate once more, a quad for its graph, all of which
//!    may be long variables or labels. So a few bytes may stand for many, each time they come.
//! 2. Data of an update becomes quads, whose size hardly depends on that of their text. So do
//!    patterns after a comma, and those that a list stands for.
//! 3. A plan has for each group the set of its variables; a tree has the columns of each `*`.
//! 4. All else takes a fixed amount for each byte of the text.
//!
//! One pass over the tokens, without a grammar, counts too much rather than too little. What looks
//! like an IRI may be two comparisons with text between them. Where that matters, a second pass
//! tells the signs apart.

use rustc_hash::{FxHashMap, FxHashSet};

use super::tokens::Tokens;
use crate::bounds::text_limits::comparisons;

/// Bytes of trees and plan for each byte of a query; measured: 46 to 76.
const EACH_BYTE: usize = 64;
/// Bytes of a quad in the parser and in the batch that is made of it, or of a pattern; measured:
/// 400 to 750.
const EACH_QUAD: usize = 768;
/// Bytes for each pair of a group and a variable: sets of bits, in all passes over the tree.
const EACH_NAME_BYTES: usize = 5;
/// Bytes of a column in the tree, beside its name.
const EACH_COLUMN: usize = 64;
/// Bytes for each byte of data: the text, and the strings of terms.
const EACH_BYTE_OF_DATA: usize = 4;
/// Copies of an IRI in the tree, among the constants, and where they are looked up.
const COPIES: usize = 6;
/// Bytes that IRIs grow by for each byte of the text, which the figures above allow for.
const USUAL_GROWTH: usize = 2;

/// The memory that a text will take.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Weight {
    /// bytes of the text
    text: usize,
    /// those of them that are data of an update
    data: usize,
    /// quads of this data, and patterns of few bytes
    quads: usize,
    /// groups, and different variables
    groups: usize,
    variables: usize,
    /// bytes of their names
    names: usize,
    /// lists of columns, each of which may be all variables
    selects: usize,
    /// bytes of IRIs and names in the tree that are not in the text
    grown: usize,
}

impl Weight {
    /// Weighs a text.
    pub fn from_text(text: &str) -> Self {
        let (weight, is_sure) = Scale::weigh(text, Tokens::new(text));
        if is_sure {
            return weight;
        }
        // The kinds of brackets say which of them compare.
        Scale::weigh(text, Tokens::comparing(text, &comparisons(text))).0
    }

    /// Bytes of the trees and the plan.
    pub fn bytes(&self) -> usize {
        let parts = [
            (self.text - self.data).saturating_mul(EACH_BYTE),
            self.data.saturating_mul(EACH_BYTE_OF_DATA),
            self.quads.saturating_mul(EACH_QUAD),
            self.groups.saturating_mul(self.variables).saturating_mul(EACH_NAME_BYTES),
            self.selects.saturating_mul(self.variables * EACH_COLUMN + self.names),
            self.unusual_growth().saturating_mul(COPIES),
        ];
        parts.into_iter().fold(0, usize::saturating_add)
    }

    /// Whether the IRIs in its tree are much longer than the text.
    pub fn grows(&self) -> bool {
        self.unusual_growth() > 0
    }

    fn unusual_growth(&self) -> usize {
        self.grown.saturating_sub(self.text * USUAL_GROWTH)
    }
}

/// The meaning of the next token, where the token before says it.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Next<'a> {
    #[default]
    Any,
    /// the prefix of PREFIX
    Prefix,
    /// its namespace
    Namespace(&'a str),
    Base,
    /// the name of the graph of the quads that follow
    Graph,
}

/// A pass over the tokens.
#[derive(Default)]
struct Scale<'a> {
    text: usize,
    namespaces: FxHashMap<&'a str, usize>,
    longest_namespace: usize,
    variables: FxHashSet<&'a str>,
    base: usize,
    next: Next<'a>,
    /// the longest term since the last triple ended: a comma may repeat it
    longest: usize,
    /// the longest name of a graph: each quad may have it
    graph: usize,
    /// brackets within the data under way; none: it is no data
    data: Option<DataBlock>,
    /// what is open in round brackets may be a list, each member of which is two quads
    lists: usize,
    /// a token that looks like an IRI may be a comparison and what follows
    is_unsure: bool,
    weight: Weight,
}

/// Data of an update.
#[derive(Clone, Copy)]
struct DataBlock {
    begin: usize,
    braces: usize,
}

impl<'a> Scale<'a> {
    /// The weight, and whether each token is what it looks like.
    fn weigh(text: &'a str, tokens: Tokens<'a>) -> (Weight, bool) {
        let mut scale = Scale { text: text.len(), ..Scale::default() };
        tokens.for_each(|(at, token)| scale.token(at, token));
        scale.end_data(text.len());
        let weight = Weight { text: text.len(), variables: scale.variables.len(), ..scale.weight };
        (weight, !scale.is_unsure)
    }

    fn token(&mut self, at: usize, token: &'a str) {
        match token.as_bytes()[0] {
            b'<' if token.len() > 1 => {
                self.is_unsure |= self.lists > 0 && self.data.is_none();
                let iri = &token[1..token.len() - 1];
                // The parser gives an absolute one as much room.
                self.iri(iri.len(), self.base);
            }
            b'"' | b'\'' => {
                let datatype = token.rfind("^^").map(|at| &token[at + 2..]);
                let grown = datatype.map_or(0, |datatype| match datatype.strip_prefix('<') {
                    Some(_) => self.base,
                    None => self.namespace(datatype),
                });
                self.weight.grown += grown;
                self.member();
            }
            b',' | b';' => {
                self.weight.grown += 2 * self.longest;
                self.short_quad();
            }
            b'.' if token == "." => {
                self.quad();
                self.longest = 0;
            }
            b'[' => self.quad(),
            b'(' | b')' | b'{' | b'}' => self.bracket(at, token),
            b'?' | b'$' => {
                if self.variables.insert(&token[1..]) {
                    self.weight.names += token.len();
                }
                self.iri(token.len(), 0);
            }
            _ if token.starts_with("_:") => self.iri(token.len(), 0),
            _ if token.contains(':') => self.prefixed(token),
            _ => self.word(token),
        }
    }

    /// A prefixed name, or a keyword and one, between which there need not be a blank.
    fn prefixed(&mut self, token: &'a str) {
        let prefix = token.split(':').next().unwrap_or_default();
        if self.next == Next::Prefix {
            self.next = Next::Namespace(prefix);
            return;
        }
        self.iri(token.len(), self.namespace(token));
        let is_behind = |keyword: &str| {
            prefix.get(..keyword.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(keyword))
        };
        if is_behind("GRAPH") || is_behind("WITH") {
            self.graph = self.graph.max(token.len() + self.longest_namespace);
        }
        if is_behind("PREFIX") && token.ends_with(':') {
            self.next = Next::Namespace(&prefix["PREFIX".len()..]);
        }
    }

    fn word(&mut self, word: &str) {
        let is = |keyword: &str| word.eq_ignore_ascii_case(keyword);
        let end = word.len().checked_sub("DATA".len()).and_then(|begin| word.get(begin..));
        self.weight.selects += usize::from(is("SELECT") || is("DESCRIBE"));
        self.next = match () {
            () if is("PREFIX") => Next::Prefix,
            () if is("BASE") => Next::Base,
            () if is("GRAPH") || is("WITH") => Next::Graph,
            // also INSERTDATA
            () if end.is_some_and(|end| end.eq_ignore_ascii_case("DATA")) && self.data.is_none() => {
                self.data = Some(DataBlock { begin: self.text, braces: 0 });
                Next::Any
            }
            () => {
                self.member();
                Next::Any
            }
        };
    }

    /// An IRI, variable or label of so many bytes in the text, and so many more in the tree.
    fn iri(&mut self, written: usize, grown: usize) {
        let whole = written + grown;
        match std::mem::take(&mut self.next) {
            Next::Namespace(name) => {
                self.namespaces.insert(name, whole);
                self.longest_namespace = self.longest_namespace.max(whole);
                self.weight.grown += grown;
            }
            Next::Base => self.base = whole,
            Next::Graph => self.graph = self.graph.max(whole),
            Next::Any | Next::Prefix => {
                self.longest = self.longest.max(whole);
                self.weight.grown += grown;
                self.member();
            }
        }
    }

    /// The bytes of the namespace of a prefixed name; where its prefix is none, some letters of
    /// that may be a word and the rest another one.
    fn namespace(&self, name: &str) -> usize {
        let prefix = name.split(':').next().unwrap_or_default();
        self.namespaces.get(prefix).copied().unwrap_or(self.longest_namespace)
    }

    /// A quad ends, or one more begins.
    fn quad(&mut self) {
        self.weight.grown += self.graph;
        self.weight.quads += usize::from(self.data.is_some());
    }

    /// A quad of few bytes of text.
    fn short_quad(&mut self) {
        self.weight.grown += self.graph;
        self.weight.quads += 1;
    }

    /// A term, which may be the member of a list.
    fn member(&mut self) {
        if self.lists > 0 {
            self.short_quad();
            self.short_quad();
        }
    }

    fn bracket(&mut self, at: usize, bracket: &str) {
        match bracket {
            "(" => {
                self.lists += 1;
                return self.member();
            }
            ")" => {
                self.lists = self.lists.saturating_sub(1);
                return;
            }
            _ => {}
        }
        self.quad();
        self.longest = 0;
        self.weight.groups += usize::from(bracket == "{");
        let Some(data) = &mut self.data else { return };
        match bracket {
            "{" => {
                data.braces += 1;
                data.begin = data.begin.min(at);
            }
            _ => data.braces = data.braces.saturating_sub(1),
        }
        if data.braces == 0 {
            self.end_data(at);
        }
    }

    fn end_data(&mut self, end: usize) {
        if let Some(data) = self.data.take() {
            self.weight.data += end.saturating_sub(data.begin);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grown(text: &str) -> usize {
        Weight::from_text(text).grown
    }

    #[test]
    fn what_stands_for_more_is_counted_in_full() {
        assert_eq!(grown("SELECT * { <urn:s> <urn:p> 'o' }"), 0);
        // each name by the namespace, and the datatype of a literal
        assert_eq!(grown("PREFIX a: <urn:long:> ASK { a:s a:p 'o'^^a:t }"), 3 * "urn:long:".len());
        assert_eq!(grown("PREFIX : <urn:long:> ASK { : : : }"), 3 * "urn:long:".len());
        assert_eq!(grown("BASE <http://long/> ASK { <s> ?p 'o'^^<t> }"), 2 * "http://long/".len());
        let namespace = "BASE <http://long/> PREFIX a: <deep/> ASK { ?s ?p a:o }";
        assert_eq!(grown(namespace), "http://long/".len() + "http://long/deep/".len());
        // a comma repeats what is before it, up to the end of the triple
        let long = "urn:long:long";
        assert_eq!(
            grown(&format!("ASK {{ <{long}> <urn:p> 1, 2 ; <urn:q> 3 . ?s ?p 4, 5 }}")),
            4 * long.len() + 2 * "?s".len()
        );
        // a quad has its graph, as do those that the block ends
        let graph = format!("INSERT DATA {{ GRAPH <{long}> {{ ?s ?p 1 . ?s ?p 2 }} }}");
        assert_eq!(grown(&graph), 4 * long.len());
    }

    /// A name for the parser is counted as one, however it is written.
    #[test]
    fn no_spelling_hides_a_name() {
        let long = "urn:long:long:long:long";
        let hidden = [
            "ASK { FILTER(1 IN (1<x:,x:,x:,2>1)) }",
            "ASK { FILTER(1<'>'&&COALESCE(x:,x:,x:)='1') }",
            "ASK { VALUES ?v { '''a' x: x: x: } }",
            "ASK { VALUES ?v { 1x: 1x: 1x: } }",
            "ASK { VALUES ?v { truex: truex: falsex: } }",
            "ASK { VALUES ?v { 'a'@b1x: ''@b-1 x: ''@b x: } }",
            "CONSTRUCT { ?s ax:,x:;ax: } WHERE {}",
        ];
        for text in hidden {
            for prefix in ["PREFIX x:", "PREFIXx:"] {
                let text = format!("{prefix} <{long}> {text}");
                assert!(grown(&text) >= 3 * long.len(), "{} of {text}", grown(&text));
            }
        }
        let graph = "INSERT DATA { GRAPHx:{ <a:> <b:> 1 . <a:> <b:> 2 } }";
        assert!(grown(&format!("PREFIX x: <{long}> {graph}")) >= 2 * long.len());
        assert!(grown(&format!("PREFIX GRAPHx: <y:> PREFIX x: <{long}> {graph}")) >= 2 * long.len());
        for name in [format!("?{long}"), format!("_:{long}")] {
            let name = name.replace("g:", "g");
            assert!(grown(&format!("ASK {{ {name} <urn:p> 1, 2, 3 }}")) >= 2 * name.len(), "{name}");
        }
        let in_graph = "INSERT { GRAPH ?long_long_long { ?s ?p 1 . ?s ?p 2 } } WHERE {}";
        assert!(grown(in_graph) >= 2 * "?long_long_long".len());
        // An IRI in brackets is one.
        assert_eq!(grown(&format!("PREFIX x: <{long}> ASK {{ FILTER(<x:,x:> = 1) }}")), 0);
    }

    #[test]
    fn quads_are_counted_in_data_and_where_they_are_short() {
        let data = "INSERT DATA { <s> <p> 1, 2 ; <q> 3 . <t> <p> (1 'a' <b> _:c true) }";
        let weight = Weight::from_text(data);
        assert!((12..=20).contains(&weight.quads), "{weight:?}");
        assert!(weight.data > 40 && weight.data < data.len(), "{weight:?}");
        let template = "INSERT { <s> <p> 1, 2, 3 } WHERE { <t> <p> (1 2 3) }";
        let weight = Weight::from_text(template);
        assert_eq!((weight.quads, weight.data), (2 + 2 + 6, 0));
        let both = format!("{data} ; {template}");
        assert_eq!(Weight::from_text(&both).data, Weight::from_text(data).data, "what follows is no data");
    }
}
