//! The four requests, in the words of `object_store`.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use object_store::list::PaginatedListOptions;
use object_store::path::Path;
use object_store::{Error, GetOptions, GetRange, GetResult, ObjectMeta, PutMode, PutOptions, PutPayload};
use snowmelt_io::{Answer, Ask, Listed, ObjectErrorKind, PutIf};

use crate::fault::{self, PutKind, Refused};
use crate::service::{self, Built};
use crate::watch::{self, Trouble};

/// Bytes that are set aside for a body before any of it has come.
const SET_ASIDE: u64 = 64 << 20;

/// Objects that a store lists at once.
const PAGE: usize = 1000;

/// Why a request has no answer.
enum Failed {
    /// The store or the way to it.
    Store(Refused, Error),
    /// Known without it.
    Kind(ObjectErrorKind),
}

impl From<ObjectErrorKind> for Failed {
    fn from(kind: ObjectErrorKind) -> Self {
        Self::Kind(kind)
    }
}

/// Answers a request for keys below `prefix`.
pub(crate) async fn answer(built: &Built, prefix: &str, ask: Ask) -> Result<Answer, ObjectErrorKind> {
    let (answer, trouble) = watch::watched(async {
        match ask {
            Ask::Get { key, range } => get(built, &path(prefix, &key)?, range).await,
            Ask::Put { key, bytes, only } => put(built, &path(prefix, &key)?, bytes, only).await,
            Ask::Delete { key } => delete(built, path(prefix, &key)?).await,
            Ask::List { prefix: beginning, after, most } => {
                list(built, prefix, &beginning, after.as_deref(), most).await
            }
        }
    })
    .await;
    answer.map_err(|failed| match failed {
        Failed::Kind(kind) => kind,
        Failed::Store(refused, error) => fault::kind(refused, &error, trouble, &built.place, &built.identity),
    })
}

fn joined(prefix: &str, key: &str) -> String {
    if prefix.is_empty() { key.to_owned() } else { format!("{prefix}/{key}") }
}

/// The whole key. One that a store would be asked for by another name is refused.
fn path(prefix: &str, key: &str) -> Result<Path, ObjectErrorKind> {
    let whole = joined(prefix, key);
    let path = Path::parse(&whole).ok().filter(|path| !key.is_empty() && path.as_ref() == whole);
    path.ok_or_else(|| {
        let reason = "a key has parts between slashes: none is empty, . or .. or has control characters";
        ObjectErrorKind::Invalid(reason.to_owned())
    })
}

async fn get(built: &Built, path: &Path, range: Option<Range<u64>>) -> Result<Answer, Failed> {
    let asked = range.as_ref().map(|range| range.end - range.start);
    let options = GetOptions { range: range.map(GetRange::Bounded), ..GetOptions::default() };
    let refused = Refused::Get { wanted: asked.unwrap_or(0) };
    let got = built.store.get_opts(path, options).await.map_err(|error| Failed::Store(refused, error))?;
    let object_bytes = got.meta.size;
    let version = service::version(built.place.service, got.meta.e_tag.clone(), got.meta.version.clone());
    let version = version
        .ok_or_else(|| ObjectErrorKind::Unsupported("the store's answer has no version (ETag)".to_owned()))?;
    let bytes = body(got, asked.unwrap_or(object_bytes)).await?;
    Ok(Answer::Got { bytes, object_bytes, version })
}

/// The body of an answer, of so many bytes.
async fn body(got: GetResult, wanted: u64) -> Result<Vec<u8>, Failed> {
    let mut bytes = Vec::with_capacity(wanted.min(SET_ASIDE) as usize);
    let mut pieces = got.into_stream();
    while let Some(piece) = pieces.next().await {
        match piece {
            Ok(piece) if bytes.len() as u64 + piece.len() as u64 <= wanted => bytes.extend_from_slice(&piece),
            Ok(_) => {
                let reason = format!("the store's answer has more than {wanted} bytes");
                return Err(ObjectErrorKind::Unsupported(reason).into());
            }
            Err(error) => {
                let refused = Refused::Get { wanted };
                return Err(match fault::lost(&error) {
                    Some(Trouble::Lost { is_late: false, .. }) => short(bytes.len(), wanted).into(),
                    _ => Failed::Store(refused, error),
                });
            }
        }
    }
    if (bytes.len() as u64) < wanted { Err(short(bytes.len(), wanted).into()) } else { Ok(bytes) }
}

fn short(got: usize, wanted: u64) -> ObjectErrorKind {
    ObjectErrorKind::Short { got: got as u64, wanted }
}

/// Shared bytes as the owner of a [`Bytes`].
struct Shared(Arc<[u8]>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

async fn put(built: &Built, path: &Path, bytes: Arc<[u8]>, only: PutIf) -> Result<Answer, Failed> {
    let service = built.place.service;
    let (mode, kind) = match &only {
        PutIf::Always => (PutMode::Overwrite, PutKind::Always),
        PutIf::Absent => (PutMode::Create, PutKind::IfAbsent),
        PutIf::Is(version) => (
            PutMode::Update(service::condition(service, version).ok_or_else(|| {
                ObjectErrorKind::Invalid("the condition of the put is not the name of a version".to_owned())
            })?),
            PutKind::IfVersion,
        ),
    };
    let refused = Refused::Put(kind);
    let payload = PutPayload::from_bytes(Bytes::from_owner(Shared(bytes)));
    let options = PutOptions { mode, ..PutOptions::default() };
    let put = built.store.put_opts(path, payload, options).await;
    let put = put.map_err(|error| Failed::Store(refused, error))?;
    let version = service::version(service, put.e_tag, put.version);
    Ok(Answer::Put(version.ok_or_else(|| {
        ObjectErrorKind::Unsupported("the store's answer to a put has no version (ETag)".to_owned())
    })?))
}

async fn delete(built: &Built, path: Path) -> Result<Answer, Failed> {
    let mut deleted = built.store.delete_stream(stream::iter([Ok(path)]).boxed());
    match deleted.next().await {
        Some(Err(error)) => {
            let trouble = watch::last_trouble();
            let kind = fault::kind(Refused::Delete, &error, trouble, &built.place, &built.identity);
            // it is not there: neither it is after a delete
            if kind == ObjectErrorKind::Missing { Ok(Answer::Deleted) } else { Err(kind.into()) }
        }
        Some(Ok(_)) | None => Ok(Answer::Deleted),
    }
}

/// Keys that begin with `beginning`, from as many pages as it takes.
async fn list(
    built: &Built,
    prefix: &str,
    beginning: &str,
    after: Option<&str>,
    most: usize,
) -> Result<Answer, Failed> {
    let beginning = joined(prefix, beginning);
    let after = after.map(|after| joined(prefix, after));
    let mut listed: Vec<Listed> = Vec::new();
    let mut page_token = None;
    while listed.len() < most {
        let options = PaginatedListOptions {
            offset: after.clone(),
            max_keys: Some((most - listed.len()).min(PAGE)),
            page_token,
            ..PaginatedListOptions::default()
        };
        let asked = Some(&*beginning).filter(|beginning| !beginning.is_empty());
        let page = built.store.list_paginated(asked, options).await;
        let page = page.map_err(|error| Failed::Store(Refused::List, error))?;
        for object in page.result.objects {
            // a store that does not know the offset begins at the first key
            let is_after = after.as_deref().is_none_or(|after| object.location.as_ref() > after);
            if is_after {
                add(&mut listed, prefix, &object)?;
            }
        }
        match page.page_token {
            Some(token) => page_token = Some(token),
            None => break,
        }
    }
    listed.truncate(most);
    Ok(Answer::Listed(listed))
}

/// Adds an object, which comes after those before it. Empty ones that do not are marks of folders,
/// which other programs write: their keys end with `/`, which is not told here.
fn add(listed: &mut Vec<Listed>, prefix: &str, object: &ObjectMeta) -> Result<(), ObjectErrorKind> {
    let whole = object.location.as_ref();
    let key = match prefix {
        "" => Some(whole),
        _ => whole.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('/')),
    };
    let Some(key) = key.filter(|key| !key.is_empty()) else { return Ok(()) };
    if listed.last().is_some_and(|last| *last.key >= *key) {
        return match object.size {
            0 => Ok(()),
            _ => Err(ObjectErrorKind::Unsupported("the store lists its keys in no order".to_owned())),
        };
    }
    let written_unix_ms = object.last_modified.timestamp_millis().max(0) as u64;
    listed.push(Listed { key: key.into(), bytes: object.size, written_unix_ms });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_asked_for_as_they_are() {
        let whole = |prefix: &str, key: &str| path(prefix, key).map(|path| path.to_string());
        assert_eq!(whole("", "a").unwrap(), "a");
        assert_eq!(whole("a/b", "c/d 1%~ä").unwrap(), "a/b/c/d 1%~ä");
        for key in ["", "/a", "a/", "a//b", ".", "a/../b", "a\nb"] {
            assert!(matches!(whole("p", key), Err(ObjectErrorKind::Invalid(_))), "{key}");
            assert!(matches!(whole("", key), Err(ObjectErrorKind::Invalid(_))), "{key}");
        }
    }

    #[test]
    fn lists_are_ascending_below_the_prefix() {
        let object = |key: &str, size| ObjectMeta {
            location: Path::parse(key).unwrap(),
            last_modified: Default::default(),
            size,
            e_tag: None,
            version: None,
        };
        let mut listed = Vec::new();
        for (key, size) in [("p", 0), ("p/b", 1), ("p/b", 0), ("p/a", 0), ("p/c", 0), ("q/d", 1)] {
            add(&mut listed, "p", &object(key, size)).unwrap();
        }
        let keys: Vec<_> = listed.iter().map(|listed| &*listed.key).collect();
        assert_eq!(keys, ["b", "c"]);
        assert!(matches!(add(&mut listed, "p", &object("p/a", 1)), Err(ObjectErrorKind::Unsupported(_))));
    }
}
