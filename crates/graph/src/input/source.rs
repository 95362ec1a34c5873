//! Inputs of a load: opening, decompression, format.
//!
//! Compression is detected by the first bytes. The format is the given one, else that of the file
//! name, else a guess from the first bytes (N-Triples if nothing points to another).

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use oxrdfio::RdfFormat;
use oxttl::NQuadsParser;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::input::error::{LoadError, LoadOption};
use crate::input::looking::Looking;
use crate::input::ntriples::nests_too_deep;
use crate::interrupt::Interrupt;

/// Formats by the names the command line takes.
const FORMATS: [(&str, RdfFormat); 7] = [
    ("nt", RdfFormat::NTriples),
    ("nq", RdfFormat::NQuads),
    ("ttl", RdfFormat::Turtle),
    ("trig", RdfFormat::TriG),
    ("rdf", RdfFormat::RdfXml),
    ("jsonld", RdfFormat::JsonLd { profile: oxrdfio::JsonLdProfileSet::empty() }),
    ("n3", RdfFormat::N3),
];
/// The names in [`FORMATS`], for messages.
const FORMAT_NAMES: &str = "nt, nq, ttl, trig, rdf, jsonld, n3";
/// First bytes of compressed files.
const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// The mark with which some programs begin a UTF-8 text. It does not tell the format.
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";
/// Largest window a zstd file may ask for, as a power of two: for our own files that of
/// `zstd --long=31`; for files sent by others 8 MiB, which every decoder must support (RFC 8878,
/// 3.1.1.1.2). A few bytes can ask for 2 GiB.
const OWN_WINDOW_LOG: u32 = 31;
const SENT_WINDOW_LOG: u32 = 23;
/// Bytes examined to detect compression and format; less where the format is known, since each
/// request that waits for a slot to parse in holds them.
const SNIFF_BYTES: usize = 64 << 10;
const KNOWN_SNIFF_BYTES: usize = 4 << 10;

/// One input of a load.
pub enum Source {
    /// A file.
    File(PathBuf),
    /// Standard input.
    Stdin,
    /// Any reader, with a name for messages.
    Reader {
        /// Its name in messages.
        name: String,
        /// The bytes.
        read: Box<dyn Read + Send>,
    },
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Source").field(&self.name()).finish()
    }
}

impl Source {
    /// The input named by a command-line argument: `-` is standard input.
    pub fn from_arg(arg: &str) -> Source {
        if arg == "-" { Source::Stdin } else { Source::File(arg.into()) }
    }

    /// Its name in messages.
    pub fn name(&self) -> String {
        match self {
            Source::File(path) => path.display().to_string(),
            Source::Stdin => "-".to_owned(),
            Source::Reader { name, .. } => name.clone(),
        }
    }

    /// Fails if it is known beforehand that the input cannot be read.
    pub(crate) fn check(&self) -> Result<(), LoadError> {
        let Source::File(path) = self else { return Ok(()) };
        open_file(path).map(drop).map_err(|source| LoadError::Input { file: self.name(), source })
    }

    /// Whether it is compressed; `None` if that cannot be known beforehand.
    pub(crate) fn is_compressed(&self) -> Option<bool> {
        let Source::File(path) = self else { return None };
        let mut head = [0; 4];
        let len = File::open(path).ok()?.read(&mut head).ok()?;
        Some(head[..len].starts_with(&GZIP) || head[..len].starts_with(&ZSTD))
    }

    /// Its stored size, if known.
    pub(crate) fn len_bytes(&self) -> Option<u64> {
        match self {
            Source::File(path) => {
                let meta = std::fs::metadata(path).ok()?;
                meta.is_file().then_some(meta.len())
            }
            _ => None,
        }
    }

    /// Opens it. `read_bytes` counts the bytes read, before decompression.
    pub(crate) fn open<'a>(
        self,
        format: Option<RdfFormat>,
        read_bytes: &Arc<AtomicU64>,
        cancel: &'a dyn Interrupt,
    ) -> Result<Input<'a>, LoadError> {
        let name = self.name();
        let failed = |source| LoadError::Input { file: name.clone(), source };
        let path = match &self {
            Source::File(path) => Some(path.clone()),
            _ => None,
        };
        let is_ours = !matches!(self, Source::Reader { .. });
        let read: Box<dyn Read + Send + 'a> = match self {
            Source::File(path) => {
                let file = open_file(&path).map_err(failed)?;
                // A named pipe may stay silent as long as standard input.
                match file.metadata().map_err(failed)?.is_file() {
                    true => Box::new(file),
                    false => Box::new(Patient { file, cancel }),
                }
            }
            Source::Stdin => {
                let file = io::stdin().as_fd().try_clone_to_owned().map_err(failed)?.into();
                Box::new(Patient { file, cancel })
            }
            Source::Reader { read, .. } => read,
        };
        let counted = Counted { read, bytes: Arc::clone(read_bytes) };
        let sniffed = if format.is_some() { KNOWN_SNIFF_BYTES } else { SNIFF_BYTES };
        let window_log = if is_ours { OWN_WINDOW_LOG } else { SENT_WINDOW_LOG };
        let (read, mut text_head) = decompress(counted, window_log, sniffed).map_err(failed)?;
        if text_head.starts_with(BYTE_ORDER_MARK) {
            text_head.drain(..BYTE_ORDER_MARK.len());
        }
        // the file name does not count if the caller gives the format
        let named = path.as_deref().filter(|_| format.is_none());
        super::foreign::check(&name, named, &text_head)?;
        let read: Text<'a> = Box::new(Looking::new(read, cancel));
        let by_name = path.as_deref().and_then(format_of_name);
        let (format, told_by) = match (format, by_name) {
            (Some(format), _) => (format, FormatToldBy::Caller),
            (None, Some(format)) => (format, FormatToldBy::Name),
            (None, None) => (sniff(&text_head), FormatToldBy::Content),
        };
        let base = path.as_deref().and_then(file_iri);
        Ok(Input { name, format, told_by, base, read: Box::new(io::Cursor::new(text_head).chain(read)) })
    }
}

/// Standard input or a pipe, which may stay silent for long: a cancelled load does not wait for
/// it.
struct Patient<'a> {
    file: File,
    cancel: &'a dyn Interrupt,
}

/// How often a silent standard input checks whether the load was cancelled.
const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

impl Read for Patient<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.cancel.is_set() {
                return Err(io::Error::other("cancelled"));
            }
            let mut fds = [PollFd::new(&self.file, PollFlags::IN)];
            match poll(&mut fds, Some(&PATIENCE)) {
                Ok(0) => {}
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
                Ok(_) => match self.file.read(buf) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    read => return read,
                },
            }
        }
    }
}

fn open_file(path: &Path) -> io::Result<File> {
    // Otherwise opening a pipe would wait for its writer.
    let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    if file.metadata()?.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory"));
    }
    Ok(file)
}

/// An opened input.
pub(crate) struct Input<'a> {
    pub(crate) name: String,
    pub(crate) format: RdfFormat,
    pub(crate) told_by: FormatToldBy,
    /// The IRI of its file, against which relative IRIs are resolved.
    pub(crate) base: Option<String>,
    pub(crate) read: Text<'a>,
}

/// The source of an input's format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FormatToldBy {
    /// The caller.
    Caller,
    /// The name of the file.
    Name,
    /// The first bytes: a guess.
    Content,
}

/// The `file:` IRI of a path (RFC 8089).
fn file_iri(path: &Path) -> Option<String> {
    let path = std::path::absolute(path).ok()?;
    let mut iri = String::from("file://");
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'/' | b'-' | b'.' | b'_' | b'~' => iri.push(char::from(*byte)),
            byte if byte.is_ascii_alphanumeric() => iri.push(char::from(*byte)),
            byte => iri.push_str(&format!("%{byte:02X}")),
        }
    }
    Some(iri)
}

/// The text without a leading byte order mark.
pub(crate) fn without_mark<R: Read>(mut read: R) -> io::Result<impl Read> {
    let mut head = Vec::new();
    read.by_ref().take(BYTE_ORDER_MARK.len() as u64).read_to_end(&mut head)?;
    if head == BYTE_ORDER_MARK {
        head.clear();
    }
    Ok(io::Cursor::new(head).chain(read))
}

/// A decompressed input.
type Text<'a> = Box<dyn Read + Send + 'a>;

struct Counted<R> {
    read: R,
    bytes: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.read.read(buf)?;
        self.bytes.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

/// The first bytes of a text, taken out of it.
fn head_of(read: &mut impl Read, bytes: usize) -> io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(bytes);
    read.take(bytes as u64).read_to_end(&mut head)?;
    Ok(head)
}

/// The decompressed text of an input, and its first bytes, already removed from it.
fn decompress<'a>(
    mut read: impl Read + Send + 'a,
    window_log: u32,
    sniffed: usize,
) -> io::Result<(Text<'a>, Vec<u8>)> {
    let head = head_of(&mut read, sniffed)?;
    let gzip = head.starts_with(&GZIP);
    let zstd = head.starts_with(&ZSTD);
    if !gzip && !zstd {
        return Ok((Box::new(read), head));
    }
    let whole = io::Cursor::new(head).chain(read);
    let mut text: Text<'a> = if gzip {
        Box::new(flate2::read::MultiGzDecoder::new(io::BufReader::with_capacity(256 << 10, whole)))
    } else {
        let mut decoder = zstd::Decoder::new(whole)?;
        decoder.window_log_max(window_log)?;
        Box::new(decoder)
    };
    let head = head_of(&mut text, sniffed)?;
    Ok((text, head))
}

/// The format for a name on the command line: a file extension or a media type.
pub fn format_named(name: &str) -> Result<RdfFormat, LoadError> {
    let lower = name.to_ascii_lowercase();
    let listed = FORMATS.iter().find(|(known, _)| *known == lower).map(|(_, format)| *format);
    let long = match lower.as_str() {
        "ntriples" | "n-triples" => Some(RdfFormat::NTriples),
        "nquads" | "n-quads" => Some(RdfFormat::NQuads),
        "turtle" => Some(RdfFormat::Turtle),
        "rdfxml" | "rdf/xml" => Some(RdfFormat::RdfXml),
        _ => None,
    };
    listed
        .or(long)
        .or_else(|| RdfFormat::from_extension(&lower))
        .or_else(|| RdfFormat::from_media_type(&lower))
        .ok_or_else(|| LoadError::Option {
            option: LoadOption::Format,
            message: format!("{name} is no RDF format known here; there are {FORMAT_NAMES}"),
        })
}

/// The format of a media type, without parameters.
pub fn format_of_media_type(media_type: &str) -> Option<RdfFormat> {
    RdfFormat::from_media_type(media_type)
}

/// The format by the file's extension, which may precede `.gz` or `.zst`.
fn format_of_name(path: &Path) -> Option<RdfFormat> {
    let name = path.file_name()?.to_str()?.to_ascii_lowercase();
    let plain = [".gz", ".zst", ".zstd"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(&name);
    let (_, extension) = plain.rsplit_once('.')?;
    match extension {
        "xml" => Some(RdfFormat::RdfXml),
        "json" => RdfFormat::from_extension("jsonld"),
        other => RdfFormat::from_extension(other),
    }
}

/// Guesses the format from the first bytes.
fn sniff(head: &[u8]) -> RdfFormat {
    let text = behind_version(head.trim_ascii_start());
    let starts =
        |with: &str| text.get(..with.len()).is_some_and(|start| start.eq_ignore_ascii_case(with.as_bytes()));
    let is_utf_16 =
        [&b"\xFF\xFE<\0"[..], b"\xFE\xFF\0<", b"<\0?\0", b"\0<\0?"].iter().any(|mark| head.starts_with(mark));
    if is_utf_16 || starts("<?xml") || starts("<rdf:") || starts("<!DOCTYPE") {
        return RdfFormat::RdfXml;
    }
    if matches!(text.first(), Some(b'{' | b'[')) && !starts("[]") {
        return RdfFormat::from_extension("jsonld").unwrap_or(RdfFormat::NTriples);
    }
    if ["@prefix", "@base", "@version", "prefix", "base"].iter().any(|with| starts(with)) {
        return RdfFormat::TriG;
    }
    let lines = &text[..memchr::memrchr(b'\n', text).unwrap_or(text.len())];
    let in_graph = |quad: oxrdf::Quad| quad.graph_name != oxrdf::GraphName::DefaultGraph;
    // Each by itself: how deep terms are is known up to the first fault.
    let mut statements = lines.split(|byte| *byte == b'\n').filter(|line| !nests_too_deep(line));
    match statements
        .any(|line| NQuadsParser::new().for_slice(line).next().is_some_and(|quad| quad.is_ok_and(in_graph)))
    {
        true => RdfFormat::NQuads,
        false => RdfFormat::NTriples,
    }
}

/// A text behind its first line, if that tells the version of RDF: N-Triples may begin so, too.
fn behind_version(text: &[u8]) -> &[u8] {
    match text.get(..7) {
        Some(word) if word.eq_ignore_ascii_case(b"version") => {
            let end = memchr::memchr(b'\n', text).unwrap_or(text.len());
            text[end..].trim_ascii_start()
        }
        _ => text,
    }
}

/// Cuts a text into chunks of whole lines.
pub(crate) struct Lines<R> {
    read: R,
    /// The beginning of a line whose end is not yet read.
    rest: Vec<u8>,
    chunk_bytes: usize,
}

/// Longest line accepted.
const MAX_LINE_BYTES: usize = 64 << 20;

impl<R: Read> Lines<R> {
    /// Chunks of about `chunk_bytes`; a chunk is longer only if a line is.
    pub(crate) fn new(read: R, chunk_bytes: usize) -> Self {
        Lines { read, rest: Vec::new(), chunk_bytes }
    }

    /// Replaces `chunk` by the next lines; false at the end.
    pub(crate) fn next(&mut self, chunk: &mut Vec<u8>) -> io::Result<bool> {
        chunk.clear();
        chunk.append(&mut self.rest);
        loop {
            // Fill the chunk; when it is full of one unfinished line, double it.
            let len = chunk.len();
            let want = if len < self.chunk_bytes { self.chunk_bytes - len } else { len };
            chunk.reserve(want);
            let got = self.read.by_ref().take(want as u64).read_to_end(chunk)?;
            if got == 0 {
                return Ok(!chunk.is_empty());
            }
            if let Some(end) = memchr::memrchr(b'\n', chunk) {
                self.rest.extend_from_slice(&chunk[end + 1..]);
                chunk.truncate(end + 1);
                return Ok(true);
            }
            if chunk.len() > MAX_LINE_BYTES {
                let message = format!("a line of more than {} MiB", MAX_LINE_BYTES >> 20);
                return Err(io::Error::new(io::ErrorKind::InvalidData, message));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_iri_of_a_file() {
        assert_eq!(file_iri(Path::new("/a b/ü.ttl")).unwrap(), "file:///a%20b/%C3%BC.ttl");
        assert!(file_iri(Path::new("x.ttl")).unwrap().ends_with("/x.ttl"));
    }

    #[test]
    fn lines_stay_whole() {
        let text = b"a\nbb\n\nccc\nlonger than a chunk\nd";
        for size in 1..40 {
            let mut lines = Lines::new(&text[..], size);
            let (mut chunk, mut all) = (Vec::new(), Vec::new());
            while lines.next(&mut chunk).unwrap() {
                all.extend_from_slice(&chunk);
                assert!(chunk.ends_with(b"\n") || all == text, "size {size}: {chunk:?}");
            }
            assert_eq!(all, text, "size {size}");
        }
    }

    #[test]
    fn formats_are_recognised() {
        for (text, format) in [
            ("<a:s> <a:p> <a:o> .\n", RdfFormat::NTriples),
            ("# c\n<a:s> <a:p> \"x\" <a:g> .\n", RdfFormat::NQuads),
            ("@prefix a: <b:> .", RdfFormat::TriG),
            ("PREFIX a: <b:>", RdfFormat::TriG),
            ("<?xml version='1.0'?>", RdfFormat::RdfXml),
            ("<\0?\0x\0m\0l\0", RdfFormat::RdfXml),
            ("\0<\0?\0x\0m\0l", RdfFormat::RdfXml),
            ("", RdfFormat::NTriples),
        ] {
            assert_eq!(sniff(text.as_bytes()), format, "{text}");
        }
        assert!(matches!(sniff(b" {\"@id\": 1}"), RdfFormat::JsonLd { .. }));
        assert_eq!(format_of_name(Path::new("a.b/c.ttl.gz")), Some(RdfFormat::Turtle));
        assert_eq!(format_of_name(Path::new("c.NT")), Some(RdfFormat::NTriples));
        assert_eq!(format_of_name(Path::new("c.zst")), None);
        assert_eq!(format_named("N-Quads").unwrap(), RdfFormat::NQuads);
        assert!(format_named("csv").unwrap_err().to_string().contains("jsonld"));
    }
}
