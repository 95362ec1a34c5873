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
