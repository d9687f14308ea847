//! `[[site.route]]`: settings of some paths.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use baton_http::{Variable, VariableText};
use baton_pattern::Pattern;
use baton_site::condition::Condition;
use baton_site::matcher::Matcher;
use baton_site::plan::{Digest, UNANSWERED};
use baton_site::template::Template;

use super::application::Application;
use super::cluster::{ClusterKind, RouteCluster};
use super::command::CGI_COMMAND;
use super::condition::{When, WhenKind};
use super::cors::check_headers;
use super::error::Complaint;
use super::error_pages::{ErrorPages, Intercept, InterceptKind};
use super::fields::variable_text;
use super::files::Files;
use super::guards::Guards;
use super::kind::{Flag, Integer, Kind, Or, Reading};
use super::known_variables::{Vocabulary, check_variables};
use super::media_types::MEDIA_TYPE;
use super::proxy::{Proxy, ProxyKind};
use super::raw::Node;
use super::route_path::RoutePath;
use super::route_pattern::{GLOB, REGEX};
use super::schema::Schema;
use super::setting::{Inline, Section, Table, settings};
use super::shared_cache::{CacheKind, RouteCache};
use super::shown::Shown;
use super::template::{LOCATION, TARGET};
use super::words::{Word, words};

/// A part of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Where, and what instead of files.
    pub settings: RouteSettings,
    /// What guards it. Private, so that no route is made without the guards of its site.
    guards: Guards,
    /// How files are served; of a fixed answer, only the fields count.
    pub files: Files,
}

settings! {
    /// Settings of the paths that `path`, `exact`, `glob` or `regex` says, of which a route has one. A route has the keys of
    /// a site that say how files are served, or `redirect`, `respond`, `proxy`, `cluster`, `fastcgi`, `scgi` or `cgi`. An
    /// `exact` path comes first, then the first `glob` or `regex` of the file that matches, then the longest `path`. Requests
    /// are compared decoded and without `.`, `..` and doubled slashes, so that no spelling gets around a route.
    RouteSettings in "site.route" {
        /// Path prefix, ending on a segment's border: `/docs` holds for `/docs` and `/docs/…`, not for `/docset`. It is written
        /// as in a URL and is no pattern: a `*` that is meant is `%2A`.
        path: String = "/".into(), RoutePath;
        /// One path and nothing below it, written as in a URL.
        exact: Option<String> = None, Or("off", RoutePath);
        /// Glob on the path, written as in a URL: `*` is any run of characters within a segment, `**` any run, `?` one character,
        /// `[a-z]` one of these, `[!a-z]` one of the others. With a leading `/` it must match the whole path, otherwise any
        /// tail of it after a `/`: `*.php`. The same in all settings: see `docs/locations.md`.
        glob: Option<Pattern> = None, Or("off", GLOB);
        /// Regular expression on the path, of which it may match a part: `'\.php$'`, without regard to case `'(?i)\.php$'`. It
        /// is matched in linear time, so it has neither look-around nor backreferences. It works on bytes: `.` is any one,
        /// and `\w`, `\d` and `(?i)` are about ASCII.
        regex: Option<Pattern> = None, Or("off", REGEX);
        /// Whether patterns are not asked where this `path` is the longest (`^~` of nginx).
        before_patterns: bool = false, Flag;
        /// Whether only requests that other routes rewrite, or that `try_files` sends on, get here (`internal` of nginx): a
        /// client that asks for its paths gets 404. FastCGI and SCGI applications of the site may name its files by
        /// `X-Accel-Redirect`, if it has a `path` and is guarded as its site is.
        internal: bool = false, Flag;
        /// Whether the `path` is removed before the file is looked up. Default: true for a route with a root of its
        /// own, so that `/docs/a.html` is the file `a.html` of that root.
        strip_prefix: bool = false, Flag;
        /// Which requests for these paths the route answers: `{ cookie = { beta = "1" } }`. The next route that fits has the others. Of
        /// two routes at the same place, the one with a condition stands first.
        when: Option<When> = None, Or("always", WhenKind);
        /// Sends clients elsewhere, whatever the method: `{ to = "https://example.org$uri", status = 301 }`; without `status`, 302.
        redirect: Option<Redirect> = None, Or("off", Inline::<Redirect>::new());
        /// Answers as if another target had been asked for: `{ to = "/index.php?page=$1" }`. Routes are looked up again for it.
        rewrite: Option<Rewrite> = None, Or("off", Inline::<Rewrite>::new());
        /// A fixed answer: `{ status = 410, body = "Gone.\n", media_type = "text/plain" }`. From 400 on, and without a body, it is
        /// for every method.
        respond: Option<Respond> = None, Or("off", Inline::<Respond>::new());
        /// An origin server answers: `"http://127.0.0.1:3000"`, `"https://api.example.org/v1"`, `"unix:/run/app.sock"`, or a
        /// table with more.
        proxy: Option<Proxy> = None, Or("off", ProxyKind);
        /// The nodes of `[cluster]` answer: `true`, or a table that says how requests get there.
        cluster: Option<RouteCluster> = None, ClusterKind;
        /// A FastCGI application answers: `{ to = "unix:/run/app.sock" }` or `{ command = ["./app"] }`. Its `DOCUMENT_ROOT` is the `root` of the route.
        fastcgi: Option<Application> = None, Or("off", Inline::<Application>::new());
        /// An SCGI application answers, with the keys of `fastcgi`.
        scgi: Option<Application> = None, Or("off", Inline::<Application>::new());
        /// Programs answer, one run for each request: the files of the `root` whose names end as `scripts` says. The other
        /// keys are those of `fastcgi`; `processes` is how many programs run at a time. `{ scripts = [".cgi"] }`.
        cgi: Option<Application> = None, Or("off", Inline::<Application>::new());
        /// Files, relative to the root, that are the bodies of errors here: `{ 404 = "404.html" }`. For other statuses, those of
        /// the site count.
        error_pages: BTreeMap<u16, PathBuf> = BTreeMap::new(), ErrorPages;
        /// Which errors of `proxy`, `cluster`, `fastcgi`, `scgi` or `cgi` give way to the server's own pages: `true`, those for whose
        /// status `error_pages` has one; or an array of statuses, for those without a page the built-in one.
        intercept: Intercept = Intercept::Off, InterceptKind;
        /// Whether responses of `proxy`, `cluster`, `fastcgi`, `scgi` or `cgi` are kept for other clients, in the cache of
        /// `[shared_cache]`: `true`, or a table that says how.
        cache: Option<RouteCache> = None, CacheKind;
        /// Which entity tags responses of `proxy`, `fastcgi`, `scgi` or `cgi` have. With `"digest"` a client that has the body
        /// gets a 304 in its place: see `docs/applications.md`. Requests with GET get no passed socket (`passfd`) then.
        etag: TagSource = TagSource::Own, Word::<TagSource>::new();
    }
}

words! {
    /// Where entity tags of responses come from that are answered elsewhere.
    TagSource {
        /// those of the application or the origin
        Own = "own",
        /// where it gives none, a digest of the body, of up to 256 KiB
        Digest = "digest",
    }
}

settings! {
    /// Where clients are sent.
    Redirect in "site.route.redirect" needs ["to"] {
        /// Value of `Location`: a URL or a path, with parts of the request. A final `$uri` is its path and query, a final `$rest`
        /// their part after the `path` of the route: below `/old`, `/new$rest` sends `/old/a?b` to `/new/a?b`. `$path` and
        /// `$query` are one of them alone. Other variables are those of fields: `$scheme://www.$host$uri`, and groups, `$1` and `$name`, of
        /// the route's `regex`; of a `glob`, each `*` is one. Each is encoded for its place, and of the host no client chooses a part but
        /// the one that it has asked.
        to: Template = Template::default(), LOCATION;
        /// 301, 302, 303, 307 or 308.
        status: u64 = 302, Status(&[301, 302, 303, 307, 308]);
    }
}

settings! {
    /// What is asked for instead.
    Rewrite in "site.route.rewrite" needs ["to"] {
        /// A path within the site, perhaps with a query. `$path`, `$query`, `$uri`, `$rest` and groups are as in `redirect`. Without a `?` the query
        /// of the request stays; with one, the new query is all that there is: `/index.php?page=$1&$query` keeps both.
        to: Template = Template::default(), TARGET;
    }
}

settings! {
    /// A fixed answer.
    Respond in "site.route.respond" needs ["status"] {
        /// Status code, 200 to 599. 204, 205 and 304 have no body. 444: no answer, the connection ends (HTTP/2: the stream).
        status: u64 = 200, Status(&[]);
        /// The body. `$client_ip`, `$host` and so on are parts of the request, as in fields; `$$` is a dollar.
        body: VariableText = VariableText::Fixed(String::new()), Body;
        /// Value of `Content-Type`.
        media_type: String = "text/plain; charset=utf-8".into(), MEDIA_TYPE;
    }
}

impl Route {
    /// Reads a route of a site that is guarded and serves files as `inherited` says. `span` is where the route begins.
    pub fn read(
        mut table: Table<'_>,
        span: Range<usize>,
        inherited: (&Guards, &Files),
        reading: &mut Reading<'_>,
    ) -> Self {
        let places: Vec<_> = PLACES.into_iter().filter(|key| table.has(key)).collect();
        let strip_prefix = table.has("root") && matches!(places[..], [] | ["path"]);
        let base = RouteSettings { strip_prefix, ..RouteSettings::default() };
        let mut settings = RouteSettings::read(&mut table, base, reading);
        if let Some(exact) = &settings.exact {
            settings.path.clone_from(exact);
        }
        check_place(&places, &table, &span, reading);
        let matcher = settings.matcher();
        let mut check = |variables: &mut dyn Iterator<Item = &Variable>, vocabulary, key| {
            check_variables(variables, vocabulary, Some(&matcher), table.span_of(key), reading);
        };
        if let Some(redirect) = &settings.redirect {
            check(&mut redirect.to.variables(), Vocabulary::Location, "redirect");
        }
        if let Some(rewrite) = &settings.rewrite {
            check(&mut rewrite.to.variables(), Vocabulary::Target, "rewrite");
        }
        if let Some(respond) = &settings.respond {
            check(&mut respond.body.variables(), Vocabulary::Request, "respond");
        }
        if let Some(proxy) = &settings.proxy {
            check(&mut proxy.request_headers.variables(), Vocabulary::Request, "proxy");
        }
        check_respond(&settings, &table, reading);
        if let Some(cgi) = settings.cgi.as_mut().filter(|cgi| cgi.to.is_none() && cgi.command.is_empty()) {
            cgi.command = CGI_COMMAND.map(str::to_owned).into();
        }
        let guards = Guards::read_checked(&mut table, inherited.0.clone(), reading);
        let files = Files::read_with_root(&mut table, inherited.1.clone(), reading);
        let place = table.span_of("headers");
        check_variables(files.headers.variables(), Vocabulary::Response, Some(&matcher), place, reading);
        check_headers(guards.cors.as_ref(), &files, &table, reading);
        let mut answers: Vec<_> = ANSWERS.into_iter().filter(|key| table.is_set(key)).collect();
        answers.sort_by_key(|key| table.span_of(key).map_or(0, |span| span.start));
        if files.root.is_none() && answers.is_empty() {
            let complaint = Complaint::new("a route that serves nothing")
                .at(span.clone(), "has no `root`, nor has its site");
            reading.complain(
                complaint.help(
                    "add `root`, `redirect`, `rewrite`, `respond`, `proxy`, `cluster`, `fastcgi`, `scgi` or `cgi`",
                ),
            );
        }
        for key in answers.iter().filter(|key| APPLICATIONS.contains(key)) {
            check_application(key, &table, files.root.is_some(), &span, reading);
        }
        check_effects(&answers, &table, reading);
        if settings.cache.is_some() && answers.is_empty() {
            let complaint = Complaint::new("nothing to cache");
            let complaint = complaint
                .at(table.span_of("cache").unwrap_or(span.clone()), "answered by this server itself");
            reading.complain(
                complaint.help("`cache` is for routes with `proxy`, `cluster`, `fastcgi`, `scgi` or `cgi`"),
            );
        }
        if settings.etag == TagSource::Digest && answers.is_empty() {
            let complaint = Complaint::new("nothing to digest");
            let complaint = complaint.at(
                table.span_of("etag").unwrap_or(span.clone()),
                "files have tags that tell their states apart",
            );
            reading.complain(
                complaint.help("remove `etag`: it is for routes with `proxy`, `fastcgi`, `scgi` or `cgi`"),
            );
        }
        let prefetches = settings.cache.as_ref().is_some_and(|cache| cache.prefetch > 0);
        if prefetches && settings.proxy.is_none() && settings.cluster.is_none() {
            let complaint = Complaint::new("an application has no next segments");
            let complaint = complaint.at(table.span_of("cache").unwrap_or(span), "has `prefetch`");
            reading.complain(complaint.help("remove `prefetch`: it is for routes with `proxy` or `cluster`"));
        }
        if let Some(at) = table.span_of("intercept").filter(|_| settings.intercept != Intercept::Off)
            && !answers.iter().any(|key| !["redirect", "rewrite", "respond"].contains(key))
        {
            let complaint = Complaint::new("nothing to intercept").at(at, "answered by this server itself");
            reading.complain(complaint.help("`error_pages` alone has the pages of its own errors"));
        }
        check_methods(&guards, &settings, &table, reading);
        table.finish(reading);
        Self { settings, guards, files }
    }

    /// A route that the configuration does not name, of a site that is guarded and serves files as `inherited` says.
    pub(crate) fn unnamed(settings: RouteSettings, inherited: (&Guards, &Files)) -> Self {
        Self { settings, guards: inherited.0.clone(), files: inherited.1.clone() }
    }

    /// What guards it.
    pub fn guards(&self) -> &Guards {
        &self.guards
    }

    /// What guards it, and how its files are served, which may be changed.
    pub(crate) fn guards_and_files(&mut self) -> (&Guards, &mut Files) {
        (&self.guards, &mut self.files)
    }

    /// The keys that count, with their values: what is written back. Guards that it has from its site are left out, since there
    /// methods and addresses may be named that a route of its own could not have.
    pub fn write(&self, of_site: &Guards) -> Vec<(&'static str, toml::Value)> {
        let keys = RouteSettings::settings().into_iter().zip(self.settings.write());
        let is_left_out = |name| ["when", "internal", "error_pages", "intercept", "etag"].contains(&name);
        let keys = keys.filter(|(setting, value)| !is_left_out(setting.name) || *value != setting.default);
        let guards = Guards::settings().into_iter().zip(self.guards.write()).zip(of_site.write());
        let own = guards.filter(|((_, value), of_site)| value != of_site).map(|(own, _)| own);
        let keys = keys.chain(own);
        let keys = keys.chain(Files::settings().into_iter().zip(self.files.write()));
        let answer = self.settings.answer();
        let place = self.settings.place_key();
        let is_elsewhere = |name: &str| match name {
            "strip_prefix" | "before_patterns" => place != "path",
            name => PLACES.contains(&name) && name != place,
        };
        let has_effect = |name: &&'static str| {
            !is_elsewhere(name)
                && match answer {
                    Some((answer, runs_scripts)) => {
                        *name == answer
                            || !ANSWERS.contains(name) && !without_effect(answer, runs_scripts).contains(name)
                    }
                    None => true,
                }
        };
        keys.map(|(setting, value)| (setting.name, value)).filter(|(name, _)| has_effect(name)).collect()
    }
}

/// Whether an application can be found and has what it runs. What was written counts, not what was made of it: another
/// mistake in the same table changes nothing here.
fn check_application(
    key: &str,
    route: &Table<'_>,
    has_root: bool,
    span: &Range<usize>,
    reading: &mut Reading<'_>,
) {
    let Some(table) = route.peek(key) else { return };
    let at = route.span_of(key).unwrap_or_else(|| span.clone());
    let has_address = table.has("to") && !table.says("to", "command");
    let (has_command, has_scripts) = (table.has_elements("command"), table.has_elements("scripts"));
    if has_address && has_command {
        let complaint = Complaint::new("an application has either `to` or `command`");
        reading.complain(complaint.at(at.clone(), "has both"));
    }
    if key == "cgi" && !has_scripts {
        let complaint = Complaint::new("programs without names").at(at.clone(), "has no `scripts`");
        reading.complain(complaint.help("say which files are run: `scripts = [\".cgi\"]`"));
    }
    if key != "cgi" && !has_address && !has_command {
        let complaint = Complaint::new("an application that is nowhere");
        let complaint = complaint.at(at, "has neither `to` nor `command`");
        reading.complain(complaint.help("give its address, or the command that starts it"));
    }
    if has_scripts && !has_root {
        let complaint = Complaint::new("scripts without a folder");
        reading.complain(complaint.at(span.clone(), "has no `root`, nor has its site").help("add `root`"));
    }
}

/// Complains about methods that the route is to take and that nothing in it answers.
fn check_methods(guards: &Guards, settings: &RouteSettings, table: &Table<'_>, reading: &mut Reading<'_>) {
    let takes_all = match &settings.respond {
        Some(respond) => respond.status >= 400 || is_bodiless(respond.status),
        None => ANSWERS.into_iter().any(|key| table.is_set(key)),
    };
    let wanted = settings.when.as_ref().and_then(|when| when.method.as_ref()?.plain());
    if let Some((wanted, taken)) = wanted.zip(guards.methods.as_ref())
        && !wanted.iter().any(|method| taken.contains(method))
    {
        let complaint = Complaint::new("no request that fits is taken");
        let complaint = complaint
            .at(table.span_of("when").unwrap_or_default(), format!("asks for {}", wanted.join(", ")));
        reading.complain(complaint.help(format!("`methods` here are {}", taken.join(", "))));
    }
    let Some(methods) = guards.methods.as_ref().filter(|_| table.has("methods") && !takes_all) else {
        return;
    };
    for method in methods.iter().filter(|method| !["GET", "HEAD", "OPTIONS"].contains(&method.as_str())) {
        let complaint = Complaint::new(format!("no request with {method} is answered here"));
        let at = table.span_of("methods").unwrap_or_default();
        let complaint = complaint.at(at, "files and fixed answers below 400 know GET, HEAD and OPTIONS");
        reading.complain(
            complaint.help(format!("remove `{method}`, or add what answers it: an application or `proxy`")),
        );
    }
}

/// Complains about all but the first of the keys that answer instead of files, and about keys that say how files are
/// served where none of these serves any.
fn check_effects(answers: &[&'static str], table: &Table<'_>, reading: &mut Reading<'_>) {
    let Some((first, others)) = answers.split_first() else { return };
    let place = |key: &str| table.span_of(key).unwrap_or_default();
    for other in others {
        let complaint = Complaint::new(format!("a route has either `{first}` or `{other}`"));
        reading.complain(complaint.at(place(other), "answers as well").at(place(first), "answers already"));
    }
    let is_useless = |key: &&'static str| {
        answers.iter().all(|answer| {
            let runs_scripts = table.peek(answer).is_some_and(|table| table.has_elements("scripts"));
            without_effect(answer, runs_scripts).contains(key)
        })
    };
    for key in without_effect(first, false).into_iter().filter(is_useless).filter(|key| table.has(key)) {
        let complaint = Complaint::new(format!("a route has either `{first}` or `{key}`"));
        reading.complain(complaint.at(place(key), "without effect here").at(place(first), "because of this"));
    }
}

/// Keys about files that have no effect in a route with this answer.
fn without_effect(answer: &str, runs_scripts: bool) -> Vec<&'static str> {
    let (kept, also): (&[&str], &[&str]) = match (answer, runs_scripts) {
        ("redirect" | "rewrite" | "respond", _) => (&["headers"], &["strip_prefix", "cache", "etag"]),
        ("proxy", _) => (&["headers", "compress"], &["strip_prefix"]),
        // By the best ways its answers do not pass here.
        ("cluster", _) => (&["headers", "compress"], &["strip_prefix", "etag"]),
        (_, true) => return Vec::new(),
        (_, false) => (&["root", "headers", "compress"], &[]),
    };
    let files = Files::settings().into_iter().map(|setting| setting.name);
    files.filter(|name| !kept.contains(name)).chain(also.iter().copied()).collect()
}

/// Complains of a body that no client would get.
fn check_respond(settings: &RouteSettings, table: &Table<'_>, reading: &mut Reading<'_>) {
    let Some(respond) = settings.respond.as_ref().filter(|respond| !respond.body.is_empty()) else { return };
    if is_bodiless(respond.status) || respond.status == u64::from(UNANSWERED) {
        let complaint = Complaint::new(format!("an answer with status {} has no body", respond.status));
        let complaint = complaint.at(table.span_of("respond").unwrap_or_default(), "has `body`");
        reading.complain(complaint.help("remove `body`, or choose another status"));
    }
    let is_run =
        ["html", "xml", "script"].iter().any(|kind| respond.media_type.to_lowercase().contains(kind));
    if let Some(variable) =
        respond.body.variables().find(|variable| variable.is_of_client()).filter(|_| is_run)
    {
        let complaint =
            Complaint::new(format!("a browser would run what a client writes into `${variable}`"));
        let label = format!("has ${variable} in {}", respond.media_type);
        let complaint = complaint.at(table.span_of("respond").unwrap_or_default(), label);
        reading.complain(complaint.help("use `media_type = \"text/plain\"`, or leave the variable out"));
    }
}

/// Whether responses with a status end behind their head (RFC 9110 section 6.4.1, 15.3.6).
fn is_bodiless(status: u64) -> bool {
    [204, 205, 304].contains(&status)
}

/// Complains of a route that is nowhere or in several places, and of keys that are for prefixes alone.
fn check_place(places: &[&str], table: &Table<'_>, span: &Range<usize>, reading: &mut Reading<'_>) {
    let at = |key: &str| table.span_of(key).unwrap_or_else(|| span.clone());
    let Some((first, others)) = places.split_first() else {
        return table.need(&["path"], span.clone(), reading);
    };
    for other in others {
        let complaint = Complaint::new(format!("a route has either `{first}` or `{other}`"));
        reading.complain(complaint.at(at(other), "is a second place").at(at(first), "has a place already"));
    }
    for key in
        ["strip_prefix", "before_patterns"].into_iter().filter(|key| *first != "path" && table.has(key))
    {
        let complaint = Complaint::new(format!("`{key}` is for routes with `path`"));
        reading.complain(complaint.at(at(key), "without effect here").at(at(first), "because of this"));
    }
}

impl RouteSettings {
    /// Which paths the route has.
    pub fn matcher(&self) -> Matcher {
        let matcher = match (&self.exact, self.glob.as_ref().or(self.regex.as_ref())) {
            (Some(path), _) => Matcher::exact(path),
            (None, Some(pattern)) => Matcher::pattern(pattern.clone()),
            (None, None) if self.before_patterns => Matcher::prefix(&self.path).before_patterns(),
            (None, None) => Matcher::prefix(&self.path),
        };
        if self.internal { matcher.internal() } else { matcher }
    }

    /// Which bodies of responses have a digest that is their entity tag.
    pub fn digest(&self) -> Option<Digest> {
        let digest = if self.cache.is_some() { Digest::Kept } else { Digest::Passing };
        (self.etag == TagSource::Digest).then_some(digest)
    }

    /// Which of them, if not all.
    pub fn condition(&self) -> Option<Arc<Condition>> {
        self.when.as_ref().map(When::plan)
    }

    /// The key that says so.
    pub(crate) fn place_key(&self) -> &'static str {
        match (&self.exact, &self.glob, &self.regex) {
            (Some(_), ..) => "exact",
            (None, Some(_), _) => "glob",
            (None, None, Some(_)) => "regex",
            (None, None, None) => "path",
        }
    }

    /// What messages, metrics and the status call the route.
    pub fn name(&self) -> String {
        match &self.when {
            Some(when) => format!("{} when {when}", self.matcher()),
            None => self.matcher().to_string(),
        }
    }

    /// The application that answers, and whether it is spoken to in FastCGI.
    pub fn application(&self) -> Option<(bool, &Application)> {
        self.keyed_application().map(|(key, application)| (key != "scgi", application))
    }

    /// The application that answers, and the key under which it stands.
    fn keyed_application(&self) -> Option<(&'static str, &Application)> {
        let known = [("fastcgi", &self.fastcgi), ("scgi", &self.scgi), ("cgi", &self.cgi)];
        known.into_iter().find_map(|(key, application)| Some((key, application.as_ref()?)))
    }

    /// Whether it sends files, and runs none of them.
    pub(crate) fn serves_files(&self) -> bool {
        self.answer().is_none()
    }

    /// The key of what answers instead of files, and whether it runs some of the files.
    fn answer(&self) -> Option<(&'static str, bool)> {
        if self.redirect.is_none() && self.rewrite.is_some() {
            return Some(("rewrite", false));
        }
        let application = || self.keyed_application().map(|(key, it)| (key, !it.scripts.is_empty()));
        match (&self.redirect, &self.respond, &self.proxy, &self.cluster) {
            (Some(_), ..) => Some(("redirect", false)),
            (None, Some(_), ..) => Some(("respond", false)),
            (None, None, Some(_), _) => Some(("proxy", false)),
            (None, None, None, Some(_)) => Some(("cluster", false)),
            (None, None, None, None) => application(),
        }
    }
}

/// Keys that say where a route is.
const PLACES: [&str; 4] = ["path", "exact", "glob", "regex"];

/// Keys of what answers instead of files.
const ANSWERS: [&str; 8] = ["redirect", "rewrite", "respond", "proxy", "cluster", "fastcgi", "scgi", "cgi"];

/// Keys of applications that answer instead of files.
const APPLICATIONS: [&str; 3] = ["fastcgi", "scgi", "cgi"];

/// A status code: one of a list, or if that is empty any final one.
struct Status(&'static [u64]);

impl Kind for Status {
    type Value = u64;

    const SHOWN: Shown = Shown::Whole;

    fn accepted(&self) -> String {
        match self.0 {
            [] => "a status from 200 to 599".into(),
            some => format!("one of {}", some.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")),
        }
    }

    fn schema(&self) -> Schema {
        Integer(100, 599).schema()
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<u64> {
        let status = Integer(100, 599).read(node, reading)?;
        let accepted = match self.0 {
            [] => status >= 200,
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
    type Value = VariableText;

    const SHOWN: Shown = Shown::Nothing;

    fn accepted(&self) -> String {
        "a string".into()
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<VariableText> {
        let Some(text) = node.get_ref().as_str() else {
            return reading.mismatch(node, &self.accepted());
        };
        variable_text(text, node, reading)
    }

    fn write(&self, value: &VariableText) -> toml::Value {
        value.to_string().into()
    }
}
