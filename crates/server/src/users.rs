//! The users with a token that have asked something, and what was done for each.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use snowmelt_database::Account;
use snowmelt_database::meters::AccountStats;

/// Their accounts, by name.
#[derive(Default)]
pub struct Users(Mutex<BTreeMap<String, Arc<Account>>>);

impl Users {
    /// The account of a user.
    pub fn account(&self, name: &str) -> Arc<Account> {
        let mut users = self.0.lock().expect("no holder panics");
        Arc::clone(users.entry(name.to_owned()).or_insert_with(Account::alone))
    }

    /// All accounts, named after their users.
    pub fn accounts(&self) -> Vec<AccountStats> {
        let users = self.0.lock().expect("no holder panics");
        let stats = |(name, account): (&String, &Arc<Account>)| AccountStats {
            name: format!("user {name}"),
            activity: account.activity(),
        };
        users.iter().map(stats).collect()
    }

    /// Has the account of that name count anew; false when there is none.
    pub fn reset(&self, name: &str) -> bool {
        let users = self.0.lock().expect("no holder panics");
        let user = name.strip_prefix("user ").and_then(|name| users.get(name));
        user.inspect(|account| account.reset()).is_some()
    }
}
