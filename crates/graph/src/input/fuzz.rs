//! Entry points of the fuzz targets of `/fuzz`: the scanner of a load, documents, and inline term
//! ids, on arbitrary bytes.

use std::sync::atomic::AtomicBool;

use oxrdfio::{JsonLdProfileSet, RdfFormat};
use oxttl::NQuadsParser;
use snowmelt_rdfxml::OddTerms;
use snowmelt_store::MemoryBudget;

use crate::input::document::parse_document;
use crate::input::intern::{Interner, Parsed};
use crate::input::ntriples::{LineOptions, parse_chunk};
use crate::input::options::DocumentOptions;
use crate::{Lexical, TermId, encode};

/// N-Triples and N-Quads. The scanner accepts no line that the grammar rejects.
pub fn n_triples(data: &[u8]) {
    let parse = |quads, lenient| {
        let chunk = Parsed { text: data.to_vec(), ..Parsed::default() };
        parse_chunk(
            &mut Interner::new(),
            0,
            chunk,
            None,
            LineOptions { quads, lenient, odd_terms: OddTerms::Refused },
        )
    };
    parse(false, true);
    parse(true, true);
    parse(false, false);
    if parse(true, false).fault.is_none() {
        for line in data.split(|b| *b == b'\n') {
            let wrong = NQuadsParser::new().for_slice(line).any(|quad| quad.is_err());
            assert!(!wrong, "a line that is none was accepted: {}", String::from_utf8_lossy(line));
        }
    }
}

/// The outcome of a document.
#[derive(PartialEq, Eq, Debug)]
struct Outcome {
    rows: usize,
    left_out: u64,
    faults: usize,
    ended: bool,
}

/// A document as a strict load reads it.
pub(super) fn options(format: RdfFormat) -> DocumentOptions {
    DocumentOptions {
        name: "document".into(),
        source: 0,
        format,
        base: Some("http://e/".into()),
        graph: None,
        is_one_graph: false,
        lenient: false,
        odd_terms: OddTerms::Refused,
        contexts: Default::default(),
        chunk_rows: 1 << 10,
        chunk_bytes: 1 << 20,
        longest: 1 << 20,
        namespaces: Default::default(),
        budget: MemoryBudget::new(64 << 20),
    }
}

/// Reads a document as a load does, in chunks of `chunk_rows` rows.
fn parse(format: RdfFormat, data: &[u8], chunk_rows: usize, lenient: bool) -> Outcome {
    let options = DocumentOptions { chunk_rows, lenient, ..options(format) };
    let (mut rows, mut left_out, mut faults) = (0, 0, 0);
    let ended = parse_document(
        data,
        options,
        &AtomicBool::new(false),
        || Ok(Parsed::default()),
        |parsed| {
            rows += parsed.rows.len();
            left_out += parsed.skipped;
            faults += usize::from(parsed.fault.is_some());
            Ok(())
        },
    );
    Outcome { rows, left_out, faults, ended: ended.is_ok() }
}

/// Reads Turtle, RDF/XML or JSON-LD as a load does, in small chunks and in one: both must give an
/// error or the same statements.
fn document(format: RdfFormat, data: &[u8]) {
    let (few, many) = (parse(format, data, 2, false), parse(format, data, 1 << 20, false));
    assert_eq!(few, many, "{format:?} gives other statements in other chunks");
    parse(format, data, 1 << 20, true);
}

/// Turtle and TriG. A lenient read of a sound document gives its statements; any document ends.
pub fn turtle(data: &[u8]) {
    for format in [RdfFormat::TriG, RdfFormat::Turtle] {
        document(format, data);
        let strict = parse(format, data, 1 << 20, false);
        let lenient = parse(format, data, 1 << 20, true);
        if strict.faults == 0 && strict.ended {
            assert_eq!(lenient, strict, "lenient reading gives something else");
        } else if strict.ended {
            assert!(
                lenient.ended && lenient.faults == 0 && lenient.left_out > 0,
                "{format:?}: {lenient:?} of {}",
                String::from_utf8_lossy(data)
            );
        }
    }
}

/// RDF/XML: checked as other documents, and a lenient read gives at least the rows of a strict one.
/// The text encoded in UTF-16 gives the same outcome.
pub fn rdf_xml(data: &[u8]) {
    document(RdfFormat::RdfXml, data);
    let strict = parse(RdfFormat::RdfXml, data, 1 << 20, false);
    let lenient = parse(RdfFormat::RdfXml, data, 1 << 20, true);
    assert!(lenient.rows >= strict.rows, "lenient reading gives less: {lenient:?} of {strict:?}");
    let Ok(text) = std::str::from_utf8(data) else { return };
    if text.contains("encoding") || text.contains('\0') {
        return;
    }
    let wide: Vec<u8> = std::iter::once('\u{FEFF}')
        .chain(text.strip_prefix('\u{FEFF}').unwrap_or(text).chars())
        .flat_map(|c| {
            c.encode_utf16(&mut [0; 2]).iter().flat_map(|unit| unit.to_le_bytes()).collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(parse(RdfFormat::RdfXml, &wide, 1 << 20, false), strict, "UTF-16 is read as something else");
}

/// JSON-LD.
pub fn json_ld(data: &[u8]) {
    document(RdfFormat::JsonLd { profile: JsonLdProfileSet::empty() }, data);
}

/// An id (eight bytes) and a lexical form (the rest). A lexical form that is encoded as an id is
/// written back unchanged.
pub fn term_ids(data: &[u8]) {
    let Some((id, text)) = data.split_first_chunk() else { return };
    let id = TermId(u64::from_le_bytes(*id));
    let mut lexical = Lexical::new();
    let written = lexical.write(id).map(str::to_owned);
    let Some(datatype) = id.fixed_datatype() else { return };
    let mut again = |text: &str| {
        if let Some(id) = encode(text, datatype).id() {
            assert_eq!(lexical.write(id), Some(text), "{id:?} of {datatype}");
        }
    };
    if let Ok(text) = std::str::from_utf8(text) {
        again(text);
    }
    if let Some(text) = written {
        again(&text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &str = r#"<e:a> <e:p> <e:b> .
<e:a> <e:p> "a \"label\" \u00e9"@en <e:g> . # a comment
_:x <e:p> "-12.50"^^<http://www.w3.org/2001/XMLSchema#decimal> .
<http://example.org/a%20b> <e:p> "2011-01-01T00:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> _:g .
"#;

    /// xorshift64*
    fn next(random: &mut u64) -> usize {
        (snowmelt_base::random::xorshift_star(random) >> 33) as usize
    }

    /// Rounds: 20 000, or as many as `SNOWMELT_ROUNDS` says.
    fn rounds() -> u64 {
        std::env::var("SNOWMELT_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(20_000)
    }

    #[test]
    fn no_text_brings_the_scanner_down() {
        let pieces: Vec<&[u8]> =
            vec![b"<", b">", b"\"", b"\\u", b"^^", b"@", b".", b"_:", b"\n", b" ", b"\xff", b"#"];
        let mut random = 7;
        n_triples(LINES.as_bytes());
        for _ in 0..rounds() {
            let mut text = LINES.as_bytes().to_vec();
            for _ in 0..1 + next(&mut random) % 4 {
                let at = next(&mut random) % text.len();
                let piece = pieces[next(&mut random) % pieces.len()];
                let over = (at + next(&mut random) % 3).min(text.len());
                text.splice(at..over, piece.iter().copied());
            }
            n_triples(&text);
        }
    }

    const DOCUMENTS: [&str; 3] = [
        "@prefix e: <e:> . @base <http://b/> . e:a e:p <x>, [ e:q ( 1 2.5 'x'@en ) ] ; a e:C . e:g { e:a e:p \"\"\"a\"b\"\"\"^^e:t }",
        "<?xml version='1.0'?><!DOCTYPE r [<!ENTITY e 'e:'>]><rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:e='e:'><e:C rdf:about='&e;a' e:q='1'><e:p rdf:parseType='Collection'><rdf:Description rdf:ID='x'/></e:p><e:p xml:lang='en'>a&lt;b</e:p></e:C></rdf:RDF>",
        "{\"@context\": {\"p\": {\"@id\": \"e:p\", \"@type\": \"@id\"}, \"@vocab\": \"e:\"}, \"@id\": \"e:a\", \"p\": [\"e:b\", {\"@id\": \"e:c\", \"q\": {\"@list\": [1, 2.5, true]}}], \"@graph\": [{\"@id\": \"_:x\", \"r\": {\"@value\": \"x\", \"@language\": \"en\"}}]}",
    ];

    #[test]
    fn no_document_brings_its_reader_down() {
        let readers = [turtle, rdf_xml, json_ld];
        let pieces: Vec<&[u8]> = vec![
            b"<",
            b">",
            b"\"",
            b"'",
            b"[",
            b"]",
            b"(",
            b")",
            b"{",
            b"}",
            b"&",
            b";",
            b":",
            b",",
            b"@",
            b"\\",
            b"\xff",
            b"&e;",
            b"<e:p>",
            b"\"@id\"",
            b"rdf:li",
            b"\\u0000",
            b"]]>",
            b"<!--",
            b"-->",
            b"<?p?>",
            b"<![CDATA[",
            b"&#",
            b"&#13;",
            b"xml:base='a/'",
            b"xml:lang=''",
            b"</e:p>",
            b"/>",
            b" rdf:parseType='Literal'",
            b"xmlns=''",
            b"xmlns:e='",
            b"<!ENTITY f '<e:p>'>",
            b"%",
            b"\xe2\x80",
        ];
        let mut random = 17;
        for (text, reader) in DOCUMENTS.iter().zip(readers) {
            reader(text.as_bytes());
            for _ in 0..rounds() / 10 {
                let mut text = text.as_bytes().to_vec();
                for _ in 0..1 + next(&mut random) % 4 {
                    let at = next(&mut random) % text.len();
                    let piece = pieces[next(&mut random) % pieces.len()];
                    let over = (at + next(&mut random) % 3).min(text.len());
                    text.splice(at..over, piece.iter().copied());
                }
                reader(&text);
            }
        }
    }

    /// Sound documents give the same statements when read leniently; reading the others ends.
    #[test]
    fn documents_of_the_w3c_bring_no_reader_down() {
        let shared = std::env::var_os("SNOWMELT_SHARED").map(std::path::PathBuf::from);
        let shared = shared
            .unwrap_or_else(|| std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"));
        let (mut open, mut read) = (vec![shared.join("w3c/rdf")], 0);
        while let Some(folder) = open.pop() {
            let Ok(entries) = std::fs::read_dir(&folder) else {
                eprintln!("skipped: {} is not there", folder.display());
                return;
            };
            for path in entries.map(|entry| entry.expect("a readable folder").path()) {
                let is_of_it = path.extension().is_some_and(|e| e == "ttl" || e == "trig");
                if path.is_dir() {
                    open.push(path);
                } else if is_of_it {
                    turtle(&std::fs::read(&path).expect("a readable file"));
                    read += 1;
                }
            }
        }
        assert!(read > 400, "{read}");
    }

    #[test]
    fn no_id_brings_its_reader_down() {
        let texts = [
            "1",
            "-0",
            "1.50",
            "true",
            "1e9",
            "2011-02-29",
            "2011-01-01T24:00:00Z",
            "NaN",
            "+INF",
            "0001",
            "",
        ];
        let mut random = 11;
        for _ in 0..rounds() {
            let mut id = (next(&mut random) as u64) << 33 | next(&mut random) as u64;
            id ^= (next(&mut random) as u64) << 60;
            let text = texts[next(&mut random) % texts.len()];
            term_ids(&[&id.to_le_bytes(), text.as_bytes()].concat());
        }
    }
}
