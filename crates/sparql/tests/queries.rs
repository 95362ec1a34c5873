//! The project's own queries: data, query and expected answer as files in `queries/`, run under
//! default and hostile settings.
//!
//! A folder holds `data.ttl` (or `data.trig`) and any number of `NAME.rq` with `NAME.srj`
//! (solutions, booleans), `NAME.nt` (graphs) or `NAME.error` (part of the message of a refusal)
//! beside it. A first line `# ordered` makes the order count.

mod rfc3986;
mod support;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use oxrdf::GraphName;
use sparesults::QueryResultsFormat;

use support::answer::{self, Answer};
use support::settings::{Fixture, Settings, Stored};
use support::{data, order};

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|e| e.expect("a readable folder").path()).collect();
    paths.sort();
    paths
}

fn check(fixture: &Fixture, query: &Path) -> Result<(), String> {
    let read = |path: &Path| std::fs::read(path).map_err(|e| format!("{}: {e}", path.display()));
    let text = String::from_utf8(read(query)?).map_err(|e| e.to_string())?;
    let actual = fixture.answer(&text, Some("http://example.org/"));
    if let Ok(part) = std::fs::read_to_string(query.with_extension("error")) {
        let message = actual.err().ok_or("answered instead of refused")?.to_string();
        return if message.contains(part.trim()) { Ok(()) } else { Err(format!("refused with {message:?}")) };
    }
    let actual = actual.map_err(|e| e.to_string())?;
    let solutions = query.with_extension("srj");
    let expected = if solutions.exists() {
        answer::read(QueryResultsFormat::Json, &read(&solutions)?)?
    } else {
        let quads =
            data::read_file(&query.with_extension("nt"), "http://example.org/", &GraphName::DefaultGraph)?;
        Answer::Graph(quads.into_iter().map(Into::into).collect())
    };
    answer::same(&actual, &expected)?;
    if let (Answer::Solutions(actual), Answer::Solutions(expected)) = (&actual, &expected) {
        order::shape(&text).check(actual)?;
        let expected = expected.arranged(&actual.vars);
        if text.starts_with("# ordered") && actual.rows != expected.rows {
            return Err("the rows are in another order".to_owned());
        }
    }
    Ok(())
}

fn run(settings: &[Settings]) {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/queries");
    let (mut queries, mut wrong) = (0, Vec::new());
    for folder in files(&root) {
        let data_file = files(&folder).into_iter().find(|p| p.file_stem().is_some_and(|s| s == "data"));
        let data_file = data_file.unwrap_or_else(|| panic!("{} has no data", folder.display()));
        let quads = data::read_file(&data_file, "http://example.org/", &GraphName::DefaultGraph)
            .expect("our own data");
        let mut stored = HashMap::new();
        for settings in settings {
            let extents = settings.store.extent_pages;
            let stored = stored.entry(extents).or_insert_with(|| Stored::of_quads(&quads, settings));
            let fixture = Fixture::on(stored.clone(), settings);
            for query in files(&folder).iter().filter(|p| p.extension().is_some_and(|e| e == "rq")) {
                queries += 1;
                if let Err(why) = check(&fixture, query) {
                    wrong.push(format!("{} under {}: {why}", query.display(), settings.name));
                }
            }
        }
    }
    assert!(queries > 0, "no queries in {}", root.display());
    assert!(wrong.is_empty(), "{} of {queries} answers are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn queries_under_default_settings() {
    run(&[Settings::default()]);
}

#[test]
fn queries_under_hostile_settings() {
    run(&Settings::hostile());
}
