//! What Baton uses of the kernel, tried as the server would use it: a container may hide what the kernel has.

use std::collections::BTreeSet;
use std::path::PathBuf;

use baton_config::{Application, Config};
use baton_content::{Tree, TreeConfig};
use baton_master::test_kernel_tls;
use baton_sys::shared::SharedNumbers;
use baton_upstream::{TemporaryFile, TemporaryFiles, TemporarySpace};

use super::markdown::listed;

/// A line for each.
pub(super) fn list(config: Option<&Config>) -> String {
    let tree = Tree::open(TreeConfig { root: "/".into(), ..TreeConfig::default() });
    let features = [
        ("openat2", told(tree.as_ref().map(|_| ()))),
        ("openat2 with RESOLVE_CACHED", told(tree.and_then(|tree| tree.resolve_cached()))),
        ("TLS in the kernel", told(test_kernel_tls())),
        ("memfd_create with seals", told(SharedNumbers::create(1))),
    ];
    let mut list = listed(features);
    for folder in temporary_folders(config) {
        let files = TemporaryFiles { folder: folder.clone().into(), space: TemporarySpace::default() };
        let made = TemporaryFile::create(&files, None);
        list.push_str(&format!("- O_TMPFILE in {}: {}\n", folder.display(), told(made)));
    }
    list
}

/// Those of the applications and origins, and the usual one.
fn temporary_folders(config: Option<&Config>) -> BTreeSet<PathBuf> {
    let applications = config.into_iter().flat_map(Config::applications).map(Application::temporary_folder);
    let routes = config.into_iter().flat_map(|config| &config.sites).flat_map(|site| &site.routes);
    let proxies = routes.filter_map(|route| route.settings.proxy.as_ref()?.temporary_folder.clone());
    applications.chain(proxies).chain([Application::default().temporary_folder()]).collect()
}

fn told<T>(tried: Result<T, impl std::fmt::Display>) -> String {
    tried.map_or_else(|why| format!("no: {why}"), |_| "yes".to_owned())
}
