//! A response whose body is coded as it passes.

use baton_buf::Aggregate;
use baton_response::{Coder, CoderError};
use baton_telemetry::log::Outcome;
use baton_telemetry::metrics::Tally;

use super::{Delegated, Progress, Reaction, TOO_SHORT, end_short};
use crate::exchange::env::{Env, Wants};
use crate::exchange::record::Record;
use crate::job::Job;

impl Delegated {
    /// Codes a part of what has come; `None`: there is nothing to code, and the next event is needed.
    pub(super) fn advance_coder(&mut self, env: &mut Env<'_>, record: &mut Record) -> Option<Wants> {
        let coder = self.coder.as_mut()?;
        // An event of the gateway may have come meanwhile.
        if coder.is_reading() {
            return Some(Wants::JobUnderWay);
        }
        let takes_turn = coder.takes_turn();
        if !takes_turn && let Some(slice) = coder.to_read() {
            return Some(Wants::Job(Job::Read(env.stream, slice)));
        }
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
                self.origin.warn(env.ctx, format_args!("{TOO_SHORT}"));
                self.origin.failed()
            }
            CoderError::Failed => {
                self.origin.warn(env.ctx, format_args!("its response could not be compressed"));
                Outcome::Failed
            }
        };
        end_short(env, outcome, record)
    }
}
