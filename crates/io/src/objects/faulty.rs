//! A store that fails as stores and the ways to them do: by a seed, at known rates, with a list of
//! the faults.
//!
//! | fault            | answered                          | in the store                         |
//! |------------------|-----------------------------------|--------------------------------------|
//! | `unavailable`    | an error                          | unchanged                            |
//! | `too_often`      | "asked too often"                 | unchanged                            |
//! | `silent`         | nothing, ever                     | changed or not, by chance            |
//! | `short`          | success, with too few bytes       |                                      |
//! | `bit_flip`       | success, with one bit changed     |                                      |
//! | `stale`          | success, the object before        |                                      |
//! | `missing`        | "no such object"                  |                                      |
//! | `lost_answer`    | an error                          | changed (puts and deletes)           |
//! | `failed_put`     | an error                          | unchanged                            |
//! | `lagging_list`   | a list without the newest objects |                                      |
//!
//! Errors, silence, lost answers and short bytes must be mended above, or told. No layer of
//! requests can see changed bits and stale or missing objects: checksums and versions must, and the
//! list of faults says which.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use snowmelt_base::random::Random;

use crate::objects::bounds::wanted;
use crate::objects::{Answer, Ask, Done, ObjectError, ObjectErrorKind, Objects, Ongoing, Version};

/// Rates of faults, each per million requests of the kinds that it can befall.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ObjectFaultRates {
    /// Requests of all kinds that fail.
    pub unavailable: u32,
    /// Requests of all kinds that are refused as too many.
    pub too_often: u32,
    /// Requests of all kinds that are never answered.
    pub silent: u32,
    /// Gets with too few bytes.
    pub short: u32,
    /// Gets with a changed bit.
    pub bit_flip: u32,
    /// Gets of a replaced object that show the one before.
    pub stale: u32,
    /// Gets that find no object though there is one.
    pub missing: u32,
    /// Puts and deletes that happen and are said to have failed.
    pub lost_answer: u32,
    /// Puts that fail and did not happen.
    pub failed_put: u32,
    /// Lists without the newest objects.
    pub lagging_list: u32,
}

impl ObjectFaultRates {
    /// Every request fails.
    pub const OUTAGE: ObjectFaultRates = ObjectFaultRates {
        unavailable: 1_000_000,
        too_often: 0,
        silent: 0,
        short: 0,
        bit_flip: 0,
        stale: 0,
        missing: 0,
        lost_answer: 0,
        failed_put: 0,
        lagging_list: 0,
    };
}

/// The kinds of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // explained at the head of the file
pub enum ObjectFaultKind {
    Unavailable,
    TooOften,
    Silent,
    Short,
    BitFlip,
    Stale,
    Missing,
    LostAnswer,
    FailedPut,
    LaggingList,
}

/// A fault that was injected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectFault {
    /// The kind of fault.
    pub kind: ObjectFaultKind,
    /// The request, as [`Ask::name`] has it.
    pub ask: &'static str,
    /// Its key or prefix.
    pub key: Arc<str>,
}

/// Newest keys that a lagging list may lack.
const NEWEST: usize = 64;

/// A store that passes requests on to another one, except when it fails.
pub struct FaultyObjects {
    inner: Arc<dyn Objects>,
    state: Arc<Mutex<FaultyState>>,
}

struct FaultyState {
    rates: ObjectFaultRates,
    random: Random,
    faults: Vec<ObjectFault>,
    /// The latest object put under each key, and the one before.
    latest: HashMap<Arc<str>, StoredObject>,
    before: HashMap<Arc<str>, StoredObject>,
    /// Keys put lately that were not there before.
    newest: VecDeque<Arc<str>>,
}

#[derive(Clone)]
struct StoredObject {
    bytes: Arc<[u8]>,
    version: Version,
}

impl FaultyObjects {
    /// Fails as often as `rates` say; which requests is decided by `seed` and the order of
    /// requests.
    pub fn new(inner: Arc<dyn Objects>, rates: ObjectFaultRates, seed: u64) -> FaultyObjects {
        let state = FaultyState {
            rates,
            random: Random(seed),
            faults: Vec::new(),
            latest: HashMap::new(),
            before: HashMap::new(),
            newest: VecDeque::new(),
        };
        FaultyObjects { inner, state: Arc::new(Mutex::new(state)) }
    }

    /// Fails as often as `rates` say from now on.
    pub fn set_rates(&self, rates: ObjectFaultRates) {
        self.state.lock().rates = rates;
    }

    /// Faults injected so far.
    pub fn faults(&self) -> Vec<ObjectFault> {
        self.state.lock().faults.clone()
    }

    fn failed(&self, ask: &Ask, kind: ObjectErrorKind) -> Result<Answer, ObjectError> {
        Err(ObjectError::new(self.inner.name(), ask, kind))
    }

    /// Has the other store asked, and passes on what `change` makes of its answer.
    fn pass_on(
        &self,
        ask: Ask,
        done: Done,
        change: impl FnOnce(&mut FaultyState, Result<Answer, ObjectError>) -> Result<Answer, ObjectError>
        + Send
        + 'static,
    ) -> Ongoing {
        let (state, asked) = (self.state.clone(), ask.clone());
        let heard = move |answer| {
            let mut state = state.lock();
            state.remember(&asked, &answer);
            let answer = change(&mut state, answer);
            drop(state);
            done(answer);
        };
        self.inner.begin(ask, Box::new(heard))
    }
}

impl FaultyState {
    fn happens(&mut self, per_million: u32) -> bool {
        per_million > 0 && self.random.below(1_000_000) < u64::from(per_million)
    }

    fn note(&mut self, kind: ObjectFaultKind, ask: &Ask) {
        self.faults.push(ObjectFault { kind, ask: ask.name(), key: ask.key().clone() });
    }

    /// The fault that befalls a request.
    fn choose(&mut self, ask: &Ask) -> Option<ObjectFaultKind> {
        use ObjectFaultKind as Kind;
        let rates = self.rates;
        let all = [
            (rates.unavailable, Kind::Unavailable),
            (rates.too_often, Kind::TooOften),
            (rates.silent, Kind::Silent),
        ];
        let of_gets = [
            (rates.short, Kind::Short),
            (rates.bit_flip, Kind::BitFlip),
            (rates.stale, Kind::Stale),
            (rates.missing, Kind::Missing),
        ];
        let of_puts = [(rates.lost_answer, Kind::LostAnswer), (rates.failed_put, Kind::FailedPut)];
        let of_deletes = [(rates.lost_answer, Kind::LostAnswer)];
        let of_lists = [(rates.lagging_list, Kind::LaggingList)];
        let of_its_kind: &[(u32, Kind)] = match ask {
            Ask::Get { .. } => &of_gets,
            Ask::Put { .. } => &of_puts,
            Ask::Delete { .. } => &of_deletes,
            Ask::List { .. } => &of_lists,
        };
        let mut both = all.iter().chain(of_its_kind);
        both.find_map(|(rate, kind)| self.happens(*rate).then_some(*kind))
    }

    fn remember(&mut self, ask: &Ask, answer: &Result<Answer, ObjectError>) {
        match (ask, answer) {
            (Ask::Put { key, bytes, .. }, Ok(Answer::Put(version))) => {
                let object = StoredObject { bytes: bytes.clone(), version: version.clone() };
                match self.latest.insert(key.clone(), object) {
                    Some(before) => drop(self.before.insert(key.clone(), before)),
                    None => self.newest.push_back(key.clone()),
                }
                if self.newest.len() > NEWEST {
                    self.newest.pop_front();
                }
            }
            (Ask::Delete { key }, Ok(_)) => {
                self.latest.remove(key);
                self.before.remove(key);
                self.newest.retain(|new| new != key);
            }
            _ => {}
        }
    }

    /// The answer to a get with the object before the present one.
    fn stale(&self, ask: &Ask) -> Option<Answer> {
        let Ask::Get { key, range } = ask else { return None };
        let StoredObject { bytes, version } = self.before.get(key)?.clone();
        let object_bytes = bytes.len() as u64;
        let range = wanted(range.as_ref(), object_bytes).ok()?;
        let bytes = bytes[range.start as usize..range.end as usize].to_vec();
        Some(Answer::Got { bytes, object_bytes, version })
    }

    /// Changes a good answer as `kind` does, and notes it if that makes a difference.
    fn spoil(&mut self, kind: ObjectFaultKind, ask: &Ask, answer: &mut Answer) {
        let chance = self.random.word();
        let is_changed = match (kind, answer) {
            (ObjectFaultKind::Short, Answer::Got { bytes, .. }) if !bytes.is_empty() => {
                bytes.truncate((chance % bytes.len() as u64) as usize);
                true
            }
            (ObjectFaultKind::BitFlip, Answer::Got { bytes, .. }) if !bytes.is_empty() => {
                let bit = chance % (8 * bytes.len() as u64);
                bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
                true
            }
            (ObjectFaultKind::Stale, answer) => match self.stale(ask) {
                Some(stale) => {
                    *answer = stale;
                    true
                }
                None => false,
            },
            (ObjectFaultKind::LaggingList, Answer::Listed(listed)) => self.lag(ask, chance, listed),
            _ => false,
        };
        if is_changed {
            self.note(kind, ask);
        }
    }

    /// Takes some of the newest keys out of a list; not all of a full one, which would end there.
    fn lag(&self, ask: &Ask, chance: u64, listed: &mut Vec<crate::objects::Listed>) -> bool {
        let Ask::List { most, .. } = ask else { return false };
        let hidden = 1 + (chance % NEWEST as u64) as usize;
        let is_new = |key: &Arc<str>| self.newest.iter().rev().take(hidden).any(|new| new == key);
        let kept = listed.iter().filter(|it| !is_new(&it.key)).count();
        if kept == listed.len() || (kept == 0 && listed.len() == *most) {
            return false;
        }
        listed.retain(|it| !is_new(&it.key));
        true
    }
}

impl Objects for FaultyObjects {
    fn name(&self) -> &Arc<str> {
        self.inner.name()
    }

    fn begin(&self, ask: Ask, done: Done) -> Ongoing {
        use ObjectFaultKind as Kind;
        let mut state = self.state.lock();
        let Some(fault) = state.choose(&ask) else {
            drop(state);
            return self.pass_on(ask, done, |_, answer| answer);
        };
        let chance = state.random.word();
        if matches!(fault, Kind::Unavailable | Kind::TooOften | Kind::Silent | Kind::FailedPut) {
            state.note(fault, &ask);
        }
        drop(state);
        let unavailable = ObjectErrorKind::Unavailable("the store fails at the moment".into());
        match fault {
            Kind::Unavailable | Kind::FailedPut => done(self.failed(&ask, unavailable)),
            Kind::TooOften => done(self.failed(&ask, ObjectErrorKind::TooOften)),
            Kind::Silent if chance.is_multiple_of(2) => {}
            Kind::Silent => {
                let unheard = self.pass_on(ask, Box::new(|_| {}), |_, answer| answer);
                std::mem::forget(unheard); // goes on, though the caller gives it up
            }
            Kind::LostAnswer | Kind::Missing => {
                let kind = if fault == Kind::Missing { ObjectErrorKind::Missing } else { unavailable };
                let (lost, asked) = (self.failed(&ask, kind), ask.clone());
                return self.pass_on(ask, done, move |state, answer| match answer {
                    Ok(_) => {
                        state.note(fault, &asked);
                        lost
                    }
                    failed => failed,
                });
            }
            Kind::Short | Kind::BitFlip | Kind::Stale | Kind::LaggingList => {
                let asked = ask.clone();
                return self.pass_on(ask, done, move |state, answer| {
                    let mut answer = answer?;
                    state.spoil(fault, &asked, &mut answer);
                    Ok(answer)
                });
            }
        }
        Ongoing::over()
    }
}
