//! Bodies of messages: a byte that says which, and its fields, packed in the order in which the message declares them.

use std::net::{IpAddr, SocketAddr};

use baton_passport::Passport;
use baton_passport::parcel::{Packer, Unpacker};

use super::{
    FLOWS_PER_MESSAGE_MAX, FromFrontEnd, FromNode, MessageRefused, RefuseReason, Shipment, TCP_BYTES_MAX,
    frames,
};
use crate::flow::{FlowId, Tuple};
use crate::local::{Drain, NAME_BYTES_MAX};

// The first two stay what they are, and so does the place of the version behind them.
const HELLO: u8 = 0x01;
const WELCOME: u8 = 0x81;

const SHIP: u8 = 0x02;
const TAKE: u8 = 0x03;
const RELEASE: u8 = 0x04;
const RETURNED: u8 = 0x05;
const PING: u8 = 0x06;
const DRAIN: u8 = 0x07;

const FLOWS: u8 = 0x82;
const READY: u8 = 0x83;
const REFUSED: u8 = 0x84;
const RETURN: u8 = 0x85;
const GONE: u8 = 0x86;
const TOTALS: u8 = 0x87;
const PONG: u8 = 0x88;
const DRAIN_OF_NODE: u8 = 0x89;

impl FromFrontEnd {
    /// The message with its length. `None`: its TCP state or its passport is too long.
    pub fn to_bytes(&self) -> Option<Vec<u8>> {
        let mut body = Packer::default();
        match self {
            Self::Hello { version, link, session } => {
                body.small(HELLO).number((*version).into()).number(*link).number(*session);
            }
            Self::Ship(shipment) => pack_shipment(body.small(SHIP), shipment)?,
            Self::Take { flow } => _ = body.small(TAKE).number(*flow),
            Self::Release { flow } => _ = body.small(RELEASE).number(*flow),
            Self::Returned { flow } => _ = body.small(RETURNED).number(*flow),
            Self::Ping => _ = body.small(PING),
            Self::Drain { drain, is_yours } => pack_drain(body.small(DRAIN).flag(*is_yours), drain),
        }
        frames::frame(&body.finish())
    }

    /// Reads the body of a message.
    ///
    /// # Errors
    /// [`MessageRefused::Malformed`], [`MessageRefused::Passport`].
    pub fn from_body(body: &[u8]) -> Result<Self, MessageRefused> {
        let mut fields = Fields(Unpacker::new(body));
        let message = match fields.small()? {
            HELLO => {
                Self::Hello { version: fields.number32()?, link: fields.number()?, session: fields.number()? }
            }
            SHIP => Self::Ship(fields.shipment()?),
            TAKE => Self::Take { flow: fields.number()? },
            RELEASE => Self::Release { flow: fields.number()? },
            RETURNED => Self::Returned { flow: fields.number()? },
            PING => Self::Ping,
            DRAIN => {
                let is_yours = fields.flag()?;
                Self::Drain { drain: fields.drain()?, is_yours }
            }
            _ => return Err(MessageRefused::Malformed),
        };
        fields.end(matches!(message, Self::Hello { .. }))?;
        Ok(message)
    }
}

impl FromNode {
    /// The message with its length. `None`: its TCP state, its passport or a list is too long.
    pub fn to_bytes(&self) -> Option<Vec<u8>> {
        let mut body = Packer::default();
        match self {
            Self::Welcome { version, resumed } => {
                body.small(WELCOME).number((*version).into()).flag(*resumed);
            }
            Self::Flows { ready, taken, last } => {
                (ready.len() + taken.len() <= FLOWS_PER_MESSAGE_MAX).then_some(())?;
                body.small(FLOWS);
                pack_flows(&mut body, ready);
                pack_flows(&mut body, taken);
                body.flag(*last);
            }
            Self::Ready { flow } => _ = body.small(READY).number(*flow),
            Self::Refused { flow, why } => _ = body.small(REFUSED).number(*flow).small(*why as u8),
            Self::Return(shipment) => pack_shipment(body.small(RETURN), shipment)?,
            Self::Gone { flows } => {
                (flows.len() <= FLOWS_PER_MESSAGE_MAX).then_some(())?;
                pack_flows(body.small(GONE), flows);
            }
            Self::Totals { taken, begun_kept, ended } => {
                body.small(TOTALS).number(*taken).number(*begun_kept).number(*ended);
            }
            Self::Pong => _ = body.small(PONG),
            Self::Drain(drain) => pack_drain(body.small(DRAIN_OF_NODE), drain),
        }
        frames::frame(&body.finish())
    }

    /// Reads the body of a message.
    ///
    /// # Errors
    /// [`MessageRefused::Malformed`], [`MessageRefused::Passport`].
    pub fn from_body(body: &[u8]) -> Result<Self, MessageRefused> {
        let mut fields = Fields(Unpacker::new(body));
        let message = match fields.small()? {
            WELCOME => Self::Welcome { version: fields.number32()?, resumed: fields.flag()? },
            FLOWS => {
                let ready = fields.flows(FLOWS_PER_MESSAGE_MAX)?;
                let taken = fields.flows(FLOWS_PER_MESSAGE_MAX - ready.len())?;
                Self::Flows { ready, taken, last: fields.flag()? }
            }
            READY => Self::Ready { flow: fields.number()? },
            REFUSED => Self::Refused { flow: fields.number()?, why: fields.reason()? },
            RETURN => Self::Return(fields.shipment()?),
            GONE => Self::Gone { flows: fields.flows(FLOWS_PER_MESSAGE_MAX)? },
            TOTALS => Self::Totals {
                taken: fields.number()?,
                begun_kept: fields.number()?,
                ended: fields.number()?,
            },
            PONG => Self::Pong,
            DRAIN_OF_NODE => Self::Drain(fields.drain()?),
            _ => return Err(MessageRefused::Malformed),
        };
        fields.end(matches!(message, Self::Welcome { .. }))?;
        Ok(message)
    }
}

fn pack_flows(body: &mut Packer, flows: &[FlowId]) {
    body.number(flows.len() as u64);
    flows.iter().for_each(|flow| _ = body.number(*flow));
}

fn pack_drain(body: &mut Packer, drain: &Drain) {
    let Drain { node, said_ms, is_drained, reports, left } = drain;
    body.bytes(node.as_bytes()).number(*said_ms).flag(*is_drained).number(*reports).number(*left);
}

fn pack_shipment(body: &mut Packer, shipment: &Shipment) -> Option<()> {
    // Parts of a passport may have keys, which stay on their host.
    if shipment.tcp.len() > TCP_BYTES_MAX || shipment.passport.has_parts() {
        return None;
    }
    body.number(shipment.flow);
    for end in [shipment.tuple.client, shipment.tuple.server] {
        match end.ip() {
            IpAddr::V4(ip) => body.bytes(&ip.octets()),
            IpAddr::V6(ip) => body.bytes(&ip.octets()),
        };
        body.number(end.port().into());
    }
    body.bytes(&shipment.tcp).bytes(&shipment.passport.to_message()?);
    Some(())
}

/// Reads what is in a body.
struct Fields<'a>(Unpacker<'a>);

impl<'a> Fields<'a> {
    fn flag(&mut self) -> Result<bool, MessageRefused> {
        self.0.flag().ok_or(MessageRefused::Malformed)
    }

    fn small(&mut self) -> Result<u8, MessageRefused> {
        self.0.small().ok_or(MessageRefused::Malformed)
    }

    fn number(&mut self) -> Result<u64, MessageRefused> {
        self.0.number().ok_or(MessageRefused::Malformed)
    }

    fn number32(&mut self) -> Result<u32, MessageRefused> {
        self.0.number32().ok_or(MessageRefused::Malformed)
    }

    fn bytes(&mut self) -> Result<&'a [u8], MessageRefused> {
        self.0.bytes().ok_or(MessageRefused::Malformed)
    }

    fn flows(&mut self, most: usize) -> Result<Vec<FlowId>, MessageRefused> {
        let count = usize::try_from(self.number()?).map_err(|_| MessageRefused::Malformed)?;
        if count > most {
            return Err(MessageRefused::Malformed);
        }
        (0..count).map(|_| self.number()).collect()
    }

    fn reason(&mut self) -> Result<RefuseReason, MessageRefused> {
        let number = self.small()?;
        let reason = RefuseReason::ALL.into_iter().find(|reason| *reason as u8 == number);
        reason.ok_or(MessageRefused::Malformed)
    }

    fn drain(&mut self) -> Result<Drain, MessageRefused> {
        let node = self.0.text().filter(|name| name.len() <= NAME_BYTES_MAX);
        Ok(Drain {
            node: node.ok_or(MessageRefused::Malformed)?.to_owned(),
            said_ms: self.number()?,
            is_drained: self.flag()?,
            reports: self.number()?,
            left: self.number()?,
        })
    }

    fn address(&mut self) -> Result<SocketAddr, MessageRefused> {
        let ip = self.bytes()?;
        let v4 = <[u8; 4]>::try_from(ip).map(IpAddr::from);
        let ip = v4.or_else(|_| <[u8; 16]>::try_from(ip).map(IpAddr::from));
        let ip = ip.map_err(|_| MessageRefused::Malformed)?;
        let port = u16::try_from(self.number()?).map_err(|_| MessageRefused::Malformed)?;
        Ok(SocketAddr::new(ip, port))
    }

    fn shipment(&mut self) -> Result<Box<Shipment>, MessageRefused> {
        let flow = self.number()?;
        let (client, server) = (self.address()?, self.address()?);
        // What a peer writes is not always what this host would.
        let tuple = Tuple::new(client, server).filter(|tuple| *tuple == Tuple { client, server });
        let (tcp, passport) = (self.bytes()?, self.bytes()?);
        let passport = Passport::from_message(passport).map_err(MessageRefused::Passport)?;
        if tcp.len() > TCP_BYTES_MAX || passport.has_parts() {
            return Err(MessageRefused::Malformed);
        }
        let tuple = tuple.ok_or(MessageRefused::Malformed)?;
        Ok(Box::new(Shipment { flow, tuple, tcp: tcp.to_vec(), passport }))
    }

    /// Whether that was all. Behind the first message of another version there may be more.
    fn end(&self, is_first: bool) -> Result<(), MessageRefused> {
        (is_first || self.0.is_empty()).then_some(()).ok_or(MessageRefused::Malformed)
    }
}
