//! What an application is told of a request.

use std::borrow::Cow;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use baton_buf::Aggregate;
use baton_content::{Tree, TreeConfig};
use baton_fcgi::cgi;
use baton_fcgi::environment::{self, Script, Variables};
use baton_fcgi::offer::Client;
use baton_fcgi::params;
use baton_gateway::{Admission, BodyRest, Request};
use baton_http::{BodyFraming, KeptHead, Method, ReplyHead, RequestHead, Status, as_uri};

use super::env::{Delegation, Env, Ready};
use super::page::{Page, SERVER};
use super::routed::Routed;
use super::tls_parameters;
use crate::context::Context;
use crate::log::Outcome;
use crate::plan::{Delegate, Plan};
use crate::protocol::Responder;
use crate::transport::{HandOverTerms, Transport};

/// A delegated request with its plan, site and application.
#[derive(Debug)]
pub(super) struct Origin {
    pub(super) plan: Arc<Plan>,
    pub(super) delegate: Arc<Delegate>,
    pub(super) site_index: usize,
    pub(super) head: KeptHead,
}

impl Origin {
    /// Tells the operator something about the application, and names the request.
    pub(super) fn remark(&self, ctx: &Context, remark: fmt::Arguments<'_>) {
        let line = self.head.get().line;
        let versions: [&[u8]; 2] = [b" HTTP/1.1", b" HTTP/2.0"];
        let request = versions.iter().find_map(|version| line.strip_suffix(*version)).unwrap_or(line);
        let request = as_uri(&request[..request.len().min(REMARKED_BYTES_MAX)]);
        let request = String::from_utf8_lossy(&request);
        ctx.remark(format_args!("application {}: {request}: {remark}", self.delegate.application.name()));
    }

    /// Answers with an error page.
    pub(super) fn page(&self, ctx: &mut Context, status: Status, reply: &mut Responder<'_>) -> Ready {
        self.routed().page(ctx, Page::error(status), reply)
    }

    /// Like [`page`](Self::page), and writes to the error log what the application did.
    pub(super) fn refuse(
        &self,
        ctx: &mut Context,
        status: Status,
        what: &str,
        reply: &mut Responder<'_>,
    ) -> Ready {
        self.remark(ctx, format_args!("{what}"));
        Ready { outcome: Outcome::ApplicationFailed, ..self.page(ctx, status, reply) }
    }

    pub(super) fn routed(&self) -> Routed<'_> {
        let routed = Routed::of(&self.plan, self.site_index, None, self.head.get().method);
        Routed { headers: &self.delegate.headers, ..routed }
    }

    /// The fields of every response of the route, as complete lines, after the rules for the application's own fields.
    pub(super) fn response_fields(&self, ctx: &Context) -> Vec<u8> {
        let headers = &self.delegate.headers;
        let mut fields = Vec::with_capacity(64);
        for name in headers.dropped() {
            cgi::push_drop(&mut fields, name);
        }
        for (name, value) in headers.defaults() {
            cgi::push_default(&mut fields, name, value);
        }
        let mut reply = ReplyHead::resume(&mut fields);
        if self.plan.server_header {
            reply.field("Server", SERVER);
        }
        reply.date(ctx.clock.stamp());
        for (name, value) in headers.added() {
            reply.field(name, value);
        }
        fields
    }

    /// The request as the application gets it.
    pub(super) fn delegation(
        &self,
        env: &mut Env<'_>,
        program: &Program,
        (body, admission): (Aggregate, Option<Admission>),
    ) -> Delegation {
        let (head, delegate) = (self.head.get(), &self.delegate);
        let left = match head.framing {
            BodyFraming::Length(length) => length.saturating_sub(body.len()),
            _ => 0,
        };
        let rest = admission.filter(|_| left > 0).map(|admission| BodyRest::new(left, admission));
        let params = self.parameters(&head, env.client, program, body.len() + left);
        // A connection from which a body is still read cannot be passed.
        let may_hand_over = delegate.hand_over && rest.is_none();
        let client = may_hand_over.then(|| env.reply.client_to_hand_over()).flatten();
        let terms = client.map(|Client { minor, keep, head }| {
            let keep = keep && delegate.keep_passed;
            HandOverTerms { minor, keep, head, fields: self.response_fields(env.ctx) }
        });
        let idempotent = matches!(head.method, Method::Get | Method::Head | Method::Options);
        let application = Arc::clone(&delegate.application);
        let request = Request { application, params, body, rest, idempotent, handover: None };
        Delegation { request: Box::new(request), terms }
    }

    fn parameters(
        &self,
        head: &RequestHead<'_>,
        client: &Transport,
        program: &Program,
        body_len: u64,
    ) -> Vec<u8> {
        let delegate = &self.delegate;
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
            protocol: head.version.as_str(),
            https: client.tls().is_some(),
            server_software: SERVER.as_bytes(),
            server_name: server_name.as_bytes(),
            host: head.host.map(|host| (host.as_bytes(), head.port)),
            remote: client.peer(),
            local,
        };
        variables.push(&mut block);
        if let Some(facts) = client.tls() {
            tls_parameters::push(&mut block, facts);
        }
        let mut fields = Vec::with_capacity(FIELDS_USUAL);
        fields.extend(head.fields().map(|(name, value)| (name.as_bytes(), value)));
        environment::push_fields(&mut block, fields.iter().copied());
        if !delegate.params.is_empty() {
            // Libraries disagree on which of two equal names counts, so there must be only one.
            params::remove(&mut block, |name| delegate.params.iter().any(|(own, _)| own.as_bytes() == name));
            for (name, value) in &delegate.params {
                params::push(&mut block, name.as_bytes(), value.as_bytes());
            }
        }
        block
    }
}

/// The program that a path names, and the path behind its name. All paths are decoded, and begin with `/` or are empty.
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

    /// A script, and the decoded path behind its name.
    pub(super) fn script(tree: &Tree, script: &[u8], path_info: &[u8]) -> Self {
        let TreeConfig { root, strip_prefix, .. } = tree.config();
        if strip_prefix.is_empty() {
            return Self { path: [b"/", script, path_info].concat(), name_len: 1 + script.len(), file: None };
        }
        let path = [b"/", strip_prefix.as_bytes(), b"/", script, path_info].concat();
        let name_len = path.len() - path_info.len();
        Self { path, name_len, file: Some([root.as_os_str().as_bytes(), b"/", script].concat()) }
    }

    /// The fallback script for a path at which there is nothing. Its `PATH_INFO` is the requested path below the
    /// script's folder, as if the client had requested the script by name.
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

/// Splits a decoded path without a leading slash after the path of a route.
fn below<'a>(own: &'a str, path: &'a [u8]) -> Script<'a> {
    Script::below(path, own.as_bytes()).unwrap_or(Script { name: b"", path_info: path })
}

/// The separator of these parts: without a name, the slash that a decoded path lacks.
fn slash_behind(name: &[u8]) -> &'static [u8] {
    if name.is_empty() { b"/" } else { b"" }
}

/// Splits a decoded path after the name of its first script: the name, and the rest for the script.
pub(super) fn split_path_info<'a>(path: &'a [u8], endings: &[String]) -> (&'a [u8], &'a [u8]) {
    let scripts = endings.iter().filter_map(|ending| Script::with_extension(path, ending.as_bytes()));
    let first = scripts.min_by_key(|script| script.name.len());
    first.map_or((path, b""), |script| (script.name, script.path_info))
}

/// Bytes of a request line in a remark.
const REMARKED_BYTES_MAX: usize = 200;

/// Fields of a browser's request.
const FIELDS_USUAL: usize = 16;

/// Bytes of a simple request's parameters. glibc caches blocks of up to 1,032 bytes per thread: a larger first block
/// costs more than growing once for a browser's request.
const BLOCK_BYTES_USUAL: usize = 1024;
