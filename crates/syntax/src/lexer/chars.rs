//! Characters of names.

/// `PN_CHARS_BASE`
pub(super) fn is_base(c: char) -> bool {
    c.is_ascii_alphabetic()
        || c >= '\u{C0}'
            && matches!(c,
                '\u{C0}'..='\u{D6}' | '\u{D8}'..='\u{F6}' | '\u{F8}'..='\u{2FF}' | '\u{370}'..='\u{37D}'
                | '\u{37F}'..='\u{1FFF}' | '\u{200C}'..='\u{200D}' | '\u{2070}'..='\u{218F}'
                | '\u{2C00}'..='\u{2FEF}' | '\u{3001}'..='\u{D7FF}' | '\u{F900}'..='\u{FDCF}'
                | '\u{FDF0}'..='\u{FFFD}' | '\u{10000}'..='\u{EFFFF}')
}

/// The first character of a variable or label: `PN_CHARS_U` or a digit.
pub(super) fn begins_label(c: char) -> bool {
    is_base(c) || c == '_' || c.is_ascii_digit()
}

/// A further character of a variable.
pub(super) fn is_of_variable(c: char) -> bool {
    begins_label(c) || matches!(c, '\u{B7}' | '\u{300}'..='\u{36F}' | '\u{203F}'..='\u{2040}')
}

/// `PN_CHARS`
pub(super) fn is_of_name(c: char) -> bool {
    is_of_variable(c) || c == '-'
}
