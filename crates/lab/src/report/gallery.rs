//! `lab gallery`: one page of all runs below a folder, the newest first, each with its finding and
//! its first picture.

use std::fmt::Write;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::svg::escape;
use super::{Figure, Report, Room, html};
use crate::LabError;

/// Folders in folders that are looked into.
const MOST_DEPTH: usize = 8;

/// Title of the page, by which one of ours is known.
const TITLE: &str = "Runs of the laboratory";

/// Bytes at the start of a page in which its title is.
const HEAD_BYTES: u64 = 1024;

/// One page of all runs below a folder, the newest first.
#[derive(Debug, clap::Args)]
pub struct GalleryArgs {
    /// The folder with the run folders
    #[arg(default_value = "snowmelt-lab")]
    folder: PathBuf,
    /// The page to write; `index.html` in the folder without
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// A finished run.
struct Shown {
    /// from the folder of all
    path: PathBuf,
    kind: String,
    began: String,
    report: Report,
}

/// The part of `settings.json` that is shown.
#[derive(Deserialize)]
struct About {
    kind: String,
    began: String,
}

/// Writes the page and says where.
pub fn run(args: &GalleryArgs) -> Result<(), LabError> {
    let folder = std::path::absolute(&args.folder).map_err(|e| LabError::file("look at", &args.folder, e))?;
    let mut runs = Vec::new();
    collect(&folder, Path::new(""), MOST_DEPTH, &mut runs)?;
    if runs.is_empty() {
        return Err(LabError::refused(
            args.folder.display(),
            "there is no finished run in it",
            "name the folder that the runs' folders are in",
        ));
    }
    runs.sort_by(|a, b| b.began.cmp(&a.began).then_with(|| a.path.cmp(&b.path)));
    let page = args.out.clone().unwrap_or_else(|| args.folder.join("index.html"));
    // Of a bare name the folder is this one.
    let beside = page.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let real = |path: &Path| fs::canonicalize(path).map_err(|e| LabError::file("look at", path, e));
    let (beside, folder) = (real(beside)?, real(&folder)?);
    let base = folder.strip_prefix(&beside).map_or(folder.clone(), Path::to_path_buf);
    refuse_foreign(&page)?;
    fs::write(&page, write(&runs, &base)).map_err(|e| LabError::file("write", &page, e))?;
    crate::say!("{}", page.display());
    Ok(())
}

/// Refuses to write over a file with something in it that is no gallery.
fn refuse_foreign(page: &Path) -> Result<(), LabError> {
    if !fs::metadata(page).is_ok_and(|meta| meta.is_file() && meta.len() > 0) {
        return Ok(());
    }
    let mut head = Vec::new();
    let read = fs::File::open(page).and_then(|file| file.take(HEAD_BYTES).read_to_end(&mut head));
    read.map_err(|e| LabError::file("look at", page, e))?;
    let head = String::from_utf8_lossy(&head);
    if head.starts_with("<!doctype html>") && head.contains(&format!("<title>{TITLE}</title>")) {
        return Ok(());
    }
    Err(LabError::refused(
        page.display(),
        "is there already, and no gallery of this laboratory",
        "name another file with --out",
    ))
}

/// Runs in a folder and below. What a run has in its folder belongs to it.
fn collect(top: &Path, at: &Path, depth: usize, runs: &mut Vec<Shown>) -> Result<(), LabError> {
    let folder = top.join(at);
    if folder.join("report.json").is_file() {
        let path = folder.join("settings.json");
        let text = fs::read_to_string(&path).map_err(|e| LabError::file("read", &path, e))?;
        let about: About = serde_json::from_str(&text)
            .map_err(|e| LabError::Argument(format!("{}: not of this laboratory: {e}", path.display())))?;
        let report = Report::load(&folder)?;
        runs.push(Shown { path: at.to_path_buf(), kind: about.kind, began: about.began, report });
        return Ok(());
    }
    if depth == 0 {
        return Ok(());
    }
    let entries = fs::read_dir(&folder).map_err(|e| LabError::file("read the folder", &folder, e))?;
    for entry in entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        collect(top, &at.join(entry.file_name()), depth - 1, runs)?;
    }
    Ok(())
}

fn write(runs: &[Shown], base: &Path) -> String {
    let doubtful = runs.iter().filter(|run| !run.report.doubts.is_empty()).count();
    let mut out = html::head(TITLE);
    let _ = writeln!(
        out,
        "<section class=\"summary\"><p>{} runs, {doubtful} of them in doubt, the newest first.</p></section>\n\
         <div class=\"gallery\">",
        runs.len()
    );
    for (number, run) in runs.iter().enumerate() {
        card(&mut out, run, base, number);
    }
    out += "</div>\n";
    html::end(&mut out);
    out
}

fn card(out: &mut String, run: &Shown, base: &Path, number: usize) {
    let link: String =
        base.join(&run.path).join("report.html").components().fold(String::new(), |link, part| {
            let part = part.as_os_str().to_string_lossy();
            match link.as_str() {
                "" if part == "/" => "/".into(),
                "" | "/" => link + &address(&part),
                _ => link + "/" + &address(&part),
            }
        });
    let doubts = match run.report.doubts.len() {
        0 => String::new(),
        1 => ", in doubt".into(),
        count => format!(", {count} doubts"),
    };
    let (title, kind) = (escape(&run.report.title), escape(&run.kind));
    let _ = writeln!(
        out,
        "<figure><figcaption><strong><a href=\"{link}\">{title}</a></strong><br><span class=\"note\">{kind}, {}{doubts}\
         </span></figcaption>",
        escape(&run.began)
    );
    if let Some(finding) = run.report.summary.first() {
        let _ = writeln!(out, "<p>{}</p>", super::words::prose(finding));
    }
    let mut figures = run.report.sections.iter().flat_map(|section| &section.figures);
    let picture = figures.find_map(|figure: &Figure| figure.picture(Room::Narrow, &number.to_string()));
    if let Some(picture) = picture {
        html::scrolled(out, "", &title, &picture.inline_fixed());
    }
    *out += "</figure>\n";
}

/// A name of a folder as a part of an address (RFC 3986).
fn address(name: &str) -> String {
    let mut out = String::new();
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(char::from(byte)),
            _ => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::{Bar, Bars, Section};
    use super::*;

    fn keep(folder: &Path, title: &str, began: &str, doubts: &[&str]) {
        let bars =
            Bars { bars: vec![Bar { name: "a".into(), value: 1.0, ..Bar::default() }], ..Bars::default() };
        let mut report = Report::new(title);
        report.summary.push(format!("the finding of {title}"));
        report.doubts = doubts.iter().map(|&doubt| doubt.to_owned()).collect();
        report.sections.push(Section::new("s", vec![Figure::Bars(bars)]));
        fs::create_dir_all(folder).unwrap();
        fs::write(folder.join("report.json"), serde_json::to_string(&report).unwrap()).unwrap();
        let settings = serde_json::json!({ "kind": "scan", "began": began });
        fs::write(folder.join("settings.json"), settings.to_string()).unwrap();
    }

    #[test]
    fn all_runs_stand_on_the_page_the_newest_first() {
        let dir = tempfile::tempdir().unwrap();
        let run = |folder: &Path, out: Option<PathBuf>| run(&GalleryArgs { folder: folder.into(), out });
        assert!(run(dir.path(), None).unwrap_err().to_string().contains("no finished run"));
        keep(&dir.path().join("old & dear"), "old <b>", "2026-01-01T00:00:00Z", &[]);
        keep(&dir.path().join("deep/er/new"), "new", "2026-02-01T00:00:00Z", &["x", "y"]);
        keep(&dir.path().join("deep/er/new/steps/scan"), "a step", "2026-03-01T00:00:00Z", &[]);
        run(dir.path(), None).unwrap();
        let page = fs::read_to_string(dir.path().join("index.html")).unwrap();
        let place = |what: &str| page.find(what).unwrap_or_else(|| panic!("no {what} in {page}"));
        assert!(place("href=\"deep/er/new/report.html\"") < place("href=\"old%20%26%20dear/report.html\""));
        assert!(place("2 runs, 1 of them in doubt") < place("2 doubts"));
        assert!(page.contains("old &lt;b&gt;") && !page.contains("a step"), "a step belongs to its run");
        assert_eq!(page.matches("<svg").count(), 2);
        // From above as well.
        run(&dir.path().join("deep"), Some(dir.path().join("above.html"))).unwrap();
        let page = fs::read_to_string(dir.path().join("above.html")).unwrap();
        assert!(page.contains("href=\"deep/er/new/report.html\""), "{page}");
        // From elsewhere the runs are named by their whole paths.
        let elsewhere = tempfile::tempdir().unwrap();
        run(dir.path(), Some(elsewhere.path().join("all.html"))).unwrap();
        let page = fs::read_to_string(elsewhere.path().join("all.html")).unwrap();
        assert!(
            page.contains(&format!("href=\"{}/deep/er/new/report.html\"", dir.path().display())),
            "{page}"
        );
        let error = run(dir.path(), Some(dir.path().join("missing/all.html"))).unwrap_err().to_string();
        assert!(error.contains("missing: No such file"), "{error}");
    }

    #[test]
    fn only_a_gallery_is_written_over() {
        let dir = tempfile::tempdir().unwrap();
        keep(&dir.path().join("run"), "a run", "2026-01-01T00:00:00Z", &[]);
        let run = |out: Option<PathBuf>| run(&GalleryArgs { folder: dir.path().into(), out });
        for (name, text) in [("index.html", "<!doctype html>\n<title>My page</title>"), ("thesis.tex", "x")] {
            let path = dir.path().join(name);
            fs::write(&path, text).unwrap();
            let out = Some(path.clone()).filter(|_| name != "index.html");
            let error = run(out).unwrap_err().to_string();
            assert!(error.contains(name) && error.contains("no gallery"), "{error}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
            fs::write(&path, "").unwrap();
        }
        run(None).unwrap();
        keep(&dir.path().join("run2"), "a later run", "2026-02-01T00:00:00Z", &[]);
        run(None).unwrap();
        assert!(fs::read_to_string(dir.path().join("index.html")).unwrap().contains("a later run"));
    }
}
