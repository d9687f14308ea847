//! Proofs for certificate authorities that a name leads to this server (HTTP-01, RFC 8555, 8.3): short answers below a
//! path that is the same on all sites. They come before the choice of a site: an authority asks in clear text, by a
//! name that may have no site there, and a redirection would lead it astray. So they come before the guards of a site as well:
//! authorities ask from addresses that they do not publish. Nothing but a token that is asked for at the time is answered.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

/// The proofs that a worker answers with, by token. All its loops share them.
#[derive(Debug, Default)]
pub struct HttpProofs(RwLock<HashMap<String, Arc<str>>>);

/// Where authorities ask, in front of the token.
const PATH: &[u8] = b"/.well-known/acme-challenge/";

impl HttpProofs {
    /// Answers with `key_authorization` to requests for `token`.
    pub fn put(&self, token: String, key_authorization: &str) {
        let mut proofs = self.0.write().unwrap_or_else(PoisonError::into_inner);
        proofs.insert(token, key_authorization.into());
    }

    /// Leaves requests for `token` to the sites again.
    pub fn remove(&self, token: &str) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(token);
    }

    /// The answer to a request for that path, if there is one.
    pub fn answer(&self, path: &[u8]) -> Option<Arc<str>> {
        let token = std::str::from_utf8(path.strip_prefix(PATH)?).ok()?;
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(token).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_token_is_answered() {
        let proofs = HttpProofs::default();
        proofs.put("abc".into(), "abc.thumb");
        let answer = |path: &str| proofs.answer(path.as_bytes()).map(|answer| answer.to_string());
        assert_eq!(answer("/.well-known/acme-challenge/abc"), Some("abc.thumb".into()));
        for other in ["/.well-known/acme-challenge/", "/.well-known/acme-challenge/abcd", "/abc", "/"] {
            assert_eq!(answer(other), None, "{other}");
        }
        proofs.remove("abc");
        assert_eq!(answer("/.well-known/acme-challenge/abc"), None);
    }
}
