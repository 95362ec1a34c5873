//! Switches about meters: all of them at the end of a command, and the log of waits.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use snowmelt_base::tell;
use snowmelt_database::meters::Report;
use snowmelt_database::{Account, Priority};
use snowmelt_graph::GraphDatabase;
use snowmelt_store::WaitLog;

/// `--meters`, of commands that open a database and end.
#[derive(Clone, Debug, clap::Args)]
pub struct MetersArg {
    /// At the end, show on standard error what was read: by account, tree and device
    #[arg(
        long,
        value_name = "table|json",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "table"
    )]
    meters: Option<MetersFormat>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum MetersFormat {
    Table,
    Json,
}

/// Shows the meters when it is dropped, however the command ended.
pub struct AtEnd(Option<(Arc<GraphDatabase>, MetersFormat)>);

impl MetersArg {
    /// Watches a database that was just opened. Drop it after everything that reads from the
    /// database.
    pub fn at_end(&self, database: &Arc<GraphDatabase>) -> AtEnd {
        AtEnd(self.meters.map(|format| (Arc::clone(database), format)))
    }

    /// Shows meters that were taken before their database was closed.
    pub fn say(&self, report: &Report) {
        if let Some(format) = self.meters {
            say(report, format);
        }
    }

    /// A server does the command's work, and counts it.
    pub fn are_the_servers(&self, db: &Path) {
        if self.meters.is_some() {
            let db = db.display();
            tell!("a server has {db} open and counts: snowmelt stats {db} --meters");
        }
    }
}

impl Drop for AtEnd {
    fn drop(&mut self) {
        if let Some((database, format)) = &self.0 {
            say(&database.database().report(), *format);
        }
    }
}

fn say(report: &Report, format: MetersFormat) {
    let text = match format {
        MetersFormat::Table => report.text(),
        MetersFormat::Json => format!("{}\n", report.json()),
    };
    tell!("{}", text.trim_end_matches('\n'));
}

/// `--waits` and `--priority`, of commands that run queries.
#[derive(Clone, Debug, clap::Args)]
pub struct SessionArgs {
    /// How urgent its reads are, where devices have to choose: high, normal or low
    #[arg(long, value_name = "P", default_value = "normal")]
    priority: Priority,
    /// Write each wait for a page into a file, tab-separated: when, how long, class, tree, page,
    /// pages asked for together, stripe, offset
    #[arg(long, value_name = "FILE")]
    waits: Option<PathBuf>,
}

/// The account of a command, with the log of its waits.
pub struct Logged {
    /// the account
    pub account: Arc<Account>,
    log: Option<(PathBuf, Arc<WaitLog>)>,
}

impl SessionArgs {
    /// The account of a command, below the named one.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn account(&self, database: &GraphDatabase, name: &str) -> anyhow::Result<Logged> {
        let log = self.waits.as_ref().map(|path| {
            let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
            let clock = &database.database().store().config().seams.clock;
            let log = WaitLog::new(clock, Box::new(BufWriter::new(file)));
            anyhow::Ok((path.clone(), Arc::new(log)))
        });
        let log = log.transpose()?;
        let lines = log.as_ref().map(|(_, log)| Arc::clone(log));
        Ok(Logged {
            account: Account::prioritized(&database.database().account(name), &[], self.priority, lines),
            log,
        })
    }
}

impl Logged {
    /// The command has ended.
    ///
    /// # Errors
    /// The log could not be written.
    pub fn finish(self) -> anyhow::Result<()> {
        match self.log {
            Some((path, log)) => {
                log.finish().with_context(|| format!("cannot write the waits into {}", path.display()))
            }
            None => Ok(()),
        }
    }
}
