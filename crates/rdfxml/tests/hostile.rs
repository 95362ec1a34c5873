//! Documents that would take all memory or time: they are refused with a limit that is named, or
//! cost in proportion to their length.

mod support;

use std::io::Read;

use snowmelt_rdfxml::{OddTerms, OnFault, Options, RdfXml, ReadFault, ReadTerm, Sink};
use support::{graph, options, refused};

const RDF: &str = "xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:v='http://v/'";

/// Counts.
#[derive(Default)]
struct Count {
    triples: u64,
    bytes: u64,
}

impl Sink for Count {
    fn triple(&mut self, _: ReadTerm<'_>, predicate: &str, object: ReadTerm<'_>) {
        self.triples += 1;
        self.bytes += predicate.len() as u64;
        if let ReadTerm::Literal { lexical, .. } | ReadTerm::Iri(lexical) = object {
            self.bytes += lexical.len() as u64;
        }
    }

    fn dropped(&mut self, _: ReadFault) {}
}

/// The counts, the most memory held, and how it ended.
fn count(document: impl Read) -> (Count, usize, Result<(), String>) {
    let options = Options {
        base: Some("http://b/".into()),
        on_fault: OnFault::Stop,
        odd: OddTerms::Refused,
        longest: 1 << 20,
    };
    let mut reader = RdfXml::new(document, &options).expect("a base");
    let (mut count, mut held) = (Count::default(), 0);
    let ended = loop {
        match reader.step(&mut count) {
            Ok(true) => held = held.max(reader.held_bytes()),
            Ok(false) => break Ok(()),
            Err(error) => break Err(error.to_string()),
        }
    };
    (count, held, ended)
}

#[track_caller]
fn ends_by(document: &str, limit: &str) -> Count {
    let (count, held, ended) = count(document.as_bytes());
    let error = ended.expect_err("it is over a limit");
    assert!(error.contains(limit), "{error}");
    assert!(held < 128 << 20, "{held} bytes were held");
    count
}

#[test]
fn elements_in_elements() {
    for (open, close) in [
        ("<v:C><v:p>", "</v:p></v:C>"),
        ("<v:C><v:p rdf:parseType='Collection'>", "</v:p></v:C>"),
        ("<v:C xml:lang='en'><v:p xml:base='http://a/'>", "</v:p></v:C>"),
    ] {
        let nested = |n: usize| format!("<rdf:RDF {RDF}>{}{}</rdf:RDF>", open.repeat(n), close.repeat(n));
        let (_, _, ended) = count(nested(24_000).as_bytes());
        ended.unwrap();
        ends_by(&nested(50_000), "50000 levels");
    }
    let resources = format!("<v:C {RDF}>{}", "<v:p rdf:parseType='Resource'>".repeat(100_000));
    ends_by(&resources, "50000 levels");
    let literal = format!("<v:C {RDF}><v:p rdf:parseType='Literal'>{}", "<b>".repeat(100_000));
    ends_by(&literal, "50000 levels");
    let text = "http://v/".len() * 48_000;
    let shadows = format!("<rdf:RDF {RDF}>{}", "<v:C xmlns:w='http://w/'><v:p xmlns=''>".repeat(24_000));
    let (_, held, _) = count(shadows.as_bytes());
    assert!(held > text && held < 32 << 20, "{held}");
}

#[test]
fn bases_and_subjects_that_grow_with_the_levels() {
    let relative =
        format!("<rdf:RDF {RDF}>{}", "<v:C xml:base='aaaaaaaa/'><v:p xml:base='b/'>".repeat(24_000));
    ends_by(&relative, "limit");
    let long = format!("http://{}/", "a".repeat(60_000));
    let about = "<v:C rdf:about='x'><v:p>".repeat(24_000);
    ends_by(&format!("<rdf:RDF {RDF} xml:base='{long}'>{about}"), "limit");
}

#[test]
fn bombs_of_entities() {
    let mut doctype = String::from("<!DOCTYPE d [<!ENTITY e0 '0123456789'>");
    for i in 1..10 {
        let inner = format!("&e{};", i - 1).repeat(10);
        doctype.push_str(&format!("<!ENTITY e{i} '{inner}'>"));
    }
    for document in [format!("<v:C {RDF}><v:p>&e9;</v:p></v:C>"), format!("<v:C {RDF} v:p='&e9;'/>")] {
        ends_by(&format!("{doctype}]>{document}"), "e9 stands for more than 65536 bytes");
    }
    // each for itself is allowed
    let head = format!("<!DOCTYPE d [<!ENTITY e '{}'><!ATTLIST v:D v:p CDATA '&e;'>]>", "x".repeat(30_000));
    let many = |use_: &str| format!("{head}<rdf:RDF {RDF}>{}</rdf:RDF>", use_.repeat(20_000));
    for use_ in ["<v:C><v:p>&e;</v:p></v:C>", "<v:C v:p='&e;'/>", "<v:D/>"] {
        let told = ends_by(&many(use_), "100 times as long");
        assert!(told.bytes < 200 << 20, "{} bytes", told.bytes);
    }
    let one = format!("{head}<v:C {RDF}><v:p>{}</v:p></v:C>", "&e;".repeat(100));
    ends_by(&one, "1048576 bytes");
    let one = format!("{head}<v:C {RDF} v:p='{}'/>", "&e;".repeat(100));
    ends_by(&one, "1048576 bytes");
    let parameters = format!(
        "<!DOCTYPE d [<!ENTITY % p '{}'>{}]><v:C {RDF}/>",
        "<!-- -->".repeat(1000),
        "%p;".repeat(1000)
    );
    ends_by(&parameters, "65536 bytes");
    let long = format!("<!DOCTYPE d [{}]><v:C {RDF}/>", "<!-- -->".repeat(10_000));
    ends_by(&long, "DOCTYPE has more than 65536");
    let deep: String = (1..100).map(|i| format!("<!ENTITY f{i} '&f{};'>", i - 1)).collect();
    let deep = format!("<!DOCTYPE d [<!ENTITY f0 ''>{deep}]><v:C {RDF} v:p='&f99;'><v:p>&f99;</v:p></v:C>");
    ends_by(&deep, "64 levels");
    // as prefixes they are in use
    let prefixes = "<!DOCTYPE d [<!ENTITY xsd 'http://www.w3.org/2001/XMLSchema#'>]>";
    let uses = "<v:C><v:p rdf:datatype='&xsd;integer'>1</v:p></v:C>".repeat(50_000);
    let (told, _, ended) = count(format!("{prefixes}<rdf:RDF {RDF}>{uses}</rdf:RDF>").as_bytes());
    ended.unwrap();
    assert_eq!(told.triples, 100_000);
}

#[test]
fn prefixes_and_bases_as_bombs() {
    let long = "a".repeat(500_000);
    let names = format!("<rdf:RDF {RDF} xmlns:w='http://w/{long}/'>{}</rdf:RDF>", "<w:C/>".repeat(10_000));
    ends_by(&names, "100 times as long");
    let bases = "<v:C rdf:about='x'/>".repeat(10_000);
    ends_by(&format!("<rdf:RDF {RDF} xml:base='http://w/{long}/'>{bases}</rdf:RDF>"), "100 times as long");
}

#[test]
fn long_tokens() {
    let long = "x".repeat(2 << 20);
    for document in [
        format!("<v:C {RDF}><v:p>{long}</v:p></v:C>"),
        format!("<v:C {RDF}><v:p><![CDATA[{long}]]></v:p></v:C>"),
        format!("<v:C {RDF}><v:p rdf:parseType='Literal'>{}</v:p></v:C>", "<b>x</b>".repeat(1 << 18)),
        format!("<v:C {RDF} v:p='{long}'/>"),
        format!("<v:C {RDF} v:p='{}'/>", "&lt;".repeat(2 << 20)),
        format!("<v:C {RDF}><!--{long}--></v:C>"),
        format!("<v:{long} {RDF}/>"),
        format!("<v:C {RDF}><v:p>&{long};</v:p></v:C>"),
        format!("<v:C {RDF}>{} {long}", " ".repeat(2 << 20)),
    ] {
        let (_, _, ended) = count(document.as_bytes());
        assert!(ended.is_err(), "{}", &document[..200]);
    }
    // white space, comments and texts may be as many as they like
    let many = format!("<rdf:RDF {RDF}>{}</rdf:RDF>", " <!-- --> <v:C v:p='x'/>".repeat(100_000));
    assert_eq!(count(many.as_bytes()).0.triples, 200_000);
}

/// Many of one thing in one element. Work that grows with their square would take minutes.
#[test]
fn many_of_one_thing() {
    const MANY: usize = 200_000;
    let all = |one: &dyn Fn(usize) -> String| (0..MANY).map(one).collect::<String>();
    let own = all(&|i| format!("xmlns:w{i}='http://w{i}/' w{i}:p='' "));
    for (document, triples) in [
        (format!("<v:C {RDF} {}/>", all(&|i| format!("v:p{i}='' "))), MANY + 1),
        (
            format!(
                "<v:C {RDF} {}>{}</v:C>",
                all(&|i| format!("xmlns:w{i}='http://w/' ")),
                all(&|i| format!("<w{i}:p/>"))
            ),
            MANY + 1,
        ),
        (format!("<v:C {RDF} {own}/>"), MANY + 1),
        (format!("<v:C {RDF}><v:p rdf:parseType='Literal'><b {own}/></v:p></v:C>"), 2),
        (format!("<v:C {RDF}><v:p>{}</v:p></v:C>", "&lt;<!-- --><![CDATA[]]>".repeat(MANY)), 2),
        (format!("<rdf:RDF {RDF}>{}</rdf:RDF>", all(&|i| format!("<v:C rdf:ID='i{i}'/>"))), MANY),
    ] {
        let options = options(OnFault::Stop);
        let mut reader = RdfXml::new(document.as_bytes(), &options).expect("a base");
        let mut count = Count::default();
        while reader.step(&mut count).unwrap_or_else(|error| panic!("{error}")) {}
        assert_eq!(count.triples, triples as u64, "{}", &document[..200]);
    }
}

#[test]
fn one_byte_at_a_time() {
    struct Slow<'a>(&'a [u8]);
    impl Read for Slow<'_> {
        fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
            self.0.read(&mut out[..1.min(self.0.len())])
        }
    }
    let document = format!("<v:C {RDF} v:p='{}'/>", "x".repeat(300_000));
    let (told, _, ended) = count(Slow(document.as_bytes()));
    ended.unwrap();
    assert_eq!(told.triples, 2);
}

#[test]
fn files_outside_are_not_read() {
    let document = format!(
        "<!DOCTYPE d SYSTEM 'file:///dev/zero' [<!ENTITY e SYSTEM 'file:///etc/hostname'>]><v:C {RDF}/>"
    );
    assert_eq!(graph(document.as_bytes()).len(), 1);
    let used = document.replace("/>", "><v:p>&e;</v:p></v:C>");
    assert!(refused(used.as_bytes()).contains("another file"), "{used}");
}
