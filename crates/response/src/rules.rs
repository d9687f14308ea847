//! What the configuration, and the request's id and origin, have to say in every head.

use baton_http::origin::ResponseHead;
use baton_http::response::{push_default, push_drop, push_join};
use baton_http::{FieldRules, ReplyHead, Stamp, VariableSource, VariableText, is_same_field};
use baton_site::cors::Allowed;
use baton_site::mark::Mark;
use baton_site::matcher::Matcher;
use baton_site::plan::{Digest, ErrorPage, Fetching, Plan};

use crate::value::Author;

/// What of the configuration shapes the responses to a request.
#[derive(Clone, Copy, Debug)]
pub struct Rules<'a> {
    /// Fields that the configuration adds to each response, takes from it, or gives it.
    pub headers: Option<&'a FieldRules>,
    /// What the variables in them stand for.
    pub variables: &'a dyn VariableSource,
    /// The matcher of the route, whose groups are variables.
    pub matcher: Option<&'a Matcher>,
    /// Bodies in place of the built-in ones.
    pub error_pages: &'a [ErrorPage],
    /// Which bodies are coded on the fly.
    pub compress: Option<&'a baton_compress::Rules>,
    /// Which bodies have a digest that is their tag, if the request is one that gets it.
    pub digest: Option<Digest>,
    /// Whether the page may read the response that has sent the request.
    pub allowed: Option<Allowed<'a>>,
    /// The id of the request, and its trace.
    pub mark: Option<&'a Mark>,
    /// The media types that the client takes.
    pub accept: Option<&'a [u8]>,
    /// Whether a file was in memory, if the request is one whose response says so.
    pub was_in_memory: bool,
    /// Whether responses say what the server is.
    pub server_header: bool,
    /// More ranges of a file than these are the whole.
    pub ranges_max: usize,
}

impl<'a> Rules<'a> {
    /// Rules for a request for which there is no site.
    pub fn without_site(plan: &'a Plan) -> Self {
        Self {
            headers: None,
            variables: &(),
            matcher: None,
            error_pages: &[],
            compress: None,
            digest: None,
            allowed: None,
            mark: None,
            accept: None,
            was_in_memory: false,
            server_header: plan.server_header,
            ranges_max: plan.limits.ranges_max,
        }
    }

    /// Whether the head is for this request alone.
    pub(crate) fn is_personal(&self) -> bool {
        self.allowed.is_some() || self.id().is_some() || self.has_variables() || self.was_in_memory
    }

    /// Whether the fields that the configuration adds depend on the request.
    pub fn has_variables(&self) -> bool {
        self.headers.is_some_and(FieldRules::has_variables)
    }

    /// The field with the request's id, if responses have it.
    fn id(&self) -> Option<(&'a str, &'a str)> {
        self.mark?.response_field()
    }

    /// Appends what a head of this author lacks: edits of its fields, then complete lines that stand in front of them
    /// (`docs/handover-protocol.md`, section 2).
    pub fn push_fields(&self, author: Author, now: &Stamp, out: &mut Vec<u8>) {
        self.push_edits(author, out);
        self.push_lines(author, now, out);
    }

    fn push_edits(&self, author: Author, out: &mut Vec<u8>) {
        let Some(headers) = self.headers else { return };
        let is_file = matches!(author, Author::File);
        if !is_file {
            self.push_changes(headers, author, out);
        }
        // A file's own head has the constant ones.
        for (name, value) in headers.defaults().filter(|(_, value)| !is_file || value.fixed().is_none()) {
            let value = value.field(self.variables);
            if !value.is_empty() {
                push_default(out, name, value);
            }
        }
    }

    /// Appends edits of the fields that are there.
    fn push_changes(&self, headers: &FieldRules, author: Author, out: &mut Vec<u8>) {
        if !matches!(author, Author::Server(_)) {
            headers.dropped().for_each(|name| push_drop(out, name));
            // Ours takes the place of the application's.
            if let Some((name, _)) = self.id() {
                push_drop(out, name);
            }
        }
        headers
            .added()
            .filter(|(name, _)| is_list(name))
            .for_each(|(name, value)| push_join(out, name, value.field(self.variables)));
    }

    fn push_lines(&self, author: Author, now: &Stamp, out: &mut Vec<u8>) {
        let mut lines = ReplyHead::resume(out);
        if self.server_header && !matches!(author, Author::Origin) {
            lines.field("Server", SERVER);
        }
        if !matches!(author, Author::Origin | Author::Application { is_stored: true }) {
            lines.date(now);
        }
        if let Some((name, id)) = self.id() {
            lines.field(name, id);
        }
        if let Some(allowed) = &self.allowed {
            allowed.push(&mut lines);
        }
        if self.was_in_memory {
            let (name, value) = Fetching::HIT;
            lines.field(name, value);
        }
        let Some(headers) = self.headers else { return };
        let is_said = |name: &str, value: &VariableText| match author {
            Author::Server(own) => own.iter().any(|own| is_same_field(own, name)),
            Author::File => value.fixed().is_some(),
            Author::Application { .. } | Author::Origin => false,
        };
        for (name, value) in headers.added().filter(|(name, value)| !is_list(name) && !is_said(name, value)) {
            let value = value.field(self.variables);
            if !value.is_empty() {
                lines.field(name, value);
            }
        }
    }
}

/// Appends an edit: `Date` for the head of an origin, or of a stored response, that has none. Its author has no clock; no rule of a
/// route is about this field.
pub(crate) fn push_date(author: Author, head: &ResponseHead, now: &Stamp, out: &mut Vec<u8>) {
    let may_lack_it = matches!(author, Author::Origin | Author::Application { is_stored: true });
    if may_lack_it && head.field("Date").is_none() {
        push_default(out, "Date", now.date);
    }
}

/// Whether a field is a list that has one line, however many have a say in it.
fn is_list(name: &str) -> bool {
    name.eq_ignore_ascii_case("Vary")
}

/// Value of the `Server` field.
pub const SERVER: &str = "baton";
