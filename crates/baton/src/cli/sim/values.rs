//! Values of flags that several commands of the simulator have.

use baton_sim::model::NODES_MAX;

/// A number above 0.
pub(super) fn factor(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "expected a number")?;
    if number > 0.0 && number < 1e12 { Ok(number) } else { Err("expected a number above 0".into()) }
}

/// How many nodes or servers.
pub(super) fn nodes(text: &str) -> Result<usize, String> {
    let expected = || format!("expected a number from 1 to {NODES_MAX}");
    text.parse().ok().filter(|nodes| (1..=NODES_MAX).contains(nodes)).ok_or_else(expected)
}
