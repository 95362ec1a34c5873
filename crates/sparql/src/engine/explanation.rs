//! A plan for people and programs: a list of steps, shown as text or as JSON.
//!
//! The root is first, and each step stands before its inputs. It is a list, because a plan may be
//! thousands of operators deep, which many readers of JSON refuse.

use std::fmt;
use std::time::Duration;

use serde_json::{Value, json};
use snowmelt_database::meters::Activity;

use crate::remote::RemoteUse;

/// A plan, and what became of it.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// The operators, the root first.
    pub steps: Vec<PlanStep>,
    /// Assumptions about reads; none when all is in memory.
    pub assumptions: Option<Assumptions>,
    /// Functions that are not there: a sentence for each.
    pub warnings: Vec<String>,
    /// The result of running it; none when nothing was run.
    pub outcome: Option<Outcome>,
}

/// An operator.
#[derive(Clone, Debug)]
pub struct PlanStep {
    /// Operators above it.
    pub depth: usize,
    /// Its inputs, by their places in the list.
    pub inputs: Vec<usize>,
    /// Its name.
    pub operator: String,
    /// The things it works on, as text.
    pub detail: String,
    /// The index it visits.
    pub index: Option<&'static str>,
    /// The leading columns of that index that it knows: variables and terms.
    pub key: Vec<String>,
    /// The variables of its rows, in the order of the columns.
    pub columns: Vec<String>,
    /// Expectations of the optimiser.
    pub estimate: PlanEstimate,
    /// Its work, when it was run.
    pub measured: Option<Measured>,
}

/// Expectations of the optimiser about an operator, its inputs included.
#[derive(Clone, Copy, Debug)]
pub struct PlanEstimate {
    /// Rows.
    pub rows: f64,
    /// Time of a processor.
    pub cpu_us: f64,
    /// Time of a device.
    pub io_us: f64,
}

/// Work of an operator on all threads; time and activity include its inputs.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Rows put out.
    pub rows: u64,
    /// Batches of them.
    pub batches: u64,
    /// Times it was begun: of a seeded one, once per seed.
    pub starts: u64,
    /// It put out all its rows each time: no LIMIT, ASK or EXISTS above it had enough before.
    pub is_complete: bool,
    /// Time.
    pub time: Duration,
    /// Lookups, rows, pages and reads.
    pub activity: Activity,
    /// Threads that were forked to run it.
    pub threads: usize,
    /// How its scan was shared with others.
    pub shared: Option<String>,
    /// Endpoints that were asked, and for how much.
    pub remote: Vec<(String, RemoteUse)>,
}

/// Assumptions about reads.
#[derive(Clone, Debug)]
pub struct Assumptions {
    /// The indexes that are not in memory.
    pub indexes: Vec<Residence>,
    /// Time of a page that is read alone.
    pub lone_us: f64,
    /// Time of one page among many.
    pub one_of_many_us: f64,
}

/// How much of an index is in memory.
#[derive(Clone, Copy, Debug)]
pub struct Residence {
    /// The index.
    pub index: &'static str,
    /// `half` or `cold`.
    pub residency: &'static str,
}

/// The result of running a plan.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Rows of the answer.
    pub rows: u64,
    /// Time to plan it.
    pub planning: Duration,
    /// Time to run it.
    pub execution: Duration,
    /// Lookups, rows, pages and reads.
    pub activity: Activity,
    /// Plans that were given up before it, since far more rows came than were expected.
    pub given_up: u32,
}

/// Levels that are indented; the thousand look-ups of a thousand patterns are below each other.
const MOST_INDENTED: usize = 100;

/// A line per operator, indented by depth.
impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.steps.iter().try_for_each(|step| writeln!(f, "{step}"))?;
        if let Some(Assumptions { indexes, lone_us, one_of_many_us }) = &self.assumptions {
            let cold: Vec<String> = indexes.iter().map(|i| format!("{} {}", i.index, i.residency)).collect();
            writeln!(
                f,
                "planned for {}: a page alone takes {}, one of many {}",
                cold.join(", "),
                time(*lone_us),
                time(*one_of_many_us)
            )?;
        }
        self.warnings.iter().try_for_each(|warning| writeln!(f, "warning: {warning}"))?;
        if let Some(Outcome { rows, planning, execution, activity, given_up }) = &self.outcome {
            if *given_up > 0 {
                writeln!(f, "plans given up, as far more rows came than were expected: {given_up}")?;
            }
            writeln!(f, "{rows} rows; planning {planning:.3?}, execution {execution:.3?}\n{activity}")?;
        }
        Ok(())
    }
}

impl fmt::Display for PlanStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let blank = if self.detail.is_empty() { "" } else { " " };
        let indent = self.depth.min(MOST_INDENTED) * 2;
        let line = format!("{:indent$}{}{blank}{}", "", self.operator, self.detail);
        let PlanEstimate { rows, cpu_us, io_us } = self.estimate;
        write!(f, "{line:<72} rows≈{} cost≈{}µs", short(rows), short(cpu_us))?;
        if io_us > 0.0 {
            write!(f, " + io≈{}", time(io_us))?;
        }
        let Some(measured) = &self.measured else { return Ok(()) };
        let Measured { rows, batches, starts, time, activity, .. } = measured;
        write!(f, "  | rows {rows} batches {batches} starts {starts}")?;
        if let Some(error) = self.q_error() {
            write!(f, " q-error {}", short(error))?;
        }
        write!(f, " time {time:.3?} | {activity}")?;
        if measured.threads > 1 {
            write!(f, " | {} threads", measured.threads)?;
        }
        if let Some(shared) = &measured.shared {
            write!(f, " | {shared}")?;
        }
        measured.remote.iter().try_for_each(|(endpoint, used)| {
            let RemoteUse { requests, rows, bytes, time } = used;
            write!(f, " | <{endpoint}>: {requests} requests {rows} rows {bytes} bytes {time:.3?}")
        })
    }
}

impl Explanation {
    /// The explanation as JSON: an object with the list `operators` and, where there are such,
    /// `assumptions`, `warnings` and `outcome`. docs/src/reference/http.md has the fields.
    pub fn json(&self) -> Value {
        let steps: Vec<Value> = self.steps.iter().enumerate().map(|(id, step)| step.json(id)).collect();
        let mut plan = json!({ "operators": steps });
        if let Some(Assumptions { indexes, lone_us, one_of_many_us }) = &self.assumptions {
            let residence = |of: &Residence| json!({ "index": of.index, "residency": of.residency });
            plan["assumptions"] = json!({
                "indexes": indexes.iter().map(residence).collect::<Vec<_>>(),
                "lone_us": lone_us,
                "one_of_many_us": one_of_many_us,
            });
        }
        if !self.warnings.is_empty() {
            plan["warnings"] = json!(self.warnings);
        }
        if let Some(Outcome { rows, planning, execution, activity, given_up }) = &self.outcome {
            plan["outcome"] = json!({
                "given_up": given_up,
                "rows": rows,
                "planning_us": us(*planning),
                "execution_us": us(*execution),
                "activity": of_activity(activity),
            });
        }
        plan
    }
}

impl PlanStep {
    /// By how many times the expected rows were too many or too few, both taken as at least one.
    /// `None`: it was not run, or it was cut short, so that its rows say nothing.
    pub fn q_error(&self) -> Option<f64> {
        let measured = self.measured.as_ref().filter(|measured| measured.is_complete)?;
        let (expected, found) = (self.estimate.rows.max(1.0), (measured.rows as f64).max(1.0));
        Some(expected.max(found) / expected.min(found))
    }

    fn json(&self, id: usize) -> Value {
        let PlanEstimate { rows, cpu_us, io_us } = self.estimate;
        let mut step = json!({
            "id": id,
            "depth": self.depth,
            "inputs": self.inputs,
            "operator": self.operator,
            "detail": self.detail,
            "columns": self.columns,
            "estimate": { "rows": rows, "cpu_us": cpu_us, "io_us": io_us },
        });
        if let Some(index) = self.index {
            (step["index"], step["key"]) = (json!(index), json!(self.key));
        }
        if let Some(measured) = &self.measured {
            let Measured { rows, batches, starts, time, activity, threads, shared, remote, .. } = measured;
            step["measured"] = json!({
                "rows": rows,
                "q_error": self.q_error(),
                "batches": batches,
                "starts": starts,
                "time_us": us(*time),
                "activity": of_activity(activity),
                "threads": threads,
                "shared": shared,
            });
            if !remote.is_empty() {
                step["measured"]["remote"] = remote.iter().map(of_endpoint).collect();
            }
        }
        step
    }
}

fn of_endpoint((endpoint, used): &(String, RemoteUse)) -> Value {
    json!({
        "endpoint": endpoint,
        "requests": used.requests,
        "rows": used.rows,
        "bytes": used.bytes,
        "time_us": us(used.time),
    })
}

fn us(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e3
}

/// By the names of the meters.
fn of_activity(activity: &Activity) -> Value {
    activity.named().into_iter().map(|(name, _, value)| (name.to_owned(), Value::from(value))).collect()
}

/// A time in the unit that suits it.
fn time(us: f64) -> String {
    match us {
        us if us < 1e3 => format!("{}µs", short(us)),
        us if us < 1e6 => format!("{}ms", short(us / 1e3)),
        us => format!("{}s", short(us / 1e6)),
    }
}

fn short(n: f64) -> String {
    match n {
        n if n < 10.0 => format!("{n:.1}"),
        n if n < 10_000.0 => format!("{n:.0}"),
        n if n < 1e7 => format!("{:.0}K", n / 1e3),
        n => format!("{:.0}M", n / 1e6),
    }
}
