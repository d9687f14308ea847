//! A path never leaves its root, even if the folder changes meanwhile.

use std::fs;
use std::os::unix::fs::symlink;

use baton_content::{Blocking, CacheSettings, Found, Symlinks};
use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::site::{Site, Stop, bytes_of};

const SECRET: &[u8] = b"outside";
const PUBLIC: &[u8] = b"inside!";

fn site_with(symlinks: Symlinks) -> Site {
    // Nothing is cached: each lookup goes to the kernel.
    let settings = CacheSettings { names: false, files: false, ..CacheSettings::default() };
    let site = Site::configured(settings, |config| config.symlinks = symlinks);
    fs::create_dir(site.folder.path().join("outside")).unwrap();
    fs::write(site.folder.path().join("outside/file"), SECRET).unwrap();
    site
}

#[test]
fn links_lead_where_the_policy_lets_them() {
    for symlinks in [Symlinks::Beneath, Symlinks::Refused, Symlinks::Anywhere] {
        let site = site_with(symlinks);
        site.write("real/file", PUBLIC);
        symlink("real/file", site.path("file-link")).unwrap();
        symlink("real", site.path("directory-link")).unwrap();
        symlink("../outside", site.path("out")).unwrap();
        symlink(site.folder.path().join("outside"), site.path("absolute")).unwrap();
        symlink("../outside/file", site.path("out-file")).unwrap();
        symlink(site.folder.path().join("outside/file"), site.path("absolute-file")).unwrap();
        symlink("loop", site.path("loop")).unwrap();
        assert_eq!(site.content("/real/file"), PUBLIC);
        for path in ["/file-link", "/directory-link/file"] {
            match symlinks {
                Symlinks::Refused => assert!(matches!(site.find(path), Found::Missing), "{path}"),
                Symlinks::Beneath | Symlinks::Anywhere => assert_eq!(site.content(path), PUBLIC, "{path}"),
            }
        }
        for path in ["/out/file", "/absolute/file", "/out-file", "/absolute-file"] {
            match symlinks {
                Symlinks::Beneath | Symlinks::Refused => {
                    assert!(matches!(site.find(path), Found::Missing), "{path}");
                }
                Symlinks::Anywhere => assert_eq!(site.content(path), SECRET, "{path}"),
            }
        }
        assert!(matches!(site.find("/loop"), Found::Missing));
    }
}

/// Goal: the operator learns which link hides a path, and by which setting; once for each link.
#[test]
fn a_link_that_is_not_followed_is_reported_once() {
    for (symlinks, setting) in [
        (Symlinks::Beneath, Some("`symlinks` is \"beneath\": \"anywhere\" follows it")),
        (Symlinks::Refused, Some("`symlinks` is \"refused\"")),
        (Symlinks::Anywhere, None),
    ] {
        let site = site_with(symlinks);
        site.write("a/b/real", PUBLIC);
        symlink(site.folder.path().join("outside"), site.path("a/b/link")).unwrap();
        symlink("loop", site.path("a/loop")).unwrap();
        let ask = |path: &str| {
            let _ = site.find(path);
            let told = site.tree.take_hidden_link().map(|link| link.to_string());
            let explained = site.tree.hidden_link(path.as_bytes()).map(|link| link.to_string());
            (told, explained)
        };
        assert_eq!(ask("/a/b/real"), (None, None));
        assert_eq!(ask("/a/none/file"), (None, None));
        let (told, explained) = ask("/a/b/link/file");
        assert_eq!(told, explained);
        assert_eq!(told.is_some(), setting.is_some());
        if let (Some(told), Some(setting)) = (told, setting) {
            let link = format!("the link a/b/link -> {}/outside in ", site.folder.path().display());
            assert!(told.starts_with("a/b/link/file is not found: ") && told.contains(&link), "{told}");
            assert!(told.contains(setting), "{told}");
        }
        let (told, explained) = ask("/a/b/link/other");
        assert_eq!((told, explained.is_some()), (None, setting.is_some()));
    }
}

/// A directory and a link that leads out swap their names as fast as they can, while a file in them is requested. The
/// result is the file inside or nothing, never the one outside.
#[test]
fn nothing_outside_is_found_while_names_are_swapped() {
    for symlinks in [Symlinks::Beneath, Symlinks::Refused] {
        let site = site_with(symlinks);
        site.write("dir/sub/file", PUBLIC);
        fs::create_dir_all(site.path("swap")).unwrap();
        symlink("../../outside", site.path("swap/link")).unwrap();
        fs::rename(site.path("dir/sub"), site.path("swap/dir")).unwrap();
        let (link, directory) = (site.path("swap/link"), site.path("swap/dir"));
        let stop = Stop::default();
        let (mut inside, mut not_found) = (0_u32, 0_u32);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.is_due() {
                    renameat_with(CWD, &link, CWD, &directory, RenameFlags::EXCHANGE).unwrap();
                }
            });
            let _stop_at_last = stop.when_done();
            // Until both were met often, at least; a scheduler that never lets us meet one of them ends it too.
            for _ in 0..200_000 {
                for blocking in [Blocking::Allowed, Blocking::Never] {
                    match site.ask("/swap/dir/file", blocking) {
                        Ok(Found::File(stored)) => {
                            assert_eq!(bytes_of(&stored.body(0, stored.len())), PUBLIC, "under {symlinks:?}");
                            inside += 1;
                        }
                        Ok(Found::Forbidden | Found::Missing) => not_found += 1,
                        Ok(Found::Failed(rustix::io::Errno::AGAIN)) | Err(_) => {}
                        other => panic!("{other:?}"),
                    }
                }
                if inside > 2_000 && not_found > 2_000 {
                    break;
                }
            }
        });
        assert!(inside > 0 && not_found > 0, "{inside} times inside, {not_found} times not found");
    }
}

/// The tree is the folder that was opened, not a later one of the same name.
#[test]
fn a_root_that_is_moved_stays_the_root() {
    let site = site_with(Symlinks::Beneath);
    site.write("file", PUBLIC);
    let root = site.folder.path().join("root");
    fs::rename(&root, site.folder.path().join("moved")).unwrap();
    symlink("outside", &root).unwrap();
    assert_eq!(site.content("/file"), PUBLIC);
}
