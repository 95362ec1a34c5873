//! The manifest of a set of backups: its parts, in order, with checksums. Lines of text:
//!
//! ```text
//! snowmelt-set 1
//! set SET
//! database IDENTITY
//! part NUMBER KIND NAME BYTES SEAL LINEAGE TXN UNIX_S PAGES
//! end CHECKSUM
//! ```
//!
//! The numbers in capitals that name something (`SET`, `IDENTITY`, `SEAL`, `LINEAGE`, `CHECKSUM`)
//! are 16 hexadecimal digits. A seal is the checksum of a part: of the head of a file of changes,
//! which has that of the rest; of what the super-block of a whole copy says. The checksum at the
//! end is of all lines before it.
//!
//! It is written when a part is durable, under another name, synced, and given its name: from
//! then on the part counts. Then a second one is written in the same way, which is read where the
//! first is damaged or missing, or is an older one of the same set.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use twox_hash::XxHash3_64;

use crate::error::{Result, StoreError};
use crate::format::lineage::StateName;
use crate::settings::opener::Directory;
use crate::superblock::SuperBlock;
use crate::whole::changes::unusable;
use rustix::fs::OFlags;

/// Name of the file.
pub(crate) const FILE_NAME: &str = "manifest";
/// Name of the second one.
const COPY_NAME: &str = "manifest.copy";
/// Its name while it is written.
const NEW_NAME: &str = "manifest.new";
const FORM: &str = "snowmelt-set 1";

/// The kind of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartKind {
    /// A database, with all pages.
    Whole,
    /// The pages that changed since the part before.
    Changes,
}

impl PartKind {
    fn word(self) -> &'static str {
        match self {
            PartKind::Whole => "whole",
            PartKind::Changes => "changes",
        }
    }
}

/// A part of a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ManifestPart {
    pub kind: PartKind,
    pub name: String,
    /// Of the file of changes; 0 of a whole copy.
    pub bytes: u64,
    pub seal: u64,
    pub state: StateName,
    /// When it was made, in seconds since 1970.
    pub unix_s: u64,
    /// Pages in it, of changes.
    pub pages: u64,
}

/// A backup of a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupPart {
    /// Its name in the directory.
    pub name: String,
    /// Its kind.
    pub kind: PartKind,
    /// Its state is as of this transaction.
    pub txn: u64,
    /// When it was made, in seconds since 1970.
    pub unix_s: u64,
    /// Pages in it, of changes.
    pub pages: u64,
}

/// See the head of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Manifest {
    /// Random number of the set.
    pub set: u64,
    /// Of the database.
    pub identity: u64,
    /// The oldest first.
    pub entries: Vec<ManifestPart>,
}

impl BackupPart {
    pub(crate) fn from_entry(entry: &ManifestPart) -> BackupPart {
        let ManifestPart { name, kind, state, unix_s, pages, .. } = entry;
        BackupPart { name: name.clone(), kind: *kind, txn: state.txn, unix_s: *unix_s, pages: *pages }
    }

    /// Whether it is a copy of all pages.
    pub fn is_whole(&self) -> bool {
        self.kind == PartKind::Whole
    }
}

/// The name of part `number`, counted from 1.
pub(crate) fn part_name(number: usize, kind: PartKind) -> String {
    format!("{number:04}-{}", kind.word())
}

/// True of the name of a part, whichever.
pub(crate) fn is_part_name(name: &str) -> bool {
    [PartKind::Whole, PartKind::Changes].into_iter().any(|kind| {
        let number = name.strip_suffix(kind.word()).and_then(|rest| rest.strip_suffix('-'));
        number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    })
}

/// Tells a whole copy from all other databases, and from itself after a change.
pub(crate) fn seal_of(block: &SuperBlock) -> u64 {
    let meta = block.meta.map_or(0, |run| run.checksum);
    let words = [block.identity, block.txn, block.extents, meta];
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    XxHash3_64::oneshot(&bytes)
}

impl Manifest {
    fn text(&self) -> String {
        let mut text = format!("{FORM}\nset {:016x}\ndatabase {:016x}\n", self.set, self.identity);
        for (i, e) in self.entries.iter().enumerate() {
            let (number, kind, name) = (i + 1, e.kind.word(), &e.name);
            let _ = writeln!(
                text,
                "part {number} {kind} {name} {} {:016x} {:016x} {} {} {}",
                e.bytes, e.seal, e.state.lineage, e.state.txn, e.unix_s, e.pages
            );
        }
        let checksum = XxHash3_64::oneshot(text.as_bytes());
        let _ = writeln!(text, "end {checksum:016x}");
        text
    }

    fn of_text(text: &str) -> std::result::Result<Manifest, &'static str> {
        let damaged = "it is damaged";
        let (body, end) = text.strip_suffix('\n').and_then(|t| t.rsplit_once('\n')).ok_or(damaged)?;
        let body = format!("{body}\n");
        let checksum = end.strip_prefix("end ").and_then(hex).ok_or(damaged)?;
        if checksum != XxHash3_64::oneshot(body.as_bytes()) {
            return Err(damaged);
        }
        let mut lines = body.lines();
        if lines.next() != Some(FORM) {
            return Err("a newer program wrote it");
        }
        let mut named = |name: &str| lines.next()?.strip_prefix(name).and_then(hex);
        let (set, identity) = named("set ").zip(named("database ")).ok_or(damaged)?;
        let entries = lines.enumerate().map(|(i, line)| entry(i + 1, line).ok_or(damaged));
        Ok(Manifest { set, identity, entries: entries.collect::<std::result::Result<_, _>>()? })
    }

    /// Reads that of a set; `None`: it has none.
    pub fn read(dir: &Path) -> Result<Option<Manifest>> {
        let first = Manifest::read_one(&dir.join(FILE_NAME));
        let second = Manifest::read_one(&dir.join(COPY_NAME));
        let Ok(Some(second)) = second else { return first };
        let why = match &first {
            Ok(Some(first)) if !second.grew_from(first) => return Ok(Some(first.clone())),
            Ok(Some(_)) => "it is an older one".to_owned(),
            Ok(None) => "it is missing".to_owned(),
            Err(e) => e.to_string(),
        };
        snowmelt_io::notice(&format!("{}: {why}; {COPY_NAME} is read", dir.join(FILE_NAME).display()));
        Ok(Some(second))
    }

    /// Whether it is the other one with more parts.
    fn grew_from(&self, other: &Manifest) -> bool {
        (self.set, self.identity) == (other.set, other.identity)
            && self.entries.len() > other.entries.len()
            && self.entries.starts_with(&other.entries)
    }

    fn read_one(path: &Path) -> Result<Option<Manifest>> {
        let bytes = match std::fs::read(path) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(StoreError::file(path, "read the manifest")(e)),
        };
        let advice = "put it back from a copy of the set, or restore the whole copy, which is a database";
        let text = std::str::from_utf8(&bytes).map_err(|_| "it is damaged");
        let read = text.and_then(Manifest::of_text);
        read.map(Some).map_err(|why| unusable(path, format!("{why}: {advice}")))
    }

    /// Makes it that of the set, durably. The second one follows: where that cannot be written, the
    /// part is there all the same.
    pub fn write(&self, dir: &Directory) -> Result<()> {
        let written = self.write_one(dir, FILE_NAME);
        written.map_err(StoreError::file(&dir.join(FILE_NAME), "write the manifest"))?;
        if let Err(e) = self.write_one(dir, COPY_NAME) {
            snowmelt_io::notice(&format!("{}: cannot be written: {e}", dir.join(COPY_NAME).display()));
        }
        Ok(())
    }

    /// Writes what a cut, or damage, has left of the two other than this.
    pub fn complete(&self, dir: &Directory) -> Result<()> {
        let path = dir.join(FILE_NAME);
        let clean = || {
            dir.folder()?.remove(Path::new(NEW_NAME))?;
            for name in [FILE_NAME, COPY_NAME] {
                let found = Manifest::read_one(&dir.join(name));
                if !self.entries.is_empty() && !matches!(found, Ok(Some(found)) if found == *self) {
                    self.write_one(dir, name)?;
                }
            }
            Ok(())
        };
        clean().map_err(StoreError::file(&path, "write the manifest"))
    }

    fn write_one(&self, dir: &Directory, name: &str) -> std::io::Result<()> {
        let folder = dir.folder()?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC;
        let mut file = folder.open_file(Path::new(NEW_NAME), flags)?;
        file.write_all(self.text().as_bytes())?;
        file.sync_all()?;
        folder.rename(Path::new(NEW_NAME), Path::new(name))?;
        folder.sync()
    }
}

fn hex(text: &str) -> Option<u64> {
    let is_hex = text.len() == 16 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    u64::from_str_radix(text, 16).ok().filter(|_| is_hex)
}

fn entry(number: usize, line: &str) -> Option<ManifestPart> {
    let mut words = line.split(' ');
    (words.next()? == "part" && words.next()?.parse() == Ok(number)).then_some(())?;
    let kind = match words.next()? {
        "whole" => PartKind::Whole,
        "changes" => PartKind::Changes,
        _ => return None,
    };
    let name = words.next().filter(|name| *name == part_name(number, kind))?.to_owned();
    let bytes = words.next()?.parse().ok()?;
    let (seal, lineage) = (hex(words.next()?)?, hex(words.next()?)?);
    let mut numbers = words.map(|word| word.parse::<u64>().ok());
    let (txn, unix_s, pages) = (numbers.next()??, numbers.next()??, numbers.next()??);
    let is_whole = (kind == PartKind::Whole) == (number == 1);
    let state = StateName { lineage, txn };
    (numbers.next().is_none() && is_whole).then_some(ManifestPart {
        kind,
        name,
        bytes,
        seal,
        state,
        unix_s,
        pages,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        let entry = |number, kind| ManifestPart {
            kind,
            name: part_name(number, kind),
            bytes: 8192 * number as u64,
            seal: 0xAB00 + number as u64,
            state: StateName { lineage: u64::MAX - 5, txn: 10 * number as u64 },
            unix_s: 1_764_028_800,
            pages: 3,
        };
        let entries =
            vec![entry(1, PartKind::Whole), entry(2, PartKind::Changes), entry(3, PartKind::Changes)];
        Manifest { set: 7, identity: 9, entries }
    }

    #[test]
    fn it_round_trips_and_any_other_byte_is_damage() {
        let text = manifest().text();
        assert_eq!(Manifest::of_text(&text), Ok(manifest()));
        for at in 0..text.len() {
            for bit in [1, 2, 16] {
                let mut bytes = text.clone().into_bytes();
                bytes[at] ^= bit;
                let changed =
                    std::str::from_utf8(&bytes).map_or(true, |text| Manifest::of_text(text).is_err());
                assert!(changed, "byte {at}");
            }
            assert!(Manifest::of_text(&text[..at]).is_err(), "cut at {at}");
        }
    }

    /// A file system may lose a rename, and one file may be put back.
    #[test]
    fn of_two_manifests_of_a_set_the_longer_one_counts() {
        let dir = tempfile::tempdir().unwrap();
        let whole = manifest();
        let of = |parts: usize| Manifest { entries: whole.entries[..parts].to_vec(), ..whole.clone() };
        let read = |first: &Manifest, second: &Manifest| {
            std::fs::write(dir.path().join(FILE_NAME), first.text()).unwrap();
            std::fs::write(dir.path().join(COPY_NAME), second.text()).unwrap();
            Manifest::read(dir.path()).unwrap().unwrap()
        };
        for (first, second) in [(2, 3), (1, 3), (3, 2), (3, 3)] {
            assert_eq!(read(&of(first), &of(second)), whole, "{first} {second}");
        }
        // Those that are none of its past say nothing about it.
        let mut fork = of(3);
        fork.entries[1].seal += 1;
        let other = Manifest { set: 8, ..of(3) };
        for second in [&fork, &other] {
            assert_eq!(read(&of(2), second), of(2));
        }
    }

    #[test]
    fn lines_that_no_program_writes_are_refused_whatever_the_checksum() {
        let seal = |body: &str| format!("{body}end {:016x}\n", XxHash3_64::oneshot(body.as_bytes()));
        let text = manifest().text();
        let body = text.rsplit_once("end ").unwrap().0;
        assert!(Manifest::of_text(&seal(body)).is_ok());
        for (from, to) in [
            ("0002-changes", "../0002-changes"),
            ("part 2", "part 3"),
            ("part 3 changes", "part 3 whole"),
            ("0001-whole", "0001-changes"),
            ("snowmelt-set 1", "snowmelt-set 2"),
            ("set 0", "set x"),
            (" 3\n", " 3 3\n"),
        ] {
            assert!(body.contains(from));
            assert!(Manifest::of_text(&seal(&body.replacen(from, to, 1))).is_err(), "{to}");
        }
    }

    #[test]
    fn names_of_parts_are_told_from_others() {
        for name in ["0001-whole", "0002-changes", "12345-changes"] {
            assert!(is_part_name(name), "{name}");
        }
        for name in ["manifest", "0001-whole.new", "0001-whole.head", "-changes", "x1-changes", "README"] {
            assert!(!is_part_name(name), "{name}");
        }
    }
}
