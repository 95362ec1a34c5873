//! Where reads go: the same query cold, warm, and without read-ahead.
//!
//!     cargo run --release --example watch_reads [DATABASE SPARQL]

use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;

use snowmelt::{Database, Format};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let temporary = tempfile::tempdir()?;
    let path = match args.next() {
        Some(path) => PathBuf::from(path),
        None => made_up(temporary.path().join("made.db"))?,
    };
    let query = args.next().unwrap_or_else(|| {
        "SELECT (COUNT(*) AS ?pairs) { ?a <urn:knows> ?b . ?b <urn:knows> ?c . ?a <urn:age> ?age FILTER(?age < 20) }".into()
    });
    for rules in ["none", "auto"] {
        // An open database begins with an empty pool, and reads past the page cache.
        let db = Database::options().read_ahead(rules)?.open(&path)?;
        for turn in ["cold", "warm"] {
            let begun = Instant::now();
            let mut rows = db.query(&query)?;
            let count = rows.by_ref().try_fold(0, |n, row| row.map(|_| n + 1))?;
            let done = rows.activity();
            let ms = begun.elapsed().as_secs_f64() * 1e3;
            println!(
                "read-ahead {rules}, {turn}: {count} rows in {ms:.1} ms; {} look-ups, {} rows moved over, {} pages read, {} of them ahead",
                done.rnd, done.seq, done.disk, done.spec_disk
            );
        }
        println!("{}", db.meters());
    }
    Ok(())
}

fn made_up(path: PathBuf) -> Result<PathBuf, Box<dyn Error>> {
    use std::fmt::Write;
    let mut text = String::new();
    for n in 0..100_000_u64 {
        let (friend, other) = (n * 7919 % 100_000, n * 104_729 % 100_000);
        writeln!(text, "<urn:{n}> <urn:knows> <urn:{friend}>, <urn:{other}> ; <urn:age> {} .", n * 31 % 90)?;
    }
    let db = Database::create(&path)?;
    db.loader().reader("made up", std::io::Cursor::new(text)).format(Format::Turtle).run()?;
    Ok(path)
}
