//! The places of an event's fields in this kernel (`events/block/*/format`): the layout differs
//! from kernel to kernel.

use std::collections::HashMap;

/// One field of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// First byte, from the start of the event.
    pub offset: usize,
    /// Length in bytes.
    pub size: usize,
    /// Its highest bit is a sign.
    pub signed: bool,
}

/// The layout of one kind of event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Format {
    /// As in the event's first field, `common_type`.
    pub id: u16,
    fields: HashMap<String, Field>,
}

impl Format {
    /// Reads the text of a format file.
    ///
    /// # Errors
    /// The text is no format of an event; the message says why.
    pub fn parse(text: &str) -> Result<Format, String> {
        let mut id = None;
        let mut fields = HashMap::new();
        for line in text.lines().map(str::trim) {
            if let Some(number) = line.strip_prefix("ID:") {
                id = number.trim().parse().ok();
            } else if let Some(rest) = line.strip_prefix("field:") {
                let (name, field) =
                    parse_field(rest).ok_or_else(|| format!("field not understood: {line}"))?;
                fields.insert(name, field);
            }
        }
        let id = id.ok_or("the format has no ID")?;
        Ok(Format { id, fields })
    }

    /// A field by its name.
    ///
    /// # Errors
    /// The event has no such field.
    pub fn field(&self, name: &str) -> Result<Field, String> {
        self.fields.get(name).copied().ok_or_else(|| format!("event {} has no field {name:?}", self.id))
    }
}

/// `unsigned int nr_sector; offset:24; size:4; signed:0;`, with tabs.
fn parse_field(text: &str) -> Option<(String, Field)> {
    let mut parts = text.split(';').map(str::trim);
    let declaration = parts.next()?;
    let (mut offset, mut size, mut signed) = (None, None, false);
    for part in parts {
        match part.split_once(':') {
            Some(("offset", n)) => offset = n.parse().ok(),
            Some(("size", n)) => size = n.parse().ok(),
            Some(("signed", n)) => signed = n == "1",
            _ => {}
        }
    }
    let name = declaration.split('[').next()?.split_whitespace().last()?;
    // `__data_loc char[] cmd` has its brackets before the name.
    let name = if declaration.contains("[]") { declaration.split_whitespace().last()? } else { name };
    Some((name.to_string(), Field { offset: offset?, size: size?, signed }))
}

impl Field {
    /// The number in `event`; 0 where the event is too short.
    pub fn number(&self, event: &[u8]) -> i64 {
        let Some(bytes) = event.get(self.offset..self.offset + self.size) else { return 0 };
        let mut wide = [0; 8];
        let n = bytes.len().min(8);
        wide[..n].copy_from_slice(&bytes[..n]);
        let value = i64::from_le_bytes(wide);
        let unused = 64 - 8 * n as u32;
        match self.signed && n > 0 {
            true => value << unused >> unused,
            false => value,
        }
    }

    /// The characters in `event`, up to the first zero byte.
    pub fn text<'a>(&self, event: &'a [u8]) -> &'a [u8] {
        let bytes = event.get(self.offset..self.offset + self.size).unwrap_or(&[]);
        let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
        &bytes[..end]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ISSUE: &str = "name: block_rq_issue\nID: 1234\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;\n\
        \tfield:char rwbs[10];\toffset:34;\tsize:10;\tsigned:0;\n\
        \tfield:__data_loc char[] cmd;\toffset:60;\tsize:4;\tsigned:0;\n\n\
        print fmt: \"%d,%d\", ((unsigned int) ((REC->dev) >> 20))\n";

    #[test]
    fn fields_are_found_where_the_file_says() {
        let format = Format::parse(ISSUE).expect("a format");
        assert_eq!(format.id, 1234);
        assert_eq!(format.field("dev"), Ok(Field { offset: 8, size: 4, signed: false }));
        assert_eq!(format.field("rwbs"), Ok(Field { offset: 34, size: 10, signed: false }));
        assert_eq!(format.field("cmd").map(|f| f.offset), Ok(60));
        assert!(format.field("sector").is_err());
        assert!(Format::parse("name: x").is_err());
    }

    #[test]
    fn numbers_have_signs_and_texts_end() {
        let event = [0xff, 0xff, 0xff, 0xff, b'R', b'A', 0, b'x'];
        assert_eq!(Field { offset: 0, size: 4, signed: true }.number(&event), -1);
        assert_eq!(Field { offset: 0, size: 4, signed: false }.number(&event), 0xffff_ffff);
        assert_eq!(Field { offset: 6, size: 4, signed: false }.number(&event), 0);
        assert_eq!(Field { offset: 4, size: 4, signed: false }.text(&event), b"RA");
    }
}
