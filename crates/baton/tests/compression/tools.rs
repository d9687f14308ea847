//! Decoders of other makes.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::common::protocol::Protocol;
use crate::common::{leave_out, tools};
use crate::site::{PAGE_BYTES, coded, server, text};

/// curl decodes what it asks for.
#[test]
fn curl_decodes_files_and_streams() {
    let Some(curl) = tools::find("curl") else {
        return leave_out("curl --compressed", "there is no curl");
    };
    let server = server("auto").over(Protocol::Http);
    coded(&mut server.agent(), "GET", "/page.html", "gzip");
    for path in ["page.html", "origin/page"] {
        let url = format!("http://{}/{path}", server.address());
        let output = Command::new(&curl).args(["-sS", "--compressed", &url]).output().expect("curl runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(output.stdout == text(PAGE_BYTES), "{path}");
    }
}

/// zlib, as Python has it, decodes gzip.
#[test]
fn zlib_decodes_gzip() {
    let Some(python) = tools::find("python3") else {
        return leave_out("gzip by zlib", "there is no python3");
    };
    let server = server("auto").over(Protocol::Http);
    let mut agent = server.agent();
    for path in ["/page.html", "/origin/page"] {
        let response = coded(&mut agent, "GET", path, "gzip");
        let script = "import sys, zlib; data = sys.stdin.buffer.read(); d = zlib.decompressobj(31); \
                      out = d.decompress(data); assert d.eof and not d.unused_data; sys.stdout.buffer.write(out)";
        let mut child = Command::new(&python)
            .args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python runs");
        let mut stdin = child.stdin.take().expect("standard input");
        let body = response.body.clone();
        let writer = std::thread::spawn(move || stdin.write_all(&body));
        let output = child.wait_with_output().expect("it ends");
        writer.join().expect("no panic").expect("all is written");
        assert!(output.status.success() && output.stdout == text(PAGE_BYTES), "{path}");
    }
}
