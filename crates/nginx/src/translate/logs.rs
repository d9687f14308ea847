//! Where requests and errors are logged.

use super::conditions::Wanted;
use super::scope::Scope;
use super::translator::Translator;
use crate::note::Weight;
use crate::tree::Directive;
use crate::values::is_constant;
use crate::written::Keys;

impl Translator<'_> {
    /// `[log]`.
    pub(super) fn log(&mut self, scope: &Scope<'_>) -> Keys {
        let mut keys = Keys::default();
        if let Some(log) = self.only_log(scope)
            && let Some(to) = self.destination(log)
        {
            keys.set("access", to.as_str());
            self.server_log = Some(to);
            self.account_condition(log);
        }
        if let Some(log) = scope.find("error_log") {
            match log.argument(0) {
                "stderr" => keys.set("error", "stderr"),
                path if path.starts_with('/') => keys.set("error", path),
                to if to.starts_with(SYSLOG) => {
                    let is_here = to.strip_prefix(SYSLOG).is_some_and(|server| server.starts_with("unix:"));
                    let weight = if is_here { Weight::Remark } else { Weight::LeftOut };
                    self.note(
                        log,
                        weight,
                        "this log is \"stderr\", which systemd gives to the journal and to syslog",
                    );
                    keys.set("error", "stderr");
                }
                _ => self.leave_out(log),
            }
        }
        keys
    }

    /// The access log of a server. `own`: what the server says itself.
    pub(super) fn log_of_site(&mut self, scope: &Scope<'_>, own: &Scope<'_>, keys: &mut Keys) {
        if scope.word("access_log") == Some("off") {
            return keys.set("access_log", false);
        }
        let Some(log) = self.only_log(own) else { return };
        let Some(to) = self.destination(log) else { return };
        if self.server_log.as_ref() != Some(&to) {
            keys.set("access_log", to);
        }
        let variable = condition_of(log);
        match variable.and_then(|variable| self.conditions_on(variable, &Wanted::Set)).as_deref() {
            Some([only]) => {
                keys.set("access_log_when", only.clone());
                self.use_map(variable.unwrap_or_default());
            }
            _ => self.account_condition(log),
        }
    }

    /// The last access log that a block names; it has one.
    fn only_log<'t>(&mut self, scope: &Scope<'t>) -> Option<&'t Directive> {
        let logs = scope.all(&["access_log"]);
        let (last, others) = logs.split_last()?;
        for other in others {
            self.note(other, Weight::LeftOut, "requests go to one log: this one is left out");
        }
        Some(last)
    }

    /// Where an access log goes; `None`: nowhere, or it has no counterpart.
    fn destination(&mut self, log: &Directive) -> Option<String> {
        let to = match log.argument(0) {
            "off" => return None,
            path if path.starts_with('/') && is_constant(path) => Some(path.to_owned()),
            to => to.strip_prefix(SYSLOG).and_then(|server| self.daemon(log, server)),
        };
        if to.is_none() {
            self.leave_out(log);
        }
        let format = log.argument(1);
        if to.is_some() && !matches!(format, "" | "combined") && !format.contains('=') && format != "gzip" {
            self.note(log, Weight::LeftOut, "the format of this log is left out: it is \"combined\"");
        }
        to
    }

    /// A syslog daemon, behind `syslog:server=`.
    fn daemon(&mut self, log: &Directive, server: &str) -> Option<String> {
        let mut parameters = server.split(',');
        let address = parameters.next().filter(|address| is_constant(address))?;
        for parameter in parameters {
            if !["facility=local7", "severity=info", "nohostname"].contains(&parameter) {
                let text = format!(
                    "\"{parameter}\" is left out: lines are of facility local7, severity info, tag baton"
                );
                self.note(log, Weight::LeftOut, text);
            }
        }
        Some(match address.strip_prefix("unix:") {
            Some(socket) if !socket.starts_with('/') => return None,
            Some("/dev/log") => "syslog".to_owned(),
            Some(socket) => format!("syslog:{socket}"),
            None if address.is_empty() => return None,
            None => format!("syslog://{address}"),
        })
    }

    fn account_condition(&mut self, log: &Directive) {
        if condition_of(log).is_some() {
            self.note(log, Weight::LeftOut, "\"if\" of this log has no counterpart: all requests are logged");
        }
    }
}

/// The variable on which it depends whether a request is logged.
fn condition_of(log: &Directive) -> Option<&str> {
    log.arguments.iter().find_map(|argument| argument.strip_prefix("if="))
}

/// How nginx names a syslog daemon.
const SYSLOG: &str = "syslog:server=";
