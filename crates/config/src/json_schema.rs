//! `baton config --schema`: the JSON Schema of a configuration, for editors, made from the same tables as the reference.
//!
//! It says what a key may have, and no more: what settings mean together, and what is on this host, `baton check` knows.

use super::files::Files;
use super::guards::Guards;
use super::include::INCLUDE;
use super::reference::{Form, sections};
use super::route::RouteSettings;
use super::schema::Schema;
use super::setting::Section;
use super::site::SiteSettings;

/// The schema of a configuration, in JSON.
pub fn json_schema() -> String {
    let of_places = || [Guards::properties(), Files::properties()].concat();
    let mut root: Vec<(&'static str, Schema)> = vec![(INCLUDE, Schema::list_of(Schema::TEXT))];
    for section in sections().into_iter().filter(|section| section.form == Form::Table) {
        let table = match (section.properties)() {
            // Of media types, the keys are extensions.
            keys if keys.is_empty() => Schema::table_of(Schema::TEXT),
            keys => Schema::Object(keys, section.needed),
        };
        let about = section.about.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ");
        root.push((section.name, Schema::Documented(Box::new(table), about, None)));
    }
    let route = Schema::Object([RouteSettings::properties(), of_places()].concat(), RouteSettings::NEEDED);
    let routes = ("route", Schema::list_of(route));
    let site = [SiteSettings::properties(), of_places(), vec![routes]].concat();
    root.push((SiteSettings::NAME, Schema::list_of(Schema::Object(site, SiteSettings::NEEDED))));
    let mut schema = Schema::Object(root, &[]).to_json();
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema["title"] = "Configuration of the Baton web server".into();
    format!("{schema:#}\n")
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use serde_json::{Value, json};

    use super::*;

    fn validate(toml: &str) -> Result<(), String> {
        let instance: toml::Table = toml.parse().map_err(|error| format!("{error}"))?;
        let schema: Value = serde_json::from_str(&json_schema()).expect("JSON");
        valid(&schema, &json!(instance), "")
    }

    /// What JSON Schema says of the words that [`Schema::to_json`] uses.
    fn valid(schema: &Value, value: &Value, at: &str) -> Result<(), String> {
        let refuse = || Err(format!("{at}: {value} is not {schema}"));
        let is_of_type = match schema["type"].as_str() {
            None => true,
            Some("string") => value.is_string(),
            Some("boolean") => value.is_boolean(),
            Some("integer") => value.is_i64() || value.is_u64(),
            Some("array") => value.is_array(),
            Some("object") => value.is_object(),
            Some(other) => panic!("{other}"),
        };
        let is_word = schema.get("const").is_none_or(|word| word == value);
        let has_variable =
            schema.get("pattern").is_none_or(|_| value.as_str().is_some_and(|text| text.contains("{env.")));
        let bound = |name: &str| schema[name].as_u64();
        let is_within = value.as_u64().is_none_or(|number| {
            bound("minimum").is_none_or(|least| number >= least)
                && bound("maximum").is_none_or(|most| number <= most)
        });
        if !(is_of_type && is_word && has_variable && is_within) {
            return refuse();
        }
        if let Some(several) = schema["anyOf"].as_array()
            && several.iter().all(|one| valid(one, value, at).is_err())
        {
            return refuse();
        }
        for (index, element) in value.as_array().into_iter().flatten().enumerate() {
            valid(&schema["items"], element, &format!("{at}/{index}"))?;
        }
        let Some(table) = value.as_object() else { return Ok(()) };
        for needed in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            if !table.contains_key(needed) {
                return Err(format!("{at}: lacks {needed}"));
            }
        }
        for (key, value) in table {
            let at = format!("{at}/{key}");
            match (schema["properties"].get(key), &schema["additionalProperties"]) {
                (Some(schema), _) => valid(schema, value, &at)?,
                (None, Value::Bool(false)) => return Err(format!("{at} is unknown")),
                (None, others) => valid(others, value, &at)?,
            }
        }
        Ok(())
    }

    fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
        entries.filter(|path| path.extension().is_some_and(|extension| extension == ending)).collect()
    }

    /// Goal: an editor marks nothing in a configuration that the server takes. Method: all settings, the default file, those of
    /// the package, and every example of the documents, in the place where it belongs.
    #[test]
    fn what_the_documents_show_is_valid() {
        let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let read = |path: &Path| fs::read_to_string(path).expect("a file");
        for text in [include_str!("everything.toml").to_owned(), crate::default_toml()] {
            validate(&text).unwrap_or_else(|error| panic!("{error}"));
        }
        for path in files(&top.join("dist"), "toml") {
            validate(&read(&path)).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        }
        let documents = ["docs", "docs/recipes"].map(|folder| files(&top.join(folder), "md")).concat();
        let mut examples = 0;
        for path in documents.into_iter().chain([top.join("README.md")]) {
            let text = read(&path);
            let blocks = text.split("```toml\n").skip(1).filter_map(|block| Some(block.split_once("```")?.0));
            // Some show several ways to write a key.
            for block in blocks.filter(|block| block.parse::<toml::Table>().is_ok()) {
                let places = ["", "[[site]]\n", "[[site]]\n[[site.route]]\n"];
                let told = places.map(|place| validate(&format!("{place}{block}")));
                assert!(told.iter().any(Result::is_ok), "{}: {told:?}\n{block}", path.display());
                examples += 1;
            }
        }
        assert!(examples > 25, "{examples}");
    }

    #[test]
    fn mistakes_are_marked() {
        for (text, place) in [
            ("[serve]\n", "serve"),
            ("[server]\nprocesses = 0\n", "/server/processes"),
            ("[log]\nflush_ms = true\n", "/log/flush_ms"),
            ("[cache]\npolicy = 'best'\n", "/cache/policy"),
            ("[[site]]\nbrowse = 'yes'\n", "/site/0/browse"),
            ("[[site]]\n[[site.route]]\nredirect = { status = 301 }\n", "/site/0/route/0/redirect"),
        ] {
            let told = validate(text).expect_err(text);
            assert!(told.contains(place), "{text}: {told}");
        }
        for text in ["[server]\nprocesses = '{env.WORKERS:2}'\n", "[log]\nflush_ms = '1m'\n"] {
            validate(text).unwrap_or_else(|error| panic!("{error}"));
        }
    }

    #[test]
    fn every_setting_has_its_documentation() {
        let schema: Value = serde_json::from_str(&json_schema()).expect("JSON");
        for section in sections().iter().filter(|section| section.form == Form::Table) {
            for setting in &section.settings {
                let one = &schema["properties"][section.name]["properties"][setting.name];
                let told = one["description"].as_str().unwrap_or_default();
                assert!(told.contains(&setting.accepted), "{}.{}: {told}", section.name, setting.name);
                assert_eq!(one["default"], json!(setting.default), "{}.{}", section.name, setting.name);
            }
        }
    }
}
