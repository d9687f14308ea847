//! Which part of a path names the program, and which part is for the program.

use baton_http::path_below;

/// A decoded absolute path, split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Script<'a> {
    /// `SCRIPT_NAME`: what names the program; empty for one that answers for all of a site.
    pub name: &'a [u8],
    /// `PATH_INFO`: the rest, empty or beginning with a slash.
    pub path_info: &'a [u8],
}

impl<'a> Script<'a> {
    /// Splits after the first name in `path` that ends with `extension` (`.php`): `/a.php/b` is the script `/a.php`
    /// with `/b`. `None` if there is no such name.
    ///
    /// The first one, so that `/upload/picture.jpg/x.php` means that very script, and `/a.php/b.php` means `/a.php`:
    /// the rest of a path never names another script. A name that consists of the extension is hidden, and no script.
    pub fn with_extension(path: &'a [u8], extension: &[u8]) -> Option<Self> {
        let mut start = 0;
        for segment in path.split(|byte| *byte == b'/') {
            let end = start + segment.len();
            if segment.len() > extension.len() && segment.ends_with(extension) {
                let (name, path_info) = path.split_at(end);
                return Some(Self { name, path_info });
            }
            start = end + 1;
        }
        None
    }

    /// Splits after the first name that ends with one of several extensions.
    pub fn first_of(path: &'a [u8], extensions: &[String]) -> Option<Self> {
        let scripts = extensions.iter().filter_map(|one| Self::with_extension(path, one.as_bytes()));
        scripts.min_by_key(|script| script.name.len())
    }

    /// Splits after `prefix`, the path of a route, as [`path_below`] does.
    pub fn below(path: &'a [u8], prefix: &'a [u8]) -> Option<Self> {
        let path_info = path_below(path, prefix)?;
        let slashes = prefix.iter().rev().take_while(|byte| **byte == b'/').count();
        Some(Self { name: &prefix[..prefix.len() - slashes], path_info })
    }
}
