//! Mistakes that `baton check` reports.

use std::process::Command;

#[test]
fn requests_that_are_rewritten_in_a_loop() {
    let rewrite = |place: &str, to: &str| format!("[[site.route]]\n{place}\nrewrite = {{ to = '{to}' }}\n");
    for (routes, loops) in [
        (vec![("path = '/a'", "/a/x")], 1),
        (vec![("path = '/'", "/x$path")], 1),
        (vec![("exact = '/a'", "/a?x=$query")], 1),
        (vec![("path = '/a'", "/b$rest"), ("path = '/b'", "/a$rest")], 2),
        (vec![("regex = '^/a'", "/ab")], 1),
        (vec![("path = '/a'", "/b$rest"), ("path = '/b'", "/c$rest")], 0),
        (vec![("exact = '/a'", "/a/b")], 0),
        (vec![("regex = '^/a/(.*)$'", "/a/$1")], 0),
    ] {
        let told = told(&routes.iter().map(|(place, to)| rewrite(place, to)).collect::<String>());
        let found = told.lines().filter(|line| *line == "error: requests are rewritten in a loop").count();
        assert_eq!((found, told.matches("error: ").count()), (loops, loops), "{routes:?}:\n{told}");
    }
}

#[test]
fn a_template_that_cannot_be_filled() {
    for (route, mistake) in [
        ("path = '/a'\nrewrite = { to = '/$1' }", "`$1` is no group of the route"),
        ("regex = '^/a'\nrewrite = { to = '/$1' }", "`$1` is no group of the route"),
        ("regex = '^/(?<a>.*)'\nredirect = { to = '/$b' }", "`$b` is no variable"),
        ("path = '/a'\nrewrite = { to = '/b?h=$host' }", "`$host` has no meaning here"),
        (
            "path = '/a'\nredirect = { to = '/b?u=$upstream' }",
            "`$upstream` is not known before there is an answer",
        ),
        ("glob = '/*/x'\nredirect = { to = '/$2' }", "`$2` is no group of the route"),
        ("regex = '^/(.*)'\nredirect = { to = 'https://$1/' }", "`site.route.redirect.to` is not a location"),
        (
            "regex = '^/(.*)'\nredirect = { to = 'https://a.example$1' }",
            "`site.route.redirect.to` is not a location",
        ),
        (
            "path = '/a'\nrewrite = { to = 'https://a.example/' }",
            "`site.route.rewrite.to` is not a target within the site",
        ),
        ("path = '/a'\nrewrite = { to = '/a$' }", "`site.route.rewrite.to` is not a target within the site"),
        (
            "path = '/a'\nrewrite = { to = '/b' }\nredirect = { to = '/c' }",
            "a route has either `rewrite` or `redirect`",
        ),
        ("path = '/a'\nrewrite = { to = '/b' }\nbrowse = true", "a route has either `rewrite` or `browse`"),
    ] {
        let told = told(&format!("[[site.route]]\n{route}\n"));
        assert!(told.starts_with(&format!("error: {mistake}\n")), "{route}:\n{told}");
        assert_eq!(told.matches("error: ").count(), 1, "{told}");
    }
}

/// What `baton check` says of these routes of a site.
fn told(routes: &str) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("www")).expect("a document root");
    let file = folder.path().join("baton.toml");
    std::fs::write(&file, format!("[[site]]\nroot = \"www\"\n{routes}")).expect("a configuration");
    let output = Command::new(env!("CARGO_BIN_EXE_baton"))
        .args(["check", "-c", "baton.toml"])
        .current_dir(folder.path())
        .output()
        .expect("baton runs");
    let told = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.success(), told.is_empty(), "{told}");
    told
}

fn routes(places: &[&str]) -> String {
    let route = |place: &&str| format!("[[site.route]]\n{place}\nrespond = {{ status = 403 }}\n");
    places.iter().map(route).collect()
}

#[test]
fn a_route_that_no_request_gets_to() {
    for (places, mistakes) in [
        (&["exact = '/a'", "exact = '/a'"][..], &["two routes have the exact path /a"][..]),
        (&["glob = '*.a'", "glob = '*.a'"], &["two routes have the glob *.a"]),
        (&["regex = 'a$'", "glob = 'a$'", "regex = 'a$'"], &["two routes have the regex a$"]),
        (&["path = '/a'", "path = '/a/'"], &["two routes have the path /a/"]),
        (&["glob = '/a'", "exact = '/a'"], &["the glob /a is an exact path of another route"]),
        (&["regex = '^/'", "glob = '/a*'"], &["regex ^/ matches every path"]),
        (&["path = '/a'", "glob = '/**'"], &["glob /** matches every path"]),
        (&["glob = '**'", "regex = '.*'", "path = '/a'"], &["glob ** matches every path"; 2]),
        (&["exact = '/a'", "path = '/a'", "glob = '/a*'", "regex = '^/a'"], &[]),
        (&["glob = '/a*'", "regex = '.*'", "exact = '/a'"], &[]),
        (&["regex = '.*'", "path = '/a'\nbefore_patterns = true"], &[]),
        (&["path = '/a'\nbefore_patterns = true"], &["a route before no pattern"]),
    ] {
        let told = told(&routes(places));
        let errors: Vec<_> = told.lines().filter_map(|line| line.strip_prefix("error: ")).collect();
        assert_eq!(errors, mistakes, "{places:?}:\n{told}");
    }
}

#[test]
fn a_route_that_is_nowhere_or_in_two_places() {
    for (place, mistake) in [
        ("path = '/a'\nexact = '/a'", "a route has either `path` or `exact`"),
        ("glob = '/a'\nregex = 'a'", "a route has either `glob` or `regex`"),
        ("", "`site.route.path` is missing"),
        ("regex = '('", "`site.route.regex` cannot be matched"),
        ("regex = '(?!a)'", "`site.route.regex` cannot be matched"),
        ("regex = '^admin'", "`site.route.regex` cannot be matched"),
        ("glob = '/a//b'", "`site.route.glob` cannot be matched"),
        ("glob = '/[a'", "`site.route.glob` cannot be matched"),
        ("exact = '/a/../b'", "`site.route.exact` is the path of no request"),
        ("exact = 'a'", "`site.route.exact` does not begin with `/`"),
        ("glob = '*.a'\nbefore_patterns = true", "`before_patterns` is for routes with `path`"),
    ] {
        let told = told(&routes(&[place]));
        assert!(told.starts_with(&format!("error: {mistake}\n")), "{place}:\n{told}");
        assert_eq!(told.matches("error: ").count(), 1, "{told}");
    }
    let told = told("[[site.route]]\nexact = '/a'\nroot = '/usr'\nstrip_prefix = true\n");
    assert!(told.contains("`strip_prefix` is for routes with `path`"), "{told}");
}

#[test]
fn an_internal_route_that_nothing_leads_to() {
    let internal = "[[site.route]]\npath = '/a'\ninternal = true\nrespond = { status = 200 }\n";
    let told_alone = told(internal);
    assert!(told_alone.starts_with("error: a route that nothing leads to\n"), "{told_alone}");
    assert!(told_alone.contains("baton.toml:5:"), "{told_alone}");
    for leading in
        ["rewrite = { to = '/a' }", "try_files = ['$path', '/a']", "fastcgi = { to = 'unix:/run/app.sock' }"]
    {
        let both = told(&format!("{internal}[[site.route]]\npath = '/b'\n{leading}\n"));
        assert!(!both.contains("nothing leads to"), "{leading}: {both}");
    }
}
