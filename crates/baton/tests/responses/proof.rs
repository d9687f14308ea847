//! An authority that waits for a proof, and the server that has it for as long.

use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};

use crate::authority::{Habits, Pebble, ProofPorts};
use crate::common::folder::Folder;
use crate::common::port::free_port;
use crate::common::server::{Server, wait_until};
use crate::site;

/// A proof that is asked for.
pub(crate) struct Proof {
    server: Server,
    path: String,
    /// Ends with the proof.
    _authority: Pebble,
    /// The authority's question, which gets no answer: with it, the proof would be gone.
    _question: TcpStream,
}

impl Proof {
    pub(crate) fn server(&self) -> &Server {
        &self.server
    }

    /// Where the authority looks for it.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }
}

/// Starts a server and an authority that has asked for its first proof; `None`: no authority is installed.
pub(crate) fn start(names_server: bool) -> Option<Proof> {
    let asked = TcpListener::bind("127.0.0.1:0").expect("a port");
    let ports = ProofPorts { http: asked.local_addr().expect("an address").port(), tls: free_port() };
    let folder = Folder::new();
    let authority = Pebble::start(folder.base(), ports, Habits::default())?;
    folder.write("410.html", "");
    let (directory, roots) = (authority.directory(), authority.roots());
    let more = format!(
        r#"
        [[site]]
        listen = ["127.0.0.1:{own} tls"]
        hosts = ["example.org"]
        tls = "acme"
        root = "{{root}}"
        [acme]
        directory = "{directory}"
        roots = "{roots}"
        store = "{{base}}/store"
        profile = "default"
        challenges = ["http-01"]
        "#,
        own = free_port(),
        roots = roots.display(),
    );
    let server = site::run(folder, names_server, &(site::both_sites("") + &more));
    asked.set_nonblocking(true).expect("an option");
    let mut question = None;
    wait_until("the authority asks", || {
        question = asked.accept().ok();
        question.is_some()
    });
    let (question, _) = question.expect("a connection");
    question.set_nonblocking(false).expect("an option");
    let mut line = String::new();
    BufReader::new(&question).read_line(&mut line).expect("a request line");
    let path = line.split(' ').nth(1).expect("a path").to_owned();
    Some(Proof { server, path, _authority: authority, _question: question })
}
