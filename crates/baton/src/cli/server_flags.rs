//! The flags of every command that starts a server by one line: `baton serve` and `baton proxy`.
//!
//! Each becomes the setting of the same meaning. Where the server listens is in [`listening`](super::listening).

use baton_config::{Node, Value, parse_value, words_of};
use baton_engine::arch::ArchitectureName;
use clap::builder::PossibleValuesParser;
use clap::{Args, ValueHint};
use toml::Spanned;

use super::command_line::{CommandLine, array, parse_header, table};

#[derive(Debug, Args)]
pub(super) struct ServerFlags {
    /// Response field to add; may be repeated
    #[arg(short = 'H', long, value_name = "NAME:VALUE", env = "BATON_HEADER", value_parser = parse_header, help_heading = RESPONSES)]
    header: Vec<(String, String)>,

    /// Who runs which step of a request: see `baton architectures` [default: auto]
    #[arg(short, long, value_name = "NAME", env = "BATON_ARCHITECTURE",
          value_parser = PossibleValuesParser::new(words_of::<ArchitectureName>()), help_heading = RUNNING)]
    architecture: Option<String>,

    /// Worker processes; a single one is bound to no CPU [default: what the architecture asks for]
    #[arg(short, long, value_name = "NUMBER", env = "BATON_WORKERS", help_heading = RUNNING)]
    workers: Option<u64>,

    /// User whose rights the workers take, if started as root
    #[arg(long, value_name = "NAME", env = "BATON_USER", value_hint = ValueHint::Username, help_heading = RUNNING)]
    user: Option<String>,

    /// Group of the workers [default: the user's]
    #[arg(long, value_name = "NAME", env = "BATON_GROUP", help_heading = RUNNING)]
    group: Option<String>,

    /// Socket for `baton ctl`, or "off"
    #[arg(long, value_name = "PATH", env = "BATON_CONTROL", value_hint = ValueHint::FilePath, help_heading = RUNNING)]
    control: Option<String>,

    /// Any setting of `baton config --reference`, such as cache.policy=gds or limits.ranges_max=5; may be repeated
    #[arg(short, long, value_name = "SECTION.KEY=VALUE", value_parser = parse_setting, help_heading = RUNNING)]
    set: Vec<(String, String, String)>,

    /// Log requests to standard output, to PATH, or to syslog, syslog:PATH or syslog://HOST; `-` is standard output
    #[arg(long, value_name = "PATH", env = "BATON_ACCESS_LOG", num_args = 0..=1, require_equals = true,
          default_missing_value = "-", help_heading = WATCHING)]
    access_log: Option<String>,

    /// How requests are logged: combined, json, or a text such as '$peer "$request" $status' [default: combined]. Without
    /// `--access-log`, to standard output
    #[arg(long, value_name = "FORMAT", env = "BATON_LOG_FORMAT", help_heading = WATCHING)]
    log_format: Option<String>,

    /// What a line of the log says, such as time,status,target; `baton config --reference` lists the fields
    #[arg(long, value_name = "FIELD", env = "BATON_LOG_FIELDS", value_delimiter = ',', help_heading = WATCHING)]
    log_fields: Vec<String>,

    /// Address for figures: /metrics for Prometheus, /status as JSON
    #[arg(long, value_name = "ADDRESS", env = "BATON_ADMIN", help_heading = WATCHING)]
    admin: Option<String>,

    /// Print the configuration file that means the same, and exit
    #[arg(long, help_heading = WATCHING)]
    pub(super) print_config: bool,
}

const RESPONSES: &str = "Responses";
const RUNNING: &str = "Running";
const WATCHING: &str = "Watching";

impl ServerFlags {
    /// Adds what was given. To be called last: `--set` replaces what a flag says of the same setting.
    pub(super) fn add(&self, line: &mut CommandLine) {
        if !self.header.is_empty() {
            let fields = headers(line, &self.header);
            line.set_site("headers", fields);
        }
        self.add_running(line);
        self.add_watching(line);
        self.add_settings(line);
    }

    fn add_running(&self, line: &mut CommandLine) {
        let words = [
            (&self.architecture, "--architecture", "architecture"),
            (&self.user, "--user", "user"),
            (&self.group, "--group", "group"),
            (&self.control, "--control", "control_socket"),
        ];
        for (value, flag, key) in words {
            if let Some(value) = value {
                let value = line.flag(flag, value);
                line.set("server", key, value);
            }
        }
        if let Some(workers) = self.workers {
            let value = line.number("--workers", workers);
            if workers == 1 {
                let span = value.span();
                line.set("server", "cpu_affinity", Spanned::new(span, Value::Boolean(false)));
            }
            line.set("server", "processes", value);
        }
    }

    fn add_watching(&self, line: &mut CommandLine) {
        // What says how requests are logged wants them logged.
        let is_shaped = self.log_format.is_some() || !self.log_fields.is_empty();
        line.add_access_log(self.access_log.as_deref().or(is_shaped.then_some("-")));
        if let Some(format) = &self.log_format {
            let value = line.flag("--log-format", format);
            line.set("log", "format", value);
        }
        if !self.log_fields.is_empty() {
            let fields = self.log_fields.iter().map(|field| line.flag("--log-fields", field)).collect();
            line.set("log", "fields", array(fields));
        }
        if let Some(address) = &self.admin {
            let value = line.flag("--admin", address);
            line.set("admin", "listen", value);
        }
    }

    fn add_settings(&self, line: &mut CommandLine) {
        for (section, key, value) in &self.set {
            line.word("--set");
            let name = format!("{section}.{key}=");
            let place = line.word(&format!("{name}{value}")).start + name.len();
            let value = parse_value(value, place);
            match section.as_str() {
                "site" => line.set_site(key, value),
                section => line.set(section, key, value),
            }
        }
    }
}

/// A field that is given several times becomes an array.
fn headers(line: &mut CommandLine, fields: &[(String, String)]) -> Node {
    let mut by_name: Vec<(String, Vec<Node>)> = Vec::new();
    for (name, value) in fields {
        line.word("--header");
        let value = Spanned::new(line.word(&format!("{name}:{value}")), Value::String(value.clone()));
        match by_name.iter_mut().find(|(other, _)| baton_http::is_same_field(other, name)) {
            Some((_, values)) => values.push(value),
            None => by_name.push((name.clone(), vec![value])),
        }
    }
    table(by_name.into_iter().map(|(name, values)| (name, array(values))))
}

fn parse_setting(text: &str) -> Result<(String, String, String), String> {
    let setting = text.split_once('=').and_then(|(name, value)| {
        let (section, key) = name.split_once('.')?;
        Some((section.to_owned(), key.to_owned(), value.to_owned()))
    });
    setting.ok_or_else(|| "expected SECTION.KEY=VALUE, such as cache.policy=gds".to_owned())
}
