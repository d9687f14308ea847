//! The programs that see each packet that arrives at the front-end, and each that leaves it, as instructions for the kernel.
//!
//! ```text
//! arriving:
//!   no TCP for this host, or not in the table   → on to the own stack
//!   SYN without ACK, the flow is over           → out of the table, on to the own stack: a new connection
//!   SYN without ACK behind a FIN or a reset     → dropped until it is known to be over; TCP repeats it
//!   held                                        → dropped; TCP repeats it
//!   else                                        → to the node, by its address on the link
//! leaving:
//!   TCP of a connection in the table            → dropped
//!   else                                        → out
//! ```
//!
//! A SYN on a flow that is not over may be forged. The node's stack asks back (RFC 5961, section 4.2): a client that has really begun
//! anew answers by a reset that fits, which ends the connection there. Without a socket the node would take the SYN for its own
//! listener, so one behind an end waits.
//!
//! The second one closes a gap. A packet that was already past the first when its flow was held still comes to the own stack.
//! Behind the end of the socket there, the stack would reset a connection that lives elsewhere; just before it, the stack
//! would acknowledge what does not go along.
//!
//! A packet comes as the kernel has it, with or without an Ethernet header, in one piece or in several, several segments
//! joined in one: so headers are copied to the stack, not read in place.

use crate::bpf::Map;
use crate::bpf::assembler::{Assembler, Atomic, Condition, Instruction, Operation, Register, Size};

/// The maps of a table.
#[derive(Debug)]
pub(super) struct Maps {
    /// From [`KEY_BYTES`] to the number of a slot, 32 bits.
    pub(super) flows: Map,
    /// A slot for each flow: [`SLOT_NUMBERS`] numbers of 64 bits.
    pub(super) slots: Map,
    /// Where nodes are: the interface's number, and a `struct bpf_redir_neigh`.
    pub(super) next_hops: Map,
}

/// Addresses of client and VIP in 16 bytes each, IPv4 as in `::ffff:192.0.2.1`, and their ports.
pub(super) const KEY_BYTES: usize = 36;
/// A cache line, so that CPUs do not disturb each other.
pub(super) const SLOT_NUMBERS: usize = 8;
/// Interface, family, address.
pub(super) const NEXT_HOP_BYTES: usize = 4 + REDIRECT_BYTES as usize;

// The numbers of a slot.
/// The number of a next hop; 0: held.
pub(super) const SLOT_NEXT_HOP: usize = 0;
/// Packets of the client, those dropped while held included.
pub(super) const SLOT_PACKETS: usize = 1;
/// Their bytes.
pub(super) const SLOT_BYTES: usize = 2;
/// When the last one came, in nanoseconds of `CLOCK_MONOTONIC`.
pub(super) const SLOT_LAST_NS: usize = 3;
/// The bits `SEEN_…`.
pub(super) const SLOT_SEEN: usize = 4;
/// Packets of the own stack that were dropped.
pub(super) const SLOT_OWN_PACKETS: usize = 5;

/// Not 0: the connection is over, and a SYN begins another one.
pub(super) const SLOT_OVER: usize = 6;

/// The client has closed its half.
pub(super) const SEEN_FIN: u64 = FLAG_FIN as u64;
/// The client has reset the connection.
pub(super) const SEEN_RST: u64 = FLAG_RST as u64;
/// The client has begun another connection with the same addresses: the flow is out of the table.
pub(super) const SEEN_SYN: u64 = FLAG_SYN as u64;

/// Passes the packet to the next program, and to the stack behind the last one.
pub(super) const VERDICT_PASS: i32 = -1;
/// Drops it.
pub(super) const VERDICT_DROP: i32 = 2;
/// What `bpf_redirect_neigh` returns.
#[cfg(test)]
pub(super) const VERDICT_REDIRECT: i32 = 7;

/// The program for packets that arrive.
pub(super) fn arriving(maps: &Maps) -> Vec<Instruction> {
    use Register::{R0, R1, R2, R3, R4, R6, R7, R9, R10};
    let mut a = Assembler::default();
    read_headers(&mut a, [KEY_CLIENT, KEY_VIP]);
    find_slot(&mut a, maps);

    a.copy(R1, R9);
    a.apply(Operation::And, R1, FLAG_SYN | FLAG_ACK);
    a.jump_if(R1, Condition::NotEqual, FLAG_SYN, "no beginning");
    a.load(Size::Eight, R1, R7, in_slot(SLOT_OVER));
    a.jump_if(R1, Condition::NotEqual, 0, "another connection");
    a.load(Size::Eight, R1, R7, in_slot(SLOT_SEEN));
    a.apply(Operation::And, R1, FLAG_FIN | FLAG_RST);
    a.jump_if(R1, Condition::NotEqual, 0, "drop");

    a.label("no beginning");
    a.call(HELPER_KTIME_GET_COARSE_NS);
    a.store(Size::Eight, R7, in_slot(SLOT_LAST_NS), R0);
    a.set(R1, 1);
    a.change(Atomic::Add, R7, in_slot(SLOT_PACKETS), R1);
    a.load(Size::Four, R1, R6, PACKET_LENGTH);
    a.change(Atomic::Add, R7, in_slot(SLOT_BYTES), R1);
    a.apply(Operation::And, R9, FLAG_FIN | FLAG_RST);
    a.jump_if(R9, Condition::Equal, 0, "counted"); // most packets end nothing
    a.change(Atomic::Or, R7, in_slot(SLOT_SEEN), R9);

    a.label("counted");
    a.load(Size::Eight, R1, R7, in_slot(SLOT_NEXT_HOP));
    a.jump_if(R1, Condition::Equal, 0, "drop");
    a.store(Size::Four, R10, STACK_NUMBER, R1);
    a.map(R1, &maps.next_hops);
    a.stack(R2, STACK_NUMBER);
    a.call(HELPER_MAP_LOOKUP);
    a.jump_if(R0, Condition::Equal, 0, "drop");
    a.load(Size::Four, R1, R0, 0); // interface
    a.copy(R2, R0);
    a.apply(Operation::Add, R2, 4); // family and address
    a.set(R3, REDIRECT_BYTES);
    a.set(R4, 0);
    a.call(HELPER_REDIRECT_NEIGH);
    a.exit();

    a.label("another connection");
    a.map(R1, &maps.flows);
    a.stack(R2, STACK_KEY);
    a.call(HELPER_MAP_DELETE);
    a.set(R1, FLAG_SYN);
    a.change(Atomic::Or, R7, in_slot(SLOT_SEEN), R1);

    a.label("pass");
    a.set(R0, VERDICT_PASS);
    a.exit();
    a.label("drop");
    a.set(R0, VERDICT_DROP);
    a.exit();
    a.finish()
}

/// The program for packets that leave.
pub(super) fn leaving(maps: &Maps) -> Vec<Instruction> {
    use Register::{R0, R1, R7};
    let mut a = Assembler::default();
    read_headers(&mut a, [KEY_VIP, KEY_CLIENT]);
    find_slot(&mut a, maps);
    a.set(R1, 1);
    a.change(Atomic::Add, R7, in_slot(SLOT_OWN_PACKETS), R1);
    a.set(R0, VERDICT_DROP);
    a.exit();
    a.label("pass");
    a.set(R0, VERDICT_PASS);
    a.exit();
    a.finish()
}

/// Fills the key, with the packet's source and destination at these places of it. Leaves the packet in `R6`, the flags of TCP
/// in `R9`. Passes what is no TCP for this host.
fn read_headers(a: &mut Assembler, [source, destination]: [i16; 2]) {
    use Register::{R1, R2, R3, R4, R6, R8, R9, R10};
    a.copy(R6, R1);

    // Packets that a bridge or a capture shows, and that are for another host, are none of ours.
    a.load(Size::Four, R1, R6, PACKET_TYPE);
    a.jump_if(R1, Condition::NotEqual, 0, "pass");
    a.load(Size::Four, R1, R6, PACKET_PROTOCOL); // in network order
    a.jump_if(R1, Condition::Equal, i32::from(0x0800_u16.to_be()), "ipv4");
    a.jump_if(R1, Condition::NotEqual, i32::from(0x86dd_u16.to_be()), "pass");

    // IPv6: TCP must follow at once. Extension headers are rare, and go to the own stack.
    load_header(a, STACK_IP, 40);
    a.load(Size::One, R1, R10, STACK_IP + 6); // next header
    a.jump_if(R1, Condition::NotEqual, TCP, "pass");
    for (from, to) in [(8, source), (24, destination)] {
        for half in [0, 8] {
            a.load(Size::Eight, R1, R10, STACK_IP + from + half);
            a.store(Size::Eight, R10, STACK_KEY + to * 16 + half, R1);
        }
    }
    a.set(R8, 40);
    a.jump("tcp");

    a.label("ipv4");
    load_header(a, STACK_IP, 20);
    a.load(Size::One, R1, R10, STACK_IP + 9); // protocol
    a.jump_if(R1, Condition::NotEqual, TCP, "pass");
    a.load(Size::Two, R1, R10, STACK_IP + 6); // fragments: only the first has ports
    a.apply(Operation::And, R1, i32::from(0x3fff_u16.to_be()));
    a.jump_if(R1, Condition::NotEqual, 0, "pass");
    for (from, to) in [(12, source), (16, destination)] {
        a.store_number(Size::Eight, R10, STACK_KEY + to * 16, 0);
        a.store_number(Size::Four, R10, STACK_KEY + to * 16 + 8, 0xffff_u32.to_be() as i32);
        a.load(Size::Four, R1, R10, STACK_IP + from);
        a.store(Size::Four, R10, STACK_KEY + to * 16 + 12, R1);
    }
    a.load(Size::One, R8, R10, STACK_IP); // length of the header in words, in the lower half
    a.apply(Operation::And, R8, 15);
    a.apply(Operation::ShiftLeft, R8, 2);
    a.jump_if(R8, Condition::Less, 20, "pass");

    a.label("tcp"); // R8: where its header begins
    a.copy(R1, R6);
    a.copy(R2, R8);
    a.stack(R3, STACK_TCP);
    a.set(R4, TCP_BYTES);
    load_bytes(a);
    for (from, to) in [(0, source), (2, destination)] {
        a.load(Size::Two, R1, R10, STACK_TCP + from);
        a.store(Size::Two, R10, STACK_KEY + 32 + to * 2, R1);
    }
    a.load(Size::One, R9, R10, STACK_TCP + 13);
}

/// Leaves the slot of the key in `R7`. Passes what is not in the table.
fn find_slot(a: &mut Assembler, maps: &Maps) {
    use Register::{R0, R1, R2, R7, R10};
    a.map(R1, &maps.flows);
    a.stack(R2, STACK_KEY);
    a.call(HELPER_MAP_LOOKUP);
    a.jump_if(R0, Condition::Equal, 0, "pass");
    a.load(Size::Four, R1, R0, 0);
    a.store(Size::Four, R10, STACK_NUMBER, R1);
    a.map(R1, &maps.slots);
    a.stack(R2, STACK_NUMBER);
    a.call(HELPER_MAP_LOOKUP);
    a.jump_if(R0, Condition::Equal, 0, "pass");
    a.copy(R7, R0);
}

/// Copies the first bytes of the IP header to the stack.
fn load_header(a: &mut Assembler, stack: i16, bytes: i32) {
    use Register::{R1, R2, R3, R4, R6};
    a.copy(R1, R6);
    a.set(R2, 0);
    a.stack(R3, stack);
    a.set(R4, bytes);
    load_bytes(a);
}

/// Copies bytes from the IP header on; `R1` to `R4` say which and where to. Passes packets that are shorter.
fn load_bytes(a: &mut Assembler) {
    a.set(Register::R5, FROM_NETWORK_HEADER);
    a.call(HELPER_SKB_LOAD_BYTES_RELATIVE);
    a.jump_if(Register::R0, Condition::NotEqual, 0, "pass");
}

/// Where a number of a slot is, in bytes.
const fn in_slot(number: usize) -> i16 {
    (number * size_of::<u64>()) as i16
}

// Which of the key's two addresses and ports.
const KEY_CLIENT: i16 = 0;
const KEY_VIP: i16 = 1;

// The stack, from its end.
const STACK_KEY: i16 = -40;
const STACK_IP: i16 = -80;
const STACK_TCP: i16 = -96;
const STACK_NUMBER: i16 = -104;

/// Up to the flags.
const TCP_BYTES: i32 = 14;
const TCP: i32 = 6;
const FLAG_FIN: i32 = 0x01;
const FLAG_SYN: i32 = 0x02;
const FLAG_RST: i32 = 0x04;
const FLAG_ACK: i32 = 0x10;

// Of linux/bpf.h: `struct __sk_buff`, `enum bpf_hdr_start_off`, `struct bpf_redir_neigh`, helpers by number.
const PACKET_LENGTH: i16 = 0;
const PACKET_TYPE: i16 = 4;
const PACKET_PROTOCOL: i16 = 16;
const FROM_NETWORK_HEADER: i32 = 1;
const REDIRECT_BYTES: i32 = 20;
const HELPER_MAP_LOOKUP: i32 = 1;
const HELPER_MAP_DELETE: i32 = 3;
const HELPER_SKB_LOAD_BYTES_RELATIVE: i32 = 68;
const HELPER_REDIRECT_NEIGH: i32 = 152;
const HELPER_KTIME_GET_COARSE_NS: i32 = 160;
