//! Programs in the kernel (eBPF): maps, programs and links by bpf(2), without a compiler or a library.

pub(crate) mod assembler;

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

use assembler::Instruction;

/// A map whose keys and values are bytes of fixed lengths.
#[derive(Debug)]
pub(crate) struct Map {
    descriptor: OwnedFd,
    key_bytes: usize,
    value_bytes: usize,
}

/// How a map finds its elements.
#[derive(Clone, Copy, Debug)]
pub(crate) enum MapKind {
    /// The map takes memory as elements are added.
    Hash,
    /// Keys are numbers below the number of elements, each of which is there.
    Array,
    /// An array that [`MappedNumbers`] may map.
    MappableArray,
}

impl Map {
    /// An empty map. The kernel shows its name, at most 15 bytes.
    pub(crate) fn create(
        name: &str,
        kind: MapKind,
        key_bytes: usize,
        value_bytes: usize,
        elements_max: u32,
    ) -> io::Result<Self> {
        #[repr(C)]
        struct Attributes {
            kind: u32,
            key_bytes: u32,
            value_bytes: u32,
            elements_max: u32,
            flags: u32,
            inner_map: u32,
            node: u32,
            name: [u8; 16],
        }
        let (kind, flags) = match kind {
            MapKind::Hash => (MAP_TYPE_HASH, MAP_FLAG_NO_PREALLOC),
            MapKind::Array => (MAP_TYPE_ARRAY, 0),
            MapKind::MappableArray => (MAP_TYPE_ARRAY, MAP_FLAG_MAPPABLE),
        };
        let attributes = Attributes {
            kind,
            key_bytes: key_bytes as u32,
            value_bytes: value_bytes as u32,
            elements_max,
            flags,
            inner_map: 0,
            node: 0,
            name: object_name(name),
        };
        // SAFETY: the attributes hold no pointer.
        let descriptor = unsafe { bpf_descriptor(COMMAND_MAP_CREATE, &attributes) }?;
        Ok(Self { descriptor, key_bytes, value_bytes })
    }

    /// Adds an element that is not there, of a hash; `EEXIST` if it is, `E2BIG` if the map is full.
    pub(crate) fn insert(&self, key: &[u8], value: &[u8]) -> io::Result<()> {
        self.update(key, value, UPDATE_NO_EXIST)
    }

    /// Sets an element.
    pub(crate) fn set(&self, key: &[u8], value: &[u8]) -> io::Result<()> {
        self.update(key, value, UPDATE_ANY)
    }

    /// Takes an element out of a hash; `ENOENT` if it is not there.
    pub(crate) fn remove(&self, key: &[u8]) -> io::Result<()> {
        assert_eq!(key.len(), self.key_bytes);
        let attributes =
            Element { map: self.number(), padding: 0, key: key.as_ptr() as u64, value: 0, flags: 0 };
        // SAFETY: the kernel reads as many bytes of the key as the map's keys have.
        unsafe { bpf(COMMAND_MAP_DELETE, &attributes) }.map(drop)
    }

    fn update(&self, key: &[u8], value: &[u8], flags: u64) -> io::Result<()> {
        assert_eq!((key.len(), value.len()), (self.key_bytes, self.value_bytes));
        let (key, value) = (key.as_ptr() as u64, value.as_ptr() as u64);
        let attributes = Element { map: self.number(), padding: 0, key, value, flags };
        // SAFETY: the kernel reads as many bytes of key and value as the map's have.
        unsafe { bpf(COMMAND_MAP_UPDATE, &attributes) }.map(drop)
    }

    fn number(&self) -> u32 {
        self.descriptor.as_raw_fd() as u32
    }
}

impl AsFd for Map {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// The numbers of an array, as this process and the programs in the kernel see them alike.
#[derive(Debug)]
pub(crate) struct MappedNumbers {
    address: NonNull<AtomicU64>,
    count: usize,
}

// SAFETY: the mapping lives as long as the value, belongs to no thread, and is accessed through atomics only.
unsafe impl Send for MappedNumbers {}
// SAFETY: as above.
unsafe impl Sync for MappedNumbers {}

impl MappedNumbers {
    /// Maps the first `count` numbers of an array whose values consist of numbers of 64 bits.
    pub(crate) fn map(array: &Map, count: usize) -> io::Result<Self> {
        // SAFETY: a new mapping aliases nothing that is not an atomic. The kernel refuses a length beyond the array's, and
        // memory of a map never becomes shorter.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                count * size_of::<AtomicU64>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                array.descriptor.as_raw_fd(),
                0,
            )
        };
        let address = NonNull::new(address).filter(|address| address.as_ptr() != libc::MAP_FAILED);
        Ok(Self { address: address.ok_or_else(io::Error::last_os_error)?.cast(), count })
    }
}

impl std::ops::Deref for MappedNumbers {
    type Target = [AtomicU64];

    fn deref(&self) -> &[AtomicU64] {
        // SAFETY: the mapping holds `count` atomics, is page aligned, and lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.address.as_ptr(), self.count) }
    }
}

impl Drop for MappedNumbers {
    fn drop(&mut self) {
        // SAFETY: the mapping is this one's, and nothing borrows from it any more.
        unsafe { libc::munmap(self.address.as_ptr().cast(), self.count * size_of::<AtomicU64>()) };
    }
}

/// Where packets are shown to a program: `BPF_TCX_INGRESS` and `BPF_TCX_EGRESS` of linux/bpf.h.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Hook {
    /// Packets as they arrive, before the own stack.
    Ingress = 46,
    /// Packets as they leave, behind the own stack.
    Egress = 47,
}

/// A program for packets that the kernel has verified. It keeps the maps that it names.
#[derive(Debug)]
pub(crate) struct Program {
    descriptor: OwnedFd,
}

impl Program {
    /// Has the kernel verify and translate a program of the type of traffic control. The error says what the verifier has
    /// against it.
    pub(crate) fn load(name: &str, instructions: &[Instruction]) -> io::Result<Self> {
        #[repr(C)]
        struct Attributes {
            kind: u32,
            instruction_count: u32,
            instructions: u64,
            license: u64,
            log_level: u32,
            log_bytes: u32,
            log: u64,
            kernel_version: u32,
            flags: u32,
            name: [u8; 16],
        }
        let mut attributes = Attributes {
            kind: PROGRAM_TYPE_SCHED_CLS,
            instruction_count: instructions.len() as u32,
            instructions: instructions.as_ptr() as u64,
            license: c"GPL".as_ptr() as u64,
            log_level: 0,
            log_bytes: 0,
            log: 0,
            kernel_version: 0,
            flags: 0,
            name: object_name(name),
        };
        // SAFETY: pointer and length describe the instructions; the licence ends with a zero. The kernel reads both.
        let loaded = unsafe { bpf_descriptor(COMMAND_PROGRAM_LOAD, &attributes) };
        let refused = match loaded {
            Ok(descriptor) => return Ok(Self { descriptor }),
            Err(error) => error,
        };
        // Once more for the reason: a log that is too short would be an error by itself.
        let mut log = vec![0_u8; VERIFIER_LOG_BYTES];
        (attributes.log_level, attributes.log_bytes, attributes.log) =
            (1, log.len() as u32, log.as_mut_ptr() as u64);
        // SAFETY: as above; the kernel writes no more than `log_bytes` into the log.
        if let Ok(descriptor) = unsafe { bpf_descriptor(COMMAND_PROGRAM_LOAD, &attributes) } {
            return Ok(Self { descriptor });
        }
        let said =
            String::from_utf8_lossy(&log[..log.iter().position(|byte| *byte == 0).unwrap_or(0)]).into_owned();
        let last = said.trim().lines().rev().take(VERIFIER_LINES).collect::<Vec<_>>();
        let said = last.into_iter().rev().collect::<Vec<_>>().join("; ");
        Err(if said.is_empty() {
            refused
        } else {
            io::Error::new(refused.kind(), format!("{refused}: {said}"))
        })
    }

    /// Lets the program see each packet at a hook of the interface (TCX), until the link is dropped.
    pub(crate) fn attach(&self, interface: u32, hook: Hook) -> io::Result<OwnedFd> {
        #[repr(C)]
        struct Attributes {
            program: u32,
            interface: u32,
            attach_type: u32,
            flags: u32,
            relative: u32,
            padding: u32,
            expected_revision: u64,
        }
        let attributes = Attributes {
            program: self.descriptor.as_raw_fd() as u32,
            interface,
            attach_type: hook as u32,
            flags: 0,
            relative: 0,
            padding: 0,
            expected_revision: 0,
        };
        // SAFETY: the attributes hold no pointer.
        unsafe { bpf_descriptor(COMMAND_LINK_CREATE, &attributes) }
    }

    /// What the program says to an Ethernet packet that has not arrived anywhere.
    #[cfg(test)]
    pub(crate) fn try_out(&self, packet: &[u8]) -> io::Result<i32> {
        #[repr(C)]
        struct Attributes {
            program: u32,
            result: u32,
            input_bytes: u32,
            output_bytes: u32,
            input: u64,
            output: u64,
            repeat: u32,
            duration: u32,
            context: [u64; 4],
        }
        let attributes = std::cell::UnsafeCell::new(Attributes {
            program: self.descriptor.as_raw_fd() as u32,
            result: 0,
            input_bytes: packet.len() as u32,
            output_bytes: 0,
            input: packet.as_ptr() as u64,
            output: 0,
            repeat: 1,
            duration: 0,
            context: [0; 4],
        });
        // SAFETY: pointer and length describe the packet, which the kernel reads. It writes the attributes, through a cell.
        unsafe {
            bpf(COMMAND_PROGRAM_TEST_RUN, &*attributes.get())?;
            Ok((*attributes.get()).result as i32)
        }
    }
}

/// The part of `union bpf_attr` for elements of maps.
#[repr(C)]
struct Element {
    map: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// Calls bpf(2).
///
/// # Safety
/// `attributes` are those of the command, with pointers that are valid for it.
unsafe fn bpf<T>(command: libc::c_int, attributes: &T) -> io::Result<libc::c_int> {
    // SAFETY: pointer and size describe the attributes; the caller answers for what they point to.
    let result = unsafe {
        libc::syscall(libc::SYS_bpf, command, std::ptr::from_ref(attributes), size_of::<T>() as libc::c_uint)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as libc::c_int) }
}

/// Calls [`bpf`] for commands that make a descriptor, which the kernel opens close-on-exec.
///
/// # Safety
/// As for [`bpf`].
unsafe fn bpf_descriptor<T>(command: libc::c_int, attributes: &T) -> io::Result<OwnedFd> {
    // SAFETY: as the caller says.
    let descriptor = unsafe { bpf(command, attributes) }?;
    // SAFETY: the kernel has just made the descriptor, for this caller.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

fn object_name(name: &str) -> [u8; 16] {
    let mut bytes = [0; 16];
    let length = name.len().min(15);
    bytes[..length].copy_from_slice(&name.as_bytes()[..length]);
    bytes
}

/// The verifier's last words say what is wrong.
const VERIFIER_LINES: usize = 6;
const VERIFIER_LOG_BYTES: usize = 1 << 20;

// Of linux/bpf.h; the libc crate lacks them.
const COMMAND_MAP_CREATE: i32 = 0;
const COMMAND_MAP_UPDATE: i32 = 2;
const COMMAND_MAP_DELETE: i32 = 3;
const COMMAND_PROGRAM_LOAD: i32 = 5;
#[cfg(test)]
const COMMAND_PROGRAM_TEST_RUN: i32 = 10;
const COMMAND_LINK_CREATE: i32 = 28;
const MAP_TYPE_HASH: u32 = 1;
const MAP_TYPE_ARRAY: u32 = 2;
const MAP_FLAG_NO_PREALLOC: u32 = 1;
const MAP_FLAG_MAPPABLE: u32 = 1 << 10;
const UPDATE_ANY: u64 = 0;
const UPDATE_NO_EXIST: u64 = 1;
const PROGRAM_TYPE_SCHED_CLS: u32 = 3;
