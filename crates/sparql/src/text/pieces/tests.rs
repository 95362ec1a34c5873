use snowmelt_base::random::Random;
use snowmelt_base::test_seed;
use spargebra::GraphUpdateOperation as Op;

use super::*;
use crate::text::syntax::parse_update;

/// Terms with what could be taken for the end of a triple, and a list.
const TERMS: [&str; 16] = [
    "<http://a/b.c>",
    "<http://a/\\u00e9.;b>",
    "a:b.c",
    "a:b\\.",
    "a:it\\'s",
    "_:x.y",
    "_:z",
    "\"a . b } \\\" . \"@en-GB",
    "'''a \"' . } '' '''",
    "\"1.5\"^^a:b.c",
    "\"x\"^^<http://a/t.>",
    "1.5",
    "1.e5",
    "-.5",
    "()",
    "\"\"",
];
const GAPS: [&str; 4] = [" ", "\n", " # a . comment } ; \"\r\n", "\t"];

/// Writes an update at random.
struct Writer {
    random: Random,
    text: String,
    operation: u64,
}

impl Writer {
    fn below(&mut self, n: usize) -> usize {
        self.random.below(n as u64) as usize
    }

    fn gap(&mut self) {
        let gap = GAPS[self.below(GAPS.len())];
        self.text += gap;
    }

    fn triples(&mut self, is_insert: bool) {
        let count = self.below(6);
        for number in 0..count {
            self.text += "<urn:s>";
            self.gap();
            self.text += "a:p";
            self.gap();
            for object in 0..=self.below(3) {
                self.text += if object > 0 { "," } else { "" };
                match TERMS[self.below(TERMS.len())] {
                    blank if blank.starts_with("_:") && !is_insert => self.text += "true",
                    blank if blank.starts_with("_:") => self.text += &format!("{blank}{}", self.operation),
                    term => self.text += term,
                }
                self.gap();
            }
            if number + 1 < count || self.below(2) == 0 {
                self.text += ".";
            }
        }
    }

    fn data(&mut self, is_insert: bool) {
        self.operation += 1;
        self.text += if is_insert { "INSERT" } else { "delete" };
        self.gap();
        self.text += "Data{";
        self.triples(is_insert);
        for _ in 0..self.below(4) {
            self.text += "GRAPH";
            self.gap();
            let graph = ["<urn:g.h>", "a:g"][self.below(2)];
            self.text += graph;
            self.gap();
            self.text += "{";
            self.triples(is_insert);
            self.text += "}";
            if self.below(2) == 0 {
                self.gap();
                self.text += ".";
            }
            self.triples(is_insert);
        }
        self.text += "}";
    }

    fn update(mut self) -> String {
        self.text += "PREFIX a: <http://a/> BASE <http://b/>";
        for _ in 0..self.below(6) {
            self.gap();
            match self.below(6) {
                0 => self.text += "PREFIX a: <http://c/x.y>",
                1 => self.text += "PREFIX a: <x> BASE <http://y/>",
                _ => {}
            }
            self.gap();
            match self.below(4) {
                0 => {
                    self.text += "DELETE { ?s ?p ?o . } INSERT { ?s ?p '}.' ; ?q _:b } \
                                  WHERE { ?s ?p ?o FILTER(?o<3) }";
                }
                1 => self.text += "CLEAR GRAPH a:b",
                kind => self.data(kind == 3),
            }
            self.gap();
            self.text += ";";
        }
        self.text
    }
}

fn pieces(text: &str, piece_bytes: usize, read_bytes: usize) -> Result<Vec<Piece>, QueryError> {
    let mut pieces = Pieces { piece_bytes, read_bytes, ..Pieces::new(text.as_bytes(), 1 << 20) };
    let mut all = Vec::new();
    while let Some(piece) = pieces.next()? {
        all.push(piece);
    }
    assert!(pieces.is_over());
    Ok(all)
}

/// The operations of all pieces; data that goes on is put together.
fn together(pieces: &[Piece]) -> Vec<Op> {
    let mut all: Vec<Op> = Vec::new();
    for piece in pieces {
        let parsed = parse_update(&piece.text, None);
        let mut operations = parsed.unwrap_or_else(|e| panic!("{e}: {}", piece.text)).operations.into_iter();
        if piece.goes_on {
            match (all.last_mut(), operations.next()) {
                (Some(Op::InsertData { data }), Some(Op::InsertData { data: more })) => data.extend(more),
                (Some(Op::DeleteData { data }), Some(Op::DeleteData { data: more })) => data.extend(more),
                other => panic!("{other:?} goes on in {}", piece.text),
            }
        }
        all.extend(operations);
    }
    all
}

#[test]
fn pieces_say_what_the_whole_says() {
    let seed = test_seed(20_261_125);
    println!("SNOWMELT_SEED={seed}");
    let mut cut = 0;
    for round in 0..400 {
        let writer = Writer { random: Random(seed + round), text: String::new(), operation: 0 };
        let text = writer.update();
        let whole = parse_update(&text, None).unwrap_or_else(|e| panic!("{e}: {text}")).operations;
        for (piece_bytes, read_bytes) in [(1, 1), (1, 7), (60, 13), (300, 1 << 10)] {
            let pieces = pieces(&text, piece_bytes, read_bytes).unwrap_or_else(|e| panic!("{e}: {text}"));
            assert_eq!(together(&pieces), whole, "{text}");
            cut += pieces.len() - 1;
        }
    }
    assert!(cut > 10_000, "{cut}");
}

#[test]
fn errors_have_their_place_in_the_whole() {
    let lines = "<urn:s> <urn:p> 1 .\n".repeat(20);
    let text = format!("INSERT DATA {{\n{lines}<urn:s> ex:p 1 }}");
    let found = pieces(&text, 50, 10).unwrap();
    let last = found.last().unwrap();
    let error = parse_update(&last.text, None).unwrap_err();
    assert_eq!(last.placed(error).to_string(), "line 22, column 9: the prefix ex: is not declared");
    let text = "INSERT DATA { <urn:s> <urn:p> 1 . <urn:s> <urn:p> 2 . <urn:s> ex:p 2 }";
    let found = pieces(text, 1, 10).unwrap();
    let last = found.iter().find(|piece| piece.text.contains("ex:p")).unwrap();
    let error = last.placed(parse_update(&last.text, None).unwrap_err()).to_string();
    assert_eq!(error, "line 1, column 63: the prefix ex: is not declared");
    let found = pieces("CLEAR ALL ;\n\n  ASK { }", 1, 10).unwrap();
    let query = found.iter().find(|piece| piece.text.contains("ASK")).unwrap();
    let error = query.placed(parse_update(&query.text, None).unwrap_err());
    assert!(matches!(error, QueryError::WrongLanguage { line: 3, .. }), "{error}: {query:?}");
}

#[test]
fn operations_share_no_blank_node() {
    let text = "INSERT DATA { _:a <urn:p> 1 . _:a <urn:p> 2 } ;\nINSERT DATA { <urn:s> <urn:p> _:a }";
    let error = pieces(text, 1, 10).unwrap_err().to_string();
    assert_eq!(error, "line 2, column 31: two INSERT DATA share the blank node _:a");
}

#[test]
fn what_cannot_be_cut_or_read_is_an_error() {
    let objects = "1,".repeat(1 << 20);
    let text = format!("CLEAR ALL;\nINSERT DATA {{ <urn:s> <urn:p> {objects} 1 }}");
    let error = pieces(&text, 1 << 10, 1 << 16).unwrap_err();
    assert!(matches!(error, QueryError::OperationTooLong { line: 1 | 2, .. }), "{error}");
    let open = format!("INSERT DATA {{ <urn:s> <urn:p> \"{}", "x".repeat(3 << 20));
    assert!(matches!(pieces(&open, 1 << 10, 1 << 16), Err(QueryError::OperationTooLong { .. })));
    let mut bytes = Pieces::new(&b"CLEAR ALL ;\n\xFFCLEAR ALL"[..], 1 << 20);
    assert_eq!(bytes.next().unwrap_err().to_string(), "line 2, column 1: the text is not UTF-8");
}

#[test]
fn declarations_said_again_are_kept_once() {
    let operation = "PREFIX a: <http://a/>\nINSERT DATA { a:s a:p 1 } ;\n";
    let found = pieces(&operation.repeat(100), 1, 100).unwrap();
    assert!(found.iter().all(|piece| piece.text.len() < 3 * operation.len()));
    let moved = "BASE <http://a/> PREFIX : <x#> CLEAR ALL; BASE <http://b/> PREFIX : <x#> INSERT DATA { :s :p 1 . :s :p 2 }";
    let all = together(&pieces(moved, 1, 100).unwrap());
    assert_eq!(all, parse_update(moved, None).unwrap().operations);
}
