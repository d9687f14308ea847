//! Names and passwords (RFC 7617), verified by jobs, and remembered for a while.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use baton_http::RequestHead;
use baton_password::{Tag, Users, Verified};
use baton_shares::{ClientKey, Full, has_room};

use crate::condition::RequestView;

/// The users that may ask, and what their clients are told.
#[derive(Debug)]
pub struct BasicAuth {
    /// Value of `WWW-Authenticate`.
    challenge: String,
    users: Users,
    verified: Verified,
    under_way: Mutex<Vec<UnderWay>>,
}

/// A password that is being verified: once, for all requests that have it meanwhile.
#[derive(Debug)]
struct UnderWay {
    tag: Tag,
    is_right: Arc<OnceLock<bool>>,
    /// Whose was the first request with it.
    from: Option<ClientKey>,
}

/// What a client says of its user.
#[derive(PartialEq, Eq)]
pub(crate) struct Credentials {
    /// The user's name.
    pub name: Box<str>,
    password: Box<[u8]>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Credentials({:?})", self.name)
    }
}

/// What is known of a request's user.
#[derive(Debug)]
pub enum Standing {
    /// It is this one.
    Known(Box<str>),
    /// It has to be verified.
    Unverified(Verification),
    /// There is none.
    Absent,
    /// Too many are being verified, for this client or for all.
    Busy {
        /// It is the client's share that is used up.
        is_its_share: bool,
    },
}

/// The work of verifying a password: some tens of milliseconds.
#[derive(Debug)]
pub struct Verification {
    auth: Arc<BasicAuth>,
    credentials: Credentials,
    tag: Tag,
    /// Shared with [`UnderWay`].
    is_right: Arc<OnceLock<bool>>,
    now_ms: u64,
}

impl BasicAuth {
    /// Users of a realm, whose name has neither quotes nor backslashes.
    pub fn new(realm: &str, users: Users) -> Self {
        let challenge = format!("Basic realm=\"{realm}\", charset=\"UTF-8\"");
        Self { challenge, users, verified: Verified::default(), under_way: Mutex::default() }
    }

    /// Value of `WWW-Authenticate`.
    pub fn challenge(&self) -> &str {
        &self.challenge
    }

    /// What is known of the user.
    pub fn standing(self: &Arc<Self>, view: &RequestView<'_>, now_ms: u64) -> Standing {
        let Some(credentials) = Credentials::of(view.head) else { return Standing::Absent };
        let tag = self.verified.tag(&credentials.name, &credentials.password);
        if self.verified.contains(&tag, now_ms) {
            return Standing::Known(credentials.name);
        }
        let from = view.address.map(ClientKey::of);
        let mut under_way = self.under_way();
        let is_right = match under_way.iter().find(|one| one.tag == tag) {
            Some(one) => Arc::clone(&one.is_right),
            None => {
                let held = from.map(|_| under_way.iter().filter(|one| one.from == from).count() as u64);
                if let Err(full) = has_room(held, under_way.len() as u64, 1, UNDER_WAY_MAX) {
                    return Standing::Busy { is_its_share: full == Full::Share };
                }
                let is_right = Arc::default();
                under_way.push(UnderWay { tag, is_right: Arc::clone(&is_right), from });
                is_right
            }
        };
        let auth = Arc::clone(self);
        Standing::Unverified(Verification { auth, credentials, tag, is_right, now_ms })
    }

    /// No update is ever left incomplete, so a panic of another thread does no harm.
    fn under_way(&self) -> MutexGuard<'_, Vec<UnderWay>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Verification {
    /// Does the work, or waits for another thread that does it. Returns the user, if the password is right.
    pub fn run(self) -> Option<Box<str>> {
        let Credentials { name, password } = &self.credentials;
        if !self.is_right.get_or_init(|| self.auth.users.verify(name, password)) {
            return None;
        }
        self.auth.verified.note(self.tag, self.now_ms);
        Some(name.clone())
    }
}

impl Drop for Verification {
    fn drop(&mut self) {
        let mut under_way = self.auth.under_way();
        // All are cloned and dropped under this lock, so the last one leaves that of the list alone.
        self.is_right = Arc::default();
        under_way.retain(|one| Arc::strong_count(&one.is_right) > 1);
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

/// Passwords that are verified at a time, in one process. Beyond it: 503, and beyond a client's share, 429. Each may take as
/// much memory as its hash says.
const UNDER_WAY_MAX: u64 = 32;

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
    fn a_bounded_number_of_passwords_is_verified_at_a_time_and_each_once() {
        let made = hash(Algorithm::Argon2, b"a:b").unwrap();
        let users = Users::new([("ada".to_owned(), Hash::parse(&made).unwrap())]);
        let auth = Arc::new(BasicAuth::new("all", users));
        let standing_from = |host: u8, password: &str, now_ms| {
            let login = STANDARD.encode(format!("ada:{password}"));
            let text = format!("GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Basic {login}\r\n\r\n");
            let head = RequestHead::parse(text.as_bytes(), &HeadLimits::default()).unwrap();
            auth.standing(
                &RequestView { head: &head, address: Some([192, 0, 2, host].into()), has_certificate: false },
                now_ms,
            )
        };
        let standing = |password: &str, now_ms| standing_from(1, password, now_ms);
        let mut right: Vec<_> = (0..64).map(|_| standing("a:b", 5)).collect();
        let mut wrong: Vec<_> = (1..24).map(|guess| standing(&guess.to_string(), 5)).collect();
        assert!(right.iter().chain(&wrong).all(|one| matches!(one, Standing::Unverified(_))));
        assert!(matches!(standing("one too many", 5), Standing::Busy { is_its_share: true }));
        // Others have their share, as long as there is room at all.
        wrong.extend((0..8).map(|guess| standing_from(2, &format!("other {guess}"), 5)));
        assert!(wrong.iter().all(|one| matches!(one, Standing::Unverified(_))));
        assert!(matches!(standing_from(4, "no room", 5), Standing::Busy { is_its_share: false }));
        let Some(Standing::Unverified(one)) = right.pop() else { panic!("a verification") };
        assert_eq!(one.run().as_deref(), Some("ada"));
        assert!(matches!(standing("a:b", 6), Standing::Known(name) if &*name == "ada"));
        // The others with this password need no work any more.
        let Some(Standing::Unverified(other)) = right.pop() else { panic!("a verification") };
        assert_eq!(other.is_right.get(), Some(&true));
        assert_eq!(other.run().as_deref(), Some("ada"));
        drop((right, wrong));
        assert!(auth.under_way().is_empty());
    }
}
