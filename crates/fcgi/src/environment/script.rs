//! Which part of a path names the program, and which part is for the program.

/// A decoded absolute path, split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Script<'a> {
    /// `SCRIPT_NAME`: what names the program; empty for one that answers for all of a site.
    pub name: &'a [u8],
    /// `PATH_INFO`: the rest, empty or beginning with a slash.
    pub path_info: &'a [u8],
}

impl<'a> Script<'a> {
    /// Splits behind the first name in `path` that ends with `extension` (`.php`): `/a.php/b` is the script
    /// `/a.php` with `/b`. `None` if there is no such name.
    ///
    /// The first one, so that `/upload/picture.jpg/x.php` asks for a script of that very name, and `/a.php/b.php`
    /// for `/a.php`: what is behind a script can never name another. A name that is nothing but the extension
    /// is hidden, and no script.
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

    /// Splits behind `prefix`, the path of a route: `/app/` or `/app` leave `/b` of `/app/b`. Of `path`, the slash in
    /// front may be missing, and several count as one: what an application is told is as the client has meant it, and
    /// still belongs to the route. `None` if `path` is not below it.
    pub fn below(path: &'a [u8], prefix: &'a [u8]) -> Option<Self> {
        let mut rest = path;
        for name in prefix.split(|byte| *byte == b'/').filter(|name| !name.is_empty()) {
            let slashes = rest.iter().take_while(|byte| **byte == b'/').count();
            rest = rest[slashes..].strip_prefix(name).filter(|rest| matches!(rest, [] | [b'/', ..]))?;
        }
        let slashes = prefix.iter().rev().take_while(|byte| **byte == b'/').count();
        Some(Self { name: &prefix[..prefix.len() - slashes], path_info: rest })
    }
}
