//! What Baton uses of the kernel, tried as the server would use it: a container may hide what the kernel has.

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
    for folder in
        config.map_or_else(|| [Application::default().temporary_folder()].into(), Config::temporary_folders)
    {
        let files = TemporaryFiles { folder: folder.clone().into(), space: TemporarySpace::default() };
        let made = TemporaryFile::create(&files, None);
        list.push_str(&format!("- O_TMPFILE in {}: {}\n", folder.display(), told(made)));
    }
    list
}

fn told<T>(tried: Result<T, impl std::fmt::Display>) -> String {
    tried.map_or_else(|why| format!("no: {why}"), |_| "yes".to_owned())
}
