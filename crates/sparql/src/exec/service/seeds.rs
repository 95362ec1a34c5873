//! The plan of a SERVICE, and the values of its input that are to be sent.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::algebra::Service;
use crate::exec::Batch;
use crate::plan::{SentValue, Src};

/// The plan of a SERVICE.
pub(in crate::exec) struct ServiceSpec {
    pub service: Arc<Service>,
    pub endpoint: Src,
    pub sent: Vec<SentValue>,
    pub keep: Vec<u16>,
    pub new: Vec<(u16, Option<u16>)>,
    pub is_distinct: bool,
    pub stored: bool,
    /// the operator's number in the plan
    pub id: usize,
}

/// A batch of the input by its seeds.
pub(super) struct SeedRows {
    pub batch: Batch,
    /// the first row of each seed
    pub firsts: Vec<u32>,
    /// rows by seed: `rows[starts[s]..starts[s + 1]]`
    pub rows: Vec<u32>,
    pub starts: Vec<u32>,
}

impl SeedRows {
    /// The rows of a seed.
    pub fn of(&self, seed: u32) -> &[u32] {
        &self.rows[self.starts[seed as usize] as usize..self.starts[seed as usize + 1] as usize]
    }
}

/// Seeds for one endpoint that have not been sent.
pub(super) struct Waiting {
    pub seeds: Arc<SeedRows>,
    pub endpoint: String,
    pub numbers: VecDeque<u32>,
}
