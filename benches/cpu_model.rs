//! Fits the model of processor time (`snowmelt_workload::CpuModel`) to a database: the cost of a
//! query when everything is resident.
//!
//!     cargo run --release -p snowmelt-benches --example cpu_model -- DB [MIXES]
//!
//! Each query is run by one thread, whose own processor time the kernel counts. Four
//! coefficients (per query, lookup, row moved over, byte of answer) are fitted by least
//! squares, each query weighted by the inverse of its time, so that short queries count as much
//! as long ones. Negative ones are set to zero and the rest fitted again.

#![allow(clippy::needless_range_loop)] // rows and columns of a matrix are numbers

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::time::{ClockId, clock_gettime};
use snowmelt_bsbm::{DEFAULT_SEED, QueryKind, UseCase, Workload};
use snowmelt_database::OpenOptions;
use snowmelt_graph::GraphDatabase;
use snowmelt_sparql::{QueryEngine, QueryOptions, ResultFormat};
use snowmelt_workload::bench::count_products;
use snowmelt_workload::cpu_model::CpuModel;

/// One execution: 1, lookups, rows, bytes; and its processor nanoseconds.
struct Observed {
    query: u32,
    x: [f64; 4],
    ns: f64,
    model_ns: f64,
}

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let db = PathBuf::from(args.next().context("usage: cpu_model DB [MIXES]")?);
    let mixes: usize = args.next().map_or(Ok(200), |text| text.parse())?;
    let options = OpenOptions::default();
    let products = count_products(&db, &options)?;
    let engine = QueryEngine::new(GraphDatabase::open(&db, &options)?);
    let all: Vec<_> = Workload::new(products, DEFAULT_SEED, UseCase::Explore)?.take(mixes).collect();
    // Once to warm, once to measure.
    observe(&engine, &all)?;
    let observed = observe(&engine, &all)?;
    report(&observed, fit(&observed));
    Ok(())
}

fn observe(engine: &QueryEngine, mixes: &[snowmelt_bsbm::Mix]) -> Result<Vec<Observed>> {
    let options = QueryOptions { threads: 1, ..QueryOptions::default() };
    let mut observed = Vec::new();
    let mut answer = Vec::with_capacity(1 << 20);
    for query in mixes.iter().flat_map(|mix| &mix.queries) {
        answer.clear();
        let graph = matches!(query.kind, QueryKind::Describe | QueryKind::Construct);
        let format = if graph { ResultFormat::RdfXml } else { ResultFormat::Xml };
        let before = thread_time();
        let written = engine.query(&query.text, &options)?.write(format, &mut answer)?;
        let ns = (thread_time() - before).as_nanos() as f64;
        let (activity, bytes) = (written.activity, answer.len() as u64);
        let x = [1.0, activity.rnd as f64, activity.seq as f64, bytes as f64];
        observed.push(Observed {
            query: query.number,
            x,
            ns,
            model_ns: CpuModel::default().work_ns(&activity, bytes) as f64,
        });
    }
    Ok(observed)
}

fn thread_time() -> Duration {
    let t = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(t.tv_sec as u64, t.tv_nsec as u32)
}

fn fit(observed: &[Observed]) -> [f64; 4] {
    let mut used = [true; 4];
    loop {
        let solution = least_squares(observed, used);
        match (0..4).find(|&i| solution[i] < 0.0) {
            Some(negative) => used[negative] = false,
            None => return solution,
        }
    }
}

/// Weighted normal equations by Gauss-Jordan; unused coefficients are 0.
fn least_squares(observed: &[Observed], used: [bool; 4]) -> [f64; 4] {
    let mut m = [[0.0; 5]; 4];
    for o in observed {
        let weight = 1.0 / o.ns.max(1.0);
        for i in 0..4 {
            for j in 0..4 {
                m[i][j] += weight * o.x[i] * o.x[j];
            }
            m[i][4] += weight * o.x[i] * o.ns;
        }
    }
    for i in (0..4).filter(|&i| !used[i]) {
        for j in 0..4 {
            (m[i][j], m[j][i]) = (0.0, 0.0);
        }
        (m[i][i], m[i][4]) = (1.0, 0.0);
    }
    for i in 0..4 {
        let pivot = m[i][i];
        m[i].iter_mut().for_each(|v| *v /= pivot);
        let row = m[i];
        for j in (0..4).filter(|&j| j != i) {
            let factor = m[j][i];
            m[j].iter_mut().zip(row).for_each(|(v, r)| *v -= factor * r);
        }
    }
    [m[0][4], m[1][4], m[2][4], m[3][4]]
}

fn report(observed: &[Observed], c: [f64; 4]) {
    println!("query_ns {:.0}  rnd_ns {:.0}  seq_ns {:.1}  byte_ns {:.2}", c[0], c[1], c[2], c[3]);
    println!("query   count   measured us   fitted us   model us");
    let mut numbers: Vec<u32> = observed.iter().map(|o| o.query).collect();
    numbers.sort_unstable();
    numbers.dedup();
    for number in numbers {
        let group: Vec<&Observed> = observed.iter().filter(|o| o.query == number).collect();
        let mean =
            |f: &dyn Fn(&Observed) -> f64| group.iter().map(|o| f(o)).sum::<f64>() / group.len() as f64 / 1e3;
        let fitted = mean(&|o| o.x.iter().zip(c).map(|(x, c)| x * c).sum());
        println!(
            "Q{number:<5} {:>6} {:>13.1} {fitted:>11.1} {:>10.1}",
            group.len(),
            mean(&|o| o.ns),
            mean(&|o| o.model_ns)
        );
    }
}
