//! `baton serve [DIR]`: a folder, now. Every flag becomes the setting of the same meaning.

use baton_config::libraries::preload;
use baton_config::{Node, OWN_EXECUTABLE, RawConfig, Value, parse_value, words_of};
use baton_content::Symlinks;
use clap::builder::{BoolishValueParser, PossibleValuesParser};
use clap::{Args, ValueHint};
use toml::Spanned;

use super::command_line::{CommandLine, array, table};
use super::listening::Listening;
use super::php::Php;
use super::server_flags::ServerFlags;

/// Serve a folder
///
/// Without anything else: the current folder, on http://127.0.0.1:8080.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Folder to serve [default: the current one]
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath, env = "BATON_ROOT")]
    dir: Option<String>,

    /// The same as DIR
    #[arg(short, long, visible_alias = "root", value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "dir")]
    directory: Option<String>,

    #[command(flatten)]
    pub(super) listening: Listening,

    /// File that stands for its folder, the first that exists; may be repeated [default: index.html]
    #[arg(long, value_name = "NAME", env = "BATON_INDEX", value_delimiter = ',', help_heading = FILES)]
    index: Vec<String>,

    /// List folders that have no index file
    #[arg(long, env = "BATON_BROWSE", value_parser = BoolishValueParser::new(), help_heading = FILES)]
    browse: bool,

    /// Answer with FILE where nothing is found: for single-page applications [default FILE: index.html]
    #[arg(long, value_name = "FILE", env = "BATON_SPA", num_args = 0..=1, require_equals = true,
          default_missing_value = "index.html", help_heading = FILES)]
    spa: Option<String>,

    /// Serve names that begin with a dot
    #[arg(long, env = "BATON_HIDDEN", value_parser = BoolishValueParser::new(), help_heading = FILES)]
    hidden: bool,

    /// Send scripts that no application runs (.php, .phtml) as they are, source code and all
    #[arg(long, env = "BATON_SCRIPT_SOURCES", value_parser = BoolishValueParser::new(), help_heading = FILES)]
    script_sources: bool,

    /// Where symbolic links may lead [default: beneath]
    #[arg(long, value_name = "POLICY", env = "BATON_SYMLINKS",
          value_parser = PossibleValuesParser::new(words_of::<Symlinks>()), help_heading = FILES)]
    symlinks: Option<String>,

    /// Do not look for .br, .zst and .gz copies beside files
    #[arg(long, env = "BATON_NO_PRECOMPRESSED", value_parser = BoolishValueParser::new(), help_heading = FILES)]
    no_precompressed: bool,

    /// Send everything as it is: by default, text and the like are compressed on the fly for clients that accept it
    #[arg(long, env = "BATON_NO_COMPRESS", value_parser = BoolishValueParser::new(), help_heading = FILES)]
    no_compress: bool,

    /// Cache-Control of all files, or of those that match GLOB; may be repeated, the first that matches counts
    #[arg(long, value_name = "[GLOB:]VALUE", env = "BATON_CACHE_CONTROL", help_heading = FILES)]
    cache_control: Vec<String>,

    /// Body of an error, such as 404=404.html; may be repeated
    #[arg(long, value_name = "STATUS=FILE", env = "BATON_ERROR_PAGE", value_parser = parse_error_page, help_heading = FILES)]
    error_page: Vec<(String, String)>,

    /// Run files whose names end in .php: by php-fpm, which is started unless it runs already
    #[arg(long, env = "BATON_PHP", value_parser = BoolishValueParser::new(), help_heading = APPLICATIONS)]
    php: bool,

    /// Give all requests below PATH to a FastCGI application, such as /app=unix:/run/app.sock; further keys of
    /// `fastcgi` may follow: ,transport=passfd; may be repeated
    #[arg(long, value_name = "PATH=ADDRESS", env = "BATON_FASTCGI", value_parser = parse_application, help_heading = APPLICATIONS)]
    fastcgi: Vec<Mounted>,

    /// Give all requests below PATH to an SCGI application, written as for --fastcgi
    #[arg(long, value_name = "PATH=ADDRESS", env = "BATON_SCGI", value_parser = parse_application, help_heading = APPLICATIONS)]
    scgi: Vec<Mounted>,

    /// Give all requests below PATH to the HTTP server at URL, such as /api=http://127.0.0.1:3000; with a path in the URL,
    /// that takes the place of PATH; further keys of `proxy` may follow: ,host=origin; may be repeated
    #[arg(long, value_name = "PATH=URL", env = "BATON_PROXY", value_parser = parse_proxy, help_heading = APPLICATIONS)]
    proxy: Vec<Mounted>,

    #[command(flatten)]
    pub(super) server: ServerFlags,
}

const FILES: &str = "Files";
const APPLICATIONS: &str = "Applications";

impl Serve {
    /// The flags as a configuration; relative paths are relative to the current folder.
    ///
    /// # Errors
    /// The current folder is gone, there is no php-fpm, or a self-signed certificate cannot be kept.
    pub(super) fn raw(&self) -> std::io::Result<RawConfig> {
        let mut line = CommandLine::new("baton serve");
        let dir = self.dir.as_ref().or(self.directory.as_ref()).map_or(".", String::as_str);
        let root = Spanned::new(line.word(dir), Value::String(dir.to_owned()));
        line.set_site("root", root);
        self.listening.add(&mut line).map_err(std::io::Error::other)?;
        self.add_files(&mut line);
        if self.php {
            self.add_php(&mut line, dir)?;
        }
        self.add_applications(&mut line);
        self.server.add(&mut line);
        Ok(line.finish(std::env::current_dir()?))
    }

    fn add_files(&self, line: &mut CommandLine) {
        if !self.index.is_empty() {
            let names = self.index.iter().map(|name| line.flag("--index", name)).collect();
            line.set_site("index", array(names));
        }
        for (given, flag, key) in [
            (self.browse, "--browse", "browse"),
            (self.hidden, "--hidden", "hidden"),
            (self.script_sources, "--script-sources", "script_sources"),
        ] {
            if given {
                let value = line.switch(flag, true);
                line.set_site(key, value);
            }
        }
        if let Some(file) = &self.spa {
            let value = line.flag("--spa", file);
            line.set_site("fallback", value);
        }
        if let Some(policy) = &self.symlinks {
            let value = line.flag("--symlinks", policy);
            line.set_site("symlinks", value);
        }
        if self.no_precompressed {
            let span = line.word("--no-precompressed");
            line.set_site("precompressed", Spanned::new(span, Value::Array(Vec::new())));
        }
        line.set_compress(self.no_compress.then_some("--no-compress"));
        if !self.cache_control.is_empty() {
            let rules = self.cache_control.iter().map(|rule| cache_rule(line, rule)).collect();
            line.set_site("cache_control", array(rules));
        }
        if !self.error_page.is_empty() {
            let mut page = |(status, file): &(String, String)| {
                let whole = line.flag("--error-page", &format!("{status}={file}"));
                (status.clone(), Spanned::new(whole.span(), Value::String(file.clone())))
            };
            let pages = table(self.error_page.iter().map(&mut page).collect::<Vec<_>>());
            line.set_site("error_pages", pages);
        }
    }

    /// The usual way of a PHP application: what is no file is the business of its `index.php`.
    fn add_php(&self, line: &mut CommandLine, dir: &str) -> std::io::Result<()> {
        let place = line.word("--php");
        let text = |value: &str| Spanned::new(place.clone(), Value::String(value.to_owned()));
        let number = |value: u64| Spanned::new(place.clone(), Value::Integer(value.into()));
        if self.index.is_empty() {
            line.set_site("index", array(vec![text("index.php"), text("index.html")]));
        }
        if self.spa.is_none() && std::path::Path::new(dir).join("index.php").is_file() {
            line.set_site("fallback", text("index.php"));
        }
        let children = children();
        let mut keys = vec![("scripts", array(vec![text(".php")])), ("connections_max", number(children))];
        match Php::find().map_err(std::io::Error::other)? {
            Php::Running(socket) => keys.push(("to", text(&format!("unix:{}", socket.display())))),
            Php::Program(program) => {
                let program = program.display().to_string();
                let count = children.to_string();
                let command = [OWN_EXECUTABLE, "app", "php-fpm", "--children", &count, &program];
                keys.push(("command", array(command.iter().map(|word| text(word)).collect())));
                keys.push(("processes", number(1)));
                keys.push(("concurrency", number(children)));
                keys.push(("stop_signal", text("quit")));
                if preload().is_some() {
                    keys.push(("preload", Spanned::new(place.clone(), Value::Boolean(true))));
                }
            }
        }
        let fastcgi = table(keys.into_iter().map(|(key, value)| (key.to_owned(), value)));
        line.add_route([("path".to_owned(), text("/")), ("fastcgi".to_owned(), fastcgi)]);
        Ok(())
    }

    fn add_applications(&self, line: &mut CommandLine) {
        let kinds = [
            ("--fastcgi", "fastcgi", &self.fastcgi),
            ("--scgi", "scgi", &self.scgi),
            ("--proxy", "proxy", &self.proxy),
        ];
        for (flag, key, mounted) in kinds {
            for mounted in mounted {
                let mut parts = line.parts(flag, &mounted.text, mounted.parts()).into_iter();
                let Some((path, to)) = parts.next().zip(parts.next()) else { continue };
                let mut entries = vec![("to".to_owned(), to)];
                for (name, value) in mounted.settings() {
                    let place = parts.nth(1).map_or(0, |value| value.span().start);
                    entries.push((name.to_owned(), parse_value(value, place)));
                }
                line.add_route([("path".to_owned(), path), (key.to_owned(), table(entries))]);
            }
        }
    }
}

/// `GLOB:VALUE`, or a value for everything: values of `Cache-Control` have no colon.
fn cache_rule(line: &mut CommandLine, rule: &str) -> Node {
    let (glob, value) = rule.split_once(':').unwrap_or(("*", rule));
    let node = line.flag("--cache-control", rule);
    let part = |text: &str| Spanned::new(node.span(), Value::String(text.trim().to_owned()));
    table([("match".to_owned(), part(glob)), ("value".to_owned(), part(value))])
}

/// Requests that PHP answers at a time: scripts compute and wait for databases by turns.
fn children() -> u64 {
    let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u64);
    (2 * cpus).max(4)
}

/// An application and the path below which it answers: `PATH=ADDRESS,KEY=VALUE,…`, in which all that is there is right.
#[derive(Clone, Debug)]
struct Mounted {
    text: String,
}

impl Mounted {
    fn path_and_rest(&self) -> (&str, &str) {
        self.text.split_once('=').unwrap_or((&self.text, ""))
    }

    /// Names and values of the settings behind the address.
    fn settings(&self) -> impl Iterator<Item = (&str, &str)> {
        self.path_and_rest().1.split(',').skip(1).filter_map(|setting| setting.split_once('='))
    }

    /// Path, address, then names and values by turns: with one character between each two, the whole text.
    fn parts(&self) -> impl Iterator<Item = &str> {
        let (path, rest) = self.path_and_rest();
        let to = rest.split(',').next();
        [path].into_iter().chain(to).chain(self.settings().flat_map(|(name, value)| [name, value]))
    }
}

impl Mounted {
    /// Reads it; `None`: it has another form.
    fn parse(text: &str) -> Option<Self> {
        let mut settings = text.split_once('=')?.1.split(',').skip(1);
        settings.all(|setting| setting.contains('=')).then(|| Self { text: text.to_owned() })
    }
}

fn parse_application(text: &str) -> Result<Mounted, String> {
    let example = "/app=unix:/run/app.sock or /app=127.0.0.1:9000,transport=inet";
    Mounted::parse(text).ok_or_else(|| format!("expected PATH=ADDRESS, such as {example}"))
}

fn parse_proxy(text: &str) -> Result<Mounted, String> {
    let example = "/=http://127.0.0.1:3000 or /api=http://127.0.0.1:3000/,host=origin";
    Mounted::parse(text).ok_or_else(|| format!("expected PATH=URL, such as {example}"))
}

fn parse_error_page(text: &str) -> Result<(String, String), String> {
    let (status, file) = text.split_once('=').ok_or("expected STATUS=FILE, such as 404=404.html")?;
    Ok((status.to_owned(), file.to_owned()))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use baton_config::Config;

    #[derive(Parser)]
    struct Flags {
        #[command(flatten)]
        serve: Serve,
    }

    fn check(flags: &[&str]) -> Config {
        let flags = Flags::parse_from([&["serve"], flags].concat());
        let raw = flags.serve.raw().expect("a current folder");
        Config::check(&raw).unwrap_or_else(|error| panic!("{error}"))
    }

    /// A configuration file with such settings.
    fn file(text: &str) -> Config {
        Config::from_toml(text).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn without_flags_it_is_the_current_folder() {
        let here = std::env::current_dir().unwrap();
        let expected = file(&format!("[[site]]\nroot = {:?}\ncompress = true\n", here.join(".")));
        assert_eq!(check(&[]), expected);
        assert_eq!(check(&["."]), expected);
    }

    /// Goal: each flag does what its setting does. Method: all flags at once against the file that says the same.
    #[test]
    fn every_flag_is_the_setting_of_the_same_meaning() {
        let flags = [
            "--directory=/usr",
            "--listen=:8081,unix:/run/s.sock",
            "-l8082 tls",
            "--tls=/etc/c.pem,/etc/k.pem",
            "--index=a.html",
            "--index=b.html",
            "--browse",
            "--spa=f.html",
            "--hidden",
            "--script-sources",
            "--symlinks=refused",
            "--no-precompressed",
            "--no-compress",
            "--cache-control=*.css: max-age=5",
            "--cache-control=no-cache",
            "--header=X-One: 1",
            "-HLink:<a>",
            "-HLink:<b>",
            "--error-page=404=/etc/passwd",
            "--architecture=pipeline",
            "--workers=3",
            "--user=root",
            "--group=root",
            "--control=off",
            "--set=cache.policy=gds",
            "--set=limits.body_bytes_max=2 KiB",
            "--set=site.access_log=false",
            "--access-log=/var/log/a",
            "--log-format=json",
            "--admin=9000",
        ];
        let expected = r#"
            [server]
            architecture = "pipeline"
            processes = 3
            user = "root"
            group = "root"
            control_socket = "off"
            [limits]
            body_bytes_max = 2048
            [cache]
            policy = "gds"
            [log]
            access = "/var/log/a"
            format = "json"
            [admin]
            listen = "127.0.0.1:9000"
            [[site]]
            root = "/usr"
            listen = [":8081", "unix:/run/s.sock", "127.0.0.1:8082 tls"]
            tls = { certificate = "/etc/c.pem", key = "/etc/k.pem" }
            index = ["a.html", "b.html"]
            browse = true
            fallback = "f.html"
            hidden = true
            script_sources = true
            symlinks = "refused"
            precompressed = []
            compress = false
            cache_control = [{ match = "*.css", value = "max-age=5" }, { match = "*", value = "no-cache" }]
            headers = { X-One = "1", Link = ["<a>", "<b>"] }
            error_pages = { 404 = "/etc/passwd" }
            access_log = false
        "#;
        assert_eq!(check(&flags), file(expected));
    }

    #[test]
    fn routes_of_settings_come_behind_those_of_flags() {
        let flags = [
            "/usr",
            "--proxy=/a=http://127.0.0.1:1",
            "--set=site.route=[{ path = '/b', respond = { status = 204 } }]",
        ];
        let expected = r#"
            [[site]]
            root = "/usr"
            compress = true
            [[site.route]]
            path = "/a"
            proxy = { to = "http://127.0.0.1:1" }
            [[site.route]]
            path = "/b"
            respond = { status = 204 }
        "#;
        assert_eq!(check(&flags), file(expected));
    }

    #[test]
    fn flags_that_need_no_value_have_a_usual_one() {
        let config = check(&["/usr", "--spa", "--access-log"]);
        assert_eq!(
            config,
            file(
                "log.access = 'stdout'\n[[site]]\nroot = '/usr'\ncompress = true\nfallback = 'index.html'\n"
            )
        );
        assert_eq!(check(&["--access-log=-", "--spa=index.html", "/usr"]), config);
    }

    #[test]
    fn one_worker_is_bound_to_no_cpu() {
        let server = check(&["--workers", "1"]).server;
        assert_eq!((server.processes, server.cpu_affinity), (Some(1), false));
        assert!(check(&["--workers", "2"]).server.cpu_affinity);
    }

    #[test]
    fn tls_is_for_all_addresses_unless_one_says_so() {
        let listen = |flags: &[&str]| {
            let config = check(&[&["--tls=/etc/c.pem,/etc/k.pem"], flags].concat());
            config.sites[0].settings.listen.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        };
        assert_eq!(listen(&[]), "127.0.0.1:8443 tls");
        assert_eq!(listen(&["-p", "81"]), "127.0.0.1:81 tls");
        assert_eq!(listen(&["-l81", "-l82"]), "127.0.0.1:81 tls, 127.0.0.1:82 tls");
        assert_eq!(listen(&["-l81", "-l82 tls"]), "127.0.0.1:81, 127.0.0.1:82 tls");
    }

    #[test]
    fn port_and_bind_make_an_address() {
        for (flags, address) in [
            (&["-p", "80"][..], "127.0.0.1:80"),
            (&["-b", "10.0.0.1"], "10.0.0.1:8080"),
            (&["-b", "::1", "-p", "81"], "[::1]:81"),
            (&["--bind=[::1]"], "[::1]:8080"),
        ] {
            assert_eq!(check(flags).sites[0].settings.listen[0].to_string(), address);
        }
    }
}
