//! Where `return`, `rewrite` and `if` send clients, as far as Baton's routes can say so.

use baton_http::OfNginx;

use crate::tree::Directive;
use crate::values::{field_value, is_constant, translated};

/// An answer without a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// A redirection to the same target over TLS.
    Https { status: u64 },
    /// A redirection. The location may end in `$uri` or `$rest`.
    Elsewhere { status: u64, to: String },
    /// A status, perhaps with a text.
    Fixed { status: u64, text: String },
    /// The connection is closed without an answer.
    Closed,
}

/// What a `return` says; `None`: it has variables that Baton does not know.
pub(crate) fn of_return(directive: &Directive) -> Option<Answer> {
    let (status, text) = match directive.arguments.as_slice() {
        [url] if url.parse::<u64>().is_err() => return redirection(302, url),
        [status] => (status.parse().ok()?, ""),
        [status, text] => (status.parse().ok()?, text.as_str()),
        _ => return None,
    };
    match status {
        301 | 302 | 303 | 307 | 308 => redirection(status, text),
        444 => Some(Answer::Closed),
        204 | 205 | 304 => Some(Answer::Fixed { status, text: String::new() }),
        200..=599 => Some(Answer::Fixed { status, text: field_value(text)? }),
        _ => None,
    }
}

/// What a `rewrite` with `redirect` or `permanent` says that moves everything below a path, and the path.
pub(crate) fn of_rewrite(directive: &Directive) -> Option<(String, Answer)> {
    let [pattern, target, flags @ ..] = directive.arguments.as_slice() else { return None };
    let status = match flags {
        [flag] if flag == "permanent" => 301,
        [flag] if flag == "redirect" => 302,
        [] if ["http://", "https://", "$scheme://"].iter().any(|start| target.starts_with(start)) => 302,
        _ => return None,
    };
    let everything = ["^", "^/", "^.*$", "^.*", ".*", "^(.*)$", "^/(.*)$", "^(.*)", "^/(.*)"];
    if everything.contains(&pattern.as_str()) {
        let (target, all) = match target.strip_suffix('?') {
            Some(target) => (target, "$uri"),
            None => (target.as_str(), "$request_uri"),
        };
        // `$1` begins with the slash if the pattern does not name it.
        let slash = if pattern.starts_with("^/(") { "/$1" } else { "$1" };
        let target = target.strip_suffix(slash).map(|start| format!("{start}{all}"));
        let target = target.unwrap_or_else(|| directive.argument(1).trim_end_matches('?').to_owned());
        return Some(("/".into(), redirection(status, &target)?));
    }
    let path = pattern.strip_prefix('^')?.strip_suffix("/(.*)$")?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'-' | b'_' | b'~');
    let start = target.strip_suffix("/$1")?;
    if !path.starts_with('/') || !path.bytes().all(is_plain) || !is_constant(start) {
        return None;
    }
    Some((path.to_owned(), Answer::Elsewhere { status, to: format!("{start}$rest") }))
}

/// A target with variables, as Baton writes them; `None`: it has one that Baton does not know.
pub(crate) fn template(target: &str) -> Option<String> {
    let to = filled(target, |name| match name {
        "args" | "query_string" => Some("query"),
        _ => None,
    })?;
    let Some((path, query)) = to.split_once('?') else { return Some(to) };
    // A query that is there anyway if the target has none.
    match query {
        "$query" => Some(path.to_owned()),
        _ if query.contains("$uri") => None,
        _ => Some(to),
    }
}

/// A target of a redirection with our variables in place of nginx's; it may name the host.
fn location(target: &str) -> Option<String> {
    filled(target, |name| match name {
        "http_host" => Some("host"),
        // It differs there from what it is in a field.
        "upstream_addr" | "upstream_cache_status" => None,
        _ => OfNginx::named(name).filter(|of_nginx| of_nginx.is_same).map(|of_nginx| of_nginx.here),
    })
}

/// A text with Baton's variables in place of those of nginx. `known`: those that not every text has.
fn filled(target: &str, known: impl Fn(&str) -> Option<&'static str>) -> Option<String> {
    // `$is_args` is nothing without a query; so is a `?` at the end, for Baton.
    let target = ["args", "query_string"].iter().fold(target.to_owned(), |target, query| {
        target.replace(&format!("$is_args${query}"), &format!("?${query}"))
    });
    let to = translated(&target, |name| match name {
        "uri" | "document_uri" => Some("path".to_owned()),
        "request_uri" => Some("uri".to_owned()),
        _ if name.bytes().all(|byte| byte.is_ascii_digit()) => Some(name.to_owned()),
        _ => known(name).map(str::to_owned),
    })?;
    let (start, _) = to.split_once("$uri").unwrap_or((&to, ""));
    // It stands at the end, since it has the query, too.
    (start.len() == to.len() || start.len() + "$uri".len() == to.len()).then_some(to)
}

/// What a `rewrite` does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Rewrite {
    /// Sends the client elsewhere.
    Redirect { status: u64, to: String },
    /// Goes on with another target.
    Within { to: String },
}

/// What a `rewrite` does with the paths that match its expression; `None`: Baton cannot.
pub(crate) fn of_any_rewrite(directive: &Directive) -> Option<Rewrite> {
    let [_, target, flags @ ..] = directive.arguments.as_slice() else { return None };
    let (target, keeps_query) = match target.strip_suffix('?') {
        Some(target) => (target, false),
        None => (target.as_str(), true),
    };
    let is_url = ["http://", "https://", "$scheme://"].iter().any(|scheme| target.starts_with(scheme));
    let status = match flags {
        [flag] if flag == "permanent" => Some(301),
        [flag] if flag == "redirect" => Some(302),
        [] if is_url => Some(302),
        _ => None,
    };
    if let Some(status) = status {
        let to = location(target)?;
        // nginx adds the query of the request. `$uri` has it already.
        let more = match (keeps_query && !to.ends_with("$uri"), to.contains('?')) {
            (false, _) => "",
            (true, false) => "?$query",
            (true, true) => "&$query",
        };
        return Some(Rewrite::Redirect { status, to: to + more });
    }
    let to = template(target)?;
    let has_query = to.contains('?');
    match flags {
        [] if to.starts_with('/') => Some(Rewrite::Within { to: within(to, has_query, keeps_query) }),
        [flag] if flag == "last" && to.starts_with('/') => {
            Some(Rewrite::Within { to: within(to, has_query, keeps_query) })
        }
        _ => None,
    }
}

/// The target of a `rewrite` that is for every path, and goes on within the server; `None`: it is none.
pub(crate) fn of_whole_rewrite(directive: &Directive) -> Option<String> {
    let [pattern, target, flags @ ..] = directive.arguments.as_slice() else { return None };
    let whole = match pattern.as_str() {
        "^" | "." | "^.*$" | "^.*" | ".*" | "^/" => None,
        "^(.*)$" | "^(.*)" | "(.*)" => Some("$1"),
        "^/(.*)$" | "^/(.*)" => Some("/$1"),
        _ => return None,
    };
    // A second slash in front leads to other locations.
    if whole == Some("$1") && target.starts_with("/$1") {
        return None;
    }
    let target = whole.map_or_else(|| target.clone(), |whole| target.replace(whole, "$uri"));
    let within = Directive { arguments: [&[pattern.clone(), target], flags].concat(), ..directive.clone() };
    match of_any_rewrite(&within)? {
        Rewrite::Within { to } if !GROUPS.iter().any(|group| to.contains(group)) => Some(to),
        _ => None,
    }
}

const GROUPS: [&str; 9] = ["$1", "$2", "$3", "$4", "$5", "$6", "$7", "$8", "$9"];

/// nginx adds the query of the request to one of the target; Baton has what the target says.
fn within(to: String, has_query: bool, keeps_query: bool) -> String {
    match (has_query, keeps_query) {
        (true, true) if !to.contains("$query") => format!("{to}&$query"),
        (false, false) => format!("{to}?"),
        _ => to,
    }
}

/// What stands for the path of a location, if a `rewrite` takes this or its beginning away before the request goes on to an origin.
pub(crate) fn of_prefix(directive: &Directive, path: &str) -> Option<String> {
    let [pattern, target, flag] = directive.arguments.as_slice() else { return None };
    let all = ["/(.*)$", "/(.*)", "/?(.*)$", "/?(.*)"];
    let taken = all.iter().find_map(|all| pattern.strip_prefix('^')?.strip_suffix(all))?;
    let rest = path.strip_prefix(taken).filter(|rest| rest.is_empty() || rest.starts_with('/'))?;
    let start = target.strip_suffix("$1").filter(|start| is_constant(start) && start.ends_with('/'))?;
    (flag == "break").then(|| format!("{start}{}", rest.trim_start_matches('/')))
}

/// What an `if` says that sends requests for one host elsewhere, as certbot writes it, and the host.
pub(crate) fn of_host(directive: &Directive) -> Option<(&str, Answer)> {
    let [variable, "=", host] = condition(directive)?[..] else { return None };
    let [inner] = directive.block.as_slice() else { return None };
    if !matches!(variable, "$host" | "$http_host") || !is_constant(host) || inner.name != "return" {
        return None;
    }
    Some((host, of_return(inner)?))
}

/// What an `if` says that sends requests for all hosts but one elsewhere, and this host.
pub(crate) fn of_other_hosts(directive: &Directive) -> Option<(&str, Answer)> {
    let [variable, "!=", host] = condition(directive)?[..] else { return None };
    let [inner] = directive.block.as_slice() else { return None };
    if !matches!(variable, "$host" | "$http_host") || !is_constant(host) || inner.name != "return" {
        return None;
    }
    Some((host, of_return(inner)?))
}

/// Whether an `if` sends requests in clear to TLS.
pub(crate) fn is_for_tls(directive: &Directive) -> bool {
    let on_clear = matches!(
        condition(directive).as_deref(),
        Some(
            ["$scheme", "=", "http"]
                | ["$scheme", "!=", "https"]
                | ["$https", "=", "" | "off"]
                | ["$https", "!=", "on"]
        )
    );
    let sent = match directive.block.as_slice() {
        [inner] if inner.name == "return" => of_return(inner),
        [inner] if inner.name == "rewrite" => of_rewrite(inner).map(|(_, answer)| answer),
        _ => None,
    };
    on_clear && matches!(sent, Some(Answer::Https { .. }))
}

/// The methods that a `limit_except` lets through; `None`: it lets some clients have others, too.
pub(crate) fn methods(directive: &Directive) -> Option<Vec<String>> {
    let [inner] = directive.block.as_slice() else { return None };
    (inner.name == "deny" && inner.argument(0) == "all").then(|| directive.arguments.clone())
}

/// Whether an `if` answers by itself, in a way that Baton has.
pub(crate) fn answers(directive: &Directive) -> bool {
    directive.block.iter().any(|inner| match inner.name.as_str() {
        "return" => of_return(inner).is_some() || is_refusal(inner),
        "rewrite" => {
            of_whole_rewrite(inner).is_some() || of_rewrite(inner).is_some_and(|(path, _)| path == "/")
        }
        "proxy_pass" | "fastcgi_pass" => true,
        _ => false,
    })
}

/// Where an `if` sends what is not found, as files were tried before `try_files` was there.
pub(crate) fn of_missing_files(directive: &Directive) -> Option<String> {
    let ["!-e" | "!-f", "$request_filename"] = condition(directive)?[..] else { return None };
    match directive.block.as_slice() {
        [rewrite] if rewrite.name == "rewrite" => of_whole_rewrite(rewrite),
        [rewrite, last] if rewrite.name == "rewrite" && last.name == "break" => of_whole_rewrite(rewrite),
        _ => None,
    }
}

/// Whether an `if` refuses requests. What depends on a file is no guard: a switch for times of maintenance.
pub(crate) fn refuses(directive: &Directive) -> bool {
    let tests_file = condition(directive)
        .and_then(|words| words.first().copied())
        .is_some_and(|word| word.trim_start_matches('!').starts_with('-'));
    !tests_file && directive.block.iter().any(is_refusal)
}

fn is_refusal(directive: &Directive) -> bool {
    directive.name == "return" && directive.argument(0).starts_with(['4', '5'])
}

/// Whether an `if` says 404 for a missing file, as Baton does in any case.
pub(crate) fn is_for_missing_file(directive: &Directive) -> bool {
    const FILES: [&str; 3] =
        ["$request_filename", "$document_root$fastcgi_script_name", "$document_root$uri"];
    let is_404 = matches!(directive.block.as_slice(), [inner] if inner.arguments == ["404"]);
    let words = condition(directive).unwrap_or_default();
    is_404 && matches!(words[..], ["!-f" | "!-e", file] if FILES.contains(&file))
}

/// The words between the parentheses of an `if`.
pub(crate) fn condition(directive: &Directive) -> Option<Vec<&str>> {
    let words = directive.arguments.iter().map(String::as_str);
    let words: Vec<_> = words.collect();
    let (first, last) = (words.first()?, words.len() - 1);
    let mut inner: Vec<&str> = words.clone();
    *inner.first_mut()? = first.strip_prefix('(')?;
    let end = inner.get_mut(last)?;
    *end = end.strip_suffix(')')?;
    // A blank or a quote may stand beside a parenthesis. What is between them may be the empty text.
    if inner.len() > 1 && inner.last().is_some_and(|word| word.is_empty()) {
        inner.pop();
    }
    if inner.len() > 1 && inner[0].is_empty() {
        inner.remove(0);
    }
    Some(inner)
}

fn redirection(status: u64, url: &str) -> Option<Answer> {
    const SAME_HOST: [&str; 3] = ["$host", "$http_host", "$server_name"];
    let host = url.strip_prefix("https://").and_then(|rest| rest.strip_suffix("$request_uri"));
    if host.is_some_and(|host| SAME_HOST.contains(&host.trim_end_matches('/'))) {
        return Some(Answer::Https { status });
    }
    let to = location(url)?;
    let is_target = ["/", "http://", "https://", "$scheme://"].iter().any(|start| to.starts_with(start));
    (is_target || to == "$uri").then_some(Answer::Elsewhere { status, to })
}

/// Where clients are sent that shall ask for the same over TLS.
pub(crate) const SAME_OVER_TLS: &str = "https://$host$uri";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::{read, tests::Listed};

    fn directive(text: &str) -> Directive {
        read("t", text, &mut Listed(vec![])).unwrap().0.remove(0)
    }

    fn elsewhere(status: u64, to: &str) -> Option<Answer> {
        Some(Answer::Elsewhere { status, to: to.into() })
    }

    #[test]
    fn returns() {
        for (text, expected) in [
            ("return 301 https://$host$request_uri;", Some(Answer::Https { status: 301 })),
            ("return 308 https://$server_name$request_uri;", Some(Answer::Https { status: 308 })),
            (
                "return 301 https://www.example.org$request_uri;",
                elsewhere(301, "https://www.example.org$uri"),
            ),
            (
                "return 301 $scheme://www.example.org$request_uri;",
                elsewhere(301, "$scheme://www.example.org$uri"),
            ),
            ("return https://example.org/new;", elsewhere(302, "https://example.org/new")),
            ("return 302 /new;", elsewhere(302, "/new")),
            ("return 404;", Some(Answer::Fixed { status: 404, text: String::new() })),
            ("return 200 'ok\\n';", Some(Answer::Fixed { status: 200, text: "ok\n".into() })),
            ("return 444;", Some(Answer::Closed)),
            ("return 301 https://$host:8443$request_uri;", elsewhere(301, "https://$host:8443$uri")),
            (
                "return 301 https://a.example$uri$is_args$args;",
                elsewhere(301, "https://a.example$path?$query"),
            ),
            (
                "return 302 https://a.example/?to=$scheme://$http_host$request_uri;",
                elsewhere(302, "https://a.example/?to=$scheme://$host$uri"),
            ),
            ("return 301 https://a.example$request_uri/x;", None),
            ("return 301 https://$http_x/;", None),
            ("return 200 $remote_addr;", Some(Answer::Fixed { status: 200, text: "$client_ip".into() })),
            ("return 200 $pid;", None),
            ("return 204;", Some(Answer::Fixed { status: 204, text: String::new() })),
            ("return;", None),
        ] {
            assert_eq!(of_return(&directive(text)), expected, "{text}");
        }
    }

    #[test]
    fn rewrites_that_move_all_below_a_path() {
        let moved = |path: &str, status, to: &str| Some((path.to_owned(), elsewhere(status, to).unwrap()));
        for (text, expected) in [
            ("rewrite ^/old/(.*)$ /new/$1 permanent;", moved("/old", 301, "/new$rest")),
            (
                "rewrite ^/old/(.*)$ https://b.example/x/$1 redirect;",
                moved("/old", 302, "https://b.example/x$rest"),
            ),
            ("rewrite ^ https://b.example$request_uri? permanent;", moved("/", 301, "https://b.example$uri")),
            ("rewrite ^/(.*)$ https://b.example/$1 permanent;", moved("/", 301, "https://b.example$uri")),
            ("rewrite ^(.*)$ https://b.example$1 permanent;", moved("/", 301, "https://b.example$uri")),
            ("rewrite ^/old/(.*)$ /new/$1 last;", None),
            ("rewrite ^/old/(.*)$ /new/$1;", None),
            ("rewrite ^/o.d/(.*)$ /new/$1 permanent;", None),
            ("rewrite a;", None),
        ] {
            assert_eq!(of_rewrite(&directive(text)), expected, "{text}");
        }
    }

    #[test]
    fn any_rewrite() {
        let within = |to: &str| Some(Rewrite::Within { to: to.into() });
        let redirect = |status, to: &str| Some(Rewrite::Redirect { status, to: to.into() });
        for (text, expected) in [
            (r"rewrite ^/a/(\d+)$ /b?id=$1 last;", within("/b?id=$1&$query")),
            (r"rewrite ^/a/(\d+)$ /b?id=$1? last;", within("/b?id=$1")),
            (r"rewrite ^/a/(\d+)$ /b/$1;", within("/b/$1")),
            (r"rewrite ^/a/(\d+)$ /b/$1?;", within("/b/$1?")),
            (r"rewrite ^/a/(\d+)$ /b/$1 permanent;", redirect(301, "/b/$1?$query")),
            (r"rewrite ^/a/(\d+)$ /b/$1? permanent;", redirect(301, "/b/$1")),
            (r"rewrite ^/a/(\d+)$ /b?c=$1 redirect;", redirect(302, "/b?c=$1&$query")),
            (r"rewrite ^/a$ https://b.example/;", redirect(302, "https://b.example/?$query")),
            (r"rewrite ^/a$ /b$is_args$args last;", within("/b")),
            (r"rewrite ^/a$ /b break;", None),
            (r"rewrite ^/a$ /b$host last;", None),
        ] {
            assert_eq!(of_any_rewrite(&directive(text)), expected, "{text}");
        }
        let taken_away = directive("rewrite ^/api/(.*)$ /v1/$1 break;");
        for (path, expected) in
            [("/api/", Some("/v1/")), ("/api/a/", Some("/v1/a/")), ("/apis/", None), ("/b/", None)]
        {
            assert_eq!(of_prefix(&taken_away, path).as_deref(), expected, "{path}");
        }
    }

    #[test]
    fn targets_with_variables() {
        for (target, expected) in [
            ("/index.php?$args", Some("/index.php")),
            ("/index.php$is_args$args", Some("/index.php")),
            ("/index.php?q=$uri&$args", Some("/index.php?q=$path&$query")),
            ("/a/$1/$2", Some("/a/$1/$2")),
            ("/index.php$request_uri", Some("/index.php$uri")),
            ("/a$request_uri/b", None),
            ("/a?b=$request_uri", None),
            ("/a/${1}b", Some("/a/${1}b")),
            ("/a$", None),
        ] {
            assert_eq!(template(target).as_deref(), expected, "{target}");
        }
    }

    #[test]
    fn conditions_of_certbot_and_of_schemes() {
        let certbot = directive("if ($host = a.example) { return 301 https://$host$request_uri; }");
        assert_eq!(of_host(&certbot), Some(("a.example", Answer::Https { status: 301 })));
        assert!(is_for_tls(&directive("if ($scheme = http) { return 301 https://$host$request_uri; }")));
        assert!(is_for_tls(&directive(
            "if ( $scheme != \"https\" ) { rewrite ^ https://$host$request_uri? permanent; }"
        )));
        for text in [
            "if ($host ~ a) { return 301 https://$host$request_uri; }",
            "if ($scheme = http) { return 403; }",
            "if (-f x) { break; }",
            "if { }",
            "if () { }",
        ] {
            assert!(of_host(&directive(text)).is_none() && !is_for_tls(&directive(text)), "{text}");
        }
    }
}
