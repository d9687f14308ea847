//! `threads`: a user-level thread per connection over few kernel threads.
//!
//! Each client has a thread of its own with a stack of its own, whose code reads from top to bottom: step, wait for
//! what the step needs, step. The thread does not know that waiting means suspending itself; a scheduler per kernel
//! thread, the loop of the event-driven architectures, resumes it. Calls that might block the kernel
//! thread go to workers.
//!
//! ```text
//!   user-level threads    ┌client┐ ┌client┐ ┌client┐ …  10,000 and more
//!                         └──┬───┘ └──┬───┘ └──┬───┘
//!   kernel threads          scheduler over epoll         jobs ──► workers
//! ```
//!
//! Source: Harji 2010, sections 2.2.2 and 3.8.1 (Capriccio and Knot: cooperative threads, I/O tried first and waited
//! for only if it would block, disk calls given to worker tasks).

use std::cell::RefCell;
use std::io;
use std::sync::Arc;

use baton_content::Blocking;
use baton_session::context::Context;
use baton_session::session::{Need, Session, Spare, Stage, Wake};
use baton_telemetry::log::Outcome;
use baton_upstream::ClientSocket;
use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};

use super::{Architecture, ListenerSharing};
use crate::Tuning;
use crate::client::Client;
use crate::clients::Connection;
use crate::helpers::Helpers;
use crate::process::Process;
use crate::takeable::Takeable;

pub(super) const ARCHITECTURE: Architecture = Architecture {
    processes: |_, _| 1,
    listeners: ListenerSharing::Shared,
    loops: kernel_threads,
    held_up_by_a_slow_client: None,
    adapt: |_| (),
    serve,
};

pub(super) fn serve(process: &Process) -> io::Result<()> {
    let kernel_threads = kernel_threads(&process.tuning);
    process.on_threads(kernel_threads, |index| {
        let ctx = process.context(process.cache(kernel_threads), Blocking::Never);
        let workers = Helpers::new(process.tuning.helpers_max)?;
        let event_loop =
            process.event_loop::<UserThread, _>(&format!("scheduler-{index}"), ctx, workers, None)?;
        Ok(Box::new(move || event_loop.run(process.heartbeats.heart(index))))
    })
}

/// How many kernel threads run the user-level threads.
pub(super) fn kernel_threads(tuning: &Tuning) -> usize {
    tuning.threads.unwrap_or(1).max(1)
}

/// What a thread is given when it resumes: why, and the context.
type Resume = (Wake, Box<Context>);

/// What a thread gives back when it waits: what for, what the scheduler may know meanwhile, and the context.
type Wait = (Need, Known, Box<Context>);

/// The code of a client's thread.
fn serve_client(mut session: Session, thread: &Yielder<Resume, Wait>, resume: Resume) -> Box<Context> {
    let (mut wake, mut ctx) = resume;
    loop {
        let need = match session.handle_wake(wake, &mut ctx) {
            Some(need) => need,
            None => session.step(&mut ctx, Stage::Any),
        };
        if matches!(need, Need::Finished) {
            return ctx;
        }
        (wake, ctx) = thread.suspend((need, Known::of(&session), ctx));
    }
}

/// A client's thread, seen from the scheduler.
pub(super) struct UserThread {
    coroutine: Coroutine<Resume, Wait, Box<Context>, DefaultStack>,
    socket: Arc<ClientSocket>,
    known: Known,
}

/// What the scheduler knows of a session that lives on a suspended stack.
#[derive(Clone, Copy)]
struct Known {
    deadline_ms: u64,
    spare: Option<Spare>,
    passport_version: Option<u32>,
    may_go_back: bool,
}

impl Known {
    fn of(session: &Session) -> Self {
        Self {
            deadline_ms: session.deadline_ms(),
            spare: session.spare(),
            passport_version: session.passport_version(),
            may_go_back: session.may_go_back(),
        }
    }
}

impl Client for UserThread {
    fn begin(mut session: Session, ctx: &mut Context) -> Option<Self> {
        let Some(stack) = take_stack() else {
            session.end(Outcome::Failed, ctx);
            return None;
        };
        let (socket, known) = (session.share_socket(), Known::of(&session));
        let body = move |thread: &Yielder<Resume, Wait>, resume| serve_client(session, thread, resume);
        Some(Self { coroutine: Coroutine::with_stack(stack, body), socket, known })
    }

    fn advance(&mut self, wake: Wake, ctx: &mut Takeable<Context>) -> Need {
        match self.coroutine.resume((wake, ctx.take())) {
            CoroutineResult::Yield((need, known, context)) => {
                ctx.put_back(context);
                self.known = known;
                need
            }
            CoroutineResult::Return(context) => {
                ctx.put_back(context);
                Need::Finished
            }
        }
    }

    fn finish(self) {
        if self.coroutine.done() {
            SPARE_STACKS.with_borrow_mut(|spare| {
                if spare.len() < SPARE_STACKS_MAX {
                    spare.push(self.coroutine.into_stack());
                }
            });
        }
    }

    fn socket(&self) -> &ClientSocket {
        &self.socket
    }
}

impl Connection for UserThread {
    fn deadline_ms(&self) -> u64 {
        self.known.deadline_ms
    }

    fn spare(&self) -> Option<Spare> {
        self.known.spare
    }

    fn passport_version(&self) -> Option<u32> {
        self.known.passport_version
    }

    fn may_go_back(&self) -> bool {
        self.known.may_go_back
    }
}

thread_local! {
    /// Stacks of threads that have ended, for the next ones: a mapping, a guard page and page faults saved.
    static SPARE_STACKS: RefCell<Vec<DefaultStack>> = const { RefCell::new(Vec::new()) };
}

/// A stack, unless the process is out of mappings: each stack takes two of `vm.max_map_count`.
fn take_stack() -> Option<DefaultStack> {
    let spare = SPARE_STACKS.with_borrow_mut(Vec::pop);
    spare.or_else(|| DefaultStack::new(STACK_BYTES).ok())
}

/// Address space of a stack; only the pages that are touched use memory, about 8 KiB.
const STACK_BYTES: usize = 128 * 1024;

/// Stacks kept for use again, per kernel thread.
const SPARE_STACKS_MAX: usize = 256;
