//! Variables, conditions and error pages that mean nothing, or nothing that could happen.

use super::refused;

/// The messages of a route with this text, without the pictures of the source.
#[track_caller]
fn told(route: &str, expected: &[&str]) {
    let dir = tempfile::tempdir().unwrap();
    let text = format!("[[site]]\nroot = \"www\"\n\n[[site.route]]\n{route}\n");
    std::fs::create_dir(dir.path().join("www")).unwrap();
    std::fs::write(dir.path().join("names.txt"), "# none\n\n~(\n").unwrap();
    std::fs::write(dir.path().join("baton.toml"), text).unwrap();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_baton"))
        .args(["check", "-c", "baton.toml"])
        .current_dir(dir.path())
        .output()
        .unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{told}");
    for words in expected {
        assert!(told.contains(words), "no {words:?} in {told}");
    }
}

/// What nginx calls it is named; it was sent as that very text once.
#[test]
fn a_variable_of_nginx() {
    refused(
        "[[site]]\nroot = \"www\"\nheaders = { X-Real-IP = \"$remote_addr\" }\n",
        r#"
error: `$remote_addr` is no variable
 --> baton.toml:3:11
  |
3 | headers = { X-Real-IP = "$remote_addr" }
  |           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ has $remote_addr
  |
  = help: did you mean `$client_ip`?
  = help: known are $client_ip, $scheme, $host, $method, $uri, $path, $query, $request_id, $cache_status, $upstream, $upstream_status, $ssl_protocol, $ssl_client_subject, $ssl_client_verify; `$$` is a dollar
"#,
    );
}

#[test]
fn variables_that_stand_for_nothing() {
    told(
        "path = '/a'\nheaders = { X = '$client_id' }",
        &["`$client_id` is no variable", "did you mean `client_ip`?"],
    );
    told(
        "path = '/a'\nheaders = { X = '$1' }",
        &["`$1` is no group of the route", "only routes with `glob` or `regex`"],
    );
    told("regex = '^/(a)'\nheaders = { X = '$2' }", &["`$2` is no group of the route", "known here: `$1`"]);
    told(
        "path = '/a'\nredirect = { to = 'https://$server_name/$request_uri' }",
        &["`site.route.redirect.to` is not a location", "a client could choose the host"],
    );
    told(
        "path = '/a'\nrewrite = { to = '/b?u=$args' }",
        &["`$args` is no variable", "did you mean `$query`?", "known are $uri, $rest, $path, $query;"],
    );
    told(
        "path = '/a'\nrespond = { status = 200, body = '<p>$path', media_type = 'text/html' }",
        &["a browser would run what a client writes into `$path`", "text/plain"],
    );
    told("path = '/a'\nrespond = { status = 200, body = '5 $' }", &["has a `$` that begins no variable"]);
    told("path = '/a'\nheaders = { X = '5 $' }", &["has a `$` that begins no variable", "`$$` is a dollar"]);
    told(
        "path = '/a'\nproxy = { to = 'http://127.0.0.1:1', request_headers = { X = '$upstream_status' } }",
        &["`$upstream_status` is not known before there is an answer"],
    );
}

#[test]
fn conditions_that_are_none() {
    for (when, expected) in [
        ("{}", "holds for every request"),
        ("{ from = [] }", "is empty"),
        ("{ from = ['10.0.0.0/8', '!10.0.0.0/7'] }", "never holds"),
        ("{ method = 'post' }", "methods are in upper case"),
        ("{ method = false }", "cannot be a boolean"),
        ("{ header = { 'X A' = '1' } }", "no field is called so"),
        ("{ header = { X = '~(' } }", "has a bad pattern"),
        ("{ header = { X = [] } }", "is empty"),
        ("{ user_agent = { file = 'missing.txt' } }", "missing.txt: No such file"),
        ("{ user_agent = { file = 'names.txt' } }", "names.txt:3: "),
        ("{ cookies = { a = '1' } }", "did you mean `cookie`?"),
    ] {
        told(&format!("path = '/a'\nwhen = {when}"), &[expected]);
    }
    told("path = '/a'\nmethods = ['GET']\nwhen = { method = 'POST' }", &["no request that fits is taken"]);
}

#[test]
fn routes_that_others_hide() {
    let one = "path = '/a'\nrespond = { status = 204 }";
    let conditional = "path = '/a'\nwhen = { query = { x = true } }\nrespond = { status = 204 }";
    told(
        &format!("{one}\n[[site.route]]\n{conditional}"),
        &["two routes have the path /a", "would never be asked"],
    );
    told(&format!("{conditional}\n[[site.route]]\n{conditional}"), &["two routes have the path /a"]);
}

#[test]
fn answers_and_pages_that_come_to_nothing() {
    told("path = '/a'\nrespond = { status = 204, body = 'x' }", &["an answer with status 204 has no body"]);
    told("path = '/a'\nrespond = { status = 199 }", &["expected a status from 200 to 599"]);
    told("path = '/a'\nintercept = true", &["nothing to intercept"]);
    told("path = '/a'\netag = 'digest'", &["nothing to digest", "remove `etag`"]);
    told("path = '/a'\nproxy = 'http://127.0.0.1:1'\netag = 'digests'", &["did you mean", "digest"]);
    told("path = '/a'\ncluster = true\netag = 'digest'", &["a route has either `cluster` or `etag`"]);
    told(
        "path = '/a'\nrespond = { status = 204 }\netag = 'digest'",
        &["a route has either `respond` or `etag`"],
    );
    told(
        "path = '/a'\nproxy = 'http://127.0.0.1:1'\nintercept = true",
        &["neither the route nor its site has"],
    );
    told("path = '/a'\nproxy = 'http://127.0.0.1:1'\nintercept = [401]", &["401 says how to log in"]);
    told("path = '/a'\nerror_pages = { 404 = 'none.html' }", &["the page for status 404 cannot be read"]);
}
