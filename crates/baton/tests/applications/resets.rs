//! Clients that go away while an application thinks, under every architecture.

use std::fs::{self, Permissions};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::Duration;

use crate::common::agent::Body;
use crate::common::folder::Folder;
use crate::common::protocol::Protocol;
use crate::common::server::{Server, wait_until};
use crate::failures::logged;
use crate::program;

crate::architectures::under_every_architecture!(by name: a_reset_is_heard);
by_name! { https_auto "auto" Https [a_reset_is_heard_over] }
by_name! { https_pipeline "pipeline" Https [a_reset_is_heard_over] }
by_name! { h2_auto "auto" H2 [a_reset_is_heard_over] }
by_name! { h2_pipeline "pipeline" H2 [a_reset_is_heard_over] }

/// Goal: the server notices a client's reset before the application answers, for any offer. Method: an application
/// that accepts every offer, and one without the protocol.
fn a_reset_is_heard(architecture: &str) {
    a_reset_is_heard_over(architecture, Protocol::Http);
}

fn a_reset_is_heard_over(architecture: &str, protocol: Protocol) {
    let folder = Folder::new();
    program::start(&folder.base().join("passfd.sock"), folder.base(), 1);
    program::start(&folder.base().join("auto.sock"), folder.base(), 1);
    think_plainly(&folder.base().join("plain.sock"), folder.base());
    let route = |path: &str, transport: &str| {
        let to = format!("to = 'unix:{{base}}/{path}.sock', transport = '{transport}'");
        format!("[[site.route]]\npath = '/{path}'\nfastcgi = {{ {to} }}\n")
    };
    let routes = [route("passfd", "passfd"), route("auto", "auto"), route("plain", "auto")].concat();
    let server = format!("architecture = '{architecture}'\n");
    let site = "[log]\naccess = '{base}/access.log'\nflush_ms = 10\n[[site]]\n{listen}\n";
    let server = Server::run(folder, &format!("{server}{site}root = '{{root}}'\n{routes}")).over(protocol);
    let sign = |name: &str| server.folder().base().join(name);
    for below in ["/passfd", "/auto", "/plain"] {
        let mut client = server.agent();
        client.begin("GET", "stage", &format!("{below}/thinks?reset"), "", Body::None);
        wait_until("the application thinks", || sign("thinks").exists());
        rustix::net::sockopt::set_socket_linger(client.tcp(), Some(Duration::ZERO)).expect("an option");
        drop(client);
        logged(&server, &format!("{below}/thinks?reset {}\" 400 0", protocol.version()));
        fs::remove_file(sign("thinks")).expect("a file");
    }
    wait_until("the plain application is notified", || sign("left").exists());
    fs::write(sign("enough"), "").expect("a file");
}

/// An application that never answers, not even questions about itself.
fn think_plainly(socket: &Path, folder: &Path) {
    let listener = UnixListener::bind(socket).expect("a socket");
    fs::set_permissions(socket, Permissions::from_mode(0o777)).expect("permissions");
    let folder = folder.to_owned();
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let (mut connection, folder) = (connection.expect("a connection"), folder.clone());
            std::thread::spawn(move || {
                let mut header = [0; 8];
                let is_request = connection.read_exact(&mut header).is_ok() && header[1] == BEGIN_REQUEST;
                if is_request {
                    fs::write(folder.join("thinks"), "").expect("a file");
                    // How it ends does not matter.
                    let _ = connection.read_to_end(&mut Vec::new());
                    fs::write(folder.join("left"), "").expect("a file");
                }
            });
        }
    });
}

/// The type of a request's first record.
const BEGIN_REQUEST: u8 = 1;
