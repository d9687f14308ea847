//! Goal: once its buffers have grown, a kept connection costs no heap allocation here, by any transport. Method:
//! requests and answers of every kind under a counting allocator.

use baton_fcgi::application::{self, RequestReader};
use baton_fcgi::cgi::{HEAD_BYTES_MAX, HeadReader, HeadStep};
use baton_fcgi::environment::{Script, Variables, push_fields};
use baton_fcgi::offer::{Bodies, Client, Offer, Ring, Transport};
use baton_fcgi::params::Params;
use baton_fcgi::response::{self, ProtocolStatus, ResponseReader};
use baton_fcgi::{AnswerOutcome, Answered, RegionSlice, request};

const ID: u16 = 1;

/// What both ends of a connection keep.
struct Connection {
    params: Vec<u8>,
    to_application: Vec<u8>,
    to_server: Vec<u8>,
    to_client: Vec<u8>,
    head: Vec<u8>,
    server: ResponseReader,
    application: RequestReader,
}

impl Connection {
    /// A request, and its answer by all transports.
    fn exchange(&mut self) {
        self.ask();
        self.answer();
        self.take();
    }

    fn ask(&mut self) {
        self.params.clear();
        let fields = [("Accept", "*/*"), ("Cookie", "a=b"), ("X-A", "1"), ("Cookie", "c=d")];
        let transport = Transport::Shm(Ring { size: 1 << 20, at: 0, free: 1 << 20 });
        Offer { transport, fds: 1, bodies: Bodies::default(), patience_ms: 100, holds: false, fields: b"" }
            .push(&mut self.params);
        variables().push(&mut self.params);
        push_fields(&mut self.params, fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())));
        self.to_application.clear();
        request::push_begin(&mut self.to_application, ID, true);
        request::push_params(&mut self.to_application, ID, &self.params);
        request::push_stdin(&mut self.to_application, ID, b"body");
        request::push_stdin_end(&mut self.to_application, ID);
        self.server.begin(ID);
    }

    fn answer(&mut self) {
        let mut rest = &self.to_application[..];
        loop {
            let (consumed, part) = self.application.read(rest).unwrap();
            match part {
                application::Part::NeedMore => break,
                application::Part::Params(range) => {
                    assert_eq!(Params::new(&rest[range]).map(Result::unwrap).count(), 24);
                }
                _ => {}
            }
            rest = &rest[consumed..];
        }
        self.application.finish();
        self.to_server.clear();
        let out = &mut self.to_server;
        application::push_stdout(out, ID, b"Status: 404 Not Found\r\nContent-Type: text/html\r\n\r\nhello");
        application::push_slices(out, ID, &[RegionSlice { offset: 0, len: 5 }; 3]);
        let outcome = AnswerOutcome::Complete;
        let (head_bytes, body_bytes) = (1, 2);
        let answered =
            Answered { complete: true, may_go_on: true, outcome, status: 200, head_bytes, body_bytes };
        application::push_answered(out, ID, &answered);
        application::push_end(out, ID, 0, ProtocolStatus::RequestComplete);
    }

    fn take(&mut self) {
        let mut rest = &self.to_server[..];
        loop {
            let (consumed, part) = self.server.read(rest).unwrap();
            match part {
                response::Part::NeedMore => break,
                response::Part::Stdout(range) => {
                    let mut reader = HeadReader::with_buffer(std::mem::take(&mut self.head), HEAD_BYTES_MAX);
                    assert!(matches!(reader.read(&rest[range]), Ok(HeadStep::End { .. })));
                    let head = reader.finish().unwrap();
                    let client = Client { minor: 1, keep: true, head: false };
                    self.to_client.clear();
                    let framing = head.framing(None, client);
                    head.push_http_head(&mut self.to_client, framing, client, b"");
                    self.head = head.into_buffer();
                }
                response::Part::Slices => assert_eq!(self.server.slices().count(), 3),
                _ => {}
            }
            rest = &rest[consumed..];
        }
        assert!(self.server.is_between_records());
    }
}

fn variables() -> Variables<'static> {
    Variables {
        method: b"GET",
        request_uri: b"/a.php/b?c",
        query_string: b"c",
        script: Script::with_extension(b"/a.php/b", b".php").unwrap(),
        document_root: b"/srv",
        script_filename: None,
        content_length: Some(4),
        protocol: "HTTP/1.1",
        https: false,
        server_software: b"baton",
        server_name: b"example.org",
        host: None,
        remote: Some(([192, 0, 2, 1], 5678).into()),
        local: Some(([192, 0, 2, 2], 80).into()),
    }
}

#[test]
fn a_kept_connection_allocates_nothing() {
    let mut connection = Connection {
        params: Vec::new(),
        to_application: Vec::new(),
        to_server: Vec::new(),
        to_client: Vec::new(),
        head: Vec::new(),
        server: ResponseReader::new(ID),
        application: RequestReader::new(),
    };
    connection.exchange();
    let allocations = allocation_counter::measure(|| connection.exchange());
    assert_eq!(allocations.count_total, 0);
    assert!(connection.to_client.starts_with(b"HTTP/1.1 404 Not Found\r\n"));
}
