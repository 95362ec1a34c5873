//! An open database: its store, the one write transaction over it, and what belongs to neither
//! graphs nor tables: accounts, meters, memory, temporary space, copies.
//!
//! | module        | holds                                                                    |
//! |---------------|--------------------------------------------------------------------------|
//! | `database`    | opening, making; resources and their use                                 |
//! | `meters`      | what was counted, and how it is shown                                    |
//! | `backup`      | copies, alone and in sets                                                |
//! | `transaction` | the write transaction, and the layers that take part in it               |
//! | `names`       | whose trees and records they are                                         |
//! | `states`      | a layer's states: of the newest commit, of those appended, of a snapshot |
//!
//! A *layer* stores data of one model in trees of the store: the graph does, tables will. Layers
//! do not know each other. One transaction can change several of them: each joins it, works, and
//! leaves it to the next.
//!
//! Nothing here knows a term or a row.

mod backup;
mod database;
pub mod meters;
mod names;
mod states;
mod transaction;

pub use backup::restore_backup;
pub use database::{Database, OpenOptions};
// Types of this interface.
pub use names::layer_of;
pub use snowmelt_store::{
    Account, BackupPart, BackupSet, Charge, Clock, Committed, CopyProgress, EventCount, MemoryBudget,
    MeteredWait, Mode, Pending, Priority, Reservation, RestoreAt, ShownWait, Snapshot, StoreError, TempBytes,
    TempSpace, WaitFor, WaitSign, Waiter, is_vacant, remove_database, remove_dropped, rename_database,
    stripe_elsewhere,
};
pub use states::{LayerState, States};
pub use transaction::{Layer, Transaction};
