//! Idle connections with TLS: each makes one request over HTTP/1.1 and is silent from then on.

use std::net::TcpStream;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustls::client::Resumption;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};

use super::protocol::{Made, SMALL};
use crate::load::{ANSWER_MAX, LoadRequest, ask, thread_cpu};
use crate::rig::Certificate;
use crate::rig::processes::memory_bytes;
use crate::servers::RunningServer;

/// Opens connections.
///
/// # Errors
/// If the server refuses one, or does not answer on it or not keep it.
pub(super) fn load(server: &RunningServer, certificate: &Certificate, count: usize) -> Result<Made> {
    let config = client(certificate)?;
    let address = server.address;
    let (path, bytes) = SMALL;
    let request = LoadRequest::file(path, bytes);
    let open = || -> Result<StreamOwned<ClientConnection, TcpStream>> {
        let socket = TcpStream::connect(address)?;
        socket.set_read_timeout(Some(ANSWER_MAX))?;
        // The request would wait behind the end of the handshake until a slow acknowledgement: 40 ms for each connection.
        socket.set_nodelay(true)?;
        let name = ServerName::try_from("localhost")?;
        let mut stream = StreamOwned::new(ClientConnection::new(Arc::clone(&config), name)?, socket);
        ask(&mut stream, address, &request)?;
        Ok(stream)
    };
    drop(open().context("a first connection")?);
    let memory_before = settled_memory(server)?;
    let (start, cpu) = (Instant::now(), thread_cpu());
    let connections = (0..count)
        .map(|number| open().with_context(|| format!("idle connection {} of {count}", number + 1)))
        .collect::<Result<Vec<_>>>()?;
    let (elapsed, client_cpu) = (start.elapsed(), thread_cpu() - cpu);
    let memory = settled_memory(server)?.saturating_sub(memory_before);
    drop(connections);
    let (requests, bytes) = (count as u64, count as u64 * bytes);
    Ok(Made { requests, bytes, elapsed, client_cpu, idle_bytes: Some(memory as f64 / count as f64) })
}

/// A client that trusts only this certificate and begins each session anew.
fn client(certificate: &Certificate) -> Result<Arc<ClientConfig>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(&certificate.chain)?)?;
    let mut config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
}

/// The server's memory, as soon as two readings agree: some servers free buffers a moment after an answer.
fn settled_memory(server: &RunningServer) -> Result<u64> {
    let limit = Instant::now() + SETTLE_MAX;
    let mut last = memory_bytes(&server.processes());
    loop {
        sleep(BETWEEN_READINGS);
        let now = memory_bytes(&server.processes());
        if now.abs_diff(last) <= SETTLED_BYTES {
            return Ok(now);
        }
        ensure!(Instant::now() < limit, "{}: its memory does not settle", server.name);
        last = now;
    }
}

const BETWEEN_READINGS: Duration = Duration::from_millis(300);
const SETTLE_MAX: Duration = Duration::from_secs(15);
/// Readings this far apart agree: a hundredth of what an economical server takes for all connections.
const SETTLED_BYTES: u64 = 128 << 10;
