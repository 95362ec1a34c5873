//! Documents and their triples, construct by construct: XML's rules first, then those of RDF/XML.

mod support;

use snowmelt_rdfxml::{OddTerms, OnFault, Options, RdfXml, ReadFault, ReadTerm, Sink};
use support::{assert_same, graph, n_triples, options, read_with, refused};

const RDF: &str = "xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:v='http://v/'";

/// A document around nodes.
fn around(nodes: &str) -> String {
    format!("<rdf:RDF {RDF}>{nodes}</rdf:RDF>")
}

/// A document around properties of one node.
fn about(properties: &str) -> String {
    around(&format!("<rdf:Description rdf:about='http://e/s'>{properties}</rdf:Description>"))
}

#[track_caller]
fn says(document: &str, triples: &str) {
    let triples = triples.replace("_:", "_:x").replace("xsd:", "http://www.w3.org/2001/XMLSchema#");
    let triples = triples.replace("rdf:", "http://www.w3.org/1999/02/22-rdf-syntax-ns#");
    assert_same(graph(document.as_bytes()), n_triples(&triples), &document);
}

/// The one literal of `v:p` of a document around properties.
#[track_caller]
fn literal(property: &str, literal: &str) {
    says(&about(property), &format!("<http://e/s> <http://v/p> {literal} ."));
}

#[test]
fn white_space_in_attributes() {
    let node = around("<rdf:Description rdf:about='http://e/s' v:p='1\n2\t3&#10;4&#x9;5&#xD;6\r\n7'/>");
    says(&node, r#"<http://e/s> <http://v/p> "1 2 3\n4\t5\r6 7" ."#);
    let tokens = format!(
        "<!DOCTYPE d [<!ENTITY tab '&#9;'><!ATTLIST rdf:Description v:p NMTOKENS #IMPLIED
             v:q CDATA ' a '>]>{}",
        around("<rdf:Description rdf:about='http://e/s' v:p=' 1&tab; 2 '/>")
    );
    says(
        &tokens,
        "<http://e/s> <http://v/p> \"1 2\" . <http://e/s> <http://v/q> \" a \" ."
            .replace(" . <", " .\n<")
            .as_str(),
    );
}

#[test]
fn text_is_one_whatever_stands_in_it() {
    literal("<v:p>a<![CDATA[<b>&amp;]]>c</v:p>", r#""a<b>&amp;c""#);
    literal("<v:p><![CDATA[a]]><![CDATA[]]]]>&gt;</v:p>", r#""a]]>""#);
    literal("<v:p>a<!-- < & ]]> -->b<?pi x > ?>c</v:p>", r#""abc""#);
    literal("<v:p>a&#13;b&#xA;c\r\nd\re</v:p>", r#""a\rb\nc\nd\ne""#);
    literal("<v:p>&lt;&gt;&amp;&quot;&apos;&#233;&#x6C34;&#x10000;</v:p>", "\"<>&\\\"'é水𐀀\"");
    literal("<v:p> a </v:p>", r#"" a ""#);
    literal("<v:p></v:p>", r#""""#);
    literal("<v:p/>", r#""""#);
    literal("<v:p><!-- --></v:p>", r#""""#);
}

#[test]
fn entities_of_either_quote_and_with_elements() {
    let dtd = "<!DOCTYPE rdf:RDF [<!ENTITY one 'http://e/'><!ENTITY two \"&one;x\"><!ENTITY lt2 '&#38;#60;'>
        <!ENTITY node '<v:C rdf:about=\"&two;\"><v:q>a&lt2;</v:q></v:C>'> <!ENTITY one 'no'>]>";
    let nodes =
        "<rdf:Description rdf:about='&one;s'><v:p rdf:datatype=\"&one;t\">1&two;</v:p><v:r>&node;</v:r>
        </rdf:Description>";
    says(
        &format!("{dtd}{}", around(nodes)),
        r#"<http://e/s> <http://v/p> "1http://e/x"^^<http://e/t> .
        <http://e/s> <http://v/r> <http://e/x> .
        <http://e/x> <rdf:type> <http://v/C> .
        <http://e/x> <http://v/q> "a<" ."#,
    );
}

#[test]
fn languages() {
    let inner = "<v:p>a</v:p><v:p xml:lang=''>b</v:p><v:p xml:lang='DE-at'>c</v:p><v:p rdf:datatype='http://t/'>d</v:p>
        <v:q xml:lang='fr' v:r='e'/>";
    let nodes = format!("<rdf:Description rdf:about='http://e/s' xml:lang='en'>{inner}</rdf:Description>");
    says(
        &around(&nodes),
        r#"<http://e/s> <http://v/p> "a"@en .
        <http://e/s> <http://v/p> "b" .
        <http://e/s> <http://v/p> "c"@de-at .
        <http://e/s> <http://v/p> "d"^^<http://t/> .
        <http://e/s> <http://v/q> _:o .
        _:o <http://v/r> "e"@fr ."#,
    );
}

#[test]
fn bases() {
    let iri = |outer: &str, inner: &str, about: &str, expected: &str| {
        let document = format!(
            "<rdf:RDF {RDF} {outer}><rdf:Description {inner} {about}><v:p>x</v:p></rdf:Description></rdf:RDF>"
        );
        says(&document, &format!("<{expected}> <http://v/p> \"x\" ."));
    };
    iri("", "", "rdf:about='x'", "http://base/x");
    iri("", "", "rdf:about=''", "http://base/doc");
    iri("xml:base=''", "", "rdf:about='#x'", "http://base/doc#x");
    iri("xml:base='http://e/a/b'", "", "rdf:about='c'", "http://e/a/c");
    iri("xml:base='http://e/a/b#f'", "", "rdf:about=''", "http://e/a/b");
    iri("xml:base='http://e/a/b'", "xml:base='../c/'", "rdf:about='d'", "http://e/c/d");
    iri("xml:base='http://e/a/b'", "xml:base='c'", "rdf:ID='d'", "http://e/a/c#d");
    iri("xml:base='sub/'", "", "rdf:about='d'", "http://base/sub/d");
    iri("xml:base='http://e'", "", "rdf:about='d'", "http://e/d");
    iri("xml:base='http://e/a'", "xml:base=''", "rdf:ID='d'", "http://e/a#d");
    iri("xml:base='http://e/a/../b/./c/d'", "", "rdf:about='../g'", "http://e/b/g");
    iri("xml:base='http://e/a/../b/./c/d'", "", "rdf:about='g?../h'", "http://e/b/c/g?../h");
    iri("xml:base='http://e/x/..'", "xml:base='b/./c'", "rdf:about='../../g'", "http://e/g");
}

#[test]
fn encodings() {
    let text = about("<v:p>é水</v:p>");
    let expected = || n_triples("<http://e/s> <http://v/p> \"é水\" .");
    let utf_16: Vec<u8> = format!("\u{FEFF}{text}").encode_utf16().flat_map(u16::to_be_bytes).collect();
    assert_same(graph(&utf_16), expected(), &"UTF-16");
    assert_same(graph(format!("\u{FEFF}{text}").as_bytes()), expected(), &"with a mark");
    let latin = format!("<?xml version='1.0' encoding='ISO-8859-1'?>{}", about("<v:p>caf\u{E9}</v:p>"));
    let latin: Vec<u8> = latin.chars().map(|c| c as u8).collect();
    assert_same(graph(&latin), n_triples("<http://e/s> <http://v/p> \"café\" ."), &"ISO-8859-1");
}

#[test]
fn xml_literals_are_canonical() {
    let xml = |content: &str, text: &str| {
        let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        literal(
            &format!("<v:p rdf:parseType='Literal'>{content}</v:p>"),
            &format!("\"{text}\"^^<rdf:XMLLiteral>"),
        );
    };
    xml("", "");
    xml("a <b/> c", "a <b></b> c");
    xml("<b  y='2' x=\"1\" >t</b >", "<b x=\"1\" y=\"2\">t</b>");
    xml("<v:b><v:c/></v:b>", "<v:b xmlns:v=\"http://v/\"><v:c></v:c></v:b>");
    xml("<b v:x='1'/><v:b/>", "<b xmlns:v=\"http://v/\" v:x=\"1\"></b><v:b xmlns:v=\"http://v/\"></v:b>");
    xml(
        "<b xmlns='http://d/' xmlns:u='http://u/'><c xmlns=''/></b>",
        "<b xmlns=\"http://d/\"><c xmlns=\"\"></c></b>",
    );
    xml(
        "<b xmlns:a='http://z/' xmlns:z='http://a/' z:x='1' a:x='2' x='3' xml:lang='en'/>",
        "<b xmlns:a=\"http://z/\" xmlns:z=\"http://a/\" x=\"3\" z:x=\"1\" xml:lang=\"en\" a:x=\"2\"></b>",
    );
    xml("<!-- c --><?t  d ?><?u?><![CDATA[<]]>&gt;\"", "<!-- c --><?t d ?><?u?>&lt;&gt;\"");
    xml("<b x='&lt;&gt;&quot;&#10;'/>", "<b x=\"&lt;>&quot;&#xA;\"></b>");
    xml(
        "<v:a xmlns:v='http://other/'><v:b xmlns:v='http://v/'/></v:a>",
        "<v:a xmlns:v=\"http://other/\"><v:b xmlns:v=\"http://v/\"></v:b></v:a>",
    );
}

#[test]
fn other_parse_types_are_literals() {
    literal("<v:p rdf:parseType='other'>t<b/></v:p>", "\"t<b></b>\"^^<rdf:XMLLiteral>");
    literal("<v:p rdf:parseType='literal'/>", "\"\"^^<rdf:XMLLiteral>");
}

#[test]
fn objects_of_all_kinds() {
    says(
        &about(
            "<v:p rdf:resource='o'/><v:p rdf:nodeID='n'/><v:p v:q='1'/><v:p rdf:type='http://v/C'> </v:p>
            <v:p><v:C rdf:nodeID='n'/></v:p><v:p rdf:parseType='Resource'><v:q>2</v:q></v:p>
            <v:p rdf:datatype='http://t/'/><v:p rdf:resource='o' v:q='3'/>",
        ),
        r#"<http://e/s> <http://v/p> <http://base/o> .
        <http://e/s> <http://v/p> _:n .
        <http://e/s> <http://v/p> _:a .
        _:a <http://v/q> "1" .
        <http://e/s> <http://v/p> _:b .
        _:b <rdf:type> <http://v/C> .
        _:n <rdf:type> <http://v/C> .
        <http://e/s> <http://v/p> _:c .
        _:c <http://v/q> "2" .
        <http://e/s> <http://v/p> ""^^<http://t/> .
        <http://base/o> <http://v/q> "3" ."#,
    );
}

#[test]
fn lists_and_members() {
    says(
        &around(
            "<rdf:Bag rdf:about='http://e/s'><rdf:li>a</rdf:li><rdf:_5>b</rdf:_5><rdf:li rdf:parseType='Resource'>
            <rdf:li>c</rdf:li></rdf:li></rdf:Bag>",
        ),
        r#"<http://e/s> <rdf:type> <rdf:Bag> .
        <http://e/s> <rdf:_1> "a" .
        <http://e/s> <rdf:_5> "b" .
        <http://e/s> <rdf:_2> _:r .
        _:r <rdf:_1> "c" ."#,
    );
    says(
        &about(
            "<v:p rdf:parseType='Collection'><v:C rdf:about='http://e/1'><v:p rdf:parseType='Collection'/></v:C>
            <rdf:Description/></v:p>",
        ),
        r#"<http://e/s> <http://v/p> _:1 .
        _:1 <rdf:first> <http://e/1> .
        <http://e/1> <rdf:type> <http://v/C> .
        <http://e/1> <http://v/p> <rdf:nil> .
        _:1 <rdf:rest> _:2 .
        _:2 <rdf:first> _:b .
        _:2 <rdf:rest> <rdf:nil> ."#,
    );
}

#[test]
fn statements_with_names() {
    for (property, object) in [
        ("<v:p rdf:ID='i'>x</v:p>", "\"x\""),
        ("<v:p rdf:ID='i' rdf:resource='http://o/'/>", "<http://o/>"),
        ("<v:p rdf:ID='i'><rdf:Description rdf:about='http://o/'/></v:p>", "<http://o/>"),
        ("<v:p rdf:ID='i' rdf:parseType='Resource'/>", "_:o"),
        ("<v:p rdf:ID='i' rdf:parseType='Collection'/>", "<rdf:nil>"),
        ("<v:p rdf:ID='i' rdf:parseType='Literal'><b/></v:p>", "\"<b></b>\"^^<rdf:XMLLiteral>"),
    ] {
        let name = "<http://base/doc#i>";
        let triples = format!(
            "<http://e/s> <http://v/p> {object} .\n{name} <rdf:type> <rdf:Statement> .\n\
             {name} <rdf:subject> <http://e/s> .\n{name} <rdf:predicate> <http://v/p> .\n{name} <rdf:object> {object} ."
        );
        says(&about(property), &triples);
    }
}

#[test]
fn roots_and_names_of_old() {
    let node = format!("<v:C {RDF} about='http://e/s' type='http://v/D' xml:space='preserve' xmlfoo='x'/>");
    says(&node, "<http://e/s> <rdf:type> <http://v/C> .\n<http://e/s> <rdf:type> <http://v/D> .");
    says(&around(""), "");
    let default = "<RDF xmlns='http://www.w3.org/1999/02/22-rdf-syntax-ns#'><Description ID='x'/></RDF>";
    says(default, "");
}

/// Documents that are XML and no RDF: the place, and a word of what is told.
const NO_RDF: &[(&str, &str, &str)] = &[
    ("<rdf:RDF @ v:p='x'/>", "1:1", "v:p"),
    ("<rdf:RDF @ rdf:about='x'/>", "1:1", "rdf:about"),
    ("<rdf:RDF @>\n <rdf:li/></rdf:RDF>", "2:2", "rdf:li"),
    ("<rdf:RDF @><rdf:RDF/></rdf:RDF>", "1:", "rdf:RDF"),
    ("<rdf:RDF @>text</rdf:RDF>", "1:", "text"),
    ("<v:C @>text</v:C>", "1:", "text"),
    ("<v:C @><rdf:Description/></v:C>", "1:", "rdf:Description"),
    ("<v:C @><v:p><v:C/>text</v:p></v:C>", "1:", "text"),
    ("<v:C @><v:p>text<v:C/></v:p></v:C>", "1:", "text"),
    ("<v:C @><v:p><v:C/><v:C/></v:p></v:C>", "1:", "one object"),
    ("<v:C @><v:p rdf:resource='x'>text</v:p></v:C>", "1:", "text"),
    ("<v:C @><v:p rdf:resource='x'><v:C/></v:p></v:C>", "1:", "one object"),
    ("<v:C @><v:p rdf:resource='x' rdf:nodeID='y'/></v:C>", "1:", "one of"),
    ("<v:C @><v:p rdf:resource='x' rdf:datatype='y'/></v:C>", "1:", "rdf:datatype"),
    ("<v:C @><v:p rdf:datatype='y'><v:C/></v:p></v:C>", "1:", "rdf:datatype"),
    ("<v:C @><v:p rdf:about='y'/></v:C>", "1:", "rdf:about"),
    ("<v:C @><v:p rdf:parseType='Literal' v:q='y'/></v:C>", "1:", "v:q"),
    ("<v:C @><v:p rdf:parseType='Resource' rdf:resource='y'/></v:C>", "1:", "rdf:resource"),
    ("<v:C @><v:p rdf:parseType='Collection'>x</v:p></v:C>", "1:", "text"),
    ("<v:C @ rdf:resource='x'/>", "1:", "rdf:resource"),
    ("<v:C @ rdf:parseType='Resource'/>", "1:", "rdf:parseType"),
    ("<v:C @ rdf:li='x'/>", "1:", "rdf:li"),
    ("<v:C @ rdf:bagID='x'/>", "1:", "rdf:bagID"),
    ("<v:C @ rdf:aboutEach='x'/>", "1:", "rdf:aboutEach"),
    ("<v:C @ p='x'/>", "1:", "namespace"),
    ("<v:C @ about='x' rdf:about='y'/>", "1:", "twice"),
    ("<v:C @ rdf:ID='x' rdf:about='y'/>", "1:", "one of"),
    ("<v:C @ rdf:ID='1'/>", "1:", "rdf:ID"),
    ("<v:C @ rdf:ID='a:b'/>", "1:", "rdf:ID"),
    ("<v:C @ rdf:nodeID='a b'/>", "1:", "rdf:nodeID"),
    ("<v:C @ rdf:about='http://a b/'/>", "1:", "no IRI"),
    ("<v:C @ xml:base='http://a b/'/>", "1:", "xml:base"),
    ("<v:C @ xml:lang='a b'/>", "1:", "language"),
    ("<v:C @ rdf:ID='x'>\n<v:p rdf:ID='x'/></v:C>", "2:1", "twice"),
    ("<C rdf:about='x' @/>", "1:", "namespace"),
    ("<w:C xmlns:w='relative' @/>", "1:", "no IRI"),
    ("<v:C @><xml:p/></v:C>", "1:", "no property"),
    ("<v:C @ rdf:annotation='x'/>", "1:", "may not be on a node"),
    ("<v:C @><v:p rdf:annotation='http://e/x' rdf:annotationNodeID='x'/></v:C>", "1:", "one of"),
    ("<v:C @ rdf:version='1.2' xmlns:its='http://www.w3.org/2005/11/its' its:dir='up'/>", "1:", "ltr or rtl"),
    ("<v:C @ rdf:version='1.2'><v:p rdf:parseType='Triple'/></v:C>", "1:", "one triple"),
    (
        "<v:C @ rdf:version='1.2'><v:p rdf:parseType='Triple'><v:C/><v:C/></v:p></v:C>",
        "1:",
        "one triple of one subject",
    ),
];

#[test]
fn what_is_no_rdf_is_refused_with_its_place() {
    for (document, place, why) in NO_RDF {
        let document = document.replace('@', RDF);
        let told = refused(document.as_bytes());
        assert!(told.starts_with(place) && told.contains(why), "{told} in {document}");
    }
}

#[test]
fn what_is_no_rdf_is_dropped_and_the_rest_is_read() {
    let good = "<v:C rdf:about='http://good/'><v:p>good</v:p></v:C>";
    for (document, _, why) in NO_RDF {
        let Some(node) = document.strip_prefix("<v:C @") else { continue };
        let document = around(&format!("{good}<v:C {node}{}", good.replace("good/", "later/")));
        let (read, ended) = read_with(document.as_bytes(), &options(OnFault::Drop));
        ended.unwrap_or_else(|error| panic!("{error} in {document}"));
        for name in ["good", "later"] {
            let of = format!("<http://{name}/>");
            let found = read.graph.iter().filter(|triple| triple.subject.to_string() == of).count();
            assert_eq!(found, 2, "{name} in {document}");
        }
        // names may come again, and a base or language that nothing uses costs nothing
        let is_harmless =
            *why == "twice" && node.contains("rdf:ID") || ["xml:base", "language"].contains(why);
        assert_eq!(read.dropped.is_empty(), is_harmless, "{:?} in {document}", read.dropped);
    }
}

#[test]
fn only_the_triples_that_cannot_be_read_are_dropped() {
    let document = around(
        "<rdf:Description rdf:about='http://a b/'><v:p>lost</v:p><v:q><v:C rdf:about='http://kept/'/></v:q></rdf:Description>
        <rdf:Description rdf:about='http://e/s'><v:p xml:lang='x y'>lost</v:p><v:p>kept</v:p><v:q rdf:resource='<'/>
        <v:r rdf:datatype=' '>lost</v:r></rdf:Description>"
            .replace("'<'", "'&lt;'")
            .as_str(),
    );
    let (read, ended) = read_with(document.as_bytes(), &options(OnFault::Drop));
    ended.unwrap();
    let expected = n_triples(
        "<http://kept/> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://v/C> .
        <http://e/s> <http://v/p> \"kept\" .",
    );
    assert_same(read.graph, expected, &document);
    let lines: Vec<_> = read.dropped.iter().map(|fault| fault.line).collect();
    assert_eq!(lines, [1, 1, 2, 2, 3], "{:?}", read.dropped);
}

#[test]
fn what_is_no_xml_ends_it_in_any_case() {
    let document =
        around("<rdf:Description rdf:about='http://e/s'><v:p>read</v:p></rdf:Description>\n <v:C></v:D>");
    let (read, ended) = read_with(document.as_bytes(), &options(OnFault::Drop));
    let error = ended.unwrap_err().to_string();
    assert!(error.starts_with("2:7: ") && error.contains("</v:C>"), "{error}");
    assert_eq!(read.triples, 2);
}

#[test]
fn odd_terms_are_kept_where_they_may_be() {
    let document = about(
        "<v:p xml:lang='zh-classical1'>x</v:p><v:p rdf:resource='a#b#c'/><v:p rdf:resource='http://o/[x]'/>
        <v:p rdf:datatype='http://t/#a#b'>y</v:p><v:p rdf:resource='http://a b/'/><v:p xml:lang='a b'>z</v:p>",
    );
    let keeping = Options { odd: OddTerms::Kept, ..options(OnFault::Drop) };
    let mut read = Terms::default();
    let mut reader = RdfXml::new(document.as_bytes(), &keeping).expect("a base");
    while reader.step(&mut read).unwrap_or_else(|error| panic!("{error}")) {}
    assert_eq!(read.0, ["x@zh-classical1", "http://base/a#b#c", "http://o/[x]", "y^^http://t/#a#b"]);
    assert_eq!(read.1, 2);
    let (read, _) = read_with(document.as_bytes(), &options(OnFault::Drop));
    assert_eq!((read.triples, read.dropped.len()), (0, 6));
}

/// Objects as they come, and how many were dropped.
#[derive(Default)]
struct Terms(Vec<String>, usize);

impl Sink for Terms {
    fn triple(&mut self, _: ReadTerm<'_>, _: &str, object: ReadTerm<'_>) {
        self.0.push(match object {
            ReadTerm::Iri(text) | ReadTerm::Blank(text) => text.to_owned(),
            ReadTerm::Literal { lexical, language: Some(tag), .. } => format!("{lexical}@{tag}"),
            ReadTerm::Literal { lexical, datatype, .. } => format!("{lexical}^^{datatype}"),
            ReadTerm::Triple(triple) => format!("{triple:?}"),
        });
    }

    fn dropped(&mut self, _: ReadFault) {
        self.1 += 1;
    }
}
