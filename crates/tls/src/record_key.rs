//! One direction's key: seals or opens single records, each under its own number.
//!
//! It calls the cipher directly. Through rustls' own encrypters each record costs an allocation and two copies; here the
//! bytes of a piece are encrypted on their way into the output, and opened where they lie.

use std::ops::Range;

use aws_lc_rs::aead::{AES_128_GCM, AES_256_GCM, Aad, Algorithm, CHACHA20_POLY1305, LessSafeKey, Nonce};
use aws_lc_rs::aead::{NONCE_LEN, UnboundKey};
use baton_passport::parcel::{Packer, Unpacker};
use rustls::ConnectionTrafficSecrets;
use zeroize::Zeroizing;

use crate::record_error::RecordError;
use crate::{Cipher, KernelTransmit, Version};

/// Bytes of a record in front of its payload: type, version, length.
pub(crate) const HEADER_BYTES: usize = 5;

/// The most plaintext that a record carries (RFC 8446, section 5.1).
pub(crate) const PLAINTEXT_BYTES_MAX: usize = 1 << 14;

/// The most that any version and cipher adds to a record's plaintext: that of AES-GCM under TLS 1.2.
pub(crate) const OVERHEAD_BYTES_MAX: usize = HEADER_BYTES + EXPLICIT_NONCE_BYTES + TAG_BYTES;

/// All ciphers of this crate have tags of this size.
const TAG_BYTES: usize = 16;

/// The part of the nonce that AES-GCM under TLS 1.2 sends along (RFC 5288, section 3).
const EXPLICIT_NONCE_BYTES: usize = 8;

/// What a record carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum ContentType {
    Alert = 21,
    Handshake = 22,
    Data = 23,
}

impl ContentType {
    fn of(byte: u8) -> Option<Self> {
        [Self::Alert, Self::Handshake, Self::Data].into_iter().find(|known| *known as u8 == byte)
    }
}

/// What a direction is sealed by, as plain data. Cleared when it is dropped.
pub(crate) struct Keys {
    cipher: Cipher,
    /// The key, in front.
    key: Zeroizing<[u8; 32]>,
    iv: [u8; NONCE_LEN],
}

impl Keys {
    /// `key` has the bytes that the cipher asks for.
    pub(crate) fn new(cipher: Cipher, key: &[u8], iv: [u8; NONCE_LEN]) -> Self {
        let mut bytes = Zeroizing::new([0; 32]);
        let len = key.len().min(bytes.len());
        bytes[..len].copy_from_slice(&key[..len]);
        Self { cipher, key: bytes, iv }
    }

    /// Secrets as the library has them.
    pub(crate) fn of(secrets: &ConnectionTrafficSecrets) -> Result<Self, RecordError> {
        let (cipher, key, iv) = match secrets {
            ConnectionTrafficSecrets::Aes128Gcm { key, iv } => (Cipher::Aes128Gcm, key, iv),
            ConnectionTrafficSecrets::Aes256Gcm { key, iv } => (Cipher::Aes256Gcm, key, iv),
            ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => (Cipher::ChaCha20Poly1305, key, iv),
            _ => return Err(RecordError::Internal),
        };
        let iv = iv.as_ref().try_into().map_err(|_| RecordError::Internal)?;
        Ok(Self::new(cipher, key.as_ref(), iv))
    }

    fn key(&self) -> &[u8] {
        &self.key[..self.cipher.key_bytes()]
    }
}

/// The key of one direction.
pub(crate) struct RecordKey {
    version: Version,
    keys: Keys,
    key: LessSafeKey,
    /// The number of the next record.
    sequence: u64,
}

impl RecordKey {
    /// The key of the record with this number and of those behind it.
    pub(crate) fn new(version: Version, keys: Keys, sequence: u64) -> Result<Self, RecordError> {
        let algorithm: &'static Algorithm = match keys.cipher {
            Cipher::Aes128Gcm => &AES_128_GCM,
            Cipher::Aes256Gcm => &AES_256_GCM,
            Cipher::ChaCha20Poly1305 => &CHACHA20_POLY1305,
        };
        let key = UnboundKey::new(algorithm, keys.key()).map_err(|_| RecordError::Internal)?;
        Ok(Self { version, key: LessSafeKey::new(key), keys, sequence })
    }

    pub(crate) fn pack(&self, packer: &mut Packer) {
        packer.bytes(self.keys.key()).bytes(&self.keys.iv).number(self.sequence);
    }

    pub(crate) fn unpack(packed: &mut Unpacker<'_>, version: Version, cipher: Cipher) -> Option<Self> {
        let key = packed.bytes().filter(|key| key.len() == cipher.key_bytes())?;
        let keys = Keys::new(cipher, key, packed.bytes()?.try_into().ok()?);
        Self::new(version, keys, packed.number()?).ok()
    }

    pub(crate) fn cipher(&self) -> Cipher {
        self.keys.cipher
    }

    /// The number of the next record.
    pub(crate) fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Records that may be sealed under one key (draft-irtf-cfrg-aead-limits, as rustls has it).
    pub(crate) fn records_max(&self) -> u64 {
        match self.keys.cipher {
            Cipher::Aes128Gcm | Cipher::Aes256Gcm => 1 << 24,
            Cipher::ChaCha20Poly1305 => u64::MAX,
        }
    }

    /// What the kernel needs to seal the next records.
    pub(crate) fn for_kernel(&self) -> KernelTransmit {
        let Keys { cipher, iv, .. } = self.keys;
        KernelTransmit::new(self.version, cipher, self.keys.key(), iv, self.sequence)
    }

    /// Bytes that a record adds to its plaintext.
    pub(crate) fn overhead(&self) -> usize {
        HEADER_BYTES + self.explicit_nonce_bytes() + self.inner_type_bytes() + TAG_BYTES
    }

    fn explicit_nonce_bytes(&self) -> usize {
        match (self.version, self.keys.cipher) {
            (Version::Tls12, Cipher::Aes128Gcm | Cipher::Aes256Gcm) => EXPLICIT_NONCE_BYTES,
            _ => 0,
        }
    }

    /// TLS 1.3 encrypts a record's type behind its content.
    fn inner_type_bytes(&self) -> usize {
        usize::from(self.version == Version::Tls13)
    }

    /// Seals the next `len` bytes of `content` as one record into the front of `out`, which has room for it. Returns
    /// the record's size.
    pub(crate) fn seal(
        &mut self,
        content_type: ContentType,
        content: &mut Gather<'_>,
        len: usize,
        out: &mut [u8],
    ) -> Result<usize, RecordError> {
        let size = len + self.overhead();
        let out = out.get_mut(..size).ok_or(RecordError::Internal)?;
        let nonce = self.nonce();
        let start = HEADER_BYTES + self.explicit_nonce_bytes();
        let outer_type = match self.version {
            Version::Tls12 => content_type,
            Version::Tls13 => ContentType::Data,
        };
        let header = header(outer_type as u8, size - HEADER_BYTES);
        out[..HEADER_BYTES].copy_from_slice(&header);
        out[HEADER_BYTES..start].copy_from_slice(&nonce[NONCE_LEN - (start - HEADER_BYTES)..]);

        let (body, trailer) = out[start..].split_at_mut(len);
        let inner_type = [content_type as u8];
        let inner_type = &inner_type[..self.inner_type_bytes()];
        let aad = AssociatedData::new(self.version, header, self.sequence, len);
        let nonce = Nonce::assume_unique_for_key(nonce);
        let sealed = match content.take_whole(len) {
            Some(piece) => {
                self.key.seal_out_of_place_scatter(nonce, Aad::from(aad), piece, body, inner_type, trailer)
            }
            None => {
                content.copy_to(body);
                self.key.seal_in_place_scatter(nonce, Aad::from(aad), body, inner_type, trailer)
            }
        };
        sealed.map_err(|_| RecordError::Internal)?;
        self.sequence += 1;
        Ok(size)
    }

    /// Opens a whole record where it lies. Returns what it carries, and where the content is.
    pub(crate) fn open(&mut self, record: &mut [u8]) -> Result<(ContentType, Range<usize>), RecordError> {
        let start = HEADER_BYTES + self.explicit_nonce_bytes();
        let len = record.len().checked_sub(start + TAG_BYTES).ok_or(RecordError::Corrupt)?;
        let header = [record[0], record[1], record[2], record[3], record[4]];
        let mut nonce = self.nonce();
        if self.explicit_nonce_bytes() != 0 {
            nonce[..NONCE_LEN - EXPLICIT_NONCE_BYTES]
                .copy_from_slice(&self.keys.iv[..NONCE_LEN - EXPLICIT_NONCE_BYTES]);
            nonce[NONCE_LEN - EXPLICIT_NONCE_BYTES..].copy_from_slice(&record[HEADER_BYTES..start]);
        }
        let aad = AssociatedData::new(self.version, header, self.sequence, len);
        let content = self
            .key
            .open_in_place(Nonce::assume_unique_for_key(nonce), Aad::from(aad), &mut record[start..])
            .map_err(|_| RecordError::Corrupt)?;
        self.sequence += 1;
        let (content_type, len) = match self.version {
            Version::Tls12 => (header[0], content.len()),
            // The type is the last byte that is not zero; the zeros behind it are padding (RFC 8446, section 5.4).
            Version::Tls13 => {
                let at = content.iter().rposition(|byte| *byte != 0).ok_or(RecordError::Unexpected)?;
                (content[at], at)
            }
        };
        if len > PLAINTEXT_BYTES_MAX {
            return Err(RecordError::TooLarge);
        }
        let content_type = ContentType::of(content_type).ok_or(RecordError::Unexpected)?;
        Ok((content_type, start..start + len))
    }

    /// The initialization vector, crossed with the record's number (RFC 8446, section 5.3). With AES-GCM under TLS 1.2
    /// the sender is free to choose nonces; rustls, whose connection this continues, chooses them in the same way.
    fn nonce(&self) -> [u8; NONCE_LEN] {
        let mut nonce = self.keys.iv;
        for (byte, number) in nonce[NONCE_LEN - 8..].iter_mut().zip(self.sequence.to_be_bytes()) {
            *byte ^= number;
        }
        nonce
    }
}

/// The header of a record; the version is that of TLS 1.2 under TLS 1.3, too (RFC 8446, section 5.1).
fn header(content_type: u8, payload_len: usize) -> [u8; HEADER_BYTES] {
    let len = (payload_len as u16).to_be_bytes();
    [content_type, 3, 3, len[0], len[1]]
}

/// What is authenticated beside the content.
struct AssociatedData {
    bytes: [u8; 13],
    len: usize,
}

impl AssociatedData {
    fn new(version: Version, header: [u8; HEADER_BYTES], sequence: u64, plaintext_len: usize) -> Self {
        let mut bytes = [0; 13];
        match version {
            // RFC 8446, section 5.2: the header as it is sent.
            Version::Tls13 => {
                bytes[..HEADER_BYTES].copy_from_slice(&header);
                Self { bytes, len: HEADER_BYTES }
            }
            // RFC 5246, section 6.2.3.3: number, type, version and the plaintext's length.
            Version::Tls12 => {
                bytes[..8].copy_from_slice(&sequence.to_be_bytes());
                bytes[8..11].copy_from_slice(&header[..3]);
                bytes[11..].copy_from_slice(&(plaintext_len as u16).to_be_bytes());
                Self { bytes, len: bytes.len() }
            }
        }
    }
}

impl AsRef<[u8]> for AssociatedData {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Reads through pieces of memory as if they were one.
#[derive(Clone, Debug)]
pub(crate) struct Gather<'a> {
    pieces: &'a [&'a [u8]],
    /// Bytes of the first piece that are behind us.
    offset: usize,
}

impl<'a> Gather<'a> {
    pub(crate) fn new(pieces: &'a [&'a [u8]]) -> Self {
        Self { pieces, offset: 0 }
    }

    /// The next `len` bytes, if they lie in one piece.
    fn take_whole(&mut self, len: usize) -> Option<&'a [u8]> {
        self.skip_finished();
        let piece = self.pieces.first()?.get(self.offset..self.offset + len)?;
        self.offset += len;
        Some(piece)
    }

    /// Copies the next bytes, of which there are enough.
    fn copy_to(&mut self, mut out: &mut [u8]) {
        while !out.is_empty() {
            self.skip_finished();
            let Some(piece) = self.pieces.first() else { return };
            let piece = &piece[self.offset..];
            let len = piece.len().min(out.len());
            let (filled, rest) = out.split_at_mut(len);
            filled.copy_from_slice(&piece[..len]);
            self.offset += len;
            out = rest;
        }
    }

    fn skip_finished(&mut self) {
        while let [first, rest @ ..] = self.pieces
            && self.offset == first.len()
        {
            (self.pieces, self.offset) = (rest, 0);
        }
    }
}
