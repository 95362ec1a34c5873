//! From bytes in any encoding to characters with normalised line ends (XML 1.0, 2.11 and 4.3.3).
//!
//! The encoding is that of a byte order mark, else what the first bytes look like (UTF-16), else
//! the declared one, else UTF-8.

use std::io::{self, Read};

use encoding_rs::{Decoder, DecoderResult, Encoding, UTF_8, UTF_16BE, UTF_16LE};

use super::chars::is_char;

/// Bytes read at once.
const RAW: usize = 64 << 10;

/// Bytes in which an encoding must have been declared.
const HEAD: usize = 1024;

/// How bytes become characters.
enum Coding {
    Utf8,
    /// ISO-8859-1, whose labels other decoders take for Windows-1252.
    Latin1,
    Ascii,
    Other(Box<Decoder>),
}

/// Decodes what it reads.
pub(super) struct Decoding<R> {
    read: R,
    raw: Vec<u8>,
    from: usize,
    to: usize,
    /// `None` until the first bytes were seen.
    coding: Option<Coding>,
    /// A carriage return came last.
    after_return: bool,
    /// There are no more bytes.
    ended: bool,
    /// The fault behind all text that was handed out.
    broken: Option<String>,
    /// Bytes read.
    read_bytes: u64,
}

/// The outcome of asking for more text.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Decoded {
    More,
    End,
    /// No character, or none that may be in a document.
    Broken(String),
}

impl<R: Read> Decoding<R> {
    pub(super) fn new(read: R) -> Self {
        Decoding {
            read,
            raw: vec![0; RAW],
            from: 0,
            to: 0,
            coding: None,
            after_return: false,
            ended: false,
            broken: None,
            read_bytes: 0,
        }
    }

    /// Bytes read so far.
    pub(super) fn read_bytes(&self) -> u64 {
        self.read_bytes
    }

    /// Appends text, at least one character unless it is the end.
    pub(super) fn more(&mut self, out: &mut String) -> io::Result<Decoded> {
        let before = out.len();
        loop {
            if let Some(broken) = &self.broken {
                return Ok(Decoded::Broken(broken.clone()));
            }
            if self.ended && self.from == self.to {
                return Ok(Decoded::End);
            }
            self.fill(1)?;
            if self.coding.is_none() {
                match self.detect()? {
                    Ok(coding) => self.coding = Some(coding),
                    Err(unknown) => self.broken = Some(unknown),
                }
                continue;
            }
            self.decode(out);
            self.normalise(out, before);
            if out.len() > before {
                return Ok(Decoded::More);
            }
        }
    }

    /// Reads until there are `want` bytes, or the end is reached.
    fn fill(&mut self, want: usize) -> io::Result<()> {
        if self.from > 0 {
            self.raw.copy_within(self.from..self.to, 0);
            (self.from, self.to) = (0, self.to - self.from);
        }
        let begun = self.to;
        while !self.ended && (self.to < want || self.to == begun) && self.to < self.raw.len() {
            match self.read.read(&mut self.raw[self.to..]) {
                Ok(0) => self.ended = true,
                Ok(n) => {
                    self.to += n;
                    self.read_bytes += n as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Tells the encoding, and takes off a byte order mark.
    fn detect(&mut self) -> io::Result<Result<Coding, String>> {
        self.fill(4)?;
        let raw = &self.raw[..self.to];
        if let Some((encoding, mark)) = Encoding::for_bom(raw) {
            let is_utf_32 = encoding == UTF_16LE && raw.starts_with(&[0xff, 0xfe, 0, 0]);
            self.from = mark;
            return Ok(if is_utf_32 { Err(unknown_encoding("UTF-32")) } else { Ok(coding_of(encoding)) });
        }
        match raw {
            [0, 0, 0, b'<', ..] | [b'<', 0, 0, 0, ..] | [0, 0, 0xfe, 0xff, ..] => {
                return Ok(Err(unknown_encoding("UTF-32")));
            }
            [b'<', 0, _, 0, ..] => return Ok(Ok(coding_of(UTF_16LE))),
            [0, b'<', 0, _, ..] => return Ok(Ok(coding_of(UTF_16BE))),
            [b'<', b'?', b'x', b'm', ..] => {}
            _ => return Ok(Ok(Coding::Utf8)),
        }
        while memchr::memmem::find(&self.raw[..self.to.min(HEAD)], b"?>").is_none()
            && self.to < HEAD
            && !self.ended
        {
            self.fill(self.to + 1)?;
        }
        let head = &self.raw[..self.to.min(HEAD)];
        let head = &head[..memchr::memmem::find(head, b"?>").unwrap_or(head.len())];
        Ok(declared(head).map_or(Ok(Coding::Utf8), labelled))
    }

    fn decode(&mut self, out: &mut String) {
        let raw = &self.raw[self.from..self.to];
        let coding = self.coding.as_mut().expect("the caller told the encoding");
        let (used, wrong) = match coding {
            Coding::Utf8 => decode_utf_8(raw, out, self.ended),
            Coding::Latin1 => {
                out.extend(raw.iter().map(|byte| char::from(*byte)));
                (raw.len(), None)
            }
            Coding::Ascii => {
                let good = raw.iter().position(|byte| !byte.is_ascii()).unwrap_or(raw.len());
                out.extend(raw[..good].iter().map(|byte| char::from(*byte)));
                (good, (good < raw.len()).then(|| malformed("US-ASCII")))
            }
            Coding::Other(decoder) => decode_other(decoder, raw, out, self.ended),
        };
        self.from += used;
        self.broken = wrong;
    }

    /// Line ends become one character, and what may not be in a document is cut off.
    fn normalise(&mut self, out: &mut String, before: usize) {
        let piece = &out[before..];
        if let Some((good, bad)) = first_bad(piece) {
            self.broken = Some(format!("U+{:04X} may not be in an XML document", u32::from(bad)));
            out.truncate(before + good);
        }
        let piece = &out.as_bytes()[before..];
        if piece.is_empty() || !self.after_return && memchr::memchr(b'\r', piece).is_none() {
            return;
        }
        let piece = out.split_off(before);
        let mut rest = piece.as_str();
        if self.after_return {
            rest = rest.strip_prefix('\n').unwrap_or(rest);
        }
        self.after_return = piece.ends_with('\r');
        while let Some(at) = memchr::memchr(b'\r', rest.as_bytes()) {
            out.push_str(&rest[..at]);
            out.push('\n');
            rest = &rest[at + 1..];
            rest = rest.strip_prefix('\n').unwrap_or(rest);
        }
        out.push_str(rest);
    }
}

fn coding_of(encoding: &'static Encoding) -> Coding {
    if encoding == UTF_8 {
        return Coding::Utf8;
    }
    Coding::Other(Box::new(encoding.new_decoder_without_bom_handling()))
}

/// The encoding of a label in a declaration, which was read as ASCII.
fn labelled(label: &[u8]) -> Result<Coding, String> {
    let lower = label.to_ascii_lowercase();
    let name = String::from_utf8_lossy(label);
    match lower.as_slice() {
        b"iso-8859-1" | b"iso8859-1" | b"iso_8859-1" | b"latin1" | b"l1" | b"cp819" | b"ibm819" => {
            return Ok(Coding::Latin1);
        }
        b"us-ascii" | b"ascii" => return Ok(Coding::Ascii),
        _ => {}
    }
    match Encoding::for_label(label) {
        Some(encoding) if encoding == UTF_16LE || encoding == UTF_16BE => {
            Err(format!("the declaration says {name}, but this is not; write the encoding that it has"))
        }
        Some(encoding) => Ok(coding_of(encoding)),
        None => Err(unknown_encoding(&name)),
    }
}

fn unknown_encoding(name: &str) -> String {
    format!("{name} is no encoding known here; convert the document to UTF-8")
}

fn malformed(encoding: &str) -> String {
    format!("these bytes are not {encoding}; is the declared encoding the right one?")
}

/// The label in `<?xml … encoding="label" …`.
fn declared(head: &[u8]) -> Option<&[u8]> {
    let at = memchr::memmem::find(head, b"encoding")?;
    let rest = head[at + b"encoding".len()..].trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    let (quote, rest) = rest.split_first()?;
    let end = memchr::memchr(*quote, rest)?;
    matches!(quote, b'"' | b'\'').then_some(&rest[..end])
}

/// Bytes used, and what is wrong with the next ones.
fn decode_utf_8(raw: &[u8], out: &mut String, is_last: bool) -> (usize, Option<String>) {
    match std::str::from_utf8(raw) {
        Ok(text) => {
            out.push_str(text);
            (raw.len(), None)
        }
        Err(error) => {
            let (good, rest) = raw.split_at(error.valid_up_to());
            out.push_str(std::str::from_utf8(good).unwrap_or_default());
            let is_wrong = error.error_len().is_some() || is_last && !rest.is_empty();
            (good.len(), is_wrong.then(|| malformed("UTF-8")))
        }
    }
}

fn decode_other(
    decoder: &mut Decoder,
    raw: &[u8],
    out: &mut String,
    is_last: bool,
) -> (usize, Option<String>) {
    let mut used = 0;
    loop {
        let room = decoder.max_utf8_buffer_length_without_replacement(raw.len() - used).unwrap_or(RAW);
        out.reserve(room.max(16));
        let (result, n) = decoder.decode_to_string_without_replacement(&raw[used..], out, is_last);
        used += n;
        match result {
            DecoderResult::InputEmpty => return (used, None),
            DecoderResult::OutputFull => {}
            DecoderResult::Malformed(..) => return (used, Some(malformed(decoder.encoding().name()))),
        }
    }
}

/// The first character that may not be in a document, and its place.
fn first_bad(text: &str) -> Option<(usize, char)> {
    let bytes = text.as_bytes();
    // all but control characters and U+FFFE, U+FFFF may
    let is_control = |byte: &u8| *byte < b' ' && !matches!(byte, b'\t' | b'\n' | b'\r');
    let controls = bytes.iter().fold(false, |any, byte| any | is_control(byte));
    if !controls && memchr::memmem::find(bytes, b"\xef\xbf").is_none() {
        return None;
    }
    text.char_indices().find(|(_, c)| !is_char(*c))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hands out a few bytes at a time.
    struct Few<'a>(&'a [u8], usize);

    impl Read for Few<'_> {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let n = self.1.min(self.0.len()).min(out.len());
            out[..n].copy_from_slice(&self.0[..n]);
            self.0 = &self.0[n..];
            Ok(n)
        }
    }

    fn decoded(bytes: &[u8]) -> (String, Option<String>) {
        let mut all = Vec::new();
        for size in [1, 2, 3, 7, 1 << 20] {
            let mut decoding = Decoding::new(Few(bytes, size));
            let mut out = String::new();
            let broken = loop {
                match decoding.more(&mut out).unwrap() {
                    Decoded::More => {}
                    Decoded::End => break None,
                    Decoded::Broken(why) => break Some(why),
                }
            };
            all.push((out, broken));
        }
        assert!(all.iter().all(|one| *one == all[0]), "other pieces give another text: {all:?}");
        all.swap_remove(0)
    }

    fn utf_16(text: &str, order: fn(u16) -> [u8; 2]) -> Vec<u8> {
        text.encode_utf16().flat_map(order).collect()
    }

    #[test]
    fn encodings_are_told_and_read() {
        let text = "<?xml version='1.0' encoding='utf-16'?><a>é水𐀀</a>";
        let plain = |text: &str| (text.to_owned(), None);
        for order in [u16::to_le_bytes as fn(u16) -> [u8; 2], u16::to_be_bytes] {
            assert_eq!(decoded(&utf_16(text, order)), plain(text), "without a mark");
            assert_eq!(decoded(&utf_16(&format!("\u{FEFF}{text}"), order)), plain(text), "with one");
        }
        assert_eq!(decoded("\u{FEFF}<a>é</a>".as_bytes()), plain("<a>é</a>"));
        assert_eq!(decoded("<a>é水𐀀</a>".as_bytes()), plain("<a>é水𐀀</a>"));
        for (label, byte, c) in [
            ("ISO-8859-1", 0xe9, 'é'),
            ("iso-8859-1", 0x85, '\u{85}'),
            ("windows-1252", 0x80, '€'),
            ("ISO-8859-15", 0xa4, '€'),
            ("koi8-r", 0xc1, 'а'),
        ] {
            let head = format!("<?xml version=\"1.0\" encoding = \"{label}\"?>");
            let bytes = [head.as_bytes(), &[byte]].concat();
            assert_eq!(decoded(&bytes), plain(&format!("{head}{c}")), "{label}");
        }
        let head = "<?xml version='1.0' encoding='Shift_JIS'?>";
        let bytes = [head.as_bytes(), &[0x90, 0x85]].concat();
        assert_eq!(decoded(&bytes), plain(&format!("{head}水")));
    }

    #[test]
    fn what_is_no_text_ends_it() {
        for (bytes, before, why) in [
            (&b"<a>\xff</a>"[..], "<a>", "UTF-8"),
            (b"<a>\xe6\xb0", "<a>", "UTF-8"),
            (b"<a>\x01</a>", "<a>", "U+0001"),
            (b"<a>x\xef\xbf\xbe</a>", "<a>x", "U+FFFE"),
            (b"<a>\xef\xbf\xbd\0", "<a>\u{FFFD}", "U+0000"),
            (b"\xff\xfe<\0\x00\xd8<\0", "<", "UTF-16LE"),
            (b"<?xml encoding='us-ascii'?>\xe9", "<?xml encoding='us-ascii'?>", "US-ASCII"),
            (b"<?xml encoding='klingon'?>", "", "klingon"),
            (b"<?xml encoding='utf-16'?>", "", "utf-16"),
            (b"<\0\0\0", "", "UTF-32"),
        ] {
            let (text, broken) = decoded(bytes);
            assert_eq!(text, before);
            assert!(broken.as_ref().is_some_and(|told| told.contains(why)), "{why}: {broken:?}");
        }
    }

    #[test]
    fn line_ends_are_one_character() {
        assert_eq!(decoded(b"a\r\nb\rc\r\r\n\nd\r").0, "a\nb\nc\n\n\nd\n");
    }
}
