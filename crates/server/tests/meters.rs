//! Every meter of `/stats` is explained in the book, and every meter explained there exists.

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;
use support::{Running, config};

/// Names of all values, as paths: `a.b` for members, `a[].b` for those of a list's entries.
fn names(prefix: &str, value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
                names(&path, value, found);
            }
        }
        Value::Array(entries) => entries.iter().for_each(|e| names(&format!("{prefix}[]"), e, found)),
        _ => drop(found.insert(prefix.to_owned())),
    }
}

/// The names in the first column of the page's tables that are marked as those of `/stats`.
fn explained() -> BTreeSet<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/reference/meters.md");
    let page = fs::read_to_string(path).unwrap();
    let tables = page.split("<!-- meters: /stats -->\n").skip(1);
    let rows = tables.flat_map(|table| table.lines().take_while(|line| line.starts_with('|')).skip(2));
    rows.map(|row| row.split('`').nth(1).expect("a name in code").to_owned()).collect()
}

/// Kinds of objects depend on the data: one row of the page is for all.
fn without_kinds(name: String) -> String {
    match name.starts_with("database.objects_by_kind.") {
        true => "database.objects_by_kind.*".to_owned(),
        false => name,
    }
}

#[test]
fn meters_are_those_of_the_book() {
    let server = Running::start(
        "<urn:a> <urn:b> \"c\" .\n<urn:a> <urn:b> \"1\"^^<http://www.w3.org/2001/XMLSchema#integer> .",
        config(),
    );
    server.update("INSERT DATA { <urn:a> <urn:b> <urn:c> }");
    let (_, stats) = server.ask("GET /stats HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let stats: Value = serde_json::from_str(&stats).unwrap();
    let mut shown = BTreeSet::new();
    names("", &stats, &mut shown);
    let shown: BTreeSet<String> = shown.into_iter().map(without_kinds).collect();
    let explained = explained();
    let missing: Vec<_> = shown.difference(&explained).collect();
    let gone: Vec<_> = explained.difference(&shown).collect();
    assert!(missing.is_empty(), "meters.md does not explain {missing:?}");
    assert!(gone.is_empty(), "meters.md explains what is not shown: {gone:?}");
}
