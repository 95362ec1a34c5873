//! Figures of the trees: bytes a row, build rate, probe and scan times, string compression.
//! Everything is warm; times are processor time of the one thread.
//!
//!     cargo run --release -p snowmelt-benches --example trees [-- ROWS [FILE.nt]]
//!
//! ROWS (default 10 million) quads are made up after BSBM's shapes; with an N-Triples file its
//! triples are encoded as well (ids by first occurrence, small literals inline) and its terms
//! are compressed. Answers are checked while they are timed.

mod made_up;

use std::collections::HashMap;
use std::sync::Arc;

use made_up::{Cpu, Random, Row, made_up};
use snowmelt_store::{
    Columns, Keys, Matches, Reader, ScanBounds, Store, StoreConfig, StringTree, StringTreeBuilder, TupleTree,
    TupleTreeBuilder,
};

fn main() {
    let mut args = std::env::args().skip(1);
    let rows: usize = args.next().map_or(10_000_000, |a| a.parse().expect("ROWS is a number"));
    let dir = std::env::temp_dir().join(format!("snowmelt-trees-{}", std::process::id()));
    let config = StoreConfig { memory_bytes: 4 << 30, direct: false, ..StoreConfig::default() };
    let store = Store::create(&dir, &[], config).expect("a new store");
    println!("made up after BSBM, {rows} quads");
    indexes(&store, made_up(rows, 88_172_645_463_325_252));
    if let Some(file) = args.next() {
        let text = std::fs::read_to_string(&file).expect("FILE.nt is readable text");
        let (quads, terms) = read_triples(&text);
        println!("{file}, {} quads", quads.len());
        indexes(&store, quads);
        for (name, strings) in terms {
            strings_of(&store, name, &strings);
        }
    }
    drop(store);
    let _ = std::fs::remove_dir_all(&dir);
}

/// The name of a tree, and its strings.
type Strings<'t> = (&'static str, Vec<&'t [u8]>);

/// Quads with ids by first occurrence, and the strings of IRIs, short and long literals.
fn read_triples(text: &str) -> (Vec<Row>, Vec<Strings<'_>>) {
    let (mut iris, mut short, mut long) = (HashMap::new(), HashMap::new(), HashMap::new());
    let (mut iri_list, mut short_list, mut long_list) = (Vec::new(), Vec::new(), Vec::new());
    let mut langs: HashMap<&str, u64> = HashMap::new();
    fn number<'t>(map: &mut HashMap<&'t str, u64>, list: &mut Vec<&'t [u8]>, s: &'t str) -> u64 {
        *map.entry(s).or_insert_with(|| {
            list.push(s.as_bytes());
            list.len() as u64 - 1
        })
    }
    let mut rows = Vec::new();
    for line in text.lines() {
        let Some(line) = line.strip_suffix(" .") else { continue };
        let (s, rest) = line.split_once(' ').expect("a subject");
        let (p, o) = rest.split_once(' ').expect("a predicate");
        let mut iri = |s: &'_ str| -> u64 {
            // The term without its angle brackets, as a part of `text` itself.
            let start = s.as_ptr() as usize - text.as_ptr() as usize;
            1 << 60 | number(&mut iris, &mut iri_list, &text[start + 1..start + s.len() - 1])
        };
        let (s, p) = (iri(s), iri(p));
        let o = if o.starts_with('<') {
            iri(o)
        } else {
            let end = o.rfind('"').expect("a literal");
            let (value, kind) = (&o[1..end], &o[end + 1..]);
            let day = value.get(..10).and_then(|d| d.replace('-', "").parse::<u64>().ok());
            if let (Ok(v), true) = (value.parse::<u64>(), kind.ends_with("integer>")) {
                7 << 60 | 1 << 59 | v
            } else if let (Some(d), true) = (day, kind.ends_with("dateTime>")) {
                13 << 60 | (d * 86_400_000) << 2
            } else if let (Some(d), true) = (day, kind.ends_with("date>")) {
                12 << 60 | d
            } else if let (Ok(v), true) = (value.parse::<f64>(), kind.contains("USD")) {
                8 << 60 | 1 << 52 | ((v * 1e6).round() as u64) << 3 | 2
            } else if value.len() > 64 {
                5 << 60 | number(&mut long, &mut long_list, value)
            } else if kind.is_empty() {
                3 << 60 | number(&mut short, &mut short_list, value)
            } else {
                let n = langs.len() as u64;
                let code = *langs.entry(kind).or_insert(n);
                4 << 60 | code << 44 | number(&mut short, &mut short_list, value)
            }
        };
        rows.push([p, s, o, 1]);
    }
    rows.sort_unstable();
    rows.dedup();
    let local: Vec<&[u8]> =
        iri_list.iter().map(|i| &i[i.iter().rposition(|&b| b == b'/').map_or(0, |p| p + 1)..]).collect();
    (rows, vec![("IRI local names", local), ("short literals", short_list), ("long texts", long_list)])
}

/// The five indexes and their costs.
fn indexes(store: &Arc<Store>, psog: Vec<Row>) {
    let order = |f: &dyn Fn(&Row) -> Row, arity: usize| {
        let mut rows: Vec<Row> = psog.iter().map(f).collect();
        rows.iter_mut().for_each(|r| r[arity..].fill(0));
        rows.sort_unstable();
        rows.dedup();
        rows
    };
    let posg = order(&|r| [r[0], r[2], r[1], r[3]], 4);
    let sp = order(&|r| [r[1], r[0], 0, 0], 2);
    let op = order(&|r| [r[2], r[0], 0, 0], 2);
    let gs = order(&|r| [r[3], r[1], 0, 0], 2);
    let mut total = 0;
    let mut trees = Vec::new();
    for (name, rows, arity) in
        [("psog", &psog, 4), ("posg", &posg, 4), ("sp", &sp, 2), ("op", &op, 2), ("gs", &gs, 2)]
    {
        let (tree, seconds) = build(store, name, rows, arity);
        let bytes = tree.pages() * 8192;
        total += bytes;
        println!(
            "  {name:5} {:9} rows  {:5.2} bytes/row  {:6.1} M rows/s built  height {}",
            rows.len(),
            bytes as f64 / rows.len() as f64,
            rows.len() as f64 / seconds / 1e6,
            tree.height()
        );
        trees.push(tree);
    }
    println!("  all   {:.2} bytes/quad", total as f64 / psog.len() as f64);
    let mut reader = Reader::new(store, store.snapshot());
    for (name, tree, rows) in [("psog", &trees[0], &psog), ("posg", &trees[1], &posg)] {
        scans(&mut reader, name, tree, rows);
        probes(&mut reader, name, tree, rows);
    }
    probes(&mut reader, "sp", &trees[2], &sp);
}

fn build(store: &Arc<Store>, name: &str, rows: &[Row], arity: usize) -> (TupleTree, f64) {
    let columns: Vec<Vec<u64>> = (0..arity).map(|c| rows.iter().map(|r| r[c]).collect()).collect();
    let build = store.begin_build().expect("no other build");
    let mut builder = TupleTreeBuilder::new(build.new_tree(name), arity);
    let started = Cpu::now();
    for from in (0..rows.len()).step_by(4096) {
        let part: Vec<&[u64]> = columns.iter().map(|c| &c[from..rows.len().min(from + 4096)]).collect();
        builder.push_columns(&part).expect("written");
    }
    let tree = builder.finish().expect("written");
    let seconds = started.seconds();
    build.commit().expect("committed");
    (tree, seconds)
}

fn scans(reader: &mut Reader, name: &str, tree: &TupleTree, rows: &[Row]) {
    for (what, wanted) in [("all columns", 15u8), ("columns 1, 2", 6)] {
        let mut best = f64::MAX;
        for _ in 0..3 {
            let started = Cpu::now();
            let mut scan = tree.scan(ScanBounds::default());
            let mut out = Columns::with_wanted(4, wanted);
            let (mut n, mut sum) = (0, 0u64);
            while scan.next(reader, &mut out, 8192).expect("read") {
                n += out.rows;
                sum = sum.wrapping_add(out.cols[2][0]);
                out.clear();
            }
            assert_eq!(n, rows.len());
            std::hint::black_box(sum);
            best = best.min(started.seconds());
        }
        let values = (rows.len() as u32 * wanted.count_ones().min(4)) as f64;
        println!("  {name:5} scan {what:13} {:7.0} M values/s", values / best / 1e6);
    }
}

fn probes(reader: &mut Reader, name: &str, tree: &TupleTree, rows: &[Row]) {
    let mut random = Random(7);
    let m = if tree.arity() == 4 { 2 } else { 1 };
    let pick = |random: &mut Random, n: usize| {
        let mut keys: Vec<Row> = (0..n).map(|_| rows[random.below(rows.len() as u64) as usize]).collect();
        keys.sort_unstable();
        keys
    };
    for (what, batch, m) in [
        ("random, batches of 1000", 1000, m),
        ("random, batches of 64 k", 65_536, m),
        ("random, one by one", 1, m),
        ("random whole rows, 1000", 1000, tree.arity()),
    ] {
        let n = 200_000usize.div_ceil(batch).max(3);
        let batches: Vec<Vec<Row>> = (0..n).map(|_| pick(&mut random, batch)).collect();
        let (ns, found) = time(reader, tree, m, &batches);
        println!("  {name:5} probe {what:24} {ns:6.0} ns/key  {found:5.2} rows/key");
    }
    let n = 65_536.min(rows.len() / 2);
    let mut dense: Vec<Vec<Row>> = Vec::new();
    for _ in 0..8 {
        let from = random.below((rows.len() - n) as u64) as usize;
        let mut keys = rows[from..from + n].to_vec();
        keys.dedup_by(|a, b| a[..m] == b[..m]);
        dense.push(keys);
    }
    let (ns, found) = time(reader, tree, m, &dense);
    println!("  {name:5} probe {:24} {ns:6.0} ns/key  {found:5.2} rows/key", "dense");
    let keys = pick(&mut random, 20_000);
    let started = Cpu::now();
    let counted: u64 = keys.iter().map(|k| tree.count(reader, &k[..m], &k[..m]).expect("read")).sum();
    println!(
        "  {name:5} count {:24} {:6.0} ns/key  {:5.2} rows/key",
        "one by one",
        started.seconds() * 1e9 / keys.len() as f64,
        counted as f64 / keys.len() as f64
    );
}

/// Nanoseconds per key and rows per key of batched lookups; every key must be found.
fn time(reader: &mut Reader, tree: &TupleTree, m: usize, batches: &[Vec<Row>]) -> (f64, f64) {
    let columns: Vec<Vec<Vec<u64>>> =
        batches.iter().map(|b| (0..m).map(|c| b.iter().map(|r| r[c]).collect()).collect()).collect();
    let keys: usize = batches.iter().map(Vec::len).sum();
    let mut out = Matches::new(tree.arity(), m);
    let mut best = (f64::MAX, 0.0);
    for _ in 0..3 {
        let (mut rows, mut distinct) = (0, 0);
        let started = Cpu::now();
        for batch in &columns {
            let cols: Vec<&[u64]> = batch.iter().map(|c| &c[..]).collect();
            let mut lookup = tree.lookup(Keys::new(&cols, None));
            loop {
                out.clear();
                if !lookup.next(reader, &mut out, 65_536).expect("read") {
                    break;
                }
                rows += out.key.len();
                distinct += 1;
            }
        }
        let ns = started.seconds() * 1e9 / keys as f64;
        assert!(rows >= keys && distinct >= batches.len(), "every key is found");
        if ns < best.0 {
            best = (ns, rows as f64 / keys as f64);
        }
    }
    best
}

fn strings_of(store: &Arc<Store>, name: &str, strings: &[&[u8]]) {
    let raw: usize = strings.iter().map(|s| s.len()).sum();
    let sample: Vec<&[u8]> = strings.iter().step_by((strings.len() / 1000).max(1)).copied().collect();
    let build = store.begin_build().expect("no other build");
    let started = Cpu::now();
    let mut builder = StringTreeBuilder::new(build.new_tree(name), &sample).expect("written");
    let trained = started.seconds();
    let started = Cpu::now();
    for s in strings {
        builder.push(s).expect("written");
    }
    let tree: StringTree = builder.finish().expect("written");
    let seconds = started.seconds();
    build.commit().expect("committed");
    let bytes = tree.pages() * 8192;
    println!(
        "  {name:16} {:7} strings of {:5.1} bytes: {:5.2} bytes each, ratio {:4.2}, {:4.0} MB/s built, table trained in {:.0} ms",
        strings.len(),
        raw as f64 / strings.len() as f64,
        bytes as f64 / strings.len() as f64,
        raw as f64 / bytes as f64,
        raw as f64 / seconds / 1e6,
        trained * 1e3
    );
    let mut reader = Reader::new(store, store.snapshot());
    let mut random = Random(5);
    let mut get = |what: &str, batches: &[Vec<u64>]| {
        let mut best = f64::MAX;
        for _ in 0..3 {
            let started = Cpu::now();
            for ids in batches {
                tree.get(&mut reader, ids, |i, s| assert_eq!(s.len(), strings[ids[i] as usize].len()))
                    .expect("read");
            }
            let n: usize = batches.iter().map(Vec::len).sum();
            best = best.min(started.seconds() * 1e9 / n as f64);
        }
        println!("  {name:16} get {what:24} {best:6.0} ns/string");
    };
    let n = strings.len() as u64;
    get("dense", &[(0..n).collect()]);
    let mut batches = |size: usize| -> Vec<Vec<u64>> {
        (0..100_000usize.div_ceil(size))
            .map(|_| {
                let mut ids: Vec<u64> = (0..size).map(|_| random.below(n)).collect();
                ids.sort_unstable();
                ids
            })
            .collect()
    };
    let (thousand, one) = (batches(1000), batches(1));
    get("random, batches of 1000", &thousand);
    get("random, one by one", &one);
}
