//! Counting anew: everything, one tree, one account.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::store::Store;

/// Meters that are set to zero together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MeterScope {
    /// All but those that are since the database was opened: journal, checkpoints, recovery.
    All,
    /// Those of one tree.
    Tree(String),
    /// Those of one named account.
    Account(String),
}

/// There is no such tree, or no such account.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no {0}; there are: {1}")]
pub struct NoSuchMeter(MeterScope, String);

impl Store {
    /// Sets meters to zero.
    ///
    /// # Errors
    /// There is no tree or account of that name; the error lists those there are.
    pub fn reset(&self, scope: &MeterScope) -> Result<(), NoSuchMeter> {
        let (done, names): (bool, Vec<String>) = match scope {
            MeterScope::All => {
                self.reset_meters();
                return Ok(());
            }
            MeterScope::Tree(name) => {
                (self.reset_tree_meters(name), self.tree_stats().into_iter().map(|t| t.name).collect())
            }
            MeterScope::Account(name) => {
                let accounts = self.fetch.core.meters.accounts();
                (self.reset_account(name), accounts.iter().map(|a| a.name().to_owned()).collect())
            }
        };
        if done { Ok(()) } else { Err(NoSuchMeter(scope.clone(), names.join(", "))) }
    }
}

/// `all`, `tree:NAME`, `account:NAME`.
impl FromStr for MeterScope {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "all" => Ok(MeterScope::All),
            Some(("tree", name)) => Ok(MeterScope::Tree(name.to_owned())),
            Some(("account", name)) => Ok(MeterScope::Account(name.to_owned())),
            _ => Err("use all, tree:NAME or account:NAME".to_owned()),
        }
    }
}

impl fmt::Display for MeterScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MeterScope::All => write!(f, "all meters"),
            MeterScope::Tree(name) => write!(f, "tree '{name}'"),
            MeterScope::Account(name) => write!(f, "account '{name}'"),
        }
    }
}
