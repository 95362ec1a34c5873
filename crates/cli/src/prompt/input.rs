//! Input at the prompt: when it is complete, and which entry it is.

/// A complete input: a query, or a command of the prompt.
#[derive(PartialEq, Eq, Debug)]
pub enum Entry<'a> {
    Query(&'a str),
    Explain(&'a str),
    Analyze(&'a str),
    Format(&'a str),
    Timing,
    /// list them
    Prefixes,
    /// name without colon, IRI
    Prefix(&'a str, &'a str),
    Stats,
    Help,
    Quit,
    Unknown(&'a str),
}

impl<'a> Entry<'a> {
    /// Reads an input.
    pub fn parse(text: &'a str) -> Self {
        let text = text.trim();
        let text = text.strip_suffix(';').map_or(text, str::trim_end);
        if !text.starts_with('\\') {
            return match text {
                "help" | "?" => Entry::Help,
                "quit" | "exit" => Entry::Quit,
                query => Entry::Query(query),
            };
        }
        let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let rest = rest.trim();
        match word {
            "\\explain" => Entry::Explain(rest),
            "\\analyze" => Entry::Analyze(rest),
            "\\format" => Entry::Format(rest),
            "\\timing" => Entry::Timing,
            "\\prefix" if rest.is_empty() => Entry::Prefixes,
            "\\prefix" => match rest.split_once(':').map(|(name, iri)| (name.trim(), iri.trim())) {
                Some((name, iri)) if iri.len() > 2 && iri.starts_with('<') && iri.ends_with('>') => {
                    Entry::Prefix(name, &iri[1..iri.len() - 1])
                }
                _ => Entry::Unknown("prefix of that form: write \\prefix NAME: <IRI>"),
            },
            "\\stats" => Entry::Stats,
            "\\help" | "\\?" | "\\h" => Entry::Help,
            "\\quit" | "\\q" => Entry::Quit,
            other => Entry::Unknown(other),
        }
    }
}

/// Whether lines typed so far are a whole input.
pub fn is_whole(text: &str) -> bool {
    let trimmed = text.trim();
    let has_query = ["\\explain", "\\analyze"].iter().any(|word| trimmed.starts_with(word));
    if trimmed.is_empty() || (trimmed.starts_with('\\') && !has_query) {
        return true;
    }
    if ["help", "?", "quit", "exit"].contains(&trimmed) || trimmed.ends_with(';') {
        return true;
    }
    // an empty line ends whatever it is
    let last = text.rsplit('\n').next().unwrap_or_default();
    if text.contains('\n') && last.trim().is_empty() {
        return true;
    }
    let (mut open, mut seen) = (0i64, false);
    code(text, |c| match c {
        '{' => (open, seen) = (open + 1, true),
        '}' => open -= 1,
        _ => {}
    });
    seen && open <= 0
}

/// Names before a colon, each once: prefixes that the text may use.
pub fn used_prefixes(text: &str) -> Vec<&str> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == '-' || c == '.';
    let mut found: Vec<&str> = Vec::new();
    for (at, _) in text.match_indices(':') {
        let before = &text[..at];
        let start =
            before.char_indices().rev().take_while(|(_, c)| is_name(*c)).last().map_or(at, |(i, _)| i);
        let name = &text[start..at];
        if !name.is_empty() && name != "_" && !found.contains(&name) {
            found.push(name);
        }
    }
    found
}

/// Calls `f` with the characters that are neither in a comment nor in an IRI nor in a string.
fn code(text: &str, mut f: impl FnMut(char)) {
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '#' => while chars.next_if(|c| *c != '\n').is_some() {},
            '"' | '\'' => {
                while let Some(inner) = chars.next() {
                    match inner {
                        '\\' => drop(chars.next()),
                        inner if inner == c => break,
                        _ => {}
                    }
                }
            }
            '<' => {
                let rest: String = chars.clone().take_while(|c| !c.is_whitespace()).collect();
                if let Some(end) = rest.find('>').filter(|end| !rest[..*end].contains(['{', '}', '"'])) {
                    let len = rest[..=end].chars().count();
                    chars.by_ref().take(len).for_each(drop);
                } else {
                    f(c);
                }
            }
            c => f(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_is_whole_when_its_braces_close() {
        for whole in [
            "",
            "\\timing",
            "SELECT * { ?s ?p ?o }",
            "SELECT * {\n ?s ?p '}'\n} LIMIT 5",
            "DESCRIBE <urn:a> ;",
            "DESCRIBE <urn:a>\n",
            "SELECT * {\n",
            "ASK { ?a ?b \"{\" }",
            "ASK { ?a <http://x#y> ?c } # {",
            "\\explain ASK { }",
            "help",
        ] {
            assert!(is_whole(whole), "{whole:?}");
        }
        for part in
            ["SELECT *", "SELECT * {", "SELECT * { { }", "ASK { 'a }' ", "\\explain SELECT", "ASK # {}"]
        {
            assert!(!is_whole(part), "{part:?}");
        }
    }

    #[test]
    fn what_is_asked_for() {
        assert_eq!(Entry::parse(" ASK { } ; "), Entry::Query("ASK { }"));
        assert_eq!(Entry::parse("\\explain ASK { }"), Entry::Explain("ASK { }"));
        assert_eq!(Entry::parse("\\format  json"), Entry::Format("json"));
        assert_eq!(Entry::parse("\\prefix a: <urn:a:>"), Entry::Prefix("a", "urn:a:"));
        assert_eq!(Entry::parse("\\prefix : <urn:a:>"), Entry::Prefix("", "urn:a:"));
        assert_eq!(Entry::parse("\\prefix"), Entry::Prefixes);
        assert!(matches!(Entry::parse("\\prefix a"), Entry::Unknown(_)));
        assert_eq!(Entry::parse("exit"), Entry::Quit);
    }

    #[test]
    fn prefixes_are_found() {
        assert_eq!(used_prefixes("ASK { ?s foaf:name _:b ; a ex-1:T , foaf:x }"), ["foaf", "ex-1"]);
    }
}
