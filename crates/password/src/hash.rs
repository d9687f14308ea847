//! One hash of a password.

use std::fmt;
use std::io;

use argon2::password_hash::{PasswordHash, PasswordHasher, PasswordVerifier, SaltString};
use argon2::{Argon2, Params};

/// A hash that was checked: of a known algorithm, and at a bearable price.
#[derive(Clone, PartialEq, Eq)]
pub struct Hash {
    text: String,
    algorithm: Algorithm,
}

/// An algorithm that takes long on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// `$2y$…`, as `htpasswd -B` and Caddy make them.
    Bcrypt,
    /// `$argon2id$…`, and its relatives.
    Argon2,
}

/// Why a text is no hash that is accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RefusedHash {
    /// Its algorithm is computed so fast that a stolen file is soon read: the name of the algorithm.
    Fast(&'static str),
    /// The text begins like a hash, but is none.
    Broken,
    /// The text is not the beginning of any hash: perhaps the password itself.
    Unknown,
    /// A verification would take more memory or time than a client may cost.
    Expensive,
}

impl fmt::Display for RefusedHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fast(name) => write!(f, "{name} is no protection: a computer tries billions of passwords a second"),
            Self::Broken => f.write_str("the hash is not complete"),
            Self::Unknown => f.write_str("this is no hash of bcrypt or argon2; is it the password itself?"),
            Self::Expensive => f.write_str(
                "a verification would take too long, or too much memory: at most cost 15 with bcrypt, 256 MiB and 10 passes \
                 with argon2",
            ),
        }
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hash({:?})", self.algorithm)
    }
}

impl Hash {
    /// Reads a hash.
    ///
    /// # Errors
    /// It is none that is accepted.
    pub fn parse(text: &str) -> Result<Self, RefusedHash> {
        let algorithm = if ["$2y$", "$2b$", "$2a$", "$2x$"].iter().any(|begin| text.starts_with(begin)) {
            check_bcrypt(text)?;
            Algorithm::Bcrypt
        } else if text.starts_with("$argon2") {
            check_argon2(text)?;
            Algorithm::Argon2
        } else {
            return Err(fast(text).map_or(RefusedHash::Unknown, RefusedHash::Fast));
        };
        Ok(Self { text: text.to_owned(), algorithm })
    }

    /// The text that it was read from.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the password is the right one. Takes long.
    pub fn verify(&self, password: &[u8]) -> bool {
        match self.algorithm {
            Algorithm::Bcrypt => bcrypt::verify(password, &self.text).unwrap_or(false),
            Algorithm::Argon2 => PasswordHash::new(&self.text)
                .is_ok_and(|hash| Argon2::default().verify_password(password, &hash).is_ok()),
        }
    }
}

/// A new hash of a password.
///
/// # Errors
/// The algorithm does not take the password: bcrypt reads 72 bytes and no NUL.
pub fn hash(algorithm: Algorithm, password: &[u8]) -> io::Result<String> {
    let wrong = |why: &str| io::Error::new(io::ErrorKind::InvalidInput, why.to_owned());
    let mut salt = [0; SALT_BYTES];
    aws_lc_rs::rand::fill(&mut salt).map_err(|_| io::Error::other("the system has no random bytes"))?;
    match algorithm {
        Algorithm::Bcrypt if password.len() > BCRYPT_BYTES_MAX || password.contains(&0) => {
            Err(wrong("bcrypt reads 72 bytes of a password, and none behind a NUL: use argon2"))
        }
        Algorithm::Bcrypt => bcrypt::hash_with_salt(password, BCRYPT_COST, salt)
            .map(|parts| parts.format_for_version(bcrypt::Version::TwoY))
            .map_err(io::Error::other),
        Algorithm::Argon2 => {
            let salt = SaltString::encode_b64(&salt).map_err(|error| wrong(&error.to_string()))?;
            let hash = Argon2::default().hash_password(password, &salt);
            hash.map(|hash| hash.to_string()).map_err(|error| wrong(&error.to_string()))
        }
    }
}

fn check_bcrypt(text: &str) -> Result<(), RefusedHash> {
    let is_of_hash = |byte: u8| byte.is_ascii_alphanumeric() || b"./$".contains(&byte);
    if text.len() != BCRYPT_TEXT_BYTES || !text.bytes().all(is_of_hash) || text.as_bytes()[6] != b'$' {
        return Err(RefusedHash::Broken);
    }
    match text[4..6].parse::<u32>() {
        Ok(4..=BCRYPT_COST_MAX) => {}
        Ok(_) => return Err(RefusedHash::Expensive),
        Err(_) => return Err(RefusedHash::Broken),
    }
    // Cheap: it is decoded, not computed.
    text.parse::<bcrypt::HashParts>().map(drop).map_err(|_| RefusedHash::Broken)
}

fn check_argon2(text: &str) -> Result<(), RefusedHash> {
    let hash = PasswordHash::new(text).map_err(|_| RefusedHash::Broken)?;
    if hash.salt.is_none() || hash.hash.is_none() {
        return Err(RefusedHash::Broken);
    }
    argon2::Algorithm::try_from(hash.algorithm).map_err(|_| RefusedHash::Broken)?;
    let params = Params::try_from(&hash).map_err(|_| RefusedHash::Broken)?;
    let is_bearable =
        params.m_cost() <= ARGON2_KIB_MAX && params.t_cost() <= ARGON2_PASSES_MAX && params.p_cost() <= 16;
    if is_bearable { Ok(()) } else { Err(RefusedHash::Expensive) }
}

/// The name of the algorithm, if it is a fast one that `.htpasswd` files may have.
fn fast(text: &str) -> Option<&'static str> {
    let begins = [
        ("$apr1$", "MD5"),
        ("$1$", "MD5"),
        ("{SHA}", "SHA-1"),
        ("{SSHA}", "SHA-1"),
        ("$5$", "SHA-256 crypt"),
        ("$6$", "SHA-512 crypt"),
    ];
    let known = begins.iter().find(|(begin, _)| text.starts_with(begin)).map(|(_, name)| *name);
    // Traditional crypt: thirteen letters of its alphabet.
    let is_of_crypt = |byte: u8| byte.is_ascii_alphanumeric() || b"./".contains(&byte);
    let is_crypt = text.len() == 13 && text.bytes().all(is_of_crypt);
    known.or(is_crypt.then_some("traditional crypt"))
}

/// Some 200 ms: half of what Caddy takes, twice what OWASP asks for.
const BCRYPT_COST: u32 = 12;

/// Two seconds.
const BCRYPT_COST_MAX: u32 = 15;

/// What bcrypt reads of a password.
const BCRYPT_BYTES_MAX: usize = 72;

/// `$2y$12$`, 22 letters of salt and 31 of the hash.
const BCRYPT_TEXT_BYTES: usize = 60;

/// Memory for one verification. Several run at a time.
const ARGON2_KIB_MAX: u32 = 256 * 1024;

const ARGON2_PASSES_MAX: u32 = 10;

const SALT_BYTES: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    /// Of PHP's `password_hash`: the password is `secret`.
    pub(crate) const OF_HTPASSWD: &str = "$2y$04$M8GN1LhxmWzK34qTmzdeB.JoTi2x7t9.WZghfLTSiQkvuJujEDW9.";

    #[test]
    fn what_is_made_is_verified() {
        for algorithm in [Algorithm::Bcrypt, Algorithm::Argon2] {
            let text = hash(algorithm, "pässword".as_bytes()).unwrap();
            let made = Hash::parse(&text).unwrap();
            assert!(made.verify("pässword".as_bytes()), "{text}");
            assert!(!made.verify(b"password") && !made.verify(b""));
            assert_ne!(text, hash(algorithm, "pässword".as_bytes()).unwrap(), "salted");
        }
        assert!(hash(Algorithm::Bcrypt, &[b'x'; 73]).is_err());
    }

    #[test]
    fn cheap_and_broken_hashes_are_refused() {
        for (text, why) in [
            ("$apr1$abcdefgh$0123456789012345678901", RefusedHash::Fast("MD5")),
            ("{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=", RefusedHash::Fast("SHA-1")),
            ("$6$abc$def", RefusedHash::Fast("SHA-512 crypt")),
            ("rl.3StKT.4T8M", RefusedHash::Fast("traditional crypt")),
            ("secret", RefusedHash::Unknown),
            ("", RefusedHash::Unknown),
            ("$2y$12$short", RefusedHash::Broken),
            (&OF_HTPASSWD.replace("$04$", "$16$"), RefusedHash::Expensive),
            (&OF_HTPASSWD.replace("$04$", "$xx$"), RefusedHash::Broken),
            ("$argon2id$v=19$m=19456,t=2,p=1$c2FsdHNhbHQ", RefusedHash::Broken),
            (
                "$argon2id$v=19$m=1048576,t=2,p=1$c2FsdHNhbHQ$q1TtV1NGl3OUHmVHCEnIVdoCXVrYdDUzWQ2cqHDHAv0",
                RefusedHash::Expensive,
            ),
        ] {
            assert_eq!(Hash::parse(text), Err(why), "{text}");
        }
    }
}
