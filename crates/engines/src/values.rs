//! Placeholders in adapters, `{port}`, and their values.
//!
//! A placeholder is a name of small letters, digits and hyphens in braces. All other braces stay
//! as they are, so that configuration files and queries can have them.

use std::collections::BTreeMap;

/// Placeholders that every adapter can use, and their meaning.
pub const KNOWN: [(&str, &str); 11] = [
    ("folder", "the engine's own folder, made anew"),
    ("data", "the file to load, N-Triples; of tables, the folder of their scripts"),
    ("parts", "a folder with the same data cut into as many files as there are threads"),
    ("port", "the first port, of the endpoint"),
    ("second-port", "another port"),
    ("memory", "bytes the engine may use"),
    ("threads", "processors the engine may use"),
    ("engines", "the folder of engines that were installed by hand"),
    ("snowmelt", "this program"),
    ("user", "the account that the engine runs as"),
    ("name", "the adapter's name"),
];

/// Names and their values.
#[derive(Clone, Debug, Default)]
pub struct Values(BTreeMap<String, String>);

impl Values {
    /// Sets one.
    pub fn set(&mut self, name: &str, value: impl ToString) {
        self.0.insert(name.to_owned(), value.to_string());
    }

    /// The value of a name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// A copy of the values with more of them set.
    #[must_use]
    pub fn with(&self, more: &[(&str, &str)]) -> Self {
        let mut all = self.clone();
        more.iter().for_each(|(name, value)| all.set(name, value));
        all
    }

    /// The text with values in place of placeholders. Those without a value stay: an adapter was
    /// checked when it was read.
    pub fn fill(&self, text: &str) -> String {
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, name, after)) = next_placeholder(rest) {
            filled.push_str(before);
            match self.get(name) {
                Some(value) => filled.push_str(value),
                None => filled.push_str(&format!("{{{name}}}")),
            }
            rest = after;
        }
        filled + rest
    }

    /// Each word filled.
    pub fn fill_all(&self, words: &[String]) -> Vec<String> {
        words.iter().map(|word| self.fill(word)).collect()
    }
}

/// The names of all placeholders in a text.
pub fn placeholders(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut rest = text;
    while let Some((_, name, after)) = next_placeholder(rest) {
        names.push(name);
        rest = after;
    }
    names
}

/// Text before the first placeholder, its name, text after it.
fn next_placeholder(text: &str) -> Option<(&str, &str, &str)> {
    let mut from = 0;
    while let Some(open) = text[from..].find('{').map(|at| from + at) {
        let inside = &text[open + 1..];
        let end = inside.find(|c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'));
        if let Some(end) = end.filter(|end| *end > 0 && inside[*end..].starts_with('}')) {
            return Some((&text[..open], &inside[..end], &inside[end + 1..]));
        }
        from = open + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_filled_and_other_braces_stay() {
        let mut values = Values::default();
        values.set("port", 8890);
        values.set("second-port", 1111);
        let text = "ASK {} {port}:{second-port} {Upper} {{port}} {unknown} ${port}";
        assert_eq!(values.fill(text), "ASK {} 8890:1111 {Upper} {8890} {unknown} $8890");
        assert_eq!(placeholders(text), ["port", "second-port", "port", "unknown", "port"]);
        assert_eq!(values.with(&[("unknown", "x")]).fill("{unknown}{"), "x{");
    }
}
