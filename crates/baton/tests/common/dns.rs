//! A DNS server whose answers a test changes.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};

/// A DNS server that knows `app.test`.
pub(crate) struct Dns {
    /// Where it listens.
    pub(crate) address: SocketAddr,
    zone: Arc<Mutex<Zone>>,
}

/// What it knows.
#[derive(Default)]
pub(crate) struct Zone {
    pub(crate) addresses: Vec<Ipv4Addr>,
    pub(crate) is_silent: bool,
    pub(crate) questions: usize,
}

impl Dns {
    /// It knows no address yet.
    pub(crate) fn start() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let address = socket.local_addr().expect("an address");
        let zone = Arc::new(Mutex::new(Zone::default()));
        let shared = Arc::clone(&zone);
        std::thread::spawn(move || {
            let mut question = [0; 512];
            while let Ok((count, client)) = socket.recv_from(&mut question) {
                let mut zone = shared.lock().expect("a zone");
                zone.questions += 1;
                if !zone.is_silent {
                    socket.send_to(&answer(&question[..count], &zone.addresses), client).expect("a client");
                }
            }
        });
        Self { address, zone }
    }

    /// Changes what it knows, or looks at that.
    pub(crate) fn change<R>(&self, change: impl FnOnce(&mut Zone) -> R) -> R {
        change(&mut self.zone.lock().expect("a zone"))
    }
}

/// The answer to a question (RFC 1035, section 4): A records with a time of a second.
fn answer(question: &[u8], addresses: &[Ipv4Addr]) -> Vec<u8> {
    const A: u8 = 1;
    let is_known = question[12..].starts_with(b"\x03app\x04test\0");
    let wants_a = question[question.len() - 3] == A;
    let addresses = if is_known && wants_a { addresses } else { &[] };
    let no_such_name = if is_known { 0 } else { 3 };
    let mut out = question[..2].to_vec();
    out.extend_from_slice(&[0x81, 0x80 | no_such_name, 0, 1, 0, addresses.len() as u8, 0, 0, 0, 0]);
    out.extend_from_slice(&question[12..]);
    for address in addresses {
        out.extend_from_slice(&[0xc0, 12, 0, A, 0, 1, 0, 0, 0, 1, 0, 4]);
        out.extend_from_slice(&address.octets());
    }
    out
}
