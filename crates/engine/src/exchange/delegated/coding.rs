//! A response whose body is coded as it passes.

use baton_buf::Aggregate;
use baton_encode::{Verdict, code, judge, vary_on_coding};
use baton_http::Method;
use baton_http::origin::ResponseHead;

use super::{Delegated, Progress, Reaction, TOO_SHORT, end_short};
use crate::exchange::coder::{Coder, CoderError};
use crate::exchange::env::{Env, Wants};
use crate::exchange::record::Record;
use crate::log::Outcome;
use crate::metrics::Tally;

impl Delegated {
    /// Begins to code a response, if it is coded for this client.
    pub(super) fn begin_coding(
        &mut self,
        env: &mut Env<'_>,
        head: &mut ResponseHead,
        body: &mut Aggregate,
        whole: &mut Option<u64>,
    ) {
        let Some(rules) = &self.origin.delegate.compress else { return };
        let request = self.origin.head.get();
        let declared = head.content_length();
        let verdict = judge(rules, &request, head, *whole);
        if verdict != Verdict::Never {
            vary_on_coding(head);
        }
        let Verdict::Coded(coding) = verdict else { return };
        if request.method == Method::Head {
            code(head, coding);
            return;
        }
        let tally = &mut env.ctx.tally;
        let Some(mut coder) = Coder::new(coding, declared, tally) else { return };
        code(head, coding);
        coder.take(std::mem::take(body));
        match whole {
            // A head that is not sent yet can say how long the body has become.
            Some(length) if coder.can_finish() => {
                if let Ok(coded) = coder.finish(tally) {
                    (*length, *body) = (coded.len(), coded);
                    return;
                }
            }
            _ => *body = coder.code(tally).unwrap_or_default(),
        }
        // What has failed fails again behind the head.
        *whole = None;
        self.coder = Some(coder);
    }

    /// Codes a part of what has come; `None`: there is nothing to code, and the next event is needed.
    pub(super) fn advance_coder(&mut self, env: &mut Env<'_>, record: &mut Record) -> Option<Wants> {
        let coder = self.coder.as_mut()?;
        let takes_turn = coder.takes_turn();
        let reaction = match &self.progress {
            _ if takes_turn => Reaction::More,
            Progress::Finishing { .. } if coder.can_finish() => self.finish_coded(env, record),
            _ if coder.has_pending() => self.send_coded(env, record, Coder::code),
            _ => return None,
        };
        // What it has made is sent first. Meanwhile the gateway may have got something.
        self.quiet = false;
        Some(if matches!(reaction, Reaction::More) { Wants::Turn } else { Wants::Nothing })
    }

    /// Lets the client decode all that has come.
    pub(super) fn flush_coder(&mut self, env: &mut Env<'_>, record: &mut Record) -> Reaction {
        match &self.coder {
            Some(coder) if !coder.has_pending() => self.send_coded(env, record, Coder::flush),
            _ => Reaction::More,
        }
    }

    /// Sends what the coder has made, or cuts the response short.
    pub(super) fn send_coded(
        &mut self,
        env: &mut Env<'_>,
        record: &mut Record,
        make: impl FnOnce(&mut Coder, &mut Tally) -> Result<Aggregate, CoderError>,
    ) -> Reaction {
        let Some(coder) = &mut self.coder else { return Reaction::More };
        match make(coder, &mut env.ctx.tally) {
            Ok(coded) => {
                env.reply.send_part(coded);
                Reaction::More
            }
            Err(error) => self.fail_to_code(env, &error, record),
        }
    }

    /// The body is complete, and its rest can be coded in this turn.
    pub(super) fn finish_coded(&mut self, env: &mut Env<'_>, record: &mut Record) -> Reaction {
        let Some(mut coder) = self.coder.take() else { return Reaction::More };
        match coder.finish(&mut env.ctx.tally) {
            Ok(coded) => env.reply.send_part(coded),
            Err(error) => return self.fail_to_code(env, &error, record),
        }
        let progress = std::mem::replace(&mut self.progress, Progress::Sending);
        let trailers = if let Progress::Finishing { trailers } = progress { trailers } else { None };
        self.end_reply(env, trailers.as_ref(), record)
    }

    fn fail_to_code(&self, env: &mut Env<'_>, error: &CoderError, record: &mut Record) -> Reaction {
        let outcome = match error {
            CoderError::TooShort => {
                self.origin.remark(env.ctx, format_args!("{TOO_SHORT}"));
                self.origin.failed()
            }
            CoderError::Failed => {
                self.origin.remark(env.ctx, format_args!("its response could not be compressed"));
                Outcome::Failed
            }
        };
        end_short(env, outcome, record)
    }
}
