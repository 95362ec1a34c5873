//! `lab compare RUN RUN`: the same cells of two runs beside each other.
//!
//! The run itself names the fields that make two lines the same cell, and the measured fields
//! (`settings.json`). Of several repeats the median is taken. A difference counts only when it
//! is larger than 3 %, and than the differences among the repeats of either run; and only where
//! both runs have three repeats or more: two say nothing about their own spread. Lines of the
//! two reports that have the same name are drawn over each other. Fields that are no measures,
//! as findings in words, are shown beside each other.
//!
//! 1. `loaded` reads the two folders.
//! 2. `judge` pairs their cells and finds a verdict for each measure.
//! 3. `cell_names` names the cells; `page` writes and draws; `functions`: profiles of both, beside
//!    each other.

mod cell_names;
mod functions;
mod judge;
mod loaded;
mod page;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use self::judge::Judged;
use self::loaded::{LoadedRun, key_alike};
use self::page::Page;
use crate::{LabError, Run};

/// Put two runs of the same kind beside each other.
#[derive(Debug, clap::Args)]
pub struct CompareArgs {
    /// The run to compare with: its folder.
    before: PathBuf,
    /// The run that is judged: its folder.
    after: PathBuf,
    /// Folder for the report, new or empty.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Compares, and says where the report is.
pub fn run(args: &CompareArgs) -> Result<(), LabError> {
    let (mut before, mut after) = (LoadedRun::read(&args.before)?, LoadedRun::read(&args.after)?);
    if before.kind != after.kind {
        return Err(LabError::Argument(format!(
            "{} is a run of `{}` and {} one of `{}`: only runs of one kind can be compared",
            before.path.display(),
            before.kind,
            after.path.display(),
            after.kind
        )));
    }
    key_alike(&mut before, &mut after);
    let judged = Judged::new(&before, &after);
    let profiles = functions::compare(&args.before, &args.after)?;
    if judged.pairs.is_empty() && judged.shown.is_empty() && profiles.is_empty() {
        return Err(LabError::Argument(format!(
            "{} and {} have no cell in common",
            before.path.display(),
            after.path.display()
        )));
    }
    let page = Page::new(&before, &after, &judged);
    page.rows().for_each(|row| crate::say!("{row}"));
    let mut report = page.report();
    profiles.iter().flat_map(functions::lines).for_each(|line| crate::say!("{line}"));
    report.sections.extend(functions::section(&profiles));
    report.summary.iter().for_each(|line| crate::say!("{line}"));
    let mut run = Run::create("compare", args.out.as_deref())?;
    run.untimed();
    for loaded in [&before, &after] {
        loaded.doubts.iter().for_each(|doubt| run.doubt(format!("{}: {doubt}", loaded.path.display())));
    }
    crate::say!("\n{}", run.finish(report)?.display());
    Ok(())
}
