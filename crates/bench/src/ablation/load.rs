//! The queries of a cell's clients.

use anyhow::Result;
use serde::Serialize;
use snowmelt_bsbm::{Mix, Query, QueryKind, UseCase, Workload};

use super::Ablation;
use snowmelt_workload::drive::Stream;

/// The queries of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum QueryLoad {
    /// The benchmark's mixes.
    Mixes,
    /// One query that goes through an index from end to end: what the mixes never do, and rule
    /// 4 is for.
    Scan,
    /// A mix of the Business Intelligence use case: joins and groups of much of the data.
    Analysis,
}

/// Goes through a whole index.
const SCAN: &str = "SELECT ?p (COUNT(?o) AS ?n) WHERE { ?s ?p ?o } GROUP BY ?p";

impl QueryLoad {
    /// A short name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mixes => "mixes",
            Self::Scan => "scan",
            Self::Analysis => "analysis",
        }
    }

    /// Its queries, and how many mixes of them.
    pub(super) fn stream(self, ablation: &Ablation<'_>) -> Result<(Stream, u64)> {
        Ok(match self {
            Self::Mixes => (drawn(ablation, ablation.use_case)?, ablation.mixes),
            Self::Analysis => (drawn(ablation, UseCase::BusinessIntelligence)?, 1),
            Self::Scan => {
                let scan = Query { number: 0, kind: QueryKind::Select, text: SCAN.into() };
                (Stream::Same(Mix { number: 1, queries: vec![scan] }), 1)
            }
        })
    }
}

fn drawn(ablation: &Ablation<'_>, of: UseCase) -> Result<Stream> {
    Ok(Stream::Drawn(Box::new(Workload::new(ablation.products, ablation.seed, of)?)))
}
