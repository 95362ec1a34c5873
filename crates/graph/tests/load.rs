//! Loads compared with oxrdfio: a loaded database has the quads that a parser reads, whatever the
//! threads, the memory and the compression, and the bytes of the database are equal every time.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use oxrdfio::{RdfFormat, RdfParser};
use snowmelt_graph::dict::code::{Codes, PLAIN};
use snowmelt_graph::dict::prefix::Prefixes;
use snowmelt_graph::dict::{self, GraphFormat, GraphMeta};
use snowmelt_graph::load::{
    DocumentSetting, Fill, LoadError, LoadOption, LoadOptions, LoadProgress, LoadReport, LoadSizes, Progress,
    Source, load,
};
use snowmelt_graph::{DumpFormat, GraphDatabase, Index, Lexical, Term, TermId, TermKind, TermRef, Tree};
use snowmelt_store::{
    Columns, Keys, Matches, Mode, Reader, ScanBounds, Store, StoreConfig, StringTree, TupleTree,
};

/// Quads as text, blank nodes by number.
type Quads = BTreeSet<[String; 4]>;

fn config() -> StoreConfig {
    StoreConfig {
        memory_bytes: 64 << 20,
        pool_bytes: Some(8 << 20),
        extent_pages: 8,
        ..StoreConfig::default()
    }
}

fn options() -> LoadOptions {
    LoadOptions { threads: 2, store: config(), ..LoadOptions::default() }
}

/// Sizes that force every path: many chunks, tiny runs in files, merges of merges, waiting terms.
fn hostile() -> LoadSizes {
    LoadSizes {
        chunk_bytes: Some(700),
        batch_rows: Some(60),
        table_bytes: Some(100 << 10),
        run_bytes: Some(0),
        part_terms: Some(150),
        fan_in: Some(3),
    }
}

fn text(content: &[u8], name: &str) -> Source {
    Source::Reader { name: name.to_owned(), read: Box::new(std::io::Cursor::new(content.to_vec())) }
}

fn load_text(db: &Path, content: &[u8], options: &LoadOptions) -> Result<LoadReport, LoadError> {
    load(db, vec![text(content, "input")], options, &(), &AtomicBool::new(false))
}

/// The quads that oxrdfio reads, blank nodes numbered by first occurrence, separately per input.
fn expected(inputs: &[(&[u8], RdfFormat)], base: Option<&str>) -> Quads {
    let mut blanks = HashMap::new();
    let mut quads = Quads::new();
    for (input, (content, format)) in inputs.iter().enumerate() {
        let mut parser = RdfParser::from_format(*format);
        if let Some(base) = base {
            parser = parser.with_base_iri(base).unwrap();
        }
        for quad in parser.for_slice(content) {
            let quad = quad.unwrap();
            let mut name = |term: oxrdf::Term| match term {
                oxrdf::Term::BlankNode(node) => {
                    let next = blanks.len();
                    format!("_:b{}", blanks.entry((input, node.into_string())).or_insert(next))
                }
                other => other.to_string(),
            };
            let [s, p, o] = [quad.subject.into(), quad.predicate.into(), quad.object].map(&mut name);
            let g = match quad.graph_name {
                oxrdf::GraphName::DefaultGraph => String::new(),
                oxrdf::GraphName::NamedNode(node) => node.to_string(),
                oxrdf::GraphName::BlankNode(node) => name(node.into()),
            };
            quads.insert([s, p, o, g]);
        }
    }
    quads
}

/// A loaded database, read tree by tree.
struct Loaded {
    reader: Reader,
    store: Arc<Store>,
    strings: Vec<StringTree>,
    format: GraphFormat,
    codes: Codes,
    prefixes: Prefixes,
}

impl Loaded {
    fn open(path: &Path) -> Loaded {
        let store = Store::open(path, config()).unwrap();
        let record = |name: &str| store.catalog(name).unwrap_or_else(|| panic!("no record {name}"));
        Loaded {
            reader: Reader::new(&store, store.snapshot()),
            strings: Tree::ALL.iter().map(|t| StringTree::from_bytes(&record(t.name())).unwrap()).collect(),
            format: GraphMeta::from_bytes(&record(dict::RECORD_META)).unwrap().format,
            codes: Codes::from_bytes(&record(dict::RECORD_CODES)).unwrap(),
            prefixes: Prefixes::from_bytes(&record(dict::RECORD_PREFIXES)).unwrap(),
            store,
        }
    }

    fn rows(&mut self, name: &str, arity: usize) -> Vec<Vec<u64>> {
        let tree = TupleTree::from_bytes(&self.store.catalog(name).unwrap()).unwrap();
        let mut scan = tree.scan(ScanBounds::default());
        let mut columns = Columns::new(arity);
        while scan.next(&mut self.reader, &mut columns, 1000).unwrap() {}
        assert_eq!(columns.rows as u64, tree.rows());
        (0..columns.rows).map(|row| columns.cols.iter().map(|c| c[row]).collect()).collect()
    }

    fn term(&mut self, id: TermId) -> Term {
        let mut lexical = Lexical::new();
        if let Some(text) = lexical.write(id) {
            let datatype = id.fixed_datatype().or_else(|| self.codes.decimal_datatype_of(id.decimal_code()));
            return TermRef::typed(text, datatype.unwrap()).to_owned();
        }
        if id.kind() == TermKind::Blank {
            return Term::Blank(format!("b{}", id.number()));
        }
        let tree = Tree::holding(id.kind()).unwrap();
        let mut string = Vec::new();
        let get = |_, bytes: &[u8]| string.extend_from_slice(bytes);
        self.strings[tree as usize].get(&mut self.reader, &[id.number()], get).unwrap();
        if tree == Tree::Iri {
            let (prefix, local) = self.prefixes.split(&string).unwrap();
            return Term::Iri(format!("{prefix}{local}"));
        }
        dict::literal(id, &string, &self.codes).unwrap().to_owned()
    }

    /// Returns all quads; checks that the other indexes hold the same ones and that the hash trees
    /// find every term.
    fn quads(&mut self) -> Quads {
        let psog = self.rows(Index::Psog.name(), 4);
        let quads: Vec<[u64; 4]> = psog.iter().map(|r| [r[1], r[0], r[2], r[3]]).collect();
        for index in Index::ALL {
            let arity = index.arity();
            let want: BTreeSet<Vec<u64>> = quads.iter().map(|&q| index.row(q)[..arity].to_vec()).collect();
            assert!(self.rows(index.name(), arity).into_iter().eq(want), "{}", index.name());
        }
        let meta = GraphMeta::from_bytes(&self.store.catalog(dict::RECORD_META).unwrap()).unwrap();
        assert_eq!(meta.quads, quads.len() as u64);
        let mut names = BTreeMap::new();
        for id in quads.iter().flatten().copied().collect::<BTreeSet<_>>() {
            let name = if TermId(id) == TermId::DEFAULT_GRAPH {
                String::new()
            } else {
                let term = self.term(TermId(id));
                self.find(TermId(id), &term);
                term.to_string()
            };
            names.insert(id, name);
        }
        quads.iter().map(|quad| quad.map(|id| names[&id].clone())).collect()
    }

    /// Checks that a stored term is found by its hash.
    fn find(&mut self, id: TermId, term: &Term) {
        let mut scratch = Vec::new();
        let dict::Place::Entry(entry) =
            dict::place(&term.as_ref(), self.format, &mut &self.codes, &mut scratch)
        else {
            return;
        };
        assert_eq!(entry.id(id.number()), id);
        let tree = TupleTree::from_bytes(&self.store.catalog(entry.tree().hash_name()).unwrap()).unwrap();
        let hash = [dict::index_hash(entry.hash())];
        let mut matches = Matches::new(tree.arity(), 1);
        let cols: [&[u64]; 1] = [&hash];
        let mut lookup = tree.lookup(Keys::new(&cols, None));
        while lookup.next(&mut self.reader, &mut matches, 100).unwrap() {}
        let at =
            matches.cols[0].iter().position(|&n| n == id.number()).expect("the hash leads to the number");
        if entry.tree() != Tree::Iri {
            let code = if id.kind().has_code() { id.code() } else { PLAIN };
            assert_eq!(matches.cols[1][at], u64::from(code));
        }
    }
}

fn quads_of(db: &Path) -> Quads {
    Loaded::open(db).quads()
}

/// All bytes of a database's data, by file name. Super-block, journal and the record of its
/// lineage in the catalog are left out: they carry random numbers of the database.
fn bytes_of(db: &Path) -> BTreeMap<String, Vec<u8>> {
    let files = fs::read_dir(db).unwrap().map(|f| f.unwrap());
    let named = files.map(|f| (f.file_name().into_string().unwrap(), fs::read(f.path()).unwrap()));
    let own = |name: &str| name == "lock" || name == "superblock" || name.starts_with("journal");
    let mut bytes: BTreeMap<String, Vec<u8>> = named.filter(|(name, _)| !own(name)).collect();
    // The store's own pages hold the catalog, whose content is compared instead.
    for page in bytes.values_mut().flat_map(|file| file.chunks_exact_mut(8192)) {
        if page[24..28] == [0; 4] {
            page.fill(0);
        }
    }
    let store = Store::open(db, StoreConfig { mode: Mode::ReadOnly, ..config() }).unwrap();
    let mut catalog = store.catalog_all();
    assert!(catalog.records.remove("lineage").is_some());
    bytes.insert("catalog".into(), format!("{catalog:?} {:?}", store.extents()).into_bytes());
    bytes
}

/// N-Quads with every kind of term, repeated terms and quads, and new terms until the end.
fn sample(statements: usize) -> Vec<u8> {
    let mut state = 0x1234_5678_9abc_def1_u64;
    let mut random = move |below: u64| (snowmelt_base::random::lcg(&mut state) >> 33) % below;
    const XSD: &str = "http://www.w3.org/2001/XMLSchema#";
    let mut out = Vec::new();
    for i in 0..statements as u64 {
        let subject = match random(8) {
            0 => format!("_:b{}", random(50)),
            1 => format!("<http://a.example/shared/{}>", random(40)),
            _ => format!("<http://a.example/{}/item{}>", i % 7, i / 5),
        };
        let n = random(1 + i / 3);
        let long = match random(40) {
            0 => 9000,
            1..=6 => 200 + random(120),
            _ => 10 + random(90),
        };
        let words: String = (0..long / 8).map(|_| format!("word{} ", random(200))).collect();
        let object = match random(16) {
            0 => format!("_:b{n}"),
            1 => format!("\"{n}\"^^<{XSD}integer>"),
            2 => format!("\"0{n}\"^^<{XSD}integer>"),
            3 => format!("\"{n}.50\"^^<http://a.example/usd{}>", random(3)),
            4 => format!("\"short{}\"", random(20)),
            5 => format!("\"{words}\""),
            6 => format!("\"{words}\"@en"),
            7 => format!("\"{words}\"@de-at"),
            8 => format!("\"{words}\"^^<http://a.example/type{}>", random(5)),
            9 => format!("\"20{:02}-01-02T03:04:05Z\"^^<{XSD}dateTime>", random(100)),
            10 => format!("\"q\\\"{n}\\n\\u00e9 and some more\""),
            11 => format!("\"{n}e3\"^^<{XSD}double>"),
            _ => format!("<http://a.example/o/{n}>"),
        };
        let graph = match random(6) {
            0 => format!(" <http://a.example/g{}>", random(3)),
            1 if random(5) == 0 => " _:g".to_owned(),
            _ => String::new(),
        };
        writeln!(out, "{subject} <http://a.example/p{}> {object}{graph} .", random(12)).unwrap();
        if random(9) == 0 {
            writeln!(out, "# a comment\n<http://a.example/twice> <http://a.example/p> \"the same\" .")
                .unwrap();
        }
    }
    out
}

fn nquads() -> LoadOptions {
    LoadOptions { format: Some(RdfFormat::NQuads), ..options() }
}

#[test]
fn a_load_is_what_the_parser_reads() {
    let data = sample(6000);
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("db");
    let report = load_text(&db, &data, &nquads()).unwrap();
    let want = expected(&[(&data, RdfFormat::NQuads)], None);
    assert_eq!(report.quads, want.len() as u64);
    assert_eq!(report.triples, data.iter().filter(|&&b| b == b'\n').count() as u64 - comments(&data));
    assert!(report.triples > report.quads && report.terms.blank_nodes > 10 && report.terms.texts > 100);
    assert!(quads_of(&db) == want);
    assert!(!db.join("load.tmp").exists());
}

fn comments(data: &[u8]) -> u64 {
    data.split(|&b| b == b'\n').filter(|l| l.starts_with(b"#")).count() as u64
}

#[test]
fn the_same_bytes_for_any_threads_and_memory() {
    let data = sample(5000);
    let dir = tempfile::tempdir().unwrap();
    let mut first = None;
    for threads in 1..=4 {
        for sizes in [LoadSizes::default(), hostile(), LoadSizes { table_bytes: Some(0), ..hostile() }] {
            let db = dir.path().join(format!("db{threads}"));
            let report = load_text(&db, &data, &LoadOptions { threads, sizes, ..nquads() }).unwrap();
            assert_eq!(report.temporary_bytes > 0, sizes.run_bytes == Some(0));
            let bytes = bytes_of(&db);
            if first.is_none() {
                assert!(quads_of(&db) == expected(&[(&data, RdfFormat::NQuads)], None));
            }
            let same = *first.get_or_insert_with(|| bytes.clone()) == bytes;
            assert!(same, "{threads} threads, {sizes:?}");
            fs::remove_dir_all(&db).unwrap();
        }
    }
}

/// Texts of an input of unknown size get a dictionary, those of a small file symbols; either way
/// they come back, from a dictionary with the same bytes for any threads and memory.
#[test]
fn texts_of_much_input_have_dictionaries() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let text = |i: u64| {
        let word = |j: u64| format!("word{} ", i * 7919 * (j + 3) % 311);
        format!("<urn:s{i}> <urn:text> \"{}{i}\" .\n", (0..30).map(word).collect::<String>())
    };
    // more than the sample
    let content: String = (0..40_000).map(text).collect();
    fs::write(path("in.nt"), &content).unwrap();
    load(&path("file"), vec![Source::File(path("in.nt"))], &options(), &(), &AtomicBool::new(false)).unwrap();
    let of_triples = || LoadOptions { format: Some(RdfFormat::NTriples), ..options() };
    load_text(&path("stream"), content.as_bytes(), &of_triples()).unwrap();
    let sizes = LoadSizes { chunk_bytes: Some(50_000), run_bytes: Some(0), ..LoadSizes::default() };
    let alone = LoadOptions { sizes, threads: 1, ..of_triples() };
    load_text(&path("alone"), content.as_bytes(), &alone).unwrap();
    assert_eq!(bytes_of(&path("stream")), bytes_of(&path("alone")));

    let want = expected(&[(content.as_bytes(), RdfFormat::NTriples)], None);
    for (name, version) in [("file", 1), ("stream", 2)] {
        let mut loaded = Loaded::open(&path(name));
        assert_eq!(loaded.strings[Tree::Literal as usize].to_bytes()[0], version, "{name}");
        assert_eq!(loaded.quads(), want, "{name}");
    }
}

#[test]
fn compressed_inputs_are_the_same() {
    let data = sample(800);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&data).unwrap();
    let gzip = gzip.finish().unwrap();
    let zstd = zstd::encode_all(&data[..], 1).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let mut all = Vec::new();
    for (name, content) in [("plain.nq", &data), ("a.nq.gz", &gzip), ("b.nq.zst", &zstd), ("odd-name", &gzip)]
    {
        let file = dir.path().join(name);
        fs::write(&file, content).unwrap();
        let db = dir.path().join(format!("db-{name}"));
        let report = load(&db, vec![Source::File(file)], &options(), &(), &AtomicBool::new(false)).unwrap();
        assert_eq!(report.input_bytes, content.len() as u64);
        all.push(bytes_of(&db));
    }
    assert!(all.windows(2).all(|w| w[0] == w[1]));
}

#[test]
fn every_format_and_blank_nodes_apart() {
    let turtle: &[u8] = b"@prefix a: <http://a/> . a:s a:p _:x, 'text', 7, [ a:q (1 2) ] . <rel> a:p a:o .";
    let trig: &[u8] = b"@prefix a: <http://a/> . a:g { a:s a:p _:x . } a:s a:p 'in the default graph' .";
    let xml: &[u8] =
        br#"<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:a="http://a/">
        <rdf:Description rdf:about="http://a/s" a:p="xml"/></rdf:RDF>"#;
    let json: &[u8] = br#"{"@id": "http://a/s", "http://a/p": [{"@id": "_:x"}, "json"]}"#;
    let lines: &[u8] = b"_:x <http://a/p> _:y .\n";
    let jsonld = RdfFormat::from_extension("jsonld").unwrap();
    let inputs = [
        (turtle, RdfFormat::Turtle, "1.ttl"),
        (trig, RdfFormat::TriG, "2.trig"),
        (xml, RdfFormat::RdfXml, "3.rdf"),
        (json, jsonld, "4.jsonld"),
        (lines, RdfFormat::NTriples, "5.nt"),
    ];
    let dir = tempfile::tempdir().unwrap();
    let files: Vec<Source> = inputs
        .iter()
        .map(|(content, _, name)| {
            let file = dir.path().join(name);
            fs::write(&file, content).unwrap();
            Source::File(file)
        })
        .collect();
    let db = dir.path().join("db");
    let base = Some("http://base/dir/".to_owned());
    let report = load(&db, files, &LoadOptions { base, ..options() }, &(), &AtomicBool::new(false)).unwrap();
    let inputs = inputs.map(|(content, format, _)| (content, format));
    let want = expected(&inputs, Some("http://base/dir/"));
    assert_eq!(quads_of(&db), want);
    // Four times _:x and _:y; in Turtle also one [] and two list cells.
    assert_eq!(report.terms.blank_nodes, 8);
}

#[test]
fn more_files_than_chunks() {
    let file = |i: usize| format!("_:x <http://a/p{}> \"file {i}\" .\n_:x <http://a/q> _:x .\n", i % 3);
    let contents: Vec<String> = (0..40).map(file).collect();
    let sources = contents.iter().map(|c| text(c.as_bytes(), "part")).collect();
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("db");
    load(&db, sources, &options(), &(), &AtomicBool::new(false)).unwrap();
    let inputs: Vec<(&[u8], RdfFormat)> =
        contents.iter().map(|c| (c.as_bytes(), RdfFormat::NTriples)).collect();
    assert_eq!(quads_of(&db), expected(&inputs, None));
}

#[test]
fn triples_go_to_the_graph_that_was_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    for (name, format) in [("lines", RdfFormat::NQuads), ("document", RdfFormat::TriG)] {
        let content: &[u8] = match format {
            RdfFormat::NQuads => b"<http://a/s> <http://a/p> 'x' .".as_slice(),
            _ => b"<http://a/s> <http://a/p> 'x' . <http://a/h> { <http://a/s> <http://a/p> 'y' . }",
        };
        let content = String::from_utf8_lossy(content).replace('\'', "\"");
        let db = dir.path().join(name);
        let graph = Some("http://a/g".to_owned());
        let options = LoadOptions { graph, format: Some(format), ..options() };
        load_text(&db, content.as_bytes(), &options).unwrap();
        let graphs: Vec<String> = quads_of(&db).into_iter().map(|q| q[3].clone()).collect();
        let want = if name == "lines" { vec!["<http://a/g>"] } else { vec!["<http://a/g>", "<http://a/h>"] };
        assert_eq!(graphs, want);
    }
}

#[test]
fn bad_input_names_the_place_and_loads_nothing() {
    let mut data = sample(3000);
    let lines = data.iter().filter(|&&b| b == b'\n').count();
    data.extend_from_slice("<http://a/s> <http://a/p\u{e9}> \"x\" <g> .\n".as_bytes());
    data.extend_from_slice(b"nor is this\n");
    data.extend(sample(2000));
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("db");
    for threads in [1, 3] {
        for sizes in [LoadSizes::default(), hostile()] {
            let error = load_text(&db, &data, &LoadOptions { threads, sizes, ..nquads() }).unwrap_err();
            let place = format!("input:{}:32: ", lines + 1);
            assert!(error.to_string().starts_with(&place), "{error}");
            assert!(!db.join("load.tmp").exists());
        }
    }
    // An empty database exists; the repaired file can be loaded into it.
    let good = sample(500);
    load_text(&db, &good, &nquads()).unwrap();
    assert!(quads_of(&db) == expected(&[(&good, RdfFormat::NQuads)], None));
    let turtle = b"@prefix a: <http://a/> .\n\na:s a:p b:o .";
    let options = LoadOptions { format: Some(RdfFormat::Turtle), ..options() };
    let error = load_text(&dir.path().join("ttl"), turtle, &options).unwrap_err().to_string();
    assert!(error.starts_with("input:3:9: "), "{error}");
}

#[test]
fn lenient_counts_and_skips() {
    let good = sample(900);
    let mut data = Vec::new();
    for (i, line) in good.split_inclusive(|&b| b == b'\n').enumerate() {
        data.extend_from_slice(line);
        if i % 100 == 0 {
            data.extend_from_slice(b"<http://a/s> <no iri> \"x\" .\n\"no subject\" .\n");
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("db");
    let report = load_text(&db, &data, &LoadOptions { lenient: true, ..nquads() }).unwrap();
    let bad = good.iter().filter(|&&b| b == b'\n').count().div_ceil(100) as u64 * 2;
    assert_eq!(report.skipped, bad);
    assert!(quads_of(&db) == expected(&[(&good, RdfFormat::NQuads)], None));
    let turtle = b"@prefix a: <http://a/> .\na:s a:p a:o .\na:s a:p ; ; ] .\na:s a:q a:o .\n";
    let options = LoadOptions { lenient: true, format: Some(RdfFormat::Turtle), ..options() };
    let db = dir.path().join("ttl");
    let report = load_text(&db, turtle, &options).unwrap();
    assert!(report.skipped > 0);
    assert!(quads_of(&db).len() >= 2);
}

/// Sets a flag as soon as a phase is reported.
struct StopAt<'a>(&'static str, &'a AtomicBool);

impl LoadProgress for StopAt<'_> {
    fn report(&self, progress: &Progress) {
        if progress.phase.name() == self.0 {
            self.1.store(true, Ordering::Relaxed);
        }
    }
}

/// They are refused while the text is read, if it shows their length; else once it is known.
#[test]
fn terms_longer_than_the_longest_are_refused_on_every_way() {
    let (long, half) = ("x".repeat(2000), "x".repeat(600));
    let store = StoreConfig { longest_string_bytes: 1000, ..config() };
    let json = RdfFormat::JsonLd { profile: Default::default() };
    let xml = format!(
        "<r:RDF xmlns:r='http://www.w3.org/1999/02/22-rdf-syntax-ns#'><r:Description><r:value>{long}</r:value></r:Description></r:RDF>"
    );
    let known = "from here on, a term has 2000 bytes, and the longest allowed has 1000";
    let seen = "a term or line has more than 1000 bytes";
    for (format, text, why) in [
        (RdfFormat::NTriples, format!("<a:s> <a:p> \"{long}\" .\n"), known),
        (RdfFormat::Turtle, format!("<a:s> <a:p> \"{long}\" .\n"), seen),
        (json, format!("{{\"@id\": \"a:s\", \"a:p\": \"{long}\"}}"), seen),
        (RdfFormat::RdfXml, xml, "has more than 1000 bytes"),
        // Neither part is too long by itself.
        (
            RdfFormat::Turtle,
            format!("@prefix p: <a:{half}> . <a:s> <a:p> p:{half} ."),
            "a term has 1202 bytes",
        ),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let options = LoadOptions { format: Some(format), store: store.clone(), ..options() };
        let error = load_text(&dir.path().join("new"), text.as_bytes(), &options).unwrap_err();
        let said = with_causes(&error);
        assert!(said.contains(why), "{format}: {said}");
        assert_eq!(error.setting(), Some(DocumentSetting::LongestTerm), "{format}");
        assert!(why == known || !said.contains("from here on"), "{format}: {said}");
        // A transaction refuses them, too.
        let db = GraphDatabase::create(&dir.path().join("db"), &[], &store).unwrap();
        let mut txn = db.begin().unwrap();
        let done = txn.insert_source(
            self::text(text.as_bytes(), "input"),
            Some(format),
            None,
            None,
            &AtomicBool::new(false),
        );
        assert_eq!(done.unwrap_err().setting(), Some(DocumentSetting::LongestTerm), "{format}");
        assert_eq!(txn.state().quads(), 0);
        let mut batch = snowmelt_graph::QuadBatch::new(0);
        let term = batch.term(TermRef::string(&long));
        let (iri, default) = (batch.term(TermRef::Iri("a:s")), batch.id(TermId::DEFAULT_GRAPH));
        batch.push([iri, iri, term, default]);
        let error = txn.insert(&batch, &mut Default::default()).unwrap_err();
        assert!(
            matches!(error, snowmelt_graph::GraphError::TermTooLong { bytes: 2000, most: 1000 }),
            "{error}"
        );
    }
}

/// The part of a document that is kept in memory is charged to the load's budget.
#[test]
fn documents_that_are_kept_are_charged() {
    let text = format!("[{} 1]", "{\"@id\": \"a:s\"},".repeat(600_000));
    let format = RdfFormat::JsonLd { profile: Default::default() };
    let dir = tempfile::tempdir().unwrap();
    let options = LoadOptions { format: Some(format), ..options() };
    let error = load_text(&dir.path().join("db"), text.as_bytes(), &options).unwrap_err();
    let said = with_causes(&error);
    assert!(said.contains("a document of JSON-LD needs"), "{said}");
    assert!(error.is_of_memory() && !error.is_of_input(), "{said}");
}

fn with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

#[test]
fn cancelled_loads_leave_nothing() {
    let data = sample(3000);
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("db");
    for phase in ["read", "terms", "hashes", "psog", "posg", "sp", "commit"] {
        let cancel = AtomicBool::new(false);
        let options = LoadOptions { sizes: hostile(), ..nquads() };
        let result = load(&db, vec![text(&data, "input")], &options, &StopAt(phase, &cancel), &cancel);
        assert!(matches!(result, Err(LoadError::Cancelled)), "{phase}: {result:?}");
        assert!(!db.exists(), "{phase}");
    }
    // A database that existed before stays, empty.
    drop(Store::create(&db, &[], config()).unwrap());
    let cancel = AtomicBool::new(false);
    let result = load(&db, vec![text(&data, "input")], &nquads(), &StopAt("psog", &cancel), &cancel);
    assert!(matches!(result, Err(LoadError::Cancelled)), "{result:?}");
    assert!(!db.join("load.tmp").exists());
    assert_eq!(Store::open(&db, config()).unwrap().catalog(dict::RECORD_META), None);
    load_text(&db, &data, &nquads()).unwrap();
    assert!(quads_of(&db) == expected(&[(&data, RdfFormat::NQuads)], None));
}

#[test]
fn a_filled_database_takes_more_either_way() {
    let all = sample(6000);
    let cut = all.iter().enumerate().filter(|(_, b)| **b == b'\n').nth(3000).unwrap().0 + 1;
    let (first, second) = all.split_at(cut);
    let want = expected(&[(first, RdfFormat::NQuads), (second, RdfFormat::NQuads)], None);
    let dir = tempfile::tempdir().unwrap();
    let ways =
        [(Fill::Insert, LoadSizes::default()), (Fill::Merge, LoadSizes::default()), (Fill::Merge, hostile())];
    for (fill, sizes) in ways {
        let db = dir.path().join(format!("{fill:?}-{:?}", sizes.chunk_bytes));
        load_text(&db, first, &nquads()).unwrap();
        let options = LoadOptions { fill: Some(fill), sizes, ..nquads() };
        let report = load_text(&db, second, &options).unwrap();
        assert_eq!(report.quads, want.len() as u64, "{fill:?}");
        assert_eq!(report.triples, second.iter().filter(|&&b| b == b'\n').count() as u64 - comments(second));
        assert!(!db.join("load.tmp").exists());
        let database = GraphDatabase::open(&db, &config()).unwrap();
        let report = database.check(&mut |_| {}).unwrap();
        assert!(report.is_sound(), "{fill:?} {sizes:?}: {:?}", report.problems);
        let mut nq = Vec::new();
        database.dump(DumpFormat::NQuads, &mut nq).unwrap();
        let got = expected(&[(&nq, RdfFormat::NQuads)], None);
        let (got, want) = (without_blanks(&got), without_blanks(&want));
        let differ: Vec<_> =
            got.symmetric_difference(&want).take(3).map(|quad| (quad, got.contains(quad))).collect();
        assert!(differ.is_empty(), "{fill:?}: {differ:?}");
        drop(database);
        // A second load, by the other way, adds nothing.
        load_text(&db, first, &LoadOptions { fill: Some(Fill::Merge), ..nquads() }).unwrap();
        let database = GraphDatabase::open(&db, &config()).unwrap();
        assert!(database.check(&mut |_| {}).unwrap().is_sound());
    }
}

/// The quads that mention no blank node.
fn without_blanks(quads: &Quads) -> Quads {
    quads.iter().filter(|quad| !quad.iter().any(|term| term.starts_with("_:"))).cloned().collect()
}

#[test]
fn cancelled_loads_leave_a_filled_database_as_it_was() {
    let (first, second) = (sample(1000), sample(3000));
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("db");
    load_text(&db, &first, &nquads()).unwrap();
    let before = quads_of(&db);
    for (fill, phase) in [
        (Fill::Merge, "read"),
        (Fill::Merge, "terms"),
        (Fill::Merge, "posg"),
        (Fill::Merge, "commit"),
        (Fill::Insert, "read"),
        (Fill::Insert, "commit"),
    ] {
        let cancel = AtomicBool::new(false);
        let options = LoadOptions { fill: Some(fill), sizes: hostile(), ..nquads() };
        let result = load(&db, vec![text(&second, "input")], &options, &StopAt(phase, &cancel), &cancel);
        assert!(matches!(result, Err(LoadError::Cancelled)), "{fill:?} {phase}: {result:?}");
        assert!(quads_of(&db) == before, "{fill:?} {phase}");
        assert!(!db.join("load.tmp").exists());
    }
    let broken = [&second[..2000], b"\n<broken".as_slice()].concat();
    for fill in [Fill::Merge, Fill::Insert] {
        let options = LoadOptions { fill: Some(fill), ..nquads() };
        assert!(matches!(load_text(&db, &broken, &options), Err(LoadError::Syntax { .. })));
        assert!(quads_of(&db) == before, "{fill:?}");
    }
}

#[test]
fn what_a_killed_load_left_is_cleared() {
    let data = sample(300);
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("db");
    drop(Store::create(&db, &[], config()).unwrap());
    fs::create_dir(db.join("load.tmp")).unwrap();
    fs::write(db.join("load.tmp/psog"), b"rows").unwrap();
    fs::OpenOptions::new().append(true).open(db.join("stripe-0")).unwrap().write_all(&[7; 100_000]).unwrap();
    load_text(&db, &data, &nquads()).unwrap();
    let fresh = dir.path().join("fresh");
    load_text(&fresh, &data, &nquads()).unwrap();
    assert!(bytes_of(&db) == bytes_of(&fresh));
}

#[test]
fn refusals_say_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let missing = Source::File(dir.path().join("missing.nt"));
    let fresh = dir.path().join("fresh");
    let error = load(&fresh, vec![missing], &options(), &(), &AtomicBool::new(false)).unwrap_err();
    assert!(error.to_string().contains("missing.nt"), "{error}");
    assert!(!fresh.exists(), "nothing is made for a load that cannot begin");
    let options = LoadOptions { graph: Some("no iri".to_owned()), ..options() };
    let error = load_text(&fresh, b"", &options).unwrap_err();
    assert!(matches!(error, LoadError::Option { option: LoadOption::Graph, .. }), "{error}");
}

#[test]
fn nothing_is_a_graph_too() {
    let dir = tempfile::tempdir().unwrap();
    for (name, content) in [("empty", &b""[..]), ("comments", b"# nothing\n\n")] {
        let db = dir.path().join(name);
        let report = load_text(&db, content, &options()).unwrap();
        assert_eq!((report.triples, report.quads), (0, 0));
        assert!(quads_of(&db).is_empty());
    }
}

fn shared(path: &str) -> Option<PathBuf> {
    let root = std::env::var_os("SNOWMELT_SHARED")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"), PathBuf::from);
    let found = root.join(path);
    if found.exists() {
        return Some(found);
    }
    eprintln!("skipped: {} is not there", found.display());
    None
}

/// A benchmark data set, under default and hostile sizes: its dump equals the input, and every page
/// is sound.
#[test]
fn bsbm_comes_back() {
    let Some(file) = shared("bsbm/pc1000.nt.zst") else { return };
    let text = zstd::decode_all(fs::File::open(&file).unwrap()).unwrap();
    let text = String::from_utf8(text).unwrap().replace("^^<http://www.w3.org/2001/XMLSchema#string>", "");
    let mut want: Vec<&str> = text.lines().collect();
    want.sort_unstable();
    let dir = tempfile::tempdir().unwrap();
    let spilled = LoadSizes {
        table_bytes: Some(300 << 10),
        run_bytes: Some(1 << 20),
        part_terms: Some(20_000),
        ..LoadSizes::default()
    };
    let mut bytes = Vec::new();
    for (name, sizes) in [("default", LoadSizes::default()), ("spilled", spilled)] {
        let db = dir.path().join(name);
        let options = LoadOptions { sizes, ..options() };
        let report =
            load(&db, vec![Source::File(file.clone())], &options, &(), &AtomicBool::new(false)).unwrap();
        assert_eq!((report.triples, report.quads), (374_911, 374_911));
        assert_eq!(report.temporary_bytes > 0, name == "spilled");
        bytes.push(bytes_of(&db));
        let database = GraphDatabase::open(&db, &config()).unwrap();
        let checked = database.check(&mut |_| {}).unwrap();
        assert!(checked.is_sound(), "{:?}", checked.problems);
        let mut dump = Vec::new();
        database.dump(DumpFormat::NTriples, &mut dump).unwrap();
        let dump = String::from_utf8(dump).unwrap();
        let mut got: Vec<&str> = dump.lines().collect();
        got.sort_unstable();
        assert!(got == want);
    }
    assert!(bytes[0] == bytes[1]);
}

/// In every format, an error names the line and the column.
#[test]
fn places_of_errors() {
    let rdf = "<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\" xmlns:a=\"http://a/\">";
    let unclosed = format!("{rdf}\n <rdf:Description>\n  <a:p>é</a:q>\n");
    let forbidden = format!(
        "<?xml version=\"1.0\"?>\n{rdf}\n <rdf:Description rdf:about=\"http://a/s\"/> <rdf:li/>\n</rdf:RDF>"
    );
    let cases = [
        ("unclosed.rdf", unclosed.as_str(), 3, 9),
        ("forbidden.rdf", &forbidden, 3, 44),
        ("bad.ttl", "@prefix a: <http://a/> .\na:s a:p a:o\na:s a:p a:o .", 3, 1),
        ("bad.nt", "<http://a/s> <http://a/p> <http://a/o> .\n<http://a/s> p .\n", 2, 14),
        ("bad.jsonld", "{\"@id\": \"http://a/s\",\n \"http://a/p\": }", 2, 16),
    ];
    let dir = tempfile::tempdir().unwrap();
    for (name, text, at_line, at_column) in cases {
        let file = dir.path().join(name);
        fs::write(&file, text).unwrap();
        let result =
            load(&dir.path().join("db"), vec![Source::File(file)], &options(), &(), &AtomicBool::new(false));
        let Err(LoadError::Syntax { line, column, message, .. }) = result else {
            panic!("{name}: {result:?}")
        };
        assert_eq!((line, column), (at_line, at_column), "{name}: {message}");
    }
}

/// The W3C Turtle tests: the good files, loaded together, give the quads that oxrdfio reads; each
/// bad one is refused.
#[test]
fn w3c_turtle() {
    let Some(folder) = shared("w3c/rdf/rdf11/rdf-turtle") else { return };
    const BASE: &str = "https://w3c.github.io/rdf-tests/rdf/rdf11/rdf-turtle/";
    let options = LoadOptions { base: Some(BASE.to_owned()), ..options() };
    let dir = tempfile::tempdir().unwrap();
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|f| f.unwrap().path()).collect();
    files.sort();
    let (mut good, mut contents, mut bad) = (Vec::new(), Vec::new(), 0);
    for file in files {
        let name = file.file_name().unwrap().to_str().unwrap().to_owned();
        let format = match name.rsplit_once('.') {
            Some((stem, "ttl")) if stem != "manifest" => RdfFormat::Turtle,
            Some((_, "nt")) => RdfFormat::NTriples,
            _ => continue,
        };
        let content = fs::read(&file).unwrap();
        let mut parser = RdfParser::from_format(format).with_base_iri(BASE).unwrap().for_slice(&content);
        if parser.all(|quad| quad.is_ok()) {
            assert!(!name.contains("-bad-"), "{name}");
            good.push(Source::File(file));
            contents.push((content, format));
        } else {
            bad += 1;
            let db = dir.path().join("bad");
            let result = load(&db, vec![Source::File(file)], &options, &(), &AtomicBool::new(false));
            assert!(matches!(result, Err(LoadError::Syntax { .. })), "{name}: {result:?}");
        }
    }
    eprintln!("{} good files, {bad} bad ones", good.len());
    assert!(good.len() > 200 && bad > 60, "{} {bad}", good.len());
    let db = dir.path().join("good");
    load(&db, good, &options, &(), &AtomicBool::new(false)).unwrap();
    let contents: Vec<(&[u8], RdfFormat)> = contents.iter().map(|(c, f)| (&c[..], *f)).collect();
    assert_eq!(quads_of(&db), expected(&contents, Some(BASE)));
}
