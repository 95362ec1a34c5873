//! The data set of a comparison: a file of N-Triples, and the same cut in parts for engines that
//! load several files at once; or a folder of tables.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use snowmelt_bsbm::{Config, Generator, WordLists};

use crate::scale::room;

/// Bytes of a triple as N-Triples, about, and most that an engine stores while it loads one.
const TEXT_BYTES: u64 = 260;
const STORED_BYTES: u64 = 450;
/// Bytes of an engine with an empty database, logs and indexes begun.
const ENGINE_BYTES: u64 = 256 << 20;
/// Triples of the benchmark's data set for each product, about.
pub const TRIPLES_PER_PRODUCT: u64 = 360;
/// Bytes of TPC-H's tables at scale 1: as CSV, and most that an engine stores while it loads them
/// and makes their indexes.
const TABLES_BYTES: f64 = 1.1e9;
const TABLES_STORED_BYTES: f64 = 4e9;

/// A data set.
#[derive(Clone, Debug)]
pub struct DataSet {
    /// The file or folder.
    pub file: PathBuf,
    /// Its triples, duplicates counted once each time, or rows.
    pub items: u64,
    /// Its bytes.
    pub bytes: u64,
}

/// Bytes of the benchmark's data set of `products` products as N-Triples, about.
pub fn text_bytes(products: u32) -> u64 {
    u64::from(products) * TRIPLES_PER_PRODUCT * TEXT_BYTES
}

/// Bytes that a data set and its databases need.
pub fn bytes_needed(triples: u64, engines: usize, is_generated: bool) -> u64 {
    let copies = if is_generated { 2 } else { 1 };
    copies * triples * TEXT_BYTES + engines as u64 * (ENGINE_BYTES + triples * STORED_BYTES)
}

impl DataSet {
    /// Generates the benchmark's data in a folder, which has room for it and for `engines` engines.
    ///
    /// # Errors
    /// There is no room, or it cannot be written.
    pub fn generate(folder: &Path, products: u32, words: Option<&Path>, engines: usize) -> Result<Self> {
        room::check(folder, bytes_needed(u64::from(products) * TRIPLES_PER_PRODUCT, engines, true))?;
        let words = words.map_or_else(|| Ok(WordLists::synthetic()), WordLists::from_dir)?;
        let generator = Generator::new(Config { products, words, update_transactions: None })?;
        let file = folder.join("data.nt");
        let mut out = File::create(&file).with_context(|| format!("cannot create {}", file.display()))?;
        let summary = generator.write(&mut out, None, |_| {})?;
        Ok(Self { file, items: summary.data.triples, bytes: summary.data.bytes })
    }

    /// Generates TPC-H's tables in a folder of their own in `folder`, which has room for them and
    /// for `engines` engines.
    ///
    /// # Errors
    /// There is no room, or they cannot be written.
    pub fn tables(folder: &Path, scale: f64, engines: usize) -> Result<Self> {
        let stored = engines as f64 * TABLES_STORED_BYTES;
        room::check(folder, ((TABLES_BYTES + stored) * scale) as u64 + engines as u64 * ENGINE_BYTES)?;
        let file = folder.join("tables");
        let (items, bytes) = snowmelt_tpch::write_scripts(&file, scale)?;
        Ok(Self { file, items, bytes })
    }

    /// A file that is there; its lines that hold triples are counted. There is room beside it
    /// for `engines` engines in `folder`.
    ///
    /// # Errors
    /// It cannot be read, is empty, or there is no room.
    pub fn given(file: &Path, folder: &Path, engines: usize) -> Result<Self> {
        let named = || format!("cannot read {}", file.display());
        let bytes = fs::metadata(file).with_context(named)?.len();
        let mut lines = BufReader::with_capacity(1 << 20, File::open(file).with_context(named)?);
        let (mut triples, mut line) = (0, Vec::new());
        while lines.read_until(b'\n', &mut line).with_context(named)? > 0 {
            triples += u64::from(matches!(line.trim_ascii_start().first(), Some(b'<' | b'_')));
            line.clear();
        }
        if triples == 0 {
            bail!("{} has no triples: a file of N-Triples is wanted", file.display());
        }
        room::check(folder, bytes_needed(triples, engines, false))?;
        let file = fs::canonicalize(file).with_context(named)?;
        Ok(Self { file, items: triples, bytes })
    }

    /// Cuts it into `parts` files in a folder: stretches of whole lines in turn, about equal.
    ///
    /// # Errors
    /// A file cannot be read or written.
    pub fn cut(&self, folder: &Path, parts: usize) -> Result<()> {
        const STRETCH: usize = 1 << 20;
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let create = |i| {
            let path = folder.join(format!("part-{i}.nt"));
            File::create(&path)
                .map(BufWriter::new)
                .with_context(|| format!("cannot create {}", path.display()))
        };
        let mut outs = (0..parts.max(1)).map(create).collect::<Result<Vec<_>>>()?;
        let mut lines = BufReader::with_capacity(STRETCH, File::open(&self.file)?);
        let mut stretch = Vec::with_capacity(2 * STRETCH);
        for i in (0..outs.len()).cycle() {
            while stretch.len() < STRETCH && lines.read_until(b'\n', &mut stretch)? > 0 {}
            if stretch.is_empty() {
                break;
            }
            outs[i].write_all(&stretch)?;
            stretch.clear();
        }
        Ok(outs.iter_mut().try_for_each(BufWriter::flush)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_all_lines_once() {
        let dir = tempfile::tempdir().unwrap();
        let data = DataSet::generate(dir.path(), 30, None, 0).unwrap();
        let given = DataSet::given(&data.file, dir.path(), 0).unwrap();
        assert_eq!((given.items, given.bytes), (data.items, data.bytes));
        let parts = dir.path().join("parts");
        data.cut(&parts, 3).unwrap();
        let lines = |path: &Path| -> Vec<String> {
            fs::read_to_string(path).unwrap().lines().map(String::from).collect()
        };
        let sizes: Vec<_> = (0..3).map(|i| lines(&parts.join(format!("part-{i}.nt"))).len()).collect();
        assert!(sizes.iter().all(|size| *size > 0), "{sizes:?}");
        let mut all: Vec<_> = (0..3).flat_map(|i| lines(&parts.join(format!("part-{i}.nt")))).collect();
        let mut whole = lines(&data.file);
        all.sort();
        whole.sort();
        assert_eq!(all, whole);
    }

    #[test]
    fn room_is_asked_for_before_anything_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let error = DataSet::generate(dir.path(), 10_000_000, None, 60).unwrap_err().to_string();
        assert!(error.contains("GiB free") && error.contains("--dir"), "{error}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        let empty = dir.path().join("empty.nt");
        fs::write(&empty, "# nothing\n").unwrap();
        assert!(DataSet::given(&empty, dir.path(), 1).unwrap_err().to_string().contains("no triples"));
    }
}
