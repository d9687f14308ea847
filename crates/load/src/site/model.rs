//! What a site is: files, the visitors that ask for them, and statistics of both.

use std::fmt;
use std::io;
use std::path::Path;

use super::statistics::{self, Statistic};
use crate::script::Script;
use crate::text;

/// A site and its visitors.
#[derive(Clone, Debug)]
pub struct LoadSite {
    /// What to call it in figures.
    pub name: String,
    /// What lies below the document root.
    pub files: Vec<SiteFile>,
    /// Who asks for what.
    pub script: Script,
    /// What it is like, beside what its source prints.
    pub statistics: Vec<Statistic>,
}

/// One file of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteFile {
    /// Its path on the server, and below the document root.
    pub path: String,
    /// What is in it.
    pub content: SiteContent,
}

/// What is in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SiteContent {
    /// So many bytes of [text](crate::files::text).
    Text(u64),
    /// A program in PHP.
    Program(&'static str),
}

impl LoadSite {
    /// With the statistics that every script has.
    pub(super) fn new(name: impl Into<String>, files: Vec<SiteFile>, script: Script) -> Self {
        let statistics = statistics::of_script(&script);
        Self { name: name.into(), files, script, statistics }
    }

    /// With these statistics before the others.
    pub(super) fn with(mut self, statistics: Vec<Statistic>) -> Self {
        self.statistics.splice(..0, statistics);
        self
    }

    /// Writes files below `root` that are missing or have another length. Existing ones are kept, so a second run costs
    /// nothing.
    ///
    /// # Errors
    /// What creating and writing files may say, with the name of the file.
    pub fn write(&self, root: &Path) -> io::Result<()> {
        // A site without files has a root, too.
        std::fs::create_dir_all(root)?;
        for file in &self.files {
            match file.content {
                SiteContent::Text(bytes) => text::write_one(root, &file.path, bytes)?,
                SiteContent::Program(text) => text::write_text(root, &file.path, text)?,
            }
        }
        Ok(())
    }

    /// Bytes of all files: what a memory must hold for a server that reads each once.
    pub fn bytes(&self) -> u64 {
        let bytes = |file: &SiteFile| match file.content {
            SiteContent::Text(bytes) => bytes,
            SiteContent::Program(text) => text.len() as u64,
        };
        self.files.iter().map(bytes).sum()
    }
}

impl SiteFile {
    pub(super) fn text(path: impl Into<String>, bytes: u64) -> Self {
        Self { path: path.into(), content: SiteContent::Text(bytes) }
    }
}

impl fmt::Display for LoadSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.name)?;
        for Statistic { what, published, ours } in &self.statistics {
            write!(f, "  {what:<52} {ours:>12.1}")?;
            match published {
                Some(published) => writeln!(f, "   (source: {published})")?,
                None => writeln!(f)?,
            }
        }
        Ok(())
    }
}
