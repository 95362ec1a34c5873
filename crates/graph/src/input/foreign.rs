//! Files of kinds that are not RDF, recognised by their first bytes, so that an error names them.

use std::path::Path;

use super::error::LoadError;

/// A kind of file, its first bytes, and advice for the user.
struct ForeignKind {
    magic: &'static [u8],
    kind: &'static str,
    advice: &'static str,
}

const UNPACK: &str = "unpack it, or pipe its text in: - is standard input";
const CONVERT: &str = "convert it to RDF first";

const KINDS: [ForeignKind; 8] = [
    ForeignKind { magic: b"BZh", kind: "compressed with bzip2", advice: UNPACK },
    ForeignKind { magic: b"\xFD7zXZ\0", kind: "compressed with xz", advice: UNPACK },
    ForeignKind { magic: b"PK\x03\x04", kind: "a zip archive", advice: UNPACK },
    ForeignKind { magic: b"7z\xBC\xAF\x27\x1C", kind: "a 7z archive", advice: UNPACK },
    ForeignKind { magic: b"\x04\x22\x4D\x18", kind: "compressed with lz4", advice: UNPACK },
    ForeignKind { magic: b"$HDT", kind: "HDT", advice: CONVERT },
    ForeignKind { magic: b"%PDF", kind: "PDF", advice: "it holds no RDF" },
    ForeignKind { magic: b"PAR1", kind: "Parquet", advice: CONVERT },
];

/// Returns an error for a file that is known to be of another kind.
pub(super) fn check(name: &str, path: Option<&Path>, head: &[u8]) -> Result<(), LoadError> {
    let foreign = |kind, advice| Err(LoadError::Foreign { file: name.to_owned(), kind, advice });
    if let Some(known) = KINDS.iter().find(|known| head.starts_with(known.magic)) {
        return foreign(known.kind, known.advice);
    }
    // tar: the magic is in the header of the first member
    if head.get(257..262) == Some(b"ustar") {
        return foreign("a tar archive", UNPACK);
    }
    let text = head.trim_ascii_start();
    let begins = |with: &str| text.get(..with.len()).is_some_and(|b| b.eq_ignore_ascii_case(with.as_bytes()));
    if begins("<!DOCTYPE html") || begins("<html") {
        return foreign("a page of HTML", "it may be the page about a file: download the file itself");
    }
    let window = &text[..text.len().min(4096)];
    let has = |part: &[u8]| memchr::memmem::find(window, part).is_some();
    if (begins("<?xml") || begins("<Ontology")) && has(b"<Ontology") && has(b"http://www.w3.org/2002/07/owl#")
    {
        let is_rdf = has(b"<rdf:RDF") || has(b":RDF ");
        if !is_rdf {
            return foreign("OWL/XML, which is not RDF/XML", "save the ontology as RDF/XML or Turtle");
        }
    }
    match path.and_then(Path::extension).and_then(|e| e.to_str()) {
        Some("csv" | "tsv") => foreign("a table (CSV or TSV)", CONVERT),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_files_are_named() {
        let told = |path: &str, head: &[u8]| {
            check("f", Some(Path::new(path)), head).err().map(|error| error.to_string()).unwrap_or_default()
        };
        assert!(told("a.nt", b"BZh91AY&SY").contains("bzip2"));
        assert!(told("a.ttl", b"\xFD7zXZ\0\0").contains("xz"));
        assert!(told("a", b"PK\x03\x04").contains("zip archive"));
        assert!(told("a.rdf", b"\n<!doctype HTML><html>").contains("HTML"));
        assert!(told("a.csv", b"a,b\n1,2\n").contains("CSV"));
        let owl = b"<?xml version=\"1.0\"?>\n<Ontology xmlns=\"http://www.w3.org/2002/07/owl#\">";
        assert!(told("a.owx", owl).contains("OWL/XML"));
        let rdf = b"<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\"/>";
        for sound in [&rdf[..], b"<a:b> <a:p> \"BZh\" .", b"", b"# csv, html"] {
            assert_eq!(told("a.ttl", sound), "");
        }
        let mut tar = vec![b'a'; 512];
        tar[257..262].copy_from_slice(b"ustar");
        assert!(told("a", &tar).contains("tar"));
    }
}
