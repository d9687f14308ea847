//! Every kind of answer obeys every rule: a matrix of what the server answers and what holds for all of it.
//!
//! ```text
//!   Kind × Rule ──► rows: obeys, or is exempt for a reason ──► docs/responses.md
//!        × Asker ──► Exchange with a real server ──► Rule::check ──► all failures of a run in one message
//! ```
//!
//! A kind or a rule without a row does not compile. Rules are about exchanges, which know no architecture: one is enough.

#[path = "../common/applications.rs"]
mod applications;
#[path = "../../../acme/tests/pebble/authority.rs"]
mod authority;
#[path = "../common/mod.rs"]
mod common;
#[path = "../common/origin.rs"]
mod origin;

mod askers;
mod backends;
mod declared;
mod documents;
mod exchange;
mod kinds;
mod page;
mod proof;
mod rows;
mod rules;
mod run;
mod site;

/// Where the suite of certificate authorities looks for ports.
use common::port;

use rules::Rule;
use site::Stage;

/// Goal: what holds for answers holds for each kind of them, over each version of HTTP. Method: real applications, origins
/// and peers cause each kind of answer; their own fields would break the rules if the server passed them on.
#[test]
fn every_kind_of_answer_obeys_every_rule() {
    run::assert_obeyed(&Stage::start(true), &Rule::ALL);
}

/// Goal: `server_header = false` holds for each kind of answer.
#[test]
fn no_kind_of_answer_names_the_server_where_it_must_not() {
    run::assert_obeyed(&Stage::start(false), &[Rule::Server]);
}
