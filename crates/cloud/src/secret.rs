//! Values that messages and debug texts do not show.

use std::fmt;
use std::sync::Arc;

use snowmelt_base::printable;

/// A value that is not shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<str>);

/// The name of a key: its first four characters are shown.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyId(Arc<str>);

impl Secret {
    /// The value itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl KeyId {
    /// The whole name.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl<T: Into<Arc<str>>> From<T> for Secret {
    fn from(value: T) -> Self {
        Self(value.into())
    }
}

impl<T: Into<Arc<str>>> From<T> for KeyId {
    fn from(value: T) -> Self {
        Self(value.into())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = if self.0.chars().count() > 4 { 4 } else { 0 };
        let shown: String = self.0.chars().take(shown).collect();
        write!(f, "{}…", printable::line(&shown))
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_shown() {
        assert_eq!(format!("{:?}", Secret::from("hidden")), "…");
        let key = KeyId::from("AKIAIOSFODNN7EXAMPLE");
        assert_eq!(format!("{key} {key:?}"), "AKIA… AKIA…");
        assert_eq!(KeyId::from("ä\nbcd").to_string(), "ä\\nbc…");
        // a short one would be shown whole
        assert_eq!(KeyId::from("abcd").to_string(), "…");
        assert_eq!(key.reveal(), "AKIAIOSFODNN7EXAMPLE");
    }
}
