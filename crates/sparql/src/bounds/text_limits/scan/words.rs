//! Names and keywords: some say what the next bracket holds, some build on what stands before them.

use super::frame::{Clause, Kind};
use super::signs::Link;
use super::{Last, Over, Scan, is_name};

impl Scan<'_> {
    /// A keyword or a prefixed name.
    pub(super) fn word(&mut self) -> Result<(), Over> {
        let start = self.at;
        loop {
            self.skip_while(|b| is_name(b) || matches!(b, b':' | b'-' | b'.' | b'%'));
            if self.bytes.get(self.at) != Some(&b'\\') {
                break;
            }
            // an escape in a name, whatever it is
            self.at = (self.at + 2).min(self.bytes.len());
            self.skip_while(|b| b & 0xC0 == 0x80);
        }
        while self.bytes[self.at - 1] == b'.' && self.at - 1 > start {
            self.at -= 1;
        }
        let run = &self.text[start..self.at];
        if run.contains([':', '\\', '%']) {
            // with no such prefix, the parser reads true minus something
            for _ in 0..run.matches("true-").count() + run.matches("false-").count() {
                self.link(Link::Arithmetic)?;
            }
            return self.name();
        }
        let end = run
            .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || !c.is_ascii()))
            .unwrap_or(run.len());
        self.at = start + end.max(1);
        self.keyword(&run[..end])
    }

    fn keyword(&mut self, word: &str) -> Result<(), Over> {
        const CLAUSES: [(&str, Clause); 15] = [
            ("FILTER", Clause::Once),
            ("BIND", Clause::Once),
            ("SELECT", Clause::Many),
            ("GROUP", Clause::Many),
            ("HAVING", Clause::Many),
            ("ORDER", Clause::Many),
            ("WHERE", Clause::Patterns),
            ("LIMIT", Clause::Patterns),
            ("VALUES", Clause::Values),
            ("INSERT", Clause::Template),
            ("DELETE", Clause::Template),
            ("DATA", Clause::Template),
            ("CONSTRUCT", Clause::Template),
            ("DESCRIBE", Clause::Describe),
            ("FROM", Clause::Patterns),
        ];
        let is = |k: &str| word.eq_ignore_ascii_case(k);
        self.last = Last::Other;
        if self.frame().kind == Kind::Group
            && let Some((_, clause)) = CLAUSES.iter().find(|(k, _)| is(k))
        {
            self.frame().clause = *clause;
        }
        self.deletes_where |= self.deletes && is("WHERE");
        self.deletes = is("DELETE");
        if is("SELECT") || is("DESCRIBE") {
            self.selects += 1;
            self.check_columns()?;
        }
        if is("OPTIONAL") || is("MINUS") || is("BIND") || is("EXISTS") {
            let group = self.group();
            group.chain += 1;
            if group.whole_chain() > self.limits.chain {
                return self.over("query_chain", self.limits.chain as u64);
            }
        } else if is("FILTER") || is("UNION") {
            self.group().branches += 1;
            return self.check();
        } else if is("REGEX") || is("SUBSTR") || is("REPLACE") || is("GROUP_CONCAT") {
            self.last = Last::Twice;
        } else if is("true") || is("false") {
            self.operand(Last::Operand);
        }
        Ok(())
    }
}
