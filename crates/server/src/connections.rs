//! The open connections, and what was done for each.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use serde_json::{Value, json};
use snowmelt_database::Account;
use snowmelt_database::meters::AccountStats;

/// Most connections that are shown.
const SHOWN: usize = 100;

/// All of them.
#[derive(Default)]
pub struct Connections {
    open: Mutex<BTreeMap<u64, Arc<Connection>>>,
    next: AtomicU64,
}

/// One that is open.
pub struct Connection {
    peer: SocketAddr,
    since: Instant,
    requests: AtomicU64,
    /// encrypted by this server; a proxy in front of it may encrypt, too
    pub is_encrypted: bool,
    /// the activity of its requests
    pub account: Arc<Account>,
}

/// The entry of an open connection; dropping it takes it off the list.
pub struct Entered {
    of: Arc<Connections>,
    number: u64,
    pub connection: Arc<Connection>,
}

impl Connections {
    /// Enters a connection that has just been accepted.
    pub fn enter(self: &Arc<Self>, peer: SocketAddr, is_encrypted: bool) -> Entered {
        let connection = Arc::new(Connection {
            peer,
            since: Instant::now(),
            requests: AtomicU64::new(0),
            is_encrypted,
            account: Account::alone(),
        });
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.open.lock().expect("no holder panics").insert(number, Arc::clone(&connection));
        Entered { of: Arc::clone(self), number, connection }
    }

    /// How many are open.
    pub fn len(&self) -> usize {
        self.open.lock().expect("no holder panics").len()
    }

    /// The accounts of the oldest, named after their clients.
    pub fn accounts(&self) -> Vec<AccountStats> {
        let open = self.open.lock().expect("no holder panics");
        let shown = open.values().take(SHOWN);
        shown.map(|c| AccountStats { name: c.name(), activity: c.account.activity() }).collect()
    }

    /// Has the account of that name count anew; false when there is none.
    pub fn reset(&self, name: &str) -> bool {
        let open = self.open.lock().expect("no holder panics");
        let found = open.values().find(|connection| connection.name() == name);
        found.inspect(|connection| connection.account.reset()).is_some()
    }

    /// How many are open, and the oldest of them.
    pub fn json(&self) -> (usize, Value) {
        let open = self.open.lock().expect("no holder panics");
        let shown = open.values().take(SHOWN).map(|connection| {
            json!({
                "peer": connection.peer.to_string(),
                "seconds": connection.since.elapsed().as_secs_f64(),
                "requests": connection.requests.load(Ordering::Relaxed),
                "activity": connection.account.activity().to_string(),
            })
        });
        (open.len(), shown.collect())
    }
}

impl Connection {
    fn name(&self) -> String {
        format!("connection {}", self.peer)
    }

    /// The address at its other end.
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// A request has come.
    pub fn count_request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.of.open.lock().expect("no holder panics").remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_bounded_and_forgets_what_is_closed() {
        let connections = Arc::new(Connections::default());
        let peer = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let open: Vec<_> = (0..120).map(|port| connections.enter(peer(port), false)).collect();
        open[1].connection.count_request();
        let (count, shown) = connections.json();
        assert_eq!((count, shown.as_array().map(Vec::len)), (120, Some(SHOWN)));
        assert_eq!((&shown[1]["peer"], &shown[1]["requests"]), (&json!("127.0.0.1:1"), &json!(1)));
        drop(open);
        assert_eq!(connections.json(), (0, json!([])));
    }
}
