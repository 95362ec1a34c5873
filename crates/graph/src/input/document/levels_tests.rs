//! Triple terms within each other are counted before the parser sees them: no document, sound or
//! not, gets more of them past the scanners than a parser can drop.

use oxrdf::Term;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::*;
use crate::input::fuzz;
use crate::term::MOST_TRIPLE_LEVELS;

const IRIS: [&str; 7] = [
    "<http://e/a>",
    "<http://e/?a=b#c>",
    "<http://e/?q='x>",
    "<http://e/()>",
    "<http://e/\\u0041-=>",
    "<urn:base>",
    "<urn:#)>",
];
const NAMES: [&str; 9] =
    [":a\\#", ":a\\'", ":a\\)", ":a\\(\\)", ":base", "base:x", ":a%27", ":", "base:base"];
const LITERALS: [&str; 7] =
    ["\"x\"", "\"<<( \\\" # )>>\"", "\"'\"", "\"\"", "\"a\"@en", "\"a\"@en--ltr", "\"1\"^^<http://e/?t=#>"];
const SHORT: [&str; 5] = ["'x\\''", "'#'", "1", "1.5e3", "true"];
const LONG: [&str; 3] = ["'''it's # \" '''", "\"\"\"<<( \" '' \\\"\"\"\"", "\"\"\"\n#\n\"\"\""];
const BLANKS: [&str; 3] = [" ", "\t", "  "];
/// Between statements, and in Turtle between all tokens.
const ENDS: [&str; 6] = ["\n", "# c\r", " # c\r\n", " # )>> \" ' <\n", "\r", "\n\n"];
/// Bytes that begin, end or hide something.
const SIGNS: &[u8] = b"<>()\"'#\\\r\n =-:.@^[]{}|~_ab,;";

/// A document, whether it is sound, and the levels of its deepest term.
struct Document {
    text: Vec<u8>,
    levels: usize,
    is_sound: bool,
}

impl std::fmt::Debug for Document {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} {} {}", String::from_utf8_lossy(&self.text), self.levels, self.is_sound)
    }
}

fn term(is_turtle: bool) -> BoxedStrategy<&'static str> {
    match is_turtle {
        true => prop_oneof![select(&IRIS), select(&NAMES)].boxed(),
        false => select(&IRIS).boxed(),
    }
}

fn literal(is_turtle: bool) -> BoxedStrategy<&'static str> {
    match is_turtle {
        true => prop_oneof![select(&LITERALS), select(&SHORT)].boxed(),
        false => select(&LITERALS).boxed(),
    }
}

/// Tokens of some statements, the last of which nests.
fn tokens(is_turtle: bool) -> impl Strategy<Value = (Vec<&'static str>, usize)> {
    let flat = match is_turtle {
        true => prop_oneof![literal(true), select(&LONG)].boxed(),
        false => literal(false),
    };
    let statement = (term(is_turtle), term(is_turtle), flat);
    let levels = select(vec![1, MOST_TRIPLE_LEVELS - 1, MOST_TRIPLE_LEVELS, MOST_TRIPLE_LEVELS + 1, 80]);
    let pair = (term(is_turtle), term(is_turtle));
    let nested = levels.prop_flat_map(move |levels| {
        (proptest::collection::vec(pair.clone(), levels + 1), literal(is_turtle))
    });
    (proptest::collection::vec(statement, 0..4), nested).prop_map(|(flat, (pairs, innermost))| {
        let mut tokens: Vec<_> = flat.into_iter().flat_map(|(s, p, o)| [s, p, o, "."]).collect();
        let levels = pairs.len() - 1;
        for (n, (s, p)) in pairs.into_iter().enumerate() {
            tokens.extend((n > 0).then_some("<<("));
            tokens.extend([s, p]);
        }
        tokens.push(innermost);
        tokens.extend(std::iter::repeat_n(")>>", levels));
        tokens.push(".");
        (tokens, levels)
    })
}

fn document(is_turtle: bool) -> impl Strategy<Value = Document> {
    let gaps = proptest::collection::vec((select(&BLANKS), select(&ENDS), any::<bool>()), 1..40);
    let spoilt = proptest::collection::vec((any::<Index>(), select(SIGNS), any::<bool>()), 0..4);
    (tokens(is_turtle), gaps, spoilt, any::<bool>()).prop_map(
        move |((tokens, levels), gaps, spoilt, is_sound)| {
            let mut text = gaps[0].1.to_owned();
            if is_turtle {
                text.push_str("@prefix : <http://e/?x='> .\n@prefix base: <urn:base> .\n");
                text.push_str("BASE <http://e/?b=#'x>\n");
            }
            for (token, (blank, end, is_end)) in tokens.into_iter().zip(gaps.iter().cycle()) {
                text.push_str(token);
                text.push_str(if token == "." || is_turtle && *is_end { end } else { blank });
            }
            let mut text = text.into_bytes();
            for (place, sign, is_more) in spoilt.iter().filter(|_| !is_sound) {
                let at = place.index(text.len());
                match is_more {
                    true => text.insert(at, *sign),
                    false => text[at] = *sign,
                }
            }
            Document { text, levels, is_sound: is_sound || spoilt.is_empty() }
        },
    )
}

/// The most levels of a term of a document, and whether all of it could be read.
fn levels_of(
    quads: impl Iterator<Item = Result<oxrdf::Quad, RdfParseError>>,
    past_faults: bool,
) -> (usize, bool) {
    let (mut most, mut is_sound) = (0, true);
    for quad in quads {
        match quad {
            Ok(quad) => {
                let (mut object, mut levels) = (&quad.object, 0);
                while let Term::Triple(triple) = object {
                    (object, levels) = (&triple.object, levels + 1);
                }
                most = most.max(levels);
            }
            Err(_) if past_faults => is_sound = false,
            Err(_) => return (most, false),
        }
    }
    (most, is_sound)
}

fn check(format: RdfFormat, lenient: bool, document: &Document) -> Result<(), TestCaseError> {
    let options = DocumentOptions { lenient, ..fuzz::options(format) };
    let mut passed = Vec::new();
    let told = guarded(document.text.as_slice(), &options).read.read_to_end(&mut passed);
    let parser = || parser(&options).unwrap();
    let shown = || String::from_utf8_lossy(&document.text).into_owned();
    let repaired = lenient && matches!(format, RdfFormat::Turtle | RdfFormat::TriG);
    if repaired {
        if told.is_ok() {
            let (levels, _) =
                levels_of(parser().for_slice(&passed).map(|quad| quad.map_err(RdfParseError::from)), true);
            prop_assert!(levels <= MOST_TRIPLE_LEVELS, "{levels}: {}", shown());
        }
    } else {
        let (levels, is_whole) = levels_of(
            parser().for_slice(&document.text).map(|quad| quad.map_err(RdfParseError::from)),
            false,
        );
        prop_assert!(told.is_err() || levels <= MOST_TRIPLE_LEVELS, "{levels}: {}", shown());
        if document.is_sound {
            prop_assert!(is_whole && levels == document.levels, "{levels}: {}", shown());
        }
    }
    if document.is_sound {
        let is_refused = document.levels > MOST_TRIPLE_LEVELS;
        prop_assert_eq!(told.is_err(), is_refused, "{:?}: {}", told, shown());
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, max_shrink_iters: 2000, ..ProptestConfig::default() })]

    #[test]
    fn no_line_hides_levels(document in document(false), quads: bool, lenient: bool) {
        check(if quads { RdfFormat::NQuads } else { RdfFormat::NTriples }, lenient, &document)?;
    }

    #[test]
    fn no_turtle_hides_levels(document in document(true), graphs: bool, lenient: bool) {
        check(if graphs { RdfFormat::TriG } else { RdfFormat::Turtle }, lenient, &document)?;
    }
}
