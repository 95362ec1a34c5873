//! Requests, rows, bytes and time of each endpoint.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;

/// Endpoints that are counted apart; all further ones are one, `others`.
const MOST: usize = 64;

/// All that was asked of an endpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndpointMeter {
    /// Scheme, host and port.
    pub endpoint: String,
    /// Requests that were sent, those that were tried again, too.
    pub requests: u64,
    /// Of these, those that were tried again.
    pub retries: u64,
    /// Questions that ended with an error.
    pub failed: u64,
    /// Rows received.
    pub rows: u64,
    /// Bytes of answers.
    pub bytes: u64,
    /// Time from the beginning of questions to their end.
    pub time: Duration,
}

/// The meters of all endpoints.
#[derive(Debug, Default)]
pub(crate) struct Meters(Mutex<BTreeMap<String, EndpointMeter>>);

impl Meters {
    /// Changes the meters of an endpoint.
    pub fn of(&self, origin: &str, change: impl FnOnce(&mut EndpointMeter)) {
        let mut meters = self.0.lock();
        let name = if meters.len() < MOST || meters.contains_key(origin) { origin } else { "others" };
        let named = || EndpointMeter { endpoint: name.to_owned(), ..EndpointMeter::default() };
        change(meters.entry(name.to_owned()).or_insert_with(named));
    }

    pub fn list(&self) -> Vec<EndpointMeter> {
        self.0.lock().values().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_beyond_many_are_counted_together() {
        let meters = Meters::default();
        for n in 0..200 {
            meters.of(&format!("http://e{n}"), |meter| meter.requests += 1);
        }
        let list = meters.list();
        assert_eq!(list.len(), MOST + 1);
        let others = list.iter().find(|meter| meter.endpoint == "others").unwrap();
        assert_eq!(others.requests, 200 - MOST as u64);
        assert_eq!(list.iter().map(|meter| meter.requests).sum::<u64>(), 200);
    }
}
