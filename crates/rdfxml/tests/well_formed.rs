//! Documents that are XML, and documents that are none. A document that is none is refused with
//! the place where it stops being XML.

mod support;

use support::{graph, refused};

/// Documents around which the root is written: `@` declares the prefixes, `|` is where it goes
/// wrong.
const NONE: &[&str] = &[
    "|",
    " |",
    "|text",
    "<v:C @/>|<v:D @/>",
    "<v:C @/>|text",
    "<v:C @/>|<![CDATA[]]>",
    "<v:C @/>|&amp;",
    "<v:C @>|</v:D>",
    "<v:C @>|",
    "<v:C @|",
    "<v:C @><v:p>|",
    "<v:C @><|",
    "|</v:C>",
    "<v:C @/>|</v:C>",
    "<|1 @/>",
    "<| v:C @/>",
    "<|v:C:D @/>",
    "<|v: @/>",
    "<v:C @ x|/>",
    "<v:C @ x=|1/>",
    "<v:C @ x='|<'/>",
    "<v:C @ xml:a='1'|xml:b='2'/>",
    "<v:C @ xml:a='1' |xml:a='2'/>",
    "<v:C xmlns:v='http://a/' |xmlns:v='http://a/'/>",
    "<v:C @ xmlns:w='http://v/' v:p='1' |w:p='2'/>",
    "<|w:C @/>",
    "<v:C @ |w:p='1'/>",
    "<|xmlns:C @/>",
    "<v:C @ |xmlns:w=''/>",
    "<v:C @ |xmlns:xml='http://a/'/>",
    "<v:C @ |xmlns:xmlns='http://a/'/>",
    "<v:C @ |xmlns:w='http://www.w3.org/XML/1998/namespace'/>",
    "<v:C @ |xmlns:w='http://www.w3.org/2000/xmlns/'/>",
    "<v:C @ |xmlns='http://www.w3.org/2000/xmlns/'/>",
    "<v:C @><v:p>|]]></v:p></v:C>",
    "<v:C @><v:p>|&undeclared;</v:p></v:C>",
    "<v:C @><v:p>&|;</v:p></v:C>",
    "<v:C @><v:p>&| </v:p></v:C>",
    "<v:C @><v:p>&|#0;</v:p></v:C>",
    "<v:C @><v:p>&|#xFFFE;</v:p></v:C>",
    "<v:C @><v:p>\u{1}</v:p></v:C>",
    "<v:C @><v:p>\u{FFFF}</v:p></v:C>",
    "<v:C @><!-- a --| b --></v:C>",
    "<v:C @><!-- a --|-></v:C>",
    "<v:C @><!-- a </v:C>|",
    "<v:C @><?|xml version='1.0'?></v:C>",
    "<v:C @><?|XML x?></v:C>",
    "<v:C @><?|a:b x?></v:C>",
    "<v:C @><?| x?></v:C>",
    "<v:C @><![CDATA[ ]]</v:C>|",
    "<v:C @>|<!x></v:C>",
    " <?|xml version='1.0'?><v:C @/>",
    "<?|xml?><v:C @/>",
    "<?xml version='1.0' |encodin='x'?><v:C @/>",
    "<?xml version='1.0' standalone=|'maybe'?><v:C @/>",
    "<v:C @/>|<!DOCTYPE v:C>",
    "<!DOCTYPE v:C>|<!DOCTYPE v:C><v:C @/>",
    "<!DOCTYPE v:C [|<!x>]><v:C @/>",
    "<!DOCTYPE d [<!ENTITY e '<v:p>'>]><v:C @>|&e;</v:p></v:C>",
    "<!DOCTYPE d [<!ENTITY e '</v:p>'>]><v:C @><v:p>|&e;</v:C>",
    "<!DOCTYPE d [<!ENTITY e '<v:p'>]><v:C @>|&e;/></v:C>",
    "<!DOCTYPE d [<!ENTITY e '<'>]><v:C @ v:p='|&e;'/>",
    "<!DOCTYPE d [<!ENTITY e '&f;'><!ENTITY f '&e;'>]><v:C @ v:p='|&e;'/>",
    "<!DOCTYPE d [<!ENTITY e '&f;'><!ENTITY f '&e;'>]><v:C @><v:p>|&e;</v:p></v:C>",
    "<!DOCTYPE d [<!ENTITY e SYSTEM 'file:///etc/passwd'>]><v:C @><v:p>|&e;</v:p></v:C>",
    "<!DOCTYPE d [<!ENTITY e SYSTEM 'x' NDATA n>]><v:C @ v:p='|&e;'/>",
    "<!DOCTYPE d SYSTEM 'file'><v:C @><v:p>|&e;</v:p></v:C>",
    "<!DOCTYPE d [<!ENTITY e '&#38;'>]><v:C @><v:p>|&e;</v:p></v:C>",
];

const DECLARED: &str = "xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:v='http://v/'";

#[test]
fn none() {
    let mut elsewhere = String::new();
    for document in NONE {
        let document = document.replace('@', DECLARED);
        let told = refused(document.replace('|', "").as_bytes());
        let Some(wrong_at) = document.find('|') else { continue };
        let place = format!("1:{}: ", document[..wrong_at].chars().count() + 1);
        if !told.starts_with(&place) {
            elsewhere.push_str(&format!("{told} in {document}\n"));
        }
    }
    assert!(elsewhere.is_empty(), "not where it is expected:\n{elsewhere}");
}

#[test]
fn xml() {
    for (document, triples) in [
        ("<?xml version='1.0'?>\n<!-- --><?p?>\n<v:C @/>\n<!-- --><?p ?>\n", 1),
        ("<?xml version='1.1' standalone='yes'?><!DOCTYPE v:C><v:C @/>", 1),
        (
            "<!DOCTYPE d [<!ELEMENT d (#PCDATA)> <!ATTLIST v:C v:p CDATA 'x' v:q CDATA 'y'>]><v:C @ v:p='1'/>",
            3,
        ),
        ("<!DOCTYPE d [<!ATTLIST v:C xmlns:w CDATA 'http://w/' w:p CDATA 'x'>]><v:C @/>", 2),
        ("<!DOCTYPE d [<!ENTITY e '<v:p/>&f;'><!ENTITY f ' <v:q/>'>]><v:C @>&e;&e;</v:C>", 3),
        ("<v:C @ v:p = '>' v:q\n=\n\"'\" ></v:C\n>", 3),
        ("<v:é水 @ v:ß='1'/>", 2),
        ("<v:C @><v:p xmlns:v='http://w/'/><v:p/></v:C>", 3),
        ("<v:C @><v:p>]]&gt; ]] > ]></v:p></v:C>", 2),
    ] {
        let document = document.replace('@', DECLARED);
        assert_eq!(graph(document.as_bytes()).len(), triples, "{document}");
    }
}

/// A text has the same triples, or the same fault, however few bytes come at once, and wherever
/// the window ends.
#[test]
fn pieces_of_any_size() {
    let node = "<v:C v:p='a&amp;b'>\r\n<v:q>x]]&gt;é<![CDATA[水]]>&#13;]]</v:q><!-- c --><?p d?></v:C>";
    for filler in (65_500..65_536).chain(131_000..131_010) {
        let document =
            format!("<rdf:RDF {DECLARED}><!--{}-->{}</rdf:RDF>", "x".repeat(filler), node.repeat(3));
        assert_eq!(graph(document.as_bytes()).len(), 9, "{filler}");
    }
    for cut in 0..node.len() {
        if let Some(part) = node.get(..cut) {
            refused(format!("<rdf:RDF {DECLARED}>{part}").as_bytes());
        }
    }
}
