//! Turns for clients (deficit round robin: Shreedhar and Varghese, SIGCOMM 1995, with device
//! time for bytes).
//!
//! Each client has an elevator of its own. In its turn it may use `quantum_ns` of device time,
//! as the cost model counts it; what it uses beyond that is taken off its next turn. So a
//! client with one request waits for at most one quantum (and one request) of each other
//! client, however many requests those have.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;

use crate::cost::CostModel;
use crate::queue::device_request::{DeviceRequest, Pending};
use crate::queue::order::elevator::Elevator;

#[derive(Default)]
pub(crate) struct Fair {
    /// Clients with something to do.
    accounts: HashMap<u64, ClientTurns>,
    /// Clients with something to do, the one whose turn it is first.
    turns: VecDeque<u64>,
}

#[derive(Default)]
struct ClientTurns {
    elevator: Elevator,
    credit_ns: i64,
    /// It has been given the quantum of this turn.
    begun: bool,
}

impl Fair {
    pub(crate) fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    pub(crate) fn push(&mut self, pending: Pending, fairness: usize) {
        let account = self.accounts.entry(pending.client).or_insert_with(|| {
            self.turns.push_back(pending.client);
            ClientTurns::default()
        });
        account.elevator.push(pending, fairness);
    }

    fn first(&mut self) -> Option<&mut ClientTurns> {
        self.accounts.get_mut(self.turns.front()?)
    }

    /// Finds the client whose turn it is.
    pub(crate) fn choose(&mut self, quantum_ns: u64) {
        while let Some(account) = self.first() {
            if !account.begun {
                account.begun = true;
                account.credit_ns += quantum_ns.max(1) as i64;
            }
            if account.credit_ns > 0 {
                account.elevator.choose();
                return;
            }
            account.begun = false;
            self.turns.rotate_left(1);
        }
    }

    pub(crate) fn peek(&self) -> Option<&Pending> {
        self.accounts.get(self.turns.front()?)?.elevator.peek()
    }

    pub(crate) fn pop(&mut self) -> Option<Pending> {
        self.first()?.elevator.pop()
    }

    pub(crate) fn sent(&mut self, request: &DeviceRequest, cost: &CostModel) {
        let Some(account) = self.first() else { return };
        account.elevator.sent(request.end());
        account.credit_ns -= cost.request_ns(request.len) as i64;
        if account.elevator.is_empty() {
            let client = self.turns.pop_front().expect("somebody's turn it was");
            self.accounts.remove(&client);
        }
    }

    /// Takes out those for which `is_wanted` holds.
    pub(crate) fn take_reads(&mut self, offsets: Range<u64>, into: &mut Vec<Pending>) {
        self.turns.retain(|client| {
            let account = self.accounts.get_mut(client).expect("who has a turn has an account");
            account.elevator.take_reads(offsets.clone(), into);
            !account.elevator.is_empty()
        });
        self.accounts.retain(|_, account| !account.elevator.is_empty());
    }

    pub(crate) fn drain(&mut self) -> Vec<Pending> {
        self.turns.clear();
        self.accounts.drain().flat_map(|(_, mut account)| account.elevator.drain()).collect()
    }
}
