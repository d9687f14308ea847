//! The variables of a request (RFC 3875 section 4.1), as nginx's `fastcgi_params` sends them: they are the
//! parameters of FastCGI, the headers of SCGI and the environment of a CGI program.

mod fields;
mod script;

pub use fields::push_fields;
pub use script::Script;

use crate::Broken;
use crate::params::{Params, push, push_joined};
use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::ffi::OsStringExt;

/// The variables of a request, except for its header fields, which [`push_fields`] adds.
#[derive(Clone, Copy, Debug)]
pub struct Variables<'a> {
    /// `REQUEST_METHOD`.
    pub method: &'a [u8],
    /// `REQUEST_URI`: the target as the client sent it, of an absolute one the path and query.
    pub request_uri: &'a [u8],
    /// `QUERY_STRING`: the text after the `?`, or empty.
    pub query_string: &'a [u8],
    /// `SCRIPT_NAME`, `PATH_INFO`, and with them `DOCUMENT_URI`, `SCRIPT_FILENAME` and `PATH_TRANSLATED`.
    pub script: Script<'a>,
    /// `DOCUMENT_ROOT`: absolute, no slash at the end.
    pub document_root: &'a [u8],
    /// A program that answers all paths, instead of `document_root` and `SCRIPT_NAME`.
    pub script_filename: Option<&'a [u8]>,
    /// `CONTENT_LENGTH`: bytes of the body; `None` where there is none.
    pub content_length: Option<u64>,
    /// `SERVER_PROTOCOL`, such as `HTTP/1.1`.
    pub protocol: &'a str,
    /// `REQUEST_SCHEME` and `HTTPS`.
    pub https: bool,
    /// `SERVER_SOFTWARE`.
    pub server_software: &'a [u8],
    /// `SERVER_NAME`: the requested host, or the site's name; no port.
    pub server_name: &'a [u8],
    /// `HTTP_HOST`: the requested host and port, which may differ from the Host field.
    pub host: Option<(&'a [u8], Option<u16>)>,
    /// `REMOTE_ADDR` and `REMOTE_PORT`; `None` for a client on a Unix socket, which is `unix:`.
    pub remote: Option<SocketAddr>,
    /// `SERVER_ADDR` and `SERVER_PORT`; `None` for a Unix socket.
    pub local: Option<SocketAddr>,
}

impl Variables<'_> {
    /// Appends the variables as name-value pairs.
    pub fn push(&self, out: &mut Vec<u8>) {
        let Script { name, path_info } = self.script;
        push(out, b"GATEWAY_INTERFACE", b"CGI/1.1");
        push(out, b"SERVER_SOFTWARE", self.server_software);
        push(out, b"SERVER_PROTOCOL", self.protocol.as_bytes());
        push(out, b"REQUEST_METHOD", self.method);
        push(out, b"REQUEST_URI", self.request_uri);
        push(out, b"QUERY_STRING", self.query_string);
        push(out, b"DOCUMENT_ROOT", self.document_root);
        push_joined(out, b"DOCUMENT_URI", [name, path_info]);
        push(out, b"SCRIPT_NAME", name);
        match self.script_filename {
            Some(file) => push(out, b"SCRIPT_FILENAME", file),
            None => push_joined(out, b"SCRIPT_FILENAME", [self.document_root, name]),
        }
        push(out, b"PATH_INFO", path_info);
        if !path_info.is_empty() {
            push_joined(out, b"PATH_TRANSLATED", [self.document_root, path_info]);
        }
        match self.content_length {
            Some(length) => push(out, b"CONTENT_LENGTH", itoa::Buffer::new().format(length).as_bytes()),
            None => push(out, b"CONTENT_LENGTH", b""),
        }
        push(out, b"REQUEST_SCHEME", if self.https { b"https" } else { b"http" });
        if self.https {
            push(out, b"HTTPS", b"on");
        }
        push(out, b"SERVER_NAME", self.server_name);
        push_address(out, [b"SERVER_ADDR", b"SERVER_PORT"], self.local);
        push_address(out, [b"REMOTE_ADDR", b"REMOTE_PORT"], self.remote);
        // php-cgi built with force-cgi-redirect refuses requests without it.
        push(out, b"REDIRECT_STATUS", b"200");
        match self.host {
            Some((host, Some(port))) => {
                push_joined(out, b"HTTP_HOST", [host, b":", itoa::Buffer::new().format(port).as_bytes()]);
            }
            Some((host, None)) => push(out, b"HTTP_HOST", host),
            None => {}
        }
    }
}

fn push_address(out: &mut Vec<u8>, [addr_name, port_name]: [&[u8]; 2], address: Option<SocketAddr>) {
    let Some(address) = address else {
        push(out, addr_name, b"unix:");
        push(out, port_name, b"");
        return;
    };
    // An IPv4 client of a listener for both versions is an IPv4 client.
    match address.ip().to_canonical() {
        IpAddr::V4(address) => push_dotted(out, addr_name, address),
        IpAddr::V6(address) => push(out, addr_name, address.to_string().as_bytes()),
    }
    push(out, port_name, itoa::Buffer::new().format(address.port()).as_bytes());
}

/// Writes an address as `Display` does, without its generality: two addresses come with every request.
fn push_dotted(out: &mut Vec<u8>, name: &[u8], address: Ipv4Addr) {
    let mut text = [0; IPV4_BYTES_MAX];
    let mut len = 0;
    let mut put = |byte| {
        text[len] = byte;
        len += 1;
    };
    for (index, octet) in address.octets().into_iter().enumerate() {
        if index > 0 {
            put(b'.');
        }
        if octet >= 100 {
            put(b'0' + octet / 100);
        }
        if octet >= 10 {
            put(b'0' + octet / 10 % 10);
        }
        put(b'0' + octet % 10);
    }
    push(out, name, &text[..len]);
}

/// The environment of a CGI program (RFC 3875 section 4.1): the pairs of a block, for
/// [`Command::envs`](std::process::Command::envs). An empty `CONTENT_LENGTH` is left out, as it should be for
/// a request without a body (section 4.1.2).
///
/// # Errors
/// [`Broken::Params`] if the block ends in the middle of a pair, or a pair would be ambiguous in an environment: a
/// NUL, an empty name, or a `=` in the name.
pub fn environment_of(block: &[u8]) -> Result<Vec<(OsString, OsString)>, Broken> {
    let mut environment = Vec::new();
    for pair in Params::new(block) {
        let (name, value) = pair?;
        let is_name = !name.is_empty() && !name.contains(&b'=') && !name.contains(&0);
        if !is_name || value.contains(&0) {
            return Err(Broken::Params);
        }
        if name != b"CONTENT_LENGTH" || !value.is_empty() {
            environment.push((OsString::from_vec(name.to_vec()), OsString::from_vec(value.to_vec())));
        }
    }
    Ok(environment)
}

/// `255.255.255.255`.
const IPV4_BYTES_MAX: usize = 15;
