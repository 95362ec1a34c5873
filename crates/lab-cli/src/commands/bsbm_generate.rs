//! `snowmelt-lab bsbm generate`: writes a benchmark data set, and if asked its update set.
//!
//! Both are written in place. A file that could not be finished is removed, since a cut data
//! set looks like a whole one of another size.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail};
use indicatif::{HumanBytes, HumanCount, ProgressBar, ProgressStyle};
use snowmelt_base::output::Stdout;
use snowmelt_base::tell;
use snowmelt_bench::compare::data::text_bytes;
use snowmelt_bsbm::{Config, Error, Generator, Summary, WordLists};
use snowmelt_lab::room;

/// Write a BSBM data set as N-Triples.
#[derive(Debug, clap::Args)]
pub struct BsbmGenerateArgs {
    /// Number of products: 2785 give 1 million triples, 28480 give 10, 284826 give 100
    #[arg(long, value_name = "N")]
    pub products: u32,

    /// Directory of titlewords.txt and givennames.txt, for the very data of the original tool
    /// [default: made-up words]
    #[arg(long, value_name = "DIR")]
    pub words: Option<PathBuf>,

    /// Put the last T products, with their offers and reviews, into the update set
    #[arg(long, value_name = "T", value_parser = clap::value_parser!(u32).range(1..))]
    pub update_transactions: Option<u32>,

    /// The data set's file; - is standard output
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub output: PathBuf,

    /// The update set's file [default: the data set's with .update added]
    #[arg(long, value_name = "FILE", requires = "update_transactions")]
    pub update_output: Option<PathBuf>,
}

/// Runs the command.
pub fn run(args: BsbmGenerateArgs) -> Result<()> {
    let words = match &args.words {
        Some(dir) => WordLists::from_dir(dir)?,
        None => WordLists::synthetic(),
    };
    let config = Config { products: args.products, words, update_transactions: args.update_transactions };
    let generator = Generator::new(config)?;
    let update_path = args.update_transactions.map(|_| update_path(&args)).transpose()?;
    check_room(&args, update_path.as_deref())?;
    let mut data = Target::create(&args.output)?;
    let mut updates = update_path.as_deref().map(Target::create).transpose()?;

    let start = Instant::now();
    let bar = progress_bar();
    let update_writer = updates.as_mut().map(|target| &mut *target.writer as &mut dyn Write);
    let result = generator.write(&mut *data.writer, update_writer, |triples| bar.set_position(triples));
    bar.finish_and_clear();
    match result {
        Ok(summary) => {
            report(&summary, start);
            Ok(())
        }
        Err(error) => {
            data.remove();
            if let Some(updates) = updates {
                updates.remove();
            }
            Err(explain(error))
        }
    }
}

/// An open output.
struct Target {
    writer: Box<dyn Write>,
    /// The path, if it is a regular file.
    file: Option<PathBuf>,
}

impl Target {
    fn create(path: &Path) -> Result<Self> {
        if path == Path::new("-") {
            return Ok(Self { writer: Box::new(Stdout), file: None });
        }
        let file = File::create(path).with_context(|| format!("cannot create {}", path.display()))?;
        let regular = file.metadata().is_ok_and(|metadata| metadata.is_file());
        Ok(Self { writer: Box::new(file), file: regular.then(|| path.to_owned()) })
    }

    /// Removes what was written, as far as that can be.
    fn remove(self) {
        drop(self.writer);
        if let Some(path) = self.file
            && let Err(error) = fs::remove_file(&path)
        {
            tell!("the incomplete file {} could not be removed: {error}", path.display());
        }
    }
}

/// Refuses a data set that the disks of its files have no room for. The update set is counted with
/// the data set where both lie in one folder.
fn check_room(args: &BsbmGenerateArgs, update_path: Option<&Path>) -> Result<()> {
    let moved = args.update_transactions.unwrap_or(0).min(args.products);
    let check = |path: &Path, products: u32| -> Result<()> {
        let is_file = path != Path::new("-") && (!path.exists() || path.is_file());
        let instead = "name a file on another disk with --output, or fewer --products";
        if is_file {
            room::check(path, text_bytes(products), instead)?;
        }
        Ok(())
    };
    match update_path {
        Some(updates) if updates.parent() != args.output.parent() => {
            check(updates, moved)?;
            check(&args.output, args.products - moved)
        }
        _ => check(&args.output, args.products),
    }
}

fn update_path(args: &BsbmGenerateArgs) -> Result<PathBuf> {
    let path = match &args.update_output {
        Some(path) => path.clone(),
        None if args.output == Path::new("-") => {
            bail!("the update set needs a file of its own: give --update-output, or -o for the data set")
        }
        None => {
            let mut name = args.output.clone().into_os_string();
            name.push(".update");
            name.into()
        }
    };
    if path == args.output {
        bail!("the data set and the update set cannot both go to {}", path.display());
    }
    Ok(path)
}

/// A spinner with the count and the rate; drawn only when standard error is a terminal.
fn progress_bar() -> ProgressBar {
    let style = ProgressStyle::with_template("{spinner} {human_pos} triples, {per_sec}, {elapsed}")
        .expect("the template is well-formed");
    ProgressBar::new_spinner().with_style(style)
}

fn report(summary: &Summary, start: Instant) {
    let seconds = start.elapsed().as_secs_f64();
    let (triples, bytes) = (HumanCount(summary.data.triples), HumanBytes(summary.data.bytes));
    tell!("{triples} triples, {bytes}, in {seconds:.2} s");
    if summary.updates.triples > 0 {
        let (triples, bytes) = (HumanCount(summary.updates.triples), HumanBytes(summary.updates.bytes));
        tell!("and {triples} triples, {bytes}, in the update set");
    }
}

/// The usual reasons in plain words.
fn explain(error: Error) -> anyhow::Error {
    let Error::Write { what, bytes, source } = &error else { return error.into() };
    let written = HumanBytes(*bytes);
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            anyhow!("no space left for the {what} after {written}: {source}")
        }
        _ => error.into(),
    }
}
