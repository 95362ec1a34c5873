//! Names with a meaning of their own (RDF/XML 5.1 and 7.2.2 to 7.2.7).

pub(super) const RDF: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";
pub(super) const RDF_TYPE: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";
pub(super) const RDF_STATEMENT: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#Statement";
pub(super) const RDF_SUBJECT: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#subject";
pub(super) const RDF_PREDICATE: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#predicate";
pub(super) const RDF_OBJECT: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#object";
pub(super) const RDF_FIRST: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#first";
pub(super) const RDF_REST: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#rest";
pub(super) const RDF_NIL: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#nil";
pub(super) const RDF_XML_LITERAL: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#XMLLiteral";
pub(super) const RDF_LANG_STRING: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString";
pub(super) const RDF_DIR_LANG_STRING: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#dirLangString";
pub(super) const RDF_REIFIES: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#reifies";
pub(super) const XSD_STRING: &str = "http://www.w3.org/2001/XMLSchema#string";
/// The namespace of `its:dir`, which RDF 1.2 has.
pub(super) const ITS: &str = "http://www.w3.org/2005/11/its";

/// The role of an attribute.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    Id,
    About,
    NodeId,
    Resource,
    Datatype,
    ParseType,
    Version,
    /// A property, `rdf:type` among them.
    Property,
    /// `rdf:annotation` and `rdf:annotationNodeID`: a reifier of the triple.
    Annotation,
    AnnotationNode,
    /// `its:dir`
    Direction,
    Forbidden,
}

/// The role of an attribute of the RDF namespace.
pub(super) fn role_in_rdf(local: &str) -> Role {
    match local {
        "ID" => Role::Id,
        "about" => Role::About,
        "nodeID" => Role::NodeId,
        "resource" => Role::Resource,
        "datatype" => Role::Datatype,
        "parseType" => Role::ParseType,
        "version" => Role::Version,
        "annotation" => Role::Annotation,
        "annotationNodeID" => Role::AnnotationNode,
        "RDF" | "Description" | "li" | "aboutEach" | "aboutEachPrefix" | "bagID" => Role::Forbidden,
        _ => Role::Property,
    }
}

/// The role of an attribute without a namespace; a few of the first documents are still read.
pub(super) fn role_without_namespace(local: &str) -> Role {
    match local {
        "ID" | "about" | "resource" | "parseType" => role_in_rdf(local),
        "type" => Role::Property,
        _ => Role::Forbidden,
    }
}

/// Whether an element of this name in the RDF namespace is no node.
pub(super) fn is_no_node(local: &str) -> bool {
    local == "li" || is_no_element(local)
}

/// Whether an element of this name in the RDF namespace is no property.
pub(super) fn is_no_property(local: &str) -> bool {
    local == "Description" || is_no_element(local)
}

/// Whether RDF/XML keeps a name of the RDF namespace for itself.
pub fn is_syntax_name(local: &str) -> bool {
    is_no_node(local) || is_no_property(local)
}

fn is_no_element(local: &str) -> bool {
    matches!(
        local,
        "RDF"
            | "ID"
            | "about"
            | "parseType"
            | "resource"
            | "nodeID"
            | "datatype"
            | "aboutEach"
            | "aboutEachPrefix"
            | "bagID"
    )
}

/// Whether a name is kept for XML itself: its prefix, or without one itself, begins with `xml`.
pub(super) fn is_reserved(prefix: &str, local: &str) -> bool {
    let begin = if prefix.is_empty() { local } else { prefix };
    begin.as_bytes().get(..3).is_some_and(|begin| begin.eq_ignore_ascii_case(b"xml"))
}
