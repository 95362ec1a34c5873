//! `lab report RUN`: the page of a run written again, and its figures as SVG and PNG files.

use std::fs;
use std::path::PathBuf;

use crate::LabError;
use crate::report::picture::png;
use crate::report::{Report, Theme};

/// Write the page of a run folder again, or its figures as pictures.
#[derive(Debug, clap::Args)]
pub struct ReportArgs {
    /// The run folder.
    run: PathBuf,
    /// Also write every figure as an SVG file into this folder.
    #[arg(long, value_name = "DIR")]
    svg: Option<PathBuf>,
    /// Also write every figure as a PNG file into this folder.
    #[arg(long, value_name = "DIR")]
    png: Option<PathBuf>,
    /// Pictures on a dark ground.
    #[arg(long)]
    dark: bool,
}

/// Writes and says where.
pub fn run(args: &ReportArgs) -> Result<(), LabError> {
    let report = Report::load(&args.run)?;
    let page = args.run.join("report.html");
    write(&page, report.html().as_bytes())?;
    let pictures = report.pictures(if args.dark { Theme::DARK } else { Theme::LIGHT });
    for dir in [&args.svg, &args.png].into_iter().flatten() {
        fs::create_dir_all(dir).map_err(|e| LabError::file("make the folder", dir, e))?;
    }
    for (name, svg) in pictures {
        if let Some(dir) = &args.svg {
            write(&dir.join(format!("{name}.svg")), svg.as_bytes())?;
        }
        if let Some(dir) = &args.png {
            let png = png(&svg).map_err(|why| LabError::Argument(format!("{name}: {why}")))?;
            write(&dir.join(format!("{name}.png")), &png)?;
        }
    }
    Ok(())
}

fn write(path: &std::path::Path, bytes: &[u8]) -> Result<(), LabError> {
    fs::write(path, bytes).map_err(|e| LabError::file("write", path, e))?;
    crate::say!("{}", path.display());
    Ok(())
}
