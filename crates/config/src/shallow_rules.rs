//! Rules of `cache_control` for the files of a folder, `/assets/*`, that leave out files in folders below. In some programs
//! such a star crosses slashes, so what is left out is found for the operator.

use std::collections::VecDeque;
use std::path::Path;

use super::files::Files;
use super::site::Site;

impl Site {
    /// Such patterns, each with a file that is left out. Large folders are not read to their end.
    pub fn shallow_cache_rules(&self) -> Vec<(&str, String)> {
        let mut found = Vec::new();
        for files in self.routes.iter().map(|route| &route.files).chain([&self.files]) {
            for shallow in files.shallow_cache_rules() {
                // A route inherits the rules of its site.
                if !found.contains(&shallow) {
                    found.push(shallow);
                }
            }
        }
        found
    }
}

impl Files {
    fn shallow_cache_rules(&self) -> impl Iterator<Item = (&str, String)> {
        let patterns: Vec<_> = self.cache_control.iter().map(|rule| rule.r#match.text()).collect();
        let folders = patterns.clone().into_iter().filter_map(|text| Some((text, text.strip_suffix('*')?)));
        let shallow = folders.filter(move |(pattern, folder)| {
            let is_plain = folder.starts_with('/') && folder.ends_with('/') && !folder.contains(SPECIAL);
            // Another rule for the same folder shows that the difference is known.
            is_plain && !patterns.iter().any(|other| other != pattern && other.starts_with(folder))
        });
        shallow.filter_map(|(pattern, folder)| Some((pattern, file_below(self.root.as_ref()?, folder)?)))
    }
}

/// The path of a file in a folder of this one.
fn file_below(root: &Path, folder: &str) -> Option<String> {
    let mut folders = VecDeque::from([folder.to_owned()]);
    let mut left = ENTRIES_MAX;
    while let Some(path) = folders.pop_front() {
        // A folder that cannot be read has nothing to show.
        for entry in root.join(path.trim_start_matches('/')).read_dir().into_iter().flatten().flatten() {
            left = left.checked_sub(1)?;
            let entry_path = format!("{path}{}", entry.file_name().to_string_lossy());
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push_back(entry_path + "/"),
                Ok(kind) if kind.is_file() && path != folder => return Some(entry_path),
                _ => {}
            }
        }
    }
    None
}

/// Characters with a meaning in globs.
const SPECIAL: [char; 4] = ['*', '?', '[', '%'];

/// Some milliseconds' worth of them.
const ENTRIES_MAX: usize = 2_000;

#[cfg(test)]
mod tests {
    use crate::Config;

    #[test]
    fn a_star_that_leaves_out_files_is_found() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["assets/app.js", "assets/a/b/deep.css", "flat/x.css"] {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let found = |rules: &[&str]| {
            let rules: Vec<_> =
                rules.iter().map(|rule| format!("{{ match = '{rule}', value = 'no-cache' }}")).collect();
            let text = format!(
                "[[site]]\nroot = '{}'\ncache_control = [{}]\n[[site.route]]\npath = '/b'\nbrowse = true\n",
                dir.path().display(),
                rules.join(", ")
            );
            let config = Config::from_toml(&text).unwrap_or_else(|error| panic!("{error}"));
            let found = config.sites[0].shallow_cache_rules();
            found.into_iter().map(|(pattern, file)| format!("{pattern} {file}")).collect::<Vec<_>>()
        };
        assert_eq!(found(&["/assets/*", "*"]), ["/assets/* /assets/a/b/deep.css"]);
        assert!(matches!(&found(&["/*"])[..], [one] if one.starts_with("/* /")));
        for fine in [&["/assets/**"][..], &["/flat/*"], &["/none/*"], &["*"], &["/assets/*", "/assets/**"]] {
            assert_eq!(found(fine), [""; 0], "{fine:?}");
        }
    }
}
