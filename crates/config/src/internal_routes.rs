//! Routes that clients cannot ask for (`internal`): what leads there, and which of their files applications may name.

use std::path::PathBuf;

use super::check::Conflicts;
use super::error::Complaint;
use super::raw::Step;
use super::route::Route;
use super::site::Site;

impl Conflicts<'_> {
    /// Complains of an internal route in a site where nothing could lead to it.
    pub(super) fn never_reached(&mut self, site: &Site, routes: &[Step<'_>]) {
        if site.files.try_files.is_some() || site.routes.iter().any(leads_on) {
            return;
        }
        for (index, _) in site.routes.iter().enumerate().filter(|(_, route)| route.settings.internal) {
            let at = [routes, &[Step::Index(index), Step::Key("internal")]].concat();
            if self.raw.find(&at).is_some() && self.is_sound(&at) {
                let complaint = Complaint::new("a route that nothing leads to");
                let complaint = complaint.at(self.raw.span(&at), "clients cannot ask for it");
                self.found.push(
                    complaint.help(
                        "lead to it by `rewrite` or `try_files` of another route, or remove `internal`",
                    ),
                );
            }
        }
    }
}

/// Whether requests of a route may go on to an internal one, or its responses name files there.
fn leads_on(route: &Route) -> bool {
    route.settings.rewrite.is_some()
        || route.files.try_files.is_some()
        || route.settings.application().is_some()
}

impl Site {
    /// The site with applications that may name files of its internal routes by the paths of these.
    pub(super) fn with_internal_folders(self) -> Self {
        let mut site = self;
        let mut folders: Vec<_> = site.routes.iter().filter_map(|route| folder(&site, route)).collect();
        folders.sort_by_key(|(path, _)| std::cmp::Reverse(path.len()));
        for route in &mut site.routes {
            let settings = &mut route.settings;
            for application in [&mut settings.fastcgi, &mut settings.scgi].into_iter().flatten() {
                application.internal_files.extend(folders.iter().cloned());
            }
        }
        site
    }
}

/// The path of an internal route, and the folder whose files lie there. A file that an application names passes the guards of
/// the application's route alone, so a route with other guards than its site's has no files to name.
fn folder(site: &Site, route: &Route) -> Option<(String, PathBuf)> {
    let settings = &route.settings;
    let is_meant = settings.internal && settings.place_key() == "path" && *route.guards() == site.guards;
    let root = route.files.root.as_ref().filter(|_| is_meant && settings.serves_files())?;
    let folder = match settings.strip_prefix {
        true => root.clone(),
        false => root.join(settings.path.trim_matches('/')),
    };
    // It may come later than this plan; the files can then be named after a reload.
    folder.is_dir().then(|| (settings.path.clone(), folder))
}
