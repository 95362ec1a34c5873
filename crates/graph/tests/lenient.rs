//! Lenient loads: triples that cannot be read are left out one by one, and reported with their
//! places; the rest is loaded. Also files whose names do not tell their format.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use oxrdfio::RdfFormat;
use snowmelt_database::OpenOptions;
use snowmelt_graph::load::{self, LoadError, LoadOptions, LoadReport, OddTerms, Source};
use snowmelt_graph::{DumpFormat, GraphDatabase};

fn options(format: RdfFormat) -> LoadOptions {
    LoadOptions { format: Some(format), threads: 2, lenient_most: 1.0, ..LoadOptions::default() }
}

fn run(db: &Path, text: &str, options: &LoadOptions) -> Result<LoadReport, LoadError> {
    let read = Box::new(std::io::Cursor::new(text.as_bytes().to_vec()));
    let source = Source::Reader { name: "text".to_owned(), read };
    load::load(db, vec![source], options, &(), &AtomicBool::new(false))
}

fn lines(db: &Path) -> Vec<String> {
    let database = GraphDatabase::open(db, &OpenOptions::default()).unwrap();
    let mut out = Vec::new();
    database.dump(DumpFormat::NQuads, &mut out).unwrap();
    let mut lines: Vec<String> = String::from_utf8(out).unwrap().lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

/// Objects that all formats accept, and some that none accepts.
const GOOD: [&str; 4] =
    ["<http://e/o>", "\"text\"", "\"texte\"@fr", "\"1\"^^<http://www.w3.org/2001/XMLSchema#integer>"];
const BAD: [&str; 4] =
    ["<http://e/x#a#b>", "\"x\"@zh-classical1", "\"x\"^^<http://e/[x]#[>", "<http://e/%zz>"];

/// Statements in a format, the quads to be loaded, and the lines of those left out.
fn document(format: RdfFormat, seed: u64) -> (String, Vec<String>, Vec<u64>) {
    let mut random = seed;
    let mut below = |n: usize| {
        snowmelt_base::random::lcg(&mut random);
        (random >> 33) as usize % n
    };
    let (mut text, mut kept, mut bad_lines) = (String::new(), Vec::new(), Vec::new());
    let mut line = 1;
    for s in 0..50 {
        let subject = format!("<http://e/s{s}>");
        let predicates = 1 + below(4);
        for p in 0..predicates {
            let is_bad = below(5) == 0;
            let object = if is_bad { BAD[below(4)] } else { GOOD[below(4)] };
            let predicate = format!("<http://e/p{p}>");
            match format {
                // the members of a list of predicates, one per line
                RdfFormat::Turtle | RdfFormat::TriG => {
                    text += if p == 0 { &subject } else { "   " };
                    text +=
                        &format!(" {predicate} {object} {}\n", if p + 1 < predicates { ";" } else { "." });
                }
                _ => text += &format!("{subject} {predicate} {object} .\n"),
            }
            match is_bad {
                true => bad_lines.push(line),
                false => kept.push(format!("{subject} {predicate} {object} .")),
            }
            line += 1;
        }
    }
    kept.sort();
    (text, kept, bad_lines)
}

#[test]
fn a_triple_that_cannot_be_read_costs_no_other() {
    for format in [RdfFormat::NTriples, RdfFormat::NQuads, RdfFormat::Turtle, RdfFormat::TriG] {
        for seed in 0..5 {
            let folder = tempfile::tempdir().unwrap();
            let db = folder.path().join("db");
            let (text, kept, bad_lines) = document(format, seed);
            let error = run(&db, &text, &options(format)).map(|_| ()).unwrap_err();
            assert!(matches!(error, LoadError::Syntax { .. }), "{error}");
            let report = run(&db, &text, &LoadOptions { lenient: true, ..options(format) }).unwrap();
            assert_eq!(lines(&db), kept, "{format} {seed}");
            assert_eq!(report.skipped, bad_lines.len() as u64);
            let listed: Vec<u64> = report.left_out.iter().map(|left_out| left_out.line).collect();
            assert_eq!(listed, bad_lines, "{format} {seed}");
        }
    }
}

#[test]
fn odd_terms_are_kept_when_that_is_asked_for() {
    for format in [RdfFormat::NTriples, RdfFormat::NQuads, RdfFormat::Turtle, RdfFormat::TriG] {
        let folder = tempfile::tempdir().unwrap();
        let db = folder.path().join("db");
        let text =
            "<http://e/s> <http://e/p> <http://e/x#a#b> .\n<http://e/s> <http://e/p> \"x\"@zh-classical1 .\n";
        run(&db, text, &LoadOptions { odd_terms: OddTerms::Kept, ..options(format) }).unwrap();
        let mut expected: Vec<&str> = text.lines().collect();
        expected.sort_unstable();
        assert_eq!(lines(&db), expected, "{format}");
        let bad = "<http://e/s> <http://e/p> <no-scheme> .\n";
        let error = run(&db, bad, &LoadOptions { odd_terms: OddTerms::Kept, ..options(format) }).unwrap_err();
        assert!(matches!(error, LoadError::Syntax { .. }), "{error}");
    }
}

#[test]
fn odd_terms_of_rdf_xml_are_kept_too() {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("db");
    let text = "<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\" xmlns:e=\"http://e/\">\
                <rdf:Description rdf:about=\"http://e/x#a#b\"><e:p xml:lang=\"zh-classical1\">x</e:p>\
                </rdf:Description></rdf:RDF>";
    assert!(run(&db, text, &options(RdfFormat::RdfXml)).is_err());
    run(&db, text, &LoadOptions { odd_terms: OddTerms::Kept, ..options(RdfFormat::RdfXml) }).unwrap();
    assert_eq!(lines(&db), ["<http://e/x#a#b> <http://e/p> \"x\"@zh-classical1 ."]);
}

#[test]
fn a_load_that_would_leave_out_much_loads_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("db");
    let (text, kept, bad_lines) = document(RdfFormat::NTriples, 1);
    let options = LoadOptions { lenient: true, lenient_most: 0.01, ..options(RdfFormat::NTriples) };
    match run(&db, &text, &options) {
        Err(LoadError::TooManyLeftOut { count, all, listed, .. }) => {
            assert_eq!((count, listed.len()), (bad_lines.len() as u64, bad_lines.len()));
            assert_eq!(all, (kept.len() + bad_lines.len()) as u64);
        }
        other => panic!("{other:?}"),
    }
    assert!(!db.exists() || lines(&db).is_empty());
    // a hundred are listed, all are counted
    let many = "<http://e/s> <http://e/p> <http://e/a#b#c> .\n".repeat(1000);
    let report = run(&db, &many, &LoadOptions { lenient_most: 1.0, ..options.clone() }).unwrap();
    assert_eq!((report.skipped, report.left_out.len()), (1000, 100));
}

#[test]
fn a_byte_order_mark_means_nothing() {
    let rdf = "<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\" xmlns:e=\"http://e/\">\
               <rdf:Description rdf:about=\"http://e/s\"><e:p>x</e:p></rdf:Description></rdf:RDF>";
    let json = "{\"@id\": \"http://e/s\", \"http://e/p\": \"x\"}";
    let triple = "<http://e/s> <http://e/p> \"x\" .\n";
    for (format, text) in [
        (RdfFormat::NTriples, triple),
        (RdfFormat::NQuads, triple),
        (RdfFormat::Turtle, triple),
        (RdfFormat::TriG, triple),
        (RdfFormat::N3, triple),
        (RdfFormat::RdfXml, rdf),
        (RdfFormat::JsonLd { profile: Default::default() }, json),
    ] {
        for lenient in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let db = folder.path().join("db");
            let report =
                run(&db, &format!("\u{feff}{text}"), &LoadOptions { lenient, ..options(format) }).unwrap();
            assert_eq!((report.triples, report.skipped), (1, 0), "{format}");
            assert_eq!(lines(&db), [triple.trim_end()], "{format}");
            // also with the format detected by content
            let db = folder.path().join("told");
            let told = LoadOptions { format: None, lenient, ..options(format) };
            run(&db, &format!("\u{feff}{text}"), &told).unwrap();
            assert_eq!(lines(&db), [triple.trim_end()], "{format}");
        }
    }
}

#[test]
fn json_ld_names_contexts_that_are_given() {
    let folder = tempfile::tempdir().unwrap();
    let host = folder.path().join("contexts/example.org");
    std::fs::create_dir_all(&host).unwrap();
    std::fs::write(host.join("people.jsonld"), "{\"@context\": {\"name\": \"http://e/name\"}}").unwrap();
    let json = RdfFormat::JsonLd { profile: Default::default() };
    let text = "{\"@context\": \"https://example.org/people\", \"@id\": \"http://e/s\", \"name\": \"x\"}";
    let db = folder.path().join("db");
    let error = run(&db, text, &options(json)).unwrap_err();
    assert_eq!(error.setting(), Some(load::DocumentSetting::Contexts));
    let error = error.to_string();
    assert!(error.contains("never fetched") && error.contains("text:1"), "{error}");
    let arguments = [folder.path().join("contexts").display().to_string()];
    let contexts = load::Contexts::from_args(&arguments).unwrap();
    run(&db, text, &LoadOptions { contexts, ..options(json) }).unwrap();
    assert_eq!(lines(&db), ["<http://e/s> <http://e/name> \"x\" ."]);
}

#[test]
fn foreign_files_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    for (name, content, kind) in [
        ("a.nt", &b"BZh91AY&SY"[..], "bzip2"),
        ("b.ttl.xz", b"\xFD7zXZ\0", "xz"),
        ("c.csv", b"a,b\n", "CSV"),
        ("d.rdf", b"<!DOCTYPE html><html></html>", "HTML"),
    ] {
        let file = folder.path().join(name);
        std::fs::write(&file, content).unwrap();
        let db = folder.path().join("db");
        let load = |lenient| {
            let options = LoadOptions { lenient, ..LoadOptions::default() };
            let sources = vec![Source::File(file.clone())];
            load::load(&db, sources, &options, &(), &AtomicBool::new(false))
                .map(|_| ())
                .unwrap_err()
                .to_string()
        };
        assert!(load(false).contains(kind) && load(true).contains(kind), "{name}: {}", load(false));
    }
    // the caller's format takes precedence over the file name
    let file = folder.path().join("triples.tsv");
    std::fs::write(&file, "<http://e/s>\t<http://e/p>\t1 .\n").unwrap();
    let (db, sources) = (folder.path().join("db"), vec![Source::File(file)]);
    load::load(&db, sources, &options(RdfFormat::Turtle), &(), &AtomicBool::new(false)).unwrap();
    assert_eq!(lines(&db).len(), 1);
}

#[test]
fn a_share_of_few_statements_is_at_least_one() {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("db");
    let bad = "<http://e/s> <http://e/p> <http://e/a#b#c> .\n";
    let text = format!("<http://e/s> <http://e/p> 1 .\n{bad}");
    let options = LoadOptions { lenient: true, lenient_most: 0.01, ..options(RdfFormat::Turtle) };
    assert_eq!(run(&db, &text, &options).unwrap().skipped, 1);
    assert!(matches!(run(&db, &format!("{text}{bad}"), &options), Err(LoadError::TooManyLeftOut { .. })));
    let none = LoadOptions { lenient_most: 0.0, ..options };
    assert!(matches!(run(&db, &text, &none), Err(LoadError::TooManyLeftOut { .. })));
}

/// Directives with malformed IRIs: the triples that depend on them are left out, and no others.
#[test]
fn bad_directives_cost_what_needs_them() {
    for (head, left_out) in [
        ("@prefix f: <relative> .", 2),
        ("@prefix f: <http://[x> .", 2),
        ("@prefix f: <http://e/a b> .", 2),
        ("PREFIX f: <http://e/\\q>", 2),
        ("@base <relative> .", 2),
        ("@base <http://[x> .", 2),
        ("BASE <http://[x>", 2),
        ("@prefix f <http://e/> .", 2),
        ("@prefix <http://e/> .", 2),
        ("@base .", 2),
        ("@prefix f: .", 2),
        ("PREFIX f", 4),
    ] {
        for format in [RdfFormat::Turtle, RdfFormat::TriG] {
            let folder = tempfile::tempdir().unwrap();
            let db = folder.path().join("db");
            let rest = if head.to_lowercase().contains("base") { "<a>" } else { "f:a" };
            let text =
                format!("{head}\n<http://e/s> <http://e/p> {rest} .\n<http://e/s> <http://e/p> \"x\" .\n");
            let report = run(&db, &text, &LoadOptions { lenient: true, ..options(format) });
            let report = report.unwrap_or_else(|error| panic!("{head}: {error}"));
            assert_eq!(lines(&db), ["<http://e/s> <http://e/p> \"x\" ."], "{head}");
            assert!((1..=left_out).contains(&report.skipped), "{head}: {:#?}", report.left_out);
            assert!(run(&folder.path().join("strict"), &text, &options(format)).is_err(), "{head}");
        }
    }
}

/// JSON-LD's own rules drop malformed IRIs and language tags; the load reports them.
#[test]
fn json_ld_tells_what_it_leaves_out() {
    let json = RdfFormat::JsonLd { profile: Default::default() };
    let text = r#"[{"@id": "http://e/s", "http://e/p": ["kept", {"@value": "x", "@language": "zh-classical1"},
        {"@id": "http://e/a#b#c"}, {"@id": "relative"},
        {"@list": [1, {"@id": "http://e/a b"}]}], "_:p": "y"},
        {"@id": "http://e/a#b#c", "http://e/p": "z", "@type": "http://e/T"}]"#;
    for (odd_terms, left_out, kept) in [(OddTerms::Refused, 7, 5), (OddTerms::Kept, 3, 9)] {
        for lenient in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let db = folder.path().join("db");
            let report = run(&db, text, &LoadOptions { lenient, odd_terms, ..options(json) }).unwrap();
            assert_eq!(report.skipped, left_out, "{odd_terms:?} {:#?}", report.left_out);
            assert_eq!(lines(&db).len(), kept, "{odd_terms:?} {:#?}", lines(&db));
            assert!(report.left_out.iter().all(|left_out| left_out.line == 0));
        }
    }
}

/// A text with a language tag has a datatype of its own, which no other literal has.
#[test]
fn a_literal_without_a_tag_is_no_tagged_text() {
    const RDF: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";
    let json = RdfFormat::JsonLd { profile: Default::default() };
    let of_format = |format: RdfFormat, name: &str| match format {
        RdfFormat::RdfXml => format!(
            "<rdf:RDF xmlns:rdf=\"{RDF}\" xmlns:e=\"http://e/\"><rdf:Description rdf:about=\"http://e/s\">\
             <e:p rdf:datatype=\"{RDF}{name}\">x</e:p><e:p>kept</e:p></rdf:Description></rdf:RDF>"
        ),
        RdfFormat::JsonLd { .. } => format!(
            "{{\"@id\": \"http://e/s\", \"http://e/p\": [\"kept\", {{\"@value\": \"x\", \"@type\": \"{RDF}{name}\"}}]}}"
        ),
        _ => format!(
            "<http://e/s> <http://e/p> \"x\"^^<{RDF}{name}> .\n<http://e/s> <http://e/p> \"kept\" .\n\
             <http://e/s> <http://e/p> <<( <http://e/s> <http://e/p> \"x\"^^<{RDF}{name}> )>> .\n"
        ),
    };
    use RdfFormat::{NQuads, NTriples, RdfXml, TriG, Turtle};
    for format in [NTriples, NQuads, Turtle, TriG, RdfXml, json] {
        for name in ["langString", "dirLangString"] {
            for odd_terms in [OddTerms::Refused, OddTerms::Kept] {
                let text = of_format(format, name);
                let folder = tempfile::tempdir().unwrap();
                let db = folder.path().join("db");
                let with = |lenient| LoadOptions { lenient, odd_terms, ..options(format) };
                let case = format!("{format} {name} {odd_terms:?}");
                // JSON-LD leaves out what is no term, also where that is not asked for
                if format != json {
                    let error = run(&db, &text, &with(false)).unwrap_err().to_string();
                    assert!(error.contains(name), "{case}: {error}");
                }
                let report = run(&db, &text, &with(true)).unwrap();
                assert_eq!(lines(&db), ["<http://e/s> <http://e/p> \"kept\" ."], "{case}");
                let told = report.left_out.iter().all(|left_out| left_out.message.contains(name));
                assert!(told && report.skipped > 0, "{case}: {:#?}", report.left_out);
            }
        }
    }
}
