//! Who is connected to the control socket or the admin listener: one question, one answer, and goodbye.
//!
//! The master answers them between its other duties, so that everything has a bound: how many there are, how much
//! they may ask, how long they may take.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::net::{RecvFlags, SendFlags, Shutdown};

/// Where somebody came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    /// The control socket: a line is asked, a line is answered.
    Control,
    /// The admin listener: HTTP.
    Admin,
}

/// Names a caller; never used again for another one.
pub(crate) type CallerId = u64;

/// Who asked for something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asker {
    /// A signal: the log is the answer.
    Signal,
    /// Somebody at the control socket.
    Control(CallerId),
    /// Somebody at the admin listener, who wants only the head of the answer or all of it.
    Admin(CallerId, HeadOnly),
}

/// Whether the body of a response is left out.
type HeadOnly = bool;

/// What came of listening to a caller.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// Nothing to do.
    Nothing,
    /// A whole question, which is to be [answered](Callers::answer), at once or later.
    Question(Door, Vec<u8>),
    /// More than a question may have; to be answered, too.
    TooMuch(Door),
}

/// The connections.
#[derive(Debug, Default)]
pub(crate) struct Callers {
    all: BTreeMap<CallerId, Caller>,
    next_id: CallerId,
}

#[derive(Debug)]
struct Caller {
    door: Door,
    socket: OwnedFd,
    phase: Phase,
    deadline: Instant,
}

#[derive(Debug)]
enum Phase {
    /// The question so far.
    Asking(Vec<u8>),
    /// The answer takes a while.
    Waiting,
    /// The answer, and how much of it is sent.
    Answering(Vec<u8>, usize),
}

impl Callers {
    /// Callers at one door at a time; more are turned away.
    const PER_DOOR_MAX: usize = 32;
    /// Bytes of a question.
    const QUESTION_BYTES_MAX: usize = 8 * 1024;
    /// For asking, and again for taking the answer; longer than any reload lasts.
    const PATIENCE: Duration = Duration::from_secs(15);

    /// Lets somebody in. Dropped at once if there are too many.
    pub(crate) fn admit(&mut self, door: Door, socket: OwnedFd, now: Instant) {
        if self.all.values().filter(|caller| caller.door == door).count() < Self::PER_DOOR_MAX {
            let caller =
                Caller { door, socket, phase: Phase::Asking(Vec::new()), deadline: now + Self::PATIENCE };
            self.all.insert(self.next_id, caller);
            self.next_id += 1;
        }
    }

    /// What to wait for: a caller's socket and readiness. Hang-ups are always reported.
    pub(crate) fn interests(&self) -> impl Iterator<Item = (CallerId, BorrowedFd<'_>, PollFlags)> {
        self.all.iter().map(|(&id, caller)| {
            let flags = match caller.phase {
                Phase::Asking(_) => PollFlags::IN,
                Phase::Waiting => PollFlags::empty(),
                Phase::Answering(..) => PollFlags::OUT,
            };
            (id, caller.socket.as_fd(), flags)
        })
    }

    /// A caller's socket is ready, or hung up.
    pub(crate) fn handle_ready(&mut self, id: CallerId) -> Heard {
        let Some(caller) = self.all.get_mut(&id) else { return Heard::Nothing };
        match &mut caller.phase {
            Phase::Asking(question) => match hear(&caller.socket, question, Self::QUESTION_BYTES_MAX) {
                Ok(()) if is_whole(caller.door, question) => {
                    let question = std::mem::take(question);
                    caller.phase = Phase::Waiting;
                    return Heard::Question(caller.door, question);
                }
                Ok(()) if question.len() >= Self::QUESTION_BYTES_MAX => {
                    caller.phase = Phase::Waiting;
                    return Heard::TooMuch(caller.door);
                }
                Ok(()) => {}
                Err(_) => drop(self.all.remove(&id)),
            },
            Phase::Waiting => drop(self.all.remove(&id)),
            Phase::Answering(..) => self.speak(id),
        }
        Heard::Nothing
    }

    /// Answers a caller, who may be gone by now.
    pub(crate) fn answer(&mut self, id: CallerId, answer: Vec<u8>, now: Instant) {
        if let Some(caller) = self.all.get_mut(&id) {
            caller.phase = Phase::Answering(answer, 0);
            caller.deadline = now + Self::PATIENCE;
            self.speak(id);
        }
    }

    /// When [`expire`](Self::expire) has something to do.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.all.values().map(|caller| caller.deadline).min()
    }

    /// Sends those away who took too long.
    pub(crate) fn expire(&mut self, now: Instant) {
        self.all.retain(|_, caller| now < caller.deadline);
    }

    fn speak(&mut self, id: CallerId) {
        let Some(Caller { socket, phase: Phase::Answering(answer, sent), .. }) = self.all.get_mut(&id) else {
            return;
        };
        while *sent < answer.len() {
            match rustix::net::send(&*socket, &answer[*sent..], SendFlags::NOSIGNAL) {
                Ok(bytes) => *sent += bytes,
                Err(rustix::io::Errno::AGAIN) => return,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => break,
            }
        }
        // Said all, or nobody is there: either way the connection has served its purpose.
        let _ = rustix::net::shutdown(&*socket, Shutdown::Write);
        self.all.remove(&id);
    }
}

/// Adds to `question` what has arrived.
fn hear(socket: &OwnedFd, question: &mut Vec<u8>, bytes_max: usize) -> io::Result<()> {
    let mut chunk = [0; 4096];
    let room = chunk.len().min(bytes_max - question.len());
    match rustix::net::recv(socket, &mut chunk[..room], RecvFlags::DONTWAIT) {
        Ok((0, _)) => Err(io::ErrorKind::UnexpectedEof.into()),
        Ok((bytes, _)) => {
            question.extend_from_slice(&chunk[..bytes]);
            Ok(())
        }
        Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn is_whole(door: Door, question: &[u8]) -> bool {
    match door {
        Door::Control => question.ends_with(b"\n"),
        Door::Admin => baton_http::HeadScanner::new().find_end(question).is_some(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    use super::*;

    fn call(callers: &mut Callers, door: Door) -> UnixStream {
        let (client, server) = UnixStream::pair().unwrap();
        server.set_nonblocking(true).unwrap();
        callers.admit(door, server.into(), Instant::now());
        client
    }

    #[test]
    fn a_question_in_pieces_gets_a_large_answer_in_pieces() {
        let mut callers = Callers::default();
        let mut client = call(&mut callers, Door::Admin);
        client.write_all(b"GET /metrics HTTP/1.1\r\nHost:").unwrap();
        assert_eq!(callers.handle_ready(0), Heard::Nothing);
        client.write_all(b" a\r\n\r\n").unwrap();
        let question = b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n".to_vec();
        assert_eq!(callers.handle_ready(0), Heard::Question(Door::Admin, question));

        callers.answer(0, vec![b'x'; 1 << 20], Instant::now());
        let reader = std::thread::spawn(move || {
            let mut answer = Vec::new();
            client.read_to_end(&mut answer).map(|_| answer.len())
        });
        while callers.interests().next().is_some() {
            callers.handle_ready(0);
        }
        assert_eq!(reader.join().unwrap().unwrap(), 1 << 20);
    }

    #[test]
    fn endless_questions_are_cut_off() {
        let mut callers = Callers::default();
        let mut client = call(&mut callers, Door::Control);
        let mut heard = Heard::Nothing;
        while heard == Heard::Nothing {
            client.write_all(&[b'x'; 1000]).unwrap();
            heard = callers.handle_ready(0);
        }
        assert_eq!(heard, Heard::TooMuch(Door::Control));
    }

    #[test]
    fn the_slow_the_gone_and_the_many_are_dropped() {
        let mut callers = Callers::default();
        let clients: Vec<_> = (0..40).map(|_| call(&mut callers, Door::Admin)).collect();
        assert_eq!(callers.interests().count(), Callers::PER_DOOR_MAX);
        let _control = call(&mut callers, Door::Control);
        assert_eq!(
            callers.interests().count(),
            Callers::PER_DOOR_MAX + 1,
            "doors do not crowd each other out"
        );
        drop(clients);
        for id in 0..Callers::PER_DOOR_MAX as CallerId {
            assert_eq!(callers.handle_ready(id), Heard::Nothing);
        }
        assert_eq!(callers.interests().count(), 1);
        let deadline = callers.deadline().unwrap();
        callers.expire(deadline);
        assert_eq!(callers.interests().count(), 0);
    }
}
