//! `snowmelt publish`: the newest state of a database into an object store, where readers on other
//! machines open it at once.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::bail;
use indicatif::{ProgressBar, ProgressStyle};
use snowmelt_base::{say, signals};
use snowmelt_store::{PublishProgress, Publisher};
use snowmelt_switches::open::OpenArgs;
use snowmelt_switches::published;

use crate::control::{self, Found};

/// Publish a database, so that other machines can open it at once.
#[derive(clap::Args)]
pub struct PublishArgs {
    /// The database directory
    db: PathBuf,
    /// Where to: s3://BUCKET/PREFIX, gs://…, az://…, or a folder as file:///DIR. Of what is there
    /// already nothing is sent again
    address: String,
    #[command(flatten)]
    open: OpenArgs,
}

/// Runs the command.
pub fn run(args: PublishArgs) -> anyhow::Result<()> {
    published::make_folder(&args.address)?;
    let config = args.open.config();
    let objects = args.open.store.objects(&args.address, &config.seams.clock)?;
    published::check_conditions(&args.address, &*objects, &config.seams.clock)?;
    let database = match control::find(&args.db, &config)? {
        Found::Open(database) => database,
        Found::Served(_) => {
            bail!("{}: a server has it open: stop it, or publish a backup", args.db.display())
        }
    };
    let mut publisher = Publisher::begin(database.database().store().clone(), objects)?;
    let mut bar = PublishBar::new()?;
    let done = publisher.publish(|at| bar.show(at));
    bar.0.finish_and_clear();
    let done = done?;
    say!(
        "published transaction {} of {} as {}: {} of {} extents were sent, {} bytes in all",
        done.txn,
        args.db.display(),
        args.address,
        done.extents_sent,
        done.extents,
        done.bytes_sent
    );
    Ok(())
}

/// How far a publication is.
struct PublishBar(ProgressBar, Arc<AtomicBool>);

impl PublishBar {
    fn new() -> anyhow::Result<Self> {
        let style = "publishing [{bar:40}] {human_pos}/{human_len} extents {eta}";
        let bar = ProgressBar::new(0).with_style(ProgressStyle::with_template(style)?);
        Ok(Self(bar, signals::stop_flag()?))
    }

    /// Shows the progress; a signal ends the publication.
    fn show(&mut self, at: PublishProgress) -> ControlFlow<()> {
        self.0.set_length(at.extents);
        self.0.set_position(at.extents_done);
        if self.1.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}
