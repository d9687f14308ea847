//! Users by name.

use std::collections::HashMap;
use std::fmt;

use aws_lc_rs::hmac;

use crate::hash::{Hash, RefusedHash};

/// Users and their hashes.
pub struct Users {
    by_name: HashMap<Box<str>, Hash>,
    /// The hashes of all users in an order of their own.
    hashes: Vec<Hash>,
    key: hmac::Key,
}

/// A line of a file that is not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedLine {
    /// Its number, from 1.
    pub line: usize,
    /// The user, as far as there is one.
    pub user: String,
    /// `None`: there is no colon, or nothing in front of it.
    pub why: Option<RefusedHash>,
}

impl fmt::Debug for Users {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Users({})", self.by_name.len())
    }
}

impl Users {
    /// These users; of two with the same name the last one counts.
    pub fn new(users: impl IntoIterator<Item = (String, Hash)>) -> Self {
        let by_name: HashMap<Box<str>, Hash> =
            users.into_iter().map(|(name, hash)| (name.into_boxed_str(), hash)).collect();
        let hashes = by_name.values().cloned().collect();
        Self { by_name, hashes, key: random_key() }
    }

    /// Reads a `.htpasswd` file: a line for each user, `name:hash`. Empty lines and those that begin with `#` are comments.
    ///
    /// # Errors
    /// The first line that is not accepted.
    pub fn read_lines(text: &str) -> Result<Vec<(String, Hash)>, RefusedLine> {
        let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
        let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let user = |(line, text): (usize, &str)| {
            let (name, hash) =
                text.split_once(':').filter(|(name, _)| !name.is_empty()).ok_or_else(|| RefusedLine {
                    line,
                    user: text.chars().take(SHOWN_CHARS_MAX).collect(),
                    why: None,
                })?;
            // What stands behind a further colon is a comment of some tools.
            let hash = hash.split(':').next().unwrap_or_default();
            let refused = |why| RefusedLine { line, user: name.to_owned(), why: Some(why) };
            Ok((name.to_owned(), Hash::parse(hash).map_err(refused)?))
        };
        lines.map(user).collect()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// Whether the password is the user's. Takes long, and as long for a name that no user has: then the hash of some user,
    /// the same one each time, is computed in vain.
    pub fn verify(&self, name: &str, password: &[u8]) -> bool {
        match (self.by_name.get(name), self.stand_in(name)) {
            (Some(hash), _) => hash.verify(password),
            (None, Some(hash)) => {
                hash.verify(password);
                false
            }
            (None, None) => false,
        }
    }

    fn stand_in(&self, name: &str) -> Option<&Hash> {
        let tag = hmac::sign(&self.key, name.as_bytes());
        let number = tag.as_ref().iter().take(8).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        self.hashes.get(number.checked_rem(self.hashes.len() as u64)? as usize)
    }
}

/// A key that is known nowhere else. Without random bytes the process could not have spoken TLS either.
pub(crate) fn random_key() -> hmac::Key {
    let mut bytes = [0; 32];
    // A system without random bytes has refused to start before.
    let _ = aws_lc_rs::rand::fill(&mut bytes);
    hmac::Key::new(hmac::HMAC_SHA256, &bytes)
}

/// Of a line that is no user: enough to find it.
const SHOWN_CHARS_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    /// The password is `secret`.
    const LINE: &str = "ada:$2y$04$M8GN1LhxmWzK34qTmzdeB.JoTi2x7t9.WZghfLTSiQkvuJujEDW9.";

    #[test]
    fn lines_are_users() {
        let text = format!("# staff\n\n{LINE}\r\n{}:a comment\n", LINE.replace("ada", "bob"));
        let read = Users::read_lines(&text).unwrap();
        assert_eq!(read.iter().map(|(name, _)| &**name).collect::<Vec<_>>(), ["ada", "bob"]);
        let refused = Users::read_lines(&format!("{LINE}\neve:{{SHA}}x\n")).unwrap_err();
        assert_eq!((refused.line, &*refused.user, refused.why), (2, "eve", Some(RefusedHash::Fast("SHA-1"))));
        assert_eq!(Users::read_lines("no colon").unwrap_err().why, None);
        assert_eq!(Users::read_lines(":x").unwrap_err().why, None);
    }

    #[test]
    fn a_user_needs_the_own_password() {
        let made = crate::hash(crate::Algorithm::Argon2, b"other").unwrap();
        let users = Users::new([("ada".to_owned(), Hash::parse(&made).unwrap())]);
        assert!(users.verify("ada", b"other"));
        assert!(
            !users.verify("ada", b"secret") && !users.verify("Ada", b"other") && !users.verify("", b"other")
        );
        assert!(users.stand_in("eve").is_some() && Users::new([]).stand_in("eve").is_none());
        assert!(Users::new([]).is_empty() && !Users::new([]).verify("ada", b"other"));
    }
}
