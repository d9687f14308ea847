//! `baton proxy --to URL`: a proxy in front of an HTTP server, now. Every flag becomes the setting of the same meaning.

use baton_config::{RawConfig, Value, Words};
use baton_dispatch::PolicyName;
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};
use toml::Spanned;

use super::command_line::{CommandLine, array, table};
use super::listening::Listening;
use super::server_flags::ServerFlags;

/// Pass all requests on to an HTTP server, or to several
///
/// Without anything else: from http://127.0.0.1:8080. Of several servers, one that fails is left out for a while.
#[derive(Debug, Args)]
pub(super) struct Proxy {
    /// URL of the server, such as http://127.0.0.1:3000, https://example.org or unix:/run/app.sock; may be repeated
    #[arg(long, required = true, value_name = "URL", env = "BATON_PROXY_TO", value_delimiter = ',')]
    to: Vec<String>,

    /// Which of several servers gets a request [default: wrr, in turns]
    #[arg(long, value_name = "POLICY", env = "BATON_PROXY_POLICY", value_parser = policies())]
    policy: Option<String>,

    /// Which Host the server reads: "client", "origin" (the one of the URL) or a name [default: client]
    #[arg(long, value_name = "HOST", env = "BATON_PROXY_HOST")]
    host: Option<String>,

    #[command(flatten)]
    pub(super) listening: Listening,

    #[command(flatten)]
    pub(super) server: ServerFlags,
}

impl Proxy {
    /// The flags as a configuration; relative paths are relative to the current folder.
    ///
    /// # Errors
    /// The current folder is gone, or a self-signed certificate cannot be kept.
    pub(super) fn raw(&self) -> std::io::Result<RawConfig> {
        let mut line = CommandLine::new("baton proxy");
        let to: Vec<_> = self.to.iter().map(|to| line.flag("--to", to)).collect();
        let to = array(to);
        let path = Spanned::new(to.span(), Value::String("/".to_owned()));
        let mut settings = vec![("to".to_owned(), to)];
        if let Some(policy) = &self.policy {
            settings.push(("policy".to_owned(), line.flag("--policy", policy)));
        }
        if let Some(host) = &self.host {
            settings.push(("host".to_owned(), line.flag("--host", host)));
        }
        line.add_route([("path".to_owned(), path), ("proxy".to_owned(), table(settings))]);
        self.listening.add(&mut line).map_err(std::io::Error::other)?;
        self.server.add(&mut line);
        Ok(line.finish(std::env::current_dir()?))
    }
}

/// The policies, each with its line for `--help`.
fn policies() -> PossibleValuesParser {
    PolicyName::words().into_iter().map(|(word, _, about)| PossibleValue::new(word).help(about)).into()
}

#[cfg(test)]
mod tests {
    use baton_config::Config;
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Flags {
        #[command(flatten)]
        proxy: Proxy,
    }

    #[test]
    fn one_line_is_a_whole_configuration() {
        let flags = ["proxy", "--to=http://127.0.0.1:3000", "--host=origin", "-p81", "--access-log"];
        let raw = Flags::parse_from(flags).proxy.raw().expect("a current folder");
        let config = Config::check(&raw).unwrap_or_else(|error| panic!("{error}"));
        let expected = r#"
            [log]
            access = "stdout"
            [[site]]
            listen = "127.0.0.1:81"
            [[site.route]]
            path = "/"
            proxy = { to = "http://127.0.0.1:3000", host = "origin" }
        "#;
        assert_eq!(config, Config::from_toml(expected).unwrap_or_else(|error| panic!("{error}")));
    }

    /// Goal: a proxy takes what a folder takes. Method: one flag of each kind against the file that says the same.
    #[test]
    fn the_flags_of_a_server_are_taken() {
        let flags = [
            "proxy",
            "--to=http://a:1",
            "--header=X-One: 1",
            "--workers=3",
            "--user=root",
            "--control=/run/p.sock",
            "--access-log",
            "--log-format=json",
            "--log-fields=time,status",
            "--admin=9000",
            "--set=limits.body_bytes_max=2 KiB",
            "--set=log.format=combined",
        ];
        let raw = Flags::parse_from(flags).proxy.raw().expect("a current folder");
        let config = Config::check(&raw).unwrap_or_else(|error| panic!("{error}"));
        let expected = r#"
            server = { processes = 3, user = "root", control_socket = "/run/p.sock" }
            limits.body_bytes_max = 2048
            log = { access = "stdout", format = "combined", fields = ["time", "status"] }
            admin.listen = "127.0.0.1:9000"
            [[site]]
            headers = { X-One = "1" }
            [[site.route]]
            path = "/"
            proxy = { to = "http://a:1" }
        "#;
        assert_eq!(config, Config::from_toml(expected).unwrap_or_else(|error| panic!("{error}")));
    }

    #[test]
    fn several_servers_share_the_requests() {
        let flags =
            ["proxy", "--to=http://a:1", "--to", "http://b:1", "--policy=least-connections", "--listen=:81"];
        let raw = Flags::parse_from(flags).proxy.raw().expect("a current folder");
        let config = Config::check(&raw).unwrap_or_else(|error| panic!("{error}"));
        let expected = r#"
            [[site]]
            listen = ":81"
            [[site.route]]
            path = "/"
            proxy = { to = ["http://a:1", "http://b:1"], policy = "least-connections" }
        "#;
        assert_eq!(config, Config::from_toml(expected).unwrap_or_else(|error| panic!("{error}")));
        assert!(Flags::try_parse_from(["proxy", "--to=http://a", "--policy=best"]).is_err());
        assert!(Flags::try_parse_from(["proxy"]).is_err());
    }
}
