//! TLS that another process goes on with.
//!
//! A process that has the part of a passport that is packed here can read what the client sends, and speak in the server's place.
//! It goes over the socket pair between two processes of one host, and nowhere else; its memory is cleared.

use baton_buf::Unsent;
use baton_passport::parcel::{Packer, Unpacker};
use baton_tls::{Facts, Records};
use zeroize::Zeroizing;

use super::{Sealer, Secured};
use crate::send_queue::SendQueue;

impl Secured {
    /// Whether another process can go on: neither side has ended.
    pub(in crate::transport) fn is_movable(&self) -> bool {
        !self.has_said_end && self.records.is_movable()
    }

    /// What the process needs that goes on. Nothing may be sealed or opened here after that.
    pub(in crate::transport) fn pack(&self) -> Zeroizing<Vec<u8>> {
        let bytes = [&self.sealed, &self.opened, &self.unsent.0];
        let len: usize = bytes.iter().map(|bytes| bytes.len()).sum();
        let mut packer = Packer::with_room(FIXED_BYTES + len);
        self.records.pack(&mut packer);
        self.facts.pack(&mut packer);
        packer.flag(self.sealer == Sealer::ThreadForGood).flag(self.is_unsettled());
        packer.flag(self.sealed_untried).flag(self.ends_behind_output);
        bytes.iter().for_each(|bytes| _ = packer.bytes(bytes));
        packer.number(self.unsent_data).number(self.uncounted_data).number(self.early_data);
        packer.finish()
    }

    /// Whether a send queue has the bytes that are in records of this.
    pub(in crate::transport) fn fits(&self, send_queue: &SendQueue) -> bool {
        self.unsent_data.saturating_add(self.uncounted_data) <= send_queue.queued()
            && self.early_data <= send_queue.sent()
    }

    /// TLS that another process has packed; `None`: it has packed something else.
    pub(in crate::transport) fn unpack(packed: &[u8]) -> Option<Self> {
        let mut packed = Unpacker::new(packed);
        let records = Records::unpack(&mut packed)?;
        let facts = Facts::unpack(&mut packed)?;
        let sealer = match (records.are_sealed_by_kernel(), packed.flag()?, packed.flag()?) {
            (true, false, unsettled) => Sealer::Kernel { unsettled },
            (false, true, false) => Sealer::ThreadForGood,
            (false, false, false) => Sealer::Thread,
            _ => return None,
        };
        let (sealed_untried, ends_behind_output) = (packed.flag()?, packed.flag()?);
        let mut bytes = || packed.bytes().map(<[u8]>::to_vec);
        let (sealed, opened, unsent) = (bytes()?, bytes()?, bytes()?);
        let mut data = || packed.number().filter(|data| *data <= unsent.len() as u64);
        let (unsent_data, uncounted_data, early_data) = (data()?, packed.number()?, packed.number()?);
        let fits =
            packed.is_empty() && sealed.len() <= super::BATCH_BYTES && early_data <= unsent.len() as u64;
        fits.then(|| Self {
            sealed,
            sealed_untried,
            opened,
            unsent: Unsent(unsent),
            unsent_data,
            uncounted_data,
            early_data,
            ends_behind_output,
            sealer,
            ..Self::with(records, facts)
        })
    }
}

/// More than keys, secrets and facts take.
const FIXED_BYTES: usize = 4096;
