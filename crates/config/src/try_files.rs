//! `try_files`: what may answer a path, in order, and what is done if nothing of it is there.

use baton_content::Candidate;
use baton_site::plan::Otherwise;
use baton_site::template::Template;

use super::kind::{Kind, Reading};
use super::known_variables::{Vocabulary, check_variables};
use super::raw::{Node, Value};
use super::schema::Schema;
use super::shown::Shown;
use super::template::TARGET;
use super::text::Text;

/// Candidates, and what is done without them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TryFiles {
    /// Names in the folder.
    pub candidates: Vec<Candidate>,
    /// What is done if none of them is there.
    pub otherwise: Otherwise,
}

/// An array of texts.
pub(crate) struct TryFilesKind;

impl Kind for TryFilesKind {
    type Value = TryFiles;

    const SHOWN: Shown = Shown::Whole;

    fn accepted(&self) -> String {
        "an array of candidates such as \"$path\", \"$path/\" or \"$path.html\", and behind them a target or a status: [\"$path\", \"$path/\", \"/index.php\"] or [\"$path\", \"=404\"]".into()
    }

    fn schema(&self) -> Schema {
        Schema::list_of(Schema::TEXT)
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<TryFiles> {
        let Value::Array(elements) = node.get_ref() else {
            return reading.mismatch(node, &self.accepted());
        };
        let Some((last, candidates)) = elements.split_last().filter(|(_, candidates)| !candidates.is_empty())
        else {
            reading.refuse(node.span(), "is too short", "expected a candidate, and what is done without it");
            return None;
        };
        let read: Vec<_> = candidates.iter().map(|element| candidate(element, reading)).collect();
        let otherwise = otherwise(last, reading)?;
        Some(TryFiles { candidates: read.into_iter().collect::<Option<_>>()?, otherwise })
    }

    fn write(&self, value: &TryFiles) -> toml::Value {
        let candidates = value.candidates.iter().map(Candidate::text);
        let last = match &value.otherwise {
            Otherwise::Rewrite(to) => to.text().to_owned(),
            Otherwise::Status(status) => format!("={status}"),
        };
        candidates.chain([last]).map(toml::Value::from).collect::<Vec<_>>().into()
    }
}

fn candidate(element: &Node, reading: &mut Reading<'_>) -> Option<Candidate> {
    let text = Text.read(element, reading)?;
    if text.starts_with('=') {
        reading.refuse(element.span(), "has a status in the middle", "what follows would never be tried");
        return None;
    }
    match Candidate::parse(&text) {
        Ok(candidate) => Some(candidate),
        Err(bad) => {
            let complaint =
                reading.complaint("has a candidate that is none").at(element.span(), bad.to_string());
            let is_of_nginx = text.starts_with("$uri");
            let complaint = match is_of_nginx {
                true => complaint.help("the path is `$path`; `$uri` is path and query"),
                false => complaint,
            };
            reading.complain(complaint);
            None
        }
    }
}

fn otherwise(last: &Node, reading: &mut Reading<'_>) -> Option<Otherwise> {
    let text = Text.read(last, reading)?;
    if let Some(status) = text.strip_prefix('=') {
        let status = status.parse().ok().filter(|status| (400..=599).contains(status));
        if status.is_none() {
            reading.refuse(last.span(), "has a bad status", "expected `=400` to `=599`");
        }
        return status.map(Otherwise::Status);
    }
    let to: Template = TARGET.read(last, reading)?;
    check_variables(to.variables(), Vocabulary::Target, None, Some(last.span()), reading);
    Some(Otherwise::Rewrite(to))
}
