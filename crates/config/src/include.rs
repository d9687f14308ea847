//! A configuration file, and the files that it includes: `include = ["sites/*.toml", "common.toml"]`.
//!
//! An included file has the same form. Its settings are added to those of the file that includes it, its sites follow
//! the sites that are there. Names of files may be globs, as those of routes. Files are read in the order of the list,
//! those of one glob in the order of their names, and each once.

use std::io;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use baton_pattern::Pattern;

use super::error::{Complaint, ConfigError, Source};
use super::raw::{Entries, Node, RawConfig, Value, parse_table};
use super::variables::Variables;

/// More files than a server has sites, and few enough to be read at once.
const FILES_MAX: usize = 1_000;
/// Files that include each other deeper than this are not understood by those who keep them.
const DEPTH_MAX: usize = 8;
/// Bytes of all files together: they are kept while a configuration is checked.
const BYTES_MAX: usize = 64 << 20;
/// The key.
pub(crate) const INCLUDE: &str = "include";

impl RawConfig {
    /// Reads a file and the files that it includes, and puts variables into their strings.
    ///
    /// # Errors
    /// All that is wrong: files that cannot be read or are not TOML, variables that are not set, settings given twice.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| {
            let complaint = Complaint::new(format!("cannot read {name}: {error}"));
            let complaint = match error.kind() {
                io::ErrorKind::NotFound => {
                    complaint.help("`baton config --default` prints a configuration to start from")
                }
                io::ErrorKind::PermissionDenied => {
                    complaint.help("the file must be readable by the user who starts baton")
                }
                _ => complaint,
            };
            ConfigError::new(Source::new(name.clone(), String::new()), vec![complaint])
        })?;
        // Absolute: the working directory may change before a reload.
        let file = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let base = file.parent().unwrap_or(Path::new("/")).to_owned();
        let mut files = Files {
            read: vec![identity(&file)],
            open: vec![identity(&file)],
            source: Source::new(name, text.clone()),
            from_variables: Vec::new(),
            complaints: Vec::new(),
        };
        let shown = Path::new(&files.source.name).parent().unwrap_or(Path::new("")).to_owned();
        let tree = files.parse(&text, 0, &Folder { path: base.clone(), shown });
        let Files { source, from_variables, complaints, .. } = files;
        if complaints.is_empty() {
            Ok(Self { source, base, tree, from_variables })
        } else {
            Err(ConfigError::new(source, complaints))
        }
    }
}

/// The files of a configuration, as they are read.
struct Files {
    /// Every file that was read.
    read: Vec<PathBuf>,
    /// The file that is being read, and those that include it.
    open: Vec<PathBuf>,
    source: Source,
    from_variables: Vec<Range<usize>>,
    complaints: Vec<Complaint>,
}

/// A folder as it is opened, and as messages call it.
struct Folder {
    path: PathBuf,
    shown: PathBuf,
}

impl Files {
    /// Parses the text of a file that begins at `place` of the source, and reads what it includes.
    fn parse(&mut self, text: &str, place: usize, folder: &Folder) -> Entries {
        let (mut tree, complaints) = parse_table(text, place);
        if !complaints.is_empty() {
            self.complaints.extend(complaints);
            return Entries::new();
        }
        let known = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()).collect();
        let lookup = |name: &str| std::env::var(name);
        let mut variables = Variables::new(&self.source, &lookup, known);
        variables.put_into(&mut tree);
        let Variables { whole, complaints, .. } = variables;
        self.from_variables.extend(whole);
        self.complaints.extend(complaints);
        if let Some(node) = tree.remove(INCLUDE) {
            self.include(&node, folder, &mut tree);
        }
        tree
    }

    fn include(&mut self, node: &Node, folder: &Folder, tree: &mut Entries) {
        let Value::Array(patterns) = node.get_ref() else {
            let problem = format!("`include` cannot be {}", node.get_ref().type_name());
            let label = "expected an array of paths and patterns: [\"sites/*.toml\"]";
            self.complaints.push(Complaint::new(problem).at(node.span(), label));
            return;
        };
        for pattern in patterns {
            let span = pattern.span();
            match pattern.get_ref().as_str().filter(|text| !text.is_empty() && !text.contains('\0')) {
                Some(text) => match files_of(&folder.path, text) {
                    Ok(files) => {
                        for file in files {
                            let shown = shown_below(folder, &file);
                            self.read_included(&file, &shown, &span, tree);
                        }
                    }
                    Err(why) => self.refuse(&span, why),
                },
                None => self.refuse(&span, "expected a path, or a pattern like \"sites/*.toml\"".into()),
            }
        }
    }

    fn read_included(&mut self, path: &Path, shown: &Path, span: &Range<usize>, tree: &mut Entries) {
        let identity = identity(path);
        if self.open.contains(&identity) {
            return self.refuse(span, format!("{}: a file cannot include itself", shown.display()));
        }
        if self.read.contains(&identity) {
            return;
        }
        if self.open.len() >= DEPTH_MAX {
            return self.refuse(span, format!("files may include each other {DEPTH_MAX} deep"));
        }
        if self.read.len() > FILES_MAX {
            return self.refuse(span, format!("no more than {FILES_MAX} files can be included"));
        }
        self.read.push(identity.clone());
        let text = match std::fs::read_to_string(path) {
            Ok(text) if self.source.text.len() + text.len() <= BYTES_MAX => text,
            Ok(_) => {
                let mib = BYTES_MAX >> 20;
                return self.refuse(span, format!("with {} there are more than {mib} MiB", shown.display()));
            }
            Err(error) => return self.refuse(span, format!("{}: {error}", shown.display())),
        };
        let parent = |path: &Path| path.parent().unwrap_or(Path::new("/")).to_owned();
        let folder = Folder { path: parent(path), shown: parent(shown) };
        let place = self.source.include(shown.display().to_string(), folder.path.clone(), &text);
        self.open.push(identity);
        let included = self.parse(&text, place, &folder);
        self.open.pop();
        self.merge(tree, included, "");
    }

    /// Adds settings to those that are there. Sites are added at the end; anything else may be given once.
    fn merge(&mut self, tree: &mut Entries, more: Entries, section: &str) {
        for (key, node) in more {
            let name = match section {
                "" => key.get_ref().clone(),
                section => format!("{section}.{}", key.get_ref()),
            };
            let Some(known) = tree.get_mut(key.get_ref().as_str()) else {
                tree.insert(key, node);
                continue;
            };
            let place = known.span();
            match (known.get_mut(), node.into_inner()) {
                (Value::Table(known), Value::Table(more)) => self.merge(known, more, &name),
                (Value::Array(known), Value::Array(more)) if name == "site" => known.extend(more),
                _ => {
                    let complaint = Complaint::new(format!("`{name}` is given twice"))
                        .at(key.span(), "given here as well")
                        .at(place, "is there already");
                    self.complaints.push(complaint);
                }
            }
        }
    }

    fn refuse(&mut self, span: &Range<usize>, why: String) {
        self.complaints.push(Complaint::new("`include` names what cannot be read").at(span.clone(), why));
    }
}

/// A path that is the same for one file under several names, as far as the file is there.
fn identity(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// How messages call a file: relative to the folder from which baton was started, if the first file is.
fn shown_below(folder: &Folder, file: &Path) -> PathBuf {
    file.strip_prefix(&folder.path).map_or_else(|_| file.to_owned(), |below| folder.shown.join(below))
}

/// The files that a pattern names: a file, all `.toml` files of a folder, or those whose names match.
fn files_of(base: &Path, pattern: &str) -> Result<Vec<PathBuf>, String> {
    // Collects components, so that messages show `sites/a.toml` for `./sites/a.toml`.
    let path: PathBuf = base.join(pattern).components().collect();
    let is_pattern = |text: &str| text.contains(['*', '?', '[']);
    let (folder, name) = pattern.trim_end_matches('/').rsplit_once('/').unwrap_or(("", pattern));
    if is_pattern(folder) {
        return Err("`*`, `?` and `[` can only be in the name of the file, not in its folder".into());
    }
    if is_pattern(name) {
        return matching(path.parent().unwrap_or(Path::new("/")), name);
    }
    if path.is_dir() { matching(&path, "*.toml") } else { Ok(vec![path]) }
}

/// The files of a folder whose names match, in order. Names that begin with a dot are left out, as a shell does.
fn matching(folder: &Path, glob: &str) -> Result<Vec<PathBuf>, String> {
    let pattern = Pattern::glob(&format!("/{glob}")).map_err(|bad| bad.to_string())?;
    let failed = |error: io::Error| format!("{}: {error}", folder.display());
    let mut files = Vec::new();
    for entry in folder.read_dir().map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let is_hidden = name.as_bytes().starts_with(b".") && !glob.starts_with('.');
        let is_named = pattern.matches(&[b"/", name.as_bytes()].concat());
        if !is_hidden && is_named && !folder.join(&name).is_dir() {
            files.push(folder.join(name));
        }
    }
    files.sort();
    Ok(files)
}
