//! Requests to a store, one line each.
#![allow(dead_code)]

use std::ops::Range;

use snowmelt_io::*;

#[derive(Debug)]
pub struct Object {
    pub bytes: Vec<u8>,
    pub len: u64,
    pub version: Version,
}

/// A store that is asked in a clock's time.
pub struct Calls<'a>(pub &'a dyn Objects, pub &'a Clock);

impl Calls<'_> {
    pub fn get(&self, key: &str, range: Option<Range<u64>>) -> Result<Object, ObjectErrorKind> {
        match self.ask(Ask::Get { key: key.into(), range })? {
            Answer::Got { bytes, object_bytes, version } => Ok(Object { bytes, len: object_bytes, version }),
            other => panic!("a get was answered with {other:?}"),
        }
    }

    pub fn put(&self, key: &str, bytes: &[u8], only: PutIf) -> Result<Version, ObjectErrorKind> {
        match self.ask(Ask::Put { key: key.into(), bytes: bytes.into(), only })? {
            Answer::Put(version) => Ok(version),
            other => panic!("a put was answered with {other:?}"),
        }
    }

    pub fn delete(&self, key: &str) -> Result<(), ObjectErrorKind> {
        match self.ask(Ask::Delete { key: key.into() })? {
            Answer::Deleted => Ok(()),
            other => panic!("a delete was answered with {other:?}"),
        }
    }

    pub fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        most: usize,
    ) -> Result<Vec<Listed>, ObjectErrorKind> {
        match self.ask(Ask::List { prefix: prefix.into(), after: after.map(Into::into), most })? {
            Answer::Listed(listed) => Ok(listed),
            other => panic!("a list was answered with {other:?}"),
        }
    }

    /// All keys with a prefix, asked for `most` at a time.
    pub fn keys(&self, prefix: &str, most: usize) -> Result<Vec<String>, ObjectErrorKind> {
        let mut keys: Vec<String> = Vec::new();
        loop {
            let page = self.list(prefix, keys.last().map(|key| key.as_str()), most)?;
            if page.is_empty() {
                return Ok(keys);
            }
            keys.extend(page.iter().map(|listed| listed.key.to_string()));
        }
    }

    fn ask(&self, of: Ask) -> Result<Answer, ObjectErrorKind> {
        ask(self.0, self.1, of).map_err(|e| e.kind)
    }
}
