//! Where a word of the language stands in a text.
//!
//! The syntax tree keeps no places, so an error about a construct that parsed finds its place
//! by the construct's keyword. A search in a text can be wrong: it takes a word inside a string
//! or a comment for the keyword. So the answer is used for the place of an error and for
//! nothing else.

/// The offset of a keyword that is a word of its own and no variable; `None` if there is none.
pub(crate) fn find_keyword(text: &str, keyword: &str) -> Option<usize> {
    let upper = text.to_ascii_uppercase();
    let wanted = keyword.to_ascii_uppercase();
    let word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    upper.match_indices(&wanted).map(|(i, _)| i).find(|i| {
        let before = upper[..*i].chars().next_back();
        let after = upper[i + wanted.len()..].chars().next();
        !wanted.starts_with(char::is_alphanumeric)
            || (!word(before) && before != Some('?') && before != Some('$') && !word(after))
    })
}

#[cfg(test)]
mod tests {
    use super::find_keyword;

    #[test]
    fn a_keyword_is_a_whole_word_and_no_variable() {
        let text = "SELECT ?service $service { services:a myservice: ?b service <urn:a> {} }";
        assert_eq!(find_keyword(text, "SERVICE"), text.find("service <"));
        assert_eq!(find_keyword("{ << ?a ?b ?c >> }", "<<"), Some(2));
        assert_eq!(find_keyword("é lateral", "LATERAL"), Some(3));
        assert_eq!(find_keyword("ASK {}", "SERVICE"), None);
    }
}
