//! The secrets behind the keys of a connection of TLS 1.3.
//!
//! The library gives keys, but not the secrets from which later keys come. It tells them to a key log, while it takes the
//! last step of a handshake: ours notes them for the thread that has asked for that step, and for nothing else.

use std::cell::RefCell;

use rustls::KeyLog;
use zeroize::Zeroizing;

/// A secret; cleared when it is dropped.
pub(crate) type Secret = Zeroizing<Vec<u8>>;

/// The secrets of both directions.
#[derive(Default)]
pub(crate) struct TrafficSecrets {
    pub(crate) of_client: Secret,
    pub(crate) of_server: Secret,
}

/// A key log for configurations of servers and clients.
#[derive(Debug)]
pub(crate) struct SecretLog;

thread_local! {
    static NOTED: RefCell<TrafficSecrets> = RefCell::default();
}

/// The secrets that the library has told this thread since this was last called.
pub(crate) fn take() -> TrafficSecrets {
    NOTED.take()
}

impl TrafficSecrets {
    /// Adds what was told later.
    pub(crate) fn add(&mut self, later: Self) {
        for (own, later) in [(&mut self.of_client, later.of_client), (&mut self.of_server, later.of_server)] {
            if !later.is_empty() {
                *own = later;
            }
        }
    }
}

impl KeyLog for SecretLog {
    fn log(&self, label: &str, _client_random: &[u8], secret: &[u8]) {
        NOTED.with_borrow_mut(|noted| match label {
            CLIENT => noted.of_client = Secret::new(secret.to_vec()),
            SERVER => noted.of_server = Secret::new(secret.to_vec()),
            _ => {}
        });
    }

    fn will_log(&self, label: &str) -> bool {
        matches!(label, CLIENT | SERVER)
    }
}

const CLIENT: &str = "CLIENT_TRAFFIC_SECRET_0";
const SERVER: &str = "SERVER_TRAFFIC_SECRET_0";
