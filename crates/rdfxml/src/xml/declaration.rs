//! `<?xml … ?>` (XML 1.0, 2.8 and 2.9). The encoding was told before, from the bytes.

use super::cursor::{Cursor, Scan};

/// Passes the declaration, behind its `<?xml`; whether the document is said to stand alone.
pub(super) fn declaration(cursor: &mut Cursor<'_>) -> Scan<bool> {
    cursor.must_space()?;
    let version = pseudo_attribute(cursor, "version")?;
    let Some((at, version)) = version else { return cursor.bad("the declaration begins with version") };
    let minor = version.strip_prefix("1.").unwrap_or_default();
    if minor.is_empty() || !minor.bytes().all(|b| b.is_ascii_digit()) {
        return at.bad(format!("XML {version:?} is not known; there is 1.0"));
    }
    let mut stands_alone = false;
    let mut spaced = cursor.space()?;
    if spaced && let Some((at, name)) = pseudo_attribute(cursor, "encoding")? {
        let mut bytes = name.bytes();
        let is_name = bytes.next().is_some_and(|b| b.is_ascii_alphabetic())
            && bytes.all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'));
        if !is_name {
            return at.bad(format!("{name:?} is no name of an encoding"));
        }
        spaced = cursor.space()?;
    }
    if spaced && let Some((at, value)) = pseudo_attribute(cursor, "standalone")? {
        stands_alone = match value {
            "yes" => true,
            "no" => false,
            _ => return at.bad("standalone is yes or no"),
        };
        cursor.space()?;
    }
    cursor.expect("?>")?;
    Ok(stands_alone)
}

/// The value of an attribute if it is the next, and where it is.
fn pseudo_attribute<'a>(cursor: &mut Cursor<'a>, name: &str) -> Scan<Option<(Cursor<'a>, &'a str)>> {
    if !cursor.eat(name)? {
        return Ok(None);
    }
    cursor.space()?;
    cursor.expect("=")?;
    cursor.space()?;
    let at = *cursor;
    Ok(Some((at, cursor.quoted()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations() {
        let read = |text: &str| declaration(&mut Cursor::new(text, 0));
        for (text, alone) in [
            (" version='1.0'?>", false),
            (" version = \"1.1\" encoding='x-y' standalone='yes' ?>", true),
            ("\nversion='1.0'\tstandalone=\"no\"?>", false),
        ] {
            assert_eq!(read(text), Ok(alone), "{text}");
        }
        for text in [
            "version='1.0'?>",
            " ?>",
            " encoding='utf-8'?>",
            " version='2.0'?>",
            " version='1.'?>",
            " version='1.0' encoding=''?>",
            " version='1.0'encoding='utf-8'?>",
            " version='1.0' standalone='YES'?>",
            " version='1.0' standalone='no' encoding='utf-8'?>",
            " version='1.0' other='x'?>",
            " version='1.0'>",
        ] {
            assert!(matches!(read(text), Err(super::super::cursor::Stop::Bad(..))), "{text}");
        }
    }
}
