//! The W3C's tests of the SPARQL 1.1 Protocol and of the Graph Store Protocol: requests in
//! order, expected statuses and bodies, as their manifests say.
//!
//! The manifests' `www.example` is this server's address and `/gsp` its `/graphs`.

mod support;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};
use oxrdf::graph::CanonicalizationAlgorithm;
use oxrdf::vocab::rdf;
use oxrdf::{BlankNode, Graph, NamedNode, NamedOrBlankNodeRef, Term, TermRef};
use oxrdfio::{RdfFormat, RdfParser};

use support::{Running, config};

const MF: &str = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#";
const UT: &str = "http://www.w3.org/2009/sparql/tests/test-update#";
const HT: &str = "http://www.w3.org/2011/http#";
const CNT: &str = "http://www.w3.org/2011/content#";
const LABEL: &str = "http://www.w3.org/2000/01/rdf-schema#label";

const MANIFESTS: [&str; 3] = [
    "protocol/manifest.ttl",
    "graph-store-protocol/manifest-direct.ttl",
    "graph-store-protocol/manifest-indirect.ttl",
];

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let root = std::env::var_os("SNOWMELT_SHARED")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"), PathBuf::from);
    let root = root.join("w3c/sparql/sparql11");
    if !root.exists() {
        eprintln!("skipped: {} is not there (set SNOWMELT_SHARED to the folder that has it)", root.display());
        return ExitCode::SUCCESS;
    }
    let trials = MANIFESTS.iter().flat_map(|file| trials(&root.join(file)));
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

fn trials(path: &Path) -> Vec<Trial> {
    let manifest = Manifest::read(path);
    let node = NamedNode::new_unchecked(manifest.iri.clone());
    let entries = manifest.list(manifest.object((&node).into(), &format!("{MF}entries")));
    let folder = path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned();
    let trial = |entry: Term| {
        let Term::NamedNode(entry) = entry else { panic!("entries have names") };
        let name = entry.as_str().rsplit('#').next().unwrap_or_default().to_owned();
        let manifest = Manifest::read(path);
        Trial::test(format!("{folder}/{name}"), move || manifest.run(&entry).map_err(Into::into))
    };
    entries.into_iter().map(trial).collect()
}

struct Manifest {
    iri: String,
    graph: Graph,
}

/// A request and what is expected of the answer.
struct Step {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: String,
    statuses: Vec<String>,
    boolean: Option<bool>,
    format: Option<String>,
    location: Option<String>,
    expected: Option<(String, String)>,
}

impl Manifest {
    fn read(path: &Path) -> Self {
        let iri = format!("file://{}", path.canonicalize().unwrap().display());
        let parser = RdfParser::from_format(RdfFormat::Turtle).with_base_iri(&iri).unwrap();
        let bytes = std::fs::read(path).unwrap();
        let graph = parser.for_slice(&bytes).map(|quad| oxrdf::Triple::from(quad.unwrap())).collect();
        Manifest { iri, graph }
    }

    fn object(&self, subject: NamedOrBlankNodeRef<'_>, predicate: &str) -> Option<Term> {
        let predicate = NamedNode::new_unchecked(predicate);
        self.graph.object_for_subject_predicate(subject, &predicate).map(TermRef::into_owned)
    }

    fn node(&self, subject: NamedOrBlankNodeRef<'_>, predicate: &str) -> Option<BlankNode> {
        match self.object(subject, predicate)? {
            Term::BlankNode(node) => Some(node),
            other => panic!("{other} is no blank node"),
        }
    }

    fn text(&self, subject: &BlankNode, predicate: &str) -> Option<String> {
        match self.object(subject.into(), predicate)? {
            Term::Literal(literal) => Some(literal.value().to_owned()),
            other => panic!("{other} is no text"),
        }
    }

    fn list(&self, mut cell: Option<Term>) -> Vec<Term> {
        let mut items = Vec::new();
        while let Some(Term::BlankNode(node)) = cell {
            items.extend(self.object((&node).into(), rdf::FIRST.as_str()));
            cell = self.object((&node).into(), rdf::REST.as_str());
        }
        items
    }

    fn headers(&self, of: &BlankNode) -> Vec<(String, String)> {
        let headers = self.list(self.object(of.into(), &format!("{HT}headers")));
        let header = |term: Term| {
            let Term::BlankNode(node) = term else { panic!("a header is a blank node") };
            let field = |name| self.text(&node, &format!("{HT}{name}")).unwrap();
            (field("fieldName").to_ascii_lowercase(), field("fieldValue"))
        };
        headers.into_iter().map(header).collect()
    }

    fn body(&self, of: &BlankNode) -> Option<String> {
        let body = self.node(of.into(), &format!("{HT}body"))?;
        self.text(&body, &format!("{CNT}chars"))
    }

    fn step(&self, request: &BlankNode) -> Step {
        let answer = self.node(request.into(), &format!("{HT}resp")).unwrap();
        let expected = |name| NamedNode::new_unchecked(format!("{MF}{name}"));
        let status =
            |term: TermRef<'_>| term.to_string().rsplit('#').next().unwrap().trim_end_matches('>').to_owned();
        let headers = self.headers(&answer);
        let kind = headers.into_iter().find(|(name, _)| name == "content-type");
        Step {
            method: self.text(request, &format!("{HT}methodName")).unwrap(),
            path: self.text(request, &format!("{HT}absolutePath")).unwrap(),
            headers: self.headers(request),
            body: self.body(request).unwrap_or_default(),
            statuses: self
                .graph
                .objects_for_subject_predicate(&answer, &expected("expectedStatus"))
                .map(status)
                .collect(),
            boolean: self.text(&answer, &format!("{MF}expectedBoolean")).map(|b| b == "true"),
            format: self.text(&answer, &format!("{MF}expectedFormat")),
            location: self.text(&answer, &format!("{MF}expectedLocation")),
            expected: self.body(&answer).map(|body| (kind.map_or_else(String::new, |(_, kind)| kind), body)),
        }
    }

    /// The graphs a test begins with, as N-Quads.
    fn data(&self, entry: &NamedNode) -> String {
        let mut data = String::new();
        let graphs = NamedNode::new_unchecked(format!("{UT}graphData"));
        for named in self.graph.objects_for_subject_predicate(entry, &graphs) {
            let TermRef::BlankNode(named) = named else { panic!("graphData is a blank node") };
            let named = named.into_owned();
            let Some(Term::NamedNode(file)) = self.object((&named).into(), &format!("{UT}graph")) else {
                panic!("graphData has a graph")
            };
            let path = file.as_str().strip_prefix("file://").unwrap();
            let name = self.text(&named, LABEL).unwrap();
            for line in std::fs::read_to_string(path).unwrap().lines() {
                if let Some(triple) = line.trim_end().strip_suffix('.') {
                    data += &format!("{triple} <{name}> .\n");
                }
            }
        }
        data
    }

    fn run(&self, entry: &NamedNode) -> Result<(), String> {
        let server = Running::start(&self.data(entry), config());
        let action = self.node(entry.into(), &format!("{MF}action")).ok_or("the test has no action")?;
        let mut location = String::new();
        for request in self.list(self.object((&action).into(), &format!("{HT}requests"))) {
            let Term::BlankNode(request) = request else { return Err("a request is a blank node".into()) };
            let step = self.step(&request);
            let here = |text: &str| {
                text.replace("$LOCATION$", &location).replace("www.example", &server.address.to_string())
            };
            let path = match step.path.strip_prefix("/gsp") {
                Some(rest) => format!("/graphs{rest}"),
                None => step.path.clone(),
            };
            let headers: String =
                step.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
            let answer = server.send(&step.method, &here(&path), &headers, &here(&step.body));
            let told = format!("{} {}: {}\n{}", step.method, step.path, answer.0, answer.1);
            step.check(&answer, &here).map_err(|why| format!("{why}\n{told}"))?;
            if step.location.is_some() {
                location = header(&answer.0, "location").ok_or_else(|| format!("no Location\n{told}"))?;
            }
        }
        Ok(())
    }
}

impl Step {
    fn check(&self, answer: &(String, String), here: &dyn Fn(&str) -> String) -> Result<(), String> {
        let status = &answer.0[9..12];
        let fits = |expected: &String| match expected.as_str() {
            "OK" => status == "200",
            "Created" => status == "201",
            "NoContent" => status == "204",
            "NotFound" => status == "404",
            class => class.strip_prefix("StatusCode").is_some_and(|class| class[..1] == status[..1]),
        };
        if !self.statuses.iter().any(fits) {
            return Err(format!("status {status} instead of {:?}", self.statuses));
        }
        if let Some(expected) = self.boolean
            && !answer.1.contains(if expected { "true" } else { "false" })
        {
            return Err(format!("not {expected}"));
        }
        let kind = header(&answer.0, "content-type").unwrap_or_default();
        match self.format.as_deref() {
            Some("RDF") if RdfFormat::from_media_type(&kind).is_none() => {
                return Err(format!("{kind} is not RDF"));
            }
            Some("boolean" | "tabular") if !kind.contains("sparql-results") => {
                return Err(format!("{kind} is no result"));
            }
            _ => {}
        }
        if let Some((expected_kind, expected)) = &self.expected {
            let (actual, expected) = (graph(&kind, &answer.1)?, graph(expected_kind, &here(expected))?);
            if actual != expected {
                return Err(format!("got\n{actual}\ninstead of\n{expected}"));
            }
        }
        Ok(())
    }
}

fn header(head: &str, name: &str) -> Option<String> {
    let mut lines = head.lines().filter_map(|line| line.split_once(':'));
    lines.find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim().to_owned())
}

fn graph(kind: &str, text: &str) -> Result<Graph, String> {
    let format = RdfFormat::from_media_type(kind).ok_or_else(|| format!("{kind} is not RDF"))?;
    let quads = RdfParser::from_format(format).for_slice(text.as_bytes());
    let triples: Result<Vec<_>, _> = quads.map(|quad| quad.map(oxrdf::Triple::from)).collect();
    let mut graph: Graph = triples.map_err(|e| e.to_string())?.into_iter().collect();
    graph.canonicalize(CanonicalizationAlgorithm::Unstable);
    Ok(graph)
}
