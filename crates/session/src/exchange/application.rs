//! What an application is told of a request.

use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use baton_buf::Aggregate;
use baton_cache::Ask;
use baton_content::{Found, Tree, TreeConfig};
use baton_fcgi::environment::{self, Script, Variables};
use baton_fcgi::params;
use baton_http::origin::{Claims, RequestKind, ResponseHead, is_claim, is_told_anew};
use baton_http::response::Client;
use baton_http::{
    BodyFraming, FieldRules, KeptHead, Method, RequestHead, Status, Variable, as_uri, field_parts,
};
use baton_response::{Author, Page, Ready, Response, Rules, SERVER};
use baton_shares::ClientKey;
use baton_site::condition::RequestView;
use baton_site::documents::Instead;
use baton_site::facts::{AnswerFacts, RequestFacts};
use baton_site::mark::Mark;
use baton_site::plan::{CgiTerms, Delegate, Plan, Route};
use baton_telemetry::log::Outcome;
use baton_upstream::{Admission, Application, BodyRest, ClientEnds, Request};

use super::env::{Delegation, Env};
use super::find::find;
use super::guarded::Identity;
use super::routed::{RouteIndex, Routed, bypasses_cache, intercepts};
use super::{lent, tls_parameters};
use crate::context::Context;
use crate::job::Job;
use crate::transport::{PassTerms, Transport};

/// A delegated request with its plan, site and application.
#[derive(Debug)]
pub(super) struct DelegatedRequest {
    pub(super) plan: Arc<Plan>,
    pub(super) delegate: Arc<Delegate>,
    pub(super) index: RouteIndex,
    pub(super) head: KeptHead,
    /// Who asks, if that is not just the other end of the connection.
    pub(super) identity: Option<Arc<Identity>>,
    /// Its id, and the trace that it belongs to.
    pub(super) mark: Option<Arc<Mark>>,
    /// What is known of its answer by now.
    pub(super) notes: AnswerNotes,
}

/// What is known of an answer, for fields that tell of it.
#[derive(Debug, Default)]
pub(super) struct AnswerNotes {
    /// What the shared cache has done, in a word.
    pub(super) cache: Option<&'static str>,
    /// Which of several origins has answered.
    pub(super) upstream: Option<Arc<Application>>,
    /// The status with which it has answered.
    pub(super) status: Option<Status>,
}

impl DelegatedRequest {
    /// Tells the operator something about the application, and names the request.
    pub(super) fn warn(&self, ctx: &Context, warning: fmt::Arguments<'_>) {
        self.warn_of(self.delegate.application.name(), ctx, warning);
    }

    /// Tells the operator something about one of several origins, and names the request.
    pub(super) fn warn_of(&self, name: &str, ctx: &Context, warning: fmt::Arguments<'_>) {
        let request = self.shown_request();
        let kind = if self.delegate.proxy().is_some() { "origin" } else { "application" };
        ctx.warn(format_args!("{kind} {name}: {request}: {warning}"));
    }

    /// The request, as warnings show it.
    pub(super) fn shown_request(&self) -> String {
        let line = self.head.get().line;
        let versions: [&[u8]; 2] = [b" HTTP/1.1", b" HTTP/2.0"];
        let request = versions.iter().find_map(|version| line.strip_suffix(*version)).unwrap_or(line);
        let request = as_uri(&request[..request.len().min(REMARKED_BYTES_MAX)]);
        String::from_utf8_lossy(&request).into_owned()
    }

    /// What this node has at the path, or the job that finds out.
    pub(super) fn look_here(&self, env: &Env<'_>) -> Result<Found, Job> {
        let head = self.head.get();
        match Routed::of(&self.plan, self.index, &head).files() {
            Some(tree) => find(env.ctx, env.stream, tree, &head, head.path),
            None => Ok(Found::Missing),
        }
    }

    /// An error page.
    pub(super) fn page(&self, status: Status) -> Response {
        self.rules().page(Page::error(status))
    }

    /// An error page, while the error log is told what the application did.
    pub(super) fn refuse(&self, ctx: &Context, status: Status, what: &str) -> Response {
        self.warn(ctx, format_args!("{what}"));
        self.page(status).ending(self.failed())
    }

    /// What is answered in place of a response: of the home of a document, or an error for which the server has a page.
    pub(super) fn answer_instead(&self, ctx: &mut Context, instead: Instead) -> Response {
        let (rules, head) = (self.rules(), self.head.get());
        match (self.delegate.copies(), instead) {
            (Some(copies), instead) => lent::answer_instead((&rules, copies), ctx, &head, instead),
            (None, Instead::Status(status)) => rules.page(Page::error(status)),
            (None, Instead::Home) => rules.page(Page::error(Status::BAD_GATEWAY)),
        }
    }

    /// What the client gets in place of a response; `None`: the response.
    pub(super) fn instead_of(&self, response: &ResponseHead) -> Option<Instead> {
        let of_copies = self.delegate.copies().and_then(|copies| copies.instead_of(response));
        let status = response.status();
        of_copies.or_else(|| intercepts(self.route(), status).then_some(Instead::Status(status)))
    }

    /// Whether a rule keeps the request from the shared cache.
    pub(super) fn bypasses_cache(&self, client: &Transport) -> bool {
        let address = self.client_address(client).map(|address| address.ip());
        let has_certificate = client.has_certificate();
        bypasses_cache(self.route(), &RequestView { head: &self.head.get(), address, has_certificate })
    }

    /// Whether some responses give way to pages of the server.
    fn intercepts_any(&self) -> bool {
        let pages = self.route().and_then(|route| route.pages.as_ref());
        pages.is_some_and(|pages| !pages.intercepted.is_empty())
    }

    fn route(&self) -> Option<&Route> {
        self.index.of(&self.plan).1
    }

    /// Finishes a response to the request.
    pub(super) fn finish(&self, env: &mut Env<'_>, response: Response) -> Ready {
        let head = self.head.get();
        let rules = self.rules_for(&head);
        let facts = rules.has_variables().then(|| self.facts(env.client, &head));
        let rules = Rules { variables: &facts, ..rules };
        baton_response::finish(response, &rules, Some(&head), &mut env.ctx.supplies(), &mut env.reply)
    }

    /// Finishes the head with which an origin switches protocols. Returns the status that the client sees.
    pub(super) fn switch(&self, env: &mut Env<'_>, response: &ResponseHead) -> Status {
        let (rules, head) = (self.rules(), self.head.get());
        let facts = rules.has_variables().then(|| self.facts(env.client, &head));
        let rules = Rules { variables: &facts, ..rules };
        let author = Author::of(&self.delegate);
        baton_response::switch(response, author, &rules, &mut env.ctx.supplies(), &mut env.reply)
    }

    /// What variables stand for by now. `head`: the one that goes on.
    pub(super) fn facts<'f>(&'f self, client: &'f Transport, head: &'f RequestHead<'f>) -> RequestFacts<'f> {
        let notes = &self.notes;
        let only = || self.delegate.proxy().is_none_or(|terms| terms.peers.is_none());
        let upstream = notes.upstream.as_ref().or_else(|| only().then_some(&self.delegate.application));
        RequestFacts {
            head,
            matcher: self.route().map(|route| &route.matcher),
            client: self.client_ip(client),
            is_https: self.delegate.is_https(client.ip(), client.is_https(), &self.head.get()),
            tls: client.tls(),
            request_id: self.mark.as_deref().and_then(Mark::request_id),
            answer: AnswerFacts {
                cache: notes.cache,
                upstream: upstream.map(|upstream| upstream.name()),
                status: notes.status.map(Status::code),
            },
        }
    }

    /// How a request ends that what answers it has let down.
    pub(super) fn failed(&self) -> Outcome {
        if self.delegate.proxy().is_some() { Outcome::OriginFailed } else { Outcome::ApplicationFailed }
    }

    /// What every response to it obeys.
    pub(super) fn rules(&self) -> Rules<'_> {
        self.rules_for(&self.head.get())
    }

    /// What every response to this head of the request obeys.
    fn rules_for<'a>(&'a self, head: &RequestHead<'a>) -> Rules<'a> {
        Rules { mark: self.mark.as_deref(), ..Routed::of(&self.plan, self.index, head).rules }
    }

    /// The request as the application gets it.
    pub(super) fn delegation(
        &self,
        env: &mut Env<'_>,
        terms: &CgiTerms,
        program: &Program,
        ask: Option<&Arc<Ask>>,
        (body, admission): (Aggregate, Option<Admission>),
    ) -> Delegation {
        let head = ask.map_or_else(|| self.head.get(), |ask| ask.forwarded());
        let delegate = &self.delegate;
        let left = match head.framing {
            BodyFraming::Length(length) => length.saturating_sub(body.len()),
            _ => 0,
        };
        let rest = admission.filter(|_| left > 0).map(|admission| BodyRest::new(left, admission));
        let text = self.parameters(&head, env.client, terms, program, body.len() + left);
        // A connection from which a body is still read cannot be passed.
        // What the application says to the client itself, the cache would not see: neither what it could store, nor that
        // a POST has changed something. Nor would it be digested.
        let rules = self.rules();
        // Its fields are told before its status is known.
        let mut variables = rules.headers.into_iter().flat_map(FieldRules::variables);
        let tells_status = variables.any(|one| *one == Variable::UpstreamStatus);
        let may_pass = terms.passes_socket
            && !tells_status
            && !self.intercepts_any()
            && rest.is_none()
            && rules.digest.is_none()
            && delegate.cache.is_none();
        let client = may_pass.then(|| env.reply.client_to_pass()).flatten();
        let pass_terms = client.map(|Client { minor, keep, head: is_head }| {
            let keep = keep && terms.keep_passed;
            let mut fields = Vec::new();
            // What is coded, the application leaves to this server.
            if let Some(coded) = rules.compress {
                coded.push_terms(&head, &mut fields);
            }
            let facts = rules.has_variables().then(|| self.facts(env.client, &head));
            let rules = Rules { variables: &facts, ..rules };
            rules.push_fields(Author::of(delegate), env.ctx.clock.stamp(), &mut fields);
            PassTerms { minor, keep, head: is_head, fields }
        });
        let idempotent = matches!(head.method, Method::Get | Method::Head | Method::Options);
        let application = Arc::clone(&delegate.application);
        let (asked, ends) = (RequestKind::Usual, self.ends(env.client));
        let request = Request {
            application,
            peers: None,
            turn: None,
            text,
            asked,
            body,
            rest,
            idempotent,
            pass: None,
            takes_pipes: false,
            ends,
            client: self.asker(env.client),
        };
        Delegation { request: Box::new(request), ask: ask.cloned(), terms: pass_terms }
    }

    /// The ends of the client's connection, if what answers is told of them on its own.
    pub(super) fn ends(&self, client: &Transport) -> Option<ClientEnds> {
        self.delegate.application.settings().send_proxy?;
        let (client, server) = self.client_address(client).zip(client.local())?;
        Some(ClientEnds { client, server })
    }

    /// The client's address: that of the connection, or what a trusted proxy says; `None`: a Unix socket.
    pub(super) fn client_address(&self, client: &Transport) -> Option<SocketAddr> {
        self.identity.as_ref().and_then(|identity| identity.address).or_else(|| client.peer())
    }

    /// Whose share of what answers elsewhere the request takes: behind a proxy that is trusted, the client that this tells of.
    pub(super) fn asker(&self, client: &Transport) -> Option<ClientKey> {
        self.client_ip(client).map(ClientKey::of)
    }

    /// The client's address; behind a proxy that is trusted, the one that this tells of.
    fn client_ip(&self, client: &Transport) -> Option<IpAddr> {
        match self.delegate.trusts(client.ip()) {
            true => self.delegate.claimed_address(&self.head.get()),
            false => self.client_address(client).map(|address| address.ip()),
        }
    }

    fn parameters(
        &self,
        head: &RequestHead<'_>,
        client: &Transport,
        terms: &CgiTerms,
        program: &Program,
        body_len: u64,
    ) -> Vec<u8> {
        let mut block = Vec::with_capacity(BLOCK_BYTES_USUAL);
        let (delegate, own) = (&self.delegate, self.head.get());
        let local = client.local();
        let mut address = String::new();
        let server_name = head.host.unwrap_or_else(|| {
            address = local.map_or_else(|| "localhost".into(), |local| local.ip().to_string());
            &address
        });
        let request_uri = match (head.target, head.asked()) {
            ([b'/', ..], _) => as_uri(head.target),
            (_, (path, Some(query))) => Cow::Owned(as_uri(&[path, b"?", query].concat()).into_owned()),
            (_, (path, None)) => as_uri(path),
        };
        let root = terms.document_root.as_deref().map(|root| root.as_os_str().as_bytes());
        let variables = Variables {
            method: head.line.split(|&byte| byte == b' ').next().unwrap_or_default(),
            request_uri: &request_uri,
            query_string: &as_uri(head.query.unwrap_or_default()),
            script: program.split(),
            document_root: root.unwrap_or_default(),
            script_filename: program.file.as_deref(),
            content_length: (!matches!(head.framing, BodyFraming::None)).then_some(body_len),
            protocol: head.version.as_str(),
            https: delegate.is_https(client.ip(), client.is_https(), &own),
            server_software: SERVER.as_bytes(),
            server_name: server_name.as_bytes(),
            host: head.host.map(|host| (host.as_bytes(), head.port)),
            remote: self.client_address(client),
            local,
        };
        variables.push(&mut block);
        if let Some(facts) = client.tls() {
            tls_parameters::push(&mut block, facts);
        }
        if let Some(user) = self.identity.as_ref().and_then(|identity| identity.user.as_deref()) {
            params::push(&mut block, b"AUTH_TYPE", b"Basic");
            params::push(&mut block, b"REMOTE_USER", user.as_bytes());
        }
        let mut fields = Vec::with_capacity(FIELDS_USUAL);
        let is_trusted = delegate.trusts(client.ip());
        let goes_on = |name: &[u8]| !is_told_anew(name) && (is_trusted || !is_claim(name));
        fields.extend(
            head.fields().map(|(name, value)| (name.as_bytes(), value)).filter(|field| goes_on(field.0)),
        );
        let mut told = Vec::new();
        if is_trusted {
            Claims::of(&own).push_fields(&mut told);
        }
        fields.extend(field_parts(&told));
        environment::push_fields(&mut block, fields.iter().copied());
        if !terms.params.is_empty() {
            // Libraries disagree on which of two equal names counts, so there must be only one.
            params::remove(&mut block, |name| terms.params.iter().any(|(own, _)| own.as_bytes() == name));
            for (name, value) in &terms.params {
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
    /// An application that has all paths below its own; `path` as [`CgiTerms::decode`](baton_site::plan::CgiTerms::decode) gives it.
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
    let first = Script::first_of(path, endings);
    first.map_or((path, b""), |script| (script.name, script.path_info))
}

/// Bytes of a request line in a warning.
const REMARKED_BYTES_MAX: usize = 200;

/// Fields of a browser's request.
const FIELDS_USUAL: usize = 16;

/// Bytes of a simple request's parameters. glibc caches blocks of up to 1,032 bytes per thread: a larger first block
/// costs more than growing once for a browser's request.
const BLOCK_BYTES_USUAL: usize = 1024;
