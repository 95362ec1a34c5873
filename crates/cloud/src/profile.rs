//! The file of S3 credentials, as the tools of AWS write it:
//!
//! ```text
//! [default]
//! aws_access_key_id = AKIA…
//! aws_secret_access_key = …
//! aws_session_token = …
//! ```
//!
//! Lines that begin with `#` or `;` are comments. Other names are passed over.

use std::fs;
use std::path::Path;

use crate::secret::{KeyId, Secret};

/// A key from a file.
pub(crate) struct ProfileKey {
    pub(crate) id: KeyId,
    pub(crate) secret: Secret,
    pub(crate) session: Option<Secret>,
}

/// The key of a profile; `None`: the file has no such profile. The error is a sentence.
pub(crate) fn read(path: &Path, profile: &str) -> Result<Option<ProfileKey>, String> {
    let text = fs::read_to_string(path)
        .map_err(|error| format!("the file of credentials {} cannot be read: {error}", path.display()))?;
    key_of(&text, profile)
        .map_err(|missing| format!("profile {profile} of {} has no {missing}", path.display()))
}

/// The error is the name of the line that is missing.
fn key_of(text: &str, profile: &str) -> Result<Option<ProfileKey>, &'static str> {
    let (mut is_there, mut is_within) = (false, false);
    let (mut id, mut secret, mut session) = (None, None, None);
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';'])) {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            is_within = name.trim() == profile;
            is_there |= is_within;
        } else if let Some((name, value)) = line.split_once('=').filter(|_| is_within) {
            match name.trim() {
                "aws_access_key_id" => id = Some(KeyId::from(value.trim())),
                "aws_secret_access_key" => secret = Some(Secret::from(value.trim())),
                "aws_session_token" => session = Some(Secret::from(value.trim())),
                _ => {}
            }
        }
    }
    if !is_there {
        return Ok(None);
    }
    let id = id.ok_or("aws_access_key_id")?;
    Ok(Some(ProfileKey { id, secret: secret.ok_or("aws_secret_access_key")?, session }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# keys\n[default]\naws_access_key_id = A1\naws_secret_access_key=s=1\n\n\
        [ other ]\nregion = x\naws_session_token = t2\naws_secret_access_key = s2\n\
        aws_access_key_id = A2\n;[none]\n[half]\naws_access_key_id = A3\n";

    #[test]
    fn a_profile_has_its_own_lines() {
        let default = key_of(FILE, "default").unwrap().unwrap();
        assert_eq!((default.id.reveal(), default.secret.reveal()), ("A1", "s=1"));
        assert!(default.session.is_none());
        let other = key_of(FILE, "other").unwrap().unwrap();
        assert_eq!((other.id.reveal(), other.secret.reveal()), ("A2", "s2"));
        assert_eq!(other.session.unwrap().reveal(), "t2");
    }

    #[test]
    fn missing_profiles_and_lines_are_told_apart() {
        assert!(key_of(FILE, "none").unwrap().is_none());
        assert_eq!(key_of(FILE, "half").err(), Some("aws_secret_access_key"));
        let missing = read(Path::new("/nowhere/credentials"), "default").err().unwrap();
        assert!(missing.contains("/nowhere/credentials"), "{missing}");
    }
}
