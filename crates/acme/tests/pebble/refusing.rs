//! An authority that is out of patience: it knows any account and answers every order with the same refusal.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::authority::write_identity;
use crate::workers::listen;

/// It answers as long as the test runs.
pub(crate) struct Refusing {
    pub(crate) directory: String,
    orders: Arc<AtomicUsize>,
}

impl Refusing {
    /// Starts one whose certificate is in `folder`. `refusal`: status line, fields and problem of its answer to orders.
    pub(crate) fn start(folder: &Path, refusal: (&'static str, &'static str, &'static str)) -> Self {
        write_identity(folder);
        let chain = vec![CertificateDer::from_pem_file(folder.join("pebble.pem")).expect("a certificate")];
        let key = PrivateKeyDer::from_pem_slice(&fs::read(folder.join("pebble.key")).expect("a file"));
        let config = ServerConfig::builder().with_no_client_auth();
        let config = Arc::new(config.with_single_cert(chain, key.expect("a key")).expect("a configuration"));
        let listener = listen();
        let base = format!("https://localhost:{}", listener.local_addr().expect("its address").port());
        let orders = Arc::new(AtomicUsize::new(0));
        let authority = Self { directory: format!("{base}/dir"), orders: Arc::clone(&orders) };
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let connection = ServerConnection::new(Arc::clone(&config)).expect("a connection");
                // A client that leaves early is not the test's business.
                let _ = answer(StreamOwned::new(connection, client), &base, refusal, &orders);
            }
        });
        authority
    }

    /// How many orders came.
    pub(crate) fn orders(&self) -> usize {
        self.orders.load(Ordering::Relaxed)
    }
}

/// Answers one request, and ends the connection.
fn answer(
    mut client: StreamOwned<ServerConnection, TcpStream>,
    base: &str,
    (refusal, fields, problem): (&str, &str, &str),
    orders: &AtomicUsize,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(&mut client);
    let mut lines = vec![String::new()];
    while reader.read_line(lines.last_mut().expect("a line"))? > 2 {
        lines.push(String::new());
    }
    let length = lines
        .iter()
        .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.trim().parse().ok());
    reader.read_exact(&mut vec![0; length.unwrap_or(0)])?;
    let target = lines[0].split(' ').nth(1).unwrap_or_default();
    let (status, fields, body) = match target {
        "/dir" => {
            let urls =
                ["newNonce", "newAccount", "newOrder"].map(|name| format!("\"{name}\":\"{base}/{name}\""));
            ("200 OK", String::new(), format!("{{{},\"revokeCert\":\"{base}/no\"}}", urls.join(",")))
        }
        "/newAccount" => ("201 Created", format!("Location: {base}/account\r\n"), "{}".to_owned()),
        "/newOrder" => {
            orders.fetch_add(1, Ordering::Relaxed);
            (refusal, fields.to_owned(), problem.to_owned())
        }
        _ => ("200 OK", String::new(), String::new()),
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nReplay-Nonce: bm9uY2U\r\nConnection: close\r\nContent-Length: {length}\r\n"
    );
    let body = if lines[0].starts_with("HEAD") { String::new() } else { body };
    client.write_all(format!("{head}{fields}\r\n{body}").as_bytes())?;
    client.conn.send_close_notify();
    client.flush()
}
