//! Where a server of one line listens: `--listen`, or the same in two parts, `--bind` and `--port`; with `--tls` or without.
//!
//! Each has an environment variable. What is given as a flag counts, also where the environment says something else in
//! the other words: an image that sets `BATON_LISTEN` is no reason why `-p 8081` should not work.

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, Error, FromArgMatches};

use baton_report::OperatorError;

use super::command_line::{CommandLine, array};
use super::tls_flag::TlsFlag;

#[derive(Debug, Args)]
pub(super) struct Listening {
    #[command(flatten)]
    addresses: Addresses,

    #[command(flatten)]
    tls: TlsFlag,
}

#[derive(Debug)]
struct Addresses(AddressFlags);

#[derive(Debug, Args)]
struct AddressFlags {
    /// Address to listen on: PORT (this host only), :PORT (all interfaces), IP:PORT or unix:PATH; may be repeated
    /// [default: 127.0.0.1:8080]
    #[arg(short, long, value_name = "ADDRESS", env = "BATON_LISTEN", value_delimiter = ',', help_heading = HEADING)]
    listen: Vec<String>,

    /// Port to listen on, together with --bind
    #[arg(short, long, value_name = "PORT", env = "BATON_PORT", help_heading = HEADING)]
    port: Option<u16>,

    /// IP address to listen on, together with --port; `*` is all interfaces
    #[arg(short, long, value_name = "IP", env = "BATON_BIND", help_heading = HEADING)]
    bind: Option<String>,
}

const HEADING: &str = "Listening";
const TLS: &str = " tls";

/// The alternative to 443 that needs no rights, as 8080 is to 80.
const DEFAULT_WITH_TLS: &str = "127.0.0.1:8443";

impl Listening {
    /// Adds what was given, if anything was.
    ///
    /// # Errors
    /// A certificate for development cannot be kept.
    pub(super) fn add(&self, line: &mut CommandLine) -> Result<(), OperatorError> {
        self.addresses.add(line, self.tls.is_given());
        self.tls.add(line, &self.addresses.given())
    }

    /// What to tell before the server starts.
    pub(super) fn note(&self) -> Option<String> {
        self.tls.note(&self.addresses.given())
    }
}

impl Addresses {
    /// The addresses as given; none: the default.
    fn given(&self) -> Vec<String> {
        let AddressFlags { listen, port, bind } = &self.0;
        let mut addresses = listen.clone();
        if port.is_some() || bind.is_some() {
            let ip = bind.as_deref().unwrap_or("127.0.0.1");
            let port = port.unwrap_or(8080);
            let bracketed =
                if ip.contains(':') && !ip.starts_with('[') { format!("[{ip}]") } else { ip.to_owned() };
            addresses.push(format!("{bracketed}:{port}"));
        }
        addresses
    }

    /// Adds what was given, if anything was. With `tls`, all addresses speak it, unless one of them says so itself.
    fn add(&self, line: &mut CommandLine, tls: bool) {
        let mut addresses = self.given();
        if tls && addresses.is_empty() {
            addresses.push(DEFAULT_WITH_TLS.to_owned());
        }
        if tls && !addresses.iter().any(|address| address.ends_with(TLS)) {
            addresses.iter_mut().for_each(|address| address.push_str(TLS));
        }
        if !addresses.is_empty() {
            let addresses = addresses.iter().map(|address| line.flag("--listen", address)).collect();
            line.set_site("listen", array(addresses));
        }
    }
}

impl FromArgMatches for Addresses {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut flags = AddressFlags::from_arg_matches(matches)?;
        let in_parts = flags.port.is_some() || flags.bind.is_some();
        if in_parts && !flags.listen.is_empty() {
            let is_flag = |name| matches.value_source(name) == Some(ValueSource::CommandLine);
            match (is_flag("listen"), is_flag("port") || is_flag("bind")) {
                (true, false) => (flags.port, flags.bind) = (None, None),
                (false, true) => flags.listen.clear(),
                _ => {
                    let text =
                        "--listen ADDRESS says the same as --bind IP and --port PORT: one of the two, please";
                    return Err(Error::raw(ErrorKind::ArgumentConflict, text));
                }
            }
        }
        Ok(Self(flags))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for Addresses {
    fn augment_args(command: Command) -> Command {
        AddressFlags::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        AddressFlags::augment_args_for_update(command)
    }
}
