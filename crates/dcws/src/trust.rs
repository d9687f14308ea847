//! Trust between servers: one secret that all of them have. Who has it may lend documents to the others and hear their
//! loads; others get no answer.
//!
//! What servers say to each other is signed (HMAC-SHA-256), for one purpose each, so that no message passes for
//! another. It is not encrypted: it tells which public documents are where.

use std::fmt;

use aws_lc_rs::hmac;

/// The secret.
#[derive(Clone)]
pub struct Key(hmac::Key);

/// What a signature is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A question of one server to another.
    Question,
    /// Its answer.
    Reply,
    /// A request for a document that is to be copied: any server may make it, for that home.
    Copy,
}

impl Key {
    /// The secret in a file, without the space around it.
    ///
    /// # Errors
    /// It is too short to be one.
    pub fn from_file(contents: &[u8]) -> Result<Self, &'static str> {
        let secret = contents.trim_ascii();
        if secret.len() < SECRET_BYTES_MIN {
            return Err(
                "the secret is too short: it needs 32 characters, such as `openssl rand -hex 32` prints",
            );
        }
        Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, secret)))
    }

    /// What a server says to the home of a document that it copies. It is no secret between servers: without it, clients
    /// get the same documents.
    pub fn copy_token(&self, home: &crate::Origin) -> String {
        self.sign(Purpose::Copy, home.to_string().as_bytes())
    }

    pub(crate) fn sign(&self, purpose: Purpose, text: &[u8]) -> String {
        let mut context = hmac::Context::with_key(&self.0);
        context.update(purpose.label());
        context.update(text);
        hex(context.sign().as_ref())
    }

    /// Whether the text was signed by a server with this key. Takes the same time for all wrong signatures.
    pub(crate) fn verifies(&self, purpose: Purpose, text: &[u8], signature: &[u8]) -> bool {
        let expected = self.sign(purpose, text);
        aws_lc_rs::constant_time::verify_slices_are_equal(expected.as_bytes(), signature).is_ok()
    }
}

impl Purpose {
    const fn label(self) -> &'static [u8] {
        match self {
            Self::Question => b"baton documents question 2\n",
            Self::Reply => b"baton documents reply 1\n",
            Self::Copy => b"baton documents copy 1\n",
        }
    }
}

impl fmt::Debug for Key {
    /// Never shows the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The field of a request that has the head of a question and its signature, or a copy's token.
pub const SIGNATURE_FIELD: &str = "Baton-Documents";

/// 128 bits in hexadecimal.
const SECRET_BYTES_MIN: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_for_one_text_one_purpose_and_one_key() {
        let key = Key::from_file(b"0123456789abcdef0123456789abcdef\n").unwrap();
        let other = Key::from_file(b"0123456789abcdef0123456789abcdeF").unwrap();
        let signature = key.sign(Purpose::Question, b"text");
        assert!(key.verifies(Purpose::Question, b"text", signature.as_bytes()));
        assert!(!key.verifies(Purpose::Reply, b"text", signature.as_bytes()));
        assert!(!key.verifies(Purpose::Question, b"texts", signature.as_bytes()));
        assert!(!other.verifies(Purpose::Question, b"text", signature.as_bytes()));
        assert!(!key.verifies(Purpose::Question, b"text", b""));
        assert!(Key::from_file(b"  short  ").is_err());
    }
}
