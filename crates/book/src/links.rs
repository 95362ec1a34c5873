//! Links of rendered pages that lead nowhere.
//!
//! 1. Of each page: the ids of its elements, and its links (`href`, `src`).
//! 2. A link without a scheme must name a file of the book, and its fragment an id of that page.
//! 3. A link with a scheme is a reader's business: nothing is fetched.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result};

use crate::tags::tags;

/// Anchors and links of a page.
struct Page {
    ids: BTreeSet<String>,
    links: BTreeSet<String>,
}

/// The links of the pages below `book` that lead to no file or to no element, as
/// `page: link (reason)`.
///
/// # Errors
/// Files that cannot be read.
pub fn broken(book: &Path) -> Result<Vec<String>> {
    let mut pages = BTreeMap::new();
    for path in files(book)? {
        if path.extension().is_some_and(|extension| extension == "html") {
            pages.insert(path.clone(), read(&book.join(&path))?);
        }
    }
    let mut broken = Vec::new();
    for (path, page) in &pages {
        // It is shown in place of any page, so that its links are absolute.
        if path == Path::new("404.html") {
            continue;
        }
        for link in &page.links {
            if let Some(reason) = problem(book, &pages, path, link) {
                broken.push(format!("{}: {link} ({reason})", path.display()));
            }
        }
    }
    Ok(broken)
}

/// Why a link leads nowhere, if it does.
fn problem(book: &Path, pages: &BTreeMap<PathBuf, Page>, from: &Path, link: &str) -> Option<&'static str> {
    let has_scheme = link.split_once(':').is_some_and(|(scheme, _)| !scheme.contains(['/', '#', '?']));
    if has_scheme {
        return None;
    }
    let (file, fragment) = link.split_once('#').unwrap_or((link, ""));
    let file = file.split_once('?').map_or(file, |(file, _)| file);
    let target = match file {
        "" => from.to_path_buf(),
        _ => match within(from, file) {
            Some(target) => target,
            None => return Some("leaves the book"),
        },
    };
    if !book.join(&target).is_file() {
        return Some("no such file");
    }
    match pages.get(&target) {
        Some(page) if !fragment.is_empty() && !page.ids.contains(fragment) => Some("no such place"),
        _ => None,
    }
}

/// The file that a link of page `from` names; nothing when it is not below the book.
fn within(from: &Path, link: &str) -> Option<PathBuf> {
    let mut target = from.parent().unwrap_or(Path::new("")).to_path_buf();
    for part in Path::new(link).components() {
        match part {
            Component::Normal(name) => target.push(name),
            Component::CurDir => {}
            Component::ParentDir => {
                if !target.pop() {
                    return None;
                }
            }
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(target)
}

fn read(path: &Path) -> Result<Page> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut page = Page { ids: BTreeSet::new(), links: BTreeSet::new() };
    for tag in tags(&text) {
        page.ids.extend(tag.get("id").map(str::to_owned));
        let links = ["href", "src"].into_iter().filter_map(|name| tag.get(name));
        page.links.extend(links.map(|link| link.replace("&amp;", "&")));
    }
    Ok(page)
}

/// The relative links of Markdown files directly in `folder` that lead to no file, as
/// `page: link (no such file)`. Pictures are left out: they may be made later than the text.
///
/// # Errors
/// Files that cannot be read.
pub fn broken_at_root(folder: &Path) -> Result<Vec<String>> {
    let mut broken = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        let text =
            std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let parts: Vec<&str> = text.split("](").collect();
        let links = parts.windows(2).filter(|pair| !is_picture(pair[0]));
        let links = links.filter_map(|pair| pair[1].split_once(')')).map(|(link, _)| link);
        let files = links.filter(|link| !link.contains("://") && !link.starts_with('#'));
        for link in files {
            let file = link.split_once('#').map_or(link, |(file, _)| file);
            if !folder.join(file).exists() {
                let page = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                broken.push(format!("{page}: {link} (no such file)"));
            }
        }
    }
    broken.sort();
    Ok(broken)
}

/// Whether the text before a link's address ends with the words of a picture.
fn is_picture(before: &str) -> bool {
    before.rfind('[').is_some_and(|at| before[..at].ends_with('!'))
}

/// All files below a folder, as paths from it, sorted.
///
/// # Errors
/// Folders that cannot be read.
pub fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(below) = folders.pop() {
        let path = folder.join(&below);
        let entries = std::fs::read_dir(&path).with_context(|| format!("cannot read {}", path.display()))?;
        for entry in entries {
            let entry = entry?;
            let name = below.join(entry.file_name());
            match entry.file_type()?.is_dir() {
                true => folders.push(name),
                false => found.push(name),
            }
        }
    }
    found.sort();
    Ok(found)
}
