//! Any terms as results, in every format: what is written is read back as the same terms, or
//! was refused.

use std::sync::Arc;

use oxrdf::{Literal, NamedOrBlankNode, Term, Triple};
use oxrdfio::{RdfFormat, RdfParser};
use oxsdatatypes::DateTime;
use snowmelt_graph::{Namespaces, TermId, TermRef};
use sparesults::{QueryResultsFormat, QueryResultsParser, SliceQueryResultsParserOutput};

use crate::QueryError;
use crate::results::{GraphWriter, ResultFormat, SolutionWriter};
use crate::value::{LocalTerms, NoStore, TermBuffer, Terms};

/// Bytes as terms: a byte of kind, one of length, text. Each is written beside an unbound
/// variable and as an object.
///
/// # Panics
/// When something is read back otherwise than it was written.
pub fn results(data: &[u8]) {
    let mut terms = Terms::new(Arc::new(LocalTerms::new()), DateTime::MIN, None, 1 << 20);
    let mut texts = texts(data);
    while let Some((kind, text)) = texts.next() {
        let (_, other) = texts.clone().next().unwrap_or_default();
        let rdf = |name| format!("http://www.w3.org/1999/02/22-rdf-syntax-ns#{name}");
        let iri = text.strip_prefix("rdf").map_or_else(|| format!("http://e/{text}"), rdf);
        let id = terms.intern(match kind % 8 {
            0 => TermRef::Iri(&iri),
            1 => TermRef::Iri(&text),
            2 => TermRef::Blank("b7"),
            3 => TermRef::tagged(&text, "en-gb"),
            4 => TermRef::tagged(&text, &other),
            5 => TermRef::typed(&text, &other),
            6 => TermRef::typed(&text, XSD[usize::from(kind / 8) % XSD.len()]),
            _ => TermRef::string(&text),
        });
        for format in ResultFormat::ALL {
            solutions(&mut terms, format, id);
            graph(&mut terms, format, &iri, id);
        }
    }
}

const XSD: [&str; 6] = [
    "http://www.w3.org/2001/XMLSchema#integer",
    "http://www.w3.org/2001/XMLSchema#decimal",
    "http://www.w3.org/2001/XMLSchema#double",
    "http://www.w3.org/2001/XMLSchema#boolean",
    "http://www.w3.org/1999/02/22-rdf-syntax-ns#XMLLiteral",
    "http://www.w3.org/1999/02/22-rdf-syntax-ns#li",
];

fn texts(data: &[u8]) -> impl Iterator<Item = (u8, String)> + Clone {
    let mut rest = data;
    std::iter::from_fn(move || {
        let [kind, len, text @ ..] = rest else { return None };
        let len = usize::from(*len % 32).min(text.len());
        rest = &text[len..];
        Some((*kind, String::from_utf8_lossy(&text[..len]).into_owned()))
    })
}

/// Whether a result was written; refusals are of one kind.
fn written(result: Result<(), QueryError>) -> bool {
    match result {
        Ok(()) => true,
        Err(QueryError::Unwritable { .. }) => false,
        Err(other) => panic!("memory is writable: {other}"),
    }
}

fn term(terms: &Terms, id: TermId) -> Term {
    let mut buffer = TermBuffer::default();
    let term = terms.term(id, &mut buffer).expect("a term that was just made");
    same_case(oxrdf::TermRef::from(term).into_owned())
}

/// Language tags are the same in any case.
fn same_case(term: Term) -> Term {
    match term {
        Term::Literal(l) if l.language().is_some() => {
            let tag = l.language().unwrap_or_default().to_ascii_lowercase();
            match l.direction() {
                None => Literal::new_language_tagged_literal_unchecked(l.value(), tag).into(),
                Some(to) => {
                    Literal::new_directional_language_tagged_literal_unchecked(l.value(), tag, to).into()
                }
            }
        }
        other => other,
    }
}

fn solutions(terms: &mut Terms, format: ResultFormat, id: TermId) {
    if !format.is_for_solutions() {
        return;
    }
    let names = ["a", "b", "c"].map(str::to_owned);
    let cols = [vec![id, TermId::UNDEF], vec![TermId::UNDEF, id], vec![id, TermId::UNDEF]];
    let mut out = Vec::new();
    let mut write = || {
        let mut writer = SolutionWriter::new(format, &names, &mut out)?;
        writer.write(terms, &mut NoStore, &cols, 2)?;
        writer.finish()?;
        Ok(())
    };
    if !written(write()) {
        return;
    }
    well_formed(format, &out);
    let expected = term(terms, id);
    let standard = match format {
        ResultFormat::Json => QueryResultsFormat::Json,
        ResultFormat::Xml => QueryResultsFormat::Xml,
        ResultFormat::Tsv => QueryResultsFormat::Tsv,
        ResultFormat::Csv => return csv(&out, &expected),
        _ => return,
    };
    let text = || String::from_utf8_lossy(&out);
    let parsed = QueryResultsParser::from_format(standard).for_slice(&out);
    let SliceQueryResultsParserOutput::Solutions(rows) =
        parsed.unwrap_or_else(|e| panic!("{format}: {e}\n{}", text()))
    else {
        panic!("{format}: no solutions")
    };
    let mut cells = Vec::new();
    for row in rows {
        let row = row.unwrap_or_else(|e| panic!("{format}: {e}\n{}", text()));
        cells.extend(names.iter().map(|n| row.get(n.as_str()).cloned().map(same_case)));
    }
    let e = || Some(expected.clone());
    assert_eq!(cells, [e(), None, e(), None, e(), None], "{format}: {}", text());
}

/// Characters that parsers of XML may pass over: those that it does not have, carriage returns
/// that it reads as line feeds, and elements whose names are a prefix alone.
fn well_formed(format: ResultFormat, out: &[u8]) {
    if !matches!(format, ResultFormat::Xml | ResultFormat::RdfXml) {
        return;
    }
    let text = std::str::from_utf8(out).expect("results are UTF-8");
    let of_xml = |c: char| (c >= ' ' && !matches!(c, '\u{FFFE}' | '\u{FFFF}')) || matches!(c, '\t' | '\n');
    assert!(text.chars().all(of_xml), "{format}: {text:?}");
    for tag in text.split('<').skip(1).filter(|t| !t.starts_with(['?', '!'])) {
        let name = tag.trim_start_matches('/').split([' ', '>', '/']).next().unwrap_or_default();
        let local = name.split_once(':').map_or(name, |n| n.1);
        assert!(
            local.starts_with(|c: char| c.is_alphabetic() || c == '_' || !c.is_ascii()),
            "{format}: <{name}>\n{text}"
        );
    }
}

/// Two rows of three fields, quotes doubled inside quotes.
fn csv(out: &[u8], expected: &Term) {
    let value = match expected {
        Term::NamedNode(n) => n.as_str().to_owned(),
        Term::BlankNode(b) => b.to_string(),
        Term::Literal(l) => l.value().to_owned(),
        triple @ Term::Triple(_) => triple.to_string(),
    };
    let text = std::str::from_utf8(out).expect("results are UTF-8");
    let mut fields = vec![String::new()];
    let (mut quoted, mut chars) = (false, text.chars().peekable());
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                fields.last_mut().expect("one").extend(chars.next())
            }
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            '\r' if !quoted && chars.next_if_eq(&'\n').is_some() => fields.push("end".to_owned()),
            c => fields.last_mut().expect("one").push(c),
        }
        if fields.last().is_some_and(|f| f == "end") && !quoted && text.len() > 1 && c == '\r' {
            fields.push(String::new());
        }
    }
    let v = value.as_str();
    assert_eq!(fields, ["a", "b", "c", "end", v, "", v, "end", "", v, "", "end", ""], "{text:?}");
}

fn graph(terms: &mut Terms, format: ResultFormat, iri: &str, id: TermId) {
    let standard = match format {
        ResultFormat::NTriples => RdfFormat::NTriples,
        ResultFormat::Turtle => RdfFormat::Turtle,
        ResultFormat::RdfXml => RdfFormat::RdfXml,
        _ => return,
    };
    let plain = terms.intern(TermRef::Iri("http://e/s"));
    let blank = terms.intern(TermRef::Blank("s1"));
    let rdf_type = terms.intern(TermRef::Iri("http://www.w3.org/1999/02/22-rdf-syntax-ns#type"));
    let iri = terms.intern(TermRef::Iri(iri));
    for (s, p) in [(plain, plain), (blank, iri), (iri, rdf_type)] {
        let mut out = Vec::new();
        let mut write = || {
            let mut writer = GraphWriter::new(format, &Namespaces::default(), &mut out)?;
            writer.write(terms, &mut NoStore, [&[s], &[p], &[id]])?;
            writer.finish()?;
            Ok(())
        };
        if !written(write()) {
            continue;
        }
        well_formed(format, &out);
        let [s, p, o] = [s, p, id].map(|id| term(terms, id));
        let (Ok(s), Term::NamedNode(p)) = (NamedOrBlankNode::try_from(s), p) else { continue };
        let parsed = RdfParser::from_format(standard).for_slice(&out).collect::<Result<Vec<_>, _>>();
        let parsed = parsed.unwrap_or_else(|e| panic!("{format}: {e}\n{}", String::from_utf8_lossy(&out)));
        let parsed: Vec<Triple> = parsed.into_iter().map(Triple::from).collect();
        let [Triple { subject, predicate, object }] = &parsed[..] else {
            panic!("{format}: {}", String::from_utf8_lossy(&out))
        };
        assert_eq!(*predicate, p, "{format}: {}", String::from_utf8_lossy(&out));
        assert_eq!(subject.is_blank_node(), s.is_blank_node());
        if !s.is_blank_node() {
            assert_eq!(*subject, s, "{format}: {}", String::from_utf8_lossy(&out));
        }
        assert_eq!(object.is_blank_node(), o.is_blank_node());
        if !o.is_blank_node() {
            assert_eq!(same_case(object.clone()), o, "{format}: {}", String::from_utf8_lossy(&out));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::StdRng;
    use rand::seq::IndexedRandom;
    use rand::{Rng, SeedableRng};

    /// Texts that formats have trouble with.
    const PARTS: [&str; 40] = [
        "a", "b7", "1", "-", ".", "e", "E", "+", "0", "true", "\"", "'", "\\", "\n", "\r", "\t", " ",
        "\u{0}", "\u{1}", "\u{7f}", "\u{85}", "\u{fffe}", "\u{ffff}", "é", "💧", "<", ">", "&", "&amp;", ",",
        "@", "#", ":", "/", "{", "]]>", "<!--", "\u{2028}", "%41", "_:",
    ];

    const WHOLE: [&str; 9] =
        ["en", "de-AT", "http://e/t", "urn:x", "rdfli", "rdfabout", "rdfbagID", "rdfDescription", "rdftype"];

    #[test]
    fn whatever_is_written_is_read_back() {
        let seed = snowmelt_io::test_seed(1);
        let rounds = std::env::var("SNOWMELT_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(4000);
        let mut random = StdRng::seed_from_u64(seed);
        for _ in 0..rounds {
            let mut data = Vec::new();
            for _ in 0..2 {
                let mut text = String::new();
                for _ in 0..random.random_range(0..6) {
                    text.push_str(PARTS.choose(&mut random).expect("not empty"));
                }
                if random.random_range(0..4) == 0 {
                    text = (*WHOLE.choose(&mut random).expect("not empty")).to_owned();
                }
                data.push(random.random());
                data.push(text.len().min(31) as u8);
                data.extend(&text.as_bytes()[..text.len().min(31)]);
            }
            results(&data);
        }
    }

    #[test]
    fn refusals_name_the_term_the_format_and_a_way_out() {
        let mut terms = Terms::new(Arc::new(LocalTerms::new()), DateTime::MIN, None, 1 << 20);
        let id = terms.intern(TermRef::string("be\u{1}ll"));
        let mut out = Vec::new();
        let mut writer = SolutionWriter::new(ResultFormat::Xml, &["a".to_owned()], &mut out).unwrap();
        let error = writer.write(&mut terms, &mut NoStore, &[vec![id]], 1).unwrap_err();
        assert_eq!(
            error.to_string(),
            "\"be\\u{1}ll\" cannot be written as xml: XML has no notation for one of its characters; ask for json or tsv"
        );
    }
}
