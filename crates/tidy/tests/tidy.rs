//! The habits of the source tree. What breaks them today is listed in `ratchet.tsv`, which only
//! shrinks: after something was mended, `SNOWMELT_TIDY=lower cargo test -p snowmelt-tidy`
//! lowers it.

use std::collections::BTreeSet;
use std::fs;

use snowmelt_tidy::ratchet::{self, Counts};
use snowmelt_tidy::{
    arrows, circles, folders, functions, lexer, links, messages, names, prose, tree, unsafe_code,
};

/// A circle that is allowed to stay.
struct KnownCircle {
    /// The crate and the modules in it, as `store::report`.
    within: &'static str,
    /// Ascending.
    members: &'static [&'static str],
    why: &'static str,
}

const fn known(within: &'static str, members: &'static [&'static str], why: &'static str) -> KnownCircle {
    KnownCircle { within, members, why }
}

/// All circles of the tree.
const CIRCLES: &[KnownCircle] = &[
    known("engines", &["engine", "server", "session"], "an engine starts both, and both ask their engine"),
    known("python", &["convert", "terms"], "values become terms, and literals become values"),
    known("python", &["database", "transaction"], "a database begins transactions; both tell changes alike"),
    known("snowmelt", &["database", "options"], "options open a database, and a database names its options"),
    known("snowmelt", &["prepared", "transaction"], "a transaction prepares what is run in it"),
    known("sparql::exec", &["profile", "run", "shared"], "operators are given the run, which counts them"),
    known("sparql::exec::path", &["closure", "walk"], "a closure walks steps, which may hold closures"),
    known("sparql::expr", &["members", "node"], "a node has members, which are nodes"),
    known("syntax::tree", &["expr", "pattern"], "EXISTS holds a pattern, and patterns hold expressions"),
];

/// Each crate and the crates that its product depends on. A crate stands below those it uses.
const ARROWS: &[(&str, &[&str])] = &[
    ("base", &[]),
    ("bsbm", &[]),
    ("io", &["base"]),
    ("cloud", &["base", "io"]),
    ("io-experiments", &["io"]),
    ("jsonld", &["base"]),
    ("rdfxml", &["base"]),
    ("store", &["base", "io"]),
    ("database", &["store"]),
    ("federation", &["base", "rdfxml"]),
    ("query", &["base", "store"]),
    ("syntax", &["base"]),
    ("syntax-help", &["base", "syntax"]),
    ("graph", &["base", "database", "jsonld", "rdfxml", "store"]),
    ("sparql", &["base", "database", "graph", "query", "rdfxml", "syntax"]),
    ("server", &["base", "database", "graph", "sparql", "syntax-help"]),
    ("snowmelt", &["database", "graph", "sparql", "store", "syntax", "syntax-help"]),
    (
        "switches",
        &["base", "cloud", "database", "federation", "graph", "io", "sparql", "store", "syntax-help"],
    ),
    ("workload", &["base", "bsbm", "database", "graph", "io", "sparql", "store"]),
    (
        "cli",
        &["base", "bsbm", "database", "graph", "io", "server", "sparql", "store", "switches", "workload"],
    ),
    ("python", &["cli", "rdfxml", "snowmelt"]),
    ("lab", &["base", "io", "io-experiments"]),
    ("engines", &["io", "lab"]),
    ("tpch", &["base", "engines", "lab"]),
    (
        "bench",
        &[
            "base",
            "bsbm",
            "database",
            "engines",
            "graph",
            "io",
            "io-experiments",
            "lab",
            "sparql",
            "store",
            "tpch",
            "workload",
        ],
    ),
    (
        "lab-cli",
        &[
            "base",
            "bench",
            "bsbm",
            "database",
            "engines",
            "graph",
            "io",
            "io-experiments",
            "lab",
            "sparql",
            "store",
            "switches",
            "tpch",
            "workload",
        ],
    ),
    ("grammar", &["base"]),
    ("api", &[]),
    ("book", &[]),
    ("tidy", &[]),
];

#[test]
fn crates_depend_on_those_listed_and_listed_above() {
    let root = tree::root();
    let folders = fs::read_dir(root.join("crates")).unwrap().map(|entry| entry.unwrap());
    let folders = folders.filter(|entry| entry.path().join("Cargo.toml").exists());
    let mut names: BTreeSet<String> = folders.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.insert("snowmelt".to_owned());
    for (place, (name, listed)) in ARROWS.iter().enumerate() {
        assert!(names.remove(*name), "{name} is no crate, or listed twice");
        let found = links::depends_on(&root, name).unwrap();
        let listed: BTreeSet<String> = listed.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(found, listed, "crates that {name} depends on, and those that ARROWS lists");
        for used in &listed {
            assert!(ARROWS[..place].iter().any(|above| above.0 == used), "{used} is not above {name}");
        }
    }
    assert!(names.is_empty(), "crates that ARROWS lacks: {names:?}");
}

fn found() -> Counts {
    let root = tree::root();
    let mut found = Counts::new();
    let mut add = |rule: &str, key: String, count: usize| {
        if count > 0 {
            *found.entry((rule.to_owned(), key)).or_default() += count;
        }
    };
    for of in tree::crates(&root).unwrap() {
        let arrows = arrows::arrows(&of);
        for circle in circles::circles(&arrows) {
            let within = [std::slice::from_ref(&of.name), &circle.within[..]].concat().join("::");
            add("folder in a circle", within, folders::in_circle(&of, &circle));
        }
        for wrong in folders::against_table(&of, &arrows) {
            add("against the table of folders", format!("{}: {wrong}", of.name), 1);
        }
        for (name, count) in names::twins(&of) {
            add("types of one name", format!("{}: {name}", of.name), count);
        }
        for file in &of.files {
            for (name, lines) in functions::long(file) {
                add("long function", format!("{}: {name}", file.path), lines);
            }
            add("no head", file.path.clone(), usize::from(!prose::has_head(file)));
            if messages::LIBRARIES.contains(&of.name.as_str()) {
                add("switch in a message", file.path.clone(), messages::with_switches(&file.lexed));
            }
        }
    }
    for folder in ["src", "crates", "tests", "examples", "fuzz", "benches"] {
        if !root.join(folder).exists() {
            continue;
        }
        for path in tree::files(&root, folder, ".rs").unwrap() {
            let text = fs::read_to_string(root.join(&path)).unwrap();
            let lexed = lexer::lex(&text);
            add("wide comment", folder_of(&path), prose::wide_comments(&text, &lexed));
            add("unsafe code", path.clone(), usize::from(unsafe_code::is_elsewhere(&path, &lexed.code)));
            add("vague comment", folder_of(&path), prose::vague_comments(&lexed));
            add("mod.rs", folder_of(&path), usize::from(path.contains("/src/") && path.ends_with("/mod.rs")));
        }
    }
    for path in tree::files(&root, ".", ".md").unwrap() {
        let text = fs::read_to_string(root.join(&path)).unwrap();
        add("wide prose", path.trim_start_matches("./").to_owned(), prose::wide_lines(&text));
    }
    found
}

/// The crate of a file.
fn folder_of(path: &str) -> String {
    let depth = if path.starts_with("crates/") { 2 } else { 1 };
    path.split('/').take(depth).collect::<Vec<_>>().join("/")
}

#[test]
fn the_database_links_nothing_of_the_laboratory() {
    const LABORATORY: [&str; 7] = ["io-experiments", "lab", "lab-cli", "engines", "tpch", "bench", "grammar"];
    for product in ["cli", "snowmelt", "python"] {
        let linked = links::linked(&tree::root(), product).unwrap();
        assert!(linked.contains("io"), "{product}: {linked:?}");
        let of_laboratory: Vec<_> = LABORATORY.into_iter().filter(|name| linked.contains(*name)).collect();
        assert!(of_laboratory.is_empty(), "{product} links {of_laboratory:?}");
    }
    assert!(links::linked(&tree::root(), "lab-cli").unwrap().contains("io-experiments"));
}

#[test]
fn the_tree_is_no_less_tidy_than_listed() {
    let path = tree::root().join("crates/tidy/ratchet.tsv");
    let (listed, found) = (ratchet::read(&path).unwrap(), found());
    if std::env::var("SNOWMELT_TIDY").is_ok_and(|v| v == "lower") {
        ratchet::lower(&path, &listed, &found).unwrap();
    }
    let (more, fewer) = ratchet::compare(&ratchet::read(&path).unwrap(), &found);
    assert!(more.is_empty(), "{} things are less tidy than before:\n{}", more.len(), more.join("\n"));
    assert!(
        fewer.is_empty(),
        "tidier than listed; lower the list (SNOWMELT_TIDY=lower cargo test -p snowmelt-tidy):\n{}",
        fewer.join("\n")
    );
}

#[test]
fn each_circle_is_listed_with_its_reason() {
    let root = tree::root();
    let mut found = BTreeSet::new();
    for of in tree::crates(&root).unwrap() {
        for circle in circles::circles(&arrows::arrows(&of)) {
            let within = [std::slice::from_ref(&of.name), &circle.within[..]].concat().join("::");
            found.insert(format!("{within}: {}", circle.members.join(", ")));
        }
    }
    let listed: BTreeSet<String> =
        CIRCLES.iter().map(|known| format!("{}: {}", known.within, known.members.join(", "))).collect();
    let new: Vec<_> = found.difference(&listed).collect();
    assert!(new.is_empty(), "modules need each other, and CIRCLES does not say why: {new:#?}");
    let gone: Vec<_> = listed.difference(&found).collect();
    assert!(gone.is_empty(), "circles that no longer exist; take them out of CIRCLES: {gone:#?}");
    assert!(CIRCLES.iter().all(|known| !known.why.is_empty()));
}

#[test]
fn each_bench_is_on_the_page_that_lists_them() {
    let root = tree::root();
    let page = fs::read_to_string(root.join("docs/src/measurements/benches.md")).unwrap();
    // shared parts, which are no bench
    let parts = ["common.sh", "Cargo.toml", "made_up", "families"];
    let names = fs::read_dir(root.join("benches")).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let names = names.filter(|name| !name.starts_with("__")); // what Python leaves
    let is_listed = |name: &str| match name.strip_suffix(".rs") {
        Some(program) => {
            page.contains(&format!("| `{program} ")) || page.contains(&format!("| `{program}` "))
        }
        None if name.contains('.') => page.contains(name),
        None => page.contains(&format!("| `{name} ")),
    };
    let missing: Vec<_> = names.filter(|name| !parts.contains(&name.as_str()) && !is_listed(name)).collect();
    assert!(missing.is_empty(), "docs/src/measurements/benches.md does not list {missing:?}");
}
