//! Which crates of the workspace a crate links.

use std::collections::BTreeSet;
use std::path::Path;
use std::{fs, io};

/// The crates that the product of `crates/{name}` links, itself included, by their folders; not
/// those of its tests.
///
/// # Errors
/// A manifest cannot be read.
pub fn linked(root: &Path, name: &str) -> io::Result<BTreeSet<String>> {
    let mut linked = BTreeSet::new();
    let mut open = vec![name.to_owned()];
    while let Some(name) = open.pop() {
        if linked.contains(&name) {
            continue;
        }
        open.extend(depends_on(root, &name)?);
        linked.insert(name);
    }
    Ok(linked)
}

/// The crates that the product of `crates/{name}` depends on itself.
///
/// # Errors
/// The manifest cannot be read.
pub fn depends_on(root: &Path, name: &str) -> io::Result<BTreeSet<String>> {
    let manifest = if name == "snowmelt" { "Cargo.toml".into() } else { format!("crates/{name}/Cargo.toml") };
    Ok(dependencies(&fs::read_to_string(root.join(manifest))?).into_iter().collect())
}

/// Crates of the workspace in the sections of dependencies, those of targets and optional ones too.
fn dependencies(manifest: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut is_listed = false;
    for line in manifest.lines() {
        if let Some(section) = line.strip_prefix('[') {
            is_listed = section.trim_end().ends_with("dependencies]")
                && !section.contains("dev-dependencies")
                && !section.starts_with("workspace");
        } else if is_listed {
            let name = line.split(['.', ' ', '=']).next().unwrap_or_default();
            match name.strip_prefix("snowmelt-") {
                Some(folder) => found.push(folder.to_owned()),
                None if name == "snowmelt" => found.push(name.to_owned()),
                None => {}
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_of_tests_are_not_linked() {
        let manifest = "[workspace.dependencies]\nsnowmelt-a = 1\n[package]\nname = \"snowmelt-b\"\n\
            [dependencies]\nsnowmelt-c.workspace = true\nserde = 1\nsnowmelt = { path = \".\" }\n\
            [target.'cfg(unix)'.dependencies]\nsnowmelt-d = { workspace = true, optional = true }\n\
            [dev-dependencies]\nsnowmelt-e.workspace = true\n";
        assert_eq!(dependencies(manifest), ["c", "snowmelt", "d"]);
    }
}
