//! The lengths of entities' texts: told from their declarations before the parser expands them.

use std::collections::HashMap;

/// Bytes of a document type declaration.
const MOST_DECLARED: usize = 64 << 10;

/// Bytes one entity may stand for, others that it names included.
const MOST_EXPANDED: usize = 64 << 10;

/// The declarations, as they are read.
#[derive(Default)]
pub(super) struct Entities {
    text: Vec<u8>,
    /// bytes that each stands for
    sizes: HashMap<Vec<u8>, usize>,
}

impl Entities {
    /// Takes in a byte of the document type declaration; at the end of each declaration in it,
    /// that one.
    pub(super) fn byte(&mut self, byte: u8) -> Result<(), String> {
        self.text.push(byte);
        if self.text.len() > MOST_DECLARED {
            return Err(format!("the DOCTYPE has more than {MOST_DECLARED} bytes, the limit"));
        }
        if byte == b'>' { self.declare() } else { Ok(()) }
    }

    /// Bytes that a name stands for.
    pub(super) fn size(&self, name: &[u8]) -> usize {
        self.sizes.get(name).copied().unwrap_or(0)
    }

    fn declare(&mut self) -> Result<(), String> {
        const MARK: &[u8] = b"<!ENTITY";
        let Some(start) = self.text.windows(MARK.len()).rposition(|w| w == MARK) else { return Ok(()) };
        let declaration = self.text[start + MARK.len()..].trim_ascii();
        let name_end = declaration.iter().position(u8::is_ascii_whitespace).unwrap_or(declaration.len());
        let (name, value) = (declaration[..name_end].to_vec(), &declaration[name_end..]);
        let size = self.expanded(value);
        if size > MOST_EXPANDED {
            return Err(format!(
                "the entity {} stands for {size} bytes; the limit is {MOST_EXPANDED}",
                String::from_utf8_lossy(&name)
            ));
        }
        // a second declaration may count as well, whichever the parser takes
        let known = self.sizes.entry(name).or_default();
        *known = size.max(*known);
        Ok(())
    }

    /// Bytes of a value with what it names put in.
    fn expanded(&self, value: &[u8]) -> usize {
        let mut size = value.len();
        let mut rest = value;
        while let Some(at) = rest.iter().position(|b| *b == b'&') {
            rest = &rest[at + 1..];
            if let Some(end) = rest.iter().position(|b| *b == b';') {
                size = size.saturating_add(self.size(&rest[..end]));
            }
        }
        size
    }
}
