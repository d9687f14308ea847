//! Routes from locations.

use std::borrow::Cow;

use baton_pattern::Pattern;

use super::conditions::Wanted;
use super::error_page::page_of;
use super::expression::{may_match, quoted, restricted, widened};
use super::guards::Access;
use super::passwords::{PASSWORDS, beside_addresses};
use super::route::{
    By, CASES, Content, Level, Route, closed_with, encoded, place_of, redirection, rewritten_to,
};
use super::scope::Scope;
use super::translator::Translator;
use crate::note::Weight;
use crate::redirect::{self, Answer, SAME_OVER_TLS};
use crate::tree::Directive;
use crate::values::{endings_of_scripts, is_of_php_scripts};
use crate::written::{Keys, Value};

/// Which requests a location is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Matcher<'t> {
    Exact(&'t str),
    /// `first`: it comes before regular expressions.
    Prefix {
        path: &'t str,
        first: bool,
    },
    Pattern {
        text: &'t str,
        any_case: bool,
    },
    Named(&'t str),
}

/// A location with the blocks around it.
#[derive(Clone, Debug)]
pub(super) struct Spot<'t> {
    pub(super) matcher: Matcher<'t>,
    pub(super) directive: &'t Directive,
    /// All of them.
    pub(super) scope: Scope<'t>,
    /// The locations among them: what a route does not have from its site.
    pub(super) own: Scope<'t>,
    /// What it is within.
    outer: Outer<'t>,
    /// The levels of expressions that come before it, if it has a prefix.
    asked: Vec<Level>,
}

/// What a location is within.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outer<'t> {
    Server,
    Prefix(&'t str),
    /// A location with a regular expression, or of one path.
    Other,
}

/// What a route needs to know of its site.
#[derive(Debug)]
pub(super) struct Surroundings<'t> {
    pub(super) spots: Vec<Spot<'t>>,
    /// What runs the PHP scripts of the server.
    pub(super) php: Option<(&'t Directive, Scope<'t>)>,
    pub(super) is_closed: bool,
    /// Whether the site has rules about addresses.
    pub(super) is_guarded: bool,
    /// Whether the site asks for passwords.
    pub(super) has_users: bool,
    /// Whether an address is enough in the place of a password.
    pub(super) is_choice: bool,
    pub(super) has_fallback: bool,
    /// Targets of `error_page`.
    pub(super) error_pages: Vec<String>,
}

impl<'t> Surroundings<'t> {
    /// Whether a request may get to an internal location with this path: by a target that begins so, or by an application
    /// (`X-Accel-Redirect`).
    fn leads_to(&self, path: &str) -> bool {
        self.spots.iter().any(|spot| {
            let own = Scope::of(&spot.directive.block);
            let targets = own.each("try_files").into_iter().chain(own.each("rewrite"));
            ["fastcgi_pass", "scgi_pass"].iter().any(|pass| own.find(pass).is_some())
                || targets.flat_map(|one| one.arguments.iter().skip(1)).any(|target| target.starts_with(path))
        })
    }

    /// Whether there is such a named location.
    pub(super) fn has_named(&self, name: &str) -> bool {
        self.spots.iter().any(|spot| spot.matcher == Matcher::Named(name))
    }

    /// The named location that answers in the place of an error.
    pub(super) fn named_for(&self, status: u64, scope: &Scope<'t>) -> Option<&'t str> {
        let pages = scope.all(&["error_page"]);
        let page = pages.into_iter().find(|page| page.arguments.contains(&status.to_string()))?;
        let name = page.arguments.last()?;
        self.has_named(name).then_some(name)
    }
}

impl<'t> Spot<'t> {
    /// All locations in a block, and within them.
    pub(super) fn all(block: &'t [Directive], scope: &Scope<'t>) -> Vec<Self> {
        let mut spots = Vec::new();
        let all = Block { directives: block, scope: scope.clone(), own: Scope::default() };
        Self::gather(&all, Outer::Server, &[], &mut spots);
        spots
    }

    /// `beyond`: the levels further out, whose expressions are asked if none of this block matches.
    fn gather(block: &Block<'t>, outer: Outer<'t>, beyond: &[Level], spots: &mut Vec<Self>) {
        let level = match outer {
            Outer::Prefix(path) => Level::Within(path.to_owned()),
            Outer::Server | Outer::Other => Level::Server,
        };
        let locations = block.directives.iter().filter(|directive| directive.name == "location");
        let prefixes: Vec<_> = locations.clone().filter_map(matcher_of).filter_map(Matcher::prefix).collect();
        for directive in locations.clone() {
            let Some(matcher) = matcher_of(directive) else { continue };
            let (scope, own) = (block.scope.within(&directive.block), block.own.within(&directive.block));
            // `^~` keeps away the expressions beside it.
            let beside = (!matches!(matcher, Matcher::Prefix { first: true, .. })).then(|| level.clone());
            let further: Vec<_> = beside.into_iter().chain(beyond.iter().cloned()).collect();
            let inner = match (matcher, outer) {
                (Matcher::Prefix { path, .. }, Outer::Server | Outer::Prefix(_)) => Outer::Prefix(path),
                _ => Outer::Other,
            };
            let asked = match inner {
                Outer::Prefix(path) => [&[Level::Within(path.to_owned())], &further[..]].concat(),
                Outer::Server | Outer::Other => Vec::new(),
            };
            let of_directive =
                Self { matcher, directive, scope: scope.clone(), own: own.clone(), outer, asked };
            spots.push(of_directive);
            let within = spots.len();
            Self::gather(&Block { directives: &directive.block, scope, own }, inner, &further, spots);
            // Where a prefix beside it is longer, nothing within this one is looked at.
            let hides = |prefix: &&str| {
                matcher.prefix().is_some_and(|own| prefix.len() > own.len() && prefix.starts_with(own))
            };
            let hiding: Vec<_> = prefixes.iter().copied().filter(hides).collect();
            let is_hidden = |spot: &Self| {
                let is_beside =
                    |path| locations.clone().filter_map(matcher_of).any(|one| one == Matcher::Exact(path));
                let place = match (spot.matcher, spot.outer) {
                    (Matcher::Exact(path), _) if is_beside(path) => return true,
                    (Matcher::Prefix { path, .. } | Matcher::Exact(path), _) => path,
                    (Matcher::Pattern { .. }, Outer::Prefix(outer)) => outer,
                    (Matcher::Pattern { .. } | Matcher::Named(_), _) => return false,
                };
                hiding.iter().any(|prefix| place.starts_with(prefix))
            };
            let mut index = 0;
            spots.retain(|spot| {
                index += 1;
                index <= within || !is_hidden(spot)
            });
        }
    }

    /// A server as one location for all of it.
    pub(super) fn whole(server: &'t Directive, scope: &Scope<'t>) -> Self {
        let own = Scope::of(&server.block);
        let matcher = Matcher::Prefix { path: "/", first: false };
        let asked = vec![Level::Server];
        Self { matcher, directive: server, scope: scope.clone(), own, outer: Outer::Server, asked }
    }

    /// Whether the expressions of the server are asked before it.
    fn yields_to_server(&self) -> bool {
        self.asked.contains(&Level::Server)
    }

    /// Whether it is guarded otherwise than its server.
    fn is_guarded(&self) -> bool {
        !self.own.all(&GUARDS_OF_PLACES).is_empty() || self.refuses_some()
    }

    /// Whether a condition of it refuses requests.
    pub(super) fn refuses_some(&self) -> bool {
        self.directive.block.iter().any(|directive| directive.name == "if" && redirect::refuses(directive))
    }

    /// The level of an expression.
    fn level(&self) -> Level {
        match self.outer {
            Outer::Prefix(path) => Level::Within(path.to_owned()),
            Outer::Server | Outer::Other => Level::Server,
        }
    }

    /// What runs PHP scripts, if it is for these, and for all of them alike.
    pub(super) fn php(&self) -> Option<&'t Directive> {
        match self.matcher {
            // What guards these scripts would guard no others that a route runs.
            Matcher::Pattern { text, .. } if is_of_php_scripts(text) && !self.is_guarded() => {
                self.scope.find("fastcgi_pass")
            }
            _ => None,
        }
    }
}

/// A block of locations.
struct Block<'t> {
    directives: &'t [Directive],
    scope: Scope<'t>,
    own: Scope<'t>,
}

impl<'t> Matcher<'t> {
    /// What all of its paths begin with.
    fn prefix(self) -> Option<&'t str> {
        match self {
            Self::Prefix { path, .. } => Some(path),
            Self::Exact(_) | Self::Pattern { .. } | Self::Named(_) => None,
        }
    }
}

fn matcher_of(directive: &Directive) -> Option<Matcher<'_>> {
    Some(match directive.arguments.as_slice() {
        [sign, path] => match sign.as_str() {
            "=" => Matcher::Exact(path),
            "^~" => Matcher::Prefix { path, first: true },
            "~" => Matcher::Pattern { text: path, any_case: false },
            "~*" => Matcher::Pattern { text: path, any_case: true },
            _ => return None,
        },
        [word] => {
            let signed = [("~*", false), ("^~", true), ("~", false), ("=", false)];
            let signed =
                signed.iter().find_map(|(sign, first)| Some((*sign, *first, word.strip_prefix(sign)?)));
            match signed {
                Some(("=", _, path)) => Matcher::Exact(path),
                Some(("^~", first, path)) => Matcher::Prefix { path, first },
                Some((sign, _, text)) => Matcher::Pattern { text, any_case: sign == "~*" },
                None if word.starts_with('@') => Matcher::Named(word),
                None => Matcher::Prefix { path: word, first: false },
            }
        }
        _ => return None,
    })
}

impl<'t> Translator<'t> {
    /// The routes of a location.
    pub(super) fn routes_of(&mut self, spot: &Spot<'t>, site: &Surroundings<'t>) -> Vec<Route> {
        let said = self.notes.len();
        let block = &spot.directive.block;
        self.account(block);
        self.account_limits(block);
        self.account_one_for_all(block);
        let path = match spot.matcher {
            Matcher::Prefix { path, .. } | Matcher::Exact(path) => path,
            Matcher::Named(_) | Matcher::Pattern { .. } => "/",
        };
        let (by, value) = match spot.matcher {
            Matcher::Prefix { .. } => (By::Path { asked: spot.asked.clone() }, encoded(path)),
            Matcher::Exact(_) => (By::Exact, encoded(path)),
            Matcher::Named(name) => (By::Path { asked: Vec::new() }, place_of(name)),
            Matcher::Pattern { text, any_case } => match self.pattern(text, any_case, spot) {
                Ok(pattern) => (By::Expression(spot.level()), pattern),
                Err(instead) => return instead.into_iter().map(|closed| *closed).collect(),
            },
        };
        if spot.outer == Outer::Other || !path.starts_with('/') {
            self.leave_out_location(spot);
            return Vec::new();
        }
        let prefix = match spot.matcher {
            Matcher::Named(_) => value.clone(),
            Matcher::Pattern { .. } => String::new(),
            Matcher::Prefix { .. } | Matcher::Exact(_) => path.to_owned(),
        };
        let is_internal = matches!(spot.matcher, Matcher::Named(_));
        let mut route = Route { is_internal, ..Route::new(by, value, prefix) };
        let mut routes = match spot.matcher {
            Matcher::Named(_) => self.rewritten_within(&route, spot),
            _ => Vec::new(),
        };
        if routes.is_empty() {
            self.fill(&mut route, path, spot, site);
            routes.push(route);
        }
        if let Some(route) = routes.first_mut() {
            route.notes = self.said_since(said);
        }
        routes
    }

    /// What a named location makes of paths by `rewrite`, each by its expression.
    fn rewritten_within(&mut self, named: &Route, spot: &Spot<'t>) -> Vec<Route> {
        let mut routes = Vec::new();
        for rewrite in Scope::of(&spot.directive.block).all(&["rewrite"]) {
            let Some(pattern) = rewrite.argument(0).strip_prefix('^') else {
                self.leave_out(rewrite);
                continue;
            };
            if let Some(route) = self.rewritten(rewrite) {
                let behind = if pattern.is_empty() { "/" } else { pattern };
                let value = format!("^{}{behind}", quoted(&named.value));
                routes.push(Route { value, prefix: named.value.clone(), is_internal: true, ..route });
            }
        }
        routes
    }

    fn fill(&mut self, route: &mut Route, path: &str, spot: &Spot<'t>, site: &Surroundings<'t>) {
        self.account_guards_of_answer(spot);
        let mut allowed = Keys::default();
        match self.access(&spot.scope) {
            Access::Closed(answer) => {
                route.keys = answer;
                return;
            }
            // What the site says holds here, too, unless this place says something else.
            Access::Some(_) | Access::Open if !self.says_addresses(&spot.own) => {}
            Access::Some(rules) => {
                if site.is_guarded {
                    allowed.set("allow", "all");
                    allowed.set("deny", Value::List(Vec::new()));
                }
                for (key, value) in rules.0 {
                    allowed.set(&key, value);
                }
            }
            Access::Open if site.is_guarded => {
                allowed.set("allow", "all");
                allowed.set("deny", Value::List(Vec::new()));
            }
            Access::Open => {}
        }
        if !spot.own.all(&PASSWORDS).is_empty() {
            match self.users(&spot.scope) {
                Some(users) => allowed.set("basic_auth", users),
                None if site.has_users => allowed.set("basic_auth", "off"),
                None => {}
            }
        }
        let is_choice = beside_addresses(&spot.scope).is_some();
        if is_choice != site.is_choice {
            allowed.set("satisfy", if is_choice { "any" } else { "all" });
        }
        if let Some(limit) =
            (!spot.own.all(&["limit_req"]).is_empty()).then(|| self.rate(&spot.scope)).flatten()
        {
            allowed.set("rate_limit", limit);
        }
        if let Some(methods) = self.methods(&spot.own) {
            allowed.set("methods", methods);
        }
        self.account_conditions(&spot.scope, &[], &[]);
        let cases = self.cases(path, spot, site);
        if !cases.is_empty() {
            allowed.set(CASES, cases);
        }
        if let Some(log) = Scope::of(&spot.directive.block).find("access_log") {
            self.note(log, Weight::Remark, "requests of this place are in the site's log");
        }
        self.account_real_ip(&spot.own);
        self.time(&spot.own, "client_body_timeout", "body_ms", &mut allowed);
        self.fill_with_content(route, path, spot, site);
        let has_body = ["respond", "redirect"].iter().all(|key| route.keys.get(key).is_none());
        if has_body
            && spot.own.find("gzip").is_some()
            && let Some(compression) = self.compression(&spot.scope)
        {
            route.keys.set("compress", compression);
        }
        route.keys.0.extend(allowed.0);
    }

    /// What the conditions of a place do with the requests of which they hold: keys with a `when` each.
    pub(super) fn cases(&mut self, path: &str, spot: &Spot<'t>, site: &Surroundings<'t>) -> Vec<Value> {
        let mut cases = Vec::new();
        for condition in spot.directive.block.iter().filter(|directive| directive.name == "if") {
            let Some(conditions) = self.case_conditions(condition, &spot.scope) else { continue };
            let inner = Spot {
                directive: condition,
                scope: spot.scope.within(&condition.block),
                own: spot.own.within(&condition.block),
                ..spot.clone()
            };
            if let Some((variable, _)) = Wanted::of(condition) {
                self.use_map(variable);
            }
            let said = condition.block.iter().filter(|directive| directive.name != "break");
            said.for_each(|directive| self.account(std::slice::from_ref(directive)));
            self.account_guards_of_answer(&inner);
            let mut route = Route::whole(Keys::default());
            self.fill_with_content(&mut route, path, &inner, site);
            // For all paths, the target would be one that the condition is about again.
            if spot.directive.name == "server" && route.content() == Content::Rewritten {
                self.leave_out(condition);
                continue;
            }
            for when in conditions {
                let mut keys = Keys::default();
                keys.set("when", when);
                keys.0.extend(route.keys.0.clone());
                cases.push(Value::Table(keys));
            }
        }
        cases
    }

    /// Whether a place says itself which addresses it is for.
    fn says_addresses(&self, own: &Scope<'_>) -> bool {
        !own.all(&["allow", "deny"]).is_empty()
            || own.each("if").into_iter().any(|condition| self.addresses_by_map(condition).is_some())
    }

    /// Says where guards hold that nginx does not ask: its `return` comes before them.
    fn account_guards_of_answer(&mut self, spot: &Spot<'t>) {
        let Some(answer) = Scope::of(&spot.directive.block).find("return") else { return };
        let access = self.access(&spot.scope);
        if matches!(access, Access::Closed(_)) && answer.argument(0) == "403" {
            return;
        }
        let is_guarded = access != Access::Open
            || self.users(&spot.scope).is_some()
            || !spot.scope.all(&["limit_req"]).is_empty()
            || self.methods(&spot.own).is_some();
        if is_guarded {
            let text = "nginx answers so before it asks what guards this place: here the guards come first";
            self.note(answer, Weight::LeftOut, text);
        }
    }

    fn fill_with_content(&mut self, route: &mut Route, path: &str, spot: &Spot<'t>, site: &Surroundings<'t>) {
        let block = &spot.directive.block;
        if block.iter().any(|directive| directive.name == "internal") {
            if !site.leads_to(path) {
                return self.close_internal(route, spot, site);
            }
            route.is_internal = true;
        }
        let own = Scope::of(block);
        if let Some(answer) = own.find("return") {
            return match redirect::of_return(answer) {
                Some(Answer::Fixed { status, .. })
                    if let Some(name) = site.named_for(status, &spot.scope) =>
                {
                    route.keys = rewritten_to(format!("{}$uri", place_of(name)));
                }
                Some(known) => self.answer(&known, spot, route),
                None => self.close_answer(answer, route),
            };
        }
        let mut start = None;
        for rewrite in own.all(&["rewrite"]) {
            start = redirect::of_prefix(rewrite, path);
            if start.is_some() && own.find("proxy_pass").is_some() {
                continue;
            }
            match (redirect::of_rewrite(rewrite), redirect::of_whole_rewrite(rewrite)) {
                (Some((from, answer)), _) if from == "/" || from == path.trim_end_matches('/') => {
                    return self.answer(&answer, spot, route);
                }
                (_, Some(to)) => {
                    route.keys = rewritten_to(to);
                    return;
                }
                _ => self.leave_out(rewrite),
            }
        }
        if let Some(pass) = own.find("proxy_pass") {
            match self.origin(pass, spot, path, start.as_deref()) {
                Some(keys) => {
                    route.keys.set("proxy", keys);
                    if let Some(cache) = self.cache(&spot.scope, "proxy") {
                        route.keys.set("cache", cache);
                    }
                    self.intercept("proxy_intercept_errors", spot, site, route);
                }
                None => {
                    self.leave_out(pass);
                    route.keys = closed_with(502);
                }
            }
            return self.fields_of(spot, route);
        }
        for (name, key) in [("fastcgi_pass", "fastcgi"), ("scgi_pass", "scgi")] {
            if let Some(pass) = own.find(name) {
                match self.application(pass, &spot.scope) {
                    Some(mut keys) => {
                        let endings = match spot.matcher {
                            Matcher::Pattern { text, .. } => endings_of_scripts(text),
                            Matcher::Prefix { path, .. } | Matcher::Exact(path) => {
                                endings_of_scripts(if path.ends_with(".php") { "\\.php" } else { "" })
                            }
                            Matcher::Named(_) => Vec::new(),
                        };
                        if !endings.is_empty() {
                            keys.set("scripts", endings);
                            if site.has_fallback {
                                route.keys.set("try_files", "off");
                            }
                        }
                        route.keys.set(key, keys);
                        if let Some(cache) = self.cache(&spot.scope, key) {
                            route.keys.set("cache", cache);
                        }
                        self.intercept("fastcgi_intercept_errors", spot, site, route);
                    }
                    None => {
                        self.leave_out(pass);
                        route.keys = closed_with(502);
                    }
                }
                return self.fields_of(spot, route);
            }
        }
        self.fill_with_files(route, spot, site);
    }

    fn fill_with_files(&mut self, route: &mut Route, spot: &Spot<'t>, site: &Surroundings<'t>) {
        let is_within = matches!(spot.matcher, Matcher::Prefix { path, .. } if path != "/");
        route.keys = self.files(&spot.own, is_within);
        if Self::has_unknown_root(&spot.scope) {
            route.keys = closed_with(404);
            return;
        }
        self.own_error_pages(spot, site, route);
        let says_fields = !spot.own.all(&["add_header", "expires"]).is_empty();
        if says_fields {
            self.fields(&spot.scope, true, &mut route.keys);
        }
        let fallback = self.fallback(spot, site);
        let nested = site.spots.iter().find(|other| {
            spot.directive.block.iter().any(|inner| std::ptr::eq(inner, other.directive))
                && other.php().is_some()
        });
        let nested = nested.and_then(|inner| Some((inner.php()?, inner.scope.clone())));
        let php = nested.or_else(|| site.php.clone().filter(|_| spot.yields_to_server()));
        match fallback {
            Some(tried) => route.keys.set("try_files", tried),
            None if site.has_fallback => route.keys.set("try_files", "off"),
            None => {}
        }
        if let Some((pass, scope)) = php.filter(|_| matches!(spot.matcher, Matcher::Prefix { .. })) {
            self.php(pass, &scope, route);
        }
    }

    /// Has PHP scripts run among the files of a route.
    pub(super) fn php(&mut self, pass: &'t Directive, scope: &Scope<'t>, route: &mut Route) {
        match self.application(pass, scope) {
            Some(mut keys) => {
                keys.set("scripts", vec![".php".to_owned()]);
                route.keys.set("fastcgi", keys);
            }
            None => self.leave_out(pass),
        }
    }

    /// Of what nothing leads to, clients get 404. The file of an error page is sent without its location.
    fn close_internal(&mut self, route: &mut Route, spot: &Spot<'t>, site: &Surroundings<'t>) {
        route.keys = closed_with(404);
        let is_page = site.error_pages.iter().any(|page| match spot.matcher {
            Matcher::Exact(path) => path == page,
            Matcher::Prefix { path, .. } => page.starts_with(path),
            Matcher::Pattern { .. } => {
                Pattern::regex(&route.value).is_ok_and(|one| one.matches(page.as_bytes()))
            }
            Matcher::Named(_) => false,
        });
        if !is_page && site.spots.iter().any(|other| other.scope.find("proxy_pass").is_some()) {
            let text = "origins cannot lead here by \"X-Accel-Redirect\": all get 404";
            self.note(spot.directive, Weight::LeftOut, text);
        }
    }

    /// A refusal whose text has variables refuses; what else is not known is closed.
    fn close_answer(&mut self, answer: &Directive, route: &mut Route) {
        match answer.argument(0).parse::<u64>() {
            Ok(status @ 400..=599) => {
                let text = format!("the text of this {status} has variables: left out");
                self.note(answer, Weight::LeftOut, text);
                route.keys = closed_with(status);
            }
            _ => {
                self.leave_out(answer);
                route.keys = closed_with(501);
            }
        }
    }

    fn own_error_pages(&mut self, spot: &Spot<'t>, site: &Surroundings<'t>, route: &mut Route) {
        if !spot.own.all(&["error_page"]).is_empty() {
            self.error_pages(&spot.scope, site, &mut route.keys);
        }
    }

    /// The error pages of a location, and whether they take the place of errors of what answers there: if `name` is `on`.
    fn intercept(&mut self, name: &str, spot: &Spot<'t>, site: &Surroundings<'t>, route: &mut Route) {
        self.own_error_pages(spot, site, route);
        let Some(directive) = spot.scope.find(name).filter(|one| one.argument(0) == "on") else { return };
        // A 401 passes always: it says how to log in.
        let is_taken = |page: &&Directive| {
            page_of(page)
                .is_some_and(|(codes, _)| codes.iter().all(|code| *code != 401 && (400..600).contains(code)))
        };
        let pages = spot.scope.all(&["error_page"]);
        match pages.is_empty() || pages.iter().all(is_taken) {
            true if pages.is_empty() => {}
            true => route.keys.set("intercept", true),
            false => {
                let text =
                    "an `error_page` here is for 401, or no file: errors of what answers stay as they are";
                self.note(directive, Weight::LeftOut, text);
            }
        }
    }

    fn answer(&mut self, answer: &Answer, spot: &Spot<'t>, route: &mut Route) {
        let mut keys = Keys::default();
        match answer {
            Answer::Https { status } => route.keys.0.extend(redirection(*status, SAME_OVER_TLS).0),
            Answer::Elsewhere { status, to } => {
                keys.set("to", to.as_str());
                keys.set("status", *status);
                route.keys.set("redirect", keys);
            }
            Answer::Fixed { status, text } => {
                keys.set("status", *status);
                if !text.is_empty() {
                    keys.set("body", text.as_str());
                    let said = spot.scope.word("default_type").unwrap_or("text/plain");
                    let is_run = ["html", "xml", "script"].iter().any(|kind| said.contains(kind));
                    // What a client writes must not be run by a browser.
                    keys.set("media_type", if is_run && text.contains('$') { "text/plain" } else { said });
                }
                route.keys.set("respond", keys);
            }
            Answer::Closed => {
                keys.set("status", CLOSED_WITHOUT_ANSWER);
                route.keys.set("respond", keys);
            }
        }
        self.fields_of(spot, route);
    }

    /// Fields of answers that are no files. Those of the site hold anyway, but for its rules about files.
    fn fields_of(&mut self, spot: &Spot<'t>, route: &mut Route) {
        let hides =
            ["proxy_hide_header", "fastcgi_hide_header"].iter().any(|name| spot.scope.find(name).is_some());
        if hides || !spot.own.all(&["add_header"]).is_empty() || spot.scope.find("expires").is_some() {
            self.fields(&spot.scope, false, &mut route.keys);
        }
    }

    /// The regular expression of a route, or what takes the place of one that cannot be said: what it guards is closed.
    fn pattern(&mut self, text: &str, any_case: bool, spot: &Spot<'t>) -> Result<String, Option<Box<Route>>> {
        if HIDDEN_NAMES.contains(&text) && self.access(&spot.own) != Access::Open {
            let text = "names that begin with a dot are never served: clients get 404";
            self.note(spot.directive, Weight::Remark, text);
            return Err(None);
        }
        let flags = if any_case { "(?i)" } else { "" };
        let valid = |text: &str| {
            let text = format!("{flags}{text}");
            let pattern = match spot.outer {
                Outer::Prefix(path) => restricted(&text, path).map(Cow::into_owned),
                Outer::Server | Outer::Other => Some(text),
            };
            pattern.filter(|pattern| Pattern::regex(pattern).is_ok())
        };
        match spot.outer {
            Outer::Prefix(path) if !may_match(&format!("{flags}{text}"), path) => Err(None),
            // Of two expressions that have to match, one alone is no more than a guard.
            outer => valid(text).filter(|_| outer != Outer::Other).ok_or_else(|| {
                let is_guard = self.leave_out_location(spot);
                let widened = widened(text);
                // What cannot be said of these paths alone is said of all.
                let everywhere =
                    || Some(format!("{flags}{widened}")).filter(|one| Pattern::regex(one).is_ok());
                let widened = valid(&widened).or_else(everywhere).filter(|_| is_guard)?;
                let level = if outer == Outer::Other { Level::Rewrites } else { spot.level() };
                Some(Box::new(Route::expression(level, widened, closed_with(403))))
            }),
        }
    }

    /// Returns whether it guards something.
    fn leave_out_location(&mut self, spot: &Spot<'t>) -> bool {
        let guards = ["allow", "auth_basic", "auth_request", "deny", "internal", "limit_except", "return"];
        let is_guard = spot.directive.block.iter().any(|inner| guards.contains(&&*inner.name));
        let (weight, what) = match is_guard {
            true => (
                Weight::Guard,
                "guards something, and has no counterpart: paths that it may be about are closed (403)",
            ),
            false => (Weight::LeftOut, "has no counterpart: left out"),
        };
        let words = spot.directive.arguments.join(" ");
        self.note(spot.directive, weight, format!("\"location {words}\" {what}"));
        is_guard
    }
}

/// Directives that guard a place, and become rules of its route.
const GUARDS_OF_PLACES: [&str; 5] = ["allow", "auth_basic", "auth_basic_user_file", "deny", "limit_req"];

/// Patterns of names that begin with a dot, which look ahead.
const HIDDEN_NAMES: &[&str] = &[
    r"/\.(?!well-known)",
    r"/\.(?!well-known).*",
    r"/\.(?!well-known\/)",
    r"/\.(?!well-known/)",
    r"^/\.(?!well-known)",
    r"^/\.(?!well-known).*",
];

/// The status with which both nginx and Baton close the connection and say nothing.
const CLOSED_WITHOUT_ANSWER: u64 = 444;
