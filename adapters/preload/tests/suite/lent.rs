//! Bodies of requests that the server lends: php-fpm reads them as it always has.

use std::io::Write as _;
use std::os::fd::{AsFd, BorrowedFd};

use baton_fcgi::offer::{Bodies, Client as ClientOffer, Offer, Transport};
use baton_fcgi::{FileRange, RegionSlice, request};
use baton_pool::{CHUNK_BYTES, Chunk, ChunkPool};

use super::support::pattern::pattern;
use super::support::server::FIELDS;
use super::support::{Client, Fpm, Outcome, Request, Response, Server, wait_for};

/// How the test sends a body.
#[derive(Clone, Copy, Debug)]
enum How {
    /// By places in a pool.
    Pool,
    /// The first and last bytes, and every third piece, are sent; the rest is in the pool.
    Mixed,
    /// By one place in a file.
    File,
}

/// A connection to php-fpm, with a pool that it gets once, and the client of the request at hand.
struct Lender {
    server: Server,
    pool: ChunkPool,
    has_pool: bool,
}

impl Lender {
    fn connect(fpm: &Fpm) -> Self {
        let pool = ChunkPool::create(128).expect("a pool");
        Self { server: Server::connect(&fpm.socket()), pool, has_pool: false }
    }

    /// Sends a request with these records of its body, as far as one call takes them, and returns its client.
    fn begin(
        &mut self,
        request: &Request,
        mut bodies: Bodies,
        file: Option<BorrowedFd<'_>>,
        records: &[u8],
    ) -> Client {
        let (client, server_end) = Client::connect();
        let mut descriptors = vec![server_end.as_fd()];
        if !self.has_pool {
            (bodies.pool, self.has_pool) = (self.pool.len() as u32, true);
            descriptors.push(self.pool.as_fd());
        }
        bodies.file = file.is_some();
        descriptors.extend(file);
        let mut block = Vec::new();
        Offer {
            transport: Transport::PassFd(ClientOffer { minor: 1, keep: true, head: false }),
            fds: descriptors.len(),
            bodies,
            patience_ms: 10_000,
            holds: false,
            fields: FIELDS.as_bytes(),
        }
        .push(&mut block);
        request.push_params(&mut block);
        let mut bytes = Vec::new();
        request::push_begin(&mut bytes, 1, true);
        request::push_params(&mut bytes, 1, &block);
        bytes.extend_from_slice(records);
        self.server.send_with(&bytes, &descriptors);
        client
    }

    /// Puts the body into the pool, or parts of it if it is `mixed`. Returns the records that say so, and the chunks, which
    /// php-fpm may look at.
    fn lend(&self, body: &[u8], mixed: bool) -> (Vec<u8>, Vec<Chunk>) {
        let (mut records, mut chunks) = (Vec::new(), Vec::new());
        let last = body.len().div_ceil(CHUNK_BYTES).saturating_sub(1);
        for (number, part) in body.chunks(CHUNK_BYTES).enumerate() {
            if mixed && (number % 3 == 0 || number == last) {
                request::push_stdin(&mut records, 1, part);
                continue;
            }
            let mut chunk = self.pool.take().expect("a free chunk");
            chunk[..part.len()].copy_from_slice(part);
            let place = RegionSlice { offset: chunk.offset() as u32, len: part.len() as u32 };
            request::push_slices(&mut records, 1, &[place]);
            chunks.push(chunk);
        }
        request::push_stdin_end(&mut records, 1);
        (records, chunks)
    }

    /// A request with its body, and what php-fpm says to it; bytes of the pool that it was lent.
    fn answer(&mut self, request: &Request, how: How) -> (Outcome, Response, usize) {
        let Request { body, .. } = request;
        let (mut client, chunks) = if let How::File = how {
            let mut file = tempfile::tempfile().expect("a file");
            file.write_all(body).expect("room");
            let mut records = Vec::new();
            request::push_file(&mut records, 1, FileRange { offset: 0, len: body.len() as u64 });
            request::push_stdin_end(&mut records, 1);
            (self.begin(request, Bodies::default(), Some(file.as_fd()), &records), Vec::new())
        } else {
            let (records, chunks) = self.lend(body, matches!(how, How::Mixed));
            (self.begin(request, Bodies::default(), None, &records), chunks)
        };
        let outcome = self.server.read_outcome(request);
        outcome.complete();
        let lent = body.len().min(chunks.len() * CHUNK_BYTES);
        (outcome, client.read_response("POST"), lent)
    }
}

/// Goal: php-fpm sees a lent body as any other, in `php://input` and as the file of a form, and returns what it has read.
#[test]
fn a_lent_body_is_read_as_any_other() {
    let fpm = Fpm::with_one_worker("php_value[post_max_size] = 16M\nphp_value[upload_max_filesize] = 16M\n");
    let digest = fpm
        .script("digest.php", "<?php $b = file_get_contents('php://input'); echo strlen($b), ' ', md5($b);");
    let upload = fpm
        .script("upload.php", "<?php $f = $_FILES['file']; echo $f['size'], ' ', md5_file($f['tmp_name']);");
    let ignore = fpm.script("ignore.php", "<?php echo 'ignored';");
    let mut lender = Lender::connect(&fpm);
    for bytes in [1, 32_768, 65_535, 65_536, 65_537, 1_000_000, 7 << 20] {
        let body = pattern(bytes);
        let plain = Request::get(&digest).post("application/octet-stream", body.clone());
        let (_, expected) = lender.server.answer(&plain, super::support::server::MODERN);
        let parts = "--cut\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\n";
        let form = [parts.as_bytes(), &body, b"\r\n--cut--\r\n"].concat();
        let form = Request::get(&upload).post("multipart/form-data; boundary=cut", form);
        let ignored = Request { script: ignore.clone(), ..plain.clone() };
        for how in [How::Pool, How::Mixed, How::File] {
            for request in [&plain, &form, &ignored] {
                let (outcome, response, lent) = lender.answer(request, how);
                let expected = if request.script == ignore { "ignored".to_owned() } else { expected.text() };
                assert_eq!(response.text(), expected, "{how:?}, {bytes} bytes to {}", request.script);
                // It may keep back 128 KiB, and the chunk that it has read last.
                assert!(
                    outcome.freed <= lent && lent <= outcome.freed + 3 * CHUNK_BYTES,
                    "{outcome:?} {lent}"
                );
            }
        }
    }
}

/// Goal: a server that asks is told at once if a long body comes, since it may lend the rest; else with the end.
#[test]
fn a_server_that_asks_is_told_in_time() {
    let fpm = Fpm::with_one_worker("");
    let script = fpm.script("length.php", "<?php echo strlen(file_get_contents('php://input'));");
    let asks = Bodies { asks: true, ..Bodies::default() };
    for (bytes, at_once) in [(99_999, false), (100_000, true)] {
        let mut lender = Lender::connect(&fpm);
        let request = Request::get(&script).post("application/octet-stream", pattern(bytes));
        let mut client = lender.begin(&request, asks, None, &[]);
        let mut outcome = Outcome::default();
        if at_once {
            assert!(lender.server.read_part(&mut outcome) && outcome.takes_bodies);
        }
        let (records, _chunks) = lender.lend(&request.body, false);
        lender.server.write(&records);
        let outcome = lender.server.read_outcome(&request);
        outcome.complete();
        assert_eq!(outcome.takes_bodies, !at_once, "said once");
        assert_eq!(client.read_response("POST").text(), bytes.to_string());
    }
}

/// Goal: a script that has ended its answer before it reads its body never sees another visitor's bytes. Method: the server
/// writes to the pool again as soon as the request has ended.
#[test]
fn a_body_that_is_read_after_the_end_is_still_its_own() {
    let fpm = Fpm::with_one_worker("");
    let script = fpm.script(
        "late.php",
        "<?php echo 'done'; fastcgi_finish_request(); $wait = __DIR__ . '/go'; \
         while (!file_exists($wait)) { clearstatcache(); usleep(1000); } \
         $seen = file_get_contents('php://input'); file_put_contents(__DIR__ . '/seen.tmp', $seen); \
         rename(__DIR__ . '/seen.tmp', __DIR__ . '/seen');",
    );
    let body = pattern(50_000);
    let mut lender = Lender::connect(&fpm);
    let request = Request::get(&script).post("application/octet-stream", body.clone());
    let (records, mut chunks) = lender.lend(&body, false);
    let mut client = lender.begin(&request, Bodies::default(), None, &records);
    lender.server.read_outcome(&request).complete();
    assert_eq!(client.read_response("POST").text(), "done");
    chunks.iter_mut().for_each(|chunk| chunk.fill(b'#'));
    std::fs::write(fpm.folder().join("go"), "").expect("a file");
    let seen = wait_for("the script", || std::fs::read(fpm.folder().join("seen")).ok());
    assert!(seen == body, "{} bytes, or bytes of another visitor", seen.len());
}
