//! Globs and regular expressions in the `path` of a route, where they would match nothing and protect nothing.

use std::process::Command;

use crate::refused;

fn route(path: &str) -> String {
    format!("[[site]]\nroot = \"www\"\n[[site.route]]\npath = {path}\nrespond = {{ status = 403 }}\n")
}

#[test]
fn a_glob() {
    refused(
        &route("\"/private/*\""),
        r#"
error: `site.route.path` is a prefix, not a pattern
 --> baton.toml:4:8
  |
4 | path = "/private/*"
  |        ^^^^^^^^^^^^ `*` would stand for itself only
  |
  = help: write `glob = "/private/*"`
  = help: or write "/private", which holds for everything below it
  = help: a `*` in the path of a URL is written `%2A`
"#,
    );
}

#[test]
fn a_regular_expression() {
    refused(
        &route("'~* \\.(php|phtml)$'"),
        r#"
error: `site.route.path` is a prefix, not a pattern
 --> baton.toml:4:8
  |
4 | path = '~* \.(php|phtml)$'
  |        ^^^^^^^^^^^^^^^^^^^ `\` would stand for itself only
  |
  = help: write `regex = '(?i)\.(php|phtml)$'`
  = help: a `\` in the path of a URL is written `%5C`
"#,
    );
}

#[test]
fn the_ending_of_a_name() {
    refused(
        &route("\"/*.inc\""),
        r#"
error: `site.route.path` is a prefix, not a pattern
 --> baton.toml:4:8
  |
4 | path = "/*.inc"
  |        ^^^^^^^^ `*` would stand for itself only
  |
  = help: write `glob = "/*.inc"`
  = help: for files by their endings, `scripts = [".inc"]` says which an application runs
  = help: a `*` in the path of a URL is written `%2A`
"#,
    );
}

#[test]
fn what_stands_in_front_of_a_path_elsewhere() {
    refused(
        &route("\"= /exact\""),
        r#"
error: `site.route.path` is a prefix, not a pattern
 --> baton.toml:4:8
  |
4 | path = "= /exact"
  |        ^^^^^^^^^^ what stands in front of the path has no meaning here
  |
  = help: write `exact = "/exact"` for this path alone
  = help: or write "/exact", which holds for everything below it
"#,
    );
}

#[test]
fn a_path_that_no_request_has() {
    refused(
        &route("\"/a/../b\""),
        r#"
error: `site.route.path` is the path of no request
 --> baton.toml:4:8
  |
4 | path = "/a/../b"
  |        ^^^^^^^^^ expected "/b": this is how paths of requests are compared
"#,
    );
}

/// Goal: names that only look odd are no patterns.
#[test]
fn literal_names_are_accepted() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("www")).unwrap();
    for path in ["/~user", "/a(b)", "/c++", "/a.b", "/100%25", "/%2A", "/straße"] {
        std::fs::write(dir.path().join("baton.toml"), route(&format!("\"{path}\""))).unwrap();
        let mut check = Command::new(env!("CARGO_BIN_EXE_baton"));
        let output =
            check.args(["check", "-q", "-c", "baton.toml"]).current_dir(dir.path()).output().unwrap();
        assert!(output.status.success(), "{path}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn media_types_that_no_file_has() {
    refused(
        r#"[[site]]
root = "www"
cache_control = [{ types = [".css", "text/css; charset=utf-8", "*/*"], value = "no-cache" }]
"#,
        r#"
error: `site.cache_control.types` is no media type
 --> baton.toml:3:29
  |
3 | cache_control = [{ types = [".css", "text/css; charset=utf-8", "*/*"], value = "no-cache" }]
  |                             ^^^^^^ expected one such as "text/css", or all of a kind, such as "image/*"; without parameters

error: `site.cache_control.types` is no media type
 --> baton.toml:3:37
  |
3 | cache_control = [{ types = [".css", "text/css; charset=utf-8", "*/*"], value = "no-cache" }]
  |                                     ^^^^^^^^^^^^^^^^^^^^^^^^^ expected one such as "text/css", or all of a kind, such as "image/*"; without parameters

error: `site.cache_control.types` is no media type
 --> baton.toml:3:64
  |
3 | cache_control = [{ types = [".css", "text/css; charset=utf-8", "*/*"], value = "no-cache" }]
  |                                                                ^^^^^ expected one such as "text/css", or all of a kind, such as "image/*"; without parameters
"#,
    );
}

/// A pattern for files is a glob as that of a route, and refused in the same words.
#[test]
fn a_pattern_for_files_is_a_glob() {
    refused(
        r#"[[site]]
root = "www"
cache_control = [{ match = "*.{css,js}", value = "no-cache" }]
"#,
        r#"
error: `site.cache_control.match` cannot be matched
 --> baton.toml:3:28
  |
3 | cache_control = [{ match = "*.{css,js}", value = "no-cache" }]
  |                            ^^^^^^^^^^^^ a `{` that is meant is `[{]` or encoded
  |
  = help: expected a glob such as "/img/*.png", "*.php" or "/a/**"
"#,
    );
}
