//! The prefixes that are kept with a database, read and changed.

use std::sync::Arc;

use crate::database::GraphDatabase;
use crate::error::GraphError;
use crate::namespaces::{Namespaces, RECORD_NAMESPACES};
use crate::transaction::{RECORD_KIND, Transaction};

fn read(record: Option<impl AsRef<[u8]>>) -> Namespaces {
    record.map_or_else(Namespaces::default, |bytes| Namespaces::from_bytes(bytes.as_ref()))
}

impl GraphDatabase {
    /// The prefixes that are kept with the database.
    pub fn namespaces(&self) -> Namespaces {
        read(self.database().snapshot().record(RECORD_NAMESPACES))
    }

    /// Changes the prefixes in a transaction of its own; durable when it returns.
    ///
    /// # Errors
    /// That of `change`, and then nothing has changed; those of the commit.
    pub fn change_namespaces<E: From<GraphError>>(
        self: &Arc<Self>,
        change: impl FnOnce(&mut Namespaces) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut txn = self.begin()?;
        let mut all = txn.namespaces();
        change(&mut all)?;
        txn.put_namespaces(&all);
        txn.commit()?;
        Ok(())
    }
}

impl Transaction {
    /// The prefixes as of this transaction.
    fn namespaces(&mut self) -> Namespaces {
        read(self.txn.trees().record(RECORD_NAMESPACES))
    }

    fn put_namespaces(&mut self, all: &Namespaces) {
        self.txn.trees().put_record(RECORD_NAMESPACES, RECORD_KIND, &all.to_bytes());
    }

    /// Adds prefixes whose names are free.
    pub(crate) fn add_namespaces(&mut self, new: &Namespaces) {
        let mut all = self.namespaces();
        all.join(new);
        if !all.is_empty() {
            self.put_namespaces(&all);
        }
    }
}
