//! Bodies of messages: a line of JSON, and what it announces.

use baton_passport::Passport;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{
    FLOWS_PER_MESSAGE_MAX, FromFrontEnd, FromNode, HEAD_BYTES_MAX, MessageRefused, RefuseReason, Shipment,
    TCP_BYTES_MAX, frames,
};
use crate::flow::{FlowId, Tuple};

#[derive(Serialize, Deserialize)]
struct ShipmentHead {
    flow: FlowId,
    #[serde(flatten)]
    tuple: Tuple,
    /// Bytes of the TCP state, which the passport follows.
    tcp: usize,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "kebab-case")]
enum FrontEndHead {
    Hello { version: u32, link: u64, session: u64 },
    Ship(ShipmentHead),
    Take { flow: FlowId },
    Release { flow: FlowId },
    Returned { flow: FlowId },
    Ping,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "kebab-case")]
enum NodeHead {
    Welcome { version: u32, resumed: bool },
    Flows { ready: Vec<FlowId>, taken: Vec<FlowId>, last: bool },
    Ready { flow: FlowId },
    Refused { flow: FlowId, why: RefuseReason },
    Return(ShipmentHead),
    Gone { flows: Vec<FlowId> },
    Totals { taken: u64, begun_kept: u64, ended: u64 },
    Pong,
}

impl FromFrontEnd {
    /// The message with its length. `None`: its TCP state or its passport is too long.
    pub fn to_bytes(&self) -> Option<Vec<u8>> {
        let head = match self {
            Self::Hello { version, link, session } => {
                FrontEndHead::Hello { version: *version, link: *link, session: *session }
            }
            Self::Ship(shipment) => return ship(FrontEndHead::Ship, shipment),
            Self::Take { flow } => FrontEndHead::Take { flow: *flow },
            Self::Release { flow } => FrontEndHead::Release { flow: *flow },
            Self::Returned { flow } => FrontEndHead::Returned { flow: *flow },
            Self::Ping => FrontEndHead::Ping,
        };
        frames::frame(|bytes| write_line(bytes, &head))
    }

    /// Reads the body of a message.
    ///
    /// # Errors
    /// [`MessageRefused::Malformed`], [`MessageRefused::Passport`].
    pub fn from_body(body: &[u8]) -> Result<Self, MessageRefused> {
        let (head, rest) = read_line(body)?;
        if let FrontEndHead::Ship(head) = head {
            return Ok(Self::Ship(read_shipment(head, rest)?));
        }
        nothing(rest)?;
        Ok(match head {
            FrontEndHead::Hello { version, link, session } => Self::Hello { version, link, session },
            FrontEndHead::Take { flow } => Self::Take { flow },
            FrontEndHead::Release { flow } => Self::Release { flow },
            FrontEndHead::Returned { flow } => Self::Returned { flow },
            FrontEndHead::Ping => Self::Ping,
            FrontEndHead::Ship(_) => return Err(MessageRefused::Malformed),
        })
    }
}

impl FromNode {
    /// The message with its length. `None`: its TCP state, its passport or a list is too long.
    pub fn to_bytes(&self) -> Option<Vec<u8>> {
        let head = match self {
            Self::Welcome { version, resumed } => NodeHead::Welcome { version: *version, resumed: *resumed },
            Self::Flows { ready, taken, last } => {
                check_count(ready.len() + taken.len()).ok()?;
                NodeHead::Flows { ready: ready.clone(), taken: taken.clone(), last: *last }
            }
            Self::Ready { flow } => NodeHead::Ready { flow: *flow },
            Self::Refused { flow, why } => NodeHead::Refused { flow: *flow, why: *why },
            Self::Return(shipment) => return ship(NodeHead::Return, shipment),
            Self::Gone { flows } => {
                check_count(flows.len()).ok()?;
                NodeHead::Gone { flows: flows.clone() }
            }
            Self::Totals { taken, begun_kept, ended } => {
                NodeHead::Totals { taken: *taken, begun_kept: *begun_kept, ended: *ended }
            }
            Self::Pong => NodeHead::Pong,
        };
        frames::frame(|bytes| write_line(bytes, &head))
    }

    /// Reads the body of a message.
    ///
    /// # Errors
    /// [`MessageRefused::Malformed`], [`MessageRefused::Passport`].
    pub fn from_body(body: &[u8]) -> Result<Self, MessageRefused> {
        let (head, rest) = read_line(body)?;
        if let NodeHead::Return(head) = head {
            return Ok(Self::Return(read_shipment(head, rest)?));
        }
        nothing(rest)?;
        Ok(match head {
            NodeHead::Welcome { version, resumed } => Self::Welcome { version, resumed },
            NodeHead::Flows { ready, taken, last } => {
                check_count(ready.len() + taken.len())?;
                Self::Flows { ready, taken, last }
            }
            NodeHead::Ready { flow } => Self::Ready { flow },
            NodeHead::Refused { flow, why } => Self::Refused { flow, why },
            NodeHead::Gone { flows } => {
                check_count(flows.len())?;
                Self::Gone { flows }
            }
            NodeHead::Totals { taken, begun_kept, ended } => Self::Totals { taken, begun_kept, ended },
            NodeHead::Pong => Self::Pong,
            NodeHead::Return(_) => return Err(MessageRefused::Malformed),
        })
    }
}

fn check_count(flows: usize) -> Result<(), MessageRefused> {
    if flows <= FLOWS_PER_MESSAGE_MAX { Ok(()) } else { Err(MessageRefused::Malformed) }
}

fn nothing(rest: &[u8]) -> Result<(), MessageRefused> {
    if rest.is_empty() { Ok(()) } else { Err(MessageRefused::Malformed) }
}

fn write_line(bytes: &mut Vec<u8>, head: &impl Serialize) -> Option<()> {
    serde_json::to_writer(&mut *bytes, head).ok()?;
    bytes.push(b'\n');
    Some(())
}

fn read_line<Head: DeserializeOwned>(body: &[u8]) -> Result<(Head, &[u8]), MessageRefused> {
    let newline = body.iter().take(HEAD_BYTES_MAX).position(|byte| *byte == b'\n');
    let (head, rest) = body.split_at(newline.ok_or(MessageRefused::Malformed)?);
    Ok((serde_json::from_slice(head).map_err(|_| MessageRefused::Malformed)?, &rest[1..]))
}

fn ship<Head: Serialize>(head: impl FnOnce(ShipmentHead) -> Head, shipment: &Shipment) -> Option<Vec<u8>> {
    // Parts of a passport may have keys, which stay on their host.
    if shipment.tcp.len() > TCP_BYTES_MAX || shipment.passport.has_parts() {
        return None;
    }
    let passport = shipment.passport.to_message()?;
    let head = head(ShipmentHead { flow: shipment.flow, tuple: shipment.tuple, tcp: shipment.tcp.len() });
    frames::frame(|bytes| {
        write_line(bytes, &head)?;
        bytes.extend_from_slice(&shipment.tcp);
        bytes.extend_from_slice(&passport);
        Some(())
    })
}

fn read_shipment(head: ShipmentHead, rest: &[u8]) -> Result<Box<Shipment>, MessageRefused> {
    if head.tcp > TCP_BYTES_MAX {
        return Err(MessageRefused::Malformed);
    }
    let (tcp, passport) = rest.split_at_checked(head.tcp).ok_or(MessageRefused::Malformed)?;
    // What a peer writes is not always what this host would.
    let tuple = Tuple::new(head.tuple.client, head.tuple.server).filter(|tuple| *tuple == head.tuple);
    let passport = Passport::from_message(passport).map_err(MessageRefused::Passport)?;
    if passport.has_parts() {
        return Err(MessageRefused::Malformed);
    }
    Ok(Box::new(Shipment {
        flow: head.flow,
        tuple: tuple.ok_or(MessageRefused::Malformed)?,
        tcp: tcp.to_vec(),
        passport,
    }))
}
