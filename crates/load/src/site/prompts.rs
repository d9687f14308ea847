//! Prompts for language models: each begins with one of some long texts, by Zipf's law, and ends in words of its own.
//!
//! A server that has worked through such a beginning lately need not do it again.

use super::model::LoadSite;
use super::random::{SplitMix64, Weighted};
use crate::script::Script;
use crate::targets::LoadRequest;

pub(super) fn make(prefixes: usize, requests: usize, seed: u64) -> LoadSite {
    let mut random = SplitMix64(seed);
    let popularity = Weighted::zipf(prefixes);
    let prompt = |number| {
        let prefix = popularity.pick(&mut random);
        let beginning = format!("Instructions {prefix}. ").repeat(PREFIX_REPEATED);
        LoadRequest::page("/v1/chat", None).posting(format!(
            r#"{{"model":"m","messages":[{{"content":"{beginning}"}},{{"content":"Question {number}"}}]}}"#
        ))
    };
    let script = Script::of_single_requests((0..requests).map(prompt).collect());
    LoadSite::new(format!("prompts with {prefixes} beginnings"), Vec::new(), script)
}

/// Makes about a kilobyte.
const PREFIX_REPEATED: usize = 60;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn prompts_differ_and_their_beginnings_repeat() {
        let site = make(10, 500, 1);
        let bodies: BTreeSet<_> = site.script.requests().iter().map(|request| &request.body).collect();
        assert_eq!(bodies.len(), 500);
        let beginning = |body: &&String| body.split("},").next().map(str::to_owned);
        assert_eq!(bodies.iter().map(beginning).collect::<BTreeSet<_>>().len(), 10);
    }
}
