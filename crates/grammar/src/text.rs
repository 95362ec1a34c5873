//! Reads a grammar from its file.

use crate::derive::sizes;
use crate::pattern::{Pattern, Piece};
use crate::rules::{Grammar, Numbers, Part, Rule};

/// Why a text is no grammar.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum GrammarError {
    /// A rule is not written as rules are.
    #[error("rule {rule}: {message}, before `{rest}`")]
    Syntax {
        /// The rule.
        rule: String,
        /// The fault.
        message: &'static str,
        /// The text that follows.
        rest: String,
    },
    /// A rule is named and not there.
    #[error("rule {rule}: there is no rule {name}")]
    Unknown {
        /// Where it is named.
        rule: String,
        /// The name.
        name: String,
    },
    /// A rule has no text that ends.
    #[error("rule {rule} never ends")]
    Endless {
        /// The rule.
        rule: String,
    },
}

impl Grammar {
    /// Reads rules; the first is where documents begin.
    ///
    /// # Errors
    /// The first rule that is wrong.
    pub fn read(text: &str) -> Result<Grammar, GrammarError> {
        let mut sources: Vec<(String, &'static str, String)> = Vec::new();
        for line in text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
            let rule = [("::=", " "), ("~~=", "")]
                .into_iter()
                .find_map(|(sign, joint)| Some((line.split_once(sign)?, joint)))
                .filter(|_| !line.starts_with(' '));
            match (rule, sources.last_mut()) {
                (Some(((name, body), joint)), _) => {
                    sources.push((name.trim().to_owned(), joint, body.to_owned()));
                }
                (None, Some((.., body))) => body.push_str(line),
                (None, None) => return Err(syntax("(none)", "a rule is Name ::= parts", line)),
            }
        }
        let names = sources.iter().enumerate().map(|(number, (name, ..))| (name.clone(), number));
        let numbers: Numbers = names.collect();
        let mut rules = Vec::with_capacity(sources.len());
        for (name, joint, body) in sources {
            let mut reader = Reader { rule: &name, rest: &body, numbers: &numbers };
            let part = reader.choice()?;
            if !reader.rest.trim().is_empty() {
                return Err(syntax(&name, "there is more than one rule", reader.rest));
            }
            rules.push(Rule { name, part, joint });
        }
        let sizes = sizes(&rules);
        if let Some(endless) = sizes.iter().position(|size| *size == usize::MAX) {
            return Err(GrammarError::Endless { rule: rules[endless].name.clone() });
        }
        Ok(Grammar { rules, sizes })
    }
}

fn syntax(rule: &str, message: &'static str, rest: &str) -> GrammarError {
    let rest = rest.trim().chars().take(30).collect();
    GrammarError::Syntax { rule: rule.to_owned(), message, rest }
}

struct Reader<'a> {
    rule: &'a str,
    rest: &'a str,
    numbers: &'a Numbers,
}

impl Reader<'_> {
    fn choice(&mut self) -> Result<Part, GrammarError> {
        let mut parts = vec![self.sequence()?];
        while self.takes('|') {
            parts.push(self.sequence()?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Part::Choice(parts) })
    }

    fn sequence(&mut self) -> Result<Part, GrammarError> {
        let mut parts = Vec::new();
        while let Some(part) = self.item()? {
            parts.push(part);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Part::Sequence(parts) })
    }

    fn item(&mut self) -> Result<Option<Part>, GrammarError> {
        let Some(part) = self.primary()? else { return Ok(None) };
        let part = Box::new(part);
        // a sign belongs to what it stands at
        let sign = self.rest.chars().next();
        let part = match sign {
            Some('*') => Part::Many(part, 0),
            Some('+') => Part::Many(part, 1),
            Some('?') => Part::Maybe(part),
            _ => return Ok(Some(*part)),
        };
        self.rest = &self.rest[1..];
        Ok(Some(part))
    }

    fn primary(&mut self) -> Result<Option<Part>, GrammarError> {
        self.rest = self.rest.trim_start();
        if self.takes('(') {
            let part = self.choice()?;
            return if self.takes(')') { Ok(Some(part)) } else { Err(self.wrong("a bracket is not closed")) };
        }
        match self.rest.chars().next() {
            None | Some('|' | ')') => Ok(None),
            Some(quote @ ('\'' | '"')) => self.quoted(quote).map(Some),
            Some(first) if first.is_alphabetic() => {
                let end = self.rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(self.rest.len());
                let (name, rest) = self.rest.split_at(end);
                self.rest = rest;
                let number = self.numbers.get(name).ok_or_else(|| GrammarError::Unknown {
                    rule: self.rule.to_owned(),
                    name: name.to_owned(),
                })?;
                Ok(Some(Part::Rule(*number)))
            }
            Some(_) => Err(self.wrong("this is no part")),
        }
    }

    fn quoted(&mut self, quote: char) -> Result<Part, GrammarError> {
        let mut pattern = Pattern::default();
        let mut chars = self.rest.char_indices().skip(1);
        while let Some((at, c)) = chars.next() {
            let piece = match c {
                c if c == quote => {
                    self.rest = &self.rest[at + 1..];
                    return Ok(Part::Text(pattern));
                }
                '\\' => match chars.next().map(|(_, c)| c) {
                    Some('i') => Piece::Number,
                    Some('j') => Piece::Next,
                    Some('n') => Piece::Text("\n".to_owned()),
                    Some(c) => Piece::Text(c.to_string()),
                    None => break,
                },
                c => Piece::Text(c.to_string()),
            };
            pattern.push(piece);
        }
        Err(self.wrong("a text is not closed"))
    }

    /// Goes over a sign, if it is next.
    fn takes(&mut self, sign: char) -> bool {
        self.rest = self.rest.trim_start();
        let rest = self.rest.strip_prefix(sign);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn wrong(&self, message: &'static str) -> GrammarError {
        syntax(self.rule, message, self.rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_named() {
        let error = |text: &str| Grammar::read(text).unwrap_err().to_string();
        assert_eq!(error("A ::= B"), "rule A: there is no rule B");
        assert_eq!(error("A ::= 'x"), "rule A: a text is not closed, before `'x`");
        assert_eq!(error("A ::= ( 'x'"), "rule A: a bracket is not closed, before ``");
        assert_eq!(error("A ::= 'x' )"), "rule A: there is more than one rule, before `)`");
        assert_eq!(error("A ::= 'x' A"), "rule A never ends");
        assert_eq!(error("  'x'"), "rule (none): a rule is Name ::= parts, before `'x'`");
    }
}
