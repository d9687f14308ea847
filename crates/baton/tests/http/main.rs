//! HTTP as clients see it: real requests to real servers, under every architecture.

#[path = "../common/mod.rs"]
mod common;

use common::folder::Folder;
use common::server::Server;

#[test]
fn smoke() {
    let folder = Folder::new();
    folder.write("a.txt", "hello");
    let server = Server::serve(folder, &["-a", "sped"]);
    let response = server.get("/a.txt");
    assert_eq!((response.status, response.text()), (200, "hello"));
    let server = Server::run(
        Folder::new(),
        "architecture = \"amped\"\n[[site]]\nlisten = [\"127.0.0.1:0\"]\nroot = \"{root}\"\n",
    );
    assert_eq!(server.get("/a.txt").status, 404);
}
