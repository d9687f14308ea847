//! A host whose addresses are nodes.

use std::net::{Ipv4Addr, SocketAddr};

use crate::common::dns::Dns;
use crate::common::folder::Folder;
use crate::common::server::Server;
use crate::hosts::{answer, nodes};
use crate::port::free_port;
use crate::store::wait_until;

fn node(address: SocketAddr) -> Server {
    Server::run(
        Folder::new(),
        &format!(
            "processes = 1\n[[site]]\nlisten = '{address}'\n[[site.route]]\npath = '/'\n\
             respond = {{ status = 200, body = '{}' }}\n",
            address.ip()
        ),
    )
}

/// Goal: addresses come and go as DNS says, and the last ones count while it is silent.
#[test]
fn each_address_of_a_host_is_a_node() {
    let port = free_port();
    let addresses = [1, 2, 3].map(|last| Ipv4Addr::new(127, 0, 0, last));
    let _nodes = addresses.map(|address| node((address, port).into()));
    let dns = Dns::start();
    dns.change(|zone| zone.addresses = addresses[..2].to_vec());
    let front = Server::run(
        Folder::new(),
        &format!(
            "processes = 1\ndns_servers = ['{}']\n[cluster]\nstate_folder = '{{base}}/state'\npolicy = 'wrr'\n\
             nodes = [{{ to = 'http://app.test:{port}', each_address = true }}]\n[[site]]\nlisten = '127.0.0.1:0'\n\
             [[site.route]]\npath = '/'\ncluster = true\n",
            dns.address
        ),
    );
    let names = |lasts: &[u8]| -> String {
        lasts.iter().map(|last| format!("127.0.0.{last}:{port}")).collect::<Vec<_>>().join(" ")
    };
    wait_until("two nodes", || nodes(&front) == names(&[1, 2]));
    let texts = [answer(&front), answer(&front)];
    assert!(texts.contains(&"127.0.0.1".into()) && texts.contains(&"127.0.0.2".into()), "{texts:?}");

    dns.change(|zone| zone.addresses = vec![addresses[2], addresses[1]]);
    wait_until("another node", || nodes(&front) == names(&[3, 2]) || nodes(&front) == names(&[2, 3]));
    let texts = [answer(&front), answer(&front)];
    assert!(texts.contains(&"127.0.0.3".into()), "{texts:?}");

    let asked = dns.change(|zone| {
        zone.is_silent = true;
        zone.questions
    });
    wait_until("a question", || dns.change(|zone| zone.questions) > asked);
    assert_eq!((nodes(&front).split(' ').count(), front.get("/").status), (2, 200));
}
