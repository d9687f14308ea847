//! A request that an application answers: what the application is told of it.

use std::borrow::Cow;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use baton_buf::Aggregate;
use baton_content::{Tree, TreeConfig};
use baton_fcgi::cgi;
use baton_fcgi::environment::{self, Script, Variables};
use baton_fcgi::params;
use baton_gateway::{Admission, BodyRest, Request};
use baton_http::{BodyFraming, Method, ReplyHead, RequestHead, Status, Version, as_uri};

use super::page::{Page, SERVER};
use super::{Answer, Asked, Given, Ready};
use crate::context::Context;
use crate::plan::{Delegate, Plan};
use crate::protocol::{self, Body, Responder};
use crate::transport::Transport;
use crate::upload::Upload;

/// A request on its way to an application, and what the answer needs to know of it.
#[derive(Debug)]
pub(crate) struct Delegation {
    /// What the application is asked, without what only the client's transport can give.
    pub(crate) request: Request,
    /// The fields of its response on the client's own connection, if it may answer there.
    pub(crate) passed_fields: Option<Vec<u8>>,
    /// Where it came from.
    pub(crate) origin: Origin,
}

/// What remains of a request that was given away.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    pub(crate) plan: Arc<Plan>,
    pub(crate) delegate: Arc<Delegate>,
    pub(crate) site_index: usize,
    pub(crate) method: Method,
    /// The request's head, for answers that depend on its conditions.
    pub(crate) head: Box<[u8]>,
}

impl Origin {
    /// Tells whoever runs the server something about the application, and about which request it is.
    pub(crate) fn remark(&self, ctx: &Context, remark: fmt::Arguments<'_>) {
        let line = self.head.split(|&byte| byte == b'\r').next().unwrap_or_default();
        let request = line.strip_suffix(b" HTTP/1.1").unwrap_or(line);
        let request = as_uri(&request[..request.len().min(REMARKED_BYTES_MAX)]);
        let request = String::from_utf8_lossy(&request);
        ctx.remark(format_args!("application {}: {request}: {remark}", self.delegate.application.name()));
    }

    /// The head of a request by the same client for something else within the site, without a body or conditions.
    /// `None` if there can be no such target.
    pub(crate) fn redirected_to(&self, target: &[u8], keep_alive: bool) -> Option<Vec<u8>> {
        if !target.iter().all(u8::is_ascii_graphic) {
            return None;
        }
        let method: &[u8] = if self.method == Method::Head { b"HEAD" } else { b"GET" };
        let head = RequestHead::parse(&self.head, &self.plan.limits.head).ok()?;
        let is_old = head.version == Version::Http10;
        let version: &[u8] = if is_old { b" HTTP/1.0\r\n" } else { b" HTTP/1.1\r\n" };
        let mut request = [method, b" ", target, version].concat();
        for (name, value) in head.fields().filter(|(name, _)| !belongs_to_the_first(name)) {
            request.extend_from_slice(&[name.as_bytes(), b": ", value, b"\r\n"].concat());
        }
        if !keep_alive {
            request.extend_from_slice(b"Connection: close\r\n");
        }
        request.extend_from_slice(b"\r\n");
        Some(request)
    }
}

/// Whether a field is about the body or the state of what was asked for first.
fn belongs_to_the_first(name: &str) -> bool {
    OF_THE_FIRST.iter().any(|other| name.eq_ignore_ascii_case(other))
        || name.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("If-"))
}

const OF_THE_FIRST: [&str; 6] =
    ["Content-Length", "Content-Type", "Transfer-Encoding", "Expect", "Range", "Connection"];

/// The program that a path names, and what comes behind it. All paths are decoded, and begin with `/` or are empty.
#[derive(Debug)]
pub(super) struct Program {
    /// `SCRIPT_NAME`, as in a URL, and behind it `PATH_INFO`.
    path: Vec<u8>,
    name_len: usize,
    /// `SCRIPT_FILENAME`, where it does not follow from the document root and the name.
    file: Option<Vec<u8>>,
}

impl Program {
    /// An application that has all paths below its own; `path` as [`Delegate::decode`] gives it.
    pub(super) fn below(own: &str, path: &[u8]) -> Self {
        let Script { name, path_info } = below(own, path);
        Self { path: [name, slash_behind(name), path_info].concat(), name_len: name.len(), file: None }
    }

    /// A file that is run, and what is decoded behind its name.
    pub(super) fn script(tree: &Tree, script: &[u8], path_info: &[u8]) -> Self {
        let TreeConfig { root, strip_prefix, .. } = tree.config();
        if strip_prefix.is_empty() {
            return Self { path: [b"/", script, path_info].concat(), name_len: 1 + script.len(), file: None };
        }
        let path = [b"/", strip_prefix.as_bytes(), b"/", script, path_info].concat();
        let name_len = path.len() - path_info.len();
        Self { path, name_len, file: Some([root.as_os_str().as_bytes(), b"/", script].concat()) }
    }

    /// The file that is run where nothing is at a path. What was asked for, below the folder of that file, is what stands
    /// behind its name, as if it had been asked for by it.
    pub(super) fn fallback(tree: &Tree, script: &[u8], path: &[u8]) -> Self {
        let Script { name, path_info } = below(&tree.config().strip_prefix, path);
        let asked = [slash_behind(name), path_info].concat();
        let folder = script.iter().rposition(|byte| *byte == b'/').map_or(&b""[..], |slash| &script[..slash]);
        let below_folder = Script::below(&asked, folder).map_or(&*asked, |split| split.path_info);
        Self::script(tree, script, below_folder)
    }

    fn split(&self) -> Script<'_> {
        let (name, path_info) = self.path.split_at(self.name_len);
        Script { name, path_info }
    }
}

/// Splits a decoded path, which has no slash in front, behind the path of a route.
fn below<'a>(own: &'a str, path: &'a [u8]) -> Script<'a> {
    Script::below(path, own.as_bytes()).unwrap_or(Script { name: b"", path_info: path })
}

/// What stands between these parts: where there is no name, the slash that a decoded path lacks.
fn slash_behind(name: &[u8]) -> &'static [u8] {
    if name.is_empty() { b"/" } else { b"" }
}

/// Where the name of a script ends in a decoded path, and what is for the script begins.
pub(super) fn split_path_info<'a>(path: &'a [u8], endings: &[String]) -> (&'a [u8], &'a [u8]) {
    let scripts = endings.iter().filter_map(|ending| Script::with_extension(path, ending.as_bytes()));
    let first = scripts.min_by_key(|script| script.name.len());
    first.map_or((path, b""), |script| (script.name, script.path_info))
}

impl Asked<'_> {
    /// Gives a request to its application, once as much of it is there as has to be, and nothing else is under way.
    pub(super) fn application(
        &self,
        ctx: &Context,
        request: &protocol::Request<'_>,
        given: Given<'_>,
        delegate: &Arc<Delegate>,
        program: &Program,
        reply: &mut Responder<'_>,
    ) -> Answer {
        let head = &request.head;
        if let Body::Ahead { .. } = request.body {
            let has_length = matches!(head.framing, BodyFraming::Length(_));
            let streamed = has_length.then(|| delegate.application.settings().streamed_bodies.clone());
            let upload = Box::new(Upload::new(delegate.upload.clone(), streamed));
            return Answer::NeedsBody { upload: Some(upload), bytes_max: delegate.upload.bytes_max };
        }
        // Who is given the socket must find it as if nothing had been asked before.
        if !reply.is_next() {
            return Answer::AfterOthers;
        }
        let kept = given.upload.take().map(|upload| upload.into_parts());
        Answer::Delegated(Box::new(self.delegation(
            ctx,
            request,
            given.client,
            delegate,
            program,
            kept.unwrap_or_default(),
        )))
    }

    /// The request as the application gets it.
    fn delegation(
        &self,
        ctx: &Context,
        request: &protocol::Request<'_>,
        client: &Transport,
        delegate: &Arc<Delegate>,
        program: &Program,
        (body, admission): (Aggregate, Option<Admission>),
    ) -> Delegation {
        let head = &request.head;
        let left = match head.framing {
            BodyFraming::Length(length) => length.saturating_sub(body.len()),
            _ => 0,
        };
        let rest = admission.filter(|_| left > 0).map(|admission| BodyRest::new(left, admission));
        let block = self.parameters(head, client, delegate, program, body.len() + left);
        // A connection from which a body is still read cannot be given away.
        let may_hand_over = delegate.hand_over && rest.is_none();
        let passed_fields = may_hand_over.then(|| response_fields(ctx, self.server_header, delegate));
        let idempotent = matches!(self.method, Method::Get | Method::Head | Method::Options);
        let application = Arc::clone(&delegate.application);
        let asked = Request { application, params: block, body, rest, idempotent, handover: None };
        let origin = Origin {
            plan: Arc::clone(&ctx.plan),
            delegate: Arc::clone(delegate),
            site_index: self.site_index,
            method: self.method,
            head: request.head_bytes.into(),
        };
        Delegation { request: asked, passed_fields, origin }
    }

    fn parameters(
        &self,
        head: &RequestHead<'_>,
        client: &Transport,
        delegate: &Delegate,
        program: &Program,
        body_len: u64,
    ) -> Vec<u8> {
        let mut block = Vec::with_capacity(BLOCK_BYTES_USUAL);
        let local = client.local();
        let mut address = String::new();
        let server_name = head.host.unwrap_or_else(|| {
            address = local.map_or_else(|| "localhost".into(), |local| local.ip().to_string());
            &address
        });
        let request_uri = match (head.target, head.query) {
            ([b'/', ..], _) => as_uri(head.target),
            (_, Some(query)) => Cow::Owned(as_uri(&[head.path, b"?", query].concat()).into_owned()),
            (_, None) => as_uri(head.path),
        };
        let root = delegate.document_root.as_deref().map(|root| root.as_os_str().as_bytes());
        let variables = Variables {
            method: head.line.split(|&byte| byte == b' ').next().unwrap_or_default(),
            request_uri: &request_uri,
            query_string: &as_uri(head.query.unwrap_or_default()),
            script: program.split(),
            document_root: root.unwrap_or_default(),
            script_filename: program.file.as_deref(),
            content_length: (!matches!(head.framing, BodyFraming::None)).then_some(body_len),
            minor: u8::from(head.version == Version::Http11),
            https: false,
            server_software: SERVER.as_bytes(),
            server_name: server_name.as_bytes(),
            host: head.host.map(|host| (host.as_bytes(), head.port)),
            remote: client.peer(),
            local,
        };
        variables.push(&mut block);
        let mut fields = Vec::with_capacity(FIELDS_USUAL);
        fields.extend(head.fields().map(|(name, value)| (name.as_bytes(), value)));
        environment::push_fields(&mut block, fields.iter().copied());
        if !delegate.params.is_empty() {
            // Libraries disagree about which of two values counts, so there must be one.
            params::remove(&mut block, |name| delegate.params.iter().any(|(own, _)| own.as_bytes() == name));
            for (name, value) in &delegate.params {
                params::push(&mut block, name.as_bytes(), value.as_bytes());
            }
        }
        block
    }
}

/// The fields that every response of a route has, complete lines, behind what becomes of the application's own.
pub(crate) fn response_fields(ctx: &Context, server_header: bool, delegate: &Delegate) -> Vec<u8> {
    let mut fields = Vec::with_capacity(64);
    for name in delegate.headers.dropped() {
        cgi::push_drop(&mut fields, name);
    }
    for (name, value) in delegate.headers.defaults() {
        cgi::push_default(&mut fields, name, value);
    }
    let mut reply = ReplyHead::resume(&mut fields);
    if server_header {
        reply.field("Server", SERVER);
    }
    reply.date(ctx.clock.stamp());
    for (name, value) in delegate.headers.added() {
        reply.field(name, value);
    }
    fields
}

/// Says that an application gave no answer.
pub(crate) fn failure_page(
    ctx: &mut Context,
    origin: &Origin,
    status: Status,
    reply: &mut Responder<'_>,
) -> Ready {
    let site = &origin.plan.sites()[origin.site_index];
    let asked = Asked {
        site,
        site_index: origin.site_index,
        method: origin.method,
        server_header: origin.plan.server_header,
        headers: &origin.delegate.headers,
    };
    asked.page(ctx, Page::error(status), reply)
}

/// Of a request line, in a remark.
const REMARKED_BYTES_MAX: usize = 200;

/// Fields that a browser's request has.
const FIELDS_USUAL: usize = 16;

/// Bytes that the parameters of a simple request take. More than 1,032 are not kept by glibc for the next request of a
/// thread, which costs more than to grow once for a browser's.
const BLOCK_BYTES_USUAL: usize = 1024;
