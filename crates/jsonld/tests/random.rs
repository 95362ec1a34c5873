//! Random documents and the quads that they were written for.
//!
//! A document has a context of terms of each kind, and nodes within nodes that use them: coerced
//! values, containers of each kind, reverse and nested properties, aliases of keywords, compact
//! and relative IRIs, graphs, contexts scoped to properties and types, contexts in nodes. The
//! writer knows nothing of the algorithms: it writes a quad down when it writes its text.
//!
//! `SNOWMELT_SEED=n` (or `new`) makes others, `SNOWMELT_ROUNDS=n` more of them.

use std::convert::Infallible;

use oxrdf::dataset::CanonicalizationAlgorithm;
use oxrdf::vocab::{rdf, xsd};
use oxrdf::{BlankNode, Dataset, GraphName, Literal, NamedNode, NamedOrBlankNode, Quad, Term};
use snowmelt_base::random::Random;
use snowmelt_jsonld::{Options, Told, read};

/// The kinds of terms, each defined as `kN` of `http://e/kN`, with their definitions.
const KINDS: [&str; 18] = [
    r#""http://e/k0""#,
    r#"{"@id": "e:k1", "@type": "@id"}"#,
    r#"{"@id": "http://e/k2", "@type": "@vocab"}"#,
    r#"{"@id": "e:k3", "@type": "http://www.w3.org/2001/XMLSchema#integer"}"#,
    r#"{"@id": "e:k4", "@language": "DE"}"#,
    r#"{"@id": "e:k5", "@language": null}"#,
    r#"{"@id": "e:k6", "@container": "@list"}"#,
    r#"{"@id": "e:k7", "@container": ["@language", "@set"]}"#,
    r#"{"@id": "e:k8", "@container": "@index"}"#,
    r#"{"@id": "e:k9", "@container": ["@set", "@id"]}"#,
    r#"{"@id": "e:k10", "@container": "@type"}"#,
    r#"{"@reverse": "e:k11"}"#,
    r#"{"@id": "e:k12", "@type": "@json"}"#,
    r#"{"@id": "e:k13", "@container": "@graph"}"#,
    r#"{"@id": "e:k14", "@container": ["@graph", "@id"]}"#,
    r#"{"@id": "e:k15", "@nest": "nest"}"#,
    r#"{"@id": "e:k16", "@context": {"k0": "e:scoped", "@language": "it"}}"#,
    r#"{"@id": "e:k17", "@container": "@index", "@index": "e:index"}"#,
];

/// Keywords and other names of them.
const ALIASES: [(&str, &str); 6] = [
    ("@id", "id"),
    ("@type", "type"),
    ("@value", "val"),
    ("@set", "set"),
    ("@list", "list"),
    ("@graph", "graph"),
];

/// The context at one place, as far as it varies.
#[derive(Clone)]
struct Scope {
    /// the language of plain strings
    language: Option<&'static str>,
    /// the IRI of `k0`
    plain: &'static str,
    /// the scope of nodes within, where the one here ends with its node
    within: Option<Box<Scope>>,
}

impl Scope {
    fn inner(&self) -> Scope {
        self.within.as_deref().unwrap_or(self).clone()
    }
}

struct Writer {
    random: Random,
    quads: Vec<Quad>,
    blanks: u32,
    graph: GraphName,
}

fn iri(local: &str) -> NamedNode {
    NamedNode::new_unchecked(format!("http://e/{local}"))
}

impl Writer {
    fn below(&mut self, n: u64) -> u64 {
        self.random.below(n)
    }

    fn any<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }

    fn keyword(&mut self, keyword: &'static str) -> &'static str {
        let alias = ALIASES.iter().find(|(known, _)| *known == keyword).map_or(keyword, |(_, alias)| alias);
        self.any(&[keyword, alias])
    }

    fn blank(&mut self) -> BlankNode {
        self.blanks += 1;
        BlankNode::new_unchecked(format!("m{}", self.blanks))
    }

    fn tell(&mut self, s: &NamedOrBlankNode, p: NamedNode, o: impl Into<Term>) {
        self.quads.push(Quad::new(s.clone(), p, o, self.graph.clone()));
    }

    /// A resource, absolute, relative, compact or blank.
    fn resource(&mut self) -> (String, NamedOrBlankNode) {
        let n = self.below(4);
        match self.below(5) {
            0 => (format!("http://e/r{n}"), iri(&format!("r{n}")).into()),
            1 => (format!("e:r{n}"), iri(&format!("r{n}")).into()),
            2 => (format!("../r{n}"), NamedNode::new_unchecked(format!("http://b/r{n}")).into()),
            3 => (format!("#r{n}"), NamedNode::new_unchecked(format!("http://b/d/doc#r{n}")).into()),
            _ => (format!("_:r{n}"), BlankNode::new_unchecked(format!("r{n}")).into()),
        }
    }

    /// A scalar as it stands, with its term where nothing coerces it.
    fn scalar(&mut self, scope: &Scope) -> (String, Term) {
        let typed = |value: &str, datatype: oxrdf::NamedNodeRef<'_>| {
            Term::from(Literal::new_typed_literal(value, datatype))
        };
        match self.below(8) {
            0 => ("5".to_owned(), typed("5", xsd::INTEGER)),
            1 => ("-2.50e1".to_owned(), typed("-25", xsd::INTEGER)),
            2 => ("0.125".to_owned(), typed("1.25E-1", xsd::DOUBLE)),
            3 => ("true".to_owned(), typed("true", xsd::BOOLEAN)),
            n => {
                let text = format!("text {n}");
                let literal = match scope.language {
                    Some(tag) => Literal::new_language_tagged_literal_unchecked(&text, tag),
                    None => Literal::new_simple_literal(&text),
                };
                (format!("{text:?}"), literal.into())
            }
        }
    }

    /// A value object.
    fn value(&mut self) -> (String, Term) {
        let value = self.keyword("@value");
        let kind = self.keyword("@type");
        match self.below(4) {
            0 => (format!(r#"{{"{value}": "x"}}"#), Literal::new_simple_literal("x").into()),
            1 => (
                format!(r#"{{"{value}": "x", "@language": "EN-gb"}}"#),
                Literal::new_language_tagged_literal_unchecked("x", "en-gb").into(),
            ),
            2 => (
                format!(r#"{{"{kind}": "e:t", "{value}": 7, "@index": "no matter"}}"#),
                Literal::new_typed_literal("7", iri("t")).into(),
            ),
            _ => (
                format!(r#"{{"{value}": 2, "{kind}": "http://www.w3.org/2001/XMLSchema#double"}}"#),
                Literal::new_typed_literal("2.0E0", xsd::DOUBLE).into(),
            ),
        }
    }

    /// Some values of a property that coerces nothing: one, an array, a set.
    fn values(
        &mut self,
        subject: &NamedOrBlankNode,
        property: &NamedNode,
        scope: &Scope,
        depth: u32,
    ) -> String {
        let count = self.any(&[1, 1, 2, 3]);
        let mut texts = Vec::new();
        for _ in 0..count {
            let (text, term) = self.item(scope, depth);
            self.tell(subject, property.clone(), term);
            texts.push(text);
        }
        if self.below(6) == 0 {
            texts.push("null".to_owned());
        }
        match texts.len() {
            1 if self.below(2) == 0 => texts.remove(0),
            _ if self.below(3) == 0 => {
                let set = self.keyword("@set");
                format!(r#"{{"{set}": [{}]}}"#, texts.join(", "))
            }
            _ => format!("[{}]", texts.join(", ")),
        }
    }

    fn item(&mut self, scope: &Scope, depth: u32) -> (String, Term) {
        match self.below(if depth > 0 { 8 } else { 5 }) {
            0..=2 => self.scalar(scope),
            3 => self.value(),
            4 => {
                let (id, node) = self.resource();
                let key = self.keyword("@id");
                (format!(r#"{{"{key}": "{id}"}}"#), node.into())
            }
            5 => {
                let list = self.keyword("@list");
                let (text, term) = self.list(scope, depth - 1);
                (format!(r#"{{"{list}": {text}}}"#), term)
            }
            _ => {
                let (text, node) = self.node(&scope.inner(), depth - 1, &[]);
                (text, node.into())
            }
        }
    }

    /// An array as a list.
    fn list(&mut self, scope: &Scope, depth: u32) -> (String, Term) {
        let count = self.below(4);
        let mut texts = Vec::new();
        let cells: Vec<NamedOrBlankNode> = (0..count).map(|_| self.blank().into()).collect();
        for (i, cell) in cells.iter().enumerate() {
            let (text, term) = match self.below(6) {
                0 if depth > 0 => self.list(scope, depth - 1),
                _ => self.item(scope, depth),
            };
            texts.push(text);
            self.tell(cell, rdf::FIRST.into_owned(), term);
            let rest = cells.get(i + 1).map_or(Term::from(rdf::NIL.into_owned()), |next| next.clone().into());
            self.tell(cell, rdf::REST.into_owned(), rest);
        }
        let first = cells.first().map_or(Term::from(rdf::NIL.into_owned()), |cell| cell.clone().into());
        (format!("[{}]", texts.join(", ")), first)
    }

    /// A node; `leave_out` says which of its keywords come from elsewhere.
    fn node(&mut self, scope: &Scope, depth: u32, leave_out: &[&str]) -> (String, NamedOrBlankNode) {
        let mut members = Vec::new();
        let mut subject = NamedOrBlankNode::from(self.blank());
        if !leave_out.contains(&"@id") && self.below(3) > 0 {
            let (id, node) = self.resource();
            members.push(format!(r#""{}": "{id}""#, self.keyword("@id")));
            subject = node;
        }
        let mut scope = scope.clone();
        if self.below(6) == 0 {
            let plain = self.any(&["http://e/local0", "http://e/local1"]);
            members.push(format!(r#""@context": {{"k0": "{plain}"}}"#));
            scope.plain = plain;
            if let Some(within) = &mut scope.within {
                within.plain = plain;
            }
        }
        if !leave_out.contains(&"@type") && self.below(4) == 0 {
            let key = self.keyword("@type");
            let n = self.below(2);
            members.push(format!(r#""{key}": ["e:C{n}", "Word"]"#));
            self.tell(&subject, rdf::TYPE.into_owned(), iri(&format!("C{n}")));
            self.tell(&subject, rdf::TYPE.into_owned(), NamedNode::new_unchecked("http://v/Word"));
        }
        let properties = self.below(4);
        let mut used = Vec::new();
        for _ in 0..properties {
            let kind = self.below(KINDS.len() as u64 + 2) as usize;
            if used.contains(&kind) {
                continue;
            }
            used.push(kind);
            let member = self.property(kind, &subject, &scope, depth);
            members.extend(member);
        }
        (self.shuffled(members), subject)
    }

    fn shuffled(&mut self, mut members: Vec<String>) -> String {
        for i in (1..members.len()).rev() {
            members.swap(i, self.random.below(i as u64 + 1) as usize);
        }
        format!("{{{}}}", members.join(", "))
    }

    /// A member of a node.
    fn property(
        &mut self,
        kind: usize,
        subject: &NamedOrBlankNode,
        scope: &Scope,
        depth: u32,
    ) -> Option<String> {
        let property = iri(&format!("k{kind}"));
        let deeper = depth.saturating_sub(1);
        let text = match kind {
            0 => self.values(subject, &NamedNode::new_unchecked(scope.plain), scope, depth),
            1 => {
                let (id, node) = self.resource();
                self.tell(subject, property, node);
                format!("[{id:?}, null]")
            }
            2 => {
                self.tell(subject, property.clone(), NamedNode::new_unchecked("http://v/word"));
                self.tell(subject, property, NamedNode::new_unchecked(scope.plain));
                r#"["word", "k0"]"#.to_owned()
            }
            3 => {
                self.tell(subject, property.clone(), Literal::new_typed_literal("x", xsd::INTEGER));
                self.tell(subject, property, Literal::new_typed_literal("12", xsd::INTEGER));
                r#"["x", 12]"#.to_owned()
            }
            4 | 5 => {
                let literal = match kind {
                    4 => Literal::new_language_tagged_literal_unchecked("x", "de"),
                    _ => Literal::new_simple_literal("x"),
                };
                self.tell(subject, property, literal);
                r#""x""#.to_owned()
            }
            6 => {
                let (text, list) = self.list(scope, deeper);
                self.tell(subject, property, list);
                text
            }
            7 => {
                for (text, tag) in [("a", "en"), ("b", "en"), ("c", "x-y")] {
                    let literal = Literal::new_language_tagged_literal_unchecked(text, tag);
                    self.tell(subject, property.clone(), literal);
                }
                self.tell(subject, property, Literal::new_simple_literal("d"));
                r#"{"en": ["a", null, "b"], "X-y": "c", "@none": "d"}"#.to_owned()
            }
            8 => {
                let one = self.values(subject, &property, scope, depth);
                let two = self.values(subject, &property, scope, depth);
                format!(r#"{{"one": {one}, "@none": {two}}}"#)
            }
            _ => return self.structured(kind, subject, scope, depth),
        };
        Some(format!(r#""k{kind}": {text}"#))
    }

    /// Properties whose values are nodes, graphs and the like.
    fn structured(
        &mut self,
        kind: usize,
        subject: &NamedOrBlankNode,
        scope: &Scope,
        depth: u32,
    ) -> Option<String> {
        let property = iri(&format!("k{kind}"));
        let deeper = depth.saturating_sub(1);
        let inner = scope.inner();
        let text = match kind {
            9 | 10 | 17 => {
                let left_out = if kind == 9 { "@id" } else { "@type" };
                let (text, mut node) = self.node(&inner, deeper, &[left_out]);
                let (key, of_key) = self.resource();
                if kind == 9 {
                    let quads = &mut self.quads;
                    rename(quads, &node, &of_key);
                    node = of_key;
                    self.tell(subject, property, node);
                    format!(r#"{{"{key}": {text}}}"#)
                } else if kind == 10 {
                    self.tell(&node, rdf::TYPE.into_owned(), iri("T"));
                    self.tell(subject, property, node);
                    format!(r#"{{"e:T": {text}}}"#)
                } else {
                    let literal = match scope.language {
                        Some(tag) => Literal::new_language_tagged_literal_unchecked("key", tag),
                        None => Literal::new_simple_literal("key"),
                    };
                    self.tell(&node, iri("index"), literal);
                    self.tell(subject, property, node);
                    format!(r#"{{"key": [{text}]}}"#)
                }
            }
            11 => {
                let (text, node) = self.node(&inner, deeper, &[]);
                self.tell(&node, property, subject.clone());
                text
            }
            12 => {
                let json = Literal::new_typed_literal(
                    r#"{"":[],"a":[1.5,"é\n"],"é":null}"#,
                    NamedNode::new_unchecked("http://www.w3.org/1999/02/22-rdf-syntax-ns#JSON"),
                );
                self.tell(subject, property, json);
                r#"{"a": [1.50, "\u00e9\n"], "é": null, "": []}"#.to_owned()
            }
            13 | 14 => {
                let (key, of_key) = self.resource();
                let name = if kind == 13 { self.blank().into() } else { of_key };
                self.tell(subject, property, name.clone());
                let around = std::mem::replace(&mut self.graph, name.into());
                let (text, _) = self.node(&inner, deeper, &[]);
                self.graph = around;
                if kind == 13 { text } else { format!(r#"{{"{key}": {text}}}"#) }
            }
            15 => {
                let text = self.values(subject, &property, scope, depth);
                return Some(format!(r#""nest": {{"k15": {text}}}"#));
            }
            16 => {
                let scoped = Scope { language: Some("it"), plain: "http://e/scoped", within: None };
                let (text, term) = self.item(&scoped, depth);
                self.tell(subject, property, term);
                text
            }
            18 => {
                let text = self.values(subject, &NamedNode::new_unchecked("http://v/word"), scope, depth);
                return Some(format!(r#""word": {text}"#));
            }
            _ => {
                let text = self.values(subject, &iri("compact"), scope, depth);
                return Some(format!(r#""e:compact": {text}"#));
            }
        };
        Some(format!(r#""k{kind}": {text}"#))
    }
}

/// Gives a node another name where it has been told already.
fn rename(quads: &mut [Quad], from: &NamedOrBlankNode, to: &NamedOrBlankNode) {
    for quad in quads {
        if quad.subject == *from {
            quad.subject = to.clone();
        }
        if quad.object == Term::from(from.clone()) {
            quad.object = to.clone().into();
        }
    }
}

fn document(seed: u64) -> (String, Vec<Quad>) {
    let mut writer =
        Writer { random: Random(seed), quads: Vec::new(), blanks: 0, graph: GraphName::DefaultGraph };
    let language = writer.any(&[None, Some("fr")]);
    let mut context = vec![
        r#""e": "http://e/""#.to_owned(),
        r#""nest": "@nest""#.to_owned(),
        r#""@vocab": "http://v/""#.to_owned(),
    ];
    context.extend(language.map(|language| format!(r#""@language": "{language}""#)));
    context.extend(ALIASES.iter().map(|(keyword, alias)| format!(r#""{alias}": "{keyword}""#)));
    context.extend(KINDS.iter().enumerate().map(|(k, definition)| format!(r#""k{k}": {definition}"#)));
    let context = writer.shuffled(context);
    let scope = Scope { language, plain: "http://e/k0", within: None };
    let mut nodes = Vec::new();
    for _ in 0..3 {
        nodes.push(writer.node(&scope, 3, &[]).0);
    }
    let graph = writer.keyword("@graph");
    let name = if writer.below(3) == 0 { r#""@id": "e:g", "e:about": 1, "# } else { "" };
    if !name.is_empty() {
        let of_graph = |quad: Quad| match &quad.graph_name {
            GraphName::DefaultGraph => Quad { graph_name: iri("g").into(), ..quad },
            _ => quad,
        };
        writer.quads = std::mem::take(&mut writer.quads).into_iter().map(of_graph).collect();
        let about = Literal::new_typed_literal("1", xsd::INTEGER);
        writer.tell(&iri("g").into(), iri("about"), about);
    }
    (format!(r#"{{{name}"{graph}": [{}], "@context": {context}}}"#, nodes.join(", ")), writer.quads)
}

fn canonical(quads: impl IntoIterator<Item = Quad>) -> Dataset {
    let mut quads: Dataset = quads.into_iter().collect();
    quads.canonicalize(CanonicalizationAlgorithm::Unstable);
    quads
}

#[test]
fn random_documents_say_what_was_written() {
    let rounds = std::env::var("SNOWMELT_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(2000);
    let seed = snowmelt_base::test_seed(1);
    let options = Options { base: Some("http://b/d/doc".to_owned()), ..Options::default() };
    let mut told = 0;
    for round in 0..rounds {
        let (text, expected) = document(seed.wrapping_mul(1_000_003).wrapping_add(round));
        let mut found = Vec::new();
        let take = |told: Told| match told {
            Told::Quad(quad) => {
                found.push(quad);
                Ok::<_, Infallible>(())
            }
            Told::Prefix { .. } => Ok(()),
            Told::LeftOut(why) => panic!("round {round}: {why}\n{text}"),
        };
        read(text.as_bytes(), &options, || Ok(()), take)
            .unwrap_or_else(|error| panic!("SNOWMELT_SEED={seed}, round {round}: {error}\n{text}"));
        told += found.len();
        let (found, expected) = (canonical(found), canonical(expected));
        let only = |of: &Dataset, other: &Dataset| {
            let quads = of.iter().filter(|quad| !other.contains(*quad));
            quads.map(|quad| format!("{quad}\n")).collect::<String>()
        };
        assert!(
            found == expected,
            "SNOWMELT_SEED={seed}, round {round}:\n{text}\nextra\n{}missing\n{}",
            only(&found, &expected),
            only(&expected, &found)
        );
    }
    assert!(told as u64 > 5 * rounds, "{told} quads of {rounds} documents");
}
