//! What the fuzz targets of `/fuzz` call: the scanner of a load, and ids that say what they are, on any bytes.

use oxttl::NQuadsParser;

use super::intern::{Interner, Parsed};
use super::ntriples::{LineOptions, parse_chunk};
use crate::{Lexical, TermId, encode};

/// N-Triples and N-Quads. The scanner accepts nothing that the grammar does not.
pub fn n_triples(data: &[u8]) {
    let parse = |quads, lenient| {
        let chunk = Parsed { text: data.to_vec(), ..Parsed::default() };
        parse_chunk(&mut Interner::new(), 0, chunk, None, LineOptions { quads, lenient })
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

/// An id, eight bytes, and a lexical form, the rest. What becomes an id is read from it as it was written.
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
        *random ^= *random >> 12;
        *random ^= *random << 25;
        *random ^= *random >> 27;
        (random.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize
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
