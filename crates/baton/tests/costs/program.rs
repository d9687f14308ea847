//! An application of one process, which can be watched apart from the test: the test's own executable, started again.

use std::fs::Permissions;
use std::io::{BufRead as _, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use baton_responder::{Request, Responder};
use rustix::process::Pid;

use crate::common::folder::{Folder, pattern};
use crate::common::server::{Server, wait_until};

/// A running application; it ends when this is dropped.
pub(crate) struct Program(Child);

impl Program {
    /// Starts it at a socket.
    pub(crate) fn start(folder: &Folder, socket: &Path) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("this test"));
        command.args(["--exact", "program::answers_when_it_is_asked_to", "--nocapture"]);
        command.env(SOCKET, socket).process_group(folder.group());
        let program = Self(command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("this test"));
        wait_until("the application listens", || UnixStream::connect(socket).is_ok());
        program
    }

    /// Its process.
    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.0)
    }
}

/// A server with the application at `/app` and one connection to it; `{base}/named` contains `file.bin` of so many
/// bytes, which the application may name. `way`: how the file is sent if it is in memory.
pub(crate) fn behind_a_server(
    transport: &str,
    path: &str,
    file_bytes: usize,
    way: &str,
) -> (Server, Program, String) {
    let folder = Folder::new();
    let (socket, named) = (folder.base().join("application"), folder.base().join("named"));
    std::fs::create_dir(&named).expect("a folder");
    std::fs::write(named.join("file.bin"), pattern(file_bytes, 2)).expect("a file");
    let application = Program::start(&folder, &socket);
    let path = path.replace("{base}", &folder.base().display().to_string());
    let mounted = format!(
        "/app=unix:{},transport={transport},connections_max=1,named_files=[\"{}\"]",
        socket.display(),
        named.display()
    );
    // Often requested files would be loaded into memory, and copied from there.
    let never = "cache.memory_hot_file_bytes_max=0";
    let way = format!("send.way={way}");
    let flags = ["--workers", "1", "--fastcgi", &mounted, "--set", never, "--set", &way];
    let server = Server::serve(folder, &flags);
    (server, application, path)
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The application itself when it was started as one; on its own there is nothing to do.
#[test]
fn answers_when_it_is_asked_to() {
    let Some(socket) = std::env::var_os(SOCKET).map(PathBuf::from) else { return };
    let mut responder = Responder::bind(&socket).expect("a socket");
    // The server's workers may be another user's.
    std::fs::set_permissions(&socket, Permissions::from_mode(0o777)).expect("permissions");
    loop {
        let mut request = responder.next_request().expect("a request");
        let query =
            String::from_utf8_lossy(request.variable("QUERY_STRING").unwrap_or_default()).into_owned();
        let answered = match query.split_once('=') {
            Some(("sum", bytes)) => sum(&mut request, bytes.parse().expect("how many bytes")),
            Some(("named", file)) => write!(request, "X-Sendfile: {file}\r\n\r\n"),
            Some((_, file)) => write!(request, "X-ZeroCopy: 0/{}\r\n\r\n{file}", file.len()),
            None => {
                let bytes = query.parse().expect("how many bytes");
                let body = pattern(bytes, 1);
                write!(request, "Content-Type: text/plain\r\nContent-Length: {bytes}\r\n\r\n")
                    .and_then(|()| request.write_all(body))
            }
        };
        answered.expect("an answer");
    }
}

/// Looks at a body where it is, and says whether it is the pattern of so many bytes.
fn sum(request: &mut Request<'_>, bytes: usize) -> std::io::Result<()> {
    let (expected, mut at) = (pattern(bytes, 5), 0);
    loop {
        let part = request.fill_buf()?;
        let len = part.len();
        if len == 0 {
            return write!(
                request,
                "Content-Length: 6\r\n\r\n{}",
                if at == bytes { "whole\n" } else { "short\n" }
            );
        }
        assert!(part == &expected[at..at + len], "{len} bytes from {at} on");
        request.consume(len);
        at += len;
    }
}

const SOCKET: &str = "BATON_TEST_APPLICATION_SOCKET";
