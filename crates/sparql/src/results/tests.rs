use std::sync::Arc;

use snowmelt_graph::TermRef;

use super::*;
use crate::value::{LocalTerms, NoStore};

fn terms() -> Terms {
    Terms::new(Arc::new(LocalTerms::new()), "2011-01-10T14:45:13".parse().unwrap(), None, 1 << 20)
}

/// Two variables, three rows: an IRI and an unbound, two numbers, a tagged string and a quoted one.
fn solutions(format: ResultFormat) -> String {
    let mut terms = terms();
    let int = |v| snowmelt_graph::from_integer(v).unwrap();
    let third = terms.push(&crate::value::Value::Double((1.0 / 3.0).into()));
    let mut kept = [third];
    terms.keep(&mut kept);
    let cols = [
        vec![
            terms.intern(TermRef::Iri("http://e/a")),
            int(7),
            terms.intern(TermRef::tagged("chat noir", "fr")),
        ],
        vec![TermId::UNDEF, kept[0], terms.intern(TermRef::string("say \"hi\" <now>"))],
    ];
    let mut out = Vec::new();
    let mut writer = SolutionWriter::new(format, &["a".to_owned(), "long".to_owned()], &mut out).unwrap();
    writer.write(&mut terms, &mut NoStore, &cols, 3).unwrap();
    writer.finish().unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn solutions_in_every_format() {
    let json = solutions(ResultFormat::Json);
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    let rows = value["results"]["bindings"].as_array().unwrap();
    assert_eq!(rows.len(), 3);
    assert!(rows[0].get("long").is_none() && rows[0]["a"]["type"] == "uri");
    assert_eq!(rows[1]["a"]["datatype"], "http://www.w3.org/2001/XMLSchema#integer");
    assert_eq!(rows[1]["long"]["value"], "3.333333333333333E-1");
    assert_eq!(rows[2]["a"]["xml:lang"], "fr");
    assert_eq!(rows[2]["long"]["value"], "say \"hi\" <now>");

    let xml = solutions(ResultFormat::Xml);
    assert!(xml.contains("<uri>http://e/a</uri>") && xml.contains("say &quot;hi&quot; &lt;now&gt;"), "{xml}");
    let csv = solutions(ResultFormat::Csv);
    assert_eq!(
        csv,
        "a,long\r\nhttp://e/a,\r\n7,3.333333333333333E-1\r\nchat noir,\"say \"\"hi\"\" <now>\"\r\n"
    );
    let tsv = solutions(ResultFormat::Tsv);
    assert!(tsv.starts_with("?a\t?long\n<http://e/a>\t\n7\t"), "{tsv}");
    let table = solutions(ResultFormat::Table);
    let expected = "a              long\n─────────────  ────────────────────\n<http://e/a>\n7              3.333333333333333E-1\nchat noir @fr  say \"hi\" <now>\n(3 rows)\n";
    assert_eq!(table, expected);
}

/// Signs that mean something to a format come back from it.
#[test]
fn texts_survive_every_format() {
    use sparesults::{QueryResultsFormat, QueryResultsParser, SliceQueryResultsParserOutput};
    let text = "a\r\nb\tc \"d\" \\e\\n, f; <g> & 'h'\n";
    let written = |format| {
        let mut terms = terms();
        let cols = [vec![terms.intern(TermRef::string(text))]];
        let mut out = Vec::new();
        let mut writer = SolutionWriter::new(format, &["a".to_owned()], &mut out).unwrap();
        writer.write(&mut terms, &mut NoStore, &cols, 1).unwrap();
        writer.finish().unwrap();
        out
    };
    for (format, read) in [
        (ResultFormat::Json, QueryResultsFormat::Json),
        (ResultFormat::Xml, QueryResultsFormat::Xml),
        (ResultFormat::Tsv, QueryResultsFormat::Tsv),
    ] {
        let bytes = written(format);
        let parser = QueryResultsParser::from_format(read).for_slice(&bytes).unwrap();
        let SliceQueryResultsParserOutput::Solutions(solutions) = parser else { panic!("{read}") };
        let rows: Vec<_> = solutions.map(|row| row.unwrap().get("a").unwrap().to_string()).collect();
        assert_eq!(rows, [oxrdf::Literal::new_simple_literal(text).to_string()], "{read}");
    }
    let csv = String::from_utf8(written(ResultFormat::Csv)).unwrap();
    assert_eq!(csv, format!("a\r\n\"{}\"\r\n", text.replace('"', "\"\"")));
}

/// Triple terms and base directions come back; a reader of RDF 1.1 gets an error in their place.
#[test]
fn terms_of_rdf_1_2_survive_every_format() {
    use sparesults::{QueryResultsFormat, QueryResultsParser, SliceQueryResultsParserOutput};
    let node = |iri: &str| oxrdf::NamedNode::new_unchecked(iri);
    let rtl = oxrdf::BaseDirection::Rtl;
    let directed = oxrdf::Literal::new_directional_language_tagged_literal_unchecked("a \"b\"", "en", rtl);
    let inner = oxrdf::Triple::new(node("e:a"), node("e:p"), directed.clone());
    let outer = oxrdf::Triple::new(oxrdf::BlankNode::new_unchecked("b"), node("e:q"), inner);
    let expected = [oxrdf::Term::from(outer), directed.into()];
    let written = |format, version| {
        let mut terms = terms();
        let cols = vec![expected.iter().map(|term| terms.intern(term.as_ref().into())).collect()];
        let mut out = Vec::new();
        let writer = SolutionWriter::new(format, &["a".to_owned()], &mut out).unwrap();
        let mut writer = writer.of_version(version);
        writer.write(&mut terms, &mut NoStore, &cols, 2)?;
        writer.finish().unwrap();
        Ok::<_, QueryError>(out)
    };
    for (format, read) in [
        (ResultFormat::Json, QueryResultsFormat::Json),
        (ResultFormat::Xml, QueryResultsFormat::Xml),
        (ResultFormat::Tsv, QueryResultsFormat::Tsv),
    ] {
        let bytes = written(format, RdfVersion::Newest).unwrap();
        let parser = QueryResultsParser::from_format(read).for_slice(&bytes).unwrap();
        let SliceQueryResultsParserOutput::Solutions(solutions) = parser else { panic!("{read}") };
        let rows: Vec<_> = solutions.map(|row| row.unwrap().get("a").unwrap().clone()).collect();
        assert_eq!(rows, expected, "{read}: {}", String::from_utf8_lossy(&bytes));
        let refused = written(format, RdfVersion::Classic).unwrap_err();
        let shown = r#"<<( _:b <e:q> <<( <e:a> <e:p> "a \"b\""@en--rtl )>> )>> cannot be written as"#;
        assert!(refused.to_string().starts_with(shown), "{read}: {refused}");
    }
    let csv = String::from_utf8(written(ResultFormat::Csv, RdfVersion::Newest).unwrap()).unwrap();
    let triple = "<<( _:b <e:q> <<( <e:a> <e:p> \"\"a \\\"\"b\\\"\"\"\"@en--rtl )>> )>>";
    assert_eq!(csv, format!("a\r\n\"{triple}\"\r\n\"a \"\"b\"\"\"\r\n"));
}

/// Data of programs before may have texts without the tag that their datatype wants: a graph is
/// written so that it can be read again.
#[test]
fn graphs_have_no_untagged_texts() {
    let untagged = |datatype: &str| {
        let datatype =
            oxrdf::NamedNode::new_unchecked(format!("http://www.w3.org/1999/02/22-rdf-syntax-ns#{datatype}"));
        oxrdf::Literal::new_typed_literal("x", datatype)
    };
    let node = |iri: &str| oxrdf::NamedNode::new_unchecked(iri);
    let triple = oxrdf::Triple::new(node("e:a"), node("e:p"), untagged("langString"));
    let objects =
        [untagged("langString").into(), untagged("dirLangString").into(), oxrdf::Term::from(triple)];
    let formats = [ResultFormat::NTriples, ResultFormat::Turtle, ResultFormat::RdfXml, ResultFormat::TriG];
    for format in formats {
        let mut terms = terms();
        let [s, p] = ["e:s", "http://e.org/p"].map(|iri| terms.intern(node(iri).as_ref().into()));
        let objects: Vec<TermId> = objects.iter().map(|term| terms.intern(term.as_ref().into())).collect();
        let mut out = Vec::new();
        let mut writer = GraphWriter::new(format, &Namespaces::default(), &mut out).unwrap();
        let same = |id: TermId| vec![id; objects.len()];
        writer.write(&mut terms, &mut NoStore, [&same(s), &same(p), &objects]).unwrap();
        writer.finish().unwrap();
        let read = oxrdfio::RdfParser::from_format(format.graph().unwrap()).for_slice(&out);
        let read: Vec<String> = read.map(|quad| quad.unwrap().object.to_string()).collect();
        let text = "\"x\"@und";
        assert_eq!(read, [text, text, &format!("<<( <e:a> <e:p> {text} )>>")], "{format}");
    }
}

#[test]
fn booleans_and_wrong_formats() {
    let write = |format| {
        let mut out = Vec::new();
        write_boolean(format, true, &mut out).map(|()| String::from_utf8(out).unwrap())
    };
    assert_eq!(write(ResultFormat::Table).unwrap(), "yes\n");
    assert!(write(ResultFormat::Json).unwrap().contains("\"boolean\":true"));
    assert!(write(ResultFormat::Xml).unwrap().contains("<boolean>true</boolean>"));
    assert!(write(ResultFormat::Turtle).is_err());
    assert!(SolutionWriter::new(ResultFormat::NTriples, &[], &mut Vec::new()).is_err());
    assert!(GraphWriter::new(ResultFormat::Json, &Namespaces::default(), &mut Vec::new()).is_err());
}

#[test]
fn graphs_leave_out_what_is_no_triple() {
    for format in [ResultFormat::NTriples, ResultFormat::Turtle, ResultFormat::RdfXml] {
        let mut terms = terms();
        let iri = terms.intern(TermRef::Iri("http://e/a"));
        let seven = snowmelt_graph::from_integer(7).unwrap();
        let mut out = Vec::new();
        let mut writer = GraphWriter::new(format, &Namespaces::default(), &mut out).unwrap();
        let (s, p, o) = ([iri, seven, iri, iri], [iri, iri, seven, iri], [seven, iri, iri, TermId::UNDEF]);
        writer.write(&mut terms, &mut NoStore, [&s, &p, &o]).unwrap();
        writer.finish().unwrap();
        let parser = oxrdfio::RdfParser::from_format(format.graph().unwrap());
        let triples: Vec<_> = parser.for_slice(&out).map(Result::unwrap).collect();
        assert_eq!(triples.len(), 1, "{}", String::from_utf8_lossy(&out));
        assert_eq!(triples[0].object, oxrdf::Literal::from(7).into());
    }
}

#[test]
fn turtle_is_written_with_the_prefixes_that_are_given() {
    let mut prefixes = Namespaces::default();
    prefixes.set("e", "http://e/").unwrap();
    let written = |format| {
        let mut terms = terms();
        let iri = terms.intern(TermRef::Iri("http://e/a"));
        let mut out = Vec::new();
        let mut writer = GraphWriter::new(format, &prefixes, &mut out).unwrap();
        writer.write(&mut terms, &mut NoStore, [&[iri], &[iri], &[iri]]).unwrap();
        writer.finish().unwrap();
        String::from_utf8(out).unwrap()
    };
    assert_eq!(written(ResultFormat::Turtle), "@prefix e: <http://e/> .\ne:a e:a e:a .\n");
    assert!(written(ResultFormat::TriG).contains("e:a e:a e:a"));
    assert_eq!(written(ResultFormat::NTriples), "<http://e/a> <http://e/a> <http://e/a> .\n");
    assert!(!written(ResultFormat::RdfXml).contains("xmlns:e="));
}

#[test]
fn names_and_media_types_come_back() {
    for format in ResultFormat::ALL {
        assert_eq!(format.name().parse(), Ok(format));
        if format != ResultFormat::Table {
            assert_eq!(ResultFormat::from_media_type(format.media_type()), Some(format));
        }
    }
    assert!("yaml".parse::<ResultFormat>().is_err());
}

/// Prints nanoseconds per cell. Run with `--release -- --ignored --nocapture speed`.
#[test]
#[ignore = "a measurement"]
fn speed_of_writers() {
    let mut terms = terms();
    let rows = 4096;
    let strings: Vec<TermId> =
        (0..rows).map(|i| terms.intern(TermRef::string(&format!("label number {i} of many")))).collect();
    let iris: Vec<TermId> = (0..rows)
        .map(|i| terms.intern(TermRef::Iri(&format!("http://example.org/instances/thing{i}"))))
        .collect();
    let numbers: Vec<TermId> = (0..rows).map(|i| snowmelt_graph::from_integer(i).unwrap()).collect();
    let cols = [iris, strings, numbers];
    let names = ["thing".to_owned(), "label".to_owned(), "number".to_owned()];
    for format in [ResultFormat::Json, ResultFormat::Xml, ResultFormat::Csv, ResultFormat::Tsv] {
        let mut best = f64::INFINITY;
        let mut bytes = 0;
        for _ in 0..20 {
            let start = std::time::Instant::now();
            let mut out = Vec::new();
            let mut writer = SolutionWriter::new(format, &names, &mut out).unwrap();
            writer.write(&mut terms, &mut NoStore, &cols, rows as usize).unwrap();
            writer.finish().unwrap();
            bytes = out.len();
            best = best.min(start.elapsed().as_secs_f64() * 1e9 / (rows * 3) as f64);
        }
        println!("{format:>5}: {best:6.1} ns per cell, {bytes} bytes");
    }
}
