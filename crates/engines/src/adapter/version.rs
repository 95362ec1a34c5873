//! Versions as programs print them: numbers with dots between.

use std::fmt;

use serde::Deserialize;

/// A version; `9.2` is before `9.10`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct Version(Vec<u64>);

impl Version {
    /// The first number in a text that stands at the beginning of a word, with those behind its
    /// dots: 15.8 of `postgres (PostgreSQL) 15.8 (Debian 15.8-0)`, 16 of `16beta1`.
    pub fn first_in(text: &str) -> Option<Self> {
        text.split([' ', '(', ')', ',', '"']).find_map(|word| {
            let word = word.strip_prefix('v').unwrap_or(word);
            let end = word.find(|c: char| c != '.' && !c.is_ascii_digit()).unwrap_or(word.len());
            let parts = word[..end].split('.').take_while(|part| !part.is_empty());
            let numbers: Vec<u64> = parts.map_while(|part| part.parse().ok()).collect();
            (!numbers.is_empty()).then_some(Self(numbers))
        })
    }
}

impl TryFrom<String> for Version {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match Self::first_in(&text) {
            Some(version) if version.to_string() == text => Ok(version),
            _ => Err(format!("{text:?} is no version: numbers with dots between")),
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = self.0.iter().map(u64::to_string).collect();
        f.write_str(&parts.join("."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_and_ordered() {
        for (text, version) in [
            ("postgres (PostgreSQL) 15.8 (Debian 15.8-0+deb12u1)", "15.8"),
            ("postgres (PostgreSQL) 9.2.24", "9.2.24"),
            ("postgres (PostgreSQL) 19beta2", "19"),
            ("Version 07.20.3229 as of Aug 15 2018", "7.20.3229"),
            ("Version 6.1.8.3127-pthreads as of Feb", "6.1.8.3127"),
            ("Apache Jena Fuseki version 5.6.0", "5.6.0"),
            ("duckdb v1.1.3", "1.1.3"),
        ] {
            assert_eq!(Version::first_in(text).unwrap().to_string(), version, "{text}");
        }
        assert_eq!(Version::first_in("no number, x86"), None);
        let of = |text: &str| Version::try_from(text.to_owned()).unwrap();
        assert!(of("9.2") < of("9.10") && of("9.10") < of("10") && of("10") < of("10.1"));
        assert!(Version::try_from("ten".to_owned()).unwrap_err().contains("no version"));
    }
}
