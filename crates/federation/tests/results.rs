//! Terms of answers, as each format writes them.

mod support;

use std::fmt::Write as _;
use std::io::Write as _;
use std::time::{Duration, Instant};

use snowmelt_federation::{AnswerPart, Fault};
use support::{Endpoint, JSON, all, ask, send, values};

const XML: &str = "application/sparql-results+xml";
const TSV: &str = "text/tab-separated-values";
const RDF: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";

/// An endpoint with one answer.
fn giving(media_type: &'static str, body: String) -> Endpoint {
    Endpoint::new(move |_, stream| send(stream, "200 OK", media_type, "", &body))
}

/// The terms of `?x`, in N-Triples.
fn terms(media_type: &'static str, body: String) -> Result<Vec<String>, Fault> {
    let endpoint = giving(media_type, body);
    let (rows, _) = all(&mut ask(&endpoint.federation(), &endpoint.address))?;
    let shown = |term: &Option<oxrdf::Term>| term.as_ref().map_or("-".to_owned(), ToString::to_string);
    Ok(rows.iter().map(|row| shown(&row[0])).collect())
}

/// A document with results.
fn document(results: &str) -> String {
    format!(
        "<?xml version=\"1.0\"?>\n<sparql xmlns=\"http://www.w3.org/2005/sparql-results#\" \
         xmlns:its=\"http://www.w3.org/2005/11/its\" its:version=\"2.0\">\n <head>\n  \
         <variable name=\"x\"/>\n  <link href=\"e\"/>\n </head>\n <results>\n{results}\n </results>\n</sparql>\n"
    )
}

/// A document with results whose only term is this element.
fn xml(element: &str) -> String {
    document(&format!("<result>\n  <binding name=\"x\">\n{element}\n</binding>\n</result>"))
}

#[track_caller]
fn is_read(element: &str, expected: &str) {
    assert_eq!(terms(XML, xml(element)).unwrap(), [expected], "{element}");
}

fn refusal(media_type: &'static str, body: String) -> String {
    match terms(media_type, body.clone()) {
        Err(error @ Fault::Malformed(_)) => error.to_string(),
        other => panic!("{body}: {other:?}"),
    }
}

#[test]
fn literals_in_xml_keep_their_white_space() {
    for (element, expected) in [
        ("<literal> a </literal>", "\" a \""),
        ("<literal> </literal>", "\" \""),
        ("<literal></literal>", "\"\""),
        ("<literal/>", "\"\""),
        ("<literal>\t\n</literal>", "\"\\t\\n\""),
        ("<literal xml:lang=\"en\">  x</literal>", "\"  x\"@en"),
        ("<literal>a\n\n</literal>", "\"a\\n\\n\""),
        ("<literal xml:space=\"preserve\">&#32;a&#13;</literal>", "\" a\\r\""),
        ("<literal datatype=\"e:d\"> 1 </literal>", "\" 1 \"^^<e:d>"),
        // XML 1.0, 2.11
        ("<literal>a\r\nb\rc</literal>", "\"a\\nb\\nc\""),
    ] {
        is_read(element, expected);
    }
    let triple = "<triple>\n<subject><uri>\n e:s </uri></subject><predicate><uri>e:p</uri></predicate>\
                  <object><literal> a </literal></object> </triple>";
    is_read(triple, "<<( <e:s> <e:p> \" a \" )>>");
}

#[test]
fn comments_instructions_and_cdata_are_as_xml_says() {
    for (element, expected) in [
        ("<literal>a<!-- c --> b</literal>", "\"a b\""),
        ("<literal><!-- c -->a<!----></literal>", "\"a\""),
        ("<literal>a<?pi <b> ?>b</literal>", "\"ab\""),
        ("<literal><![CDATA[ <a>&amp; ]]> b</literal>", "\" <a>&amp;  b\""),
        ("<literal><![CDATA[</literal>]]></literal>", "\"</literal>\""),
        ("<!-- <literal>b</literal> --><literal>&lt;&#x61;&gt;</literal><?x?>", "\"<a>\""),
        ("<uri>e:<!-- -->a&amp;b</uri>", "<e:a&b>"),
        ("<bnode> b1 </bnode>", "_:b1"),
    ] {
        is_read(element, expected);
    }
}

#[test]
fn attributes_have_their_namespaces() {
    let foreign = "xmlns:foo=\"http://www.w3.org/2005/11/its\"";
    is_read(&format!("<literal xml:lang=\"ar\" {foreign} foo:dir=\"rtl\">x</literal>"), "\"x\"@ar--rtl");
    is_read("<literal xml:lang=\"ar\" its:dir=\"ltr\">x</literal>", "\"x\"@ar--ltr");
    is_read("<literal xml:lang=\"ar\" xmlns:its=\"e:other\" its:dir=\"rtl\">x</literal>", "\"x\"@ar");
    is_read("<literal xml:lang=\"\">x</literal>", "\"x\"");
    is_read("<literal xmlns:e=\"e:e\" e:datatype=\"e:d\" dir=\"rtl\">x</literal>", "\"x\"");
    let prefixed = "<r:sparql xmlns:r=\"http://www.w3.org/2005/sparql-results#\"><r:head>\
                    <r:variable name=\"x\"/></r:head><r:results distinct=\"true\"><r:result>\
                    <r:binding name=\"x\"><r:literal>1</r:literal></r:binding></r:result><r:result/>\
                    </r:results></r:sparql>";
    assert_eq!(terms(XML, prefixed.to_owned()).unwrap(), ["\"1\"", "-"]);
    let bare = prefixed.replace("r:", "").replace("xmlns:r", "x");
    assert_eq!(terms(XML, bare).unwrap(), ["\"1\"", "-"]);
}

#[test]
fn elements_that_results_do_not_have_are_refused() {
    for element in [
        "",
        "x",
        "<literal>a</literal>x",
        "<literal>a</literal><literal>b</literal>",
        "<literal>a<b/></literal>",
        "<unbound/>",
        "<literal xmlns=\"e:other\">a</literal>",
        "<result/>",
        "<uri></uri>",
        "<uri>a b</uri>",
        "<bnode/>",
        "<literal its:dir=\"rtl\">a</literal>",
        "<literal xml:lang=\"en\" its:dir=\"up\">a</literal>",
        "<literal xml:lang=\"en\" datatype=\"e:d\">a</literal>",
        "<literal xml:lang=\"e n\">a</literal>",
        "<literal datatype=\"\">a</literal>",
        "<literal>&e;</literal>",
        "<triple/>",
        "<triple><subject><uri>e:s</uri></subject></triple>",
        "<triple><subject><literal>s</literal></subject></triple>",
        "<triple><uri>e:s</uri></triple>",
        "<triple><object/></triple>",
        "<triple><object><uri>e:s</uri></object><object><uri>e:s</uri></object></triple>",
    ] {
        refusal(XML, xml(element));
    }
    let whole = xml("<literal>1</literal>");
    for (from, to) in [
        ("<binding name", "<binding nome"),
        ("<binding name=\"x\"", "<binding name=\"y\""),
        ("<head>", "<head>x"),
        ("<results>", "<results>x"),
        ("<variable name=\"x\"/>", "<variable name=\"x\"/><variable name=\"x\"/>"),
        ("<variable name=\"x\"/>", "<variable name=\"x\">y</variable>"),
        ("<variable name=\"x\"/>", "<variable name=\"x y\"/>"),
        ("</results>", "</results><results/>"),
        ("</sparql>", "</sparql><sparql/>"),
        ("</binding>", "</binding><binding name=\"x\"><uri>e:e</uri></binding>"),
        ("2005/sparql-results", "2006/sparql-results"),
        ("<?xml version=\"1.0\"?>", "<!DOCTYPE sparql [<!ENTITY e \"x\">]>"),
    ] {
        let changed = whole.replacen(from, to, 1);
        assert_ne!(whole, changed, "{from}");
        refusal(XML, changed);
    }
    let boolean =
        "<sparql xmlns=\"http://www.w3.org/2005/sparql-results#\"><head/><boolean>true</boolean></sparql>";
    for (media_type, body) in [(XML, boolean), (TSV, "true\n")] {
        assert!(refusal(media_type, body.to_owned()).ends_with("it has a yes or no in place of rows"));
    }
}

/// A head of so many variables, the first of which is `x`.
fn wide(media_type: &str, columns: usize) -> String {
    let mut names = "x".to_owned();
    let (between, end) = match media_type {
        JSON => ("\",\"", "\"]},\"results\":{\"bindings\":[]}}"),
        XML => ("\"/><variable name=\"", "\"/></head><results/></sparql>"),
        _ => ("\t?", "\n"),
    };
    (1..columns).for_each(|n| write!(names, "{between}v{n}").unwrap());
    let begin = match media_type {
        JSON => "{\"head\":{\"vars\":[\"",
        XML => "<sparql xmlns=\"http://www.w3.org/2005/sparql-results#\"><head><variable name=\"",
        _ => "?",
    };
    format!("{begin}{names}{end}")
}

#[test]
fn columns_are_few() {
    for media_type in [JSON, XML, TSV] {
        assert!(terms(media_type, wide(media_type, 1)).unwrap().is_empty());
        assert!(terms(media_type, wide(media_type, 10_000)).unwrap().is_empty());
        let error = refusal(media_type, wide(media_type, 10_001));
        assert_eq!(error, "its answer cannot be read: it has more than 10000 columns", "{media_type}");
    }
}

#[test]
fn texts_of_faults_are_short() {
    let deep = format!("?x\n{}\n", "<<( <e:s> ".repeat(300_000));
    let long = "y".repeat(1 << 18);
    let uri = format!("{{\"type\":\"{long}\",\"value\":\"e:e\"}}");
    let json = format!("{{\"head\":{{\"vars\":[\"x\"]}},\"results\":{{\"bindings\":[{{\"x\":{uri}}}]}}}}");
    let wrong_row = format!("?x\n1\t{long}\n");
    let wrong_name = format!("?{long}\n");
    for (media_type, body) in [
        (TSV, deep),
        (TSV, wrong_row),
        (TSV, wrong_name),
        (TSV, format!("?x\n\"{long}\n")),
        (JSON, json),
        (XML, xml(&format!("<uri>e:\u{a0}\u{200f} {long}</uri>"))),
        (XML, xml(&format!("<{long}/>"))),
        (XML, xml(&format!("<literal>&{long};</literal>"))),
    ] {
        let error = terms(media_type, body).unwrap_err().to_string();
        assert!(error.chars().count() < 700, "{media_type}: {} bytes", error.len());
        assert!(error.chars().all(|c| !c.is_control() && c != '\u{200f}'), "{error}");
    }
}

#[test]
fn a_literal_without_a_tag_is_of_no_datatype_of_those_with_one() {
    let json = |datatype: &str| {
        let term = format!("{{\"type\":\"literal\",\"value\":\"v\",\"datatype\":\"{datatype}\"}}");
        let triple = format!(
            "{{\"type\":\"triple\",\"value\":{{\"subject\":{{\"type\":\"uri\",\"value\":\"e:s\"}},\
             \"predicate\":{{\"type\":\"uri\",\"value\":\"e:p\"}},\"object\":{term}}}}}"
        );
        [term, triple].map(|term| {
            format!("{{\"head\":{{\"vars\":[\"x\"]}},\"results\":{{\"bindings\":[{{\"x\":{term}}}]}}}}")
        })
    };
    let in_xml = |datatype: &str| {
        let term = format!("<literal datatype=\"{datatype}\">v</literal>");
        let triple = format!(
            "<triple><subject><uri>e:s</uri></subject><predicate><uri>e:p</uri></predicate>\
             <object>{term}</object></triple>"
        );
        [xml(&term), xml(&triple)]
    };
    let tsv = |datatype: &str| {
        [format!("?x\n\"v\"^^<{datatype}>\n"), format!("?x\n<<( <e:s> <e:p> \"v\"^^<{datatype}> )>>\n")]
    };
    for (datatype, is_sound) in [
        (format!("{RDF}langString"), false),
        (format!("{RDF}dirLangString"), false),
        (format!("{RDF}HTML"), true),
    ] {
        let bodies = [(JSON, json(&datatype)), (XML, in_xml(&datatype)), (TSV, tsv(&datatype))];
        for (media_type, bodies) in bodies {
            for body in bodies {
                if is_sound {
                    assert_eq!(terms(media_type, body).unwrap().len(), 1);
                } else {
                    let error = refusal(media_type, body);
                    assert!(error.contains("without a language tag"), "{media_type}: {error}");
                }
            }
        }
    }
    is_read(&format!("<literal xml:lang=\"en\" datatype=\"{RDF}langString\">v</literal>"), "\"v\"@en");
}

#[test]
fn triple_terms_in_tsv_are_as_deep_as_in_other_formats() {
    let nested =
        |levels: usize| format!("?x\n{}\"x\"@en{}\n", "<<( _:b <e:p>".repeat(levels), ")>> ".repeat(levels));
    for levels in [1, 63, 64] {
        let found = terms(TSV, nested(levels)).unwrap();
        assert_eq!(found[0].matches("<<( _:b <e:p> ").count(), levels);
        assert!(found[0].contains(" \"x\"@en )>>"), "{}", found[0]);
    }
    for levels in [65, 20_000] {
        let error = refusal(TSV, nested(levels));
        assert!(error.ends_with("its terms nest more than 64 levels"), "{error}");
    }
}

#[test]
fn values_in_tsv() {
    let table = "?x\n<e:a>\n\n  \"a\\tb\"@en--rtl \r\n12\n_:b\n1.5e0\n<<(<e:s><e:p><e:o>)>>\n\"<<( \"\n";
    let xsd = "http://www.w3.org/2001/XMLSchema#";
    let expected = [
        "<e:a>",
        "-",
        "\"a\\tb\"@en--rtl",
        &format!("\"12\"^^<{xsd}integer>"),
        "_:b",
        &format!("\"1.5e0\"^^<{xsd}double>"),
        "<<( <e:s> <e:p> <e:o> )>>",
        "\"<<( \"",
    ];
    assert_eq!(terms(TSV, table.to_owned()).unwrap(), expected);
    for wrong in [
        "?x\n1\t2\n",
        "?x\nx\n",
        "?x\n<<( <e:s> <e:p> <e:o>\n",
        "?x\n<<( \"s\" <e:p> <e:o> )>>\n",
        "?x\n<<( <e:s> _:b <e:o> )>>\n",
        "?x\n<<( <e:s> <e:p> )>>\n",
        "?x\n<<( <e:s> <e:p> <e:o> <e:o> )>>\n",
        "?x\n<<( <<( <e:s> <e:p> <e:o> )>> <e:p> <e:o> )>>\n",
        "x\n1\n",
        "?x\t?x\n1\t2\n",
    ] {
        refusal(TSV, wrong.to_owned());
    }
}

#[test]
fn rows_come_before_those_that_do_not() {
    for media_type in [JSON, XML, TSV] {
        let (begin, row) = match media_type {
            JSON => (
                "{\"head\":{\"vars\":[\"x\"]},\"results\":{\"bindings\":[",
                "{\"x\":{\"type\":\"literal\",\"value\":\"1\"}},",
            ),
            XML => (
                "<sparql xmlns=\"http://www.w3.org/2005/sparql-results#\"><head><variable name=\"x\"/></head><results>",
                "<result><binding name=\"x\"><literal>1</literal></binding></result>",
            ),
            _ => ("?x\n", "1\n"),
        };
        let endpoint = Endpoint::new(move |_, stream| {
            let head =
                format!("HTTP/1.1 200 OK\r\nContent-Type: {media_type}\r\nContent-Length: 99999\r\n\r\n");
            let _ = stream.write_all(format!("{head}{begin}").as_bytes());
            // each row in two parts
            let (first, last) = row.split_at(row.len() - 1);
            for part in [first, last, first, last] {
                std::thread::sleep(Duration::from_millis(50));
                let _ = stream.write_all(part.as_bytes());
            }
            std::thread::sleep(Duration::from_secs(60));
            false
        });
        let settings = snowmelt_federation::FederationSettings {
            patience: Duration::from_secs(60),
            ..endpoint.allowed()
        };
        let federation = snowmelt_federation::Federation::new(settings);
        let (mut answer, begun, mut come) = (ask(&federation, &endpoint.address), Instant::now(), Vec::new());
        while come.len() < 2 {
            assert!(begun.elapsed() < Duration::from_secs(10), "{media_type}: {} rows", come.len());
            if let AnswerPart::Rows(rows) = answer.next(Duration::from_millis(20)).unwrap() {
                come.extend(values(&rows));
            }
        }
        assert_eq!(come.len(), 2);
    }
}
