//! Entry points of the fuzz targets: any bytes as a query, as an update, and as a stream.

use std::convert::Infallible;

use crate::{ParseOptions, parse_query, parse_update, read_update, shape_of, text_of};

/// Any bytes as a query, with and without a shape, and as an update.
///
/// # Panics
/// Where two ways to read a text differ.
pub fn texts(bytes: &[u8]) {
    let options = ParseOptions { base: Some("http://example.org/"), ..ParseOptions::default() };
    let Ok(text) = text_of(bytes, &options) else { return };
    let query = parse_query(text, &options);
    let shaped = parse_query(text, &ParseOptions { is_shaped: true, ..options });
    assert_eq!(query.is_ok(), shaped.is_ok(), "{text}");
    if let Ok(parsed) = &shaped {
        assert_eq!(shape_of(text), parsed.shape, "{text}");
    }
    if let Err(error) = &query {
        assert!(error.all().all(|error| error.span.start <= text.len()), "{error}");
        drop(error.to_string());
    }
    stream(bytes, parse_update(text, &options).is_ok());
}

/// Any bytes as a stream, which is an update or none.
fn stream(bytes: &[u8], is_update: bool) {
    let options = ParseOptions { base: Some("http://example.org/"), ..ParseOptions::default() };
    let mut reader = bytes;
    let read = read_update(&mut reader, &options, 3, |_| Ok::<(), Infallible>(()));
    assert_eq!(read.is_ok(), is_update, "{:?}", String::from_utf8_lossy(bytes));
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXTS: [&str; 6] = [
        "PREFIX e: <e:> SELECT DISTINCT ?s (COUNT(?o) + 1 AS ?n) WHERE { ?s e:p/^e:q* [ e:r ( 1 -2.5 'x'@en ) ] ; e:p ?o FILTER(?o > 1 && ! BOUND(?x)) } GROUP BY ?s HAVING (COUNT(*) > 2) ORDER BY DESC(?n) LIMIT 3",
        "SELECT * { { ?a ?b ?c } UNION { << ?a ?b ?c >> ?d <<( ?a <e:p> \"\"\"x\"y\"\"\" )>> {| a <e:t> |} } OPTIONAL { ?c ?d ?e } MINUS { ?a a ?b } VALUES (?a ?b) { (UNDEF <e:b>) } }",
        "CONSTRUCT { ?s ?p _:b } FROM <e:g> { GRAPH ?g { ?s ?p ?o } BIND(IF(?o IN (1, 2), 'a'^^<e:t>, ?p) AS ?x) LATERAL { SELECT ?y { ?y ?p ?s } LIMIT 1 } }",
        "INSERT DATA { <e:a> <e:b> 1, 2 ; <e:c> _:x . GRAPH <e:g> { [] a (true false) } } ; PREFIX p: <e:p> DELETE { ?s ?p ?o } INSERT { ?s p: ?o } WHERE { ?s ?p ?o }",
        "WITH <e:g> DELETE { ?s ?p ?o } USING NAMED <e:h> WHERE { ?s ?p ?o FILTER NOT EXISTS { ?o ?p ?s } } ; MOVE SILENT GRAPH <e:g> TO DEFAULT",
        "DESCRIBE <e:a> ?x WHERE { SERVICE SILENT <e:s> { ?x !(a|^<e:p>) ?y } } OFFSET 2 # done\n",
    ];

    /// Rounds: 2000, or as many as `SNOWMELT_ROUNDS` says.
    fn rounds() -> u64 {
        std::env::var("SNOWMELT_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(2000)
    }

    #[test]
    fn no_bytes_bring_the_parser_down() {
        let mut random = snowmelt_base::test_seed(11);
        let mut next = |n: usize| (snowmelt_base::random::xorshift_star(&mut random) >> 33) as usize % n;
        TEXTS.iter().for_each(|text| texts(text.as_bytes()));
        for _ in 0..rounds() {
            let mut bytes = TEXTS[next(6)].as_bytes().to_vec();
            for _ in 0..1 + next(3) {
                let other = TEXTS[next(6)].as_bytes();
                let (at, from) = (next(bytes.len() + 1), next(other.len()));
                let end = (at + next(12)).min(bytes.len());
                let to = (from + next(12)).min(other.len());
                match next(8) {
                    0 => bytes.truncate(at),
                    1 => bytes.insert(at, next(256) as u8),
                    _ => drop(bytes.splice(at..end, other[from..to].iter().copied())),
                }
            }
            texts(&bytes);
        }
    }
}
