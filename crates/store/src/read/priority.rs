//! Session priorities: the class of the reads on behalf of an account.
//!
//! | priority | a page it waits for | planned  | guessed     |
//! |----------|---------------------|----------|-------------|
//! | high     | demand              | demand   | speculative |
//! | normal   | demand              | planned  | speculative |
//! | low      | planned             | speculative | speculative |
//!
//! At each device the classes go in the order of urgency. So a report that reads for an hour at a
//! low priority hardly delays a reader that looks at one page. Reads at a low priority are never
//! carried out in place, past the queue.

use std::str::FromStr;

use serde::Serialize;
use snowmelt_io::Class;

use crate::pool::rule::Rule;

/// How urgent the reads of a session are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Priority {
    /// Its planned reads go with the demand reads of others.
    High,
    /// Its demand reads go before the planned reads of others.
    #[default]
    Normal,
    /// Its demand reads go with the planned reads of others.
    Low,
}

impl Priority {
    /// All of them, the most urgent first.
    pub const ALL: [Priority; 3] = [Priority::High, Priority::Normal, Priority::Low];

    /// Name on the command line and in requests.
    pub fn name(self) -> &'static str {
        match self {
            Priority::High => "high",
            Priority::Normal => "normal",
            Priority::Low => "low",
        }
    }

    /// The class of a read that the session waits for.
    pub(crate) fn demand(self) -> Class {
        match self {
            Priority::High | Priority::Normal => Class::Demand,
            Priority::Low => Class::Planned,
        }
    }

    /// The class of a read that a rule starts.
    pub(crate) fn ahead(self, rule: Rule) -> Class {
        match self {
            _ if rule.is_guess() => Class::Speculative,
            Priority::High => Class::Demand,
            Priority::Normal => Class::Planned,
            Priority::Low => Class::Speculative,
        }
    }
}

impl FromStr for Priority {
    type Err = String;

    fn from_str(name: &str) -> Result<Priority, String> {
        let named = Priority::ALL.into_iter().find(|priority| priority.name() == name);
        named.ok_or_else(|| format!("no priority is called {name:?}: there are high, normal and low"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lower_priority_is_never_more_urgent() {
        for pair in Priority::ALL.windows(2) {
            assert!(pair[0].demand() <= pair[1].demand());
            for rule in Rule::ALL {
                assert!(pair[0].ahead(rule) <= pair[1].ahead(rule), "{}", rule.name());
            }
        }
        for priority in Priority::ALL {
            assert_eq!(priority.name().parse(), Ok(priority));
            assert!(Rule::ALL.iter().all(|rule| priority.demand() <= priority.ahead(*rule)));
        }
        assert!("urgent".parse::<Priority>().is_err());
    }
}
