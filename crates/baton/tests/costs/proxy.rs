//! A server in front of an origin whose responses are as long as their paths say.

use crate::common::client::Client;
use crate::common::folder::Folder;
use crate::common::server::Server;
use crate::origin::{Origin, Peer};
use crate::trace::Trace;

/// A server with one worker, and its origin.
pub(crate) struct Proxy {
    pub(crate) server: Server,
    pub(crate) origin: Origin,
}

impl Proxy {
    /// `settings`: the server's own, and tables in front of the site. `route`: settings of the only route, with `{origin}`
    /// for the origin.
    pub(crate) fn start(settings: &str, route: &str) -> Self {
        let origin = Origin::start(serve);
        let route = route.replace("{origin}", &format!("http://{}", origin.address()));
        let site = format!("[[site]]\nlisten = '127.0.0.1:0'\n[[site.route]]\npath = '/'\n{route}\n");
        let server = Server::run(Folder::new(), &format!("processes = 1\n{settings}\n{site}"));
        Self { server, origin }
    }

    /// A client that has asked for a body of so many bytes several times: nothing is done for the first time any more.
    pub(crate) fn served(&self, bytes: usize) -> Client {
        let mut client = self.server.connect();
        for _ in 0..3 {
            self.exchange(&mut client, bytes);
        }
        client
    }

    /// Asks for a body of so many bytes. Returns how long the response is, head and all.
    pub(crate) fn exchange(&self, client: &mut Client, bytes: usize) -> usize {
        let response = client.get(&format!("/{bytes}"));
        assert_eq!(response.body.len(), bytes);
        let fields = response.fields.iter().map(|(name, value)| name.len() + value.len() + ": \r\n".len());
        response.line.len() + "\r\n".len() + fields.sum::<usize>() + "\r\n".len() + bytes
    }

    /// Traces the worker.
    pub(crate) fn trace(&self) -> Trace {
        Trace::attach(self.server.workers()[0], &self.server.folder().base().join("server.trace"))
    }
}

/// Keeps connections, and sends each response with one call. Caches may keep it.
fn serve(peer: &mut Peer) {
    while let Some(seen) = peer.request() {
        let bytes = seen.path()[1..].parse().expect("a length");
        peer.answer("Cache-Control: max-age=3600\r\nETag: \"a\"\r\n", vec![b'x'; bytes]);
    }
}
