//! Named constructors of BPF instructions, and labels that jumps name.

use std::fmt;

use super::super::bpf::Instruction;

/// A register. R0 is the result, R1 to R5 are arguments, R6 to R9 outlive calls, R10 is the end of the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "they are numbers")]
pub(super) enum Register {
    R0,
    R1,
    R2,
    R3,
    R6 = 6,
    R7,
    R8,
    R10 = 10,
}

/// Width of a load or store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Width {
    Byte,
    Half,
    Word,
    Double,
}

impl Width {
    const fn code(self) -> u8 {
        match self {
            Self::Word => 0x00,
            Self::Half => 0x08,
            Self::Byte => 0x10,
            Self::Double => 0x18,
        }
    }
}

/// A line of a program: an instruction, or a place that jumps name.
#[derive(Clone, Copy, Debug)]
pub(super) enum Line<L> {
    /// An instruction as it is.
    Plain(Instruction),
    /// A jump, whose offset is to be found.
    Jump(Instruction, L),
    /// The place of the next instruction.
    Label(L),
}

const fn instruction(code: u8, to: Register, from: u8, offset: i16, constant: i32) -> Instruction {
    Instruction { code, registers: to as u8 | from << 4, offset, constant }
}

/// `to = from`.
pub(super) const fn copy<L>(to: Register, from: Register) -> Line<L> {
    Line::Plain(instruction(0xbf, to, from as u8, 0, 0))
}

/// `to = constant`.
pub(super) const fn set<L>(to: Register, constant: i32) -> Line<L> {
    Line::Plain(instruction(0xb7, to, 0, 0, constant))
}

/// `to += constant`.
pub(super) const fn add<L>(to: Register, constant: i32) -> Line<L> {
    Line::Plain(instruction(0x07, to, 0, 0, constant))
}

/// `to >>= constant`.
pub(super) const fn shift_right<L>(to: Register, constant: i32) -> Line<L> {
    Line::Plain(instruction(0x77, to, 0, 0, constant))
}

/// `to &= constant`.
pub(super) const fn and<L>(to: Register, constant: i32) -> Line<L> {
    Line::Plain(instruction(0x57, to, 0, 0, constant))
}

/// `to = *(from + offset)`.
pub(super) const fn load<L>(width: Width, to: Register, from: Register, offset: i16) -> Line<L> {
    Line::Plain(instruction(0x61 | width.code(), to, from as u8, offset, 0))
}

/// `*(to + offset) = from`.
pub(super) const fn store<L>(width: Width, to: Register, offset: i16, from: Register) -> Line<L> {
    Line::Plain(instruction(0x63 | width.code(), to, from as u8, offset, 0))
}

/// `*(to + offset) = constant`.
pub(super) const fn store_constant<L>(width: Width, to: Register, offset: i16, constant: i32) -> Line<L> {
    Line::Plain(instruction(0x62 | width.code(), to, 0, offset, constant))
}

/// `to = map`: two instructions, the first of which names the descriptor.
pub(super) const fn load_map<L>(to: Register, descriptor: u32) -> [Line<L>; 2] {
    const OF_A_MAP: u8 = 1;
    [
        Line::Plain(instruction(0x18, to, OF_A_MAP, 0, descriptor.cast_signed())),
        Line::Plain(instruction(0x00, Register::R0, 0, 0, 0)),
    ]
}

/// Calls a function of the kernel.
pub(super) const fn call<L>(function: i32) -> Line<L> {
    Line::Plain(instruction(0x85, Register::R0, 0, 0, function))
}

/// Ends with the result in R0.
pub(super) const fn exit<L>() -> Line<L> {
    Line::Plain(instruction(0x95, Register::R0, 0, 0, 0))
}

/// Jumps.
pub(super) const fn jump<L>(to: L) -> Line<L> {
    Line::Jump(instruction(0x05, Register::R0, 0, 0, 0), to)
}

/// Jumps if `a > b`, unsigned.
pub(super) const fn jump_above<L>(a: Register, b: Register, to: L) -> Line<L> {
    Line::Jump(instruction(0x2d, a, b as u8, 0, 0), to)
}

/// Jumps if the low 32 bits are this constant.
pub(super) const fn jump_if<L>(register: Register, constant: i32, to: L) -> Line<L> {
    Line::Jump(instruction(0x16, register, 0, 0, constant), to)
}

/// Jumps if the low 32 bits are not this constant.
pub(super) const fn jump_unless<L>(register: Register, constant: i32, to: L) -> Line<L> {
    Line::Jump(instruction(0x56, register, 0, 0, constant), to)
}

/// Jumps if the low 32 bits are this constant or above, unsigned.
pub(super) const fn jump_from<L>(register: Register, constant: i32, to: L) -> Line<L> {
    Line::Jump(instruction(0x36, register, 0, 0, constant), to)
}

/// Jumps if a pointer is null: all 64 bits.
pub(super) const fn jump_if_null<L>(register: Register, to: L) -> Line<L> {
    Line::Jump(instruction(0x15, register, 0, 0, 0), to)
}

/// Instructions with the offsets of their jumps.
///
/// Panics if a jump names no label: a program is a constant of this crate, and a test assembles each.
pub(super) fn assemble<L: Copy + PartialEq + fmt::Debug>(lines: &[Line<L>]) -> Vec<Instruction> {
    let place = |wanted: L| {
        let before = lines.iter().position(|line| matches!(line, Line::Label(label) if *label == wanted));
        let before = before.unwrap_or_else(|| panic!("{wanted:?} is a label"));
        lines[..before].iter().filter(|line| !matches!(line, Line::Label(_))).count()
    };
    let mut instructions = Vec::with_capacity(lines.len());
    for line in lines {
        match *line {
            Line::Plain(instruction) => instructions.push(instruction),
            Line::Jump(instruction, label) => {
                // A jump counts from the instruction behind it.
                let from = i64::try_from(instructions.len()).expect("programs are short") + 1;
                let to = i64::try_from(place(label)).expect("programs are short");
                let offset = i16::try_from(to - from).expect("programs are short");
                instructions.push(Instruction { offset, ..instruction });
            }
            Line::Label(_) => {}
        }
    }
    instructions
}
