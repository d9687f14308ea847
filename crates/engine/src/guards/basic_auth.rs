//! Names and passwords (RFC 7617), verified by jobs, and remembered for a while.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use baton_http::RequestHead;
use baton_password::{Users, Verified};

/// The users that may ask, and what their clients are told.
#[derive(Debug)]
pub struct BasicAuth {
    /// Value of `WWW-Authenticate`.
    challenge: String,
    users: Users,
    verified: Verified,
    /// Verifications under way.
    under_way: AtomicUsize,
}

/// What a client says of its user.
#[derive(PartialEq, Eq)]
pub(crate) struct Credentials {
    /// The user's name.
    pub(crate) name: Box<str>,
    password: Box<[u8]>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Credentials({:?})", self.name)
    }
}

/// What is known of a request's user.
#[derive(Debug)]
pub(crate) enum Standing {
    /// It is this one.
    Known(Box<str>),
    /// It has to be verified.
    Unverified(Verification),
    /// There is none.
    Absent,
    /// Too many are being verified.
    Busy,
}

/// The work of verifying a password: some tens of milliseconds.
#[derive(Debug)]
pub(crate) struct Verification {
    auth: Arc<BasicAuth>,
    credentials: Credentials,
    now_ms: u64,
}

impl BasicAuth {
    /// Users of a realm, whose name has neither quotes nor backslashes.
    pub fn new(realm: &str, users: Users) -> Self {
        let challenge = format!("Basic realm=\"{realm}\", charset=\"UTF-8\"");
        Self { challenge, users, verified: Verified::default(), under_way: AtomicUsize::new(0) }
    }

    /// Value of `WWW-Authenticate`.
    pub(crate) fn challenge(&self) -> &str {
        &self.challenge
    }

    /// What is known of the user.
    pub(crate) fn standing(self: &Arc<Self>, head: &RequestHead<'_>, now_ms: u64) -> Standing {
        let Some(credentials) = Credentials::of(head) else { return Standing::Absent };
        if self.verified.contains(&credentials.name, &credentials.password, now_ms) {
            return Standing::Known(credentials.name);
        }
        if self.under_way.fetch_add(1, Relaxed) >= UNDER_WAY_MAX {
            self.under_way.fetch_sub(1, Relaxed);
            return Standing::Busy;
        }
        Standing::Unverified(Verification { auth: Arc::clone(self), credentials, now_ms })
    }
}

impl Verification {
    /// Does the work. Returns the user, if the password is right.
    pub(crate) fn run(self) -> Option<Box<str>> {
        let Credentials { name, password } = &self.credentials;
        if !self.auth.users.verify(name, password) {
            return None;
        }
        self.auth.verified.note(name, password, self.now_ms);
        Some(name.clone())
    }
}

impl Drop for Verification {
    fn drop(&mut self) {
        self.auth.under_way.fetch_sub(1, Relaxed);
    }
}

impl Credentials {
    /// What the one field `Authorization` says. Of several fields, applications might believe another one.
    fn of(head: &RequestHead<'_>) -> Option<Self> {
        let mut fields = head.fields().filter(|(name, _)| name.eq_ignore_ascii_case("Authorization"));
        let (Some((_, value)), None) = (fields.next(), fields.next()) else { return None };
        let (scheme, text) = value.split_at_checked("Basic".len())?;
        if !scheme.eq_ignore_ascii_case(b"Basic") || !text.starts_with(b" ") {
            return None;
        }
        let text = STANDARD.decode(text.trim_ascii()).ok()?;
        let colon = text.iter().position(|byte| *byte == b':')?;
        let name = std::str::from_utf8(&text[..colon]).ok()?;
        // What cannot be a name must not get into logs and parameters either.
        if name.is_empty() || name.chars().any(char::is_control) {
            return None;
        }
        Some(Self { name: name.into(), password: text[colon + 1..].into() })
    }
}

/// Verifications at a time, in one process. Beyond it: 503. Each may take as much memory as its hash says.
const UNDER_WAY_MAX: usize = 32;

#[cfg(test)]
mod tests {
    use baton_http::HeadLimits;
    use baton_password::{Algorithm, Hash, hash};

    use super::*;

    fn credentials(fields: &str) -> Option<(String, Vec<u8>)> {
        let text = format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
        let head = RequestHead::parse(text.as_bytes(), &HeadLimits::default()).unwrap();
        Credentials::of(&head).map(|one| (one.name.into(), one.password.into()))
    }

    #[test]
    fn what_a_client_says() {
        let ada = Some(("ada".to_owned(), b"a:b".to_vec()));
        assert_eq!(credentials("Authorization: Basic YWRhOmE6Yg==\r\n"), ada);
        assert_eq!(credentials("authorization: bASIC   YWRhOmE6Yg==\r\n"), ada);
        for fields in [
            "",
            "Authorization: Basic\r\n",
            "Authorization: BasicYWRhOmE6Yg==\r\n",
            "Authorization: Bearer YWRhOmE6Yg==\r\n",
            "Authorization: Basic YWRhOmE6Yg\r\n",
            "Authorization: Basic YWRh\r\n",
            "Authorization: Basic OnNlY3JldA==\r\n",
            "Authorization: Basic YQpiOmM=\r\n",
            "Authorization: Basic /zph\r\n",
            "Authorization: Basic YWRhOmE6Yg==\r\nAuthorization: Basic YWRhOmE6Yg==\r\n",
        ] {
            assert_eq!(credentials(fields), None, "{fields}");
        }
    }

    #[test]
    fn a_bounded_number_is_verified_at_a_time() {
        let made = hash(Algorithm::Argon2, b"a:b").unwrap();
        let users = Users::new([("ada".to_owned(), Hash::parse(&made).unwrap())]);
        let auth = Arc::new(BasicAuth::new("all", users));
        let text = b"GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Basic YWRhOmE6Yg==\r\n\r\n";
        let head = RequestHead::parse(text, &HeadLimits::default()).unwrap();
        let mut all: Vec<_> = (0..UNDER_WAY_MAX).map(|_| auth.standing(&head, 5)).collect();
        assert!(all.iter().all(|one| matches!(one, Standing::Unverified(_))));
        assert!(matches!(auth.standing(&head, 5), Standing::Busy));
        let Some(Standing::Unverified(one)) = all.pop() else { panic!("a verification") };
        assert_eq!(one.run().as_deref(), Some("ada"));
        assert!(matches!(auth.standing(&head, 6), Standing::Known(name) if &*name == "ada"));
    }
}
