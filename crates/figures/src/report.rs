//! What a run has to tell: words, figures, claims and tables.

use serde::{Deserialize, Serialize};

use crate::claim::Claim;
use crate::figure::Figure;
use crate::table::Table;

/// What a run has to tell.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Report {
    /// The name as on the command line.
    pub name: String,
    /// A line.
    pub title: String,
    /// Its introduction, in paragraphs.
    #[serde(default)]
    pub words: Vec<String>,
    /// The figures.
    #[serde(default)]
    pub figures: Vec<Figure>,
    /// Published claims and our results.
    #[serde(default)]
    pub claims: Vec<Claim>,
    /// Numbers that are in no figure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<Table>,
}
