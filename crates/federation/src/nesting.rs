//! An answer in JSON, looked at before its parser sees it: the levels of its terms, and its
//! columns.
//!
//! A triple is a term whose object may be another triple. The parser goes down such a term by
//! recursion at each event, and compares each variable of the head with all before it. So the
//! bytes are scanned for brackets and strings, and an answer with too many never reaches the
//! parser.
//!
//! A term has its place at the fifth level, and each triple two more: for its parts, and for the
//! terms that they are. The variables are the strings in an array at the third level; other such
//! arrays of the head count as well.
//!
//! Invariant: the scan counts at least the levels that the parser goes down, and the variables
//! that it sees.

use std::io::{self, Read};

use memchr::memchr2;

use crate::columns::{MOST_TRIPLES, too_deep, too_wide};
use crate::fault::Fault;

const MOST_LEVELS: usize = 5 + 2 * MOST_TRIPLES;
/// The level of the array of variables.
const VARIABLES: usize = 3;

/// Passes the bytes of an answer on, as far as they are within the bounds.
pub(crate) struct NestingReader<R, F> {
    inner: R,
    scan: NestingScan,
    /// is told why an answer is refused
    tell: F,
}

#[derive(Default)]
struct NestingScan {
    position: Position,
    levels: usize,
    /// the innermost at the level of variables is an array
    is_list: bool,
    columns: usize,
}

/// Position in the syntax.
#[derive(Clone, Copy, Debug, Default)]
enum Position {
    #[default]
    Outside,
    String,
    Escape,
}

impl<R: Read, F: FnMut(Fault)> NestingReader<R, F> {
    pub fn new(inner: R, tell: F) -> Self {
        Self { inner, scan: NestingScan::default(), tell }
    }
}

impl<R: Read, F: FnMut(Fault)> Read for NestingReader<R, F> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buf)?;
        self.scan.pass(&buf[..read]).map_err(|fault| {
            let said = fault.to_string();
            (self.tell)(fault);
            io::Error::other(said)
        })?;
        Ok(read)
    }
}

impl NestingScan {
    fn pass(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        let mut at = 0;
        while at < bytes.len() {
            match self.position {
                // most bytes are in strings
                Position::String => match memchr2(b'"', b'\\', &bytes[at..]) {
                    None => return Ok(()),
                    Some(len) => {
                        at += len;
                        let is_end = bytes[at] == b'"';
                        self.position = if is_end { Position::Outside } else { Position::Escape };
                    }
                },
                Position::Escape => self.position = Position::String,
                Position::Outside => self.outside(bytes[at])?,
            }
            at += 1;
        }
        Ok(())
    }

    fn outside(&mut self, byte: u8) -> Result<(), Fault> {
        match byte {
            b'{' | b'[' => {
                self.levels += 1;
                if self.levels > MOST_LEVELS {
                    return Err(too_deep());
                }
                if self.levels == VARIABLES {
                    self.is_list = byte == b'[';
                }
            }
            b'}' | b']' => self.levels = self.levels.saturating_sub(1),
            b'"' => {
                self.position = Position::String;
                if self.levels == VARIABLES && self.is_list {
                    self.columns += 1;
                    return too_wide(self.columns);
                }
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::MOST_COLUMNS;

    /// The answer in parts of so many bytes, up to where it is refused.
    fn read(text: &str, part: usize) -> Result<usize, String> {
        let mut told = None;
        let mut reader = NestingReader::new(text.as_bytes(), |fault| told = Some(fault));
        let (mut buf, mut all) = (vec![0; part], 0);
        loop {
            match reader.read(&mut buf) {
                Ok(0) => return Ok(all),
                Ok(read) => all += read,
                Err(_) => return Err(told.expect("it is told").to_string()),
            }
        }
    }

    fn nested(triples: usize) -> String {
        let triple = r#"{"type":"triple","value":{"subject":{"type":"uri","value":"e:}]\\"},"object":"#;
        let term = format!("{}{{}}{}", triple.repeat(triples), "}}".repeat(triples));
        format!(r#"{{"results":{{"bindings":[{{"x\"{{[":{term}}},{{}}]}}}}"#)
    }

    #[test]
    fn levels_up_to_the_most_are_passed_on() {
        for part in [1, 7, 1 << 20] {
            for most in [0, 1, MOST_TRIPLES] {
                let text = nested(most);
                assert_eq!(read(&text, part), Ok(text.len()), "{most}");
            }
            for more in [MOST_TRIPLES + 1, MOST_TRIPLES * 100] {
                let told = read(&nested(more), part).unwrap_err();
                assert!(told.ends_with("its terms nest more than 64 levels"), "{more}: {told}");
            }
        }
    }

    #[test]
    fn variables_up_to_the_most_are_passed_on() {
        let list = |count: usize| format!("[{}]", vec![r#""v\"[","#; count].concat());
        let rows = r#""results":{"bindings":[{"v":{"type":"literal","value":"["}}]}"#;
        for part in [1, 7, 1 << 20] {
            for (lists, is_passed) in [
                (vec![list(MOST_COLUMNS)], true),
                (vec![list(MOST_COLUMNS + 1)], false),
                // the parser goes on with a second list
                (vec![list(MOST_COLUMNS / 2); 2], true),
                (vec![list(MOST_COLUMNS / 2 + 1); 2], false),
            ] {
                let lists: Vec<String> = lists.iter().map(|list| format!("\"vars\":{list}")).collect();
                let text = format!("{{\"head\":{{{}}},{rows}}}", lists.join(","));
                assert_eq!(read(&text, part).is_ok(), is_passed, "{} lists", lists.len());
            }
        }
        let row = r#"{"v":{"type":"literal","value":"x"}},"#.repeat(MOST_COLUMNS + 1);
        let text = format!("{{\"results\":{{\"bindings\":[{row}]}}}}");
        assert_eq!(read(&text, 64), Ok(text.len()), "rows are no columns");
    }
}
