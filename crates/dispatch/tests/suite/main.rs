//! The policies from outside, as a front-end uses them.

mod allocations;
mod driver;
mod examples;
mod examples_of_locality;
mod fitted;
mod homes;
mod membership;
mod migration;
mod migration_laws;
mod properties;
