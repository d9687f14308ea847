//! A connection without streams, for another process that goes on with it.
//!
//! What the client takes for granted goes along: HPACK's table of its heads, both windows, the numbers of its streams, what it
//! was told by SETTINGS, and what it has left of its budget. There is no table for the heads of responses: the encoder has none.

use baton_passport::parcel::{Packer, Unpacker};

use super::Connection;
use super::state::{Drain, Phase, TableUpdate};
use crate::h2::bounds::{EARLY_PRIORITIES_MAX, RECENT_RESETS_MAX};
use crate::h2::hpack::Decoder;
use crate::h2::priority::Priority;
use crate::h2::settings::Settings;
use crate::h2::streams::Streams;
use crate::h2::window::{ReceiveWindow, SendWindow};

impl Connection {
    /// Whether another process can go on: no stream is open, nothing waits to be sent, and the end was not announced.
    pub fn is_movable(&self) -> bool {
        self.is_idle() && self.data.is_none() && !self.is_draining() && !self.has_failed()
    }

    /// Packs the connection, which is [movable](Self::is_movable).
    pub fn pack(&self, packer: &mut Packer, now_ms: u64) {
        packer.small(self.phase.number());
        self.decoder.pack(packer);
        self.streams.pack(packer);
        packer.number(self.streams_max as u64).flag(self.connect_protocol);
        packer.number(self.early.len() as u64);
        for (id, Priority { urgency, incremental }) in &self.early {
            packer.number(u64::from(*id)).small(*urgency).flag(*incremental);
        }
        self.receive.pack(packer);
        self.send.pack(packer);
        packer.number(u64::from(self.send_initial)).small(self.table_update.number());
        packer.number(u64::from(self.budget.left())).number(u64::from(self.window_updates_left));
        packer.maybe_number(self.settings_due_ms.map(|due_ms| due_ms.saturating_sub(now_ms)));
    }

    /// The connection that another process has packed. `None`: it has packed something else.
    pub fn unpack(packed: &mut Unpacker<'_>, now_ms: u64) -> Option<Self> {
        let mut connection = Self::new(&Settings::default(), now_ms);
        // The client has got SETTINGS, and has its windows.
        connection.control.clear();
        connection.phase = Phase::of_number(packed.small()?)?;
        connection.decoder = Decoder::unpack(packed)?;
        connection.streams = Streams::unpack(packed)?;
        connection.streams_max = usize::from(u16::try_from(packed.number()?).ok()?);
        connection.connect_protocol = packed.flag()?;
        for _ in 0..packed.number().filter(|count| *count <= EARLY_PRIORITIES_MAX as u64)? {
            let id = packed.number32()?;
            let urgency = packed.small().filter(|urgency| usize::from(*urgency) < Priority::URGENCIES)?;
            connection.early.push_back((id, Priority { urgency, incremental: packed.flag()? }));
        }
        connection.receive = ReceiveWindow::unpack(packed)?;
        connection.send = SendWindow::unpack(packed)?;
        connection.send_initial = packed.number32().filter(|window| *window <= i32::MAX as u32)?;
        connection.table_update = TableUpdate::of_number(packed.small()?)?;
        connection.budget.limit_to(packed.number32()?);
        connection.window_updates_left = connection.window_updates_left.min(packed.number32()?);
        connection.settings_due_ms = packed.maybe_number()?.map(|left_ms| now_ms.saturating_add(left_ms));
        connection.drain = Drain::No;
        Some(connection)
    }
}

impl Phase {
    const MOVABLE: [Self; 3] = [Self::Preface, Self::FirstSettings, Self::Open];

    fn number(self) -> u8 {
        Self::MOVABLE.iter().position(|phase| *phase == self).unwrap_or(Self::MOVABLE.len()) as u8
    }

    fn of_number(number: u8) -> Option<Self> {
        Self::MOVABLE.get(usize::from(number)).copied()
    }
}

impl TableUpdate {
    const ALL: [Self; 3] = [Self::NotNeeded, Self::Due, Self::Sent];

    fn number(self) -> u8 {
        Self::ALL.iter().position(|update| *update == self).unwrap_or_default() as u8
    }

    fn of_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }
}

impl Streams {
    fn pack(&self, packer: &mut Packer) {
        packer.number(u64::from(self.highest())).number(self.resets().len() as u64);
        self.resets().for_each(|id| _ = packer.number(u64::from(id)));
    }

    fn unpack(packed: &mut Unpacker<'_>) -> Option<Self> {
        let highest = packed.number32().filter(|highest| *highest <= i32::MAX as u32)?;
        let mut streams = Self::default();
        if highest > 0 {
            streams.note(highest);
        }
        for _ in 0..packed.number().filter(|count| *count <= RECENT_RESETS_MAX as u64)? {
            streams.remember_reset(packed.number32()?);
        }
        Some(streams)
    }
}
