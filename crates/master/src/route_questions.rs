//! Questions of operators about a request (`baton ctl cluster why`, `baton ctl cache`): one worker answers each.

use std::collections::BTreeMap;

use super::channel::ToWorker;
use super::control::{RouteQuestion, RouteTopic};
use super::management::Requester;
use super::workers::Workers;

/// Questions without an answer yet, by number.
#[derive(Debug, Default)]
pub(crate) struct Tickets {
    pending: BTreeMap<u64, Requester>,
    last: u64,
}

/// Questions to workers without an answer yet.
#[derive(Debug, Default)]
pub(crate) struct RouteQuestions(Tickets);

impl Tickets {
    /// The number of another question.
    pub(crate) fn open(&mut self, requester: Requester) -> u64 {
        self.last += 1;
        self.pending.insert(self.last, requester);
        self.last
    }

    /// There is an answer: who has asked.
    pub(crate) fn take(&mut self, ticket: u64) -> Option<Requester> {
        self.pending.remove(&ticket)
    }

    /// There will be no answers: who has asked.
    pub(crate) fn drain(&mut self) -> Vec<Requester> {
        std::mem::take(&mut self.pending).into_values().collect()
    }
}

impl RouteQuestions {
    /// Asks a worker about a request.
    ///
    /// # Errors
    /// No worker serves, or it cannot be asked.
    pub(crate) fn ask(
        &mut self,
        topic: RouteTopic,
        asked: RouteQuestion,
        requester: Requester,
        workers: &Workers,
    ) -> Result<(), String> {
        let worker = workers.serving().next().ok_or("no worker serves")?;
        let ticket = self.0.open(requester);
        workers.tell(worker, &ToWorker::Why { ticket, topic, asked }, &[]).map_err(|error| {
            self.0.take(ticket);
            format!("cannot ask worker {worker}: {error}")
        })
    }

    /// A worker has answered: who has asked.
    pub(crate) fn take(&mut self, ticket: u64) -> Option<Requester> {
        self.0.take(ticket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_finds_its_question_once() {
        let (workers, theirs) = Workers::for_test(1);
        let mut questions = RouteQuestions::default();
        let asked = |url: &str| RouteQuestion { url: url.into(), ..RouteQuestion::default() };
        questions.ask(RouteTopic::Node, asked("/a"), Requester::Control(1), &workers).unwrap();
        questions.ask(RouteTopic::Node, asked("/b"), Requester::Control(2), &workers).unwrap();
        assert_eq!(questions.take(2), Some(Requester::Control(2)));
        assert_eq!(questions.take(2), None);
        drop(theirs);
        let refusal =
            questions.ask(RouteTopic::Node, asked("/c"), Requester::Control(3), &workers).unwrap_err();
        assert!(refusal.contains("cannot ask worker 0"), "{refusal}");
        assert_eq!(questions.take(3), None);
    }
}
