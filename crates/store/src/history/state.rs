//! The states of a database: what a commit changes beside pages, and which commit readers and
//! the next writer see.
//!
//! A commit is first *appended*: the next writer builds on it. When it is durable it becomes
//! *visible*: new snapshots see it. So `visible` is never newer than `appended`, and both only
//! grow.

use std::sync::Arc;

use parking_lot::RwLock;

use crate::format::catalog::Catalog;

/// Everything that is not a page, as of a transaction.
#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    /// The last transaction it contains.
    pub txn: u64,
    /// Trees and records.
    pub catalog: Catalog,
}

/// The two states that matter.
#[derive(Debug)]
pub(crate) struct States {
    both: RwLock<Both>,
}

#[derive(Debug)]
struct Both {
    appended: Arc<State>,
    visible: Arc<State>,
}

impl States {
    /// A database whose newest state is `state`, durable.
    pub fn new(state: State) -> States {
        let state = Arc::new(state);
        States { both: RwLock::new(Both { appended: state.clone(), visible: state }) }
    }

    /// The state that the next writer builds on.
    pub fn appended(&self) -> Arc<State> {
        self.both.read().appended.clone()
    }

    /// The state that new snapshots see.
    pub fn visible(&self) -> Arc<State> {
        self.both.read().visible.clone()
    }

    /// Notes that a commit was appended.
    pub fn append(&self, state: Arc<State>) {
        let mut both = self.both.write();
        assert!(both.appended.txn < state.txn, "commits are appended in order");
        both.appended = state;
    }

    /// Makes `state` visible: its commit, and so all before it, is durable.
    pub fn show(&self, state: Arc<State>) {
        let mut both = self.both.write();
        assert!(state.txn <= both.appended.txn, "what is visible was appended");
        if both.visible.txn < state.txn {
            both.visible = state;
        }
    }
}
