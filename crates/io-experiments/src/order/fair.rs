//! Turns for clients (deficit round robin: Shreedhar and Varghese, SIGCOMM 1995, with device
//! time for bytes).
//!
//! Each client has an elevator of its own. In its turn it may use `quantum_ns` of device time,
//! as the cost model counts it; what it uses beyond that is taken off its next turn. So a
//! client with one request waits for at most one quantum (and one request) of each other
//! client, however many requests those have.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;

use snowmelt_io::{Choice, DeviceRequest, Elevator, Order, Pending, Rules};

pub(crate) struct Fair {
    /// Device time of a turn; by default that of one longest request.
    quantum_ns: Option<u64>,
    /// Clients with something to do.
    accounts: HashMap<u64, ClientTurns>,
    /// Clients with something to do, the one whose turn it is first.
    turns: VecDeque<u64>,
}

#[derive(Default)]
struct ClientTurns {
    elevator: Elevator,
    credit_ns: i64,
    /// True once it has got the quantum of this turn.
    begun: bool,
}

impl Fair {
    pub(crate) fn new(quantum_ns: Option<u64>) -> Fair {
        Fair { quantum_ns, accounts: HashMap::new(), turns: VecDeque::new() }
    }

    fn first(&mut self) -> Option<&mut ClientTurns> {
        self.accounts.get_mut(self.turns.front()?)
    }
}

impl Order for Fair {
    fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    fn push(&mut self, pending: Pending, rules: &Rules) {
        let account = self.accounts.entry(pending.client).or_insert_with(|| {
            self.turns.push_back(pending.client);
            ClientTurns::default()
        });
        account.elevator.push(pending, rules);
    }

    /// Finds the client whose turn it is.
    fn choose(&mut self, now_ns: u64, rules: &Rules) -> Choice {
        let longest_ns = || rules.cost.request_ns(rules.max_request_bytes);
        let quantum_ns = self.quantum_ns.unwrap_or_else(longest_ns).max(1) as i64;
        while let Some(account) = self.first() {
            if !account.begun {
                account.begun = true;
                account.credit_ns += quantum_ns;
            }
            if account.credit_ns > 0 {
                account.elevator.choose(now_ns, rules);
                break;
            }
            account.begun = false;
            self.turns.rotate_left(1);
        }
        Choice::Take
    }

    fn peek(&self) -> Option<&Pending> {
        self.accounts.get(self.turns.front()?)?.elevator.peek()
    }

    fn pop(&mut self) -> Option<Pending> {
        self.first()?.elevator.pop()
    }

    fn sent(&mut self, request: &DeviceRequest, now_ns: u64, rules: &Rules) {
        let Some(account) = self.first() else { return };
        account.elevator.sent(request, now_ns, rules);
        account.credit_ns -= rules.cost.request_ns(request.bytes()) as i64;
        if account.elevator.is_empty() {
            let client = self.turns.pop_front().expect("a client has the turn");
            self.accounts.remove(&client);
        }
    }

    fn take_reads(&mut self, offsets: Range<u64>, into: &mut Vec<Pending>) {
        self.turns.retain(|client| {
            let account = self.accounts.get_mut(client).expect("a client with a turn has an account");
            account.elevator.take_reads(offsets.clone(), into);
            !account.elevator.is_empty()
        });
        self.accounts.retain(|_, account| !account.elevator.is_empty());
    }

    fn drain(&mut self) -> Vec<Pending> {
        self.turns.clear();
        self.accounts.drain().flat_map(|(_, mut account)| account.elevator.drain()).collect()
    }
}
