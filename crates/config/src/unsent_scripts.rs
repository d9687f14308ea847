//! Scripts in a site's folders that no application runs. The server does not send them; this finds them for the operator,
//! since the application for them may be missing.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use baton_content::is_named_like_a_script;
use baton_site::matcher;

use super::config::Config;
use super::files::Files;
use super::route::RouteSettings;
use super::site::Site;

/// A script that is not sent, one of perhaps many below a path.
#[derive(Debug)]
pub struct Unsent {
    /// The file.
    pub file: PathBuf,
    /// The path of the route to which it belongs.
    pub route: String,
}

impl Config {
    /// The first such script of each route of each site, with the place of its site. Large folders are not read to their
    /// end.
    pub fn unsent_scripts(&self) -> Vec<(usize, Unsent)> {
        let sites = self.sites.iter().enumerate();
        sites.flat_map(|(index, site)| site.unsent_scripts().map(move |unsent| (index, unsent))).collect()
    }
}

impl Site {
    fn unsent_scripts(&self) -> impl Iterator<Item = Unsent> {
        let endings = self.script_endings();
        let routed = self.routes.iter().filter_map(|route| {
            let application = route.settings.application().map(|(_, application)| application);
            let serves_files = match application {
                Some(application) => !application.scripts.is_empty(),
                None => {
                    let RouteSettings { redirect, rewrite, respond, proxy, .. } = &route.settings;
                    redirect.is_none() && rewrite.is_none() && respond.is_none() && proxy.is_none()
                }
            };
            let run = application.map_or(&[][..], |application| &application.scripts[..]);
            // What a pattern matches is found below a prefix.
            let serves_files = serves_files && route.settings.place_key() == "path";
            serves_files.then_some((&*route.settings.path, route.settings.strip_prefix, &route.files, run))
        });
        let whole_is_routed = self.routes.iter().any(|route| route.settings.matcher().is_whole());
        let whole = (!whole_is_routed).then_some(("/", false, &self.files, &[][..]));
        routed.chain(whole).filter_map(move |(path, is_stripped, files, run)| {
            let search = Search { site: self, route: path, files, run, endings: &endings };
            let file = search.first(is_stripped)?;
            Some(Unsent { file, route: path.to_owned() })
        })
    }
}

/// A look through the files of a route.
struct Search<'a> {
    site: &'a Site,
    route: &'a str,
    files: &'a Files,
    /// Endings of what it runs.
    run: &'a [String],
    /// Endings of what is a script anywhere in the site.
    endings: &'a [String],
}

impl Search<'_> {
    fn first(&self, is_stripped: bool) -> Option<PathBuf> {
        let root = self.files.root.as_ref().filter(|_| !self.files.script_sources)?;
        let below = self.route.trim_matches('/');
        let start = if is_stripped { root.clone() } else { root.join(below) };
        let mut folders = VecDeque::from([(start, below.to_owned())]);
        let mut left = ENTRIES_MAX;
        while let Some((folder, path)) = folders.pop_front() {
            // A folder that cannot be read has nothing to show.
            for entry in folder.read_dir().into_iter().flatten().flatten() {
                left = left.checked_sub(1)?;
                let name = entry.file_name();
                if !self.files.hidden && name.as_encoded_bytes().starts_with(b".") {
                    continue;
                }
                let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
                let path = format!("{path}/{}", name.to_string_lossy());
                if !is_folder && self.is_unsent(&entry.path()) && !self.has_a_closer_route(&path) {
                    return Some(entry.path());
                }
                if is_folder && !self.is_another_route(&path) {
                    folders.push_back((entry.path(), path));
                }
            }
        }
        None
    }

    fn is_unsent(&self, file: &Path) -> bool {
        let name = file.as_os_str().as_encoded_bytes();
        is_named_like_a_script(name, self.endings)
            && !self.run.iter().any(|ending| name.ends_with(ending.as_bytes()))
    }

    /// Whether an exact path or a pattern takes a file out of the route.
    fn has_a_closer_route(&self, path: &str) -> bool {
        let mut places: Vec<_> = self.site.routes.iter().map(|route| route.settings.matcher()).collect();
        matcher::sort(&mut places);
        let found = matcher::find(&places, &mut path.trim_start_matches('/').as_bytes().to_vec());
        found.is_some_and(|matcher| matcher.is_exact() || matcher.as_pattern().is_some())
    }

    fn is_another_route(&self, path: &str) -> bool {
        let paths = self.site.routes.iter().map(|route| route.settings.path.trim_matches('/'));
        paths.into_iter().any(|other| other == path.trim_matches('/'))
    }
}

/// Some ten milliseconds' worth of them.
const ENTRIES_MAX: usize = 10_000;
