//! Each kind of lookup result, and the right file.

use std::fs::{self, Permissions};
use std::mem::MaybeUninit;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::sync::Arc;

use baton_content::{Blocking, CacheSettings, Found, NeedsDisk, Symlinks, Tree, TreeConfig};
use baton_http::{Coding, FieldRules, VariableText};
use baton_pattern::Pattern;
use rustix::fs::{CWD, FileType, Mode, inotify};
use rustix::io::Errno;

use crate::site::{Site, query};

#[test]
fn files_and_directories() {
    let site = Site::new();
    site.write("index.html", b"home");
    site.write("docs/index.html", b"docs");
    site.write("docs/a b.txt", b"blank");
    site.write("bare/file", b"x");
    assert_eq!(site.content("/"), b"home");
    assert_eq!(site.content("/docs/"), b"docs");
    assert_eq!(site.content("/docs/a%20b.txt"), b"blank");
    assert_eq!(site.content("/bare/../docs/./index.html"), b"docs");
    assert!(matches!(site.find("/docs"), Found::AddSlash));
    for nothing in
        ["/nothing", "/bare/", "/docs/nothing/", "/docs/index.html/", "/docs/index.html/x", "/nothing/"]
    {
        assert!(matches!(site.find(nothing), Found::Missing), "{nothing}");
    }
    let too_long = format!("/{}", "n".repeat(300));
    assert!(matches!(site.find(&too_long), Found::Missing));
    for refused in ["/../x", "/a%2fb", "/a%00b", "/%zz"] {
        assert!(matches!(site.find(refused), Found::Refused(_)), "{refused}");
    }
}

/// A script is never served as a file by any spelling, and a deleted script is missing.
#[test]
fn scripts_are_not_files() {
    let site = Site::configured(CacheSettings::default(), |config| {
        config.scripts = vec![".php".into()];
        config.index = vec!["index.php".into(), "index.html".into()];
        config.fallback = Some("/front.php".into());
        config.precompressed = vec![Coding::Gzip];
    });
    site.write("index.php", b"<?php");
    site.write("index.php.gz", b"compressed");
    site.write("a/x.php", b"<?php");
    site.write("plain/index.html", b"plain");
    site.write("front.php", b"<?php");
    let script = |path: &str| match site.find(path) {
        Found::Script(script) => String::from_utf8(script.to_vec()).unwrap(),
        Found::Fallback(script) => format!("instead: {}", String::from_utf8_lossy(&script)),
        other => panic!("{path}: {other:?}"),
    };
    for _ in 0..2 {
        assert_eq!(script("/"), "index.php");
        assert_eq!(script("/a/x%2Ephp"), "a/x.php");
        assert_eq!(script("/front.php"), "front.php");
        for path in
            ["/nowhere/at/all", "/index.php/x", "/a%2Fx.php", "/plain%2Findex.html", "/a%0A", "/.hidden"]
        {
            assert_eq!(script(path), "instead: front.php");
        }
        for path in ["/a%00", "/a%2F..%2Findex.php", "/..", "/%zz"] {
            assert!(matches!(site.find(path), Found::Refused(_)), "{path}");
        }
        assert_eq!(site.content("/plain/"), b"plain");
    }
    fs::remove_file(site.path("a/x.php")).unwrap();
    site.wait(2);
    assert_eq!(script("/a/x.php"), "instead: front.php");
}

#[test]
fn indexes_are_tried_in_order() {
    let site = Site::configured(CacheSettings::default(), |config| {
        config.index = vec!["default.htm".to_owned(), "index.html".to_owned()];
    });
    site.write("both/index.html", b"second");
    site.write("both/default.htm", b"first");
    site.write("one/index.html", b"second");
    // An index that is no file is none.
    site.write("odd/default.htm/x", b"");
    site.write("odd/index.html", b"second");
    assert_eq!(site.content("/both/"), b"first");
    assert_eq!(site.content("/one/"), b"second");
    assert_eq!(site.content("/odd/"), b"second");
}

#[test]
fn hidden_names_are_missing_unless_wanted() {
    for hidden in [false, true] {
        let site = Site::configured(CacheSettings::default(), |config| config.hidden = hidden);
        site.write(".secret", b"s");
        site.write(".git/config", b"s");
        site.write("a/.b/c", b"s");
        site.write("a/.well-known/c", b"s");
        site.write(".well-known/security.txt", b"contact");
        assert_eq!(site.content("/.well-known/security.txt"), b"contact");
        for path in ["/.secret", "/%2esecret", "/.git/config", "/a/.b/c", "/a/.well-known/c"] {
            let found = site.find(path);
            assert_eq!(matches!(found, Found::File(_)), hidden, "{path}: {found:?}");
            assert_eq!(matches!(found, Found::Missing), !hidden, "{path}: {found:?}");
        }
    }
}

#[test]
fn a_prefix_is_stripped_on_the_border_of_a_name() {
    let site = Site::configured(CacheSettings::default(), |config| {
        config.strip_prefix = "/static/v1/".to_owned();
    });
    site.write("app.js", b"app");
    site.write("index.html", b"home");
    assert_eq!(site.content("/static/v1/app.js"), b"app");
    assert_eq!(site.content("/static/v1/"), b"home");
    assert!(matches!(site.find("/static/v1"), Found::AddSlash));
    assert!(matches!(site.find("/static/v10/app.js"), Found::Missing));
    assert!(matches!(site.find("/app.js"), Found::Missing));
}

#[test]
fn the_fallback_answers_for_what_is_missing_only() {
    let site = Site::configured(CacheSettings::default(), |config| {
        config.fallback = Some("/app.html".to_owned());
    });
    site.write("dir/x", b"x");
    assert!(matches!(site.find("/route"), Found::Missing), "there is no fallback yet");
    site.wait(1);
    site.write("app.html", b"app");
    for path in ["/route", "/deep/er/route", "/dir/", "/.hidden"] {
        assert_eq!(site.content(path), b"app", "{path}");
    }
    assert_eq!(site.content("/dir/x"), b"x");
    assert!(matches!(site.find("/dir"), Found::AddSlash));
    assert!(matches!(site.find("/%00"), Found::Refused(_)));
}

/// A FIFO that is opened for reading lets a writer go on that waits for a reader; a device may do anything.
#[test]
fn special_files_are_not_opened() {
    let site = Site::configured(CacheSettings::default(), |config| config.symlinks = Symlinks::Anywhere);
    rustix::fs::mknodat(CWD, site.path("fifo"), FileType::Fifo, Mode::from_raw_mode(0o644), 0).unwrap();
    let _listener = UnixListener::bind(site.path("socket")).unwrap();
    symlink("/dev/zero", site.path("device")).unwrap();
    site.write("file", b"x");
    // inotify reports each open of a file in the folder, but not lookups of attributes.
    let watch = inotify::init(inotify::CreateFlags::NONBLOCK).unwrap();
    inotify::add_watch(&watch, site.path(""), inotify::WatchFlags::OPEN).unwrap();
    for path in ["/fifo", "/socket", "/device"] {
        assert!(matches!(site.find(path), Found::Forbidden), "{path}");
    }
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut events = inotify::Reader::new(&watch, &mut buffer);
    assert_eq!(events.next().unwrap_err(), Errno::AGAIN, "something was opened");
    site.file("/file");
    assert_eq!(events.next().unwrap().file_name(), Some(c"file"));
}

#[test]
fn what_may_not_be_read_is_forbidden() {
    let site = Site::new();
    site.write("closed.txt", b"x");
    site.write("closed/file.txt", b"x");
    site.write("open.txt", b"open");
    for name in ["closed.txt", "closed"] {
        fs::set_permissions(site.path(name), Permissions::from_mode(0o000)).unwrap();
    }
    let (cache, tree, now) = (&site.cache, &site.tree, site.now());
    std::thread::scope(|scope| {
        scope.spawn(move || {
            if rustix::process::geteuid().is_root() {
                // Root reads everything. Linux keeps identities per thread: this one becomes `nobody`.
                let nobody = rustix::process::Uid::from_raw(65_534);
                rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
            }
            let find = |path| cache.find(tree, &query(path), &now, Blocking::Allowed).unwrap();
            for _ in 0..2 {
                assert!(matches!(find("/closed.txt"), Found::Forbidden));
                assert!(matches!(find("/closed/file.txt"), Found::Forbidden));
                assert!(matches!(find("/open.txt"), Found::File(_)));
            }
        });
    });
}

#[test]
fn a_precompressed_copy_is_chosen_by_what_the_client_likes_best() {
    let site = Site::configured(CacheSettings::default(), |config| {
        config.precompressed = vec![Coding::Brotli, Coding::Gzip];
    });
    site.write("page.html", b"plain");
    site.write("page.html.br", b"brotli");
    site.write("page.html.gz", b"gzip");
    site.write("page.html.zst", b"zstd");
    site.write("lonely.html", b"plain");
    for (accepted, content, coding) in [
        ("br, gzip", &b"brotli"[..], Some("br")),
        ("gzip", b"gzip", Some("gzip")),
        ("br;q=0.5, gzip", b"gzip", Some("gzip")),
        ("zstd", b"plain", None),
        ("br;q=0", b"plain", None),
        ("identity, br;q=0.5", b"plain", None),
        ("identity;q=0, zstd", b"plain", None),
    ] {
        let stored = site.find_coded("/page.html", accepted);
        assert_eq!(crate::site::bytes_of(&stored.body(0, stored.len())), content, "{accepted}");
        assert_eq!(stored.media_type(), "text/html; charset=utf-8");
        let fields = String::from_utf8_lossy(stored.fields());
        assert!(fields.contains("Vary: Accept-Encoding\r\n"), "{fields}");
        match coding {
            Some(coding) => assert!(fields.contains(&format!("Content-Encoding: {coding}\r\n")), "{fields}"),
            None => assert!(!fields.contains("Content-Encoding"), "{fields}"),
        }
    }
    let lonely = site.find_coded("/lonely.html", "br, gzip");
    assert!(String::from_utf8_lossy(lonely.fields()).contains("Vary: Accept-Encoding\r\n"));
    let plain = site.find_coded("/page.html", "identity");
    assert_ne!(plain.etag(), site.find_coded("/page.html", "br").etag());
}

#[test]
fn a_copy_that_appears_later_is_used() {
    let site = Site::configured(CacheSettings::default(), |config| config.precompressed = vec![Coding::Gzip]);
    site.write("a.css", b"plain");
    assert_eq!(site.find_coded("/a.css", "gzip").len(), 5);
    site.write("a.css.gz", b"z");
    site.wait(1);
    assert_eq!(site.find_coded("/a.css", "gzip").len(), 1);
}

#[test]
fn media_types_rules_and_headers_become_fields() {
    let site = Site::configured(CacheSettings::default(), |config| {
        let rule = |pattern: &str, value: &str| baton_content::CacheRule {
            pattern: Pattern::glob(pattern).unwrap(),
            types: Vec::new(),
            value: value.to_owned(),
        };
        config.cache_control = vec![
            rule("/assets/*.txt", "no-store"),
            rule("/assets/**", "max-age=31536000, immutable"),
            rule("*", "no-cache"),
        ];
        config.headers.set = vec![("X-Content-Type-Options".to_owned(), "nosniff".into())];
    });
    site.write("assets/app.js", b"js");
    site.write("assets/deep/er/a.txt", b"text");
    site.write("index.html", b"home");
    let lines = |path: &str| String::from_utf8(site.file(path).fields().to_vec()).unwrap();
    let asset = lines("/assets/app.js");
    assert!(asset.contains("Cache-Control: max-age=31536000, immutable\r\n"), "{asset}");
    assert!(asset.contains("X-Content-Type-Options: nosniff\r\n"), "{asset}");
    assert!(!asset.contains("Vary"), "{asset}");
    // A star does not cross a slash: only two do.
    let deep = lines("/assets/deep/er/a.txt");
    assert!(deep.contains("Cache-Control: max-age=31536000, immutable\r\n"), "{deep}");
    let home = lines("/");
    assert!(home.contains("Cache-Control: no-cache\r\n"), "{home}");
    assert!(home.contains("Content-Type: text/html; charset=utf-8\r\n"), "{home}");
}

#[test]
fn rules_are_by_media_type_as_well() {
    let site = Site::configured(CacheSettings::default(), |config| {
        let rule = |pattern: &str, types: &[&str], value: &str| baton_content::CacheRule {
            pattern: Pattern::glob(pattern).unwrap(),
            types: types.iter().map(|&media_type| media_type.to_owned()).collect(),
            value: value.to_owned(),
        };
        config.cache_control = vec![
            rule("/new/*", &["image/*"], "new image"),
            rule("*", &["text/css", "image/*"], "asset"),
            rule("*", &["text/html"], "page"),
        ];
        config.precompressed = vec![Coding::Gzip];
    });
    for (path, value) in [
        ("/a.css", "asset"),
        ("/a.png", "asset"),
        ("/new/a.png", "new image"),
        ("/new/a.css", "asset"),
        ("/a.html", "page"),
        ("/a.js", ""),
        ("/a.unknown", ""),
    ] {
        site.write(&path[1..], b"x");
        let fields = String::from_utf8(site.file(path).fields().to_vec()).unwrap();
        let told = fields.lines().find_map(|line| line.strip_prefix("Cache-Control: "));
        assert_eq!(told.unwrap_or_default(), value, "{path}");
    }
    // A packed copy has the type of what is packed.
    site.write("b.css", b"x");
    site.write("b.css.gz", b"z");
    let fields = site.find_coded("/b.css", "gzip").fields().to_vec();
    assert!(String::from_utf8(fields).unwrap().contains("Cache-Control: asset\r\n"));
}

/// Of a file's own fields, only `Cache-Control` is the configuration's to change.
#[test]
fn a_rule_for_the_path_gives_way_to_what_is_set_and_not_to_a_default() {
    let cached = |change: fn(&mut FieldRules)| {
        let site = Site::configured(CacheSettings::default(), |config| {
            let (pattern, value) = (Pattern::glob("*.js").unwrap(), "by rule".into());
            let rule = baton_content::CacheRule { pattern, types: Vec::new(), value };
            config.cache_control = vec![rule];
            change(&mut config.headers);
        });
        ["a.js", "a.txt"].map(|name| {
            site.write(name, b"x");
            let fields = String::from_utf8(site.file(&format!("/{name}")).fields().to_vec()).unwrap();
            let lines = fields.lines().filter_map(|line| line.strip_prefix("Cache-Control: "));
            lines.collect::<Vec<_>>().join(", ")
        })
    };
    assert_eq!(cached(|_| ()), ["by rule", ""]);
    assert_eq!(cached(|rules| rules.set = by_header()), ["by header", "by header"]);
    assert_eq!(cached(|rules| rules.add = by_header()), ["by rule, by header", "by header"]);
    assert_eq!(cached(|rules| rules.default = by_header()), ["by rule", "by header"]);
    assert_eq!(cached(|rules| rules.remove = vec!["cache-control".into()]), ["", ""]);
}

fn by_header() -> Vec<(String, VariableText)> {
    vec![("Cache-Control".to_owned(), "by header".into())]
}

#[test]
fn a_tree_says_why_it_cannot_be_served() {
    let open = |config: TreeConfig| Tree::open(config).unwrap_err().to_string();
    let folder = tempfile::tempdir().unwrap();
    let missing = open(TreeConfig { root: folder.path().join("none"), ..TreeConfig::default() });
    assert!(missing.contains("none: ") && missing.contains("there is no such folder"), "{missing}");
    fs::write(folder.path().join("file"), b"").unwrap();
    let file = open(TreeConfig { root: folder.path().join("file"), ..TreeConfig::default() });
    assert!(file.contains("a folder is needed"), "{file}");
    for (name, value) in [("X", "a\r\nSet-Cookie: b"), ("X Y", "a")] {
        let default = vec![(name.to_owned(), value.into())];
        let headers = FieldRules { default, ..FieldRules::default() };
        let field = open(TreeConfig { root: folder.path().to_owned(), headers, ..TreeConfig::default() });
        assert!(field.contains("cannot be a header field"), "{field}");
    }
}

#[test]
fn trees_have_different_ids() {
    let folder = tempfile::tempdir().unwrap();
    let tree = || {
        Arc::new(Tree::open(TreeConfig { root: folder.path().to_owned(), ..TreeConfig::default() }).unwrap())
    };
    assert_ne!(tree().id(), tree().id());
}

/// A name that the kernel has not cached needs the disk; a cached one does not. (`disk.rs` tests the pages.)
#[test]
fn a_call_that_must_not_wait_says_so_only_if_it_would() {
    let site = Site::new();
    site.write("dir/file.txt", b"x");
    assert!(matches!(site.ask("/dir/none", Blocking::Never), Err(NeedsDisk)));
    assert!(matches!(site.ask("/dir/none", Blocking::Allowed), Ok(Found::Missing)));
    assert!(matches!(site.ask("/dir/none", Blocking::Never), Ok(Found::Missing)));
    site.file("/dir/file.txt");
    site.wait(1);
    assert!(matches!(site.ask("/dir/file.txt", Blocking::Never), Ok(Found::File(_))));
    assert_eq!((site.stats().needs_disk, site.stats().revalidations), (1, 1));
}
