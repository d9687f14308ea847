//! A line of an access log, of any format that is known here.

use super::access_log::{BadLine, LogEntry, parse_combined};
use super::json_log::parse_json;

/// Takes a line apart: common or combined format, or an object of JSON. It comes without its end of line.
///
/// # Errors
/// The first thing that does not fit.
pub fn parse_line(line: &[u8]) -> Result<LogEntry<'_>, BadLine> {
    if line.starts_with(b"{") { parse_json(line) } else { parse_combined(line) }
}
