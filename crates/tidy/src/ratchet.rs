//! The list of what is tolerated: it only shrinks.
//!
//! A line has a rule, a key and how much of it there is, with tabs between them. More than listed
//! is an error; fewer are an error as well until the list is lowered, so the count never rises.

use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

/// Rule and key, and how much there is.
pub type Counts = BTreeMap<(String, String), usize>;

/// Reads a list of tolerated counts.
///
/// # Errors
/// The file cannot be read, or a line is none of a list.
pub fn read(path: &Path) -> io::Result<Counts> {
    let text = fs::read_to_string(path)?;
    text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).map(parse).collect()
}

fn parse(line: &str) -> io::Result<((String, String), usize)> {
    let wrong = || io::Error::new(io::ErrorKind::InvalidData, format!("not a line of a list: {line:?}"));
    let mut parts = line.split('\t');
    let (rule, key, count) = (parts.next(), parts.next(), parts.next());
    let count = count.and_then(|c| c.parse().ok()).ok_or_else(wrong)?;
    Ok(((rule.unwrap_or_default().into(), key.unwrap_or_default().into()), count))
}

/// Lowers the counts of a list to what was found, and takes off what is no more; nothing is added.
///
/// # Errors
/// The file cannot be written.
pub fn lower(path: &Path, listed: &Counts, found: &Counts) -> io::Result<()> {
    let head: String =
        fs::read_to_string(path)?.lines().filter(|l| l.starts_with('#')).map(|l| format!("{l}\n")).collect();
    let lines: String = listed
        .iter()
        .filter_map(|(key, most)| Some((key, (*found.get(key)?).min(*most))))
        .map(|((rule, key), count)| format!("{rule}\t{key}\t{count}\n"))
        .collect();
    fs::write(path, head + &lines)
}

/// Faults of the tree beyond the list, a line each.
pub fn compare(listed: &Counts, found: &Counts) -> (Vec<String>, Vec<String>) {
    let mut more = Vec::new();
    let mut fewer = Vec::new();
    for ((rule, key), &count) in found {
        match listed.get(&(rule.clone(), key.clone())) {
            Some(&most) if count > most => more.push(format!("{rule}: {key}: {count}, {most} are tolerated")),
            Some(&most) if count < most => fewer.push(format!("{rule}: {key}: {count}, {most} are listed")),
            Some(_) => {}
            None => more.push(format!("{rule}: {key}: {count}")),
        }
    }
    let gone = listed.keys().filter(|key| !found.contains_key(key));
    fewer.extend(gone.map(|(rule, key)| format!("{rule}: {key}: none any more")));
    (more, fewer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_only_shrinks() {
        let counts = |pairs: &[(&str, usize)]| -> Counts {
            pairs.iter().map(|(key, n)| (("rule".to_owned(), key.to_string()), *n)).collect()
        };
        let listed = counts(&[("same", 1), ("more", 1), ("fewer", 3), ("gone", 1)]);
        let found = counts(&[("same", 1), ("more", 2), ("fewer", 2), ("new", 1)]);
        let (more, fewer) = compare(&listed, &found);
        assert_eq!(more, ["rule: more: 2, 1 are tolerated", "rule: new: 1"]);
        assert_eq!(fewer, ["rule: fewer: 2, 3 are listed", "rule: gone: none any more"]);
        let path = std::env::temp_dir().join(format!("ratchet-{}", std::process::id()));
        fs::write(&path, "# head\nrule\tfewer\t3\nrule\tgone\t1\nrule\tmore\t1\nrule\tsame\t1\n").unwrap();
        assert_eq!(read(&path).unwrap(), listed);
        lower(&path, &listed, &found).unwrap();
        assert_eq!(read(&path).unwrap(), counts(&[("same", 1), ("more", 1), ("fewer", 2)]));
        fs::remove_file(path).unwrap();
    }
}
