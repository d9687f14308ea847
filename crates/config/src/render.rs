//! A configuration as TOML: the effective one, and the default one with its documentation.

use super::config::Config;
use super::reference::{Form, sections};
use super::route::RouteSettings;
use super::setting::Section;

impl Config {
    /// Every setting with its value, in TOML that reads back to the same configuration from any folder.
    pub fn to_toml(&self) -> String {
        let mut out = String::new();
        write_section(&mut out, &self.server);
        write_section(&mut out, &self.limits);
        write_section(&mut out, &self.timeouts);
        write_section(&mut out, &self.send);
        write_section(&mut out, &self.cache);
        write_section(&mut out, &self.shared_cache);
        write_section(&mut out, &self.tls);
        write_section(&mut out, &self.acme);
        write_section(&mut out, &self.cluster);
        write_section(&mut out, &self.log);
        write_section(&mut out, &self.admin);
        let types =
            self.media_types.iter().map(|(extension, media_type)| (&**extension, media_type.as_str().into()));
        write_table(&mut out, "[media_types]", types);
        for site in &self.sites {
            write_table(
                &mut out,
                "[[site]]",
                pairs(&site.settings).chain(pairs(&site.guards)).chain(pairs(&site.files)),
            );
            for route in &site.routes {
                write_table(&mut out, "[[site.route]]", route.write(&site.guards).into_iter());
            }
        }
        out
    }
}

fn pairs<S: Section>(section: &S) -> impl Iterator<Item = (&'static str, toml::Value)> {
    S::settings().into_iter().map(|setting| setting.name).zip(section.write())
}

fn write_section<S: Section>(out: &mut String, section: &S) {
    write_table(out, &format!("[{}]", S::NAME), pairs(section));
}

fn write_table<'k>(out: &mut String, head: &str, pairs: impl Iterator<Item = (&'k str, toml::Value)>) {
    if !out.is_empty() {
        out.push('\n');
    }
    line(out, head);
    for (key, value) in pairs {
        line(out, &assignment(key, &value));
    }
}

fn assignment(key: &str, value: &toml::Value) -> String {
    let bare =
        !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    let key = if bare { key.into() } else { toml::Value::from(key).to_string() };
    format!("{key} = {value}")
}

fn line(out: &mut String, text: &str) {
    out.push_str(text);
    out.push('\n');
}

/// Every setting with its documentation and its default: a configuration to start from.
pub fn default_toml() -> String {
    let mut out = String::from(
        "# Configuration of the Baton web server. Every setting has its default here; any may be left out.\n\
         #\n\
         # Sizes may have a unit, \"64 MiB\", and durations, too: \"10s\", \"1m30s\". In strings, {env.NAME} is a variable of the\n\
         # environment, {env.NAME:default} one that may be unset.\n\
         #\n\
         # Other files with settings and sites, as paths, folders or patterns:\n\
         # include = [\"sites/*.toml\"]\n",
    );
    for section in sections() {
        // Inline tables are explained where they are used. A route is an example: the default has none.
        let mark = match (section.form, section.name) {
            (Form::Inline, _) => continue,
            (_, RouteSettings::NAME) => "# ",
            _ => "",
        };
        out.push('\n');
        comment(&mut out, section.about);
        line(&mut out, &format!("{mark}{}", section.head()));
        for setting in &section.settings {
            out.push('\n');
            comment(&mut out, setting.doc);
            for (word, meaning) in &setting.explained {
                line(&mut out, &format!("#   \"{word}\": {meaning}"));
            }
            line(&mut out, &format!("# Accepted: {}.", setting.accepted));
            let value = if setting.name == "root" { &DEFAULT_ROOT.into() } else { &setting.default };
            line(&mut out, &format!("{mark}{}", assignment(setting.name, value)));
        }
    }
    out
}

/// The default of `baton serve`. A file must name a root: its own folder is seldom meant.
const DEFAULT_ROOT: &str = ".";

fn comment(out: &mut String, doc: &[&str]) {
    for text in doc {
        line(out, &format!("#{text}"));
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::RawConfig;

    fn check(text: &str) -> Config {
        let raw = RawConfig::parse("test".into(), text.into(), Path::new("/")).expect("TOML");
        Config::check(&raw).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Every setting, none with its default.
    const EVERYTHING: &str = include_str!("everything.toml");

    #[test]
    fn the_default_file_says_what_leaving_everything_out_means() {
        assert_eq!(check(&default_toml()), check("[[site]]\nroot = '.'\n"));
    }

    proptest! {
        // Each case reads and writes a file with all settings, 90 ms.
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Any subset of the settings reads back as it was written.
        #[test]
        fn what_is_written_reads_back_to_the_same(kept in vec(any::<bool>(), EVERYTHING.lines().count())) {
            let keys = ["[", "architecture", "listen", "tls", "redirect_https", "root", "path", "exact", "glob", "regex", "rewrite", "redirect", "respond", "proxy", "cluster", "nodes", "key", "fastcgi", "scgi", "cgi", "allow", "basic_auth"];
            let needed = |line: &&str| keys.iter().any(|key| line.starts_with(key));
            let lines = EVERYTHING.lines().zip(kept).filter(|(line, kept)| *kept || needed(line));
            let config = check(&lines.map(|(line, _)| line).collect::<Vec<_>>().join("\n"));
            let written = config.to_toml();
            let again = Config::from_toml(&written).unwrap_or_else(|error| panic!("{error}"));
            prop_assert_eq!(&config, &again, "{}", written);
            prop_assert_eq!(written, again.to_toml());
        }
    }

    proptest! {
        /// Any damage to a file is reported with its place.
        #[test]
        fn damage_can_be_shown(
            at in 0..EVERYTHING.len(),
            removed in 0..60_usize,
            put in "[\\[\\]{}=\"'.,#\n\\\\ -/0-9a-fä\u{1F980}]{0,9}",
        ) {
            let before = EVERYTHING.get(..at);
            let behind = EVERYTHING.get((at + removed).min(EVERYTHING.len())..);
            let (Some(before), Some(behind)) = (before, behind) else { return Ok(()) };
            let text = [before, &put, behind].concat();
            let raw = RawConfig::parse("test".into(), text, Path::new("/"));
            if let Err(error) = raw.and_then(|raw| Config::check(&raw)) {
                prop_assert!(error.render(false).contains("--> test"), "{}", error);
            }
        }
    }

    /// Goal: no setting is forgotten by a reader or a writer, nor mixed up with another. Method: a configuration in which
    /// every setting differs from its default must be written with every value as it was given.
    #[test]
    fn every_setting_is_read_and_written() {
        let written: toml::Table = check(EVERYTHING).to_toml().parse().expect("TOML");
        let given: toml::Table = EVERYTHING.parse().expect("TOML");
        for name in given.keys() {
            assert!(sections().iter().any(|section| section.name == name), "[{name}] is not documented");
        }
        for section in sections().iter().filter(|section| section.form == Form::Table) {
            for setting in &section.settings {
                let value = |table: &toml::Table| table[section.name].get(setting.name).cloned();
                assert_eq!(value(&written), value(&given), "{}.{}", section.name, setting.name);
                assert_ne!(
                    value(&given).as_ref(),
                    Some(&setting.default),
                    "{}.{}",
                    section.name,
                    setting.name
                );
            }
        }
        let sites = |table: &toml::Table| tables(table, "site");
        for (written, given) in sites(&written).iter().zip(sites(&given)) {
            agree(written, &given);
            let routes = tables(written, "route");
            assert_eq!(routes.len(), tables(&given, "route").len());
            for (written, given) in routes.iter().zip(tables(&given, "route")) {
                agree(written, &given);
                let is_short = ["redirect", "respond", "rewrite"].iter().any(|key| given.contains_key(*key));
                assert!(!is_short || *written == given, "{written} {given}");
            }
        }
        let routes = sites(&given).iter().flat_map(|site| tables(site, "route")).collect::<Vec<_>>();
        for section in sections().iter().filter(|section| section.form == Form::Tables) {
            let places = if section.name == "site" { &sites(&given) } else { &routes };
            for setting in &section.settings {
                let differs = |place: &toml::Table| {
                    place.get(setting.name).is_some_and(|value| *value != setting.default)
                };
                assert!(places.iter().any(differs), "{}.{}", section.name, setting.name);
            }
        }
        for name in ["proxy", "fastcgi", "cluster"] {
            let section = format!("site.route.{name}");
            let section = sections().into_iter().find(|one| one.name == section).unwrap();
            let given = routes.iter().find_map(|route| route.get(name)).expect("a route");
            for setting in &section.settings {
                let is_default = given.get(setting.name).is_none_or(|value| *value == setting.default);
                assert!(!is_default || ["to", "scripts"].contains(&setting.name), "{}", setting.name);
            }
        }
    }

    fn tables(table: &toml::Table, key: &str) -> Vec<toml::Table> {
        let list = table.get(key).and_then(toml::Value::as_array).into_iter().flatten();
        list.map(|one| one.as_table().cloned().expect("a table")).collect()
    }

    /// What was given is written, whatever else is.
    fn agree(written: &toml::Table, given: &toml::Table) {
        for (key, value) in given.iter().filter(|(key, _)| *key != "route") {
            match (written.get(key), value) {
                (Some(toml::Value::Table(written)), toml::Value::Table(given)) => agree(written, given),
                (written, given) => assert_eq!(written, Some(given), "{key}"),
            }
        }
    }
}
