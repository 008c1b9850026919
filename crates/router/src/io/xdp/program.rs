//! [`Program`]: the XDP program of an interface, which redirects the frames to be forwarded to sockets, and
//! leaves every other one to the kernel.
//!
//! [`Transit`](super::super::Transit) has the rules, and a test compares both over made frames. The program
//! is a table of instructions, so nothing is compiled. It is attached by a link: when the process dies,
//! however it dies, the program falls off and the kernel forwards again.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use super::super::bpf::{self, Instruction, Kind, Map};
use super::super::hardware::{Follow, Hardware};
use super::super::interface::Interface;
use super::super::local::LocalAddresses;
use super::super::sys::denied;
use super::super::transit::Tags;
use super::instruction::Register::{R0, R1, R2, R3, R6, R7, R8, R10};
use super::instruction::Width::{Byte, Double, Half, Word};
use super::instruction::{
    Line, add, and, assemble, call, copy, exit, jump, jump_above, jump_from, jump_if, jump_unless,
    jump_unless_null, load, load_map, set, shift_right, store, store_constant,
};
use crate::Error;

/// Where a program runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Attach {
    /// Runs in the driver, or else behind it.
    #[default]
    Auto,
    /// Runs in the driver ("native").
    Native,
    /// Runs behind the driver, on the kernel's own buffers ("SKB"): for each driver, and slower.
    Skb,
}

/// The XDP program of an interface. It is attached as long as this is kept, by it or by a port.
#[derive(Debug)]
pub struct Program {
    interface: Interface,
    attached: Arc<Attached>,
    /// The address that the attached program follows.
    _hardware: Arc<Hardware>,
}

/// The attachment of a program, with what it reads.
#[derive(Debug)]
struct Attached {
    name: String,
    tags: Tags,
    sockets: Map,
    /// The addresses that the program looks up.
    local: Arc<Map>,
    /// The attachment, which keeps the program.
    link: OwnedFd,
    runs: Attach,
    /// The reason why it does not run in the driver.
    why_not_native: Option<io::Error>,
}

impl Follow for Attached {
    /// Puts a program for this hardware address in the place of the one that runs. No frame comes between.
    fn follow(&self, mac: [u8; 6]) -> Result<(), Error> {
        let instructions = instructions(mac, self.tags, self.local.number(), self.sockets.number());
        let program = loaded(&self.name, &instructions)?;
        bpf::exchange(&self.link, &program).map_err(|cause| {
            denied(&self.name, "the XDP program can't be exchanged", "CAP_BPF and CAP_NET_ADMIN", cause)
        })
    }
}

/// The most queues of an interface.
const QUEUES: u32 = 1024;

/// Flags of an attachment.
const SKB_MODE: u32 = 1 << 1;
const DRIVER_MODE: u32 = 1 << 2;

impl Program {
    /// Loads the program of an interface and attaches it. Frames go to the kernel until a port is opened for
    /// their queue.
    ///
    /// The interface's hardware address is a constant of the program. When it changes, frames go to the
    /// kernel until [`LocalAddresses::set_mac`] puts another program in its place.
    pub fn attach(
        interface: &Interface,
        local: &LocalAddresses,
        tags: Tags,
        attach: Attach,
    ) -> Result<Self, Error> {
        let name = &interface.name;
        let failed = |what: &'static str| move |cause| denied(name, what, "CAP_BPF and CAP_NET_ADMIN", cause);
        let sockets = Map::new(Kind::Sockets, "sockets", 4, 4, QUEUES.max(interface.queues))
            .map_err(failed("no map of sockets can be made"))?;
        let hardware = local.hardware(interface);
        let local = local.kernel().map_err(failed("no map of addresses can be made"))?;
        let attached =
            hardware.followed(|mac| Attached::new(interface, mac, (local, sockets), tags, attach))?;
        Ok(Self { interface: interface.clone(), attached, _hardware: hardware })
    }

    /// The interface, as it was when the program was attached.
    #[must_use]
    pub const fn interface(&self) -> &Interface {
        &self.interface
    }

    /// Where it runs: [`Attach::Native`] or [`Attach::Skb`].
    #[must_use]
    pub fn runs(&self) -> Attach {
        self.attached.runs
    }

    /// The reason why it does not run in the driver, though [`Attach::Auto`] tried.
    #[must_use]
    pub fn why_not_native(&self) -> Option<&io::Error> {
        self.attached.why_not_native.as_ref()
    }

    /// Sends the frames of a queue to a socket from now on.
    pub(super) fn redirect(&self, queue: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
        self.attached.sockets.set(&queue.to_ne_bytes(), &socket.as_raw_fd().to_ne_bytes())
    }

    /// Leaves the frames of a queue to the kernel from now on.
    pub(super) fn stop(&self, queue: u32) -> io::Result<()> {
        self.attached.sockets.remove(&queue.to_ne_bytes())
    }
}

impl Attached {
    /// Loads a program for this hardware address and attaches it.
    fn new(
        interface: &Interface,
        mac: [u8; 6],
        (local, sockets): (Arc<Map>, Map),
        tags: Tags,
        attach: Attach,
    ) -> Result<Self, Error> {
        let name = &interface.name;
        let failed = |what: &'static str| move |cause| denied(name, what, "CAP_BPF and CAP_NET_ADMIN", cause);
        let instructions = instructions(mac, tags, local.number(), sockets.number());
        let program = loaded(name, &instructions)?;
        let link = |flags| bpf::attach(&program, interface.index, flags);
        let (link, runs, why_not_native) = match attach {
            Attach::Native => (link(DRIVER_MODE), Attach::Native, None),
            Attach::Skb => (link(SKB_MODE), Attach::Skb, None),
            Attach::Auto => match link(DRIVER_MODE) {
                // Another program is there. The slower mode can't stand beside it.
                Err(cause) if cause.kind() != io::ErrorKind::ResourceBusy => {
                    (link(SKB_MODE), Attach::Skb, Some(cause))
                }
                other => (other, Attach::Native, None),
            },
        };
        let link = link.map_err(|cause| match cause.kind() {
            io::ErrorKind::ResourceBusy | io::ErrorKind::AlreadyExists => {
                Error::port(name, "another XDP program is attached here", cause)
            }
            _ => failed("the XDP program can't be attached")(cause),
        })?;
        Ok(Self { name: name.clone(), tags, sockets, local, link, runs, why_not_native })
    }
}

/// Loads a program. The error tells what the kernel's verifier says.
fn loaded(name: &str, instructions: &[Instruction]) -> Result<OwnedFd, Error> {
    bpf::load("wirespeed", instructions).map_err(|(cause, log)| {
        let what = if log.is_empty() {
            "the XDP program can't be loaded".to_owned()
        } else {
            format!("the kernel refuses the XDP program:\n{log}\n")
        };
        denied(name, &what, "CAP_BPF and CAP_NET_ADMIN", cause)
    })
}

/// Places that the program jumps to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// The tag before which a type says that there is one: the first or the second.
    Tag(u8),
    /// Types behind tags.
    Type,
    V4,
    V6,
    Lookup,
    Kernel,
}

/// Verdict: the kernel goes on with the frame.
const XDP_PASS: i32 = 2;

/// Functions of the kernel.
const MAP_LOOKUP: i32 = 1;
const REDIRECT_MAP: i32 = 51;

/// Offsets in the context: first byte of the frame, its end, the queue that it came by.
const DATA: i16 = 0;
const DATA_END: i16 = 4;
const QUEUE: i16 = 16;

/// A constant that is compared with 16 bits of a frame.
fn half(bytes: [u8; 2]) -> i32 {
    i32::from(u16::from_ne_bytes(bytes))
}

/// Jumps to the kernel unless the frame has `bytes` from `R7` on.
fn needs(bytes: i32) -> [Line<Place>; 3] {
    [copy(R2, R7), add(R2, bytes), jump_above(R2, R8, Place::Kernel)]
}

/// The program, as a table.
///
/// R6 is the context, R7 the frame (moved past tags: a type is always at 12, its packet at 14), R8 its end.
fn instructions(mac: [u8; 6], tags: Tags, local: u32, sockets: u32) -> Vec<Instruction> {
    use Place::{Kernel, Lookup, Tag, Type, V4, V6};
    let mut lines = vec![copy(R6, R1), load(Word, R7, R6, DATA), load(Word, R8, R6, DATA_END)];
    // To the interface's own address: multicast is not.
    lines.extend(needs(14));
    lines.extend([
        load(Word, R1, R7, 0),
        jump_unless(R1, i32::from_ne_bytes([mac[0], mac[1], mac[2], mac[3]]), Kernel),
        load(Half, R1, R7, 4),
        jump_unless(R1, half([mac[4], mac[5]]), Kernel),
        load(Half, R1, R7, 12),
    ]);
    if tags == Tags::Forward {
        for tag in 0..2 {
            lines.extend([
                jump_if(R1, half([0x81, 0x00]), Tag(tag)),
                jump_unless(R1, half([0x88, 0xa8]), Type),
                Line::Label(Tag(tag)),
                add(R7, 4),
            ]);
            lines.extend(needs(14));
            lines.push(load(Half, R1, R7, 12));
        }
    }
    lines.extend([
        Line::Label(Type),
        jump_if(R1, half([0x08, 0x00]), V4),
        jump_if(R1, half([0x86, 0xdd]), V6),
        jump(Kernel),
    ]);

    lines.push(Line::Label(V4));
    lines.extend(needs(14 + 20));
    lines.extend([
        load(Byte, R1, R7, 14),
        shift_right(R1, 4),
        jump_unless(R1, 4, Kernel),
        // Multicast, reserved and the broadcast address.
        load(Byte, R1, R7, 14 + 16),
        jump_from(R1, 224, Kernel),
        // The key: ::ffff:a.b.c.d
        store_constant(Double, R10, -16, 0),
        store_constant(Word, R10, -8, i32::from_ne_bytes([0, 0, 0xff, 0xff])),
        load(Word, R1, R7, 14 + 16),
        store(Word, R10, -4, R1),
        jump(Lookup),
    ]);

    lines.push(Line::Label(V6));
    lines.extend(needs(14 + 40));
    lines.extend([
        load(Byte, R1, R7, 14),
        shift_right(R1, 4),
        jump_unless(R1, 6, Kernel),
        load(Byte, R1, R7, 14 + 24),
        jump_if(R1, 0xff, Kernel),
        // Addresses that are good on their link only.
        load(Half, R1, R7, 14 + 24),
        and(R1, half([0xff, 0xc0])),
        jump_if(R1, half([0xfe, 0x80]), Kernel),
        load(Double, R1, R7, 14 + 24),
        store(Double, R10, -16, R1),
        load(Double, R1, R7, 14 + 32),
        store(Double, R10, -8, R1),
    ]);

    // An address of the router.
    lines.push(Line::Label(Lookup));
    lines.extend(load_map(R1, local));
    lines.extend([copy(R2, R10), add(R2, -16), call(MAP_LOOKUP), jump_unless_null(R0, Kernel)]);
    // To the socket of the queue. Without one, the verdict in R3.
    lines.push(load(Word, R2, R6, QUEUE));
    lines.extend(load_map(R1, sockets));
    lines.extend([set(R3, XDP_PASS), call(REDIRECT_MAP), exit()]);
    lines.extend([Line::Label(Kernel), set(R0, XDP_PASS), exit()]);
    assemble(&lines)
}

#[cfg(test)]
#[path = "program_tests.rs"]
mod tests;
