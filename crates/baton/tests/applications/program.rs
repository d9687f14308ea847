//! The application: real requests on real sockets, answered by threads of the test, each of which acts as a process
//! of an application. Written with the Rust library, it accepts every offer.

use std::fs::{self, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use baton_responder::{Request, Responder};

use crate::common::folder::pattern;
use crate::common::server::PATIENCE;

/// Starts so many threads that answer at a socket. They end with the tests.
pub(crate) fn start(socket: &Path, folder: &Path, threads: usize) {
    let first = Responder::bind(socket).expect("a socket");
    // The server's workers may be another user's.
    fs::set_permissions(socket, Permissions::from_mode(0o777)).expect("permissions");
    answer_with(&first, folder, threads);
}

/// Starts so many threads that answer.
pub(crate) fn answer_with(first: &Responder, folder: &Path, threads: usize) {
    for _ in 0..threads {
        let mut responder = first.try_clone().expect("a descriptor");
        let folder = folder.to_owned();
        std::thread::spawn(move || {
            loop {
                // A panic in the midst of an answer is one of the things that applications do.
                let _ = catch_unwind(AssertUnwindSafe(|| {
                    let mut request = responder.next_request().expect("a request");
                    // A client that is gone is no failure of the application.
                    let _ = answer(&mut request, &folder);
                }));
            }
        });
    }
}

fn answer(request: &mut Request<'_>, folder: &Path) -> io::Result<()> {
    let path = text(request, "PATH_INFO");
    let size = text(request, "QUERY_STRING").parse().unwrap_or(0);
    let named: PathBuf = folder.join("named");
    match path.as_str() {
        "/echo" | "/mirror" | "/progress" | "/refuses" | "/fails" | "/counts" => {
            let query = text(request, "QUERY_STRING");
            take_upload(&path, &query, request, folder)
        }
        "/variables" => {
            let mut lines: Vec<String> =
                request.variables().map(|pair| format!("{}={}\n", lossy(pair.0), lossy(pair.1))).collect();
            lines.sort();
            write!(request, "Content-Type: text/plain\r\n\r\n{}", lines.concat())
        }
        "/bytes" => {
            write!(request, "Content-Type: application/octet-stream\r\nContent-Length: {size}\r\n\r\n")?;
            request.write_all(pattern(size, 1))
        }
        "/stream" => {
            write!(request, "Content-Type: application/octet-stream\r\n\r\n")?;
            for piece in pattern(size, 1).chunks(size.div_ceil(7).max(1)) {
                request.write_all(piece)?;
                request.flush()?;
            }
            Ok(())
        }
        "/untyped" => write!(request, "Content-Type: \r\nX-Is: here\r\n\r\nuntyped"),
        "/nothing" => write!(request, "Status: 204 No Content\r\n\r\n"),
        "/reset" => write!(request, "Status: 205 Reset Content\r\n\r\nnonsense"),
        "/missing" => write!(request, "Status: 404 Nothing Here\r\nContent-Type: text/plain\r\n\r\nno\n"),
        "/cookies" => {
            write!(
                request,
                "Set-Cookie: a=1\nSet-Cookie: b=2\nConnection: close\nX-Accel-Buffering: no\n\nyes"
            )
        }
        "/status-line" => {
            write!(
                request,
                "HTTP/1.0 404 Not at Home\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n\r\nno\n"
            )
        }
        "/fields" | "/fields-of-a-file" => {
            if path.ends_with("file") {
                write!(request, "X-Sendfile: {}/letters.txt\r\n", named.display())?;
            }
            write!(
                request,
                "X-Frame-Options: SAMEORIGIN\r\nx-frame-options: ALLOWALL\r\nX-Powered-By: tests\r\nX-Seen: app\r\n\
                 Cache-Control: private\r\nContent-Type: text/plain\r\n\r\n"
            )
        }
        "/elsewhere" => write!(request, "Location: http://example.org/\r\n\r\n"),
        "/loop" => write!(request, "Location: {}/loop\r\n\r\n", text(request, "SCRIPT_NAME")),
        "/sendfile" => write!(
            request,
            "X-Sendfile: {}/letters.txt\r\nContent-Type: text/x-own\r\nX-Own: yes\r\n\r\nignored",
            named.display()
        ),
        "/without-body" => write!(
            request,
            "Status: {}\r\nX-Sendfile: {}/letters.txt\r\n\r\n",
            text(request, "QUERY_STRING"),
            named.display()
        ),
        "/outside" => write!(request, "X-Sendfile: {}/../secret\r\n\r\n", named.display()),
        "/link-out" => write!(request, "X-Sendfile: {}/out\r\n\r\n", named.display()),
        "/gone" => write!(request, "X-Sendfile: {}/none\r\n\r\n", named.display()),
        "/internal" => write!(request, "X-Accel-Redirect: /protected/letters.txt\r\n\r\n"),
        "/inner" => write!(request, "X-Accel-Redirect: /inner/letters.txt\r\n\r\n"),
        "/inner-guarded" => write!(request, "X-Accel-Redirect: /inner-guarded/letters.txt\r\n\r\n"),
        "/mixed" => {
            let (one, two) =
                (format!("{}/letters.txt", named.display()), format!("{}/big.bin", named.display()));
            let second = 3 + one.len() + 4;
            write!(request, "X-ZeroCopy: 3/{}:{second}/{}\r\n\r\n", one.len(), two.len())?;
            write!(request, "one{one}two {two}end")
        }
        "/mixed-outside" => {
            let name = format!("{}/secret", folder.display());
            write!(request, "X-ZeroCopy: 0/{}\r\n\r\n{name}", name.len())
        }
        "/says" => {
            request.log(b"a word to whoever runs it\n")?;
            write!(request, "Content-Type: text/plain\r\n\r\nsaid")
        }
        "/long" => write!(request, "Content-Length: 3\r\n\r\nabcdef"),
        "/thinks" => {
            fs::write(folder.join("thinks"), "")?;
            // Until it is stopped, or for longer than any test waits.
            let deadline = Instant::now() + 2 * PATIENCE;
            while !folder.join("enough").exists() && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(5));
            }
            write!(request, "Content-Type: text/plain\r\n\r\nthought")
        }
        "/silent" => Ok(()),
        "/no-head" => write!(request, "this is not a head\n\n"),
        "/panics" => {
            write!(request, "Content-Type: text/plain\r\n\r\n")?;
            request.write_all(pattern(300_000, 1))?;
            request.flush()?;
            panic!("in the midst of an answer, as was asked for");
        }
        other => {
            let query = text(request, "QUERY_STRING");
            if brief(other, &query, &mut *request)? {
                return Ok(());
            }
            write!(request, "Status: 404 Not Found\r\n\r\n{other}")
        }
    }
}

/// Answers without looking at the request, by any protocol; `false`: there is no such path.
pub(crate) fn brief(path: &str, query: &str, mut output: impl Write) -> io::Result<bool> {
    match path {
        "/within" => write!(output, "Location: /alphabet.txt\r\nX-Own: yes\r\n\r\nthere")?,
        "/unchanged" => write!(output, "Status: {query} Nothing\r\nContent-Length: 9\r\n\r\n")?,
        "/half-head" => write!(output, "Status: 200 OK\r\nContent-Type: text/plain\r\n")?,
        "/half-line" => write!(output, "Status: 200 OK\r\nContent-Ty")?,
        "/short" | "/short-flushed" => {
            output.write_all(&[b"Content-Length: 100000\r\n\r\n", pattern(10_000, 1)].concat())?;
            if path == "/short-flushed" {
                output.flush()?;
            }
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// Handles a body as the path says.
pub(crate) fn take_upload(
    path: &str,
    query: &str,
    mut request: impl Read + Write,
    folder: &Path,
) -> io::Result<()> {
    match path {
        "/progress" => {
            write!(request, "Content-Type: text/plain\r\n\r\n")?;
            let (mut buffer, mut total) = (vec![0; 65_536], 0);
            loop {
                let count = request.read(&mut buffer)?;
                if count == 0 {
                    return Ok(());
                }
                total += count;
                writeln!(request, "{total}")?;
                request.flush()?;
            }
        }
        "/mirror" => {
            write!(request, "Content-Length: {query}\r\n\r\n")?;
            let mut buffer = vec![0; 65_536];
            loop {
                match request.read(&mut buffer)? {
                    0 => return Ok(()),
                    count => request.write_all(&buffer[..count])?,
                }
                request.flush()?;
            }
        }
        "/refuses" => write!(request, "Status: 403 Forbidden\r\nContent-Length: 3\r\n\r\nno\n"),
        "/fails" => {
            request.read_exact(&mut [0; 1000])?;
            panic!("in the midst of a body, as was asked for");
        }
        "/counts" => {
            let seen = folder.join(query);
            request.read_exact(&mut [0; 1000])?;
            fs::write(&seen, "began")?;
            let rest = io::copy(&mut request, &mut io::sink());
            fs::write(&seen, if rest.is_ok() { "complete" } else { "cut off" })?;
            write!(request, "Content-Length: 0\r\n\r\n")
        }
        _ => {
            let mut body = Vec::new();
            request.read_to_end(&mut body)?;
            write!(
                request,
                "Content-Type: application/octet-stream\r\nContent-Length: {}\r\n\r\n",
                body.len()
            )?;
            request.write_all(&body)
        }
    }
}

fn text(request: &Request<'_>, name: &str) -> String {
    request.variable(name).map(lossy).unwrap_or_default()
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
