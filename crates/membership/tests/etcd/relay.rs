//! A network between a host and etcd that a test can cut.

use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// A port that leads to another one, unless it is cut.
pub(crate) struct Relay {
    port: u16,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Default)]
struct Shared {
    is_cut: bool,
    streams: Vec<TcpStream>,
}

impl Relay {
    /// Leads to this port.
    pub(crate) fn to(target: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let shared = Arc::<Mutex<Shared>>::default();
        let known = Arc::clone(&shared);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = TcpStream::connect(("127.0.0.1", target)) else { continue };
                let mut known = known.lock().expect("no panic");
                if known.is_cut {
                    continue;
                }
                for (from, to) in [(&client, &server), (&server, &client)] {
                    let (mut from, mut to) =
                        (from.try_clone().expect("a copy"), to.try_clone().expect("a copy"));
                    thread::spawn(move || {
                        let _ = io::copy(&mut from, &mut to);
                        let _ = to.shutdown(Shutdown::Write);
                    });
                }
                known.streams.extend([client, server]);
            }
        });
        Self { port, shared }
    }

    /// The URL of what is behind it.
    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Ends all connections, and lets no other through.
    pub(crate) fn cut(&self) {
        let mut shared = self.shared.lock().expect("no panic");
        shared.is_cut = true;
        shared.streams.drain(..).for_each(|stream| _ = stream.shutdown(Shutdown::Both));
    }

    /// Lets connections through again.
    pub(crate) fn mend(&self) {
        self.shared.lock().expect("no panic").is_cut = false;
    }
}
