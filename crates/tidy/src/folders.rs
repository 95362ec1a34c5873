//! Folders of a crate whose arrows do not go one way.
//!
//! A folder is a module with modules inside. Two rules:
//!
//! 1. a folder is in no circle, however small: its name promises an inside that can be left alone;
//! 2. a crate may list its folders at the head of `lib.rs`, in a table whose first column is headed
//!    `folder`, or `module` where it lists files, too. Then each folder is in it, and needs only
//!    those above it.

use crate::arrows::Module;
use crate::circles::Circle;
use crate::tree::Crate;
use std::collections::BTreeSet;

/// Members of a circle that are folders.
pub fn in_circle(of: &Crate, circle: &Circle) -> usize {
    let is_folder = |name: &&String| {
        let module = [&circle.within[..], std::slice::from_ref(*name)].concat();
        of.files.iter().any(|file| file.module.len() > module.len() && file.module.starts_with(&module))
    };
    circle.members.iter().filter(is_folder).count()
}

/// Faults of the table at the head of `lib.rs`: folders that are missing, and arrows that
/// go down, as `from > to`. None for a crate without a table.
pub fn against_table(of: &Crate, arrows: &BTreeSet<(Module, Module)>) -> Vec<String> {
    let head = of.files.iter().find(|file| file.module.is_empty());
    let listed = head.map(|file| table(&file.text)).unwrap_or_default();
    if listed.is_empty() {
        return Vec::new();
    }
    let place = |module: &Module| listed.iter().position(|name| Some(name) == module.first());
    let folders: BTreeSet<&String> =
        of.files.iter().filter(|file| file.module.len() > 1).map(|file| &file.module[0]).collect();
    let mut wrong: Vec<String> = folders.into_iter().filter(|f| !listed.contains(f)).cloned().collect();
    let down: BTreeSet<String> = arrows
        .iter()
        .filter(|(from, to)| place(from).zip(place(to)).is_some_and(|(from, to)| from < to))
        .map(|(from, to)| format!("{} > {}", from[0], to[0]))
        .collect();
    wrong.extend(down);
    wrong
}

/// The names in the first column of the table of folders.
fn table(lib: &str) -> Vec<String> {
    let rows = lib.lines().map_while(|line| line.strip_prefix("//!")).map(str::trim);
    let rows = rows.skip_while(|row| !matches!(first_cell(row), Some("folder" | "module"))).skip(2);
    let names = rows.map_while(first_cell).flat_map(|cell| cell.split(','));
    names.map(|name| name.trim().trim_matches('`').to_owned()).collect()
}

fn first_cell(row: &str) -> Option<&str> {
    row.strip_prefix('|')?.split('|').next().map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrows::arrows;
    use crate::circles::circles;
    use crate::lexer::lex;
    use crate::tree::SourceFile;

    fn file(module: &str, text: &str) -> SourceFile {
        let module = module.split('.').filter(|m| !m.is_empty()).map(str::to_owned).collect();
        SourceFile { path: String::new(), module, text: text.into(), lexed: lex(text) }
    }

    fn sample(lib: &str) -> Crate {
        let files = vec![
            file("", lib),
            file("a.x", "use crate::b;"),
            file("b.y", "use crate::c::z; use crate::d;"),
            file("b", ""),
            file("c.z", ""),
            file("d", "use crate::b;"),
        ];
        Crate { name: "test".into(), files }
    }

    #[test]
    fn a_circle_of_a_folder_and_a_file_counts_the_folder() {
        let of = sample("");
        let found = circles(&arrows(&of));
        assert_eq!(found.len(), 1);
        assert_eq!(in_circle(&of, &found[0]), 1);
    }

    #[test]
    fn arrows_go_up_the_table() {
        let head = "//! Text.\n//!\n//! | folder | what |\n//! |---|---|\n";
        let rows = |names: &str| {
            let rows: String = names.chars().map(|n| format!("//! | `{n}` | it |\n")).collect();
            let of = sample(&format!("{head}{rows}\nmod a;"));
            against_table(&of, &arrows(&of))
        };
        assert_eq!(rows("cba"), [""; 0]);
        assert_eq!(rows("abc"), ["a > b", "b > c"]);
        assert_eq!(rows("cb"), ["a"]);
        assert_eq!(against_table(&sample(""), &arrows(&sample(""))), [""; 0]);
    }
}
