//! The access logs of a server and its sites: how their lines look, who writes where, and what contradicts itself.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use baton_telemetry::log::{LineFormat, SiteLog, SyslogForm};

use super::check::{Conflicts, of_site};
use super::config::Config;
use super::error::Complaint;
use super::log::{Destination, LogSettings};
use super::log_format::Format;
use super::raw::Step;
use super::resources::Resources;
use super::site_log::{AccessLog, OwnLog};
use super::syslog::SyslogDaemon;

impl LogSettings {
    /// How the lines of the server's access log look.
    pub fn lines(&self) -> LineFormat {
        self.format.lines(self.fields.as_deref())
    }
}

impl Destination {
    /// How lines are sent if this is a syslog daemon.
    pub fn syslog(&self) -> Option<SyslogForm> {
        match self {
            Self::Syslog(SyslogDaemon::Local(path)) => Some(SyslogForm::Local(path.clone())),
            Self::Syslog(SyslogDaemon::Remote { .. }) => {
                let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
                Some(SyslogForm::Remote { host })
            }
            Self::Off | Self::Stdout | Self::Stderr | Self::File(_) => None,
        }
    }

    /// What tells it from other logs, between master and workers: the path of a file, the text for a daemon.
    fn name(&self) -> PathBuf {
        match self {
            Self::File(path) => path.clone(),
            other => other.to_string().into(),
        }
    }
}

impl OwnLog {
    fn lines(&self, log: &LogSettings) -> LineFormat {
        let format = self.format.as_ref().unwrap_or(&log.format);
        let inherited = log.fields.as_ref().filter(|_| *format == log.format);
        format.lines(self.fields.as_ref().or(inherited).map(Vec::as_slice))
    }
}

impl AccessLog {
    /// Where the requests go. `log`: what `[log]` says.
    ///
    /// # Errors
    /// There can be no further thread.
    pub(crate) fn plan(&self, log: &LogSettings, resources: &Resources) -> io::Result<SiteLog> {
        Ok(match (self, &resources.site_logs) {
            (Self::Own(own), Some(logs)) => logs.log(&own.file.name(), &own.lines(log), own.file.syslog())?,
            // Without them, the plan is only inspected.
            (Self::Off | Self::Own(_), _) => SiteLog::Off,
            (Self::Server, _) => SiteLog::Main,
        })
    }
}

impl Config {
    /// The logs that sites have for themselves, by their names.
    pub fn site_logs(&self) -> BTreeMap<PathBuf, &Destination> {
        self.own_logs().map(|(_, own)| (own.file.name(), &own.file)).collect()
    }

    fn own_logs(&self) -> impl Iterator<Item = (usize, &OwnLog)> {
        self.sites.iter().enumerate().filter_map(|(index, site)| match &site.settings.access_log {
            AccessLog::Own(own) => Some((index, own)),
            AccessLog::Off | AccessLog::Server => None,
        })
    }
}

impl Conflicts<'_> {
    /// Logs of one file that would look different, and fields beside a format that has its own.
    pub(super) fn logs(&mut self) {
        let log = &self.config.log;
        let mut found = Vec::new();
        let fields = [Step::Key("log"), Step::Key("fields")];
        if log.fields.is_some() && matches!(log.format, Format::Own(_)) && self.is_sound(&fields) {
            let complaint = Complaint::new("`log.fields` has no place in a format with variables")
                .at(self.raw.span(&fields), "these fields")
                .at(self.raw.span(&[Step::Key("log"), Step::Key("format")]), "not in this text");
            found.push(complaint.help("write them into the text as `$name`, or use `format = \"json\"`"));
        }
        let own: Vec<_> =
            self.config.own_logs().map(|(site, own)| (of_site(site, "access_log"), own)).collect();
        for (at, (path, own_log)) in own.iter().enumerate() {
            if !self.is_sound(path) {
                continue;
            }
            if own_log.fields.is_some()
                && matches!(own_log.format.as_ref().unwrap_or(&log.format), Format::Own(_))
            {
                let complaint = Complaint::new("`access_log.fields` has no place in a format with variables")
                    .at(self.raw.span(path), "this log");
                found.push(
                    complaint.help("write the fields into the text as `$name`, or use another `format`"),
                );
            }
            let lines = own_log.lines(log);
            let file = &own_log.file;
            let other =
                own[..at].iter().find(|(_, other)| other.file == own_log.file && other.lines(log) != lines);
            let server = [Step::Key("log"), Step::Key("access")];
            if let Some((other, _)) = other {
                let complaint = Complaint::new(format!("two sites write different lines to {file}"))
                    .at(self.raw.span(path), "this one")
                    .at(self.raw.span(other), "and this one");
                found.push(complaint.help("give them different files, or the same `format` and `fields`"));
            } else if matches!(own_log.file, Destination::File(_))
                && log.access == own_log.file
                && self.is_sound(&server)
            {
                let complaint = Complaint::new(format!("{file} is the access log of the server"))
                    .at(self.raw.span(path), "would be opened once more")
                    .at(self.raw.span(&server), "here");
                found.push(complaint.help("write `access_log = true`, or choose another file"));
            }
        }
        self.found.extend(found);
    }
}
