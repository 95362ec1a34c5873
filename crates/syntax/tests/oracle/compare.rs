//! One text read by both parsers.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

use regex::Regex;
use snowmelt_syntax::tree::{Operation, Update};
use snowmelt_syntax::{ParseOptions, SyntaxError, parse_query, parse_update};
use spargebra::{GraphUpdateOperation, SparqlParser};

use super::sse;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Language {
    Query,
    Update,
}

/// How the two readings differ.
#[derive(Debug)]
pub enum Difference {
    /// Only spargebra takes the text.
    Refused(Box<SyntaxError>),
    /// Only this crate takes it; what the other says.
    #[expect(dead_code, reason = "Debug shows it")]
    Taken(String),
    /// Both take it, as different trees: ours, theirs.
    Tree(String, String),
}

/// Tools of comparing, made once.
pub struct Oracle {
    base: String,
    fresh: Regex,
    blank: Regex,
    signed: Regex,
}

impl Oracle {
    pub fn new(base: &str) -> Self {
        let number = r#""([0-9.][^"]*)"\^\^<http://www.w3.org/2001/XMLSchema#(integer|decimal|double)>\)"#;
        Self {
            base: base.to_owned(),
            fresh: Regex::new(r"\?[0-9a-f]{25,32}\b|_:[0-9a-f]{25,32}\b").unwrap(),
            blank: Regex::new(r"_:[0-9a-f]{25,32}\b").unwrap(),
            signed: Regex::new(&format!(r"\(([+-]) {number}")).unwrap(),
        }
    }

    pub fn difference(&self, language: Language, text: &str) -> Option<Difference> {
        let parser = SparqlParser::new().with_base_iri(&self.base).unwrap();
        let options = ParseOptions { base: Some(&self.base), ..ParseOptions::default() };
        match language {
            Language::Query => {
                let ours = parse_query(text, &options).map(|query| sse::query(&query));
                let theirs = parser.parse_query(text).map(|query| query.to_sse()).map_err(|e| e.to_string());
                self.compared(ours, theirs)
            }
            Language::Update => {
                let ours = parse_update(text, &options).map(|update| self.ours(&update));
                let theirs = parser.parse_update(text).map(|update| self.theirs(update));
                self.compared(ours, theirs.map_err(|error| error.to_string()))
            }
        }
    }

    fn compared(
        &self,
        ours: Result<String, Box<SyntaxError>>,
        theirs: Result<String, String>,
    ) -> Option<Difference> {
        match (ours, theirs) {
            (Ok(ours), Ok(theirs)) => {
                let (ours, theirs) = (self.plain(&ours), self.plain(&theirs));
                (ours != theirs).then_some(Difference::Tree(ours, theirs))
            }
            (Ok(_), Err(error)) => Some(Difference::Taken(error)),
            (Err(error), Ok(_)) => Some(Difference::Refused(error)),
            (Err(_), Err(_)) => None,
        }
    }

    /// The tree with fresh names in the order of their appearance, and signs as parts of numbers.
    fn plain(&self, tree: &str) -> String {
        let mut seen: HashMap<String, usize> = HashMap::new();
        let named = self.fresh.replace_all(tree, |found: &regex::Captures<'_>| {
            let next = seen.len();
            let number = *seen.entry(found[0].to_owned()).or_insert(next);
            format!("{}fresh{number}", &found[0][..1])
        });
        let to = "\"$1$2\"^^<http://www.w3.org/2001/XMLSchema#$3>";
        self.signed.replace_all(&named, to).into_owned()
    }

    fn ours(&self, update: &Update) -> String {
        let one = |operation: &snowmelt_syntax::tree::UpdateOperation| match &operation.operation {
            Operation::InsertData(quads) => self.data("insert", sse::lines(quads)),
            Operation::DeleteData(quads) => self.data("delete", sse::lines(quads)),
            _ => sse::operation(operation),
        };
        let all: Vec<String> = update.operations.iter().map(one).collect();
        all.join("\n")
    }

    fn theirs(&self, update: spargebra::Update) -> String {
        let named = |graph: &spargebra::term::GraphName| match graph {
            spargebra::term::GraphName::NamedNode(graph) => format!(" {graph}"),
            spargebra::term::GraphName::DefaultGraph => String::new(),
        };
        let one = |operation: GraphUpdateOperation| match operation {
            GraphUpdateOperation::InsertData { data } => {
                let line = |quad: &spargebra::term::Quad| {
                    format!("{} {} {}{}", quad.subject, quad.predicate, quad.object, named(&quad.graph_name))
                };
                self.data("insert", data.iter().map(line).collect())
            }
            GraphUpdateOperation::DeleteData { data } => {
                let line = |quad: &spargebra::term::GroundQuad| {
                    format!("{} {} {}{}", quad.subject, quad.predicate, quad.object, named(&quad.graph_name))
                };
                self.data("delete", data.iter().map(line).collect())
            }
            operation => {
                let whole = spargebra::Update { base_iri: None, operations: vec![operation] }.to_sse();
                whole["(update ".len()..whole.len() - 1].to_owned()
            }
        };
        let all: Vec<String> = update.operations.into_iter().map(one).collect();
        all.join("\n")
    }

    /// Data as a set: each blank node without a label is called by the lines that it is in.
    fn data(&self, name: &str, lines: Vec<String>) -> String {
        let mut colours: BTreeMap<String, u64> = BTreeMap::new();
        for line in &lines {
            colours.extend(self.blank.find_iter(line).map(|found| (found.as_str().to_owned(), 0)));
        }
        let coloured = |line: &str, of: &str, colours: &BTreeMap<String, u64>| {
            let name = |found: &regex::Captures<'_>| {
                if &found[0] == of { "_:self".to_owned() } else { format!("_:c{:x}", colours[&found[0]]) }
            };
            self.blank.replace_all(line, name).into_owned()
        };
        for _ in 0..if colours.len() > 500 { 1 } else { 6 } {
            let mut of: BTreeMap<&str, Vec<String>> = BTreeMap::new();
            for line in &lines {
                for found in self.blank.find_iter(line) {
                    of.entry(found.as_str()).or_default().push(coloured(line, found.as_str(), &colours));
                }
            }
            let colour = |mut lines: Vec<String>| {
                lines.sort();
                let mut hasher = DefaultHasher::new();
                lines.hash(&mut hasher);
                hasher.finish()
            };
            colours = of.into_iter().map(|(name, lines)| (name.to_owned(), colour(lines))).collect();
        }
        let mut lines: Vec<String> = lines.iter().map(|line| coloured(line, "", &colours)).collect();
        lines.sort();
        format!("({name} {})", lines.join(" . "))
    }
}
