//! The switch for the order of waiting requests, of commands that measure a database.

use snowmelt_io_experiments::TunedPolicy;
use snowmelt_store::StoreConfig;

/// The order of waiting requests.
#[derive(clap::Args)]
pub struct QueueArgs {
    /// Order of a device's queue: fifo, elevator, deadline, anticipatory or fair. Numbers may
    /// follow, times in milliseconds:
    /// deadline:read-expire=500,write-expire=5000,batch=16,writes-starved=2 (a read or write
    /// that has waited so long is next; requests of a batch; times that reads go before waiting
    /// writes), anticipatory:anticipate=6.7,slice=500 (the wait for a reader's next request;
    /// the longest turn of one reader), fair:quantum=MS (device time of a turn; by default that
    /// of one longest request)
    #[arg(long, value_name = "NAME[:KEY=VALUE,...]", default_value = "elevator")]
    queue: TunedPolicy,
}

impl QueueArgs {
    /// The settings of a store whose queues have this order.
    pub fn applied(&self, mut config: StoreConfig) -> StoreConfig {
        config.queue.policy = self.queue.policy();
        config
    }
}
