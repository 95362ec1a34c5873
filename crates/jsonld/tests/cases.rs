//! Documents and their quads, one construct after the other.

use std::convert::Infallible;

use oxrdf::Dataset;
use oxrdf::dataset::CanonicalizationAlgorithm;
use snowmelt_jsonld::{Options, ReadError, Told, read};

fn quads(text: &str) -> Result<Dataset, ReadError<Infallible>> {
    let options = Options { base: Some("http://b/d/doc".to_owned()), ..Options::default() };
    let mut quads = Dataset::new();
    let told = |told| {
        if let Told::Quad(quad) = told {
            quads.insert(&quad);
        }
        Ok(())
    };
    read(text.as_bytes(), &options, || Ok(()), told)?;
    Ok(quads)
}

/// A document, and its quads with `xsd:` and `rdf:` for the namespaces.
const CASES: &[(&str, &[&str])] = &[
    (
        r#"{"@context":{"p":"http://e/p"},"@id":"http://e/s","p":5}"#,
        &[r#"<http://e/s> <http://e/p> "5"^^<xsd:integer> ."#],
    ),
    (
        r#"{"@context":{"p":"http://e/p"},"@id":"http://e/s","p":5.0}"#,
        &[r#"<http://e/s> <http://e/p> "5"^^<xsd:integer> ."#],
    ),
    (
        r#"{"@context":{"p":"http://e/p"},"@id":"http://e/s","p":-0}"#,
        &[r#"<http://e/s> <http://e/p> "0"^^<xsd:integer> ."#],
    ),
    (
        r#"{"@context":{"p":"http://e/p"},"@id":"http://e/s","p":-0.0}"#,
        &[r#"<http://e/s> <http://e/p> "0"^^<xsd:integer> ."#],
    ),
    (
        r#"{"@context":{"p":"http://e/p"},"@id":"http://e/s","p":1e2}"#,
        &[r#"<http://e/s> <http://e/p> "100"^^<xsd:integer> ."#],
    ),
    (
        r#"{"@context":{"p":"http://e/p"},"@id":"http://e/s","p":1.5}"#,
        &[r#"<http://e/s> <http://e/p> "1.5E0"^^<xsd:double> ."#],
    ),
    (
        r#"{"@context":{"p":"http://e/p"},"@id":"http://e/s","p":1e21}"#,
        &[r#"<http://e/s> <http://e/p> "1.0E21"^^<xsd:double> ."#],
    ),
    (
        r#"{"@context":{"p":"http://e/p"},"@id":"http://e/s","p":1e20}"#,
        &[r#"<http://e/s> <http://e/p> "100000000000000000000"^^<xsd:integer> ."#],
    ),
    (
        r#"{"@context":{"p":"http://e/p"},"@id":"http://e/s","p":123456789012345678}"#,
        &[r#"<http://e/s> <http://e/p> "123456789012345678"^^<xsd:integer> ."#],
    ),
    (
        r#"{"@context":{"p":"http://e/p"},"@id":"http://e/s","p":0.1}"#,
        &[r#"<http://e/s> <http://e/p> "1.0E-1"^^<xsd:double> ."#],
    ),
    (
        r#"{"@context":{"p":"http://e/p"},"@id":"http://e/s","p":1E-7}"#,
        &[r#"<http://e/s> <http://e/p> "1.0E-7"^^<xsd:double> ."#],
    ),
    (
        r#"{"@context":{"p":"http://e/p"},"@id":"http://e/s","p":9007199254740993}"#,
        &[r#"<http://e/s> <http://e/p> "9007199254740993"^^<xsd:integer> ."#],
    ),
    (
        r#"{"@context":{"p":"http://e/p"},"@id":"http://e/s","p":12345678901234567890123}"#,
        &[r#"<http://e/s> <http://e/p> "1.2345678901234568E22"^^<xsd:double> ."#],
    ),
    (
        r#"{"@context":{"p":"http://e/p"},"@id":"http://e/s","p":true}"#,
        &[r#"<http://e/s> <http://e/p> "true"^^<xsd:boolean> ."#],
    ),
    (
        r#"{"@context": {"p": "http://e/p"}, "@id": "http://e/s", "p": {"@value": 5, "@type": "http://www.w3.org/2001/XMLSchema#double"}}"#,
        &[r#"<http://e/s> <http://e/p> "5.0E0"^^<xsd:double> ."#],
    ),
    (
        r#"{"@context": {"p": "http://e/p"}, "@id": "http://e/s", "p": {"@value": 5.5, "@type": "http://www.w3.org/2001/XMLSchema#integer"}}"#,
        &[r#"<http://e/s> <http://e/p> "5.5E0"^^<xsd:integer> ."#],
    ),
    (
        r#"{"@context": {"p": "http://e/p"}, "@id": "http://e/s", "p": {"@value": 5, "@type": "http://www.w3.org/2001/XMLSchema#float"}}"#,
        &[r#"<http://e/s> <http://e/p> "5"^^<xsd:float> ."#],
    ),
    (
        r#"{"@context": {"p": {"@id": "http://e/p", "@type": "http://www.w3.org/2001/XMLSchema#integer"}}, "@id": "http://e/s", "p": "5"}"#,
        &[r#"<http://e/s> <http://e/p> "5"^^<xsd:integer> ."#],
    ),
    (
        r#"{"@context": {"p": {"@id": "http://e/p", "@type": "http://www.w3.org/2001/XMLSchema#string"}}, "@id": "http://e/s", "p": true}"#,
        &[r#"<http://e/s> <http://e/p> "true" ."#],
    ),
    (r#"{"@context": {"p": "http://e/p"}, "@id": "http://e/s", "p": null}"#, &[]),
    (
        r#"{"@context": {"p": "http://e/p"}, "@id": "http://e/s", "p": [null, 1]}"#,
        &[r#"<http://e/s> <http://e/p> "1"^^<xsd:integer> ."#],
    ),
    (
        r#"{"@context": {"p": "http://e/p"}, "@id": "http://e/s", "p": {"@set": [1, [2, [3]]]}}"#,
        &[
            r#"<http://e/s> <http://e/p> "1"^^<xsd:integer> ."#,
            r#"<http://e/s> <http://e/p> "2"^^<xsd:integer> ."#,
            r#"<http://e/s> <http://e/p> "3"^^<xsd:integer> ."#,
        ],
    ),
    (
        r#"{"@context": {"p": "http://e/p"}, "@id": "http://e/s", "p": {"@list": []}}"#,
        &[r#"<http://e/s> <http://e/p> <rdf:nil> ."#],
    ),
    (
        r#"{"@context": {"p": "http://e/p"}, "@id": "http://e/s", "p": {"@value": "x", "@language": "EN-us"}}"#,
        &[r#"<http://e/s> <http://e/p> "x"@en-us ."#],
    ),
    (
        r#"{"@context": {"@language": "en", "p": "http://e/p", "q": {"@id": "http://e/q", "@language": null}}, "@id": "http://e/s", "p": "x", "q": "y"}"#,
        &[r#"<http://e/s> <http://e/p> "x"@en ."#, r#"<http://e/s> <http://e/q> "y" ."#],
    ),
    (
        r#"{"@context": {"p": {"@id": "http://e/p", "@container": "@language"}}, "@id": "http://e/s", "p": {"en": ["a", "b"], "de": "c", "@none": "d", "fr": null}}"#,
        &[
            r#"<http://e/s> <http://e/p> "a"@en ."#,
            r#"<http://e/s> <http://e/p> "b"@en ."#,
            r#"<http://e/s> <http://e/p> "c"@de ."#,
            r#"<http://e/s> <http://e/p> "d" ."#,
        ],
    ),
    (
        r#"{"@context": {"p": {"@id": "http://e/p", "@container": "@id"}, "q": "http://e/q"}, "@id": "http://e/s", "p": {"x": {"q": 1}, "@none": {"@id": "http://e/n"}}}"#,
        &[
            r#"<http://e/s> <http://e/p> <http://b/d/x> ."#,
            r#"<http://b/d/x> <http://e/q> "1"^^<xsd:integer> ."#,
            r#"<http://e/s> <http://e/p> <http://e/n> ."#,
        ],
    ),
    (
        r#"{"@context": {"p": {"@id": "http://e/p", "@container": "@index"}}, "@id": "http://e/s", "p": {"a": 1, "b": [2, 3]}}"#,
        &[
            r#"<http://e/s> <http://e/p> "1"^^<xsd:integer> ."#,
            r#"<http://e/s> <http://e/p> "2"^^<xsd:integer> ."#,
            r#"<http://e/s> <http://e/p> "3"^^<xsd:integer> ."#,
        ],
    ),
    (
        r#"{"@context": {"p": {"@id": "http://e/p", "@container": "@index", "@index": "http://e/i"}}, "@id": "http://e/s", "p": {"a": {"@id": "http://e/o"}}}"#,
        &[r#"<http://e/s> <http://e/p> <http://e/o> ."#, r#"<http://e/o> <http://e/i> "a" ."#],
    ),
    (
        r#"{"@context": {"@vocab": "http://v/", "p": {"@id": "http://e/p", "@container": "@type"}}, "@id": "http://e/s", "p": {"T": {"@id": "http://e/o"}}}"#,
        &[r#"<http://e/s> <http://e/p> <http://e/o> ."#, r#"<http://e/o> <rdf:type> <http://v/T> ."#],
    ),
    (
        r#"{"@context": {"@vocab": "http://v/", "p": {"@id": "http://e/p", "@container": "@type"}}, "@id": "http://e/s", "p": {"T": "o"}}"#,
        &[r#"<http://e/s> <http://e/p> <http://b/d/o> ."#, r#"<http://b/d/o> <rdf:type> <http://v/T> ."#],
    ),
    (
        r#"{"@context": {"@vocab": "http://v/", "p": {"@id": "http://e/p", "@container": "@type", "@type": "@vocab"}}, "@id": "http://e/s", "p": {"T": "o"}}"#,
        &[r#"<http://e/s> <http://e/p> <http://v/o> ."#, r#"<http://v/o> <rdf:type> <http://v/T> ."#],
    ),
    (
        r#"{"@context": {"id": "@id", "type": "@type", "value": "@value", "p": "http://e/p"}, "id": "http://e/s", "type": "http://e/T", "p": {"value": 1, "type": "http://www.w3.org/2001/XMLSchema#byte"}}"#,
        &[r#"<http://e/s> <rdf:type> <http://e/T> ."#, r#"<http://e/s> <http://e/p> "1"^^<xsd:byte> ."#],
    ),
    (
        r#"{"@context": {"r": {"@reverse": "http://e/p"}}, "@id": "http://e/o", "r": {"@id": "http://e/s"}}"#,
        &[r#"<http://e/s> <http://e/p> <http://e/o> ."#],
    ),
    (
        r#"{"@id": "http://e/o", "@reverse": {"http://e/p": [{"@id": "http://e/s"}]}}"#,
        &[r#"<http://e/s> <http://e/p> <http://e/o> ."#],
    ),
    (
        r#"{"@context": {"n": "@nest", "p": "http://e/p", "q": {"@id": "http://e/q", "@nest": "n"}}, "@id": "http://e/s", "n": {"p": 1, "n": {"q": 2}}}"#,
        &[
            r#"<http://e/s> <http://e/p> "1"^^<xsd:integer> ."#,
            r#"<http://e/s> <http://e/q> "2"^^<xsd:integer> ."#,
        ],
    ),
    (
        r#"{"@context": {"p": "http://e/p"}, "@id": "http://e/s", "p": 1, "@included": [{"@id": "http://e/t", "p": 2}]}"#,
        &[
            r#"<http://e/s> <http://e/p> "1"^^<xsd:integer> ."#,
            r#"<http://e/t> <http://e/p> "2"^^<xsd:integer> ."#,
        ],
    ),
    (
        r#"{"@context": {"p": {"@id": "http://e/p", "@type": "@json"}}, "@id": "http://e/s", "p": {"b": [1, 2.5, null], "a": "é\n€"}}"#,
        &[r#"<http://e/s> <http://e/p> "{\"a\":\"é\\n€\",\"b\":[1,2.5,null]}"^^<rdf:JSON> ."#],
    ),
    (
        r#"{"@context": {"p": {"@id": "http://e/p", "@type": "@json"}}, "@id": "http://e/s", "p": null}"#,
        &[r#"<http://e/s> <http://e/p> "null"^^<rdf:JSON> ."#],
    ),
    (
        r#"{"@context": {"p": {"@id": "http://e/p", "@container": "@graph"}}, "@id": "http://e/s", "p": {"@id": "http://e/x", "http://e/q": 1}}"#,
        &[r#"<http://e/s> <http://e/p> _:g ."#, r#"<http://e/x> <http://e/q> "1"^^<xsd:integer> _:g ."#],
    ),
    (
        r#"{"@context": {"p": {"@id": "http://e/p", "@container": ["@graph", "@id"]}}, "@id": "http://e/s", "p": {"http://e/g": {"@id": "http://e/x", "http://e/q": 1}}}"#,
        &[
            r#"<http://e/s> <http://e/p> <http://e/g> ."#,
            r#"<http://e/x> <http://e/q> "1"^^<xsd:integer> <http://e/g> ."#,
        ],
    ),
    (
        r#"{"@id": "http://e/g", "http://e/p": 1, "@graph": [{"@id": "http://e/x", "http://e/q": 1}]}"#,
        &[
            r#"<http://e/g> <http://e/p> "1"^^<xsd:integer> ."#,
            r#"<http://e/x> <http://e/q> "1"^^<xsd:integer> <http://e/g> ."#,
        ],
    ),
    (
        r#"{"@context": {"p": "http://e/p"}, "@id": "http://e/s", "p": {"@list": [[], [1]]}}"#,
        &[
            r#"<http://e/s> <http://e/p> _:a ."#,
            r#"_:a <rdf:first> <rdf:nil> ."#,
            r#"_:a <rdf:rest> _:b ."#,
            r#"_:b <rdf:first> _:c ."#,
            r#"_:b <rdf:rest> <rdf:nil> ."#,
            r#"_:c <rdf:first> "1"^^<xsd:integer> ."#,
            r#"_:c <rdf:rest> <rdf:nil> ."#,
        ],
    ),
    (
        r#"{"@context": [{"@protected": true, "p": "http://e/p"}, {"p": "http://e/p"}], "@id": "http://e/s", "p": 1}"#,
        &[r#"<http://e/s> <http://e/p> "1"^^<xsd:integer> ."#],
    ),
    (
        r#"{"@context": {"@vocab": "http://v/", "T": {"@context": {"p": "http://e/p"}}}, "@id": "http://e/s", "@type": "T", "p": 1, "k": {"@id": "http://e/t", "p": 2}}"#,
        &[
            r#"<http://e/s> <rdf:type> <http://v/T> ."#,
            r#"<http://e/s> <http://e/p> "1"^^<xsd:integer> ."#,
            r#"<http://e/s> <http://v/k> <http://e/t> ."#,
            r#"<http://e/t> <http://v/p> "2"^^<xsd:integer> ."#,
        ],
    ),
    (
        r#"{"@context": {"@vocab": "http://v/", "T": {"@context": {"@propagate": true, "p": "http://e/p"}}}, "@id": "http://e/s", "@type": "T", "p": 1, "k": {"@id": "http://e/t", "p": 2}}"#,
        &[
            r#"<http://e/s> <rdf:type> <http://v/T> ."#,
            r#"<http://e/s> <http://e/p> "1"^^<xsd:integer> ."#,
            r#"<http://e/s> <http://v/k> <http://e/t> ."#,
            r#"<http://e/t> <http://e/p> "2"^^<xsd:integer> ."#,
        ],
    ),
    (
        r#"{"@context": {"@vocab": "http://v/"}, "@id": "http://e/s", "k": {"@context": {"@propagate": false, "p": "http://e/p"}, "@id": "http://e/t", "p": 2, "k": {"@id": "http://e/u", "p": 3}}}"#,
        &[
            r#"<http://e/s> <http://v/k> <http://e/t> ."#,
            r#"<http://e/t> <http://e/p> "2"^^<xsd:integer> ."#,
            r#"<http://e/t> <http://v/k> <http://e/u> ."#,
            r#"<http://e/u> <http://v/p> "3"^^<xsd:integer> ."#,
        ],
    ),
    (
        r#"{"@context": {"@vocab": "http://v/", "k": {"@id": "http://e/k", "@context": {"p": "http://e/p"}}}, "@id": "http://e/s", "p": 1, "k": {"@id": "http://e/t", "p": 2}}"#,
        &[
            r#"<http://e/s> <http://v/p> "1"^^<xsd:integer> ."#,
            r#"<http://e/s> <http://e/k> <http://e/t> ."#,
            r#"<http://e/t> <http://e/p> "2"^^<xsd:integer> ."#,
        ],
    ),
    (
        r#"{"@context": {"@vocab": "x#"}, "@id": "http://e/s", "p": 1}"#,
        &[r#"<http://e/s> <http://b/d/x#p> "1"^^<xsd:integer> ."#],
    ),
    (
        r#"{"@context": {"@vocab": ""}, "@id": "http://e/s", "p": 1}"#,
        &[r#"<http://e/s> <http://b/d/docp> "1"^^<xsd:integer> ."#],
    ),
    (r#"{"@context": {"@base": null}, "@id": "s", "http://e/p": 1}"#, &[]),
    (
        r#"{"@context": {"e": "http://e/"}, "@id": "e:s", "e:p": {"@id": "e:o"}}"#,
        &[r#"<http://e/s> <http://e/p> <http://e/o> ."#],
    ),
    (
        r#"{"@context": {"e": "http://e/x"}, "@id": "e:s", "http://e/p": 1}"#,
        &[r#"<e:s> <http://e/p> "1"^^<xsd:integer> ."#],
    ),
    (
        r#"{"@context": {"e": {"@id": "http://e/x", "@prefix": true}}, "@id": "e:s", "http://e/p": 1}"#,
        &[r#"<http://e/xs> <http://e/p> "1"^^<xsd:integer> ."#],
    ),
    (
        r#"{"@context": {"@direction": "rtl", "p": "http://e/p"}, "@id": "http://e/s", "p": "x"}"#,
        &[r#"<http://e/s> <http://e/p> "x" ."#],
    ),
    (
        r#"{"@context": {"@vocab": "http://v/"}, "@id": "http://e/s", "@ignored": 1, "p": 1}"#,
        &[r#"<http://e/s> <http://v/p> "1"^^<xsd:integer> ."#],
    ),
    (
        r#"{"@id":"http://e/s","http://e/p":1,"http://e/p":2}"#,
        &[r#"<http://e/s> <http://e/p> "2"^^<xsd:integer> ."#],
    ),
    (r#"﻿{"@id":"http://e/s","http://e/p":1}"#, &[r#"<http://e/s> <http://e/p> "1"^^<xsd:integer> ."#]),
];

/// Documents that are none, and the names of their errors.
const REFUSED: &[(&str, &str)] = &[
    (
        r#"{"@context": [{"@protected": true, "p": "http://e/p"}, {"p": "http://e/q"}], "@id": "http://e/s", "p": 1}"#,
        "protected term redefinition",
    ),
    (
        r#"{"@context": [{"@protected": true, "p": "http://e/p"}, null], "@id": "http://e/s", "p": 1}"#,
        "invalid context nullification",
    ),
    (
        r#"{"@context": {"id": "@id"}, "@id": "http://e/s", "id": "http://e/t", "http://e/p": 1}"#,
        "colliding keywords",
    ),
    (
        r#"{"@context": {"p": "http://e/p"}, "@id": "http://e/s", "p": {"@value": [1]}}"#,
        "invalid value object value",
    ),
    (r#"{"@id": "http://e/s", "@type": 5}"#, "invalid type value"),
    (r#"{"@context": {"a": "b:x", "b": "a:y"}, "@id": "http://e/s", "a": 1}"#, "cyclic IRI mapping"),
    (r#"{"@context": {"@import": {}}, "@id": "http://e/s"}"#, "invalid @import value"),
];

#[test]
fn documents_say_what_is_written() {
    for (text, expected) in CASES {
        let expected = expected.join("\n").replace("<xsd:", "<http://www.w3.org/2001/XMLSchema#");
        let expected = expected.replace("<rdf:", "<http://www.w3.org/1999/02/22-rdf-syntax-ns#");
        let parser = oxttl::NQuadsParser::new().for_slice(&expected);
        let mut expected: Dataset = parser.map(|quad| quad.expect("our own quads")).collect();
        let mut found = quads(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        found.canonicalize(CanonicalizationAlgorithm::Unstable);
        expected.canonicalize(CanonicalizationAlgorithm::Unstable);
        assert!(found == expected, "{text}\nread\n{found}expected\n{expected}");
    }
}

#[test]
fn errors_have_the_names_of_the_specification() {
    for (text, code) in REFUSED {
        match quads(text) {
            Err(ReadError::Document(fault)) => assert_eq!(fault.code, *code, "{text}: {fault}"),
            other => panic!("{text}: {other:?}"),
        }
    }
}
