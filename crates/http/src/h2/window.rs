//! Windows of flow control, in both directions (RFC 9113 section 5.2).

use baton_passport::parcel::{Packer, Unpacker};

use super::error::Violation;

/// How much the client takes. Negative after a smaller SETTINGS_INITIAL_WINDOW_SIZE.
#[derive(Debug)]
pub(crate) struct SendWindow(i64);

impl SendWindow {
    pub(crate) fn new(bytes: u32) -> Self {
        Self(i64::from(bytes))
    }

    /// Bytes that may be sent now.
    pub(crate) fn available(&self) -> u64 {
        u64::try_from(self.0).unwrap_or(0)
    }

    /// Takes note of sent bytes, never more than are available.
    pub(crate) fn take(&mut self, bytes: u64) {
        debug_assert!(bytes <= self.available());
        self.0 -= bytes as i64;
    }

    /// WINDOW_UPDATE.
    ///
    /// # Errors
    /// The window would be larger than 2^31-1 bytes.
    pub(crate) fn grow(&mut self, increment: u32) -> Result<(), Violation> {
        self.shift(i64::from(increment)).ok_or(Violation::WindowOverflow)
    }

    /// SETTINGS_INITIAL_WINDOW_SIZE moved by `delta`; `None` if the window would be larger than 2^31-1 bytes.
    pub(crate) fn shift(&mut self, delta: i64) -> Option<()> {
        self.0 = Some(self.0 + delta).filter(|bytes| *bytes <= WINDOW_MAX)?;
        Some(())
    }

    pub(crate) fn pack(&self, packer: &mut Packer) {
        packer.number(self.0 as u64);
    }

    pub(crate) fn unpack(packed: &mut Unpacker<'_>) -> Option<Self> {
        let bytes = packed.number()? as i64;
        (-WINDOW_MAX..=WINDOW_MAX).contains(&bytes).then_some(Self(bytes))
    }
}

/// How much the client may send.
#[derive(Debug)]
pub(crate) struct ReceiveWindow {
    /// Bytes that may be unconsumed or on their way.
    target: u64,
    /// Bytes that the client may still send.
    open: u64,
    /// Bytes that have come and are not consumed.
    held: u64,
}

impl ReceiveWindow {
    pub(crate) fn new(bytes: u32) -> Self {
        Self { target: u64::from(bytes), open: u64::from(bytes), held: 0 }
    }

    /// Bytes that have come and are not consumed.
    pub(crate) fn held(&self) -> u64 {
        self.held
    }

    /// Bytes that the client may still send.
    pub(crate) fn open(&self) -> u64 {
        self.open
    }

    /// Bytes have come.
    ///
    /// # Errors
    /// More than the client was allowed.
    pub(crate) fn receive(&mut self, bytes: u32) -> Result<(), Violation> {
        let bytes = u64::from(bytes);
        self.open = self.open.checked_sub(bytes).ok_or(Violation::WindowExceeded)?;
        self.held += bytes;
        Ok(())
    }

    /// Bytes were consumed, never more than are held.
    pub(crate) fn consume(&mut self, bytes: u64) {
        debug_assert!(bytes <= self.held);
        self.held = self.held.saturating_sub(bytes);
    }

    /// Packs the window of a connection none of whose bytes are held.
    pub(crate) fn pack(&self, packer: &mut Packer) {
        packer.number(self.target).number(self.open);
    }

    pub(crate) fn unpack(packed: &mut Unpacker<'_>) -> Option<Self> {
        let (target, open) = (packed.number()?, packed.number()?);
        (open <= target && target <= WINDOW_MAX as u64).then_some(Self { target, open, held: 0 })
    }

    /// The window may be this large from now on.
    pub(crate) fn widen(&mut self, bytes: u32) {
        self.target = self.target.max(u64::from(bytes));
    }

    /// The increment of a WINDOW_UPDATE that is worth its 13 bytes: half a window at least.
    pub(crate) fn credit(&mut self) -> Option<u32> {
        let credit = self.target.saturating_sub(self.held + self.open);
        if credit == 0 || credit < self.target / 2 {
            return None;
        }
        self.open += credit;
        u32::try_from(credit).ok()
    }
}

/// The largest window.
const WINDOW_MAX: i64 = (1 << 31) - 1;

/// The window of a new stream and connection, in bytes, until SETTINGS or WINDOW_UPDATE say another (RFC 9113 section
/// 6.9.2). Streams of clients keep it until their body is wanted.
pub(crate) const INITIAL_WINDOW: u32 = 65_535;

/// The window of a stream whose body is consumed, in bytes: 100 Mbit/s over 80 ms.
pub const BODY_WINDOW: u32 = 1 << 20;

/// The window of a connection, in bytes: most that one client can make the server keep of bodies that wait. Two bodies
/// are received at full speed.
pub const CONNECTION_WINDOW: u32 = 2 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_sent_can_become_negative_but_not_too_large() {
        let mut window = SendWindow::new(10);
        window.take(10);
        assert_eq!(window.shift(-5), Some(()));
        assert_eq!(window.available(), 0);
        assert_eq!(window.grow(6), Ok(()));
        assert_eq!(window.available(), 1);
        assert_eq!(window.grow(0x7fff_fffe), Ok(()));
        assert_eq!(window.grow(1), Err(Violation::WindowOverflow));
        assert_eq!(window.shift(1), None);
    }

    #[test]
    fn credit_goes_back_when_half_a_window_was_consumed() {
        let mut window = ReceiveWindow::new(100);
        assert_eq!(window.receive(101), Err(Violation::WindowExceeded));
        assert_eq!(window.receive(100), Ok(()));
        assert_eq!(window.credit(), None, "nothing was consumed");
        window.consume(49);
        assert_eq!(window.credit(), None, "too little to say");
        window.consume(1);
        assert_eq!(window.credit(), Some(50));
        assert_eq!((window.held(), window.open()), (50, 50));
        window.widen(1000);
        assert_eq!(window.credit(), Some(900));
        assert_eq!(window.open(), 950);
    }
}
