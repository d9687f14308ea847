//! Parameters of what is made rather than read, as text: `films=2000,alpha=0.8`.

use std::fmt;
use std::ops::RangeInclusive;

/// Numbers with names, each of which may be given.
#[derive(Debug)]
pub(crate) struct Parameters<'a> {
    example: &'static str,
    numbers: Vec<(&'static str, RangeInclusive<f64>, &'a mut f64)>,
}

/// An error in parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParametersError {
    fault: String,
    example: &'static str,
}

impl fmt::Display for ParametersError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; expected like {}", self.fault, self.example)
    }
}

impl std::error::Error for ParametersError {}

impl<'a> Parameters<'a> {
    /// None yet; errors show the example.
    pub(crate) fn new(example: &'static str) -> Self {
        Self { example, numbers: Vec::new() }
    }

    /// One more, within a range.
    pub(crate) fn number(
        mut self,
        name: &'static str,
        range: RangeInclusive<f64>,
        number: &'a mut f64,
    ) -> Self {
        self.numbers.push((name, range, number));
        self
    }

    /// Reads those that the text gives.
    pub(crate) fn read(mut self, text: &str) -> Result<(), ParametersError> {
        let example = self.example;
        let error = |fault| ParametersError { fault, example };
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let (key, value) = part.split_once('=').ok_or_else(|| error(format!("{part:?} has no value")))?;
            let known = self.numbers.iter_mut().find(|(name, ..)| *name == key);
            let (_, range, number) = known.ok_or_else(|| error(format!("there is no {key:?}")))?;
            let given = value.parse().ok().filter(|given| range.contains(given));
            **number = given.ok_or_else(|| error(format!("{key} cannot be {value:?}")))?;
        }
        Ok(())
    }
}
