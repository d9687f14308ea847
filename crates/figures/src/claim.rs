//! Published claims, and whether they hold here.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A published claim and our result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// The statement, in our words.
    pub published: String,
    /// Our numbers.
    pub ours: String,
    /// Whether it holds here.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// Whether a claim holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", content = "because", rename_all = "kebab-case")]
pub enum Verdict {
    /// It holds.
    Holds,
    /// It does not, and why.
    DoesNotHold(String),
    /// It cannot be judged from what was measured, and why.
    Open(String),
}

impl Claim {
    /// A statement that holds or not; the reason is kept if it does not.
    pub fn new(published: &str, ours: String, holds: bool, because: &str) -> Self {
        let verdict = if holds { Verdict::Holds } else { Verdict::DoesNotHold(because.to_owned()) };
        Self { published: published.to_owned(), ours, verdict }
    }

    /// Whether it holds.
    pub fn holds(&self) -> bool {
        self.verdict == Verdict::Holds
    }
}

impl Verdict {
    /// The verdict in two or three words.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::DoesNotHold(_) => "does not",
            Self::Open(_) => "not judged",
        }
    }

    /// Why it does not hold or cannot be judged; empty if it holds or has no reason yet.
    pub fn reason(&self) -> &str {
        match self {
            Self::Holds => "",
            Self::DoesNotHold(because) | Self::Open(because) => because,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason() {
            "" => to.write_str(self.word()),
            because => write!(to, "{}, because {because}", self.word()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_gives_its_reason_unless_it_holds() {
        let held = Claim::new("four times", "4.5 times".into(), true, "unused");
        let failed = Claim::new("idle 1 %", "9 %".into(), false, "the disk is slower");
        let open = Verdict::Open("nginx is not installed".into());
        assert_eq!(held.verdict.to_string(), "holds");
        assert_eq!(failed.verdict.to_string(), "does not, because the disk is slower");
        assert_eq!(open.to_string(), "not judged, because nginx is not installed");
        assert!(held.holds() && !failed.holds());
    }
}
