//! Methods that a route takes.

use crate::common::server::Server;

crate::protocols::over_every_protocol!(other_methods_are_refused);

fn other_methods_are_refused(server: &Server) {
    let mut client = server.agent();
    let path = "/read-only/secret.txt";
    assert_eq!(client.get(path).status, 200);
    assert_eq!(client.ask("HEAD", path, "").status, 200, "GET brings it along");
    for method in ["OPTIONS", "POST", "DELETE", "TRACE", "PROPFIND", "get", "GET!"] {
        let response = client.ask(method, path, "");
        assert_eq!((response.status, response.field("allow")), (405, Some("GET, HEAD")), "{method}");
    }
    assert_eq!(client.send("POST", path, b"GET / HTTP/1.1\r\n\r\n").status, 405);
    assert_eq!(client.ask("POST", "/READ-ONLY/secret.txt", "").status, 405);
    assert_eq!(client.get(path).status, 200, "the connection goes on");
}
