//! Records of TLS that the kernel seals (kTLS): whatever any process writes to such a socket leaves in records.
//!
//! Transmit only: what arrives stays as it is. The kernel has no way back, and ends with the key that it has got.

use std::io::{self, Read};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd};

use zeroize::Zeroizing;

use crate::socket_option::set_bytes;

/// The key of AES-GCM for the records of TLS 1.3, as the kernel divides it.
#[derive(Clone, Copy)]
pub struct TransmitKey<'a> {
    /// 16 bytes, or 32.
    pub key: &'a [u8],
    /// The first bytes of the initialization vector.
    pub salt: [u8; 4],
    /// The others.
    pub iv: [u8; 8],
    /// The number of the next record.
    pub sequence: u64,
}

/// Lets the kernel seal what is written from now on, by any holder of the socket. If it fails, the socket is as before.
///
/// # Errors
/// `ENOENT`: the kernel has no TLS, or this process may not load it. `ENOTCONN`: the peer has closed its half.
/// `EEXIST` or `EBUSY`: the kernel seals already. `EINVAL`: a key of another size, or a cipher that the kernel lacks.
pub fn seal(socket: impl AsFd, key: &TransmitKey<'_>) -> io::Result<()> {
    let cipher = match key.key.len() {
        16 => libc::TLS_CIPHER_AES_GCM_128,
        32 => libc::TLS_CIPHER_AES_GCM_256,
        _ => return Err(io::Error::from_raw_os_error(libc::EINVAL)),
    };
    // `struct tls12_crypto_info_aes_gcm_128` or `_256` of linux/tls.h, which has no padding.
    let mut info = Zeroizing::new(Vec::with_capacity(INFO_BYTES_MAX));
    info.extend_from_slice(&libc::TLS_1_3_VERSION.to_ne_bytes());
    info.extend_from_slice(&cipher.to_ne_bytes());
    info.extend_from_slice(&key.iv);
    info.extend_from_slice(key.key);
    info.extend_from_slice(&key.salt);
    info.extend_from_slice(&key.sequence.to_be_bytes());
    set_bytes(&socket, libc::SOL_TCP, libc::TCP_ULP, b"tls")?;
    set_bytes(&socket, libc::SOL_TLS, libc::TLS_TX, &info)
}

/// Sends one record that is no data, such as an alert, without waiting, on a socket whose records the kernel seals. It
/// closes the record that `MSG_MORE` has left open.
///
/// # Errors
/// `EAGAIN`: the socket is full. `EPIPE`, `ECONNRESET`: the peer is gone.
pub fn send_record(socket: impl AsFd, content_type: u8, content: &[u8]) -> io::Result<()> {
    let mut piece = libc::iovec { iov_base: content.as_ptr().cast_mut().cast(), iov_len: content.len() };
    let mut control = ControlBuffer([0; CONTROL_BYTES]);
    // SAFETY: a message header of zeros is an empty one.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut piece;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = CONTROL_BYTES as _;
    // SAFETY: the control buffer is aligned for a header, and has room for one with a byte behind it.
    unsafe {
        let head = libc::CMSG_FIRSTHDR(&raw const message);
        (*head).cmsg_level = libc::SOL_TLS;
        (*head).cmsg_type = libc::TLS_SET_RECORD_TYPE;
        (*head).cmsg_len = libc::CMSG_LEN(1) as _;
        *libc::CMSG_DATA(head) = content_type;
    }
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: the message refers to memory that lives until the call returns, which only reads the content.
    let sent = unsafe { libc::sendmsg(socket.as_fd().as_raw_fd(), &raw const message, flags) };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Whether the kernel seals records as it should: has it seal one, and compares. As root this loads the kernel's module,
/// which other processes may not.
///
/// # Errors
/// Those of [`seal`]; `InvalidData` if the record is wrong; what hinders a connection of this process with itself.
pub fn self_test() -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let mut receiving = TcpStream::connect(listener.local_addr()?)?;
    let (sending, _) = listener.accept()?;
    let key: [u8; 16] = std::array::from_fn(|at| at as u8);
    seal(
        &sending,
        &TransmitKey { key: &key, salt: [0, 1, 2, 3], iv: [4, 5, 6, 7, 8, 9, 10, 11], sequence: 0 },
    )?;
    rustix::net::send(&sending, b"x", rustix::net::SendFlags::NOSIGNAL)?;
    drop(sending);
    let mut record = Vec::new();
    receiving.read_to_end(&mut record)?;
    match record == SELF_TEST_RECORD {
        true => Ok(()),
        false => Err(io::Error::new(io::ErrorKind::InvalidData, "the kernel seals records in a wrong way")),
    }
}

/// The record with the data "x" under the key of the test; from Python's `cryptography`.
const SELF_TEST_RECORD: [u8; 23] = [
    0x17, 0x03, 0x03, 0x00, 0x12, 0xeb, 0x7b, 0x33, 0xe9, 0xbc, 0xca, 0x89, 0x20, 0x8c, 0x07, 0x3a, 0xf2,
    0xc9, 0x02, 0xc1, 0xa1, 0x87, 0x22,
];

/// With the longer key.
const INFO_BYTES_MAX: usize = 56;

/// Room for a header and one byte, which alignment makes eight.
const CONTROL_BYTES: usize = size_of::<libc::cmsghdr>() + 8;

/// A control message begins with a structure, which has to be aligned.
#[repr(align(8))]
struct ControlBuffer([u8; CONTROL_BYTES]);

#[cfg(test)]
mod tests {
    use super::*;

    fn is_left_out() -> bool {
        match self_test() {
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => {
                eprintln!("LEFT OUT of the tests of kernel_tls: this kernel has no TLS");
                true
            }
            tested => {
                tested.unwrap();
                false
            }
        }
    }

    /// Goal: a record of another type closes the open one and follows it. Method: their headers; an alert looks like data.
    #[test]
    fn a_record_of_another_type_follows_the_data() {
        if is_left_out() {
            return;
        }
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut receiving = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (sending, _) = listener.accept().unwrap();
        let key = TransmitKey { key: &[7; 32], salt: [1; 4], iv: [2; 8], sequence: 5 };
        seal(&sending, &key).unwrap();
        assert!(seal(&sending, &key).is_err(), "the kernel seals already");
        rustix::net::send(&sending, &[1; 100], rustix::net::SendFlags::MORE).unwrap();
        send_record(&sending, 21, &[1, 0]).unwrap();
        drop(sending);
        let mut records = Vec::new();
        receiving.read_to_end(&mut records).unwrap();
        assert_eq!(records.len(), (5 + 100 + 1 + 16) + (5 + 2 + 1 + 16));
        assert_eq!((&records[..5], &records[122..127]), (&[23, 3, 3, 0, 117][..], &[23, 3, 3, 0, 19][..]));
    }

    /// A socket that the kernel refuses is as before.
    #[test]
    fn what_is_no_connection_is_refused() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let key = |key| TransmitKey { key, salt: [1; 4], iv: [2; 8], sequence: 0 };
        assert_eq!(seal(&listener, &key(&[0; 15])).unwrap_err().raw_os_error(), Some(libc::EINVAL));
        assert!(seal(&listener, &key(&[0; 16])).is_err());
    }
}
