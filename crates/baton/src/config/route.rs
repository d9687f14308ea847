//! `[[site.route]]`: what is different below a path.

use std::ops::Range;

use super::application::Application;
use super::files::Files;
use super::kind::{Flag, Integer, Kind, Or, Reading};
use super::launch::CGI_COMMAND;
use super::media_types::MEDIA_TYPE;
use super::raw::Node;
use super::report::Complaint;
use super::setting::{Inline, Section, Table, settings};
use super::text::{TextOf, Wrong};

/// A part of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    /// Where, and what instead of files.
    pub(crate) settings: RouteSettings,
    /// How files are served; of a fixed answer, only the fields count.
    pub(crate) files: Files,
}

settings! {
    /// What is different below a path. A route has the keys of a site that say how files are served, or `redirect`,
    /// `respond`, `fastcgi`, `scgi` or `cgi`. The longest path that fits a request wins.
    RouteSettings in "site.route" needs ["path"] {
        /// Path prefix, ending on a segment's border: `/docs` holds for `/docs` and `/docs/…`, not for `/docset`.
        path: String = "/".into(), ROUTE_PATH;
        /// Whether the path is removed before the file is looked for. If not given: true for a route with a root of its
        /// own, so that `/docs/a.html` is the file `a.html` of that root.
        strip_prefix: bool = false, Flag;
        /// Sends clients elsewhere: `{ to = "https://example.org$uri", status = 301 }`. A `$uri` at the end stands for
        /// the request's path and query; without `status`, 302.
        redirect: Option<Redirect> = None, Or("off", Inline::<Redirect>::new());
        /// A fixed answer: `{ status = 410, body = "Gone.\n", media_type = "text/plain" }`.
        respond: Option<Respond> = None, Or("off", Inline::<Respond>::new());
        /// A FastCGI application answers: `{ to = "unix:/run/app.sock" }` or `{ command = ["./app"] }`. Its `DOCUMENT_ROOT` is the `root` of the route.
        fastcgi: Option<Application> = None, Or("off", Inline::<Application>::new());
        /// The same with SCGI, with the same keys.
        scgi: Option<Application> = None, Or("off", Inline::<Application>::new());
        /// Programs answer, one run for each request: the files of the `root` whose names end as `scripts` says. The other
        /// keys are those of `fastcgi`; `processes` is how many programs run at a time. `{ scripts = [".cgi"] }`.
        cgi: Option<Application> = None, Or("off", Inline::<Application>::new());
    }
}

settings! {
    /// Where clients are sent.
    Redirect in "site.route.redirect" needs ["to"] {
        /// Value of `Location`: a URL or a path. A `$uri` at its end stands for the request's path and query.
        to: String = "/".into(), LOCATION;
        /// 301, 302, 303, 307 or 308.
        status: u64 = 302, Status(&[301, 302, 303, 307, 308]);
    }
}

settings! {
    /// A fixed answer.
    Respond in "site.route.respond" needs ["status"] {
        /// Status code, 200 to 599, but not 204, 205 or 304: these have no body.
        status: u64 = 200, Status(&[]);
        /// The body.
        body: String = String::new(), Body;
        /// Value of `Content-Type`.
        media_type: String = "text/plain; charset=utf-8".into(), MEDIA_TYPE;
    }
}

impl Route {
    /// Reads a route of a site that serves files as `inherited` says. `span` is where the route begins.
    pub(crate) fn read(
        mut table: Table<'_>,
        span: Range<usize>,
        inherited: &Files,
        reading: &mut Reading<'_>,
    ) -> Self {
        let base = RouteSettings { strip_prefix: table.has("root"), ..RouteSettings::default() };
        let mut settings = RouteSettings::read(&mut table, base, reading);
        if let Some(cgi) = settings.cgi.as_mut().filter(|cgi| cgi.to.is_none() && cgi.command.is_empty()) {
            cgi.command = CGI_COMMAND.map(str::to_owned).into();
        }
        let files = Files::read(&mut table, inherited.clone(), reading);
        table.need(RouteSettings::NEEDED, span.clone(), reading);
        if files.root.is_none() && !table.has("root") && !INSTEAD.iter().any(|key| table.has(key)) {
            let complaint = Complaint::new("a route that serves nothing")
                .at(span.clone(), "has no `root`, nor has its site");
            reading.complain(complaint.help("add `root`, `redirect`, `respond`, `fastcgi`, `scgi` or `cgi`"));
        }
        if let Some((_, application)) = settings.application()
            && !application.scripts.is_empty()
            && files.root.is_none()
        {
            let complaint = Complaint::new("scripts without a folder");
            reading
                .complain(complaint.at(span.clone(), "has no `root`, nor has its site").help("add `root`"));
        }
        if let Some((key, application)) = settings.keyed_application() {
            let at = table.span_of(key).unwrap_or(span);
            match (&application.to, application.command.as_slice()) {
                (None, []) => {
                    let complaint = Complaint::new("an application that is nowhere");
                    let complaint = complaint.at(at, "has neither `to` nor `command`");
                    reading.complain(complaint.help("give its address, or the command that starts it"));
                }
                _ if key == "cgi" && application.scripts.is_empty() => {
                    let complaint = Complaint::new("programs without names").at(at, "has no `scripts`");
                    reading.complain(complaint.help("say which files are run: `scripts = [\".cgi\"]`"));
                }
                (Some(_), [_, ..]) => {
                    let complaint = Complaint::new("an application has either `to` or `command`");
                    reading.complain(complaint.at(at, "has both"));
                }
                _ => {}
            }
        }
        let instead = INSTEAD.into_iter().filter_map(|key| table.span_of(key).map(|span| (key, span)));
        if let Some((instead, span)) = instead.max_by_key(|(_, span)| span.start) {
            for key in settings.meaningless() {
                if let Some(useless) = table.span_of(key).filter(|_| key != instead) {
                    let complaint = Complaint::new(format!("a route has either `{instead}` or `{key}`"));
                    reading.complain(
                        complaint.at(useless, "without effect here").at(span.clone(), "because of this"),
                    );
                }
            }
        }
        table.finish(reading);
        Self { settings, files }
    }

    /// The keys that count, with their values: what is written back.
    pub(crate) fn write(&self) -> Vec<(&'static str, toml::Value)> {
        let meaningless = self.settings.meaningless();
        let keys = RouteSettings::settings().into_iter().zip(self.settings.write());
        let keys = keys.chain(Files::settings().into_iter().zip(self.files.write()));
        keys.map(|(setting, value)| (setting.name, value))
            .filter(|(name, _)| !meaningless.contains(name))
            .collect()
    }
}

impl RouteSettings {
    /// The application that answers, and whether it is spoken to in FastCGI.
    pub(crate) fn application(&self) -> Option<(bool, &Application)> {
        self.keyed_application().map(|(key, application)| (key != "scgi", application))
    }

    /// The application that answers, and the key under which it stands.
    fn keyed_application(&self) -> Option<(&'static str, &Application)> {
        let known = [("fastcgi", &self.fastcgi), ("scgi", &self.scgi), ("cgi", &self.cgi)];
        known.into_iter().find_map(|(key, application)| Some((key, application.as_ref()?)))
    }

    /// Keys without effect on such a route.
    fn meaningless(&self) -> Vec<&'static str> {
        let files = || Files::settings().into_iter().map(|setting| setting.name);
        let unserved = || files().filter(|name| *name != "headers").chain(["strip_prefix"]);
        let others = |mine| INSTEAD.into_iter().filter(move |key| *key != mine);
        match (&self.redirect, &self.respond, self.keyed_application()) {
            (None, None, None) => Vec::new(),
            (Some(_), ..) => unserved().chain(others("redirect")).collect(),
            (None, Some(_), _) => unserved().chain(others("respond")).collect(),
            (None, None, Some((key, application))) => {
                let others = others(key);
                match application.scripts.is_empty() {
                    true => {
                        let kept = ["root", "headers"];
                        files().filter(|name| !kept.contains(name)).chain(others).collect()
                    }
                    false => others.collect(),
                }
            }
        }
    }
}

/// Keys of what answers instead of files.
const INSTEAD: [&str; 5] = ["redirect", "respond", "fastcgi", "scgi", "cgi"];

/// Where a route begins.
const ROUTE_PATH: TextOf = TextOf {
    accepted: "a path that begins with `/`",
    check: |path| match path.starts_with('/') {
        true => Ok(path),
        false => Err(Wrong::new("does not begin with `/`", format!("expected \"/{path}\""))),
    },
};

/// The value of a `Location` field.
const LOCATION: TextOf = TextOf {
    accepted: "a URL or a path, perhaps ending in `$uri`",
    check: |to| {
        let plain = to.strip_suffix("$uri").unwrap_or(&to);
        let begins_well = ["/", "http://", "https://", "$uri"].iter().any(|begin| to.starts_with(begin));
        let label = if !begins_well {
            "expected `/…`, `http://…` or `https://…`"
        } else if plain.contains('$') {
            "only `$uri`, at the end, is replaced"
        } else if plain.contains(|c: char| !c.is_ascii_graphic()) {
            "other characters than visible ASCII must be percent-encoded"
        } else {
            return Ok(to);
        };
        Err(Wrong::new("is not a location", label))
    },
};

/// A status code: one of a list, or if that is empty any final one that has a body.
struct Status(&'static [u64]);

impl Kind for Status {
    type Value = u64;

    fn accepted(&self) -> String {
        match self.0 {
            [] => "a status from 200 to 599 that has a body".into(),
            some => format!("one of {}", some.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")),
        }
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<u64> {
        let status = Integer(100, 599).read(node, reading)?;
        let accepted = match self.0 {
            [] => status >= 200 && ![204, 205, 304].contains(&status),
            some => some.contains(&status),
        };
        if !accepted {
            reading.refuse(node.span(), "is not accepted", format!("expected {}", self.accepted()));
        }
        accepted.then_some(status)
    }

    fn write(&self, value: &u64) -> toml::Value {
        Integer(100, 599).write(value)
    }
}

/// Any text, of several lines too.
struct Body;

impl Kind for Body {
    type Value = String;

    fn accepted(&self) -> String {
        "a string".into()
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<String> {
        let text = node.get_ref().as_str().map(str::to_owned);
        if text.is_none() {
            reading.mismatch(node, &self.accepted());
        }
        text
    }

    fn write(&self, value: &String) -> toml::Value {
        value.as_str().into()
    }
}
