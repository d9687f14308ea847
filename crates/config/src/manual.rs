//! The reference of all settings as Markdown and as a manual page.

use clap_mangen::roff::{Roff, bold, italic, roman};

use super::reference::{SectionDescription, sections};

const INTRODUCTION: [&str; 5] = [
    "A configuration is one TOML file. Every setting has a default, except the folder of a site. Numbers are in the unit \
     that ends their name: `_ms` milliseconds, `_s` seconds, `_bytes` bytes, `_max` and `_min` say that they are bounds. \
     Sizes may be strings with a unit: `\"64 KiB\"`, `\"10 MB\"`, `\"1.5 GiB\"`. So may durations: `\"10s\"`, `\"1m30s\"`, \
     `\"250ms\"`, `\"2h\"`, `\"7d\"`.",
    "Relative paths are relative to the folder of the file. `baton check` finds all mistakes of a file, `baton config \
     --default` prints one to start from, `baton config --effective` prints what a file means. With `baton config --schema > \
     baton.schema.json` and a first line `#:schema ./baton.schema.json`, editors that know JSON Schema complete and check it.",
    "`include = [\"sites/*.toml\", \"common.toml\"]`, at the beginning of a file, adds the settings of others: of a file, of all \
     `.toml` files of a folder, or of those whose names match a glob. They have the same form, and paths in them are \
     relative to their own folder. They are read in the order of the list, those of one pattern in the order of their names, \
     each once. Their sites follow the sites that are there; any other setting may be given once. A name that is no pattern \
     must exist.",
    "In every string, `{env.NAME}` is the value of a variable of the environment, and `{env.NAME:default}` has a default for \
     one that is not set; without it that is a mistake. A string that is nothing but a variable may stand for a number or for \
     true and false: `processes = \"{env.WORKERS:2}\"`. A reload sees the environment with which the server was started.",
    "A smallest file is a `[[site]]` with `root = \"/srv/www\"`.",
];

/// The reference in Markdown: `docs/configuration.md`.
pub fn reference_markdown() -> String {
    let mut out = String::from("# Configuration\n\n<!-- Made by `baton config --reference`. -->\n\n");
    out.push_str(&INTRODUCTION.join("\n\n"));
    out.push('\n');
    for section in sections() {
        out.push_str(&format!("\n## `{}`\n\n{}\n", section.head(), prose(section.about)));
        for setting in &section.settings {
            out.push_str(&format!("\n### `{}.{}`\n\n{}\n\n", section.name, setting.name, prose(setting.doc)));
            for (word, meaning) in &setting.explained {
                out.push_str(&format!("- `\"{word}\"`: {meaning}\n"));
            }
            if !setting.explained.is_empty() {
                out.push('\n');
            }
            out.push_str(&format!(
                "Accepted: {}.  \nDefault: {}\n",
                setting.accepted,
                default(&section, setting.name)
            ));
        }
    }
    out
}

/// The reference as the manual page `baton.toml(5)`.
pub fn reference_roff() -> String {
    let mut page = Roff::new();
    page.control("TH", ["baton.toml", "5", "", "", "Baton"]);
    page.control("SH", ["NAME"]);
    page.text([roman("baton.toml - configuration of the Baton web server")]);
    page.control("SH", ["DESCRIPTION"]);
    for paragraph in INTRODUCTION {
        page.control("PP", []);
        page.text([roman(paragraph.replace('`', ""))]);
    }
    for section in sections() {
        page.control("SH", [section.head().as_str()]);
        page.text([roman(prose(section.about).replace('`', ""))]);
        for setting in &section.settings {
            page.control("TP", []);
            page.text([
                bold(setting.name),
                roman(" = "),
                italic(default(&section, setting.name).replace('`', "")),
            ]);
            page.text([roman(prose(setting.doc).replace('`', ""))]);
            for (word, meaning) in &setting.explained {
                page.control("br", []);
                page.text([italic(*word), roman(format!(": {meaning}"))]);
            }
            page.control("br", []);
            page.text([roman(format!("Accepted: {}.", setting.accepted))]);
        }
    }
    page.control("SH", ["SEE ALSO"]);
    page.text([bold("baton"), roman("(8)")]);
    page.to_roff()
}

fn default(section: &SectionDescription, name: &str) -> String {
    let setting =
        section.settings.iter().find(|setting| setting.name == name && !section.needed.contains(&name));
    setting.map_or("none, must be given".into(), |setting| format!("`{}`", setting.default))
}

/// Lines of documentation as one paragraph.
fn prose(lines: &[&str]) -> String {
    lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_reference_is_current() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
        let committed = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            committed == reference_markdown(),
            "docs/configuration.md is stale: baton config --reference > docs/configuration.md"
        );
    }

    #[test]
    fn the_manual_page_has_every_setting_and_the_text_of_its_meaning() {
        let page = reference_roff();
        for section in sections() {
            for setting in section.settings {
                assert!(page.contains(&setting.name.replace('-', "\\-")), "{}", setting.name);
                assert!(
                    setting.doc.iter().any(|line| !line.trim().is_empty()),
                    "{} has no documentation",
                    setting.name
                );
            }
        }
    }
}
