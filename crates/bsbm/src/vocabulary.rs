//! The name spaces of the benchmark, as macros: `concat!` makes whole lines of N-Triples of them at
//! compile time. In scope in all modules declared after this one.

macro_rules! rdf {
    ($name:literal) => {
        concat!("http://www.w3.org/1999/02/22-rdf-syntax-ns#", $name)
    };
}
macro_rules! rdfs {
    ($name:literal) => {
        concat!("http://www.w3.org/2000/01/rdf-schema#", $name)
    };
}
macro_rules! xsd {
    ($name:literal) => {
        concat!("http://www.w3.org/2001/XMLSchema#", $name)
    };
}
macro_rules! dc {
    ($name:literal) => {
        concat!("http://purl.org/dc/elements/1.1/", $name)
    };
}
macro_rules! foaf {
    ($name:literal) => {
        concat!("http://xmlns.com/foaf/0.1/", $name)
    };
}
macro_rules! rev {
    ($name:literal) => {
        concat!("http://purl.org/stuff/rev#", $name)
    };
}
macro_rules! bsbm {
    ($name:literal) => {
        concat!("http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/vocabulary/", $name)
    };
}
macro_rules! inst {
    ($name:literal) => {
        concat!("http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/instances/", $name)
    };
}

/// A predicate between blanks, and the opening quote of its literal.
macro_rules! literal {
    ($iri:expr) => {
        concat!(" <", $iri, "> \"")
    };
}
/// A predicate between blanks, and the blank before its IRI.
macro_rules! link {
    ($iri:expr) => {
        concat!(" <", $iri, "> ")
    };
}
/// A whole predicate and object.
macro_rules! class {
    ($iri:expr) => {
        concat!(" <", rdf!("type"), "> <", $iri, "> .\n")
    };
}
