//! `snowmelt compact`: reclaim terms without quads, move scattered leaves into key order, write
//! everything back and give free space at the end of the files back.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use snowmelt_base::{say, signals, tell};
use snowmelt_graph::{CompactOptions, CompactStep, CompactTerms};
use snowmelt_server::control::{Command, Reply};

use crate::control::{self, Found};
use snowmelt_switches::meters::MetersArg;
use snowmelt_switches::open::OpenArgs;

/// Reclaim terms without quads, move scattered pages into key order, write everything back and
/// give free space at the end of the files back. Readers and writers of a running server go on.
#[derive(clap::Args)]
pub struct CompactArgs {
    /// The database directory
    db: PathBuf,
    /// Whether terms that are in no quad any more are reclaimed. That writes all trees anew and
    /// needs room for them meanwhile
    #[arg(long, value_enum, default_value = "auto")]
    terms: TermsArg,
    #[command(flatten)]
    meters: MetersArg,
    #[command(flatten)]
    open: OpenArgs,
}

/// The values of `--terms`.
#[derive(Clone, Copy, clap::ValueEnum)]
enum TermsArg {
    /// When they take a tenth of the dictionary or more
    Auto,
    /// In any case
    Always,
    /// No
    Never,
}

impl From<TermsArg> for CompactTerms {
    fn from(terms: TermsArg) -> Self {
        match terms {
            TermsArg::Auto => CompactTerms::Auto,
            TermsArg::Always => CompactTerms::Always,
            TermsArg::Never => CompactTerms::Never,
        }
    }
}

/// Runs the command.
pub fn run(args: CompactArgs) -> anyhow::Result<()> {
    let terms = args.terms.into();
    let database = match control::find(&args.db, &args.open.config())? {
        Found::Open(database) => database,
        Found::Served(server) => {
            args.meters.are_the_servers(&args.db);
            return match server.ask(Command::Compact { terms })? {
                Reply::Compacted { before, after, terms, moved } => {
                    say_compacted([before, after], &terms, moved);
                    Ok(())
                }
                other => Err(control::unexpected(&other)),
            };
        }
    };
    let _meters = args.meters.at_end(&database);
    let stop = signals::stop_flag()?;
    let bar = control::bar()?;
    let options = CompactOptions { terms, ..CompactOptions::default() };
    let done = database.compact(&options, |step| {
        let (words, done, total) = step.told();
        if matches!(step, CompactStep::Needs { .. }) {
            bar.suspend(|| tell!("{words}"));
        }
        control::show(&bar, words, done, total);
        match stop.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    bar.finish_and_clear();
    let done = done?;
    if let Some(shortage) = &done.shortage {
        tell!("{shortage}; not all pages were moved");
    }
    say_compacted(
        [done.before_bytes, done.after_bytes],
        &done.terms.to_string(),
        done.leaves + done.consolidated,
    );
    Ok(())
}

fn say_compacted([before_bytes, after_bytes]: [u64; 2], terms: &str, moved: u64) {
    say!("{before_bytes} bytes of data before, {after_bytes} after");
    say!("{terms}; {moved} pages moved");
}
