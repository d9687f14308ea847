//! Goal: the committed fuzz corpora still pass. Method: every file through the same functions as the targets.

#[path = "../../../fuzz/src/http.rs"]
pub mod invariants;
#[path = "../../../fuzz/src/http2.rs"]
pub mod invariants2;
#[path = "../../../fuzz/src/http2_connection.rs"]
pub mod invariants2_connection;
#[path = "../../../fuzz/src/http2_moved.rs"]
pub mod invariants2_moved;
#[path = "../../../fuzz/src/origin.rs"]
pub mod invariants_origin;
#[path = "../../../fuzz/src/replay.rs"]
pub mod replay;

use replay::replay;

#[test]
fn request_heads() {
    replay("http_request_head", invariants::request_head);
}

#[test]
fn chunked_bodies() {
    replay("http_chunked_body", invariants::chunked_body);
}

#[test]
fn ranges() {
    replay("http_ranges", invariants::ranges);
}

#[test]
fn conditions() {
    replay("http_conditions", invariants::conditions);
}

#[test]
fn paths() {
    replay("http_path", invariants::path);
}

#[test]
fn proxy_headers() {
    replay("http_proxy_header", invariants::proxy_header);
}

#[test]
fn accept_encodings() {
    replay("http_accept_encoding", invariants::accept_encoding);
}

#[test]
fn http2_request_blocks() {
    replay("http2_request_block", invariants2::request_block);
}

#[test]
fn http2_response_heads() {
    replay("http2_response_head", invariants2::response_head);
}

#[test]
fn http2_connections() {
    replay("http2_connection", invariants2_connection::connection);
}

#[test]
fn responses_of_origins() {
    replay("http_origin_response", invariants_origin::response);
}

#[test]
fn heads_for_origins() {
    replay("http_forwarded_head", invariants_origin::forwarded_head);
}

#[test]
fn connections_that_move() {
    replay("http2_moved", invariants2_moved::moved);
}
