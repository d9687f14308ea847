//! What is served: files on a disk, and the requests for them. A mix that does not fit the memory, cold files, and a few that
//! stay in memory are sequences of a site.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::{linked, page};
use crate::experiment::{Ask, OwnSite, SEQUENCES, SiteText, ability_of};
use crate::files::{FIXED, write_all, write_one};
use crate::load::LoadRequest;
use crate::load::Script;
use crate::load::site::SiteKind;
use crate::mix::{self, MixFile};
use crate::servers::Ability;

/// A site, which may be smaller than in the file.
#[derive(Clone, Debug)]
pub(super) struct Site {
    own: OwnSite,
    /// Requests after which a sequence repeats itself.
    length: usize,
    /// A site after a source, with its script.
    pub(super) made: Option<baton_load::site::LoadSite>,
}

impl Site {
    /// `is_tiny`: just enough to see that it works.
    ///
    /// # Errors
    /// If a number makes no site, or a log cannot be read.
    pub(super) fn new(text: &SiteText, is_tiny: bool) -> Result<Self> {
        let length = if is_tiny { TINY_REQUESTS } else { MIX_LENGTH };
        let (own, made) = match text {
            SiteText::Own(OwnSite::Mix { directories }) if is_tiny => {
                (OwnSite::Mix { directories: *directories.min(&TINY_DIRECTORIES) }, None)
            }
            SiteText::Own(own) => (own.clone(), None),
            SiteText::Made(kind) if is_tiny => (OwnSite::Fixed, Some(tiny(kind.clone()).make()?)),
            SiteText::Made(kind) => (OwnSite::Fixed, Some(kind.make()?)),
        };
        Ok(Self { own, length, made })
    }

    /// Of the SPECweb99-like set, 5.1 MB each.
    fn directories(&self) -> usize {
        if let OwnSite::Mix { directories } = self.own { directories } else { 0 }
    }

    /// Who asks for what, in sessions.
    ///
    /// # Errors
    /// The site has none.
    pub(super) fn script(&self) -> Result<&Script> {
        let made = self
            .made
            .as_ref()
            .context("this site has no sessions: `kind = \"specweb99\"` and others have")?;
        Ok(&made.script)
    }

    /// Bytes of all files.
    pub(super) fn bytes(&self) -> u64 {
        if let Some(made) = &self.made {
            return made.bytes();
        }
        let fixed: u64 = FIXED.iter().map(|(_, bytes)| bytes).sum();
        MixFile::all(self.directories()).map(MixFile::bytes).sum::<u64>()
            + RESIDENT_FILES as u64 * RESIDENT_BYTES
            + fixed
    }

    /// Writes all files. PHP finds a script that puts one of them out.
    pub(super) fn write(&self, root: &Path) -> Result<()> {
        if let Some(made) = &self.made {
            return Ok(made.write(root)?);
        }
        if matches!(self.own, OwnSite::Linked) {
            return linked::write(root);
        }
        write_all(root, self.directories())?;
        for kilobytes in PHP_KILOBYTES {
            write_one(root, &format!("/{kilobytes}k.html"), kilobytes << 10)?;
        }
        for number in 0..RESIDENT_FILES {
            write_one(root, &resident_path(number), RESIDENT_BYTES)?;
        }
        if matches!(self.own, OwnSite::Page) {
            fs::write(root.join(PAGE.trim_start_matches('/')), page::text())?;
        }
        fs::write(root.join("upload.php"), include_str!("upload.php")).context("upload.php")?;
        fs::write(root.join("file.php"), include_str!("file.php")).context("file.php")
    }

    /// The requests; each turn begins at another place of a sequence.
    pub(super) fn requests(&self, ask: &Ask, turn: usize) -> Result<Vec<LoadRequest>> {
        match ask {
            Ask::One(name) if name == "mix" => Ok(self.mix(turn)),
            Ask::One(name) if name == "cold" => Ok(self.cold(turn)),
            Ask::One(name) if name == "resident" => Ok(resident()),
            Ask::One(name) if name == "script" => self.in_script(f64::INFINITY, turn),
            _ => ask.paths().into_iter().map(|path| self.of_path(path)).collect(),
        }
    }

    /// The requests of the script without its sessions, from the beginning until their bodies are so large together.
    pub(super) fn in_script(&self, set_mib: f64, turn: usize) -> Result<Vec<LoadRequest>> {
        let script = self.script()?;
        let mut is_new = vec![true; script.requests().len()];
        let mut left = set_mib * MIB;
        let mut requests = Vec::new();
        for step in script.steps().iter().take(self.length) {
            let request = &script.requests()[step.request as usize];
            if std::mem::take(&mut is_new[step.request as usize]) {
                left -= request.bytes.unwrap_or(0) as f64;
            }
            if left < 0.0 && !requests.is_empty() {
                break;
            }
            requests.push(request.clone());
        }
        let begin = turn * MIX_STEP % requests.len();
        requests.rotate_left(begin);
        Ok(requests)
    }

    /// What a server must be able to do for the script.
    pub(super) fn needs(&self) -> BTreeSet<Ability> {
        let requests = self.made.iter().flat_map(|made| made.script.requests());
        requests.map(|request| ability_of(&request.path)).collect()
    }

    /// The request for a path, which the script may know.
    fn of_path(&self, path: &str) -> Result<LoadRequest> {
        let mut known = self.made.iter().flat_map(|made| made.script.requests());
        known.find(|request| request.path == path).cloned().map_or_else(|| of_path(path), Ok)
    }

    /// The SPECweb99-like mix; each turn asks for another part of an endless sequence.
    fn mix(&self, turn: usize) -> Vec<LoadRequest> {
        let mut sequence = mix::sequence(self.directories(), self.length);
        sequence.rotate_left(turn * MIX_STEP % self.length);
        sequence.into_iter().map(of_file).collect()
    }

    /// All files in turn, in a pseudo-random order: with less memory than content, each requested file has been evicted.
    fn cold(&self, turn: usize) -> Vec<LoadRequest> {
        let files: Vec<MixFile> = MixFile::all(self.directories()).collect();
        // A number without a common factor with the number of files steps through all of them.
        let step = (1..).map(|more| files.len() * 3 / 8 + more).find(|step| gcd(*step, files.len()) == 1);
        let step = step.unwrap_or(1);
        let mut order: Vec<MixFile> =
            (0..files.len()).map(|index| files[index * step % files.len()]).collect();
        let begin = turn * files.len() * 5 / 13 % files.len();
        order.rotate_left(begin);
        order.into_iter().map(of_file).collect()
    }
}

/// The same site with a small script.
fn tiny(mut kind: SiteKind) -> SiteKind {
    match &mut kind {
        SiteKind::Specweb99 { directories, requests, .. } => {
            (*directories, *requests) =
                ((*directories).min(TINY_DIRECTORIES), (*requests).min(TINY_REQUESTS));
        }
        SiteKind::Specweb2005 { requests, .. }
        | SiteKind::Surge { requests, .. }
        | SiteKind::Prompts { requests, .. } => {
            *requests = (*requests).min(TINY_REQUESTS);
        }
        SiteKind::Media { films, sessions, .. } => {
            (*films, *sessions) = ((*films).min(TINY_FILMS), (*sessions).min(TINY_REQUESTS));
        }
        SiteKind::Log { set_mib, .. } | SiteKind::Published { set_mib, .. } => {
            *set_mib = Some(set_mib.unwrap_or(TINY_MIB).min(TINY_MIB));
        }
        SiteKind::Sizes { .. } | SiteKind::Compute { .. } => {}
    }
    kind
}

/// Small files that are asked for all the time.
fn resident() -> Vec<LoadRequest> {
    (0..RESIDENT_FILES).map(|number| LoadRequest::file(resident_path(number), RESIDENT_BYTES)).collect()
}

/// The request for a path. Its length is known if it is a file of fixed size, or says so in its query.
pub(super) fn of_path(path: &str) -> Result<LoadRequest> {
    if !path.starts_with('/') {
        bail!("`{path}` is neither a path nor one of {}", SEQUENCES.join(", "));
    }
    if let Some((_, bytes)) = FIXED.iter().find(|(fixed, _)| *fixed == path) {
        return Ok(LoadRequest::file(path, *bytes));
    }
    let passed = FIXED.iter().find(|(fixed, _)| path.strip_suffix(fixed).is_some());
    let bytes = passed.map(|(_, bytes)| *bytes).or_else(|| asked_bytes(path));
    Ok(LoadRequest::page(path, bytes))
}

/// The length that a query asks our programs for.
fn asked_bytes(path: &str) -> Option<u64> {
    path.split_once('?')?.1.split('&').find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let value: u64 = value.parse().ok()?;
        match name {
            "bytes" | "in-place" => Some(value),
            "kb" => Some(value << 10),
            _ => None,
        }
    })
}

fn of_file(file: MixFile) -> LoadRequest {
    LoadRequest::file(file.path(), file.bytes())
}

fn resident_path(number: usize) -> String {
    format!("/resident/{number:02}.html")
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Files that a script of PHP puts out.
const PHP_KILOBYTES: [u64; 4] = [10, 60, 200, 1024];
const TINY_DIRECTORIES: usize = 2;
const TINY_REQUESTS: usize = 1000;
const TINY_FILMS: usize = 4;
const TINY_MIB: f64 = 10.0;
const MIB: f64 = 1_048_576.0;
const PAGE: &str = "/page.html";
const RESIDENT_FILES: usize = 20;
const RESIDENT_BYTES: u64 = 4096;
/// Requests after which the mix repeats itself: so long that the rare large files come as often as they should.
const MIX_LENGTH: usize = 200_000;
/// Between the beginnings of two turns.
const MIX_STEP: usize = 34_567;

#[cfg(test)]
mod tests {
    use super::*;

    fn cold_site(directories: usize) -> Site {
        Site { own: OwnSite::Mix { directories }, length: MIX_LENGTH, made: None }
    }

    fn cold(directories: usize, turn: usize) -> Vec<LoadRequest> {
        cold_site(directories).cold(turn)
    }

    #[test]
    fn cold_files_are_asked_for_once_before_any_is_asked_for_twice() {
        for directories in [1, 7, 100] {
            let mut paths: Vec<String> =
                cold(directories, 3).into_iter().map(|request| request.path).collect();
            paths.sort();
            paths.dedup();
            assert_eq!(paths.len(), directories * 36);
        }
    }

    #[test]
    fn the_beginning_of_a_script_asks_for_its_set_and_no_more() {
        let kind = SiteKind::Sizes { bytes: vec![1 << 20, 2 << 20, 3 << 20] };
        let site = Site::new(&SiteText::Made(kind), false).unwrap();
        let count = |mib| site.in_script(mib, 0).unwrap().len();
        assert_eq!([0.5, 1.0, 3.5, f64::INFINITY].map(count), [1, 1, 2, 3]);
        assert_eq!(site.in_script(9.0, 1).unwrap()[0].path, "/sizes/2097152", "turns begin elsewhere");
        assert!(cold_site(1).in_script(9.0, 0).is_err(), "a site of the lab has no script");
    }

    #[test]
    fn neighbours_on_the_disk_are_not_neighbours_in_the_order() {
        let cold = cold(10, 0);
        let near = cold.windows(2).filter(|pair| pair[0].path[..18] == pair[1].path[..18]).count();
        assert_eq!(near, 0, "files of one directory one after the other");
    }

    #[test]
    fn lengths_are_known_of_files_and_of_what_names_them() {
        let bytes = |path: &str| of_path(path).unwrap().bytes;
        assert_eq!(bytes("/16k.html"), Some(16 << 10));
        assert_eq!(bytes("/hit/1m.html"), Some(1 << 20));
        assert_eq!(bytes("/app/ad?in-place=32768"), Some(32_768));
        assert_eq!(bytes("/file.php?kb=60"), Some(60 << 10));
        assert_eq!(bytes("/shop.php?page=cart&user=7&bytes=900"), Some(900));
        assert_eq!(bytes("/page.html"), None);
        assert!(of_path("mixed").is_err());
    }
}
