//! Manifests: lists of tests in Turtle.

use std::path::{Path, PathBuf};

use oxrdf::vocab::rdf;
use oxrdf::{
    BlankNode, Graph, NamedNode, NamedNodeRef, NamedOrBlankNode, NamedOrBlankNodeRef, Term, TermRef,
};
use oxrdfio::{RdfFormat, RdfParser};

const MF: &str = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#";
const QT: &str = "http://www.w3.org/2001/sw/DataAccess/tests/test-query#";
const UT: &str = "http://www.w3.org/2009/sparql/tests/test-update#";
/// An endpoint's address and the files of its data.
pub type ServiceData = (String, Vec<PathBuf>);

const RDFS_LABEL: NamedNodeRef<'_> =
    NamedNodeRef::new_unchecked("http://www.w3.org/2000/01/rdf-schema#label");

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    PositiveSyntax,
    NegativeSyntax,
    Evaluation,
    /// the CSV text counts, not what it means
    Csv,
    Update,
    PositiveUpdateSyntax,
    NegativeUpdateSyntax,
}

/// One test.
#[derive(Clone, Debug)]
pub struct Case {
    pub kind: Kind,
    id: String,
    folder: PathBuf,
    pub query: PathBuf,
    pub data: Vec<PathBuf>,
    pub graphs: Vec<(String, PathBuf)>,
    pub result: Option<PathBuf>,
    pub services: Vec<ServiceData>,
    /// after an update: what is in the default graph and in named ones
    pub data_after: Vec<PathBuf>,
    pub graphs_after: Vec<(String, PathBuf)>,
}

impl Case {
    /// `sparql11/aggregates/agg01`: folder, then the test's own name.
    pub fn name(&self, root: &Path) -> String {
        let folder = self.folder.strip_prefix(root).unwrap_or(&self.folder);
        let id = self.id.rsplit(['#', '/']).next().unwrap_or(&self.id);
        format!("{}/{id}", folder.display())
    }

    /// The base IRI of the query.
    pub fn base(&self) -> String {
        iri(&self.query)
    }
}

/// The IRI of a file.
pub fn iri(path: &Path) -> String {
    format!("file://{}", path.display())
}

fn file(term: TermRef<'_>) -> Option<PathBuf> {
    match term {
        TermRef::NamedNode(n) => n.as_str().strip_prefix("file://").map(PathBuf::from),
        _ => None,
    }
}

/// The query tests of a manifest and of those it includes.
pub fn read(path: &Path) -> Vec<Case> {
    let path = path.canonicalize().unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let bytes = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let parser =
        RdfParser::from_format(RdfFormat::Turtle).with_base_iri(iri(&path)).expect("a file's IRI is an IRI");
    let graph: Graph = parser
        .for_slice(&bytes)
        .map(|quad| oxrdf::Triple::from(quad.unwrap_or_else(|e| panic!("{}: {e}", path.display()))))
        .collect();
    // in some suites the manifest has a name of its own
    let manifest = graph.subject_for_predicate_object(rdf::TYPE, &mf("Manifest"));
    let manifest = manifest.unwrap_or_else(|| panic!("{}: it has no manifest", path.display()));
    let mut cases = Vec::new();
    for included in list(&graph, manifest, "include") {
        cases.extend(read(&file(included.as_ref()).expect("an included manifest is a file")));
    }
    for entry in list(&graph, manifest, "entries") {
        if let Term::NamedNode(entry) = entry {
            cases.extend(case(&graph, &entry, path.parent().expect("a file is in a folder")));
        }
    }
    cases
}

fn mf(name: &str) -> NamedNode {
    NamedNode::new_unchecked(format!("{MF}{name}"))
}

fn qt(name: &str) -> NamedNode {
    NamedNode::new_unchecked(format!("{QT}{name}"))
}

fn ut(name: &str) -> NamedNode {
    NamedNode::new_unchecked(format!("{UT}{name}"))
}

/// The RDF list that is the object of a property.
fn list(graph: &Graph, subject: NamedOrBlankNodeRef<'_>, property: &str) -> Vec<Term> {
    let mut items = Vec::new();
    let mut node = graph.object_for_subject_predicate(subject, &mf(property)).map(TermRef::into_owned);
    while let Some(Term::BlankNode(cell)) = node {
        items.extend(graph.object_for_subject_predicate(&cell, rdf::FIRST).map(TermRef::into_owned));
        node = graph.object_for_subject_predicate(&cell, rdf::REST).map(TermRef::into_owned);
    }
    items
}

fn case(graph: &Graph, entry: &NamedNode, folder: &Path) -> Option<Case> {
    let Some(TermRef::NamedNode(class)) = graph.object_for_subject_predicate(entry, rdf::TYPE) else {
        return None;
    };
    let kind = match class.as_str().strip_prefix(MF)? {
        "QueryEvaluationTest" => Kind::Evaluation,
        "PositiveSyntaxTest" | "PositiveSyntaxTest11" => Kind::PositiveSyntax,
        "NegativeSyntaxTest" | "NegativeSyntaxTest11" => Kind::NegativeSyntax,
        "CSVResultFormatTest" => Kind::Csv,
        "UpdateEvaluationTest" => Kind::Update,
        "PositiveUpdateSyntaxTest" | "PositiveUpdateSyntaxTest11" => Kind::PositiveUpdateSyntax,
        "NegativeUpdateSyntaxTest" | "NegativeUpdateSyntaxTest11" => Kind::NegativeUpdateSyntax,
        _ => return None, // protocol
    };
    let action = graph.object_for_subject_predicate(entry, &mf("action"))?.into_owned();
    let result = graph.object_for_subject_predicate(entry, &mf("result")).and_then(file);
    let mut case = Case {
        kind,
        id: entry.as_str().to_owned(),
        folder: folder.to_owned(),
        query: PathBuf::new(),
        data: Vec::new(),
        graphs: Vec::new(),
        result,
        services: Vec::new(),
        data_after: Vec::new(),
        graphs_after: Vec::new(),
    };
    match &action {
        Term::NamedNode(_) => case.query = file(action.as_ref())?,
        Term::BlankNode(node) if kind == Kind::Update => {
            case.query = file(graph.object_for_subject_predicate(node, &ut("request"))?)?;
            (case.data, case.graphs) = dataset(graph, node);
            if let Some(TermRef::BlankNode(after)) = graph.object_for_subject_predicate(entry, &mf("result"))
            {
                (case.data_after, case.graphs_after) = dataset(graph, &after.into_owned());
            }
        }
        Term::BlankNode(node) => {
            case.query = file(graph.object_for_subject_predicate(node, &qt("query"))?)?;
            case.data = graph.objects_for_subject_predicate(node, &qt("data")).filter_map(file).collect();
            for named in graph.objects_for_subject_predicate(node, &qt("graphData")) {
                case.graphs.extend(named_graph(graph, &named.into_owned()));
            }
            for of in graph.objects_for_subject_predicate(node, &qt("serviceData")) {
                case.services.extend(service(graph, of));
            }
        }
        Term::Literal(_) | Term::Triple(_) => return None,
    }
    Some(case)
}

/// An endpoint and its data.
fn service(graph: &Graph, of: TermRef<'_>) -> Option<ServiceData> {
    let TermRef::BlankNode(of) = of else { return None };
    let TermRef::NamedNode(endpoint) = graph.object_for_subject_predicate(of, &qt("endpoint"))? else {
        return None;
    };
    let data = graph.objects_for_subject_predicate(of, &qt("data")).filter_map(file).collect();
    Some((endpoint.as_str().to_owned(), data))
}

/// The files of an update test's dataset.
fn dataset(graph: &Graph, node: &BlankNode) -> (Vec<PathBuf>, Vec<(String, PathBuf)>) {
    let data = graph.objects_for_subject_predicate(node, &ut("data")).filter_map(file).collect();
    let named = graph.objects_for_subject_predicate(node, &ut("graphData"));
    (data, named.filter_map(|named| named_graph(graph, &named.into_owned())).collect())
}

/// Either the file itself, or a node with the file and the graph's name.
fn named_graph(graph: &Graph, term: &Term) -> Option<(String, PathBuf)> {
    if let Some(path) = file(term.as_ref()) {
        return Some((iri(&path), path));
    }
    let node: NamedOrBlankNode = match term {
        Term::BlankNode(node) => node.clone().into(),
        _ => return None,
    };
    let of = |property| graph.object_for_subject_predicate(&node, &property);
    let path = file(of(qt("graph")).or_else(|| of(ut("graph"))).or_else(|| of(ut("data")))?)?;
    let name = match graph.object_for_subject_predicate(&node, RDFS_LABEL) {
        Some(TermRef::Literal(l)) => l.value().to_owned(),
        _ => iri(&path),
    };
    Some((name, path))
}
