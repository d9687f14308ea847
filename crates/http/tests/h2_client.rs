//! Goal: an independent implementation understands the connection, and the other way round. Method: the client of the
//! crate `h2` over a pipe in memory, and a server that answers with as many bytes as the path says, or with the body that
//! it got.

use std::collections::HashMap;

use baton_buf::{Aggregate, Piece, Slice};
use baton_http::h2::{
    Connection, ErrorCode, Event, HeadText, Packer, Settings, StreamId, encode_response_head,
};
use baton_http::{HeadLimits, Method};
use bytes::Bytes;
use h2::client::SendRequest;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

/// Runs a client against a server, to the end of both.
fn run<F: Future<Output = ()>>(pipe_bytes: usize, client: impl FnOnce(SendRequest<Bytes>) -> F) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        let (ours, theirs) = tokio::io::duplex(pipe_bytes);
        let server = tokio::spawn(serve(ours));
        let builder = h2::client::Builder::new();
        let (sender, connection) = builder.handshake(theirs).await.expect("settings");
        let connection = tokio::spawn(connection);
        client(sender).await;
        connection.await.expect("no panic").expect("the client finds no error");
        server.await.expect("no panic");
    });
}

/// The server of one connection.
async fn serve(mut socket: DuplexStream) {
    let mut connection = Connection::new(&Settings::default(), 0);
    let (mut text, mut packer) = (HeadText::default(), Packer::new());
    let mut echoes = HashMap::new();
    let mut input = Vec::new();
    loop {
        while connection.wants_to_send() {
            let mut out = Aggregate::new();
            connection.poll_transmit(&mut out, 64 * 1024, &mut packer, &mut |_| (), &mut |_, _| true);
            for piece in out.pieces() {
                let Piece::Memory(slice) = piece else { panic!("all is in memory") };
                if socket.write_all(slice).await.is_err() {
                    return;
                }
            }
        }
        match socket.read_buf(&mut input).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let mut read = 0;
        loop {
            let limits = HeadLimits::default();
            let (count, event) = connection
                .receive(&input[read..], &mut text, &limits, 0)
                .expect("the client keeps to the protocol");
            read += count;
            match event {
                Some(event) => handle(event, &mut connection, &mut echoes),
                None if count == 0 => break,
                None => {}
            }
        }
        input.drain(..read);
    }
}

fn handle(event: Event<'_>, connection: &mut Connection, echoes: &mut HashMap<StreamId, u64>) {
    match event {
        Event::Request { stream, head, ends, .. } => {
            let mut block = Vec::new();
            encode_response_head(b"HTTP/1.1 200 OK\r\nServer: test\r\n\r\n", &mut block);
            connection.respond(stream, block.into(), false);
            if head.method == Method::Get {
                let len = std::str::from_utf8(&head.path[1..]).unwrap().parse().expect("a number");
                push(connection, stream, &vec![b'a'; len]);
            } else {
                echoes.insert(stream, 0);
            }
            if ends {
                finish(connection, stream);
            }
        }
        Event::Data { stream, data, ends } => {
            *echoes.get_mut(&stream).unwrap() += data.len() as u64;
            push(connection, stream, data);
            connection.consume(stream, data.len() as u64);
            if ends {
                finish(connection, stream);
            }
        }
        Event::End { stream } => finish(connection, stream),
        Event::Reset { stream, code } => {
            assert_eq!(code, ErrorCode::Cancel);
            connection.finish(stream);
        }
        Event::GoAway { code } => assert_eq!(code, ErrorCode::NoError),
        other => panic!("{other:?}"),
    }
}

fn push(connection: &mut Connection, stream: StreamId, bytes: &[u8]) {
    let mut body = Aggregate::new();
    body.push(Slice::from(bytes.to_vec()));
    connection.push(stream, body);
}

fn finish(connection: &mut Connection, stream: StreamId) {
    connection.end(stream);
    connection.finish(stream);
}

fn request(method: &str, path: &str) -> http::Request<()> {
    http::Request::builder().method(method).uri(format!("http://host{path}")).body(()).expect("a request")
}

/// Reads a response's body to its end, and returns its length.
async fn body_len(response: http::Response<h2::RecvStream>) -> usize {
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["server"], "test");
    let mut body = response.into_body();
    let mut len = 0;
    while let Some(data) = body.data().await {
        let data = data.expect("data");
        len += data.len();
        body.flow_control().release_capacity(data.len()).expect("a window");
    }
    len
}

#[test]
fn many_streams_are_answered() {
    for pipe_bytes in [100, 1 << 16] {
        run(pipe_bytes, |mut sender| async move {
            for round in 0..3 {
                let mut responses = Vec::new();
                for index in 0..50 {
                    let len = index * index * 37 + round;
                    let get = request("GET", &format!("/{len}"));
                    sender = sender.ready().await.expect("a stream");
                    responses.push((len, sender.send_request(get, true).expect("a request").0));
                }
                let tasks: Vec<_> = responses
                    .into_iter()
                    .map(|(len, response)| {
                        (len, tokio::spawn(async { body_len(response.await.unwrap()).await }))
                    })
                    .collect();
                for (len, task) in tasks {
                    assert_eq!(task.await.unwrap(), len);
                }
            }
        });
    }
}

#[test]
fn a_body_goes_there_and_back() {
    const LEN: usize = 3 << 20;
    run(1 << 16, |sender| async move {
        let mut sender = sender.ready().await.expect("a stream");
        let (response, mut stream) = sender.send_request(request("POST", "/"), false).expect("a request");
        let upload = tokio::spawn(async move {
            let mut left = LEN;
            while left > 0 {
                stream.reserve_capacity(left.min(100_000));
                let room = std::future::poll_fn(|cx| stream.poll_capacity(cx)).await.unwrap().unwrap();
                stream.send_data(Bytes::from(vec![b'b'; room]), left == room).expect("room");
                left -= room;
            }
        });
        assert_eq!(body_len(response.await.expect("a response")).await, LEN);
        upload.await.expect("all of it was sent");
    });
}

#[test]
fn trailers_and_resets_are_understood() {
    run(1 << 16, |mut sender| async move {
        for _ in 0..50 {
            sender = sender.ready().await.expect("a stream");
            let (response, mut stream) = sender.send_request(request("POST", "/"), false).expect("a request");
            stream.send_data(Bytes::from_static(b"abc"), false).expect("room");
            let mut trailers = http::HeaderMap::new();
            trailers.insert("x-sum", "1".parse().unwrap());
            stream.send_trailers(trailers).expect("trailers");
            assert_eq!(body_len(response.await.expect("a response")).await, 3);

            let (response, mut stream) = sender.send_request(request("POST", "/"), false).expect("a request");
            stream.send_reset(h2::Reason::CANCEL);
            assert!(response.await.is_err());
        }
    });
}
