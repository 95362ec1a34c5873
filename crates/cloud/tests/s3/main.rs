//! The stores against servers on this machine: s3s-fs, and one that answers by hand.

mod canned;
mod failures;
mod operations;
mod server;

use std::sync::Arc;

use snowmelt_cloud::{CloudOptions, Objects, open};
use snowmelt_io::{Answer, Ask, Clock, ObjectErrorKind, PutIf, Version, ask};

/// Part `part` of bucket `data`.
fn objects(options: &CloudOptions, part: &str) -> Arc<dyn Objects> {
    open(&format!("s3://data/{part}"), options).unwrap()
}

fn asked(objects: &dyn Objects, request: Ask) -> Result<Answer, ObjectErrorKind> {
    let answer = ask(objects, &Clock::real(), request);
    answer.map_err(|error| {
        let text = format!("{error} {error:?}");
        for secret in ["secret-of-tests", "token-of-tests", "KEYFORTESTS"] {
            assert!(!text.contains(secret), "{text}");
        }
        assert_eq!(error.store, *objects.name());
        error.kind
    })
}

fn put(objects: &dyn Objects, key: &str, bytes: &[u8], only: PutIf) -> Result<Version, ObjectErrorKind> {
    match asked(objects, Ask::Put { key: key.into(), bytes: bytes.into(), only })? {
        Answer::Put(version) => Ok(version),
        other => panic!("{other:?}"),
    }
}

/// Bytes, length of the object, version.
fn get(
    objects: &dyn Objects,
    key: &str,
    range: Option<std::ops::Range<u64>>,
) -> Result<(Vec<u8>, u64, Version), ObjectErrorKind> {
    match asked(objects, Ask::Get { key: key.into(), range })? {
        Answer::Got { bytes, object_bytes, version } => Ok((bytes, object_bytes, version)),
        other => panic!("{other:?}"),
    }
}

/// Keys of a list.
fn keys(
    objects: &dyn Objects,
    prefix: &str,
    after: Option<&str>,
    most: usize,
) -> Result<Vec<String>, ObjectErrorKind> {
    match asked(objects, Ask::List { prefix: prefix.into(), after: after.map(Into::into), most })? {
        Answer::Listed(listed) => Ok(listed.iter().map(|object| object.key.to_string()).collect()),
        other => panic!("{other:?}"),
    }
}
