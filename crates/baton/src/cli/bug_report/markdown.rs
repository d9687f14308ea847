//! The Markdown of a report.

/// A list of things and what they are.
pub(super) fn listed(lines: impl IntoIterator<Item = (&'static str, String)>) -> String {
    lines.into_iter().map(|(name, told)| format!("- {name}: {told}\n")).collect()
}

/// Text as it is, whatever backquotes it has.
pub(super) fn fenced(language: &str, text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat((longest + 1).max(3));
    format!("{fence}{language}\n{}\n{fence}\n", text.trim_end())
}
