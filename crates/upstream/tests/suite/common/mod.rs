//! A small application that follows a script, and a small loop in place of the engine.

pub(crate) mod app;
pub(crate) mod driver;

use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use app::App;
use baton_buf::{Aggregate, Buffer};
use baton_http::origin::RequestKind;
use baton_process_table::{ProcessTable, socket_path};
use baton_upstream::{
    Application, BodyRest, ClientSocket, Endpoint, Request, Settings, SocketPass, TemporaryCounters,
    TemporarySpace,
};

/// The settings of an application at the address of `app`, changed by `change`.
pub(crate) fn application(app: &App, change: impl FnOnce(&mut Settings)) -> Arc<Application> {
    let mut settings = Settings::new("test", app.endpoint());
    settings.timeout_ms = 10_000;
    // A busy machine leaves a test without the processor for longer than connections are kept by default.
    settings.idle_timeout_ms = 2_000;
    settings.temporary.folder = app.folder().into();
    change(&mut settings);
    Application::new(settings).unwrap()
}

/// A space of `bytes_max` for all temporary files, and the counter of the bytes in them.
pub(crate) fn space(bytes_max: u64) -> (TemporarySpace, &'static AtomicU64) {
    let [bytes, refused]: [&'static AtomicU64; 2] = std::array::from_fn(|_| &*Box::leak(Box::default()));
    let space = TemporarySpace::new(TemporaryCounters { bytes, refused }, Arc::new([bytes]), |_| {});
    (space.bounded(bytes_max), bytes)
}

/// A request without a body and without a client to hand over.
pub(crate) fn get(application: &Arc<Application>) -> Request {
    let mut params = Vec::new();
    baton_fcgi::params::push(&mut params, b"REQUEST_METHOD", b"GET");
    baton_fcgi::params::push(&mut params, b"SCRIPT_NAME", b"/app");
    Request {
        application: Arc::clone(application),
        peers: None,
        turn: None,
        text: params,
        asked: RequestKind::Usual,
        body: Aggregate::new(),
        idempotent: true,
        rest: None,
        pass: None,
        takes_pipes: false,
        ends: None,
        client: None,
    }
}

/// A request with a body in memory.
pub(crate) fn post(application: &Arc<Application>, body: &[u8]) -> Request {
    let mut pieces = Aggregate::new();
    pieces.push(Buffer::new(body.to_vec()));
    Request { body: pieces, idempotent: false, ..get(application) }
}

/// A client's connection: the server's end, and the client's.
pub(crate) fn client() -> (Arc<ClientSocket>, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (server, _) = listener.accept().unwrap();
    server.set_nonblocking(true).unwrap();
    (Arc::new(OwnedFd::from(server).into()), client)
}

/// A request whose client can be handed over.
pub(crate) fn handed(application: &Arc<Application>, client: &Arc<ClientSocket>) -> Request {
    let pass = SocketPass {
        client: Arc::clone(client),
        minor: 1,
        keep: true,
        head: false,
        holds: false,
        fields: b"Server: test\r\n".to_vec(),
    };
    Request { pass: Some(pass), ..get(application) }
}

/// A request with the beginning of its body; `left` bytes are still to be [pushed](driver::Driver::push).
pub(crate) fn streamed(application: &Arc<Application>, beginning: &[u8], left: u64) -> Request {
    let admission = application.settings().streamed_bodies.admit().expect("room for a streamed body");
    Request { rest: Some(BodyRest::new(left, admission)), ..post(application, beginning) }
}

/// A table of these applications, all open.
pub(crate) fn table(apps: &[&App]) -> Arc<ProcessTable> {
    let table = ProcessTable::create(apps.len(), 1).unwrap();
    for slot in 0..apps.len() {
        table.begin(slot, 1, None);
        table.set_open(slot);
    }
    Arc::new(table)
}

/// The endpoint of processes with an address each, as symbolic links in `folder`.
pub(crate) fn members(folder: &Path, apps: &[&App], table: Arc<ProcessTable>) -> Endpoint {
    let prefix = folder.join("member");
    for (slot, app) in apps.iter().enumerate() {
        std::os::unix::fs::symlink(app.folder().join("app"), socket_path(&prefix, slot)).unwrap();
    }
    Endpoint::Members { table, prefix }
}
