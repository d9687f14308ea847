//! The records of an established connection: data into records, records into data.
//!
//! It continues what the library has begun, with the keys of the handshake. Data in any number of pieces becomes records
//! in memory of the caller's, and records are opened where they lie, so that a connection owns no buffer.
//!
//! Commands: `seal*`. Input: [`open`](Records::open). New keys, in both directions, are its own business.

use std::fmt;
use std::ops::Range;

use baton_passport::parcel::{Packer, Unpacker};
use rustls::ExtractedSecrets;

use crate::key_schedule::KeySchedule;
use crate::pace::Pace;
use crate::record_key::{
    ContentType, Gather, HEADER_BYTES, Keys, OVERHEAD_BYTES_MAX, PLAINTEXT_BYTES_MAX, RecordKey,
};
use crate::{Alert, Cipher, KernelTransmit, RecordError, Version};

/// The largest record that is sealed or opened. TLS 1.2 allows a peer larger ones, which need compression.
pub const RECORD_BYTES_MAX: usize = PLAINTEXT_BYTES_MAX + 256 + HEADER_BYTES;

const _: () = assert!(OVERHEAD_BYTES_MAX <= 256 + HEADER_BYTES);

/// Room that one alert takes at most; [`Records::seal_alert`] needs it.
pub const ALERT_BYTES_MAX: usize = OVERHEAD_BYTES_MAX + 2;

/// Records without data in a row that a client may send: empty ones, warnings, changes of keys. Each costs us more than
/// it costs the client.
const RECORDS_WITHOUT_DATA_MAX: u32 = 16;

/// Bytes that the kernel may seal under one key: as many as are in [all its records](RecordKey::records_max) if these are
/// full. Confidentiality suffers by blocks, not by records (RFC 8446, section 5.5), whose number only the kernel knows.
const BYTES_BY_KERNEL_MAX: u64 = (1 << 24) * PLAINTEXT_BYTES_MAX as u64;

/// The message that changes the sender's key (RFC 8446, section 4.6.3), without its last byte: 0, or 1 if it asks the
/// receiver to change its key, too.
const KEY_UPDATE: [u8; 4] = [24, 0, 0, 1];

/// A ticket of a server (RFC 8446, section 4.6.1), its type and length, and the most that is kept of one: those of real
/// servers have some hundred bytes, more with client certificates.
const NEW_SESSION_TICKET: u8 = 4;
const MESSAGE_HEAD_BYTES: usize = 4;
const TICKET_BYTES_MAX: usize = 32 * 1024;

/// The records of a connection.
pub struct Records {
    transmit: RecordKey,
    receive: RecordKey,
    /// Makes new keys. `None`: TLS 1.2, whose keys last.
    keys: Option<KeySchedule>,
    /// The beginning of a message of the handshake protocol that goes on in the next record: of a server's tickets only.
    message: Vec<u8>,
    pace: Pace,
    /// The client has asked for a new key of ours, which is due before more data (RFC 8446, section 4.6.3).
    owes_key_update: bool,
    /// What the kernel has sealed, in bytes; `None`: we seal.
    sealed_by_kernel: Option<u64>,
    /// The client has sent its `close_notify`, or no more answers can be sealed: what follows is ignored.
    has_ended: bool,
    records_without_data: u32,
    /// Records that one key may seal.
    pub(crate) records_per_key_max: u64,
}

/// What came of sealing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sealed {
    /// Bytes of data that are in the records.
    pub taken: usize,
    /// Bytes of records.
    pub written: usize,
}

/// What came of opening.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opened {
    /// The first record is not complete.
    Part,
    /// Data; where it lies in the buffer, and how many bytes of the buffer are behind us.
    Data {
        /// The plaintext. Not empty.
        data: Range<usize>,
        /// Bytes that the record took.
        consumed: usize,
    },
    /// A record without data, of so many bytes.
    Control {
        /// Bytes that the record took.
        consumed: usize,
    },
    /// The client will send nothing more, and says so. The rest of the buffer is of no use.
    End,
}

/// Why no more records of a buffer are opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// The reader has no room for more data.
    Full,
    /// The next record is not complete.
    Part,
    /// The other side will send nothing more, and says so.
    End,
}

impl Records {
    pub(crate) fn new(
        version: Version,
        secrets: ExtractedSecrets,
        keys: KeySchedule,
    ) -> Result<Self, RecordError> {
        let (transmit_sequence, transmit) = secrets.tx;
        let (receive_sequence, receive) = secrets.rx;
        let transmit = RecordKey::new(version, Keys::of(&transmit)?, transmit_sequence)?;
        let receive = RecordKey::new(version, Keys::of(&receive)?, receive_sequence)?;
        match version {
            Version::Tls12 => Ok(Self::with(transmit, receive, None)),
            Version::Tls13 if keys.is_complete(transmit.cipher()) => {
                Ok(Self::with(transmit, receive, Some(keys)))
            }
            Version::Tls13 => Err(RecordError::Internal),
        }
    }

    fn with(transmit: RecordKey, receive: RecordKey, keys: Option<KeySchedule>) -> Self {
        Self {
            records_per_key_max: transmit.records_max(),
            transmit,
            receive,
            keys,
            message: Vec::new(),
            pace: Pace::new(),
            owes_key_update: false,
            sealed_by_kernel: None,
            has_ended: false,
            records_without_data: 0,
        }
    }

    /// Seals the data in `pieces`, one behind the other, into records in `out`, as far as there is room. The time, in
    /// milliseconds, decides on the size of the records. Room for less than a record stays empty.
    ///
    /// # Errors
    /// [`RecordError::Exhausted`]; [`RecordError::Internal`], also if the kernel seals.
    pub fn seal(&mut self, pieces: &[&[u8]], now_ms: u64, out: &mut [u8]) -> Result<Sealed, RecordError> {
        self.pace.handle_time(now_ms);
        let mut content = Gather::new(pieces);
        let mut left: usize = pieces.iter().map(|piece| piece.len()).sum();
        let mut sealed = Sealed::default();
        while left > 0 {
            let len = left.min(self.pace.record_bytes());
            let room = out.len() - sealed.written;
            if self.needs_new_key() {
                if room < 2 * self.transmit.overhead() + KEY_UPDATE.len() + 1 + len {
                    break;
                }
                sealed.written += self.change_key(&mut out[sealed.written..])?;
            } else if room < self.transmit.overhead() + len {
                break;
            }
            sealed.written +=
                self.seal_one(ContentType::Data, &mut content, len, &mut out[sealed.written..])?;
            self.pace.handle_sealed(len);
            sealed.taken += len;
            left -= len;
        }
        Ok(sealed)
    }

    /// Seals an alert into the front of `out`, which has room for [`ALERT_BYTES_MAX`]. Returns the record's size.
    ///
    /// # Errors
    /// [`RecordError::Internal`].
    pub fn seal_alert(&mut self, alert: Alert, out: &mut [u8]) -> Result<usize, RecordError> {
        self.seal_message(ContentType::Alert, &alert.message(), out)
    }

    /// Opens the first record of `buffer` where it lies.
    ///
    /// # Errors
    /// Any [`RecordError`] but [`RecordError::Exhausted`].
    pub fn open(&mut self, buffer: &mut [u8]) -> Result<Opened, RecordError> {
        if self.has_ended {
            return Ok(Opened::End);
        }
        let Some(header) = buffer.first_chunk::<HEADER_BYTES>() else { return Ok(Opened::Part) };
        if !(21..=23).contains(&header[0]) || header[1] != 3 {
            return Err(RecordError::Unexpected);
        }
        let consumed = HEADER_BYTES + usize::from(u16::from_be_bytes([header[3], header[4]]));
        if consumed > RECORD_BYTES_MAX {
            return Err(RecordError::TooLarge);
        }
        let Some(record) = buffer.get_mut(..consumed) else { return Ok(Opened::Part) };
        let (content_type, content) = self.receive.open(record)?;
        if content_type == ContentType::Data && !content.is_empty() {
            self.records_without_data = 0;
            return Ok(Opened::Data { data: content, consumed });
        }
        self.records_without_data += 1;
        if self.records_without_data > RECORDS_WITHOUT_DATA_MAX {
            return Err(RecordError::Flood);
        }
        match content_type {
            ContentType::Data => {}
            ContentType::Alert => self.handle_alert(&buffer[content])?,
            ContentType::Handshake => self.handle_messages(&buffer[content])?,
        }
        Ok(if self.has_ended { Opened::End } else { Opened::Control { consumed } })
    }

    /// Opens the records of `buffer` one by one, as long as `take` wants more than the data that it is given. Returns how many
    /// bytes of the buffer they took, and why the next one was not opened.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_each(
        &mut self,
        buffer: &mut [u8],
        mut take: impl FnMut(&[u8]) -> bool,
    ) -> Result<(usize, Stopped), RecordError> {
        let mut at = 0;
        loop {
            match self.open(&mut buffer[at..])? {
                Opened::Data { data, consumed } => {
                    let wants_more = take(&buffer[at..][data]);
                    at += consumed;
                    if !wants_more {
                        return Ok((at, Stopped::Full));
                    }
                }
                Opened::Control { consumed } => at += consumed,
                Opened::Part => return Ok((at, Stopped::Part)),
                Opened::End => return Ok((at, Stopped::End)),
            }
        }
    }

    /// Whether the kernel can seal in our place: not under TLS 1.2, whose nonces it would choose in another way, nor by
    /// ChaCha20-Poly1305, which pays only where AES is slow. A key that is to be changed has to be changed first.
    pub fn suits_kernel(&self) -> bool {
        self.keys.is_some()
            && self.transmit.cipher() != Cipher::ChaCha20Poly1305
            && self.sealed_by_kernel.is_none()
            && !self.needs_new_key()
    }

    /// What the kernel needs to seal all further records. When it does, call
    /// [`handle_kernel_seals`](Self::handle_kernel_seals).
    ///
    /// # Errors
    /// [`RecordError::Internal`]: [`suits_kernel`](Self::suits_kernel) says no.
    pub fn for_kernel(&self) -> Result<KernelTransmit, RecordError> {
        if self.suits_kernel() { Ok(self.transmit.for_kernel()) } else { Err(RecordError::Internal) }
    }

    /// The kernel seals from now on; we seal no more: two of us with one key would use numbers twice.
    pub fn handle_kernel_seals(&mut self) {
        self.sealed_by_kernel = Some(0);
    }

    /// The kernel has sealed so many bytes of data. Behind the limit of its key, the input counts as ended.
    pub fn handle_sealed_by_kernel(&mut self, bytes: u64) {
        if let Some(sealed) = &mut self.sealed_by_kernel {
            *sealed = sealed.saturating_add(bytes);
            self.has_ended |= *sealed >= BYTES_BY_KERNEL_MAX;
        }
    }

    fn handle_alert(&mut self, message: &[u8]) -> Result<(), RecordError> {
        const WARNING: u8 = 1;
        let &[level, description] = message else { return Err(RecordError::Unexpected) };
        match Alert(description) {
            Alert::CLOSE_NOTIFY => {
                self.has_ended = true;
                Ok(())
            }
            // A close_notify follows (RFC 8446, section 6.1).
            Alert::USER_CANCELED => Ok(()),
            // Under TLS 1.3 every other alert is an end; before, the sender said which.
            _ if level == WARNING && self.keys.is_none() => Ok(()),
            alert => Err(RecordError::PeerAlert(alert)),
        }
    }

    /// Messages of the handshake protocol. A change of keys ends its record, since the key behind it is another; a server's
    /// tickets may share records, or go on in the next one.
    fn handle_messages(&mut self, content: &[u8]) -> Result<(), RecordError> {
        let Some(keys) = &mut self.keys else { return Err(RecordError::Renegotiation) };
        self.message.extend_from_slice(content);
        while keys.may_get_tickets()
            && let Some(&[NEW_SESSION_TICKET, a, b, c]) = self.message.first_chunk()
        {
            let len = u32::from_be_bytes([0, a, b, c]) as usize;
            if len > TICKET_BYTES_MAX {
                return Err(RecordError::Unexpected);
            }
            let Some(payload) = self.message.get(MESSAGE_HEAD_BYTES..MESSAGE_HEAD_BYTES + len) else {
                return Ok(());
            };
            if !keys.handle_ticket(payload) {
                return Err(RecordError::Unexpected);
            }
            self.message.drain(..MESSAGE_HEAD_BYTES + len);
        }
        let is_part_of_ticket = keys.may_get_tickets() && self.message.first() == Some(&NEW_SESSION_TICKET);
        if self.message.is_empty() || is_part_of_ticket {
            return Ok(());
        }
        let message = std::mem::take(&mut self.message);
        match message.strip_prefix(&KEY_UPDATE) {
            Some(&[asks_for_ours @ (0 | 1)]) => self.handle_key_update(asks_for_ours == 1),
            _ => Err(RecordError::Unexpected),
        }
    }

    fn handle_key_update(&mut self, asks_for_ours: bool) -> Result<(), RecordError> {
        let keys = self.keys.as_mut().ok_or(RecordError::Renegotiation)?;
        let next = keys.next_receive(self.receive.cipher())?;
        self.receive = RecordKey::new(Version::Tls13, next, 0)?;
        self.owes_key_update |= asks_for_ours;
        // The kernel keeps its key (before Linux 6.14 it must). No answer may follow under the old one but those that are
        // on their way, so that further requests would be in vain.
        self.has_ended |= self.owes_key_update && self.sealed_by_kernel.is_some();
        Ok(())
    }

    fn needs_new_key(&self) -> bool {
        // The last record under the old key says that a new one follows.
        self.owes_key_update || self.transmit.sequence() + 1 >= self.records_per_key_max
    }

    /// Tells the client that the next record is under a new key, and changes to it.
    fn change_key(&mut self, out: &mut [u8]) -> Result<usize, RecordError> {
        let [a, b, c, d] = KEY_UPDATE;
        let written = self.seal_message(ContentType::Handshake, &[a, b, c, d, 0], out)?;
        let keys = self.keys.as_mut().ok_or(RecordError::Exhausted)?;
        let next = keys.next_transmit(self.transmit.cipher())?;
        self.transmit = RecordKey::new(Version::Tls13, next, 0)?;
        self.owes_key_update = false;
        Ok(written)
    }

    /// Whether another process can go on with the connection: the peer has not ended it.
    pub fn is_movable(&self) -> bool {
        !self.has_ended && self.message.is_empty()
    }

    /// Packs keys, secrets and numbers for the process that goes on. No record may be sealed or opened here after that.
    pub fn pack(&self, packer: &mut Packer) {
        packer.small(self.transmit.cipher().number()).flag(self.keys.is_some());
        self.transmit.pack(packer);
        self.receive.pack(packer);
        if let Some(keys) = &self.keys {
            keys.pack(packer);
        }
        packer
            .flag(self.owes_key_update)
            .maybe_number(self.sealed_by_kernel)
            .number(u64::from(self.records_without_data));
    }

    /// The records that another process has packed. `None`: it has packed something else.
    pub fn unpack(packed: &mut Unpacker<'_>) -> Option<Self> {
        let number = packed.small()?;
        let cipher = Cipher::ALL.into_iter().find(|cipher| cipher.number() == number)?;
        let has_later_keys = packed.flag()?;
        let version = if has_later_keys { Version::Tls13 } else { Version::Tls12 };
        let transmit = RecordKey::unpack(packed, version, cipher)?;
        let receive = RecordKey::unpack(packed, version, cipher)?;
        let keys = if has_later_keys { Some(KeySchedule::unpack(packed, cipher)?) } else { None };
        let mut records = Self::with(transmit, receive, keys);
        records.owes_key_update = packed.flag()?;
        records.sealed_by_kernel = packed.maybe_number()?;
        records.records_without_data = packed.number32()?.min(RECORDS_WITHOUT_DATA_MAX);
        Some(records)
    }

    /// Whether the kernel seals.
    pub fn are_sealed_by_kernel(&self) -> bool {
        self.sealed_by_kernel.is_some()
    }

    pub(crate) fn seal_message(
        &mut self,
        content_type: ContentType,
        message: &[u8],
        out: &mut [u8],
    ) -> Result<usize, RecordError> {
        self.seal_one(content_type, &mut Gather::new(&[message]), message.len(), out)
    }

    fn seal_one(
        &mut self,
        content_type: ContentType,
        content: &mut Gather<'_>,
        len: usize,
        out: &mut [u8],
    ) -> Result<usize, RecordError> {
        if self.sealed_by_kernel.is_some() {
            return Err(RecordError::Internal);
        }
        self.transmit.seal(content_type, content, len, out)
    }
}

impl fmt::Debug for Records {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Records")
            .field("sealed", &self.transmit.sequence())
            .field("opened", &self.receive.sequence())
            .finish_non_exhaustive()
    }
}
