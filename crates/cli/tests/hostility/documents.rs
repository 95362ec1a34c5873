//! Documents that are put as graphs: deep ones, bombs, and plain large ones.

use std::io::{self, Write};

use crate::case::{Attack, Case, Right, Scale};

const TURTLE: &str = "text/turtle";
const N_TRIPLES: &str = "application/n-triples";
const RDF_XML: &str = "application/rdf+xml";
const JSON_LD: &str = "application/ld+json";

const RDF: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";

fn put(
    name: &'static str,
    kind: &'static str,
    right: Right,
    body: impl Fn(&Scale, &mut dyn Write) -> io::Result<()> + Send + Sync + 'static,
) -> Case {
    Case::new(name, Attack::Put(kind, Box::new(body)), right)
}

const STORED: Right = Right::Status(&[200, 201, 204]);
const BROKEN: Right = Right::Status(&[400]);

fn repeat(out: &mut dyn Write, n: usize, text: &str) -> io::Result<()> {
    (0..n).try_for_each(|_| out.write_all(text.as_bytes()))
}

/// `open` n times, the middle, and `close` as often.
fn nested(out: &mut dyn Write, n: usize, open: &str, middle: &str, close: &str) -> io::Result<()> {
    repeat(out, n, open)?;
    out.write_all(middle.as_bytes())?;
    repeat(out, n, close)
}

pub fn cases() -> Vec<Case> {
    let mut all = plain();
    all.extend(deep());
    all.extend(bombs());
    all
}

fn plain() -> Vec<Case> {
    vec![
        put("a large graph", N_TRIPLES, STORED, |s, out| {
            (0..s.triples).try_for_each(|i| {
                writeln!(out, "<urn:put:s{}> <urn:put:p{}> \"value {i} of a large upload\" .", i / 8, i % 8)
            })
        }),
        put("a large graph of new datatypes", N_TRIPLES, STORED, |s, out| {
            (0..s.triples / 4)
                .try_for_each(|i| writeln!(out, "<urn:put:s{i}> <urn:put:p> \"{i}\"^^<urn:type{i}> ."))
        }),
        put("a large graph of new languages", N_TRIPLES, STORED, |s, out| {
            (0..s.triples / 4)
                .try_for_each(|i| writeln!(out, "<urn:put:s{i}> <urn:put:p> \"{i}\"@en-x-a{i} ."))
        }),
        put("a large graph of new predicates", N_TRIPLES, STORED, |s, out| {
            (0..s.triples / 4).try_for_each(|i| writeln!(out, "<urn:put:s> <urn:put:p{i}> <urn:put:o> ."))
        }),
        put("a large graph of new prefixes", N_TRIPLES, STORED, |s, out| {
            (0..s.triples / 4).try_for_each(|i| {
                writeln!(out, "<http://host{i}.example/a/b#s> <urn:put:p> <http://host{i}.example/c/d#o> .")
            })
        }),
        put("a literal of 64 MiB", N_TRIPLES, Right::Never, |_, out| {
            out.write_all(b"<urn:a> <urn:b> \"")?;
            repeat(out, 1 << 16, &"x".repeat(1 << 10))?;
            out.write_all(b"\" .\n")
        }),
        put("an IRI of 64 MiB", TURTLE, Right::Never, |_, out| {
            out.write_all(b"<urn:a> <urn:b> <urn:")?;
            repeat(out, 1 << 16, &"x".repeat(1 << 10))?;
            out.write_all(b"> .\n")
        }),
        put("a line without an end", N_TRIPLES, BROKEN, |_, out| repeat(out, 1 << 16, &"x".repeat(1 << 10))),
        put("a literal without an end", TURTLE, BROKEN, |_, out| {
            out.write_all(b"<urn:a> <urn:b> \"\"\"")?;
            repeat(out, 1 << 16, &"x\"".repeat(1 << 9))
        }),
        put("a comment without an end", TURTLE, Right::Status(&[200, 201, 204, 400]), |_, out| {
            out.write_all(b"#")?;
            repeat(out, 1 << 16, &"x".repeat(1 << 10))
        }),
        put("bytes that are no text", TURTLE, BROKEN, |s, out| repeat(out, s.deep, "\u{0}\u{1}\u{fffd}")),
        put("an error in every line", N_TRIPLES, BROKEN, |s, out| {
            repeat(out, s.deep, "<urn:a> <urn:b> nothing .\n")
        }),
    ]
}

fn deep() -> Vec<Case> {
    vec![
        put("deep lists of properties in Turtle", TURTLE, STORED, |s, out| {
            out.write_all(b"<urn:a> <urn:p> ")?;
            nested(out, s.deep * 5, "[ <urn:p> ", "1", " ]")?;
            out.write_all(b" .\n")
        }),
        put("deep collections in Turtle", TURTLE, STORED, |s, out| {
            out.write_all(b"<urn:a> <urn:p> ")?;
            nested(out, s.deep * 5, "( ", "1", " )")?;
            out.write_all(b" .\n")
        }),
        put("open brackets in Turtle", TURTLE, BROKEN, |s, out| {
            out.write_all(b"<urn:a> <urn:p> ")?;
            repeat(out, s.deep * 50, "[ <urn:p> ( ")
        }),
        put("a long collection in Turtle", TURTLE, STORED, |s, out| {
            out.write_all(b"<urn:a> <urn:p> (")?;
            repeat(out, s.deep * 5, " 1")?;
            out.write_all(b" ) .\n")
        }),
        put("deep quoted triples in Turtle", TURTLE, BROKEN, |s, out| {
            nested(out, s.deep * 5, "<< ", "<urn:a> <urn:b> <urn:c>", " >>")
        }),
        put("deep elements in RDF/XML", RDF_XML, STORED, |s, out| {
            write!(out, "<rdf:RDF xmlns:rdf=\"{RDF}\" xmlns:e=\"urn:e:\">")?;
            nested(out, s.deep, "<e:C><e:p>", "", "</e:p></e:C>")?;
            out.write_all(b"</rdf:RDF>\n")
        }),
        put("deep XML literal in RDF/XML", RDF_XML, STORED, |s, out| {
            write!(
                out,
                "<rdf:RDF xmlns:rdf=\"{RDF}\" xmlns:e=\"urn:e:\"><e:C><e:p rdf:parseType=\"Literal\">"
            )?;
            nested(out, s.deep, "<e:x>", "", "</e:x>")?;
            out.write_all(b"</e:p></e:C></rdf:RDF>\n")
        }),
        put("deep arrays in JSON-LD", JSON_LD, Right::Status(&[200, 201, 204, 400, 415]), |s, out| {
            out.write_all(b"{\"@id\": \"urn:a\", \"urn:p\": ")?;
            nested(out, s.deep * 5, "[", "", "]")?;
            out.write_all(b"}")
        }),
        put("deep objects in JSON-LD", JSON_LD, Right::Status(&[200, 201, 204, 400, 415]), |s, out| {
            nested(out, s.deep * 5, "{\"urn:p\": ", "1", "}")
        }),
        put("deep lists in JSON-LD", JSON_LD, Right::Status(&[200, 201, 204, 400, 415]), |s, out| {
            out.write_all(b"{\"@id\": \"urn:a\", \"urn:p\": ")?;
            nested(out, s.deep, "{\"@list\": [", "", "]}")?;
            out.write_all(b"}")
        }),
        put(
            "contexts in contexts in JSON-LD",
            JSON_LD,
            Right::Status(&[200, 201, 204, 400, 415]),
            |s, out| {
                out.write_all(b"{\"@id\": \"urn:a\", \"@context\": ")?;
                nested(out, s.deep, "{\"p\": {\"@id\": \"urn:p\", \"@context\": ", "{}", "}}")?;
                out.write_all(b", \"p\": 1}")
            },
        ),
        put("a chain of terms in JSON-LD", JSON_LD, Right::Status(&[200, 201, 204]), |s, out| {
            out.write_all(b"{\"@id\": \"urn:a\", \"@context\": {\"@vocab\": \"urn:v:\"")?;
            (0..s.deep).try_for_each(|i| write!(out, ", \"t{i}\": \"t{}\"", i + 1))?;
            out.write_all(b"}, \"t0\": 1}")
        }),
        put(
            "a chain of types and prefixes in JSON-LD",
            JSON_LD,
            Right::Status(&[200, 201, 204]),
            |s, out| {
                out.write_all(b"{\"@id\": \"urn:a\", \"@context\": {\"@vocab\": \"urn:v:\"")?;
                (0..s.deep / 4).try_for_each(|i| {
                    write!(out, ", \"t{i}\": {{\"@id\": \"t{}:x\", \"@type\": \"t{}\"}}", i + 1, i + 2)
                })?;
                out.write_all(b"}, \"t0\": 1}")
            },
        ),
        put("a context from elsewhere in JSON-LD", JSON_LD, Right::Status(&[400, 415]), |_, out| {
            out.write_all(b"{\"@context\": \"http://127.0.0.1:1/context\", \"@id\": \"urn:a\", \"p\": 1}")
        }),
    ]
}

fn bombs() -> Vec<Case> {
    vec![
        put("entities of entities in RDF/XML", RDF_XML, BROKEN, |_, out| {
            out.write_all(b"<?xml version=\"1.0\"?><!DOCTYPE rdf:RDF [<!ENTITY a0 \"ha ha ha \">")?;
            (1..10)
                .try_for_each(|i| write!(out, "<!ENTITY a{i} \"{}\">", format!("&a{};", i - 1).repeat(10)))?;
            write!(
                out,
                "]><rdf:RDF xmlns:rdf=\"{RDF}\" xmlns:e=\"urn:e:\"><e:C><e:p>&a9;</e:p></e:C></rdf:RDF>"
            )
        }),
        put("entities in attributes in RDF/XML", RDF_XML, BROKEN, |_, out| {
            out.write_all(b"<?xml version=\"1.0\"?><!DOCTYPE rdf:RDF [<!ENTITY a0 \"ha-ha-ha-\">")?;
            (1..10)
                .try_for_each(|i| write!(out, "<!ENTITY a{i} \"{}\">", format!("&a{};", i - 1).repeat(10)))?;
            write!(
                out,
                "]><rdf:RDF xmlns:rdf=\"{RDF}\" xmlns:e=\"urn:e:\"><e:C rdf:about=\"urn:&a9;\" e:q=\"&a9;\"/></rdf:RDF>"
            )
        }),
        put("a long entity used often in RDF/XML", RDF_XML, Right::Never, |s, out| {
            write!(
                out,
                "<?xml version=\"1.0\"?><!DOCTYPE rdf:RDF [<!ENTITY a \"{}\">",
                "x".repeat(s.deep * 5)
            )?;
            write!(out, "]><rdf:RDF xmlns:rdf=\"{RDF}\" xmlns:e=\"urn:e:\"><e:C><e:p>")?;
            repeat(out, s.deep, "&a;")?;
            out.write_all(b"</e:p></e:C></rdf:RDF>")
        }),
        put("an entity of a file in RDF/XML", RDF_XML, BROKEN, |_, out| {
            out.write_all(
                b"<?xml version=\"1.0\"?><!DOCTYPE rdf:RDF [<!ENTITY a SYSTEM \"file:///etc/passwd\">",
            )?;
            write!(
                out,
                "]><rdf:RDF xmlns:rdf=\"{RDF}\" xmlns:e=\"urn:e:\"><e:C><e:p>&a;</e:p></e:C></rdf:RDF>"
            )
        }),
        put("a long prefix used often in Turtle", TURTLE, Right::Status(&[200, 201, 204]), |s, out| {
            writeln!(out, "@prefix p: <urn:{}> .", "x".repeat(s.deep * 5))?;
            (0..s.deep).try_for_each(|i| writeln!(out, "p:s{i} p:p p:o{i} ."))
        })
        .hog(),
        put("a long base used often in Turtle", TURTLE, Right::Status(&[200, 201, 204]), |s, out| {
            writeln!(out, "@base <http://example.org/{}/> .", "x".repeat(s.deep * 5))?;
            (0..s.deep).try_for_each(|i| writeln!(out, "<s{i}> <p> <o{i}> ."))
        })
        .hog(),
        put("a million attributes in RDF/XML", RDF_XML, Right::Status(&[200, 201, 204, 400]), |s, out| {
            write!(out, "<rdf:RDF xmlns:rdf=\"{RDF}\" xmlns:e=\"urn:e:\"><e:C rdf:about=\"urn:a\"")?;
            (0..s.deep).try_for_each(|i| write!(out, " e:p{i}=\"{i}\""))?;
            out.write_all(b"/></rdf:RDF>")
        }),
        put("many namespaces in RDF/XML", RDF_XML, STORED, |s, out| {
            write!(out, "<rdf:RDF xmlns:rdf=\"{RDF}\"")?;
            (0..s.deep).try_for_each(|i| write!(out, " xmlns:e{i}=\"urn:e{i}:\""))?;
            out.write_all(b"><e1:C rdf:about=\"urn:a\"/></rdf:RDF>")
        }),
    ]
}
