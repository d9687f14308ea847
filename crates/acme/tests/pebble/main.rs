//! The process against a real authority, with a master and workers that the test plays.

mod authority;
mod master;
#[path = "../../../baton/tests/common/port.rs"]
mod port;
mod refusing;
mod workers;

use std::time::Duration;

use baton_acme::{AcmeSettings, ChallengeKind, ExternalAccount, FromAcme, Names, UnixTime};
use baton_tls::{Identity, PemFile};

use self::authority::{HMAC_KEY, Habits, Pebble, wait_until};
use self::master::{Master, settings};
use self::refusing::Refusing;
use self::workers::Workers;

fn identity(pem: &str) -> Identity {
    let file = PemFile::new("the certificate", pem.as_bytes().to_vec());
    Identity::load(&file, &file).expect("a chain and its key")
}

/// Goal: several names by either way of proof, stored for the next start; challenges are gone afterwards.
#[test]
fn certificates_are_obtained_by_either_challenge() {
    for challenge in [ChallengeKind::Http01, ChallengeKind::TlsAlpn01] {
        let folder = tempfile::tempdir().expect("a folder");
        let (workers, ports) = Workers::start();
        let Some(pebble) = Pebble::start(folder.path(), ports, Habits::default()) else { return };
        // One name at a time by TLS-ALPN-01: these workers look at no server name.
        let names: &[&[&str]] = match challenge {
            ChallengeKind::Http01 => &[&["example.com"], &["example.org", "www.example.org"]],
            ChallengeKind::TlsAlpn01 => &[&["example.com"], &["example.org"]],
        };
        let settings = AcmeSettings {
            challenges: vec![challenge],
            ..settings(&pebble, &folder.path().join("store"), names)
        };
        let mut master = Master::start(&settings, &workers);
        for names in names {
            let pem = master.wait_for_certificate(names[0]);
            let identity = identity(&pem);
            assert!(names.iter().all(|name| identity.certificate().covers(name)), "{names:?}");
        }
        assert_eq!(workers.answered(), 0);
        master.end();
    }
}

/// Goal: a stored certificate is used again without an order; when the authority wants it renewed, it is, with another
/// key, and the plan after that is far away.
#[test]
fn renewal_follows_the_authority() {
    let folder = tempfile::tempdir().expect("a folder");
    let (workers, ports) = Workers::start();
    let Some(pebble) = Pebble::start(folder.path(), ports, Habits::default()) else { return };
    let settings = settings(&pebble, &folder.path().join("store"), &[&["example.org"]]);
    let mut master = Master::start(&settings, &workers);
    let first = master.wait_for_certificate("example.org");
    master.end();

    let mut master = Master::start(&settings, &workers);
    assert_eq!(master.wait_for_certificate("example.org"), first, "the stored one is told at the start");
    let plan = |message: &FromAcme| match message {
        FromAcme::Plan { order_at, .. } => Some(*order_at),
        _ => None,
    };
    let now = UnixTime::of(std::time::SystemTime::now());
    assert!(master.wait_for("a plan", plan) > now.plus(Duration::from_secs(40 * 86_400)));
    master.end();

    pebble.want_renewal(&first);
    let mut master = Master::start(&settings, &workers);
    assert_eq!(master.wait_for_certificate("example.org"), first);
    let second = master.wait_for_certificate("example.org");
    assert_ne!(key(&second), key(&first));
    master.end();
}

fn key(pem: &str) -> &str {
    &pem[pem.find("-----BEGIN PRIVATE").expect("a key")..]
}

/// Goal: added names and other profiles are ordered without a restart.
#[test]
fn new_settings_are_followed() {
    let folder = tempfile::tempdir().expect("a folder");
    let (workers, ports) = Workers::start();
    let Some(pebble) = Pebble::start(folder.path(), ports, Habits::default()) else { return };
    let store = folder.path().join("store");
    let mut master = Master::start(&settings(&pebble, &store, &[&["example.org"]]), &workers);
    master.wait_for_certificate("example.org");
    let names: &[&[&str]] = &[&["example.org", "www.example.org"]];
    let short = AcmeSettings { profile: Some("shortlived".into()), ..settings(&pebble, &store, names) };
    master.configure(&short);
    let pem = master.wait_for_certificate("example.org");
    let identity = identity(&pem);
    assert!(identity.certificate().covers("www.example.org"));
    assert!(identity.certificate().days_left(std::time::SystemTime::now()) < 7);
    master.end();
}

/// Goal: nonces that an authority rejects are replaced.
#[test]
fn rejected_nonces_are_replaced() {
    let folder = tempfile::tempdir().expect("a folder");
    let (workers, ports) = Workers::start();
    let habits = Habits { rejected_nonces: 20, ..Habits::default() };
    let Some(pebble) = Pebble::start(folder.path(), ports, habits) else { return };
    let names: &[&[&str]] = &[&["example.org"]];
    let mut master = Master::start(&settings(&pebble, &folder.path().join("store"), names), &workers);
    master.wait_for_certificate("example.org");
    master.end();
}

/// Goal: an authority that knows its customers gets the account key that it wants, and one that refuses says why.
#[test]
fn external_accounts_are_bound() {
    let folder = tempfile::tempdir().expect("a folder");
    let (workers, ports) = Workers::start();
    let habits = Habits { known_customers_only: true, ..Habits::default() };
    let Some(pebble) = Pebble::start(folder.path(), ports, habits) else { return };
    let store = folder.path().join("store");
    let stranger = settings(&pebble, &store, &[&["example.org"]]);
    let mut master = Master::start(&stranger, &workers);
    let (error, _) = master.wait_for_error("example.org");
    assert!(error.contains("externalAccountRequired") && error.contains("remedy"), "{error}");
    master.end();

    let account = ExternalAccount { key_id: "kid-1".into(), hmac_key: HMAC_KEY.into() };
    let customer = AcmeSettings { external_account: Some(account), ..stranger };
    let mut master = Master::start(&customer, &workers);
    master.wait_for_certificate("example.org");
    master.end();
}

/// Goal: a proof that fails says which name and why, and does not hold up other certificates; the next attempt takes
/// the other kind of challenge.
#[test]
fn a_failed_proof_is_explained() {
    let folder = tempfile::tempdir().expect("a folder");
    let (workers, mut ports) = Workers::start();
    ports.http = port::free_port();
    let Some(pebble) = Pebble::start(folder.path(), ports, Habits::default()) else { return };
    let names: &[&[&str]] = &[&["blocked.example"], &["example.org"]];
    let mut master = Master::start(&settings(&pebble, &folder.path().join("store"), names), &workers);
    let (error, failures) = master.wait_for_error("blocked.example");
    assert!(error.contains("rejectedIdentifier") && failures == 1, "{error}");
    let (error, failures) = master.wait_for_error("example.org");
    assert!(error.contains("by http-01: example.org: ") && error.contains("port 80"), "{error}");
    assert_eq!(failures, 1);
    wait_until("no challenge is answered", || workers.answered() == 0);
    master.end();
}

/// Goal: while the authority is away, the stored certificate stays, and the error says so; an account that it has
/// forgotten meanwhile is replaced.
#[test]
fn an_authority_that_was_away_has_forgotten_the_account() {
    let folder = tempfile::tempdir().expect("a folder");
    let (workers, ports) = Workers::start();
    let Some(mut pebble) = Pebble::start(folder.path(), ports, Habits::default()) else { return };
    let store = folder.path().join("store");
    let one: &[&[&str]] = &[&["example.org"]];
    let mut master = Master::start(&settings(&pebble, &store, one), &workers);
    let first = master.wait_for_certificate("example.org");
    master.end();

    pebble.go_away();
    let two: &[&[&str]] = &[&["example.org"], &["example.com"]];
    let mut master = Master::start(&settings(&pebble, &store, two), &workers);
    assert_eq!(master.wait_for_certificate("example.org"), first);
    let (error, failures) = master.wait_for_error("example.com");
    assert!(error.contains("the authority is down") && failures == 0, "{error}");
    master.end();

    pebble.come_back();
    let mut master = Master::start(&settings(&pebble, &store, two), &workers);
    let (error, _) = master.wait_for_error("example.com");
    assert!(error.contains("accountDoesNotExist"), "{error}");
    master.end();
    let mut master = Master::start(&settings(&pebble, &store, two), &workers);
    master.wait_for_certificate("example.com");
    master.end();
}

/// Goal: a rate limit is respected for as long as the authority says, and a server error makes all wait; both say why.
#[test]
fn refusals_are_respected() {
    const LIMIT: &str =
        r#"{"type":"urn:ietf:params:acme:error:rateLimited","detail":"too many certificates"}"#;
    const ERROR: &str = r#"{"type":"urn:ietf:params:acme:error:serverInternal","detail":"out of order"}"#;
    for (status, problem, expected, wait_s, failures) in [
        ("429 Too Many Requests", LIMIT, "too many certificates (rateLimited)", 129_600, 1),
        ("503 Service Unavailable", ERROR, "out of order (serverInternal)", 7_200, 0),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let retry_after = if failures == 1 { "Retry-After: 129600\r\n" } else { "Retry-After: 7200\r\n" };
        let authority = Refusing::start(folder.path(), (status, retry_after, problem));
        let names = Names::new(vec!["example.org".to_owned()]).expect("good names");
        let settings = AcmeSettings {
            directory: authority.directory.clone(),
            store: folder.path().join("store"),
            email: None,
            external_account: None,
            profile: None,
            challenges: vec![ChallengeKind::Http01],
            roots: Some(folder.path().join("roots.pem")),
            certificates: vec![names],
        };
        let now = UnixTime::of(std::time::SystemTime::now());
        let mut master = Master::start(&settings, &Workers::default());
        let (at, told, error) = master.wait_for("a refusal", |message| match message {
            FromAcme::Plan { order_at, failures, error: Some(error), .. } => {
                Some((*order_at, *failures, error.clone()))
            }
            _ => None,
        });
        assert!(error.contains(expected), "{error}");
        assert_eq!(told, failures);
        assert!(at >= now.plus(Duration::from_secs(wait_s)), "{status}");
        assert_eq!(authority.orders(), 1);
        master.end();
    }
}
