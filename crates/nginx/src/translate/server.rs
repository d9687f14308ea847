//! Sites from servers.

use std::collections::HashSet;

use baton_pattern::Pattern;

use super::error_page::page_of;
use super::guards::Access;
use super::index_files::{guard_of_folders, is_about_file};
use super::listen::Listens;
use super::location::{Matcher, Spot, Surroundings};
use super::matching::arranged;
use super::passwords::beside_addresses;
use super::route::{By, CASES, Level, Route, closed_with, redirection, rewritten_to};
use super::scope::Scope;
use super::translator::Translator;
use crate::note::{Note, Weight};
use crate::redirect::{self, Answer, Rewrite, SAME_OVER_TLS};
use crate::tree::Directive;
use crate::values::is_constant;
use crate::written::{Keys, Section, Value};

/// The sections of a server.
#[derive(Debug, Default)]
pub(super) struct Site {
    pub(super) sections: Vec<Section>,
    /// Whether it answers for names that no site has.
    pub(super) is_default: bool,
}

impl<'t> Translator<'t> {
    pub(super) fn server(&mut self, server: &'t Directive, http: &Scope<'t>) -> Site {
        let said = self.notes.len();
        let scope = http.within(&server.block);
        self.account(&server.block);
        self.account_one_for_all(&server.block);
        self.account_limits(&server.block);
        let listens = self.listens(server);
        let (is_default, announced) = (listens.is_default, listens.announced);
        let (Some(hosts), Some(mut keys)) = (self.hosts(server), self.addresses(server, &scope, listens))
        else {
            return Site::default();
        };
        let bare = keys.clone();
        let moved = moved_hosts(server, &hosts);
        let spots = Spot::all(&server.block, &scope);
        let access = self.access(&scope);
        let php = server.block.iter().find_map(|directive| {
            let spot = spots.iter().find(|spot| std::ptr::eq(spot.directive, directive))?;
            Some((spot.php()?, spot.scope.clone()))
        });
        let mut site = Surroundings {
            spots,
            php,
            is_closed: matches!(access, Access::Closed(_)),
            is_guarded: matches!(access, Access::Some(_)),
            has_users: false,
            is_choice: false,
            has_fallback: false,
            error_pages: error_pages(&scope),
        };
        let own = Scope::of(&server.block);
        let fallback = self.fallback(&Spot::whole(server, &scope), &site);
        if let Access::Some(rules) = access {
            keys.0.extend(rules.0);
        }
        self.real_ip(&scope, announced, &mut keys);
        if let Some(limit) = self.rate(&scope) {
            keys.set("rate_limit", limit);
        }
        if let Some(users) = self.users(&scope).filter(|_| !site.is_closed) {
            keys.set("basic_auth", users);
            site.has_users = true;
            site.is_choice = beside_addresses(&scope).is_some();
            if site.is_choice {
                keys.set("satisfy", "any");
            }
        }
        if let Some(methods) = self.methods(&own) {
            keys.set("methods", methods);
        }
        self.time(&own, "client_body_timeout", "body_ms", &mut keys);
        let files = self.files(&scope, false);
        keys.0.extend(files.0);
        self.fields(&scope, true, &mut keys);
        if let Some(compression) = self.compression(&scope).filter(|value| *value != Value::Flag(false)) {
            keys.set("compress", compression);
        }
        if let Some(tried) = fallback {
            keys.set("try_files", tried);
            site.has_fallback = true;
        }
        self.error_pages(&scope, &site, &mut keys);
        self.log_of_site(&scope, &own, &mut keys);
        let cases = self.cases("/", &Spot::whole(server, &scope), &site);
        let mut routes = self.routes(server, &scope, &site);
        let sent: Vec<_> = moved.iter().map(|(host, _)| host.as_str()).collect();
        self.account_conditions(&scope, &hosts, &sent);
        self.guard_index(&scope, &mut keys, &mut routes);
        // What is tried for the whole server is tried in the place of an index.
        let index = (!site.has_fallback).then(|| scope.word("index").unwrap_or("index.html"));
        let (mut routes, closed) = arranged(routes, index);
        for spot in &site.spots {
            if matches!(spot.matcher, Matcher::Prefix { path, .. } if closed.iter().any(|one| one == path)) {
                let text =
                    "the expressions that come before this one have another order here: it is closed (403)";
                self.note(spot.directive, Weight::Guard, text);
            }
        }
        forget_unreached(&mut routes, &keys);
        hoist(&mut keys, &mut routes);
        let serves_nothing = keys.get("root").is_none() && !routes.iter().any(Route::is_whole);
        if serves_nothing && (routes.is_empty() || Self::has_unknown_root(&scope)) {
            routes.push(Route::whole(closed_with(404)));
        }
        let notes = self.said_since(said);
        let below: HashSet<_> = routes.iter().flat_map(|route| route.notes.clone()).collect();
        let notes: Vec<_> = notes.into_iter().filter(|note| !below.contains(note)).collect();
        let is_moved = |host: &String| moved.iter().any(|(from, _)| from == host);
        let kept: Vec<_> = hosts.iter().filter(|host| !is_moved(host)).cloned().collect();
        let mut sections = sections(&kept, &keys, &routes, &cases, &notes);
        for (host, to) in &moved {
            let whole = Route::whole(to.clone());
            sections.extend(self::sections(std::slice::from_ref(host), &bare, &[whole], &[], &[]));
        }
        Site { sections, is_default }
    }

    /// The route of a `rewrite` by its expression.
    pub(super) fn rewritten(&mut self, rewrite: &Directive) -> Option<Route> {
        let is_known = Pattern::regex(rewrite.argument(0)).is_ok();
        let keys = match redirect::of_any_rewrite(rewrite).filter(|_| is_known) {
            Some(Rewrite::Redirect { status, to }) => redirection(status, &to),
            Some(Rewrite::Within { to }) => rewritten_to(to),
            None => {
                self.leave_out(rewrite);
                return None;
            }
        };
        Some(Route::expression(Level::Rewrites, rewrite.argument(0).to_owned(), keys))
    }

    /// Guards of the names of index files hold for folders, too; where that cannot be said, folders have no index.
    fn guard_index(&mut self, scope: &Scope<'t>, site: &mut Keys, routes: &mut Vec<Route>) {
        let index = scope
            .find("index")
            .map_or_else(|| vec!["index.html".to_owned()], |index| index.arguments.clone());
        let guards: Vec<_> = routes.iter().filter_map(|route| guard_of_folders(route, &index)).collect();
        if guards.iter().any(Option::is_none) {
            let of_site = site.get("root").is_some().then_some(site);
            let of_routes =
                routes.iter_mut().map(|route| &mut route.keys).filter(|keys| keys.get("index").is_some());
            of_site.into_iter().chain(of_routes).for_each(|keys| keys.set("index", Value::List(Vec::new())));
            for spot in Spot::all(scope.innermost(), scope) {
                if matches!(spot.matcher, Matcher::Pattern { .. })
                    && (self.access(&spot.scope) != Access::Open || spot.refuses_some())
                {
                    let text =
                        "guards index files: folders have no index until you guard them in another way";
                    self.note(spot.directive, Weight::Guard, text);
                }
            }
        }
        routes.splice(0..0, guards.into_iter().flatten());
        for spot in Spot::all(scope.innermost(), scope) {
            if let Matcher::Pattern { text, .. } = spot.matcher
                && says_fields(&spot)
                && index.iter().any(|name| is_about_file(text, name))
            {
                let text = "index files have the fields of their folder, not these";
                self.note(spot.directive, Weight::LeftOut, text);
            }
        }
    }

    /// The names that it answers to; `None`: it has names, and Baton can have none of them.
    fn hosts(&mut self, server: &Directive) -> Option<Vec<String>> {
        let mut hosts = Vec::new();
        let mut names = 0;
        for directive in server.block.iter().filter(|directive| directive.name == "server_name") {
            for name in &directive.arguments {
                names += 1;
                match name.as_str() {
                    "_" | "" | "localhost.localdomain" => names -= 1,
                    name if name.starts_with('~') || name.contains(['$', ' ']) => {
                        self.left_out_name(directive, name);
                    }
                    name if name.starts_with('.') => {
                        hosts.extend([name[1..].to_owned(), format!("*{name}")]);
                    }
                    name if name.strip_prefix("*.").unwrap_or(name).contains('*') => {
                        self.left_out_name(directive, name);
                    }
                    name => hosts.push(name.to_ascii_lowercase()),
                }
            }
        }
        if hosts.is_empty() && names > 0 {
            self.note(server, Weight::LeftOut, "none of the names has a counterpart: the server is left out");
            return None;
        }
        hosts.dedup();
        Some(hosts)
    }

    fn left_out_name(&mut self, directive: &Directive, name: &str) {
        self.note(directive, Weight::LeftOut, format!("the name \"{name}\" has no counterpart: left out"));
    }

    /// Addresses and certificates; `None`: there is none to serve at.
    fn addresses(&mut self, server: &Directive, scope: &Scope<'t>, listens: Listens<'_>) -> Option<Keys> {
        let mut keys = Keys::default();
        let Listens { mut clear, mut tls, .. } = listens;
        let certificates = self.certificates(scope);
        if !tls.is_empty() && certificates.is_empty() {
            if scope.word("ssl_reject_handshake") == Some("on") {
                self.note(server, Weight::Remark, "handshakes for names of no site are refused in any case");
            } else {
                self.note(
                    server,
                    Weight::LeftOut,
                    "there is no certificate: its addresses with TLS are left out",
                );
            }
            tls.clear();
        }
        if clear.is_empty() && tls.is_empty() {
            return None;
        }
        let asks_for_certificates =
            scope.find("ssl_verify_client").filter(|verify| verify.argument(0) != "off");
        if let Some(verify) = asks_for_certificates.filter(|_| !tls.is_empty() && !clear.is_empty())
            && !server.block.iter().any(redirect::is_for_tls)
        {
            self.note(
                verify,
                Weight::Guard,
                "clients in clear show no certificate: these addresses are left out",
            );
            clear.clear();
        }
        let (is_in_clear, is_over_tls) = (!clear.is_empty(), !tls.is_empty());
        let tls = tls.into_iter().map(|address| format!("{address} tls"));
        keys.set("listen", clear.into_iter().chain(tls).collect::<Vec<String>>());
        if is_over_tls {
            match certificates.as_slice() {
                [only] => keys.set("tls", only.clone()),
                _ => keys.set("tls", certificates),
            }
            self.certificates_of_clients(scope, &mut keys);
            self.protocols(scope);
        }
        if is_in_clear && is_over_tls && server.block.iter().any(redirect::is_for_tls) {
            keys.set("redirect_https", true);
            self.note(server, Weight::Remark, "the redirection to https has the status 308");
        }
        Some(keys)
    }

    fn certificates(&mut self, scope: &Scope<'t>) -> Vec<Value> {
        let (certificates, keys) = (scope.all(&["ssl_certificate"]), scope.all(&["ssl_certificate_key"]));
        let mut pairs = Vec::new();
        for (index, certificate) in certificates.iter().enumerate() {
            if !is_constant(certificate.argument(0)) {
                self.leave_out(certificate);
                continue;
            }
            let mut pair = Keys::default();
            pair.set("certificate", self.path_of_configuration(certificate.argument(0)));
            if let Some(key) = keys.get(index) {
                pair.set("key", self.path_of_configuration(key.argument(0)));
            }
            pairs.push(Value::Table(pair));
        }
        pairs
    }

    /// Baton speaks TLS 1.2 and 1.3.
    fn protocols(&mut self, scope: &Scope<'t>) {
        let Some(protocols) = scope.find("ssl_protocols") else { return };
        let has = |version: &str| protocols.arguments.iter().any(|protocol| protocol == version);
        if !has("TLSv1.2") {
            self.note(protocols, Weight::Guard, "clients of TLS 1.2 get in, too");
        } else if !has("TLSv1.3") {
            self.note(protocols, Weight::Remark, "clients of TLS 1.3 get in, too");
        }
    }

    fn certificates_of_clients(&mut self, scope: &Scope<'t>, keys: &mut Keys) {
        let Some(verify) = scope.find("ssl_verify_client") else { return };
        let mode = match verify.argument(0) {
            "on" => "require",
            "optional" => "request",
            "off" => return,
            _ => {
                let text =
                    "\"ssl_verify_client\" with this word has no counterpart: clients need no certificate";
                return self.note(verify, Weight::Guard, text);
            }
        };
        let Some(authorities) = scope.word("ssl_client_certificate") else {
            return self.note(
                verify,
                Weight::Guard,
                "no \"ssl_client_certificate\": clients need no certificate",
            );
        };
        let mut table = Keys::default();
        table.set("mode", mode);
        table.set("authorities", self.path_of_configuration(authorities));
        if let Some(revoked) = scope.word("ssl_crl") {
            table.set("revoked", self.path_of_configuration(revoked));
        }
        keys.set("client_certificates", table);
    }

    /// Takes over the error pages that hold in a scope.
    pub(super) fn error_pages(&mut self, scope: &Scope<'t>, site: &Surroundings<'t>, keys: &mut Keys) {
        let mut pages = Keys::default();
        for directive in scope.all(&["error_page"]) {
            let codes: Vec<_> =
                directive.arguments.iter().filter_map(|code| code.parse::<u16>().ok()).collect();
            let is_followed = |code: &u16| match (site.named_for(u64::from(*code), scope), code) {
                (Some(_), 404) => true,
                (Some(_), code) => returns(scope.innermost(), *code),
                (None, _) => false,
            };
            let goes_on = directive.arguments.get(1).is_some_and(|sign| sign == "=") && codes == [404];
            if !codes.is_empty() && (codes.iter().all(is_followed) || goes_on) {
                continue;
            }
            let Some((codes, target)) = page_of(directive) else {
                self.leave_out(directive);
                continue;
            };
            let Some(file) = self.file_of(target, site, scope).filter(|file| self.includes.exists(file))
            else {
                self.note(directive, Weight::LeftOut, format!("there is no file for \"{target}\": left out"));
                continue;
            };
            for code in codes.into_iter().filter(|code| (400..600).contains(code)) {
                pages.set(&code.to_string(), file.as_str());
            }
        }
        if !pages.is_empty() {
            keys.set("error_pages", pages);
        }
    }

    /// The file that nginx would serve at a path.
    fn file_of(&self, path: &str, site: &Surroundings<'t>, scope: &Scope<'t>) -> Option<String> {
        let longest = site.spots.iter().filter_map(|spot| match spot.matcher {
            Matcher::Exact(own) if own == path => Some((usize::MAX, true, spot)),
            Matcher::Prefix { path: own, first } if path.starts_with(own) => Some((own.len(), first, spot)),
            _ => None,
        });
        let longest = longest.max_by_key(|(length, ..)| *length);
        let mut asked = site.spots.iter().filter(|_| longest.is_none_or(|(_, is_first, _)| !is_first));
        let by_pattern = asked.find(|spot| match spot.matcher {
            Matcher::Pattern { text, any_case } => matches_path(text, any_case, path),
            _ => false,
        });
        let spot = by_pattern.or(longest.map(|(.., spot)| spot));
        let scope = spot.map_or(scope, |spot| &spot.scope);
        let root = scope.all(&["root", "alias"]).last().copied()?;
        let rest = match (root.name.as_str(), spot.map(|spot| spot.matcher)) {
            ("alias", Some(Matcher::Prefix { path: own, .. } | Matcher::Exact(own))) => {
                path.strip_prefix(own)?
            }
            ("alias", Some(Matcher::Pattern { .. })) => return None,
            _ => path,
        };
        let folder = root.argument(0);
        is_constant(folder).then(|| match rest.starts_with('/') || rest.is_empty() {
            true => format!("{}{rest}", folder.trim_end_matches('/')),
            false => format!("{folder}{rest}"),
        })
    }

    fn routes(&mut self, server: &'t Directive, scope: &Scope<'t>, site: &Surroundings<'t>) -> Vec<Route> {
        let mut routes = Vec::new();
        for condition in server.block.iter().filter(|directive| directive.name == "if") {
            // As certbot leaves a server: `return 404` is for what no condition has sent elsewhere.
            if let Some((_, Answer::Https { status })) = redirect::of_host(condition) {
                return vec![whole_over_tls(status)];
            }
            routes.extend(self.moved_paths(condition).into_iter().flatten());
        }
        let own = Scope::of(&server.block);
        for rewrite in own.all(&["rewrite"]) {
            match redirect::of_rewrite(rewrite) {
                Some((_, Answer::Https { status })) => return vec![whole_over_tls(status)],
                Some((path, Answer::Elsewhere { status, to })) if path == "/" => {
                    return vec![Route::whole(redirection(status, &to))];
                }
                Some((path, Answer::Elsewhere { status, to })) => {
                    let (by, prefix) = (By::Path { asked: Vec::new() }, format!("{path}/"));
                    let keys = redirection(status, &to);
                    routes.push(Route { keys, ..Route::new(by, prefix.clone(), prefix) });
                }
                _ => routes.extend(self.rewritten(rewrite)),
            }
        }
        if own.find("return").is_some() {
            // It answers in the place of every location.
            return self.routes_of(&Spot::whole(server, scope), site);
        }
        for spot in &site.spots {
            for route in self.routes_of(spot, site) {
                if !routes.iter().any(|known| known.is_twin_of(&route)) {
                    routes.push(route);
                }
            }
        }
        if !routes.iter().any(Route::is_whole) && (site.php.is_some() || site.is_closed) {
            let mut whole = Route::whole(Keys::default());
            match &site.php {
                _ if site.is_closed => whole.keys = closed_with(403),
                Some((pass, scope)) => self.php(pass, scope, &mut whole),
                None => {}
            }
            routes.insert(0, whole);
        }
        routes
    }
}

/// Internal routes to which nothing leads are left out: a named location that no directive names, or that another one leads to
/// which is left out.
fn forget_unreached(routes: &mut Vec<Route>, site: &Keys) {
    let targets: Vec<_> = routes.iter().flat_map(|route| targets(&route.keys)).chain(targets(site)).collect();
    let runs_applications =
        routes.iter().any(|route| ["fastcgi", "scgi"].iter().any(|key| route.keys.get(key).is_some()));
    routes.retain(|route| {
        let is_named = route.prefix.starts_with("/__");
        let is_led_to = || targets.iter().any(|target| target.starts_with(&*route.prefix));
        !route.is_internal || is_led_to() || runs_applications && !is_named
    });
}

/// What some requests of a route get.
fn cases_of(keys: &Keys) -> &[Value] {
    match keys.get(CASES) {
        Some(Value::List(cases)) => cases,
        _ => &[],
    }
}

fn targets_of_case(case: &Value) -> Vec<String> {
    match case {
        Value::Table(keys) => targets(keys),
        _ => Vec::new(),
    }
}

/// Where keys send requests within the site.
fn targets(keys: &Keys) -> Vec<String> {
    let rewritten = match keys.get("rewrite") {
        Some(Value::Table(rewrite)) => rewrite.get("to"),
        _ => None,
    };
    let tried = match keys.get("try_files") {
        Some(Value::List(tried)) => tried.last(),
        _ => None,
    };
    let texts = rewritten.into_iter().chain(tried).filter_map(|target| match target {
        Value::Text(target) => Some(target.clone()),
        _ => None,
    });
    texts.chain(cases_of(keys).iter().flat_map(targets_of_case)).collect()
}

/// The hosts of a server whose requests an `if` sends elsewhere, and the answers. One host has to be left.
fn moved_hosts(server: &Directive, hosts: &[String]) -> Vec<(String, Keys)> {
    let conditions = server.block.iter().filter(|directive| directive.name == "if");
    let mut moved = Vec::new();
    for condition in conditions {
        let one = redirect::of_host(condition);
        let is_one = one.is_some();
        let Some((named, Answer::Elsewhere { status, to })) =
            one.or_else(|| redirect::of_other_hosts(condition))
        else {
            continue;
        };
        let of_condition =
            hosts.iter().filter(|host| (*host == named) == is_one && hosts.iter().any(|one| one == named));
        moved.extend(of_condition.map(|host| (host.clone(), redirection(status, &to))));
    }
    if moved.len() < hosts.len() { moved } else { Vec::new() }
}

/// Whether the expression of a location is for a path.
fn matches_path(text: &str, any_case: bool, path: &str) -> bool {
    let text = format!("{}{text}", if any_case { "(?i)" } else { "" });
    Pattern::regex(&text).is_ok_and(|pattern| pattern.matches(path.as_bytes()))
}

/// Whether a `return` in a block says this status.
fn returns(block: &[Directive], status: u16) -> bool {
    let is_it =
        |directive: &Directive| directive.name == "return" && directive.argument(0) == status.to_string();
    block.iter().any(|directive| is_it(directive) || returns(&directive.block, status))
}

/// Whether a location of files says which fields they have.
fn says_fields(spot: &Spot<'_>) -> bool {
    let own = Scope::of(&spot.directive.block);
    own.find("fastcgi_pass").is_none() && (own.find("add_header").is_some() || own.find("expires").is_some())
}

fn whole_over_tls(status: u64) -> Route {
    Route::whole(redirection(status, SAME_OVER_TLS))
}

fn error_pages(scope: &Scope<'_>) -> Vec<String> {
    scope.all(&["error_page"]).iter().filter_map(|page| page.arguments.last().cloned()).collect()
}

/// A route of the whole site that only says how files are served says so as the site.
fn hoist(site: &mut Keys, routes: &mut Vec<Route>) {
    let Some(at) = routes.iter().position(Route::is_whole) else { return };
    let answers = ["redirect", "respond", "proxy", "fastcgi", "scgi", CASES];
    let whole = &routes[at];
    if whole.is_first
        || answers.iter().any(|key| whole.keys.get(key).is_some())
        || routes.len() > 1 && !whole.keys.is_empty()
    {
        return;
    }
    let whole = routes.remove(at);
    for (key, value) in whole.keys.0 {
        site.set(&key, value);
    }
}

/// A site and its routes. `cases`: what some requests get, whatever their path.
fn sections(
    hosts: &[String],
    site: &Keys,
    routes: &[Route],
    cases: &[Value],
    notes: &[Note],
) -> Vec<Section> {
    let mut keys = Keys::default();
    for (key, value) in &site.0 {
        keys.set(key, value.clone());
        if key == "listen" && !hosts.is_empty() {
            keys.set("hosts", hosts.to_vec());
        }
    }
    let mut sections = vec![Section { header: "[[site]]", notes: notes.to_vec(), keys }];
    let route = |keys| Section { header: "[[site.route]]", notes: Vec::new(), keys };
    let mut everywhere = Keys::default();
    everywhere.set("regex", "^");
    sections.extend(at_place(&everywhere, cases.iter()).map(route));
    for of_route in routes {
        let mut place = Keys::default();
        place.set(of_route.key(), of_route.value.as_str());
        if of_route.is_first {
            place.set("before_patterns", true);
        }
        if of_route.is_internal {
            place.set("internal", true);
        }
        // These come before the expression for every path.
        let comes_first = !of_route.is_internal && (of_route.is_exact() || of_route.is_first);
        let of_site = if comes_first { cases } else { &[] };
        let own = cases_of(&of_route.keys);
        sections.extend(at_place(&place, of_site.iter().chain(own)).map(route));
        let said = of_route.keys.0.iter().filter(|(key, _)| of_route.is_path() || key != "strip_prefix");
        place.0.extend(said.filter(|(key, _)| key != CASES).cloned());
        sections.push(Section { notes: of_route.notes.clone(), ..route(place) });
    }
    sections
}

/// A place with what some of its requests get, each. Of two with the same condition, the first answers.
fn at_place<'v>(place: &Keys, cases: impl Iterator<Item = &'v Value>) -> impl Iterator<Item = Keys> {
    let mut known = Vec::new();
    cases.filter_map(move |case| {
        let Value::Table(case) = case else { return None };
        let when = case.get("when")?;
        if known.contains(&when) {
            return None;
        }
        known.push(when);
        let mut keys = place.clone();
        keys.0.extend(case.0.iter().cloned());
        Some(keys)
    })
}
