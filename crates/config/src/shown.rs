//! What of a setting others than the operator may see, as in `baton bug-report`.

/// What may be shown of a setting's value.
#[derive(Clone, Copy, Debug)]
pub enum Shown {
    /// Nothing.
    Nothing,
    /// The names in its tables, not what they stand for.
    Names,
    /// The first of its strings: the program of a command, whose arguments may be passwords.
    Program,
    /// Everything, but for credentials and queries in URLs.
    Whole,
    /// The settings of its table, each as far as it says itself.
    Section(Settings),
    /// The settings of its table, each as far as it says itself, or any value that is no table.
    ValueOrSection(Settings),
}

/// The settings of a section, and what may be shown of each.
pub(crate) type Settings = fn() -> Vec<(&'static str, Shown)>;

impl Shown {
    /// For a setting that may be a table, or the value of one key of it.
    pub(crate) const fn or_value(self) -> Self {
        match self {
            Self::Section(settings) => Self::ValueOrSection(settings),
            other => other,
        }
    }
}
