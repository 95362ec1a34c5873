//! Contexts that documents name by an address. They come from files; the network is never asked.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Names that stand for several addresses, and those.
const NAMES: [(&str, &[&str]); 3] = [
    (
        "schema.org",
        &[
            "http://schema.org",
            "http://schema.org/",
            "https://schema.org",
            "https://schema.org/",
            "http://schema.org/docs/jsonldcontext.json",
            "https://schema.org/docs/jsonldcontext.json",
            "http://schema.org/docs/jsonldcontext.jsonld",
            "https://schema.org/docs/jsonldcontext.jsonld",
        ],
    ),
    (
        "activitystreams",
        &[
            "http://www.w3.org/ns/activitystreams",
            "https://www.w3.org/ns/activitystreams",
            "https://www.w3.org/ns/activitystreams.jsonld",
        ],
    ),
    ("credentials", &["https://www.w3.org/2018/credentials/v1", "https://www.w3.org/ns/credentials/v2"]),
];

/// Endings that the file of an address may have.
const ENDINGS: [&str; 3] = ["", ".jsonld", ".json"];

/// Contexts by their addresses.
#[derive(Clone, Debug, Default)]
pub struct Contexts {
    files: Arc<HashMap<String, PathBuf>>,
    folders: Arc<Vec<PathBuf>>,
}

/// Why an argument names no context.
#[derive(Debug, thiserror::Error)]
#[error("{argument} names no context: {message}")]
pub struct ContextsError {
    argument: String,
    message: String,
}

impl Contexts {
    /// Contexts of some arguments, each either `ADDRESS=FILE`, `NAME=FILE` with one of
    /// `schema.org`, `activitystreams` and `credentials`, or a folder. In a folder the context of
    /// `https://example.org/a/b` is the file `example.org/a/b`, with `.jsonld`, `.json` or neither
    /// behind it.
    pub fn from_args(arguments: &[String]) -> Result<Contexts, ContextsError> {
        let (mut files, mut folders) = (HashMap::new(), Vec::new());
        for argument in arguments {
            let wrong = |message: String| ContextsError { argument: argument.clone(), message };
            if Path::new(argument).is_dir() {
                folders.push(PathBuf::from(argument));
                continue;
            }
            // addresses may have = in them, files seldom
            let (address, file) = argument
                .rsplit_once('=')
                .ok_or_else(|| wrong("it is neither a folder nor ADDRESS=FILE".to_owned()))?;
            let file = PathBuf::from(file);
            if !file.is_file() {
                return Err(wrong(format!("{} is no file", file.display())));
            }
            match NAMES.iter().find(|(name, _)| *name == address) {
                Some((_, addresses)) => {
                    files.extend(addresses.iter().map(|a| ((*a).to_owned(), file.clone())));
                }
                None if oxiri::Iri::parse(address).is_ok() => {
                    files.insert(address.to_owned(), file);
                }
                None => {
                    let names: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
                    let names = names.join(", ");
                    return Err(wrong(format!("{address} is neither an absolute IRI nor one of {names}")));
                }
            }
        }
        Ok(Contexts { files: Arc::new(files), folders: Arc::new(folders) })
    }

    /// The text of a context; `None` when it is not among those that are known.
    pub(crate) fn text(&self, address: &str) -> io::Result<Option<Vec<u8>>> {
        if let Some(file) = self.files.get(address) {
            return fs::read(file).map(Some);
        }
        let Some(relative) = relative(address) else { return Ok(None) };
        for folder in self.folders.iter() {
            for ending in ENDINGS {
                let file = folder.join(format!("{relative}{ending}"));
                if file.is_file() {
                    return fs::read(file).map(Some);
                }
            }
        }
        Ok(None)
    }
}

/// The path of an address within a folder of contexts; `None` where it could lead out of it.
fn relative(address: &str) -> Option<&str> {
    let (scheme, rest) = address.split_once("://")?;
    if !matches!(scheme, "http" | "https") {
        return None;
    }
    let rest = rest.split(['?', '#']).next()?.trim_end_matches('/');
    let is_plain = |part: &str| !part.is_empty() && part != "." && part != "..";
    (rest.split('/').all(is_plain) && !rest.contains('\\') && !rest.contains('\0')).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_not_left() {
        assert_eq!(relative("https://example.org/a/b?c#d"), Some("example.org/a/b"));
        assert_eq!(relative("https://schema.org/"), Some("schema.org"));
        for address in ["http://../x", "http://a/../../x", "file:///etc/x", "http:///etc", "http://a//b", "x"]
        {
            assert_eq!(relative(address), None, "{address}");
        }
    }

    #[test]
    fn arguments_are_checked() {
        let refused = |argument: &str| Contexts::from_args(&[argument.to_owned()]).unwrap_err().to_string();
        assert!(refused("nowhere").contains("neither a folder"));
        assert!(refused("schema.org=nowhere").contains("is no file"));
        assert!(refused("x=Cargo.toml").contains("activitystreams"));
        let known = Contexts::from_args(&["schema.org=Cargo.toml".to_owned()]).unwrap();
        assert!(known.text("https://schema.org/").unwrap().is_some());
        assert!(known.text("https://schema.org/other").unwrap().is_none());
    }
}
