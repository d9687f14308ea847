//! Clients that leave, in every phase. All their resources are released, down to the last descriptor.

use std::io::Read;

use crate::common::agent::Body;
use crate::common::protocol::Protocol;
use crate::common::server::wait_until;
use crate::peer::{FAREWELLS, connect_and_send, leave, request};
use crate::site::{LARGE, SMALL_BUFFERS, large, small_and_large};
use crate::watched::Watched;

under_each_architecture! { clients_gone_in_every_phase, a_client_that_only_stops_sending_is_answered }

mod over {
    over_each_protocol! { requests_whose_clients_are_gone }

    use super::requests_whose_clients_are_gone;
}

under_each_architecture! { mt = "mt", clients_gone_in_every_phase, a_client_that_only_stops_sending_is_answered }

/// Goal: no phase leaks a connection or a descriptor. Method: in each phase, connections are closed by FIN and by
/// reset; then the gauge of connections and the worker's descriptors return to their old values.
fn clients_gone_in_every_phase(architecture: &str) {
    // Clients that have sent nothing are the server's affair, too.
    let server = Watched::start(small_and_large(), architecture, &["send.defer_accept_s=0", SMALL_BUFFERS]);
    let before = server.sockets();
    let address = server.server().address();
    for how in FAREWELLS {
        let before_a_request = connect_and_send(address, "");
        let in_a_head = connect_and_send(address, "GET /small.txt HTTP/1.1\r\nHo");
        let in_a_body = connect_and_send(
            address,
            "GET /small.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nfirst",
        );
        let in_a_response = connect_and_send(address, request("/large.bin"));
        let in_a_pipeline = connect_and_send(address, request("/large.bin?pipelined").repeat(20));
        let between_requests = connect_and_send(address, request("/small.txt"));
        for mut answered in [&in_a_response, &in_a_pipeline, &between_requests] {
            answered.read_exact(&mut [0; 100]).expect("the beginning of a response");
        }
        wait_until("all are open", || server.metric("baton_connections_open") == 6);
        for gone in [before_a_request, in_a_head, in_a_body, in_a_response, in_a_pipeline, between_requests] {
            leave(gone, how);
        }
        server.wait_until_nothing_is_left(&before);
    }

    // In a head, in a body, and twice in a response.
    wait_until("requests whose client is gone", || server.ended("client-gone") >= 8);
    let line = server.line_of("/large.bin");
    assert_eq!((&line["status"], &line["outcome"]), (&200.into(), &"client-gone".into()));
    let sent = line["body_bytes"].as_u64().expect("a number");
    assert!(0 < sent && sent < LARGE as u64, "{sent} bytes were sent");
}

/// The same over any protocol: before a handshake, in a body, in a response, and between two requests.
fn requests_whose_clients_are_gone(architecture: &str, protocol: Protocol) {
    let settings = ["send.defer_accept_s=0", SMALL_BUFFERS];
    let server = Watched::start_over(protocol, small_and_large(), architecture, &settings);
    let before = server.sockets();
    for how in FAREWELLS {
        let begin = |method: &str, path: &str, body: Body| {
            let mut client = server.agent();
            client.begin(method, "localhost", path, "", body);
            client
        };
        let silent = connect_and_send(server.server().address(), "");
        let mut in_a_body = begin("GET", "/small.txt", Body::Length(1000));
        in_a_body.send_body(b"first");
        assert_eq!(in_a_body.head().status, 200);
        let mut in_a_response = begin("GET", "/large.bin", Body::None);
        in_a_response.head();
        in_a_response.at_least(100);
        let mut between_requests = server.agent();
        assert_eq!(between_requests.get("/small.txt").text(), "small");
        wait_until("all are open", || server.metric("baton_connections_open") == 4);
        leave(silent, how);
        for client in [in_a_body, in_a_response, between_requests] {
            // The option belongs to the socket, of which the client has the last descriptor.
            leave(client.tcp().try_clone().expect("a descriptor"), how);
            drop(client);
        }
        server.wait_until_nothing_is_left(&before);
    }
    wait_until("requests whose client is gone", || server.ended("client-gone") == 2);
    let line = server.line_of("/large.bin");
    assert_eq!((&line["status"], &line["outcome"]), (&200.into(), &"client-gone".into()));
}

/// Goal: a half-closed client still gets its response. Method: the client closes its sending half during a response
/// that fills all buffers.
fn a_client_that_only_stops_sending_is_answered(architecture: &str) {
    let server = Watched::start(small_and_large(), architecture, &[SMALL_BUFFERS]);
    let before = server.sockets();
    let mut client = server.connect();
    client.send(request("/large.bin").repeat(2));
    client.finish_sending();
    for _ in 0..2 {
        assert!(client.response().body == large(), "all of the file");
    }
    client.expect_end();
    server.wait_until_nothing_is_left(&before);
    assert_eq!(server.line_of("/large.bin")["outcome"], "complete");
}
