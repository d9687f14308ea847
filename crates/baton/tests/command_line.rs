//! The command from outside: output, environment variables, exit codes.

#[path = "command_line/conversions.rs"]
mod conversions;
#[path = "../../../fuzz/src/converted.rs"]
pub mod converted;
#[path = "../../../fuzz/src/nginx.rs"]
pub mod nginx;

use std::path::Path;
use std::process::{Command, Output};

use baton_engine::ArchitectureName;

fn baton(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_baton"));
    command.args(arguments);
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("BATON_")) {
        command.env_remove(name);
    }
    command
}

#[track_caller]
fn printed(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn check(dir: &Path, text: &str) -> Output {
    std::fs::write(dir.join("baton.toml"), text).unwrap();
    baton(&["check", "-c", "baton.toml"]).current_dir(dir).output().unwrap()
}

#[test]
fn the_default_configuration_can_be_used_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let output = check(dir.path(), &printed(&mut baton(&["config", "--default"])));
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(told.starts_with("baton.toml is fine\n  127.0.0.1:8080: "), "{told}");
}

/// Goal: check lists origins, and warns of what would surprise.
#[test]
fn origins_are_told_by_check() {
    let dir = tempfile::tempdir().unwrap();
    let output = check(
        dir.path(),
        r#"
            [[site]]
            [[site.route]]
            path = "/one"
            proxy = { to = "https://127.0.0.1:1", tls = { verify = false }, eject = { failures = 9 } }
            [[site.route]]
            path = "/two"
            proxy = { to = ["http://127.0.0.1:1", { to = "http://no-such-host.invalid", weight = 2 }], policy = "maglev" }
            [[site.route]]
            path = "/three"
            proxy = "http://app.localhost:1"
        "#,
    );
    let told = String::from_utf8(output.stdout).unwrap();
    for line in [
        "    /one: the origin https://127.0.0.1:1",
        "      warning: `eject` has no effect: one origin alone gets every request, whatever it does",
        "      warning: the certificate of https://127.0.0.1:1 is not verified: a machine in between can read and change everything",
        "    /two: 2 origins by maglev: http://127.0.0.1:1, http://no-such-host.invalid (weight 2)",
        "    /three: the origin http://app.localhost:1",
        "      warning: no-such-host.invalid has no address now: until it has one, requests for http://no-such-host.invalid fail",
    ] {
        assert!(told.lines().any(|one| one == line), "no line {line:?} in\n{told}");
    }
    assert_eq!(told.matches("warning:").count(), 3, "{told}");
}

/// Goal: check says which scripts no route of a site runs or sends, below each of its paths, and no others.
#[test]
fn scripts_that_are_not_sent_are_told_by_check() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["www/a.php", "www/sub/deep/b.php", "www/raw/c.php", "www/sub/run/d.php", "www/e.txt"] {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "<?php").unwrap();
    }
    let scripts = "fastcgi = { to = 'unix:a.sock', transport = 'unix', scripts = ['.php'] }";
    let routes = format!(
        "[[site.route]]\npath = '/'\n{scripts}\n[[site.route]]\npath = '/sub'\n\
         [[site.route]]\npath = '/sub/run'\n{scripts}\n[[site.route]]\npath = '/raw'\nscript_sources = true\n"
    );
    let output = check(dir.path(), &format!("[[site]]\nroot = 'www'\n{routes}"));
    let told = String::from_utf8(output.stdout).unwrap().replace(dir.path().to_str().unwrap(), "DIR");
    assert_eq!(
        told,
        "baton.toml is fine\n  127.0.0.1:8080: DIR/www, 4 routes, on 127.0.0.1:8080\n    scripts below /sub are not \
         sent, such as DIR/www/sub/deep/b.php: no application runs them; `script_sources = true` sends them as they are\n"
    );
    let output = check(dir.path(), "[[site]]\nroot = 'www/sub'\n");
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(told.contains("scripts below / are not sent"), "{told}");
    let output = check(dir.path(), "[[site]]\nroot = 'www/sub'\nscript_sources = true\n");
    assert!(!String::from_utf8(output.stdout).unwrap().contains("script"), "all are sent");
}

/// Goal: an operator learns where a star stays within a folder. Method: the same files for a rule with one star and with two.
#[test]
fn files_that_a_cache_rule_leaves_out_are_told_by_check() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path().join("assets/fonts")).unwrap();
    std::fs::write(dir.path().join("assets/fonts/a.woff2"), "").unwrap();
    let told = |pattern: &str| {
        let rule = format!("{{ match = '{pattern}', value = 'max-age=9' }}");
        let output = check(dir.path(), &format!("[[site]]\nroot = '.'\ncache_control = [{rule}]\n"));
        String::from_utf8(output.stdout).unwrap()
    };
    let line = "    warning: `/assets/*` in `cache_control` is about the files of one folder, not about /assets/fonts/a.woff2: \
                `/assets/**` is about folders below, too\n";
    assert!(told("/assets/*").contains(line), "{}", told("/assets/*"));
    assert!(!told("/assets/**").contains("warning"), "{}", told("/assets/**"));
}

/// Goal: check says who shares a cache, and that it wins over the hand-over of sockets. Method: one, several, no cache.
#[test]
fn check_tells_who_shares_the_cache() {
    let dir = tempfile::tempdir().unwrap();
    let told = |server: &str, route: &str| {
        let route = format!("[[site.route]]\npath = '/a'\nfastcgi = {{ to = 'unix:a.sock' }}\n{route}");
        let output = check(dir.path(), &format!("{server}\n[[site]]\nroot = '.'\n{route}"));
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let one = told("", "cache = true");
    assert!(one.contains("  shared cache: 256 MiB, one for all clients\n"), "{one}");
    assert!(
        one.contains("; no `passfd`: the shared cache has to see what the application answers; "),
        "{one}"
    );
    let three = told("[server]\nprocesses = 3", "cache = true");
    assert!(three.contains("  shared cache: 256 MiB in each of 3 processes, 768 MiB together: "), "{three}");
    let none = told("[server]\nprocesses = 3", "");
    assert!(
        !none.contains("shared cache") && none.contains("; no `passfd`: Baton has not started it"),
        "{none}"
    );
}

/// What `--effective` prints does not depend on where it is read.
#[test]
fn the_effective_configuration_is_its_own_effective_configuration() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(
        dir.path().join("b.toml"),
        "[[site]]\nroot = '.'\n[[site.route]]\npath = '/x'\nbrowse = true\n",
    )
    .unwrap();
    let first = printed(baton(&["config", "--effective", "-c", "b.toml"]).current_dir(&dir));
    let elsewhere = tempfile::tempdir().unwrap();
    std::fs::write(elsewhere.path().join("c.toml"), &first).unwrap();
    let second = printed(baton(&["config", "--effective", "-c", "c.toml"]).current_dir(&elsewhere));
    assert_eq!(first, second);
    assert_eq!(first.matches("browse = true").count(), 1, "{first}");
}

#[test]
fn flags_have_environment_variables_and_precedence() {
    let mut command = baton(&["serve", "--print-config", "--workers=3"]);
    command
        .env("BATON_ROOT", "/usr")
        .env("BATON_LISTEN", "127.0.0.1:81,127.0.0.1:82")
        .env("BATON_BROWSE", "true");
    command.env("BATON_WORKERS", "2").env("BATON_HIDDEN", "false");
    let config = printed(&mut command);
    for line in [
        "root = \"/usr\"",
        "listen = [\"127.0.0.1:81\", \"127.0.0.1:82\"]",
        "browse = true",
        "hidden = false",
        "processes = 3",
    ] {
        assert!(config.lines().any(|other| other == line), "no line {line:?} in\n{config}");
    }
}

/// What says how requests are logged wants them logged.
#[test]
fn a_format_of_the_log_is_a_log() {
    for (flags, expected) in [
        (&[][..], Some("access = \"off\"")),
        (&["--log-format=json"], Some("access = \"stdout\"")),
        (&["--log-fields=status,target", "--log-format=json"], Some("access = \"stdout\"")),
        (&["--log-format=json", "--access-log=/a"], Some("access = \"/a\"")),
        (&["--log-format=json", "--set=log.access=off"], Some("access = \"off\"")),
    ] {
        let config = printed(&mut baton(&[&["serve", "--print-config", "/usr"], flags].concat()));
        assert_eq!(config.lines().find(|line| line.starts_with("access = ")), expected, "{flags:?}");
    }
}

/// An address can be given whole or in two parts, each as a flag or in the environment. Flags of either form have
/// precedence.
#[test]
fn flags_for_the_address_count_more_than_the_environment() {
    let serve = |environment: &[(&str, &str)], flags: &[&str]| {
        let mut command = baton(&[&["serve", "--print-config", "/usr"], flags].concat());
        command.envs(environment.iter().copied());
        command
    };
    let (listen, port, bind) =
        (("BATON_LISTEN", "10.0.0.1:81,82"), ("BATON_PORT", "83"), ("BATON_BIND", "::1"));
    for (environment, flags, expected) in [
        (&[listen][..], &[][..], r#"["10.0.0.1:81", "127.0.0.1:82"]"#),
        (&[listen], &["-l", "84"], r#"["127.0.0.1:84"]"#),
        (&[listen], &["-p", "84"], r#"["127.0.0.1:84"]"#),
        (&[listen], &["--bind", "*"], r#"["0.0.0.0:8080", "[::]:8080"]"#),
        (&[listen, bind], &["-p", "84"], r#"["[::1]:84"]"#),
        (&[port], &[], r#"["127.0.0.1:83"]"#),
        (&[port], &["-p", "84"], r#"["127.0.0.1:84"]"#),
        (&[port, bind], &[], r#"["[::1]:83"]"#),
        (&[port, bind], &["-l", ":84"], r#"["0.0.0.0:84", "[::]:84"]"#),
    ] {
        let config = printed(&mut serve(environment, flags));
        let addresses = config.lines().find_map(|line| line.strip_prefix("listen = [")).expect("a site");
        assert_eq!(format!("[{addresses}"), expected, "{environment:?} {flags:?}");
    }
    // Neither of these says which one is meant.
    for (environment, flags) in [(&[][..], &["-l", "1", "-p", "2"][..]), (&[listen, port], &[])] {
        let output = serve(environment, flags).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{environment:?} {flags:?}");
        assert!(String::from_utf8(output.stderr).unwrap().contains("--listen ADDRESS says the same as"));
    }
}

#[test]
fn an_unknown_flag_is_a_usage_error() {
    for arguments in
        [&["serve", "--brwose"][..], &[], &["config"], &["explain"], &["serve", "--architecture=spedd"]]
    {
        let output = baton(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}

#[test]
fn a_server_that_does_not_run_cannot_be_asked() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("none.sock");
    let output = baton(&["ctl", "status", "--control", socket.to_str().unwrap()]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains(&format!("no server listens on {}", socket.display())), "{told}");
}

#[test]
fn every_sub_command_has_a_manual_page() {
    let dir = tempfile::tempdir().unwrap();
    printed(&mut baton(&["man", "--dir", dir.path().to_str().unwrap()]));
    let help = printed(&mut baton(&["help"]));
    let commands =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    // Descriptions go on further to the right.
    let names = commands
        .filter_map(|line| line.strip_prefix("  ")?.split(' ').next())
        .filter(|name| !name.is_empty());
    let mut count = 0;
    for name in names.filter(|name| *name != "help") {
        let page = std::fs::read_to_string(dir.path().join(format!("baton-{name}.8"))).unwrap();
        assert!(
            page.contains(&format!("baton {name}").replace('-', "\\-").replacen(' ', "\\-", 1)),
            "{page}"
        );
        count += 1;
    }
    assert!(count >= 9, "{help}");
    // Pages refer to existing pages.
    for page in std::fs::read_dir(dir.path()).unwrap() {
        let text = std::fs::read_to_string(page.unwrap().path()).unwrap().replace("\\-", "-");
        let before = text.match_indices("(8)").map(|(at, _)| &text[..at]);
        for name in
            before.filter_map(|text| text.rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '-').next())
        {
            assert!(
                !name.starts_with("baton") || dir.path().join(format!("{name}.8")).exists(),
                "{name} in {text}"
            );
        }
    }
    let examples = std::fs::read_to_string(dir.path().join("baton-sim.8")).unwrap();
    assert!(examples.contains(".SH EXAMPLES\n.nf\n"), "{examples}");
    let settings = std::fs::read_to_string(dir.path().join("baton.toml.5")).unwrap();
    assert!(settings.contains("drain_timeout_ms"));
    assert_eq!(settings, printed(&mut baton(&["man", "baton.toml"])));
    assert_eq!(baton(&["man", "nonsense"]).output().unwrap().status.code(), Some(1));
}

#[test]
fn completions_know_the_architectures() {
    for shell in ["bash", "zsh", "fish"] {
        let script = printed(&mut baton(&["completions", shell]));
        assert!(script.contains("shared-symped"), "{shell}");
    }
}

#[test]
fn architectures_are_listed_with_what_they_are() {
    let list = printed(&mut baton(&["architectures"]));
    let names: Vec<_> = list.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let known = ArchitectureName::ALL.map(ArchitectureName::name);
    assert_eq!(names, known);
    assert!(list.lines().all(|line| line.split_whitespace().count() > 3), "{list}");
}

/// Goal: an authority makes keys of single members, and says what is wrong with a call.
#[test]
fn an_authority_makes_keys_of_members() {
    let dir = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let output = baton(&["cluster"]).args(arguments).current_dir(dir.path()).output().unwrap();
        (output.status.success(), String::from_utf8(output.stderr).unwrap())
    };
    let key = |name: &str, file: &str| run(&["key", "--authority", "authority.pem", "--member", name, file]);
    let (_, missing) = key("node-a", "a.pem");
    assert!(missing.contains("baton cluster authority authority.pem"), "{missing}");
    assert!(run(&["authority", "authority.pem"]).0);
    assert!(key("node-a", "a.pem").0);
    let text = std::fs::read_to_string(dir.path().join("a.pem")).unwrap();
    assert_eq!((text.matches("BEGIN CERTIFICATE").count(), text.matches("PRIVATE KEY").count()), (2, 2));
    let (_, wrong) = key("node a", "b.pem");
    assert!(wrong.contains("no name of a member"), "{wrong}");
    let (_, alone) = run(&["key", "--member", "node-a"]);
    assert!(alone.contains("--authority"), "{alone}");
    // A member's file is no authority.
    let (_, other) = run(&["key", "--authority", "a.pem", "--member", "b", "b.pem"]);
    assert!(other.contains("a.pem is no local authority"), "{other}");
}

/// Goal: the key of a cluster is its owner's, and is not lost to a second call.
#[test]
fn the_key_of_a_cluster_is_made_once() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    let make = || baton(&["cluster", "key", "cluster.pem"]).current_dir(dir.path()).output().unwrap();
    assert!(make().status.success());
    let path = dir.path().join("cluster.pem");
    let key = std::fs::read_to_string(&path).unwrap();
    assert!(key.contains("BEGIN CERTIFICATE") && key.contains("BEGIN PRIVATE KEY"));
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let again = make();
    assert_eq!(again.status.code(), Some(1));
    assert!(String::from_utf8(again.stderr).unwrap().contains("remedy: "));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), key);
    // By way of the shell: only the owner may read that file, too.
    let shell = dir.path().join("shell.pem");
    let file = std::fs::File::create(&shell).unwrap();
    assert!(baton(&["cluster", "key"]).stdout(file).status().unwrap().success());
    assert_eq!(std::fs::metadata(&shell).unwrap().permissions().mode() & 0o777, 0o600);
}
