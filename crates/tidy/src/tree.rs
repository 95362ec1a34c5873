//! The crates of the workspace and the modules of their sources.

use crate::lexer::{Lexed, lex};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// A crate.
#[derive(Debug)]
pub struct Crate {
    /// Its folder's name; `snowmelt` for the one in the root.
    pub name: String,
    /// The files of `src` that products are made of, by path; none of tests alone.
    pub files: Vec<SourceFile>,
}

/// A file of a crate's `src`.
#[derive(Debug)]
pub struct SourceFile {
    /// From the root of the workspace.
    pub path: String,
    /// Names from the crate's root: `["journal", "record"]`; none for `lib.rs` and `main.rs`.
    pub module: Vec<String>,
    /// Its source text.
    pub text: String,
    /// Without what is compiled for tests only.
    pub lexed: Lexed,
}

/// The root of this workspace.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Reads the crates of a workspace.
///
/// # Errors
/// A file or folder cannot be read.
pub fn crates(root: &Path) -> io::Result<Vec<Crate>> {
    let mut all = vec![read_crate(root, "snowmelt".into(), "src")?];
    let mut names: Vec<_> = fs::read_dir(root.join("crates"))?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<io::Result<_>>()?;
    names.sort();
    for name in names {
        let src = format!("crates/{name}/src");
        all.push(read_crate(root, name, &src)?);
    }
    Ok(all)
}

/// All files with an ending below a folder, by path from `root`; none of builds and of stored
/// databases.
///
/// # Errors
/// A folder cannot be read.
pub fn files(root: &Path, folder: &str, ending: &str) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::from(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root.join(&folder))? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = folder.join(&name);
            if entry.file_type()?.is_dir() {
                if name != "target" && name != "node_modules" && !name.starts_with('.') {
                    folders.push(path);
                }
            } else if name.ends_with(ending) {
                found.push(path.to_string_lossy().into_owned());
            }
        }
    }
    found.sort();
    Ok(found)
}

fn read_crate(root: &Path, name: String, src: &str) -> io::Result<Crate> {
    let mut files_of = Vec::new();
    for path in files(root, src, ".rs")? {
        let text = fs::read_to_string(root.join(&path))?;
        let mut lexed = lex(&text);
        let blanked = blank_tests(&mut lexed.code);
        lexed.texts.retain(|(at, _)| !blanked.iter().any(|test| test.contains(at)));
        let module = module_of(path.strip_prefix(src).unwrap_or(&path));
        files_of.push(SourceFile { path, module, text, lexed });
    }
    let tests: Vec<Vec<String>> = files_of.iter().flat_map(test_modules).collect();
    files_of.retain(|file| {
        let by_name = file.module.last().is_some_and(|m| m == "tests" || m.ends_with("_tests"));
        !by_name && !tests.iter().any(|test| file.module.starts_with(test))
    });
    Ok(Crate { name, files: files_of })
}

/// The module of a path below `src`.
fn module_of(path: &str) -> Vec<String> {
    let path = path.trim_start_matches('/').trim_end_matches(".rs");
    let mut module: Vec<String> = path.split('/').map(str::to_owned).collect();
    if module.last().is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str())) {
        module.pop();
    }
    module
}

/// Modules that a file declares for tests only.
fn test_modules(file: &SourceFile) -> Vec<Vec<String>> {
    let declared = file.text.split("#[cfg(test)]").skip(1).filter_map(|rest| {
        let line = rest.trim_start().lines().find(|line| !line.trim_start().starts_with('#'))?;
        let line = line.trim().strip_suffix(';')?;
        line.rsplit_once("mod ").map(|(_, name)| name.to_owned())
    });
    declared.map(|name| [&file.module[..], &[name]].concat()).collect()
}

/// Blanks what follows `#[cfg(test)]`: an item up to its `;` or the end of its braces. Returns
/// the places that it blanked.
fn blank_tests(code: &mut String) -> Vec<Range<usize>> {
    let mut bytes = std::mem::take(code).into_bytes();
    let mark = b"#[cfg(test)]";
    let (mut from, mut blanked) = (0, Vec::new());
    while let Some(found) = bytes[from..].windows(mark.len()).position(|w| w == mark) {
        let begin = from + found;
        let mut depth = 0;
        let mut end = begin + mark.len();
        while end < bytes.len() {
            match bytes[end] {
                b'{' => depth += 1,
                b'}' => depth -= 1,
                _ => {}
            }
            let over = depth == 0 && matches!(bytes[end], b';' | b'}');
            end += 1;
            if over {
                break;
            }
        }
        bytes[begin..end].iter_mut().filter(|b| **b != b'\n').for_each(|b| *b = b' ');
        blanked.push(begin..end);
        from = end;
    }
    *code = String::from_utf8_lossy(&bytes).into_owned();
    blanked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_named_by_their_paths() {
        assert_eq!(module_of("lib.rs"), [""; 0]);
        assert_eq!(module_of("journal/mod.rs"), ["journal"]);
        assert_eq!(module_of("journal/record.rs"), ["journal", "record"]);
    }

    #[test]
    fn tests_are_left_out() {
        let mut code = "fn a() {}\n#[cfg(test)]\nmod tests { fn b() { } }\nfn c() {}".to_owned();
        let blanked = blank_tests(&mut code);
        assert_eq!((blanked.len(), &blanked[0]), (1, &(10..47)));
        assert_eq!(code.split_whitespace().collect::<Vec<_>>().join(" "), "fn a() {} fn c() {}");
    }
}
