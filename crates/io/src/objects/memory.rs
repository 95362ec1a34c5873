//! An object store in memory: for tests, and as the objects under a timed or a faulty one.
//!
//! Versions are numbers that never come again, so a put of the same bytes is another version.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::Mutex;

use crate::objects::bounds::wanted;
use crate::objects::{
    Answer, Ask, Done, Listed, ObjectError, ObjectErrorKind, Objects, Ongoing, PutIf, Version,
};

/// Objects in memory. Answers within [`Objects::begin`].
pub struct MemoryObjects {
    name: Arc<str>,
    state: Mutex<MemoryState>,
}

#[derive(Default)]
struct MemoryState {
    objects: BTreeMap<Arc<str>, MemoryObject>,
    /// Puts so far: the version of the last.
    puts: u64,
}

struct MemoryObject {
    bytes: Arc<[u8]>,
    version: Version,
    written_unix_ms: u64,
}

impl MemoryObjects {
    /// An empty store called `name`.
    pub fn new(name: &str) -> MemoryObjects {
        MemoryObjects { name: name.into(), state: Mutex::default() }
    }

    /// Number of objects.
    pub fn len(&self) -> usize {
        self.state.lock().objects.len()
    }

    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl MemoryState {
    fn answer(&mut self, ask: &Ask) -> Result<Answer, ObjectErrorKind> {
        match ask {
            Ask::Get { key, range } => {
                let object = self.objects.get(key).ok_or(ObjectErrorKind::Missing)?;
                let object_bytes = object.bytes.len() as u64;
                let range = wanted(range.as_ref(), object_bytes)?;
                let bytes = object.bytes[range.start as usize..range.end as usize].to_vec();
                Ok(Answer::Got { bytes, object_bytes, version: object.version.clone() })
            }
            Ask::Put { key, bytes, only } => self.put(key, bytes, only).map(Answer::Put),
            Ask::Delete { key } => {
                self.objects.remove(key);
                Ok(Answer::Deleted)
            }
            Ask::List { prefix, after, most } => Ok(Answer::Listed(self.list(prefix, after.as_ref(), *most))),
        }
    }

    fn put(&mut self, key: &Arc<str>, bytes: &Arc<[u8]>, only: &PutIf) -> Result<Version, ObjectErrorKind> {
        let before = self.objects.get(key).map(|object| &object.version);
        let holds = match only {
            PutIf::Always => true,
            PutIf::Absent => before.is_none(),
            PutIf::Is(version) => before == Some(version),
        };
        if !holds {
            return Err(ObjectErrorKind::Changed);
        }
        self.puts += 1;
        let version = Version(self.puts.to_string().into());
        let since_1970 = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        let object = MemoryObject {
            bytes: bytes.clone(),
            version: version.clone(),
            written_unix_ms: since_1970.as_millis() as u64,
        };
        self.objects.insert(key.clone(), object);
        Ok(version)
    }

    fn list(&self, prefix: &Arc<str>, after: Option<&Arc<str>>, most: usize) -> Vec<Listed> {
        let from = match after {
            Some(after) if after >= prefix => Bound::Excluded(after.clone()),
            _ => Bound::Included(prefix.clone()),
        };
        let from_there = self.objects.range((from, Bound::Unbounded));
        let with_prefix = from_there.take_while(|(key, _)| key.starts_with(&**prefix));
        let listed = with_prefix.map(|(key, object)| Listed {
            key: key.clone(),
            bytes: object.bytes.len() as u64,
            written_unix_ms: object.written_unix_ms,
        });
        listed.take(most).collect()
    }
}

impl Objects for MemoryObjects {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn begin(&self, ask: Ask, done: Done) -> Ongoing {
        let answer = self.state.lock().answer(&ask);
        done(answer.map_err(|kind| ObjectError::new(&self.name, &ask, kind)));
        Ongoing::over()
    }
}
