//! The transactions: pgbench's TPC-B-like mix on PostgreSQL, the same changes as SPARQL updates.
//!
//! A transaction adds an amount to the balances of an account, a teller and a branch, and writes a
//! line of history. pgbench's also selects the account's balance. One update request is one
//! transaction.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use snowmelt_base::random::mix as scrambled;
use snowmelt_bsbm::{Query, QueryKind};
use snowmelt_engines::{Engine, Language, find_program};
use snowmelt_lab::stats::{Latencies, LatencySummary};
use snowmelt_workload::target::Target;

use crate::http::{Endpoint, Protocol};

/// Accounts and tellers of a branch, as in TPC-B.
const ACCOUNTS: u64 = 100_000;
const TELLERS: u64 = 10;

/// Transactions of an engine.
pub struct Mix<'a> {
    engine: &'a Engine,
    scale: u32,
    clients: u32,
    /// None of pgbench.
    endpoint: Option<Endpoint>,
    stop: &'a AtomicBool,
    /// Numbers of the updates.
    next: AtomicU64,
}

/// The transactions of a phase.
#[derive(Clone, Copy, Debug)]
pub struct Done {
    pub seconds: f64,
    pub failed: u64,
    pub latency: LatencySummary,
}

/// Refuses an engine without a mix, or without the program that drives it.
pub fn look_for(engine: &Engine) -> Result<()> {
    let adapter = engine.adapter();
    match adapter.commands.get("pgbench").and_then(|words| words.first()) {
        Some(program) if find_program(program, engine.folders()).is_none() => {
            bail!("{} has no {program} here; install it: {}", adapter.title, adapter.install_line())
        }
        None if engine.endpoint().is_none() || adapter.can(Language::Sql) => {
            bail!("{} has no mix of transactions: there are postgresql and snowmelt", adapter.title)
        }
        _ => Ok(()),
    }
}

impl<'a> Mix<'a> {
    /// Of an engine that was created and does not run; its data is loaded if that is done so.
    pub fn make(engine: &'a Engine, scale: u32, clients: u32, stop: &'a AtomicBool) -> Result<Self> {
        let endpoint = match engine.endpoint() {
            None => None,
            Some(url) => {
                let timeout = Some(Duration::from_secs(60));
                let protocol = Protocol { timeout, update_url: Some(url.clone()), ..Protocol::default() };
                Some(Endpoint::new(&url, protocol)?)
            }
        };
        let mix = Self { engine, scale, clients, endpoint, stop, next: AtomicU64::new(0) };
        if mix.endpoint.is_some() {
            let path = PathBuf::from(engine.value("data").unwrap_or_default());
            mix.write_accounts(&path).with_context(|| format!("cannot write {}", path.display()))?;
            engine.load(Language::Sparql)?;
            fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        }
        Ok(mix)
    }

    /// The transaction in words.
    pub fn words(&self) -> &'static str {
        match &self.endpoint {
            None => "pgbench's TPC-B-like transaction: three updates, a select, an insert",
            Some(_) => "a SPARQL request of three updates and an insert, one transaction",
        }
    }

    /// Makes the tables of an engine that runs, if that is done so.
    pub fn fill(&self) -> Result<()> {
        if self.endpoint.is_none() {
            self.engine.command("pgbench-init", &[("scale", &self.scale.to_string())])?;
        }
        Ok(())
    }

    /// Runs transactions for so many seconds.
    pub fn run(&self, seconds: u32) -> Result<Done> {
        match &self.endpoint {
            None => self.pgbench(seconds),
            Some(endpoint) => self.updates(endpoint, seconds),
        }
    }

    /// By pgbench, whose log has the time of each transaction.
    fn pgbench(&self, seconds: u32) -> Result<Done> {
        const NAME: &str = "pgbench-log";
        let log = self.engine.folder().join(NAME).display().to_string();
        let (clients, time) = (self.clients.to_string(), seconds.to_string());
        let begun = Instant::now();
        self.engine
            .command("pgbench", &[("file", log.as_str()), ("clients", &clients), ("seconds", &time)])?;
        let took = begun.elapsed().as_secs_f64();
        let mut latencies = Latencies::default();
        let mut failed = 0;
        for entry in fs::read_dir(self.engine.folder())?.flatten() {
            if entry.file_name().to_string_lossy().starts_with(NAME) {
                failed += add_log(&fs::read_to_string(entry.path())?, &mut latencies);
                fs::remove_file(entry.path())?;
            }
        }
        // It connects before it begins; the seconds are those it was told, if it kept to them.
        let seconds = f64::from(seconds).max(took - f64::from(CONNECT_S));
        Ok(Done { seconds, failed, latency: latencies.summary() })
    }

    fn updates(&self, endpoint: &Endpoint, seconds: u32) -> Result<Done> {
        let begun = Instant::now();
        let until = begun + Duration::from_secs(u64::from(seconds));
        let client = || -> Result<(Latencies, u64)> {
            let (mut latencies, mut failed) = (Latencies::default(), 0);
            while Instant::now() < until && !self.stop.load(Ordering::Relaxed) {
                let number = self.next.fetch_add(1, Ordering::Relaxed);
                let text = update(number, u64::from(self.scale));
                let query = Query { number: 1, kind: QueryKind::Update, text };
                let asked = Instant::now();
                match endpoint.answer(&query, &mut Vec::new())?.failed {
                    None => latencies.add(asked.elapsed().as_nanos() as u64),
                    Some(_) => failed += 1,
                }
            }
            Ok((latencies, failed))
        };
        let (mut latencies, mut failed) = (Latencies::default(), 0);
        std::thread::scope(|scope| {
            let clients: Vec<_> = (0..self.clients).map(|_| scope.spawn(client)).collect();
            clients.into_iter().try_for_each(|client| {
                let (some, not) = client.join().expect("it does not panic")?;
                latencies.merge(&some);
                failed += not;
                anyhow::Ok(())
            })
        })?;
        Ok(Done { seconds: begun.elapsed().as_secs_f64(), failed, latency: latencies.summary() })
    }

    /// The balances of accounts, tellers and branches have one sum, and the history a line for each
    /// transaction. A failed one may have been committed before its answer was lost.
    pub fn check_books(&self, transactions: u64) -> Result<()> {
        let sums = match &self.endpoint {
            None => {
                const TEXT: &str = "SELECT (SELECT sum(abalance) FROM pgbench_accounts), \
                    (SELECT sum(tbalance) FROM pgbench_tellers), (SELECT sum(bbalance) FROM pgbench_branches), \
                    (SELECT count(*) FROM pgbench_history)";
                let answer = self.engine.command("sql", &[("text", TEXT), ("database", "postgres")])?;
                answer.trim().split('|').map(str::to_owned).collect()
            }
            Some(endpoint) => {
                let sum = |kind| format!("SELECT (SUM(?b) AS ?n) {{ ?s a <urn:{kind}> ; <urn:balance> ?b }}");
                let lines = "SELECT (COUNT(*) AS ?n) { ?s <urn:delta> ?d }".to_owned();
                let all = [sum("account"), sum("teller"), sum("branch"), lines];
                all.into_iter().map(|text| one(endpoint, text)).collect::<Result<Vec<_>>>()?
            }
        };
        let numbers: Vec<i64> = sums
            .iter()
            .map(|sum| sum.parse())
            .collect::<Result<_, _>>()
            .with_context(|| format!("{sums:?}"))?;
        let [accounts, tellers, branches, lines] = numbers[..] else {
            bail!("{sums:?} are not four numbers")
        };
        ensure!(
            accounts == tellers && tellers == branches,
            "accounts sum to {accounts}, tellers to {tellers}, branches to {branches}"
        );
        ensure!(
            lines >= transactions as i64,
            "{transactions} transactions were committed, and the history has {lines}"
        );
        Ok(())
    }

    /// Balances of nought, as N-Triples.
    fn write_accounts(&self, path: &std::path::Path) -> std::io::Result<()> {
        let mut to = BufWriter::new(File::create(path)?);
        let branches = u64::from(self.scale);
        for (kind, count) in
            [("account", branches * ACCOUNTS), ("teller", branches * TELLERS), ("branch", branches)]
        {
            for number in 0..count {
                writeln!(
                    to,
                    "<urn:{kind}:{number}> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <urn:{kind}> .\n\
                     <urn:{kind}:{number}> <urn:balance> \"0\"^^<http://www.w3.org/2001/XMLSchema#integer> ."
                )?;
            }
        }
        to.flush()
    }
}

/// Seconds that pgbench may take to connect.
const CONNECT_S: u32 = 1;

/// Adds the times in a log of pgbench: client, transaction, µs, script, and the time of day.
/// Returns the number of those that failed or were skipped.
fn add_log(log: &str, latencies: &mut Latencies) -> u64 {
    let mut failed = 0;
    for line in log.lines() {
        match line.split(' ').nth(2).and_then(|us| us.parse::<u64>().ok()) {
            Some(us) => latencies.add(us * 1000),
            None => failed += 1,
        }
    }
    failed
}

/// Transaction `number`: the same for each run.
fn update(number: u64, branches: u64) -> String {
    let draw = |salt: u64, below: u64| scrambled(number.wrapping_mul(4).wrapping_add(salt)) % below;
    let (account, teller) = (draw(0, branches * ACCOUNTS), draw(1, branches * TELLERS));
    let branch = teller / TELLERS;
    let amount = draw(2, 10_001) as i64 - 5000;
    let mut text = String::new();
    for (kind, which) in [("account", account), ("teller", teller), ("branch", branch)] {
        let _ = writeln!(
            text,
            "DELETE {{ <urn:{kind}:{which}> <urn:balance> ?b }} INSERT {{ <urn:{kind}:{which}> <urn:balance> ?n }} \
             WHERE {{ <urn:{kind}:{which}> <urn:balance> ?b BIND(?b + {amount} AS ?n) }} ;"
        );
    }
    let _ = write!(
        text,
        "INSERT DATA {{ <urn:history:{number}> <urn:account> <urn:account:{account}> ; \
         <urn:teller> <urn:teller:{teller}> ; <urn:branch> <urn:branch:{branch}> ; <urn:delta> {amount} }}"
    );
    text
}

/// The one value of an answer.
fn one(endpoint: &Endpoint, text: String) -> Result<String> {
    let mut answer = Vec::new();
    let answered = endpoint.answer(&Query { number: 1, kind: QueryKind::Select, text }, &mut answer)?;
    ensure!(answered.failed.is_none(), "{}", answered.failed.expect("it was just seen"));
    let answer = String::from_utf8_lossy(&answer);
    let rest = answer.split_once("<literal").and_then(|(_, rest)| rest.split_once('>'));
    let value = rest.and_then(|(_, rest)| rest.split('<').next());
    value.map(str::to_owned).with_context(|| format!("no value in {answer}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_of_pgbench_has_the_times() {
        let log = "0 1 1500 0 1700000000 1\n1 1 2500 0 1700000000 2\n1 2 failed 0 1700000000 3\n";
        let mut latencies = Latencies::default();
        assert_eq!(add_log(log, &mut latencies), 1);
        let summary = latencies.summary();
        assert_eq!((summary.count, summary.min_ns / 1_000_000), (2, 1));
    }

    #[test]
    fn a_transaction_changes_three_balances_by_one_amount() {
        let text = update(5, 3);
        assert_eq!(text, update(5, 3));
        assert_ne!(text, update(6, 3));
        assert_eq!(text.matches("DELETE").count(), 3);
        let amount = text.rsplit_once("<urn:delta> ").unwrap().1.trim_end_matches(" }");
        assert_eq!(text.matches(&format!("?b + {amount} ")).count(), 3, "{text}");
        for number in 0..1000 {
            let text = update(number, 2);
            let of = |kind: &str| {
                let rest = text.split(&format!("<urn:{kind}:")).nth(1).unwrap();
                rest.split('>').next().unwrap().parse::<u64>().unwrap()
            };
            assert!(of("account") < 200_000 && of("teller") < 20 && of("branch") == of("teller") / 10);
        }
    }
}
