//! Runs the matrix, and says all that failed at once.

use std::any::Any;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use crate::askers::Asker;
use crate::exchange::{Exchange, Patience};
use crate::kinds::Kind;
use crate::rows::{Duty, duty};
use crate::rules::Rule;
use crate::site::Stage;

/// A cell of the matrix that failed, over one protocol or several.
struct Failure {
    kind: Kind,
    /// `None`: the answer is of another kind, or there is none.
    rule: Option<Rule>,
    askers: Vec<Asker>,
    why: String,
}

/// Causes every kind of answer by every client, and checks these rules.
#[track_caller]
pub(crate) fn assert_obeyed(stage: &Stage, rules: &[Rule]) {
    let failures: Vec<_> = thread::scope(|scope| {
        let begin = |kind: Kind| {
            let named = thread::Builder::new().name(kind.words().to_owned());
            named.spawn_scoped(scope, move || of_kind(stage, kind, rules)).expect("a thread")
        };
        let runs: Vec<_> = Kind::ALL.into_iter().map(begin).collect();
        runs.into_iter().flat_map(|run| run.join().expect("no panic outside of an exchange")).collect()
    });
    let mut said = String::new();
    for failure in &failures {
        let rule = failure.rule.map_or("the answer", Rule::words);
        let askers: Vec<_> = failure.askers.iter().map(Asker::to_string).collect();
        let _ =
            writeln!(said, "{} × {rule} × HTTP/{}: {}", failure.kind.words(), askers.join(", "), failure.why);
    }
    let cells: usize = failures.iter().map(|failure| failure.askers.len()).sum();
    assert!(failures.is_empty(), "{cells} cells fail (kind × rule × protocols: expected, not came):\n{said}");
}

fn of_kind(stage: &Stage, kind: Kind, rules: &[Rule]) -> Vec<Failure> {
    let patience = Patience::new();
    // At once: an authority waits for its proof for seconds only.
    let exchanges = Asker::ALL.map(|asker| caught(|| Exchange::begin(stage, kind, asker, &patience)));
    let mut failures = Vec::new();
    for (asker, exchange) in Asker::ALL.into_iter().zip(exchanges) {
        let mut fail = |rule, why| note(&mut failures, kind, rule, asker, why);
        let exchange = match exchange {
            Ok(Some(exchange)) => exchange,
            Ok(None) => continue,
            Err(why) => {
                fail(None, format!("an answer, not: {why}"));
                continue;
            }
        };
        let (expected, status) = (kind.status(), exchange.response.status);
        if status != expected {
            fail(None, format!("status {expected}, not {status}"));
            continue;
        }
        for rule in rules.iter().filter(|rule| duty(kind, **rule) == Duty::Obeys) {
            if let Err(why) = caught(|| rule.check(&exchange)).unwrap_or_else(Err) {
                fail(Some(*rule), why);
            }
        }
    }
    failures
}

/// Notes a failure, beside the same with another client.
fn note(failures: &mut Vec<Failure>, kind: Kind, rule: Option<Rule>, asker: Asker, why: String) {
    match failures.iter_mut().find(|known| known.rule == rule && known.why == why) {
        Some(known) => known.askers.push(asker),
        None => failures.push(Failure { kind, rule, askers: vec![asker], why }),
    }
}

/// Runs it; the words of a panic are an error like any other.
fn caught<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|panic: Box<dyn Any + Send>| {
        let words = panic.downcast_ref::<String>().map(String::as_str);
        words.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic").to_owned()
    })
}
