//! Start tags of an HTML page: their names and attributes, in order.
//!
//! A scanner for the output of one renderer, not for any HTML: comments and the contents of
//! `script` and `style` are skipped, attribute values are quoted.

/// A start tag.
#[derive(Debug, PartialEq, Eq)]
pub struct Tag<'a> {
    /// The element's name.
    pub name: &'a str,
    /// Names and raw values of its attributes; an attribute without a value has an empty one.
    pub attributes: Vec<(&'a str, &'a str)>,
}

impl<'a> Tag<'a> {
    /// The raw value of an attribute.
    pub fn get(&self, name: &str) -> Option<&'a str> {
        self.attributes.iter().find(|(found, _)| *found == name).map(|(_, value)| *value)
    }
}

/// All start tags of a page.
pub fn tags(page: &str) -> Vec<Tag<'_>> {
    let mut found = Vec::new();
    let mut rest = page;
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        if rest.starts_with("!--") {
            rest = after(rest, "-->");
        } else if rest.starts_with(|c: char| c.is_ascii_alphabetic()) {
            let (tag, behind) = tag(rest);
            rest = match tag.name {
                "script" => after(behind, "</script"),
                "style" => after(behind, "</style"),
                _ => behind,
            };
            found.push(tag);
        }
    }
    found
}

/// The text after the next `end`; nothing when there is none.
fn after<'a>(text: &'a str, end: &str) -> &'a str {
    text.find(end).map_or("", |at| &text[at + end.len()..])
}

/// The tag at the begin of `text`, and what follows it.
fn tag(text: &str) -> (Tag<'_>, &str) {
    let is_end = |c: char| c.is_ascii_whitespace() || c == '>' || c == '/' || c == '=';
    let cut = |text: &'_ str| text.find(is_end).unwrap_or(text.len());
    let (name, mut rest) = text.split_at(cut(text));
    let mut attributes = Vec::new();
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '/');
        if rest.is_empty() || rest.starts_with('>') {
            break;
        }
        let (key, behind) = rest.split_at(cut(rest).max(1));
        rest = behind;
        let quoted = rest.strip_prefix('=').and_then(|r| {
            let quote = r.chars().next().filter(|c| matches!(c, '"' | '\''))?;
            r[1..].split_once(quote)
        });
        let value = match quoted {
            Some((value, behind)) => {
                rest = behind;
                value
            }
            None => "",
        };
        attributes.push((key, value));
    }
    (Tag { name, attributes }, rest.strip_prefix('>').unwrap_or(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_have_names_and_attributes() {
        let page = "<!-- <a href='no'> --><h2 id=\"one\">1 < 2</h2>\n<a\n href='x.html#y' disabled>\
                    <script>'<a href=\"no\">'</script><br/><img src=\"p.svg\" alt=\"a > b\" />";
        let tags = tags(page);
        let names: Vec<_> = tags.iter().map(|tag| tag.name).collect();
        assert_eq!(names, ["h2", "a", "script", "br", "img"]);
        assert_eq!(tags[0].get("id"), Some("one"));
        assert_eq!(tags[1].attributes, [("href", "x.html#y"), ("disabled", "")]);
        assert_eq!(tags[4].get("alt"), Some("a > b"));
        assert_eq!(tags[4].get("href"), None);
    }

    #[test]
    fn a_cut_page_ends() {
        for page in ["<", "<a", "<a href", "<a href=", "<a href=\"x", "<script", "<!--", "<a ="] {
            assert!(tags(page).len() <= 1, "{page}");
        }
    }
}
