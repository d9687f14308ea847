//! A client of HTTP/2 of another make: the crate `h2`, one request at a time.
//!
//! The connection only moves while a method runs: a client that is not asked for anything reads nothing, and gives no
//! credit.

use std::future::{Future, poll_fn};
use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream};

use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use h2::{RecvStream, SendStream};
use http::{HeaderMap, Method, Request, StatusCode, Uri};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::{Builder, Runtime};
use tokio_rustls::TlsConnector;

use super::agent::Body;
use super::certificate;
use super::client::Response;
use super::protocol::Protocol;
use super::server::PATIENCE;

/// A connection, and the request that was begun last.
pub(crate) struct Http2 {
    /// Dropped first, with the connection.
    runtime: Runtime,
    tcp: TcpStream,
    requests: SendRequest<Bytes>,
    scheme: &'static str,
    body: Option<SendStream<Bytes>>,
    response: Option<ResponseFuture>,
    content: Option<RecvStream>,
}

impl Http2 {
    pub(crate) fn connect(address: SocketAddr, protocol: Protocol) -> Self {
        Self::try_connect(address, protocol).expect("a connection")
    }

    /// The same with a server that may be gone.
    pub(crate) fn try_connect(address: SocketAddr, protocol: Protocol) -> io::Result<Self> {
        Self::connect_behind(address, protocol, b"")
    }

    /// The same as a load balancer that sends these bytes before the client's.
    pub(crate) fn connect_behind(address: SocketAddr, protocol: Protocol, header: &[u8]) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        let tcp = TcpStream::connect(address)?;
        tcp.set_nodelay(true).expect("an option");
        (&tcp).write_all(header)?;
        tcp.set_nonblocking(true).expect("an option");
        let copy = tcp.try_clone().expect("a descriptor");
        let requests = within_patience(&runtime, async {
            let tcp = tokio::net::TcpStream::from_std(copy).expect("a socket");
            if !protocol.is_secure() {
                return shake_hands(tcp).await;
            }
            let tls = TlsConnector::from(certificate::trusting(protocol));
            let tls = tls.connect(certificate::name(), tcp).await?;
            assert_eq!(tls.get_ref().1.alpn_protocol(), Some(&b"h2"[..]), "the protocol is negotiated");
            shake_hands(tls).await
        })?;
        let scheme = protocol.scheme();
        Ok(Self { runtime, tcp, requests, scheme, body: None, response: None, content: None })
    }

    /// The socket itself.
    pub(crate) fn tcp(&self) -> &TcpStream {
        &self.tcp
    }

    /// Sends the head of a request. `fields` are lines, as in HTTP/1.
    ///
    /// # Errors
    /// The connection takes no more requests.
    pub(crate) fn begin(
        &mut self,
        method: &str,
        host: &str,
        path: &str,
        fields: &str,
        body: Body,
    ) -> Result<(), h2::Error> {
        let target = match path {
            // RFC 9113, section 8.5: nothing but the authority.
            _ if method == "CONNECT" => path.to_owned(),
            "*" => format!("{}://{host}", self.scheme),
            path if path.starts_with('/') => format!("{}://{host}{path}", self.scheme),
            // Of an absolute target the parts have fields of their own.
            path => path.replacen("http", self.scheme, 1),
        };
        let uri: Uri = target.parse().unwrap_or_else(|error| panic!("{target}: {error}"));
        let mut request = Request::builder().method(Method::from_bytes(method.as_bytes()).unwrap()).uri(uri);
        for line in fields.split_terminator("\r\n") {
            let (name, value) = line.split_once(':').expect("a field");
            request = request.header(name, value.trim());
        }
        if let Body::Length(length) = body {
            request = request.header("content-length", length);
        }
        let request = request.body(()).expect("a request");
        let requests = &mut self.requests;
        let (response, body) = within_patience(&self.runtime, async {
            poll_fn(|context| requests.poll_ready(context)).await?;
            requests.send_request(request, matches!(body, Body::None))
        })?;
        (self.response, self.body, self.content) = (Some(response), Some(body), None);
        // The caller expects the request to be on its way.
        within_patience(&self.runtime, tokio::task::yield_now());
        Ok(())
    }

    /// Sends a part of the body, as far as the server takes it: it may have answered and left the rest.
    pub(crate) fn send_body(&mut self, mut bytes: &[u8], ends: bool) {
        let Some(body) = &mut self.body else { return };
        within_patience(&self.runtime, async {
            while !bytes.is_empty() {
                body.reserve_capacity(bytes.len());
                let Some(Ok(room)) = poll_fn(|context| body.poll_capacity(context)).await else { return };
                let (now, later) = bytes.split_at(room.min(bytes.len()));
                if body.send_data(Bytes::copy_from_slice(now), ends && later.is_empty()).is_err() {
                    return;
                }
                bytes = later;
                tokio::task::yield_now().await;
            }
        });
    }

    /// Says that the body is complete.
    pub(crate) fn finish_body(&mut self) {
        if let Some(body) = &mut self.body {
            // A server that has answered may have reset the stream.
            let _ = body.send_data(Bytes::new(), true);
            within_patience(&self.runtime, tokio::task::yield_now());
        }
    }

    /// Waits for `100 Continue`.
    pub(crate) fn expect_continue(&mut self) {
        let response = self.response.as_mut().expect("a request");
        let informed =
            within_patience(&self.runtime, poll_fn(|context| response.poll_informational(context)));
        let informed = informed.expect("an interim response").expect("no reset");
        assert_eq!(informed.status(), StatusCode::CONTINUE);
    }

    /// An interim response: its status and fields.
    pub(crate) fn interim(&mut self) -> (u16, Vec<(String, String)>) {
        let response = self.response.as_mut().expect("a request");
        let informed =
            within_patience(&self.runtime, poll_fn(|context| response.poll_informational(context)));
        let informed = informed.expect("an interim response").expect("no reset");
        (informed.status().as_u16(), lines(informed.headers()))
    }

    /// Sends the head of an extended CONNECT (RFC 8441).
    pub(crate) fn begin_tunnel(
        &mut self,
        protocol: &'static str,
        host: &str,
        path: &str,
        fields: &[(&str, &str)],
    ) {
        let request = Request::builder()
            .method(Method::CONNECT)
            .uri(format!("{}://{host}{path}", self.scheme))
            .extension(h2::ext::Protocol::from_static(protocol));
        let request = fields.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let request = request.body(()).expect("a request");
        let requests = &mut self.requests;
        let (response, body) = within_patience(&self.runtime, async {
            // The server's settings say that it knows it.
            while !requests.is_extended_connect_protocol_enabled() {
                tokio::task::yield_now().await;
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            }
            poll_fn(|context| requests.poll_ready(context)).await?;
            requests.send_request(request, false)
        })
        .expect("a stream");
        (self.response, self.body, self.content) = (Some(response), Some(body), None);
        within_patience(&self.runtime, tokio::task::yield_now());
    }

    /// The fields behind the body, which has been read.
    pub(crate) fn trailers(&mut self) -> Vec<(String, String)> {
        let content = self.content.as_mut().expect("a response");
        let trailers = within_patience(&self.runtime, content.trailers()).expect("no reset");
        trailers.map_or_else(Vec::new, |trailers| lines(&trailers))
    }

    /// The head of the response.
    ///
    /// # Errors
    /// The stream or the connection ended before.
    pub(crate) fn head(&mut self) -> Result<Response, h2::Error> {
        let response = self.response.take().expect("a request");
        let (head, content) = within_patience(&self.runtime, response)?.into_parts();
        self.content = Some(content);
        Ok(Response {
            status: head.status.as_u16(),
            line: format!("HTTP/2 {}", head.status.as_u16()),
            fields: lines(&head.headers),
            body: Vec::new(),
        })
    }

    /// Some bytes of the response's body; an empty piece is the end.
    ///
    /// # Errors
    /// The stream or the connection ended before the body.
    pub(crate) fn piece(&mut self) -> Result<Vec<u8>, h2::Error> {
        let content = self.content.as_mut().expect("a response");
        loop {
            let Some(piece) = within_patience(&self.runtime, content.data()) else { return Ok(Vec::new()) };
            let piece = piece?;
            content.flow_control().release_capacity(piece.len())?;
            if !piece.is_empty() {
                return Ok(piece.to_vec());
            }
        }
    }
}

async fn shake_hands<T>(bytes: T) -> io::Result<SendRequest<Bytes>>
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (requests, connection) = h2::client::handshake(bytes).await.map_err(io::Error::other)?;
    tokio::spawn(async {
        // Requests report what goes wrong.
        let _ = connection.await;
    });
    Ok(requests)
}

fn within_patience<T>(runtime: &Runtime, future: impl Future<Output = T>) -> T {
    let limited = async { tokio::time::timeout(PATIENCE, future).await };
    runtime.block_on(limited).expect("an event within the patience of the tests")
}

fn lines(fields: &HeaderMap) -> Vec<(String, String)> {
    let text = |value: &http::HeaderValue| value.to_str().expect("ASCII").to_owned();
    fields.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect()
}
