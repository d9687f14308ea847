//! `error_pages` and `intercept`: files that are the bodies of errors, and whose errors.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::error::Complaint;
use super::kind::{Integer, Kind, ListOf, Reading};
use super::raw::{Node, Value};
use super::schema::Schema;
use super::shown::Shown;
use super::text::{FilePath, Text};

/// Completes the paths, and complains of those that cannot be sent. `base`: the folder to which they are relative; `None`: it
/// was refused. `is_script`: whether a file is a script, whose source must not be sent.
pub(crate) fn complete(
    pages: &mut BTreeMap<u16, PathBuf>,
    base: Option<&Path>,
    is_script: impl Fn(&Path) -> bool,
    place: &Range<usize>,
    reading: &mut Reading<'_>,
) {
    for (status, page) in pages {
        match base {
            Some(base) => *page = base.join(&page),
            None if page.is_relative() => continue,
            None => {}
        }
        if is_script(page) {
            let complaint = Complaint::new(format!("the page for status {status} is a script"));
            let complaint =
                complaint.at(place.clone(), format!("the source code of {} would be sent", page.display()));
            reading.complain(complaint.help("name a file that is sent as it is"));
        } else if let Err(error) = std::fs::File::open(&page) {
            let complaint = Complaint::new(format!("the page for status {status} cannot be read"));
            reading.complain(complaint.at(place.clone(), format!("{}: {error}", page.display())));
        }
    }
}

/// Which responses of an application or an origin give way to an error page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Intercept {
    /// None.
    #[default]
    Off,
    /// Responses for whose status there is a page.
    WithPage,
    /// Responses with one of these statuses.
    Statuses(Vec<u64>),
}

impl Intercept {
    /// The statuses, where there are pages for `known`.
    pub(crate) fn statuses(&self, known: impl Iterator<Item = u16>) -> Vec<u16> {
        match self {
            Self::Off => Vec::new(),
            Self::WithPage => known.filter(|status| *status != UNAUTHORIZED).collect(),
            Self::Statuses(statuses) => statuses.iter().map(|status| *status as u16).collect(),
        }
    }
}

/// `true`, or a list of statuses.
pub(crate) struct InterceptKind;

const STATUSES: ListOf<Integer> = ListOf(Integer(400, 599));

/// The response says how to log in: a page of the server would lock every user out.
const UNAUTHORIZED: u16 = 401;

impl Kind for InterceptKind {
    type Value = Intercept;

    const SHOWN: Shown = Shown::Whole;

    fn accepted(&self) -> String {
        "true, false, or an array of statuses from 400 to 599, but not 401".into()
    }

    fn schema(&self) -> Schema {
        Schema::either([Schema::BOOLEAN, STATUSES.schema()])
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<Intercept> {
        match reading.unquoted(node) {
            Value::Boolean(true) => Some(Intercept::WithPage),
            Value::Boolean(false) => Some(Intercept::Off),
            Value::Array(_) => {
                let statuses = STATUSES.read(node, reading)?;
                if statuses.contains(&u64::from(UNAUTHORIZED)) {
                    let label = "401 says how to log in, which a page cannot";
                    reading.refuse(node.span(), "cannot have 401", label);
                    return None;
                }
                Some(Intercept::Statuses(statuses))
            }
            _ => reading.mismatch(node, &self.accepted()),
        }
    }

    fn write(&self, value: &Intercept) -> toml::Value {
        match value {
            Intercept::Off => false.into(),
            Intercept::WithPage => true.into(),
            Intercept::Statuses(statuses) => STATUSES.write(statuses),
        }
    }
}

/// Files by status.
pub(crate) struct ErrorPages;

impl Kind for ErrorPages {
    type Value = BTreeMap<u16, PathBuf>;

    const SHOWN: Shown = Shown::Whole;

    fn accepted(&self) -> String {
        "a table of paths by status, 400 to 599: { 404 = \"404.html\" }".into()
    }

    fn schema(&self) -> Schema {
        Schema::table_of(Schema::TEXT)
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<BTreeMap<u16, PathBuf>> {
        let Value::Table(entries) = node.get_ref() else {
            return reading.mismatch(node, &self.accepted());
        };
        let mut pages = Some(BTreeMap::new());
        for (key, value) in entries {
            let status = key.get_ref().parse().ok().filter(|status| (400..=599).contains(status));
            if status.is_none() {
                reading.refuse(key.span(), "has a bad status", "expected 400 to 599");
            }
            let path = Text.read(value, reading);
            pages = pages.zip(status.zip(path)).map(|(mut pages, (status, path))| {
                pages.insert(status, Path::new(&path).to_owned());
                pages
            });
        }
        pages
    }

    fn write(&self, value: &BTreeMap<u16, PathBuf>) -> toml::Value {
        let page = |(status, path): (&u16, &PathBuf)| (status.to_string(), FilePath.write(path));
        toml::Value::Table(value.iter().map(page).collect())
    }
}
