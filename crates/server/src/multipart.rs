//! `multipart/form-data` (RFC 7578) as far as documents are uploaded with it: parts with a
//! Content-Type and their bytes.
//!
//! Forms come from people and are small: their body is held in memory, up to [`MOST_BYTES`] and
//! [`MOST_PARTS`]. Large documents are sent as they are.
//!
//! The library for this, `multer`, reads no forms with bare line feeds, and has no limit on the
//! head of a part: it holds all of it, and searches it anew with each piece that comes.

use std::io::Read;
use std::path::PathBuf;

use hyper::StatusCode;
use memchr::memmem;
use snowmelt_database::MemoryBudget;

use crate::refusal::Refusal;
use crate::request::media_type;
use crate::spool::{Spool, Spooled, no_memory};

/// Most bytes of a form.
const MOST_BYTES: u64 = 64 << 20;
/// Most parts of one: each takes memory, however short it is.
const MOST_PARTS: usize = 1000;
/// Most bytes of a boundary (RFC 2046, 5.1.1).
const MOST_BOUNDARY: usize = 70;

/// The boundary, if the type is that of a form with parts.
pub fn boundary(content_type: &str) -> Option<String> {
    if media_type(content_type) != "multipart/form-data" {
        return None;
    }
    content_type.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("boundary").then(|| value.trim().trim_matches('"').to_owned())
    })
}

/// A document of a body: the whole body, or a part of a form.
pub struct BodyPart {
    pub content_type: String,
    pub body: Spooled,
}

/// The parts of a form.
pub fn parts(
    body: Spooled,
    boundary: &str,
    budget: &MemoryBudget,
    dir: &(dyn Fn() -> PathBuf + Sync),
) -> Result<Vec<BodyPart>, Refusal> {
    let bad =
        |message: &str| Refusal::new(StatusCode::BAD_REQUEST, format!("multipart/form-data: {message}"));
    if !(1..=MOST_BOUNDARY).contains(&boundary.len()) {
        return Err(bad(&format!("the boundary has 1 to {MOST_BOUNDARY} characters")));
    }
    let size = body.len().map_err(|e| bad(&e.to_string()))?;
    if size > MOST_BYTES {
        return Err(Refusal::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "send a large document as it is, not in a form",
        ));
    }
    let _memory = budget.reserve("a form", size).map_err(|e| no_memory(&e))?;
    let mut bytes = Vec::with_capacity(size as usize);
    body.take(MOST_BYTES).read_to_end(&mut bytes).map_err(|e| bad(&e.to_string()))?;
    let cut =
        cut(&bytes, boundary.as_bytes()).ok_or_else(|| bad("the parts do not end with their boundary"))?;
    if cut.len() > MOST_PARTS {
        let message = format!("a form of more than {MOST_PARTS} parts, the limit: send them one by one");
        return Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, message));
    }
    let mut parts = Vec::new();
    for part in cut {
        let (head, body) = head_and_body(part).ok_or_else(|| bad("a part has no head"))?;
        let mut spool = Spool::new(budget, dir);
        let spooled = spool.append(body).and_then(|()| spool.finish());
        let body = spooled.map_err(|e| bad(&e.to_string()))?;
        parts.push(BodyPart { content_type: content_type_of(head), body });
    }
    if parts.is_empty() { Err(bad("there is no part")) } else { Ok(parts) }
}

/// The parts between the lines `--boundary`, up to `--boundary--`.
fn cut<'a>(bytes: &'a [u8], boundary: &[u8]) -> Option<Vec<&'a [u8]>> {
    let line = [b"--", boundary].concat();
    let is_at_begin = |start: &usize| *start == 0 || bytes[*start - 1] == b'\n';
    let starts: Vec<usize> = memmem::find_iter(bytes, &line).filter(is_at_begin).collect();
    let last = *starts.last()?;
    if !bytes[last + line.len()..].starts_with(b"--") {
        return None;
    }
    let part = |pair: &[usize]| {
        let part = &bytes[pair[0] + line.len()..pair[1]];
        let part = part.strip_prefix(b"\r\n").or_else(|| part.strip_prefix(b"\n")).unwrap_or(part);
        part.strip_suffix(b"\r\n").or_else(|| part.strip_suffix(b"\n")).unwrap_or(part)
    };
    Some(starts.windows(2).map(part).collect())
}

fn head_and_body(part: &[u8]) -> Option<(&[u8], &[u8])> {
    let crlf = memmem::find(part, b"\r\n\r\n").map(|at| (at, at + 4));
    let lf = memmem::find(part, b"\n\n").map(|at| (at, at + 2));
    let (end, body) = crlf.into_iter().chain(lf).min()?;
    Some((&part[..end], &part[body..]))
}

fn content_type_of(head: &[u8]) -> String {
    let head = String::from_utf8_lossy(head);
    let mut lines = head.lines().filter_map(|line| line.split_once(':'));
    lines
        .find(|(name, _)| name.trim().eq_ignore_ascii_case("content-type"))
        .map_or_else(String::new, |(_, value)| value.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<(String, String)>, u16> {
        read_with(text, "b")
    }

    fn read_with(text: &str, boundary: &str) -> Result<Vec<(String, String)>, u16> {
        let budget = MemoryBudget::new(16 << 20);
        let mut spool = Spool::new(&budget, &std::env::temp_dir);
        spool.append(text.as_bytes()).unwrap();
        let parts = parts(spool.finish().unwrap(), boundary, &budget, &std::env::temp_dir)
            .map_err(|refusal| refusal.status.as_u16())?;
        let text = |mut body: Spooled| {
            let mut text = String::new();
            body.read_to_string(&mut text).unwrap();
            text
        };
        Ok(parts.into_iter().map(|part| (part.content_type, text(part.body))).collect())
    }

    #[test]
    fn parts_with_either_line_end() {
        let expected =
            Ok(vec![("text/turtle".into(), "<a> <b> <c> .".into()), (String::new(), "x\ny".into())]);
        let text = "--b\nContent-Disposition: form-data; name=\"f\"\nContent-Type: text/turtle\n\n<a> <b> <c> .\n--b\nX: 1\n\nx\ny\n--b--\n";
        assert_eq!(read(text), expected);
        let crlf =
            "--b\r\ncontent-type: text/turtle\r\n\r\n<a> <b> <c> .\r\n--b\r\nX: 1\r\n\r\nx\ny\r\n--b--";
        assert_eq!(read(crlf), expected);
    }

    #[test]
    fn broken_forms_are_refused() {
        for text in ["", "--b\nX: 1\n\nx\n", "--b\nno head\n--b--", "--b--"] {
            assert_eq!(read(text), Err(400), "{text:?}");
        }
    }

    /// A form whose parts are compared with a long boundary, or are many, takes little of either.
    #[test]
    fn hostile_forms_are_refused() {
        let dashes = "-".repeat(1 << 20);
        for boundary in [String::new(), "-".repeat(MOST_BOUNDARY + 1), "-".repeat(100_000) + "x"] {
            assert_eq!(read_with(&dashes, &boundary), Err(400), "{} characters", boundary.len());
        }
        assert_eq!(read_with(&dashes, &"-".repeat(MOST_BOUNDARY)), Err(400));
        let form = |parts: usize| format!("{}--b--", "--b\nX: 1\n\nx\n".repeat(parts));
        assert_eq!(read(&form(MOST_PARTS)).map(|parts| parts.len()), Ok(MOST_PARTS));
        assert_eq!(read(&form(MOST_PARTS + 1)), Err(413));
    }

    #[test]
    fn boundaries() {
        assert_eq!(boundary("multipart/form-data; charset=x; boundary=\"a b\""), Some("a b".into()));
        assert_eq!(boundary("text/turtle; boundary=a"), None);
    }
}
