//! What the kernel has to know to seal records itself.

use std::fmt;

use zeroize::Zeroize;

use crate::{Cipher, Version};

/// The transmit key of a connection, as plain data for the kernel (`TLS_TX`). Its memory is cleared when it is dropped.
pub struct KernelTransmit {
    /// The version of the records.
    pub version: Version,
    /// How they are sealed.
    pub cipher: Cipher,
    key: [u8; 32],
    iv: [u8; 12],
    /// The number of the next record.
    pub sequence: u64,
}

impl KernelTransmit {
    pub(crate) fn new(version: Version, cipher: Cipher, key: &[u8], iv: [u8; 12], sequence: u64) -> Self {
        let mut bytes = [0; 32];
        let len = key.len().min(bytes.len());
        bytes[..len].copy_from_slice(&key[..len]);
        Self { version, cipher, key: bytes, iv, sequence }
    }

    /// The key: 16 bytes for AES-128, else 32.
    pub fn key(&self) -> &[u8] {
        match self.cipher {
            Cipher::Aes128Gcm => &self.key[..16],
            Cipher::Aes256Gcm | Cipher::ChaCha20Poly1305 => &self.key,
        }
    }

    /// The first 4 bytes of the initialization vector, which the kernel calls the salt.
    pub fn salt(&self) -> [u8; 4] {
        [self.iv[0], self.iv[1], self.iv[2], self.iv[3]]
    }

    /// The other 8 bytes.
    pub fn iv(&self) -> [u8; 8] {
        let [_, _, _, _, iv @ ..] = self.iv;
        iv
    }
}

impl fmt::Debug for KernelTransmit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KernelTransmit").field("cipher", &self.cipher).finish_non_exhaustive()
    }
}

impl Drop for KernelTransmit {
    fn drop(&mut self) {
        self.key.zeroize();
    }
}
