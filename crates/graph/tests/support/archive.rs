//! Stored databases: directories of files in one compressed file, for tests that open what an
//! earlier release wrote.
//!
//! The archive is zstd over, for each file: u16 length of its path, the path, u64 length, its
//! bytes. Little endian.

#![allow(dead_code)]

use std::fs;

use std::io;
use std::path::Path;

/// The files under `dir`, packed.
pub fn pack(dir: &Path) -> io::Result<Vec<u8>> {
    let mut paths = Vec::new();
    let mut folders = vec![dir.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() { folders.push(path) } else { paths.push(path) }
        }
    }
    paths.sort();
    let mut raw = Vec::new();
    for path in paths {
        let name = path.strip_prefix(dir).expect("found below").to_str().expect("a plain name");
        let bytes = fs::read(&path)?;
        raw.extend((name.len() as u16).to_le_bytes());
        raw.extend(name.as_bytes());
        raw.extend((bytes.len() as u64).to_le_bytes());
        raw.extend(bytes);
    }
    zstd::encode_all(&raw[..], 19)
}

/// Writes the files of an archive to `dir`.
pub fn unpack(archive: &[u8], dir: &Path) -> io::Result<()> {
    let raw = zstd::decode_all(archive)?;
    let mut rest = &raw[..];
    while !rest.is_empty() {
        let name_len = u16::from_le_bytes(take(&mut rest, 2).try_into().expect("two bytes"));
        let name = std::str::from_utf8(take(&mut rest, name_len.into())).expect("a plain name");
        let len = u64::from_le_bytes(take(&mut rest, 8).try_into().expect("eight bytes"));
        let path = dir.join(name);
        fs::create_dir_all(path.parent().expect("below the directory"))?;
        fs::write(path, take(&mut rest, len as usize))?;
    }
    Ok(())
}

fn take<'a>(rest: &mut &'a [u8], n: usize) -> &'a [u8] {
    let (head, tail) = rest.split_at(n);
    *rest = tail;
    head
}
