//! An object store in memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use snowmelt_io::{
    Answer, Ask, Done, Listed, ObjectError, ObjectErrorKind, Objects, Ongoing, PutIf, Version,
};

pub struct MemoryObjects(Arc<str>, Mutex<(u64, BTreeMap<String, (u64, Arc<[u8]>)>)>);

impl MemoryObjects {
    pub fn new(name: &str) -> Self {
        Self(name.into(), Mutex::default())
    }
}

impl Objects for MemoryObjects {
    fn name(&self) -> &Arc<str> {
        &self.0
    }
    fn begin(&self, ask: Ask, done: Done) -> Ongoing {
        let mut all = self.1.lock();
        let (next, map) = &mut *all;
        let failed =
            |kind| ObjectError { store: self.0.clone(), ask: ask.name(), key: ask.key().clone(), kind };
        let version = |n: u64| Version(n.to_string().into());
        let answer = match &ask {
            Ask::Get { key, range } => match map.get(&**key) {
                None => Err(failed(ObjectErrorKind::Missing)),
                Some((n, bytes)) => {
                    let all = 0..bytes.len() as u64;
                    let r = range.clone().unwrap_or(all);
                    let part = bytes.get(r.start as usize..r.end as usize);
                    part.map(|part| Answer::Got {
                        bytes: part.to_vec(),
                        object_bytes: bytes.len() as u64,
                        version: version(*n),
                    })
                    .ok_or_else(|| failed(ObjectErrorKind::Short { got: 0, wanted: r.end - r.start }))
                }
            },
            Ask::Put { key, bytes, only } => {
                let now = map.get(&**key).map(|(n, _)| version(*n));
                let may = match only {
                    PutIf::Always => true,
                    PutIf::Absent => now.is_none(),
                    PutIf::Is(v) => now.as_ref() == Some(v),
                };
                if may {
                    *next += 1;
                    map.insert(key.to_string(), (*next, bytes.clone()));
                    Ok(Answer::Put(version(*next)))
                } else {
                    Err(failed(ObjectErrorKind::Changed))
                }
            }
            Ask::Delete { key } => {
                map.remove(&**key);
                Ok(Answer::Deleted)
            }
            Ask::List { prefix, after, most } => Ok(Answer::Listed(
                map.iter()
                    .filter(|(key, _)| {
                        key.starts_with(&**prefix)
                            && after.as_deref().is_none_or(|after| key.as_str() > after)
                    })
                    .take(*most)
                    .map(|(key, (_, b))| Listed {
                        key: key.as_str().into(),
                        bytes: b.len() as u64,
                        written_unix_ms: 0,
                    })
                    .collect(),
            )),
        };
        drop(all);
        done(answer);
        Ongoing::over()
    }
}
