//! Bodies that are given to applications while they arrive: from the client's socket to the application's, a piece at a
//! time, as long as both go along.

use crate::arriving::{Arrival, Arriving};
use crate::connection::Doing;
use crate::connections::ConnectionId;
use crate::exchange::Exchange;
use crate::gateway::Gateway;
use crate::{Request, Why};

impl Gateway {
    /// Brings what has arrived of a body to its application, if that has taken what came before.
    pub(crate) fn feed(&mut self, id: ConnectionId, now_ms: u64) {
        for _ in 0..PIECES_PER_TURN {
            let Some(connection) = self.connections.get_mut(id) else { return };
            let Doing::Serving { whose } = connection.doing else { return };
            if connection.has_to_write() || !connection.awaits_body() {
                return;
            }
            let Some(Exchange { request: Some(request), .. }) = self.exchanges.get_mut(&whose) else {
                return;
            };
            let Some(arriving) = &mut request.rest else { return };
            match arriving.read(&mut self.input) {
                Arrival::Part(part) => {
                    let is_last = arriving.left() == 0;
                    connection.push_body(part, is_last);
                    connection.client_due_ms = u64::MAX;
                    // Nobody can repeat the request any more.
                    request.body.clear();
                    if is_last {
                        request.rest = None;
                    }
                    if !self.write(id) {
                        return self.read(id, now_ms);
                    }
                    self.extend_deadline(id, now_ms);
                }
                Arrival::NotYet => {
                    let due_ms = now_ms.saturating_add(arriving.timeout_ms());
                    connection.client_due_ms = connection.client_due_ms.min(due_ms);
                    if arriving.watch(&self.epoll, id).is_err() {
                        return self.fail_on_connection(id, whose, Why::BodyLost, now_ms);
                    }
                    return self.extend_deadline(id, now_ms);
                }
                Arrival::Gone => return self.fail_on_connection(id, whose, Why::ClientGone, now_ms),
            }
        }
        self.give_turn(id);
    }
}

impl Request {
    /// The length of the body, with what is still arriving.
    pub fn body_len(&self) -> u64 {
        self.body.len() + self.unread()
    }

    /// Bytes of the body that are still with the client.
    pub(crate) fn unread(&self) -> u64 {
        self.rest.as_ref().map_or(0, Arriving::left)
    }

    /// Whether all that the application was told of the request is still there.
    pub(crate) fn can_be_repeated(&self) -> bool {
        self.rest.as_ref().is_none_or(Arriving::is_untouched)
    }
}

/// Pieces of one body that are passed on before others have their turn.
const PIECES_PER_TURN: usize = 4;
