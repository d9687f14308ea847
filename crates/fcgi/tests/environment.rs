//! Goal: applications get the variables that nginx would send, each once, and none that a client could slip in.
//! Method: whole blocks against lists written by hand.

use baton_fcgi::Broken;
use baton_fcgi::environment::{Script, Variables, environment_of, push_fields};
use baton_fcgi::params::{self, Params};
use baton_fcgi::scgi;
use std::ffi::OsString;

fn pairs(block: &[u8]) -> Vec<(String, String)> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    Params::new(block).map(Result::unwrap).map(|(name, value)| (text(name), text(value))).collect()
}

fn owned(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn fields(fields: &[(&str, &str)]) -> Vec<(String, String)> {
    let mut block = Vec::new();
    push_fields(&mut block, fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())));
    pairs(&block)
}

fn variables<'a>(script: Script<'a>) -> Variables<'a> {
    Variables {
        method: b"POST",
        request_uri: b"/a%20b.php/info?q=1",
        query_string: b"q=1",
        script,
        document_root: b"/srv/www",
        script_filename: None,
        content_length: Some(12),
        protocol: "HTTP/1.1",
        https: true,
        server_software: b"baton/1",
        server_name: b"example.org",
        host: Some((b"example.org", Some(8443))),
        remote: Some("[::ffff:192.0.2.1]:5678".parse().unwrap()),
        local: Some("[2001:db8::1]:8443".parse().unwrap()),
    }
}

#[test]
fn a_php_script_gets_what_nginx_sends() {
    let mut block = Vec::new();
    variables(Script::with_extension(b"/a b.php/info", b".php").unwrap()).push(&mut block);
    let expected = owned(&[
        ("GATEWAY_INTERFACE", "CGI/1.1"),
        ("SERVER_SOFTWARE", "baton/1"),
        ("SERVER_PROTOCOL", "HTTP/1.1"),
        ("REQUEST_METHOD", "POST"),
        ("REQUEST_URI", "/a%20b.php/info?q=1"),
        ("QUERY_STRING", "q=1"),
        ("DOCUMENT_ROOT", "/srv/www"),
        ("DOCUMENT_URI", "/a b.php/info"),
        ("SCRIPT_NAME", "/a b.php"),
        ("SCRIPT_FILENAME", "/srv/www/a b.php"),
        ("PATH_INFO", "/info"),
        ("PATH_TRANSLATED", "/srv/www/info"),
        ("CONTENT_LENGTH", "12"),
        ("REQUEST_SCHEME", "https"),
        ("HTTPS", "on"),
        ("SERVER_NAME", "example.org"),
        ("SERVER_ADDR", "2001:db8::1"),
        ("SERVER_PORT", "8443"),
        ("REMOTE_ADDR", "192.0.2.1"),
        ("REMOTE_PORT", "5678"),
        ("REDIRECT_STATUS", "200"),
        ("HTTP_HOST", "example.org:8443"),
    ]);
    assert_eq!(pairs(&block), expected);
}

#[test]
fn addresses_are_told_as_they_are_written() {
    for (address, expected) in [
        ("0.0.0.0:0", ["0.0.0.0", "0"]),
        ("255.255.255.255:65535", ["255.255.255.255", "65535"]),
        ("10.0.200.9:80", ["10.0.200.9", "80"]),
        ("[::ffff:192.0.2.1]:80", ["192.0.2.1", "80"]),
        ("[2001:db8::1]:443", ["2001:db8::1", "443"]),
    ] {
        let mut block = Vec::new();
        let script = Script::below(b"/app", b"/app/").unwrap();
        Variables { remote: Some(address.parse().unwrap()), host: Some((b"::1", None)), ..variables(script) }
            .push(&mut block);
        for (name, expected) in
            ["REMOTE_ADDR", "REMOTE_PORT", "HTTP_HOST"].iter().zip(expected.iter().chain(&["::1"]))
        {
            let pairs = pairs(&block);
            let told = pairs.iter().find(|(told, _)| told == name).map(|(_, value)| value.as_str());
            assert_eq!(told, Some(*expected), "{address}: {name}");
        }
    }
}

#[test]
fn what_a_request_does_not_have_is_empty_or_absent() {
    let mut block = Vec::new();
    let script = Script::below(b"/app", b"/app/").unwrap();
    Variables {
        script_filename: Some(b"/srv/app.cgi"),
        content_length: None,
        protocol: "HTTP/1.0",
        https: false,
        host: None,
        remote: None,
        ..variables(script)
    }
    .push(&mut block);
    let pairs = pairs(&block);
    let value = |wanted: &str| pairs.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str());
    for (name, expected) in [
        ("SCRIPT_NAME", Some("/app")),
        ("SCRIPT_FILENAME", Some("/srv/app.cgi")),
        ("DOCUMENT_URI", Some("/app")),
        ("PATH_INFO", Some("")),
        ("PATH_TRANSLATED", None),
        ("CONTENT_LENGTH", Some("")),
        ("SERVER_PROTOCOL", Some("HTTP/1.0")),
        ("REQUEST_SCHEME", Some("http")),
        ("HTTPS", None),
        ("HTTP_HOST", None),
        ("REMOTE_ADDR", Some("unix:")),
        ("REMOTE_PORT", Some("")),
    ] {
        assert_eq!(value(name), expected, "{name}");
    }
}

#[test]
fn paths_are_split_behind_the_first_script() {
    for (path, expected) in [
        ("/a.php", Some(("/a.php", ""))),
        ("/a.php/", Some(("/a.php", "/"))),
        ("/d/a.php/b/c", Some(("/d/a.php", "/b/c"))),
        ("/a.php/b.php", Some(("/a.php", "/b.php"))),
        ("/d.php.d/a.php", Some(("/d.php.d/a.php", ""))),
        ("/a.phpx/b", None),
        ("/a.PHP", None),
        ("/.php", None),
        ("/d/.php/x", None),
        ("/", None),
        ("", None),
    ] {
        let split = Script::with_extension(path.as_bytes(), b".php");
        let expected = expected
            .map(|(name, path_info)| Script { name: name.as_bytes(), path_info: path_info.as_bytes() });
        assert_eq!(split, expected, "{path}");
    }
}

#[test]
fn paths_are_split_behind_a_prefix() {
    for (path, prefix, expected) in [
        ("/app/x/y", "/app/", Some(("/app", "/x/y"))),
        ("/app/x", "/app", Some(("/app", "/x"))),
        ("/app/", "/app/", Some(("/app", "/"))),
        ("/app", "/app/", Some(("/app", ""))),
        ("/x", "/", Some(("", "/x"))),
        ("//app//x", "/app", Some(("/app", "//x"))),
        ("app/x", "/app/", Some(("/app", "/x"))),
        ("/a//b/x", "/a/b", Some(("/a/b", "/x"))),
        ("//x", "/", Some(("", "//x"))),
        ("/apple", "/app", None),
        ("/ap", "/app", None),
    ] {
        let split = Script::below(path.as_bytes(), prefix.as_bytes());
        let expected = expected
            .map(|(name, path_info)| Script { name: name.as_bytes(), path_info: path_info.as_bytes() });
        assert_eq!(split, expected, "{path} below {prefix}");
    }
}

#[test]
fn fields_become_variables_each_name_once() {
    let got = fields(&[
        ("Accept", "text/html"),
        ("content-type", "a/b"),
        ("cookie", "a=1"),
        ("X-Forwarded-For", "192.0.2.1"),
        ("accept", "text/plain"),
        ("Cookie", "b=2"),
        ("COOKIE", "c=3"),
        ("Authorization", "Basic eDp5"),
        ("Empty", ""),
    ]);
    let expected = owned(&[
        ("HTTP_ACCEPT", "text/html, text/plain"),
        ("CONTENT_TYPE", "a/b"),
        ("HTTP_COOKIE", "a=1; b=2; c=3"),
        ("HTTP_X_FORWARDED_FOR", "192.0.2.1"),
        ("HTTP_AUTHORIZATION", "Basic eDp5"),
        ("HTTP_EMPTY", ""),
    ]);
    assert_eq!(got, expected);
}

/// Where the caller lets names with an underscore pass, no variable comes twice.
#[test]
fn names_of_one_variable_are_one_field() {
    let got = fields(&[("X-Real-IP", "1"), ("x_real_ip", "2"), ("X_Own", "3"), ("Transfer_Encoding", "4")]);
    assert_eq!(got, owned(&[("HTTP_X_REAL_IP", "1, 2"), ("HTTP_X_OWN", "3")]));
}

#[test]
fn fields_that_could_deceive_are_left_out() {
    let got = fields(&[
        ("Proxy", "http://attacker/"),
        ("Host", "other"),
        ("Content-Length", "5"),
        ("Transfer-Encoding", "chunked"),
        ("X.Y", "1"),
        ("Content_Length", "7"),
        ("", "nameless"),
        ("Proxy-Authorization", "told"),
    ]);
    assert_eq!(got, owned(&[("HTTP_PROXY_AUTHORIZATION", "told")]));
}

fn block(pairs: &[(&[u8], &[u8])]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in pairs {
        params::push(&mut block, name, value);
    }
    block
}

#[test]
fn a_cgi_program_gets_an_environment() {
    let environment =
        environment_of(&block(&[(b"A", b"b=c"), (b"CONTENT_LENGTH", b""), (b"D", b"")])).unwrap();
    let expected =
        [("A", "b=c"), ("D", "")].map(|(name, value)| (OsString::from(name), OsString::from(value)));
    assert_eq!(environment, expected);
    assert_eq!(environment_of(&block(&[(b"CONTENT_LENGTH", b"0")])).unwrap().len(), 1);
    for (name, value) in [(&b""[..], &b"x"[..]), (b"A=B", b"c"), (b"A\0B", b"c"), (b"A", b"b\0c")] {
        assert_eq!(environment_of(&block(&[(name, value)])), Err(Broken::Params));
    }
    assert_eq!(environment_of(b"\x01"), Err(Broken::Params));
}

#[test]
fn scgi_begins_with_the_length_of_the_body() {
    // The example of the specification, section 4.
    let params = block(&[
        (b"REQUEST_METHOD", b"POST"),
        (b"CONTENT_LENGTH", b"ignored"),
        (b"REQUEST_URI", b"/deepthought"),
        (b"SCGI", b"2"),
    ]);
    let mut out = b"before".to_vec();
    scgi::push_request(&mut out, &params, 27).unwrap();
    let expected = "before70:CONTENT_LENGTH|27|SCGI|1|REQUEST_METHOD|POST|REQUEST_URI|/deepthought|,";
    assert_eq!(String::from_utf8(out).unwrap().replace('\0', "|"), expected);

    for bad in [&b"\x01"[..], &block(&[(b"A", b"b\0c")]), &block(&[(b"A\0", b"")])] {
        let mut out = Vec::new();
        assert_eq!(scgi::push_request(&mut out, bad, 0), Err(Broken::Params));
        assert!(out.is_empty());
    }
}
