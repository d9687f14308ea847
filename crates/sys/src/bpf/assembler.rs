//! A small assembler for eBPF: a method for each kind of instruction that is used, jumps to labels.
//!
//! The instruction set is RFC 9669. Registers: `R0` has results, `R1` to `R5` arguments, which calls destroy; `R6` to `R9`
//! stay; `R10` points behind the stack of 512 bytes.

use std::os::fd::{AsFd, AsRawFd};

/// `struct bpf_insn` of linux/bpf.h.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Instruction {
    code: u8,
    registers: u8,
    offset: i16,
    immediate: i32,
}

/// A register.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Register {
    R0,
    R1,
    R2,
    R3,
    R4,
    R5,
    R6,
    R7,
    R8,
    R9,
    R10,
}

/// How many bytes a load or store has.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Size {
    One = 0x10,
    Two = 0x08,
    Four = 0x00,
    Eight = 0x18,
}

/// How a jump compares a register with a number.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Condition {
    Equal = 0x10,
    NotEqual = 0x50,
    Less = 0xa0,
}

/// What is done to a register with a number.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Operation {
    Add = 0x00,
    And = 0x50,
    ShiftLeft = 0x60,
    Move = 0xb0,
}

/// What is done to a number in memory, at once for all CPUs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Atomic {
    Add = 0x00,
    Or = 0x40,
}

/// Collects instructions.
#[derive(Debug, Default)]
pub(crate) struct Assembler {
    instructions: Vec<Instruction>,
    labels: Vec<(&'static str, usize)>,
    jumps: Vec<(&'static str, usize)>,
}

impl Assembler {
    /// Register `to` = register `from`, all 64 bits.
    pub(crate) fn copy(&mut self, to: Register, from: Register) {
        self.push(CLASS_ALU64 | SOURCE_REGISTER | Operation::Move as u8, to, from, 0, 0);
    }

    /// Register = register `operation` number.
    pub(crate) fn apply(&mut self, operation: Operation, to: Register, number: i32) {
        self.push(CLASS_ALU64 | operation as u8, to, Register::R0, 0, number);
    }

    /// Register = number.
    pub(crate) fn set(&mut self, to: Register, number: i32) {
        self.apply(Operation::Move, to, number);
    }

    /// Register = address of the stack at `offset`, which is negative.
    pub(crate) fn stack(&mut self, to: Register, offset: i16) {
        self.copy(to, Register::R10);
        self.apply(Operation::Add, to, offset.into());
    }

    /// Register = memory at another register + offset, without its sign.
    pub(crate) fn load(&mut self, size: Size, to: Register, from: Register, offset: i16) {
        self.push(CLASS_LOAD | MODE_MEMORY | size as u8, to, from, offset, 0);
    }

    /// Memory at register `to` + offset = the lower bytes of a register.
    pub(crate) fn store(&mut self, size: Size, to: Register, offset: i16, from: Register) {
        self.push(CLASS_STORE_REGISTER | MODE_MEMORY | size as u8, to, from, offset, 0);
    }

    /// Memory at a register + offset = number, with its sign.
    pub(crate) fn store_number(&mut self, size: Size, to: Register, offset: i16, number: i32) {
        self.push(CLASS_STORE_NUMBER | MODE_MEMORY | size as u8, to, Register::R0, offset, number);
    }

    /// The eight bytes at register `to` + offset, changed by a register.
    pub(crate) fn change(&mut self, how: Atomic, to: Register, offset: i16, by: Register) {
        self.push(CLASS_STORE_REGISTER | MODE_ATOMIC | Size::Eight as u8, to, by, offset, how as i32);
    }

    /// Register = the map.
    pub(crate) fn map(&mut self, to: Register, map: impl AsFd) {
        let descriptor = map.as_fd().as_raw_fd();
        // An instruction of double length; "register" 1 says that the number is a map's descriptor.
        self.push(CLASS_LOAD_NUMBER | Size::Eight as u8, to, Register::R1, 0, descriptor);
        self.push(0, Register::R0, Register::R0, 0, 0);
    }

    /// Calls one of the kernel's helpers.
    pub(crate) fn call(&mut self, helper: i32) {
        self.push(CLASS_JUMP | JUMP_CALL, Register::R0, Register::R0, 0, helper);
    }

    /// Jumps to the label if the comparison, without signs, holds.
    pub(crate) fn jump_if(
        &mut self,
        register: Register,
        condition: Condition,
        number: i32,
        label: &'static str,
    ) {
        self.jumps.push((label, self.instructions.len()));
        self.push(CLASS_JUMP | condition as u8, register, Register::R0, 0, number);
    }

    /// Jumps to the label.
    pub(crate) fn jump(&mut self, label: &'static str) {
        self.jumps.push((label, self.instructions.len()));
        self.push(CLASS_JUMP, Register::R0, Register::R0, 0, 0);
    }

    /// Names the next instruction.
    pub(crate) fn label(&mut self, name: &'static str) {
        self.labels.push((name, self.instructions.len()));
    }

    /// Ends the program with the result in `R0`.
    pub(crate) fn exit(&mut self) {
        self.push(CLASS_JUMP | JUMP_EXIT, Register::R0, Register::R0, 0, 0);
    }

    /// The program, with its jumps.
    ///
    /// # Panics
    /// If a jump has no label.
    pub(crate) fn finish(mut self) -> Vec<Instruction> {
        for (label, from) in &self.jumps {
            let to = self.labels.iter().find(|(name, _)| name == label).expect("each jump has a label").1;
            // Counted from the instruction behind the jump.
            self.instructions[*from].offset = (to as i64 - *from as i64 - 1) as i16;
        }
        self.instructions
    }

    fn push(&mut self, code: u8, to: Register, from: Register, offset: i16, immediate: i32) {
        let (to, from) = (to as u8, from as u8);
        let registers = if cfg!(target_endian = "little") { from << 4 | to } else { to << 4 | from };
        self.instructions.push(Instruction { code, registers, offset, immediate });
    }
}

const CLASS_LOAD_NUMBER: u8 = 0x00;
const CLASS_LOAD: u8 = 0x01;
const CLASS_STORE_NUMBER: u8 = 0x02;
const CLASS_STORE_REGISTER: u8 = 0x03;
const CLASS_JUMP: u8 = 0x05;
const CLASS_ALU64: u8 = 0x07;
const MODE_MEMORY: u8 = 0x60;
const MODE_ATOMIC: u8 = 0xc0;
const SOURCE_REGISTER: u8 = 0x08;
const JUMP_CALL: u8 = 0x80;
const JUMP_EXIT: u8 = 0x90;

#[cfg(test)]
mod tests {
    use super::*;

    /// As `llvm-mc -arch=bpf` and the tables of RFC 9669 have them.
    #[test]
    fn instructions_are_encoded_as_the_kernel_reads_them() {
        let mut program = Assembler::default();
        program.label("again");
        program.stack(Register::R2, -40);
        program.jump_if(Register::R8, Condition::Less, 20, "again");
        program.jump("end");
        program.change(Atomic::Or, Register::R7, 32, Register::R1);
        program.label("end");
        program.exit();
        let bytes: Vec<[u8; 8]> = program
            .finish()
            .iter()
            .map(|instruction| {
                let [offset_low, offset_high] = instruction.offset.to_le_bytes();
                let [a, b, c, d] = instruction.immediate.to_le_bytes();
                let registers = match cfg!(target_endian = "little") {
                    true => instruction.registers,
                    false => instruction.registers.rotate_left(4),
                };
                [instruction.code, registers, offset_low, offset_high, a, b, c, d]
            })
            .collect();
        let expected = [
            [0xbf, 0xa2, 0, 0, 0, 0, 0, 0],
            [0x07, 0x02, 0, 0, 0xd8, 0xff, 0xff, 0xff],
            [0xa5, 0x08, 0xfd, 0xff, 20, 0, 0, 0],
            [0x05, 0x00, 0x01, 0x00, 0, 0, 0, 0],
            [0xdb, 0x17, 32, 0, 0x40, 0, 0, 0],
            [0x95, 0x00, 0, 0, 0, 0, 0, 0],
        ];
        assert_eq!(bytes, expected);
    }
}
