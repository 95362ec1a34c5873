//! A check of the one thing that publishing relies on: of two puts on the same condition, a store
//! refuses one. Some servers take the headers of conditions and ignore them.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;

use snowmelt_io::{Answer, Ask, Clock, ObjectError, ObjectErrorKind, Objects, PutIf, Version, ask};

/// Asks a store whether it obeys the conditions of puts, with one small object under a random key
/// that begins with `beginning`; it is deleted in the end. Five short requests.
///
/// 1. Put it if there is none: its first version.
/// 2. Put it if there is none: refused.
/// 3. Put another one if it is of the first version: its second version.
/// 4. Put it if it is of the first version: refused.
///
/// # Errors
/// [`ObjectErrorKind::Unsupported`] if the store ignores a condition or refuses one that holds; any
/// failure of a request.
pub fn conditional_puts_work(
    objects: &dyn Objects,
    clock: &Clock,
    beginning: &str,
) -> Result<(), ObjectError> {
    let key: Arc<str> =
        format!("{beginning}check-of-conditions-{:016x}", RandomState::new().build_hasher().finish()).into();
    let checked = check(objects, clock, &key);
    let deleted = ask(objects, clock, Ask::Delete { key });
    checked.and(deleted.map(|_| ()))
}

fn check(objects: &dyn Objects, clock: &Clock, key: &Arc<str>) -> Result<(), ObjectError> {
    let put = |text: &str, only: PutIf| put(objects, clock, key, text, only);
    let refused = |told: &str| ObjectError {
        store: objects.name().clone(),
        ask: "put",
        key: key.clone(),
        kind: ObjectErrorKind::Unsupported(format!("this store {told}: publishing would not be safe")),
    };
    let ignored = |condition: &str| refused(&format!("ignores conditions of puts ({condition})"));
    let first = put("first", PutIf::Absent)?.ok_or_else(|| refused("refuses a put whose condition holds"))?;
    if put("again", PutIf::Absent)?.is_some() {
        return Err(ignored("no object has the key"));
    }
    let second = put("second", PutIf::Is(first.clone()))?;
    let second = second.ok_or_else(|| refused("refuses a put whose condition holds"))?;
    if second == first || put("third", PutIf::Is(first))?.is_some() {
        return Err(ignored("the object is of this version"));
    }
    Ok(())
}

/// The version that a put made; `None`: its condition does not hold.
fn put(
    objects: &dyn Objects,
    clock: &Clock,
    key: &Arc<str>,
    text: &str,
    only: PutIf,
) -> Result<Option<Version>, ObjectError> {
    let bytes = text.as_bytes().into();
    match ask(objects, clock, Ask::Put { key: key.clone(), bytes, only }) {
        Ok(Answer::Put(version)) => Ok(Some(version)),
        Ok(_) => unreachable!("a put is answered by a version"),
        Err(ObjectError { kind: ObjectErrorKind::Changed, .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
