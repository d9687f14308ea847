//! Included files, variables of the environment, durations and sizes: what they mean, and what users read when they are
//! wrong.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};

use crate::{refused, refused_in};

/// A folder with these files and a folder `www`.
fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    dir
}

fn effective(dir: &Path, environment: &[(&str, &str)]) -> Output {
    fs::create_dir_all(dir.join("www")).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_baton"));
    command.args(["config", "--effective", "-c", "baton.toml"]).current_dir(dir);
    command.envs(environment.iter().copied()).output().unwrap()
}

#[track_caller]
fn table(output: &Output) -> toml::Table {
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    String::from_utf8(output.stdout.clone()).unwrap().parse().unwrap()
}

#[track_caller]
fn refused_with(files: &[(&str, &str)], expected: &str) {
    refused_in(folder(files).path(), &["check", "-c", "baton.toml"], expected);
}

const SITE: &str = "[[site]]\nroot = \"www\"\n";

/// Files are read in the order of the list and of their names, each once; paths in them are relative to their folder.
#[test]
fn included_files_add_their_settings_and_sites() {
    let site = |name: &str| format!("[[site]]\nhosts = [\"{name}\"]\nroot = \"../www\"\n");
    let main = "include = [\"conf.d/z*.toml\", \"conf.d\", \"more/limits.toml\", \"none/../conf.d/q?.toml\"]\n\
                [limits]\nfields_max = 50\n[[site]]\nhosts = [\"first.example\"]\nroot = \"www\"\n";
    let dir = folder(&[
        ("baton.toml", &main.replace("none/../", "")),
        ("conf.d/b.toml", &site("b.example")),
        ("conf.d/a.toml", &(site("a.example") + "[media_types]\nabc = \"text/abc\"\n")),
        ("conf.d/zz.toml", &site("z.example")),
        ("conf.d/b.toml~", "no TOML"),
        ("conf.d/.#a.toml", "no TOML"),
        ("conf.d/off.toml.disabled", "no TOML"),
        ("conf.d/sub.toml/x", "no TOML"),
        ("more/limits.toml", "include = [\"deep/*.toml\"]\n[limits]\nranges_max = 3\n"),
        ("more/deep/log.toml", "[log]\naccess = \"here.log\"\n"),
    ]);
    let table = table(&effective(dir.path(), &[]));
    let hosts: Vec<_> =
        table["site"].as_array().unwrap().iter().map(|site| site["hosts"][0].as_str().unwrap()).collect();
    assert_eq!(hosts, ["first.example", "z.example", "a.example", "b.example"]);
    assert_eq!(table["limits"]["fields_max"].as_integer(), Some(50));
    assert_eq!(table["limits"]["ranges_max"].as_integer(), Some(3));
    assert_eq!(table["media_types"]["abc"].as_str(), Some("text/abc"));
    let log = table["log"]["access"].as_str().unwrap();
    assert_eq!(Path::new(log), dir.path().join("more/deep/here.log"));
}

#[test]
fn mistakes_in_included_files_have_their_place() {
    refused_with(
        &[
            ("baton.toml", &format!("include = [\"conf.d/*.toml\"]\n[limits]\nfields_max = 5\n{SITE}")),
            ("conf.d/a.toml", "[timeouts]\nhead_ms = \"1 parsec\"\n"),
            ("conf.d/b.toml", "\n\n[[site]]\nhosts = [\"b.example\"]\nroot = \"../www\"\nbrowse = \"yes\"\n"),
        ],
        r#"
error: `timeouts.head_ms` is not a duration
 --> conf.d/a.toml:2:11
  |
2 | head_ms = "1 parsec"
  |           ^^^^^^^^^^ expected numbers with one of d, h, m, s, ms, such as "1m30s"

error: `site.browse` cannot be a string
 --> conf.d/b.toml:6:10
  |
6 | browse = "yes"
  |          ^^^^^ expected true or false
"#,
    );
}

#[test]
fn a_setting_that_two_files_give() {
    refused_with(
        &[
            ("baton.toml", &format!("include = [\"a.toml\"]\n[limits]\nfields_max = 5\n{SITE}")),
            ("a.toml", "[limits]\nfields_max = 6\nranges_max = 2\n"),
        ],
        "
error: `limits.fields_max` is given twice
 --> a.toml:2:1
  |
2 | fields_max = 6
  | ^^^^^^^^^^ given here as well
  |
 ::: baton.toml:3:14
  |
3 | fields_max = 5
  |              - is there already
",
    );
}

#[test]
fn conflicts_between_files_show_both() {
    let host = "[[site]]\nhosts = [\"a.example\"]\nroot = \"www\"\n";
    refused_with(
        &[("baton.toml", &format!("include = [\"a.toml\"]\n{host}")), ("a.toml", host)],
        r#"
error: two sites are `a.example` of 127.0.0.1:8080
 --> a.toml:2:9
  |
2 | hosts = ["a.example"]
  |         ^^^^^^^^^^^^^ would never be asked
  |
 ::: baton.toml:3:9
  |
3 | hosts = ["a.example"]
  |         ------------- is asked first
  |
  = help: give them different `hosts`, or different addresses in `listen`
"#,
    );
}

#[test]
fn what_cannot_be_included() {
    let include = |what: &str| format!("include = {what}\n{SITE}");
    refused_with(
        &[
            ("baton.toml", &include("[\"none.toml\", 5, \"no/*.toml\", \"*/a.toml\", \"bad.toml\"]")),
            ("bad.toml", "a = \n"),
        ],
        r#"
error: `include` names what cannot be read
 --> baton.toml:1:12
  |
1 | include = ["none.toml", 5, "no/*.toml", "*/a.toml", "bad.toml"]
  |            ^^^^^^^^^^^ none.toml: No such file or directory (os error 2)

error: `include` names what cannot be read
 --> baton.toml:1:25
  |
1 | include = ["none.toml", 5, "no/*.toml", "*/a.toml", "bad.toml"]
  |                         ^ expected a path, or a pattern like "sites/*.toml"

error: `include` names what cannot be read
 --> baton.toml:1:28
  |
1 | include = ["none.toml", 5, "no/*.toml", "*/a.toml", "bad.toml"]
  |                            ^^^^^^^^^^^ DIR/no: No such file or directory (os error 2)

error: `include` names what cannot be read
 --> baton.toml:1:41
  |
1 | include = ["none.toml", 5, "no/*.toml", "*/a.toml", "bad.toml"]
  |                                         ^^^^^^^^^^ `*`, `?` and `[` can only be in the name of the file, not in its folder

error: this is not TOML
 --> bad.toml:1:5
  |
1 | a = 
  |     ^ string values must be quoted, expected literal string
"#,
    );
    refused_with(
        &[("baton.toml", &include("\"a.toml\""))],
        r#"
error: `include` cannot be a string
 --> baton.toml:1:11
  |
1 | include = "a.toml"
  |           ^^^^^^^^ expected an array of paths and patterns: ["sites/*.toml"]
"#,
    );
    let output = effective(folder(&[("baton.toml", &format!("inclde = []\n{SITE}"))]).path(), &[]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("did you mean `include`?"));
}

#[test]
fn files_that_include_each_other() {
    refused_with(
        &[
            ("baton.toml", &format!("include = [\"a.toml\"]\n{SITE}")),
            ("a.toml", "include = [\"sub/b.toml\"]\n"),
            ("sub/b.toml", "include = [\"../a.toml\"]\n"),
        ],
        r#"
error: `include` names what cannot be read
 --> sub/b.toml:1:12
  |
1 | include = ["../a.toml"]
  |            ^^^^^^^^^^^ sub/../a.toml: a file cannot include itself
"#,
    );
    // By another name, too.
    let dir = folder(&[("baton.toml", &format!("include = [\"sites\"]\n{SITE}"))]);
    fs::create_dir(dir.path().join("sites")).unwrap();
    symlink("../baton.toml", dir.path().join("sites/link.toml")).unwrap();
    refused_in(
        dir.path(),
        &["check", "-c", "baton.toml"],
        r#"
error: `include` names what cannot be read
 --> baton.toml:1:12
  |
1 | include = ["sites"]
  |            ^^^^^^^ sites/link.toml: a file cannot include itself
"#,
    );
    // Not in a circle, and still too deep.
    let mut files = vec![("baton.toml".to_owned(), format!("include = [\"0.toml\"]\n{SITE}"))];
    files.extend((0..9).map(|at| (format!("{at}.toml"), format!("include = [\"{}.toml\"]\n", at + 1))));
    let files: Vec<_> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    refused_with(
        &files,
        r#"
error: `include` names what cannot be read
 --> 6.toml:1:12
  |
1 | include = ["7.toml"]
  |            ^^^^^^^^ files may include each other 8 deep
"#,
    );
}

#[test]
fn variables_are_put_into_strings() {
    let text = "include = [\"{env.WHERE}/*.toml\"]\n[server]\nprocesses = \"{env.WORKERS:2}\"\ncpu_affinity = \"{env.PIN}\"\n\
                drain_timeout_ms = \"{env.DRAIN}\"\n[limits]\nhead_bytes_max = \"{env.HEAD}\"\nfields_max = \"{env.FIELDS}\"\n\
                [[site]]\nroot = \"{env.ROOT:www}\"\nlisten = \":{env.PORT}\"\nheaders = { X-A = \"{env.HEAD}/{env.NONE:a:b}\" }\n";
    let dir = folder(&[("baton.toml", text), ("more/a.toml", "[log]\naccess = \"{env.LOG}\"\n")]);
    let variables = [
        ("WHERE", "more"),
        ("PIN", "false"),
        ("DRAIN", "1m"),
        ("HEAD", "16 KiB"),
        ("FIELDS", "77"),
        ("PORT", "8099"),
        ("LOG", "x.log"),
    ];
    let table = table(&effective(dir.path(), &variables));
    assert_eq!(table["server"]["processes"].as_integer(), Some(2));
    assert_eq!(table["server"]["cpu_affinity"].as_bool(), Some(false));
    assert_eq!(table["server"]["drain_timeout_ms"].as_integer(), Some(60_000));
    assert_eq!(table["limits"]["head_bytes_max"].as_str(), Some("16 KiB"));
    assert_eq!(table["limits"]["fields_max"].as_integer(), Some(77));
    assert_eq!(table["site"][0]["headers"]["X-A"].as_str(), Some("16 KiB/a:b"));
    let log = table["log"]["access"].as_str().unwrap();
    assert_eq!(Path::new(log), dir.path().join("more/x.log"));
    assert!(table["site"][0]["listen"].to_string().contains("8099"));
}

#[test]
fn a_variable_that_is_not_set() {
    refused(
        "[[site]]\nroot = \"www\"\nhosts = [\"www.{env.BATON_TEST_NOT_SET}\"]\nlisten = \":{env.8080\"\n",
        r#"
error: the variable `BATON_TEST_NOT_SET` is not set
 --> baton.toml:3:15
  |
3 | hosts = ["www.{env.BATON_TEST_NOT_SET}"]
  |               ^^^^^^^^^^^^^^^^^^^^^^^^ has no default
  |
  = help: `{env.BATON_TEST_NOT_SET:VALUE}` gives it a value where it is unset

error: a variable has no end
 --> baton.toml:4:12
  |
4 | listen = ":{env.8080"
  |            ^^^^^^^^^ expected `}` behind it
"#,
    );
}

#[test]
fn durations_and_sizes() {
    let text = format!(
        "[timeouts]\nhead_ms = \"1m30s\"\nidle_ms = 5000\nsend_ms = \"2.5s\"\n[tls]\nsession_s = \"2h\"\n\
         [limits]\nbody_bytes_max = \"1.5 GiB\"\n{SITE}"
    );
    let dir = folder(&[("baton.toml", &text)]);
    let table = table(&effective(dir.path(), &[]));
    let timeouts = ["head_ms", "idle_ms", "send_ms"].map(|key| table["timeouts"][key].as_integer().unwrap());
    assert_eq!(timeouts, [90_000, 5_000, 2_500]);
    assert_eq!(table["tls"]["session_s"].as_integer(), Some(7_200));
    assert_eq!(table["limits"]["body_bytes_max"].as_str(), Some("1536 MiB"));

    refused(
        &format!(
            "[timeouts]\nhead_ms = \"10\"\nbody_ms = \"5 min\"\nsend_ms = \"25h\"\n[tls]\nsession_s = \"1500ms\"\n\
             [limits]\nbody_bytes_max = \"64m\"\n{SITE}"
        ),
        r#"
error: `timeouts.head_ms` is not a duration
 --> baton.toml:2:11
  |
2 | head_ms = "10"
  |           ^^^^ expected numbers with one of d, h, m, s, ms, such as "1m30s"
  |
  = help: did you mean `10s`?

error: `timeouts.body_ms` is not a duration
 --> baton.toml:3:11
  |
3 | body_ms = "5 min"
  |           ^^^^^^^ expected numbers with one of d, h, m, s, ms, such as "1m30s"
  |
  = help: did you mean `5m`?

error: `timeouts.send_ms` is out of range
 --> baton.toml:4:11
  |
4 | send_ms = "25h"
  |           ^^^^^ expected milliseconds as an integer, or a duration like "1m30s", from "1ms" to "1d"

error: `tls.session_s` is too fine
 --> baton.toml:6:13
  |
6 | session_s = "1500ms"
  |             ^^^^^^^^ expected a multiple of 1s

error: `limits.body_bytes_max` is not a size
 --> baton.toml:8:18
  |
8 | body_bytes_max = "64m"
  |                  ^^^^^ expected a number and one of TiB, GiB, MiB, KiB, GB, MB, kB, B
  |
  = help: did you mean `64 MiB`?
"#,
    );
}
