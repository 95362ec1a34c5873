//! Bulk load: files (or generated data) into a directory, with progress, then counts and sizes.
//!
//!     cargo run --release --example bulk -- DATABASE FILE...
//!     cargo run --release --example bulk            # a million made-up triples

use std::error::Error;
use std::io::{self, Read, Write};

use snowmelt::{Database, Format};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let temporary = tempfile::tempdir()?;
    let path = args.next().map_or_else(|| temporary.path().join("bulk.db"), Into::into);
    let db = Database::options().open_or_create(path)?;
    let show = |at: snowmelt::LoadProgress| {
        let _ = write!(io::stderr(), "\r{:<10} {:>12} statements", at.phase, at.statements);
    };
    let mut loader = db.loader().progress(show);
    let files: Vec<String> = args.collect();
    if files.is_empty() {
        loader = loader.reader("made up", Made::default()).format(Format::NTriples);
    }
    for file in files {
        loader = loader.file(file);
    }
    let loaded = loader.run()?;
    let stats = db.stats()?;
    println!(
        "\n{} statements in {:.1} s, {} quads in the database",
        loaded.statements, loaded.seconds, loaded.quads
    );
    println!("{} subjects, {} predicates, {} objects", stats.subjects, stats.predicates, stats.objects);
    for tree in stats.trees.iter().filter(|tree| tree.rows > 0) {
        println!("{:<14} {:>10} rows {:>12} bytes", tree.name, tree.rows, tree.bytes);
    }
    Ok(())
}

/// N-Triples, made as they are read.
#[derive(Default)]
struct Made {
    made: u32,
    rest: Vec<u8>,
}

impl Read for Made {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        while self.rest.len() < buf.len() && self.made < 1_000_000 {
            let n = self.made;
            writeln!(self.rest, "<urn:thing:{}> <urn:p{}> \"value {}\" .", n / 5, n % 5, n % 1000)?;
            self.made += 1;
        }
        let len = self.rest.len().min(buf.len());
        buf[..len].copy_from_slice(&self.rest[..len]);
        self.rest.drain(..len);
        Ok(len)
    }
}
