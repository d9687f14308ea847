//! Answers through the shared region.

mod rig;

use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use rig::{Region, Reply, Server, application, text};

const REGION_BYTES: u32 = 256 << 10;

/// An application that writes as many bytes of text as the request says, in pieces of a size.
fn writer(piece: usize) -> (tempfile::TempDir, PathBuf) {
    application(move |request| {
        let bytes = std::str::from_utf8(request.variable("BYTES").unwrap()).unwrap().parse().unwrap();
        for piece in text(bytes).chunks(piece) {
            request.write_all(piece).unwrap();
        }
    })
}

fn with_region(path: &std::path::Path) -> Server {
    let mut server = Server::connect(path);
    server.region = Some(Region::new(REGION_BYTES));
    server
}

/// Each request continues where the one before has ended, around the end of the region, many times.
#[test]
fn output_goes_around_in_the_region() {
    for piece in [1000, 60_000, 1 << 20] {
        let (_dir, path) = writer(piece);
        let mut server = with_region(&path);
        for bytes in [0, 1, 100_000, 100_000, 100_000, 200_000, 262_144, 262_145, 3_000_000] {
            server.share(REGION_BYTES, &[("BYTES", &bytes.to_string())], b"");
            let reply = server.reply();
            assert!(reply.stdout == text(bytes), "{bytes} bytes in pieces of {piece}");
            assert_eq!((reply.end, reply.stdout_record_bytes), (Some(0), 0));
        }
    }
}

/// A small response is announced once, with its end.
#[test]
fn a_small_response_is_one_slice() {
    let (_dir, path) = writer(10);
    let mut server = with_region(&path);
    server.share(REGION_BYTES, &[("BYTES", "1000")], b"");
    assert_eq!(server.reply().stdout, text(1000));
    assert_eq!(server.region.unwrap().slices, 1);
}

#[test]
fn a_flush_is_announced_at_once() {
    let (_dir, path) = application(|request| {
        write!(request, "first").unwrap();
        request.flush().unwrap();
        let mut word = [0; 2];
        request.read_exact(&mut word).unwrap();
        write!(request, "second").unwrap();
    });
    let mut server = with_region(&path);
    server.share(REGION_BYTES, &[], b"go");
    let mut reply = Reply::default();
    server.collect(&mut reply, |reply| !reply.stdout.is_empty());
    assert_eq!(reply.stdout, b"first");
    server.collect(&mut reply, |reply| reply.end.is_some());
    assert_eq!(reply.stdout, b"firstsecond");
}

/// Only free bytes are written: here those that other responses have left.
#[test]
fn only_free_bytes_are_written() {
    let (_dir, path) = writer(1000);
    let mut server = with_region(&path);
    server.region.as_mut().unwrap().frees_in = 0;
    server.share(10_000, &[("BYTES", "9000")], b"");
    assert_eq!(server.reply().stdout, text(9000));
    let before = std::fs::read(format!("/proc/self/fd/{}", fd(&server))).unwrap();
    server.share(1_000, &[("BYTES", "5000")], b"");
    let mut reply = Reply::default();
    server.collect(&mut reply, |reply| reply.stdout.len() >= 1000);
    assert_eq!(reply.stdout, text(1000), "it waits for free bytes");
    let after = std::fs::read(format!("/proc/self/fd/{}", fd(&server))).unwrap();
    assert!(before[..9000] == after[..9000] && before[10_000..] == after[10_000..]);
    server.region.as_mut().unwrap().frees_in = 1;
    server.free(1000);
    server.collect(&mut reply, |reply| reply.end.is_some());
    assert_eq!(reply.stdout, text(5000));
}

fn fd(server: &Server) -> i32 {
    use std::os::fd::AsRawFd;
    server.region.as_ref().unwrap().file.as_raw_fd()
}

/// `FREED` cannot be read after a body that the application does not read: the rest goes in records.
#[test]
fn an_unread_body_does_not_block_the_response() {
    let (_dir, path) = application(|request| {
        request.write_all(&text(1_000_000)).unwrap();
        let mut body = Vec::new();
        request.read_to_end(&mut body).unwrap();
        assert_eq!(body.len(), 500_000);
    });
    let mut server = with_region(&path);
    let body = text(500_000);
    let mut sender = Server::new(server.socket.try_clone().unwrap());
    sender.region = server.region.take();
    let region = Region {
        file: sender.region.as_ref().unwrap().file.try_clone().unwrap(),
        is_known: true,
        ..Region::new(REGION_BYTES)
    };
    server.region = Some(Region { frees_in: 0, ..region });
    // The body does not fit into the connection: it is sent while the response is received.
    let sending = std::thread::spawn(move || sender.share(REGION_BYTES, &[], &body));
    let reply = server.reply();
    sending.join().unwrap();
    assert!(reply.stdout == text(1_000_000));
    assert!(reply.stdout_record_bytes >= 1_000_000 - REGION_BYTES as usize, "{}", reply.stdout_record_bytes);
    assert_eq!(reply.end, Some(0));
}

/// A file that could shrink under the mapping is not mapped.
#[test]
fn a_region_that_is_not_sealed_is_declined() {
    let (_dir, path) = writer(1000);
    let mut server = with_region(&path);
    let flags = rustix::fs::MemfdFlags::CLOEXEC | rustix::fs::MemfdFlags::ALLOW_SEALING;
    let file = std::fs::File::from(rustix::fs::memfd_create("region", flags).unwrap());
    file.set_len(REGION_BYTES.into()).unwrap();
    server.region.as_mut().unwrap().file = file;
    server.share(REGION_BYTES, &[("BYTES", "5000")], b"");
    let reply = server.reply();
    assert_eq!((reply.stdout, reply.stdout_record_bytes), (text(5000), 5000));
}

/// The memory that an application writes to is the region: nothing is copied into it.
#[test]
fn space_lies_in_the_region() {
    let (_dir, path) = application(|request| {
        for piece in text(100_000).chunks(7_000) {
            let mut piece = piece;
            while !piece.is_empty() {
                let space = request.space().unwrap();
                let now = space.len().min(piece.len());
                space[..now].copy_from_slice(&piece[..now]);
                request.commit(now);
                piece = &piece[now..];
            }
        }
    });
    let mut server = with_region(&path);
    for _ in 0..5 {
        server.share(REGION_BYTES, &[], b"");
        let reply = server.reply();
        assert!(reply.stdout == text(100_000));
        assert_eq!(reply.stdout_record_bytes, 0);
    }
}

/// The application's piece of the body stays intact while controls are received after it.
#[test]
fn controls_do_not_overwrite_the_body() {
    let (_dir, path) = application(|request| {
        let mut start = [0; 10];
        request.read_exact(&mut start).unwrap();
        request.write_all(&text(2_000_000)).unwrap();
        let mut rest = Vec::new();
        request.read_to_end(&mut rest).unwrap();
        request.write_all(&[&start[..], &rest].concat()).unwrap();
    });
    let mut server = with_region(&path);
    // More than fits before the body.
    server.region.as_mut().unwrap().frees_in = 100;
    server.share(REGION_BYTES, &[], &text(1000));
    let reply = server.reply();
    assert_eq!(reply.stdout_record_bytes, 0, "controls were heard");
    assert!(reply.stdout == [text(2_000_000), text(1000)].concat());
}

/// The server can send the first part of a large response while the application makes the next.
#[test]
fn large_responses_are_announced_in_parts() {
    static SEEN: AtomicBool = AtomicBool::new(false);
    let (_dir, path) = application(|request| {
        request.write_all(&text(200_000)).unwrap();
        while !SEEN.load(Ordering::Relaxed) {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    });
    let mut server = with_region(&path);
    server.share(REGION_BYTES, &[], b"");
    let mut reply = Reply::default();
    server.collect(&mut reply, |reply| reply.stdout.len() >= 190_000);
    SEEN.store(true, Ordering::Relaxed);
    server.collect(&mut reply, |reply| reply.end.is_some());
    assert!(reply.stdout == text(200_000));
}

/// By shared memory, in records, and made in place: the application continues when the server has it.
#[test]
fn slow_output_is_not_held_back() {
    for (is_shared, is_in_place) in [(true, false), (true, true), (false, false), (false, true)] {
        let (seen, is_seen) = std::sync::mpsc::channel();
        let (_dir, path) = application(move |request| {
            for _ in 0..3 {
                std::thread::sleep(std::time::Duration::from_millis(600));
                if is_in_place {
                    request.space().unwrap()[..9000].fill(b'a');
                    request.commit(9000);
                    request.space().unwrap();
                } else {
                    request.write_all(&[b'a'; 9000]).unwrap();
                }
                is_seen.recv().unwrap();
            }
        });
        let mut server = with_region(&path);
        match is_shared {
            true => server.share(REGION_BYTES, &[], b""),
            false => server.ask(&[], b""),
        }
        let mut reply = Reply::default();
        for bytes in [9000, 18_000, 27_000] {
            server.collect(&mut reply, |reply| reply.stdout.len() >= bytes);
            assert_eq!((reply.stdout.len(), reply.end), (bytes, None), "{is_shared} {is_in_place}");
            seen.send(()).unwrap();
        }
        server.collect(&mut reply, |reply| reply.end.is_some());
        assert_eq!(reply.end, Some(0));
    }
}
