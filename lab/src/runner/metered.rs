//! What meters read, as quantities of a cell: counts for each request, times and shares of the span.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::turn::Values;
use crate::meters::Reading;
use crate::quantity::Quantity;

/// Readings that are not here, each of which is told once.
#[derive(Debug, Default)]
pub(super) struct NotHere(Mutex<BTreeSet<Quantity>>);

impl NotHere {
    /// Adds what was read to the values of a cell.
    pub(super) fn or_tell(&self, readings: &[Reading], requests: u64, span: Duration, values: &mut Values) {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for Reading { quantity, per, value } in readings {
            match value {
                Ok(value) => drop(values.insert(*quantity, per.divide(*value, requests, span))),
                Err(why) if told.insert(*quantity) => eprintln!("{quantity}: not here: {why}"),
                Err(_) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meters::Per;

    #[test]
    fn counts_are_divided_by_requests_and_times_by_the_span() {
        let reading = |quantity, per, value: f64| Reading { quantity, per, value: Ok(value) };
        let readings = [
            reading(Quantity::UserUs, Per::RequestUs, 0.5),
            reading(Quantity::SystemCalls, Per::Request, 600.0),
            reading(Quantity::IoWait, Per::Second, 1.0),
            reading(Quantity::MemoryBytes, Per::Nothing, 7.0),
            Reading { quantity: Quantity::Cycles, per: Per::Request, value: Err("a virtual machine".into()) },
        ];
        let mut values = Values::new();
        NotHere::default().or_tell(&readings, 200, Duration::from_secs(4), &mut values);
        let expected = [
            (Quantity::UserUs, 2500.0),
            (Quantity::SystemCalls, 3.0),
            (Quantity::IoWait, 0.25),
            (Quantity::MemoryBytes, 7.0),
        ];
        assert_eq!(values, expected.into());
    }
}
