//! Orders of waiting requests, and an I/O engine, that the laboratory measures against those of
//! `snowmelt-io`. The database links none of them.
//!
//! They are behind two seams of that crate: an [`Order`](snowmelt_io::Order) is made by a
//! [`Policy`](snowmelt_io::Policy), and an engine is a [`StartEngine`](snowmelt_io::StartEngine).
//!
//! | module         | holds                                                                     |
//! |----------------|---------------------------------------------------------------------------|
//! | `policy_name`  | the names of the orders, the elevator's among them                                           |
//! | `tuning`       | the numbers of the policies                                               |
//! | `order`        | first come, first served; deadlines; anticipation; fair turns             |
//! | `tuned_policy` | a policy with its numbers: as text, and as a maker of orders              |
//! | `posix_aio`    | POSIX asynchronous I/O, by the C library's threads: the one unsafe module |
//! | `engines`      | the names of all engines                                                  |

mod engines;
mod order;
mod policy_name;
mod posix_aio;
mod tuned_policy;
mod tuning;

pub use engines::{ENGINES, POSIX_AIO, engine_named};
pub use policy_name::PolicyName;
pub use tuned_policy::TunedPolicy;
pub use tuning::Tuning;
