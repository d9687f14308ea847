//! The clients of one loop, found by token or by the id of a request.

use baton_shares::Permit;
use baton_upstream::RequestId;

use baton_session::protocol::StreamId;
use baton_session::requests::Requests;
use baton_session::session::Spare;

/// What the table asks of a client without waking it.
pub(crate) trait Connection {
    /// When its wait times out, in milliseconds of the clock; `u64::MAX`: never.
    fn deadline_ms(&self) -> u64;
    /// How little is lost if it ends now; `None`: it is being served.
    fn spare(&self) -> Option<Spare>;
    /// Whether it can be closed without loss.
    fn is_idle(&self) -> bool {
        self.spare() == Some(Spare::Idle)
    }
    /// The version of a passport with which another process can go on with it; `None`: none can.
    fn passport_version(&self) -> Option<u32>;
    /// Whether the front-end that has handed it over can take it back now: it is idle.
    fn may_go_back(&self) -> bool;
}

/// Names a client for as long as it lives: the token of a client that is gone finds nothing, even when another client
/// has its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    index: u32,
    generation: u32,
}

impl Token {
    /// The token as a number that epoll carries.
    pub(crate) fn to_data(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.index)
    }

    /// The token of a number.
    pub(crate) fn from_data(data: u64) -> Self {
        Self { index: data as u32, generation: (data >> 32) as u32 }
    }

    /// The name of a request of this client: the `number`th of all clients. It is not used again while the request or
    /// its client is there, since that keeps its slot; so it does not matter that numbers begin again after 2^32.
    pub(crate) fn name_request(self, number: u32) -> RequestId {
        RequestId::new(u64::from(number) << 32 | u64::from(self.index))
    }
}

/// The events of a socket that epoll reports to the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Interest {
    /// None: the socket is not in the interest set.
    Nothing,
    /// Input only. While an application writes to the socket itself, room for output concerns only the application.
    Input,
    /// Input, and room for output.
    InputAndOutput,
}

/// A client and what its loop knows of it.
#[derive(Debug)]
pub(crate) struct Entry<C> {
    pub(crate) client: C,
    pub(crate) interest: Interest,
    /// Whether an application was given a request of it. Then it is watched for input only, until there is something to
    /// send.
    pub(crate) was_delegated: bool,
    /// Its jobs that are not done.
    pub(crate) jobs: u32,
    /// Its requests that applications have.
    pub(crate) requests: Requests,
    /// Its place among the connections of the process.
    pub(crate) place: Permit,
}

/// Clients by token. Slots are used again; a slot costs a few bytes beside the client.
#[derive(Debug)]
pub(crate) struct Clients<C> {
    slots: Vec<Slot<C>>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Slot<C> {
    generation: u32,
    /// Beside the client, so that a search for overdue clients touches no other client.
    deadline_ms: u64,
    waits_since_ms: u64,
    entry: Option<Entry<C>>,
}

impl<C> Default for Clients<C> {
    fn default() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }
}

impl<C: Connection> Clients<C> {
    /// Number of clients.
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(crate) fn insert(&mut self, client: C, place: Permit, now_ms: u64) -> Token {
        let deadline_ms = client.deadline_ms();
        let entry = Some(Entry {
            client,
            interest: Interest::Nothing,
            was_delegated: false,
            jobs: 0,
            requests: Requests::default(),
            place,
        });
        if let Some(index) = self.free.pop() {
            let slot = &mut self.slots[index as usize];
            slot.entry = entry;
            (slot.deadline_ms, slot.waits_since_ms) = (deadline_ms, now_ms);
            return Token { index, generation: slot.generation };
        }
        let index = u32::try_from(self.slots.len()).expect("descriptors are numbered with 31 bits");
        self.slots.push(Slot { generation: FIRST_GENERATION, deadline_ms, waits_since_ms: now_ms, entry });
        Token { index, generation: FIRST_GENERATION }
    }

    pub(crate) fn get_mut(&mut self, token: Token) -> Option<&mut Entry<C>> {
        let slot = self.slots.get_mut(token.index as usize)?;
        slot.entry.as_mut().filter(|_| slot.generation == token.generation)
    }

    /// The client that has the request with this name, and its stream, without a search through all clients.
    pub(crate) fn of_request(&self, request: RequestId) -> Option<(Token, StreamId)> {
        let index = request.number() as u32;
        let slot = self.slots.get(index as usize)?;
        let stream = slot.entry.as_ref()?.requests.stream_of(request)?;
        Some((Token { index, generation: slot.generation }, stream))
    }

    pub(crate) fn remove(&mut self, token: Token) -> Option<Entry<C>> {
        let slot =
            self.slots.get_mut(token.index as usize).filter(|slot| slot.generation == token.generation)?;
        let entry = slot.entry.take()?;
        slot.generation = slot.generation.wrapping_add(1).max(FIRST_GENERATION);
        self.free.push(token.index);
        Some(entry)
    }

    /// Copies a client's deadline into its slot, after a step. Another deadline is another wait.
    pub(crate) fn note_deadline(&mut self, token: Token, now_ms: u64) {
        let slot = &mut self.slots[token.index as usize];
        if let Some(entry) = &slot.entry {
            let deadline_ms = entry.client.deadline_ms();
            if deadline_ms != slot.deadline_ms {
                (slot.deadline_ms, slot.waits_since_ms) = (deadline_ms, now_ms);
            }
        }
    }

    /// Tokens of clients whose deadline has passed.
    ///
    /// Scanning all slots once a second is cheaper than keeping them ordered with each request: ten thousand slots take
    /// about ten microseconds.
    pub(crate) fn overdue(&self, now_ms: u64, into: &mut Vec<Token>) {
        self.collect(into, |slot| slot.deadline_ms <= now_ms);
    }

    /// Tokens of clients that could be closed without loss.
    pub(crate) fn idle(&self, into: &mut Vec<Token>) {
        self.collect(into, |slot| slot.entry.as_ref().is_some_and(|entry| entry.client.is_idle()));
    }

    /// Tokens of clients with which another process can go on.
    pub(crate) fn movable(&self, into: &mut Vec<Token>) {
        let is_movable = |entry: &Entry<C>| entry.client.passport_version().is_some();
        self.collect(into, |slot| slot.entry.as_ref().is_some_and(is_movable));
    }

    /// Tokens of clients that front-ends can take back.
    pub(crate) fn returnable(&self, into: &mut Vec<Token>) {
        self.collect(into, |slot| slot.entry.as_ref().is_some_and(|entry| entry.client.may_go_back()));
    }

    /// Tokens of all clients.
    pub(crate) fn all(&self, into: &mut Vec<Token>) {
        self.collect(into, |_| true);
    }

    /// All clients, and since when each waits.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Token, &Entry<C>, u64)> {
        self.slots.iter().enumerate().filter_map(|(index, slot)| {
            let token = Token { index: index as u32, generation: slot.generation };
            Some((token, slot.entry.as_ref()?, slot.waits_since_ms))
        })
    }

    fn collect(&self, into: &mut Vec<Token>, wanted: impl Fn(&Slot<C>) -> bool) {
        for (index, slot) in self.slots.iter().enumerate() {
            if slot.entry.is_some() && wanted(slot) {
                into.push(Token { index: index as u32, generation: slot.generation });
            }
        }
    }
}

/// Generation 0 is left to tokens that mean something else to a loop (listeners, wakers).
const FIRST_GENERATION: u32 = 1;

#[cfg(test)]
mod tests {
    use baton_shares::Shares;

    use super::*;

    #[test]
    fn tokens_survive_epoll() {
        let token = Token { index: 7, generation: 9 };
        assert_eq!(Token::from_data(token.to_data()), token);
    }

    impl Connection for () {
        fn deadline_ms(&self) -> u64 {
            u64::MAX
        }

        fn spare(&self) -> Option<Spare> {
            Some(Spare::Idle)
        }

        fn passport_version(&self) -> Option<u32> {
            None
        }

        fn may_go_back(&self) -> bool {
            false
        }
    }

    /// Goal: the name of a request finds its client and stream while the client has it, and neither the client's next
    /// request nor another client in the same slot.
    #[test]
    fn a_request_finds_its_client_and_no_other() {
        let mut clients = Clients::default();
        let (first, second) = (
            clients.insert((), Shares::default().enter(None), 0),
            clients.insert((), Shares::default().enter(None), 0),
        );
        let name = |clients: &mut Clients<()>, token: Token, number| {
            let (name, stream) = (token.name_request(number), StreamId::of(number.into()));
            clients.get_mut(token).unwrap().requests.insert(stream, name);
            name
        };
        let (one, two) = (name(&mut clients, first, 1), name(&mut clients, second, 2));
        let found = |token, number| Some((token, StreamId::of(number)));
        assert_eq!((clients.of_request(one), clients.of_request(two)), (found(first, 1), found(second, 2)));
        let next = name(&mut clients, first, 3);
        assert_eq!((clients.of_request(one), clients.of_request(next)), (found(first, 1), found(first, 3)));
        assert_eq!(clients.get_mut(first).unwrap().requests.remove(StreamId::of(1)), Some(one));
        assert_eq!((clients.of_request(one), clients.of_request(next)), (None, found(first, 3)));
        clients.remove(first);
        let successor = clients.insert((), Shares::default().enter(None), 0);
        assert_eq!(successor.index, first.index);
        assert_eq!(clients.of_request(next), None);
        assert_eq!(clients.of_request(RequestId::new(u64::from(u32::MAX))), None, "there is no such slot");
    }
}
