//! Where `return`, `rewrite` and `if` send clients, as far as Baton's routes can say so.

use crate::tree::Directive;
use crate::values::is_constant;

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

/// What a `return` says; `None`: it has variables that Baton does not know. `is_https`: what `$scheme` stands for, if that
/// is known.
pub(crate) fn of_return(directive: &Directive, is_https: Option<bool>) -> Option<Answer> {
    let (status, text) = match directive.arguments.as_slice() {
        [url] if url.parse::<u64>().is_err() => return redirection(302, url, is_https),
        [status] => (status.parse().ok()?, ""),
        [status, text] => (status.parse().ok()?, text.as_str()),
        _ => return None,
    };
    match status {
        301 | 302 | 303 | 307 | 308 => redirection(status, text, is_https),
        444 => Some(Answer::Closed),
        200..=599 if is_constant(text) => {
            let text = if matches!(status, 204 | 205 | 304) { "" } else { text };
            Some(Answer::Fixed { status, text: text.to_owned() })
        }
        _ => None,
    }
}

/// What a `rewrite` with `redirect` or `permanent` says that moves everything below a path, and the path.
pub(crate) fn of_rewrite(directive: &Directive, is_https: Option<bool>) -> Option<(String, Answer)> {
    let [pattern, target, flags @ ..] = directive.arguments.as_slice() else { return None };
    let status = match flags {
        [flag] if flag == "permanent" => 301,
        [flag] if flag == "redirect" => 302,
        [] if ["http://", "https://", "$scheme://"].iter().any(|start| target.starts_with(start)) => 302,
        _ => return None,
    };
    let everything = ["^", "^/", "^.*$", "^.*", ".*", "^(.*)$", "^/(.*)$", "^(.*)", "^/(.*)"];
    if everything.contains(&pattern.as_str()) {
        let target = target.strip_suffix('?').unwrap_or(target);
        // `$1` begins with the slash if the pattern does not name it.
        let slash = if pattern.starts_with("^/(") { "/$1" } else { "$1" };
        let target = target.strip_suffix(slash).map(|start| format!("{start}$request_uri"));
        let target = target.unwrap_or_else(|| directive.argument(1).trim_end_matches('?').to_owned());
        return Some(("/".into(), redirection(status, &target, is_https)?));
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
    let (mut rest, mut out) = (target, String::new());
    while let Some((before, behind)) = rest.split_once('$') {
        out.push_str(before);
        let (known, written) = KNOWN.iter().find(|(known, _)| behind.starts_with(known))?;
        rest = &behind[known.len()..];
        match *written {
            // A group.
            "" => out.extend(["$", known]),
            // A query that is there anyway if the target has none.
            "?" => {}
            "$uri" if !rest.is_empty() || out.contains('?') => return None,
            "$query"
                if matches!(out.strip_suffix('?'), Some(path) if !path.contains('?')) && rest.is_empty() =>
            {
                out.pop();
            }
            written => out.push_str(written),
        }
    }
    out.push_str(rest);
    Some(out)
}

/// Variables of nginx, without their `$`, and those of Baton.
const KNOWN: [(&str, &str); 15] = [
    ("is_args$args", "?"),
    ("is_args$query_string", "?"),
    ("args", "$query"),
    ("query_string", "$query"),
    ("uri", "$path"),
    ("request_uri", "$uri"),
    ("1", ""),
    ("2", ""),
    ("3", ""),
    ("4", ""),
    ("5", ""),
    ("6", ""),
    ("7", ""),
    ("8", ""),
    ("9", ""),
];

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
    let to = template(target)?;
    let is_url = ["http://", "https://"].iter().any(|scheme| to.starts_with(scheme));
    let has_query = to.contains('?');
    match flags {
        [flag] if flag == "permanent" => Some(Rewrite::Redirect { status: 301, to }),
        [flag] if flag == "redirect" => Some(Rewrite::Redirect { status: 302, to }),
        [] if is_url => Some(Rewrite::Redirect { status: 302, to }),
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

/// The part in front of `$1` of a `rewrite` that takes the path of its location away, before the request goes on to an origin.
pub(crate) fn of_prefix<'t>(directive: &'t Directive, path: &str) -> Option<&'t str> {
    let [pattern, target, flag] = directive.arguments.as_slice() else { return None };
    let behind = pattern.strip_prefix('^')?.strip_prefix(path.trim_end_matches('/'))?;
    let is_all = ["/(.*)$", "/(.*)", "/?(.*)$", "/?(.*)"].contains(&behind);
    let start = target.strip_suffix("$1").filter(|start| is_constant(start) && start.ends_with('/'))?;
    (is_all && flag == "break").then_some(start)
}

/// What an `if` says that sends requests for one host elsewhere, as certbot writes it, and the host.
pub(crate) fn of_host(directive: &Directive) -> Option<(&str, Answer)> {
    let [variable, "=", host] = condition(directive)?[..] else { return None };
    let [inner] = directive.block.as_slice() else { return None };
    if !matches!(variable, "$host" | "$http_host") || !is_constant(host) || inner.name != "return" {
        return None;
    }
    Some((host, of_return(inner, None)?))
}

/// What an `if` says that sends requests for all hosts but one elsewhere, and this host.
pub(crate) fn of_other_hosts(directive: &Directive) -> Option<(&str, Answer)> {
    let [variable, "!=", host] = condition(directive)?[..] else { return None };
    let [inner] = directive.block.as_slice() else { return None };
    if !matches!(variable, "$host" | "$http_host") || !is_constant(host) || inner.name != "return" {
        return None;
    }
    Some((host, of_return(inner, None)?))
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
        [inner] if inner.name == "return" => of_return(inner, None),
        [inner] if inner.name == "rewrite" => of_rewrite(inner, None).map(|(_, answer)| answer),
        _ => None,
    };
    on_clear && matches!(sent, Some(Answer::Https { .. }))
}

/// The methods that a block lets through, by `limit_except` or an `if`; `None`: it is about something else.
pub(crate) fn methods(directive: &Directive) -> Option<Vec<String>> {
    let is_refusal = match directive.block.as_slice() {
        [inner] if inner.name == "deny" => inner.argument(0) == "all",
        [inner] if inner.name == "return" => inner.argument(0).starts_with('4'),
        _ => false,
    };
    let methods = match directive.name.as_str() {
        "limit_except" => directive.arguments.clone(),
        _ => {
            let ["$request_method", "!~" | "!~*", pattern] = condition(directive)?[..] else { return None };
            let methods = pattern.strip_prefix("^(")?.strip_suffix(")$")?;
            methods.split('|').map(str::to_owned).collect()
        }
    };
    let is_plain =
        |method: &String| !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_uppercase());
    (is_refusal && methods.iter().all(is_plain)).then_some(methods)
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

/// Whether an `if` refuses requests.
pub(crate) fn refuses(directive: &Directive) -> bool {
    directive.block.iter().any(|inner| {
        inner.name == "deny" || inner.name == "return" && inner.argument(0).starts_with(['4', '5'])
    })
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
    // A blank or a quote may stand beside a parenthesis.
    if inner.len() > 3 {
        inner.retain(|word| !word.is_empty());
    }
    Some(inner)
}

fn redirection(status: u64, url: &str, is_https: Option<bool>) -> Option<Answer> {
    const SAME_HOST: [&str; 5] = ["$host", "$http_host", "$server_name", "${host}", "${server_name}"];
    const WHOLE: [&str; 2] = ["$request_uri", "${request_uri}"];
    let whole = WHOLE.iter().find_map(|variable| url.strip_suffix(variable));
    if let Some(host) = whole.and_then(|start| start.strip_prefix("https://"))
        && SAME_HOST.contains(&host.trim_end_matches('/'))
    {
        return Some(Answer::Https { status });
    }
    let start = whole.unwrap_or(url);
    let start = match (start.strip_prefix("$scheme://"), is_https) {
        (Some(rest), Some(true)) => format!("https://{rest}"),
        (Some(rest), Some(false)) => format!("http://{rest}"),
        (Some(_), None) => return None,
        (None, _) => start.to_owned(),
    };
    if !is_constant(&start) {
        return None;
    }
    let to = if whole.is_some() { format!("{}$uri", start.trim_end_matches('/')) } else { start };
    let is_target = to.starts_with('/') || to.starts_with("http://") || to.starts_with("https://");
    (is_target || to == "$uri").then_some(Answer::Elsewhere { status, to })
}

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
                elsewhere(301, "https://www.example.org$uri"),
            ),
            ("return https://example.org/new;", elsewhere(302, "https://example.org/new")),
            ("return 302 /new;", elsewhere(302, "/new")),
            ("return 404;", Some(Answer::Fixed { status: 404, text: String::new() })),
            ("return 200 'ok\\n';", Some(Answer::Fixed { status: 200, text: "ok\n".into() })),
            ("return 444;", Some(Answer::Closed)),
            ("return 301 https://$host:8443$request_uri;", None),
            ("return 301 https://example.org$uri;", None),
            ("return 200 $remote_addr;", None),
            ("return 204;", Some(Answer::Fixed { status: 204, text: String::new() })),
            ("return;", None),
        ] {
            assert_eq!(of_return(&directive(text), Some(true)), expected, "{text}");
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
            assert_eq!(of_rewrite(&directive(text), None), expected, "{text}");
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
            (r"rewrite ^/a/(\d+)$ /b/$1 permanent;", redirect(301, "/b/$1")),
            (r"rewrite ^/a$ https://b.example/;", redirect(302, "https://b.example/")),
            (r"rewrite ^/a$ /b$is_args$args last;", within("/b")),
            (r"rewrite ^/a$ /b break;", None),
            (r"rewrite ^/a$ /b$host last;", None),
        ] {
            assert_eq!(of_any_rewrite(&directive(text)), expected, "{text}");
        }
        let taken_away = directive("rewrite ^/api/(.*)$ /v1/$1 break;");
        assert_eq!((of_prefix(&taken_away, "/api/"), of_prefix(&taken_away, "/b/")), (Some("/v1/"), None));
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
