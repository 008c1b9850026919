//! [`Program`]: the XDP program of an interface, which redirects the frames that an application takes to
//! sockets, and leaves every other one to the kernel. [`Withheld`]: a program that drops these frames before
//! the kernel's protocols, where a port of AF_PACKET has got a copy.
//!
//! [`Takes`] has the rules, and a test compares [`Transit`](super::super::Transit) with both programs over
//! made frames. A program is a table of instructions, so nothing is compiled. It is attached by a link: when
//! the process dies, however it dies, the program falls off and the kernel has all frames again.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use super::super::bpf::{self, Hook, Instruction, Kind, Map};
use super::super::hardware::{Follow, Hardware};
use super::super::interface::Interface;
use super::super::local::LocalAddresses;
use super::super::sys::denied;
use super::super::transit::{
    CONTENT, ESP, FRAGMENT, INTEREST, LINK_PACKET, PORT_NDN, TYPE_NDN, Tags, Takes, UDP,
};
use super::instruction::Register::{R0, R1, R2, R3, R6, R7, R8, R10};
use super::instruction::Width::{Byte, Double, Half, Word};
use super::instruction::{
    Line, add, and, assemble, call, copy, exit, jump, jump_above, jump_from, jump_if, jump_if_null,
    jump_unless, load, load_map, set, shift_right, store, store_constant,
};
use crate::Error;

/// The place where a program runs.
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
    takes: Takes,
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
        let end = End::Socket(self.sockets.number());
        let instructions = instructions(mac, &self.takes, self.local.number(), end);
        exchange(&self.link, Hook::Xdp, &self.name, &instructions)
    }
}

/// Puts another program in the place of one that runs.
fn exchange(link: &OwnedFd, hook: Hook, name: &str, instructions: &[Instruction]) -> Result<(), Error> {
    let program = loaded(hook, name, instructions)?;
    bpf::exchange(link, &program).map_err(|cause| {
        denied(name, "the program of the interface can't be exchanged", "CAP_BPF and CAP_NET_ADMIN", cause)
    })
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
        takes: impl Into<Takes>,
        attach: Attach,
    ) -> Result<Self, Error> {
        let takes = takes.into();
        let name = &interface.name;
        let failed = |what: &'static str| move |cause| denied(name, what, "CAP_BPF and CAP_NET_ADMIN", cause);
        let sockets = Map::new(Kind::Sockets, "sockets", 4, 4, QUEUES.max(interface.queues))
            .map_err(failed("no map of sockets can be made"))?;
        let hardware = local.hardware(interface);
        let local = local.kernel().map_err(failed("no map of addresses can be made"))?;
        let attached =
            hardware.followed(|mac| Attached::new(interface, mac, (local, sockets), takes, attach))?;
        Ok(Self { interface: interface.clone(), attached, _hardware: hardware })
    }

    /// The interface, as it was when the program was attached.
    #[must_use]
    pub const fn interface(&self) -> &Interface {
        &self.interface
    }

    /// The place where it runs: [`Attach::Native`] or [`Attach::Skb`].
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
        takes: Takes,
        attach: Attach,
    ) -> Result<Self, Error> {
        let name = &interface.name;
        let failed = |what: &'static str| move |cause| denied(name, what, "CAP_BPF and CAP_NET_ADMIN", cause);
        let instructions = instructions(mac, &takes, local.number(), End::Socket(sockets.number()));
        let program = loaded(Hook::Xdp, name, &instructions)?;
        let link = |flags| bpf::attach(Hook::Xdp, &program, interface.index, flags);
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
                Error::OtherXdp { port: name.clone() }
            }
            _ => failed("the XDP program can't be attached")(cause),
        })?;
        Ok(Self { name: name.clone(), takes, sockets, local, link, runs, why_not_native })
    }
}

/// Loads a program. The error tells what the kernel's verifier says.
fn loaded(hook: Hook, name: &str, instructions: &[Instruction]) -> Result<OwnedFd, Error> {
    bpf::load(hook, "wirespeed", instructions).map_err(|(cause, log)| {
        let of = if hook == Hook::Xdp { "the XDP program" } else { "the program behind AF_PACKET" };
        if log.is_empty() {
            return denied(name, &format!("{of} can't be loaded"), "CAP_BPF and CAP_NET_ADMIN", cause);
        }
        // It was read, and is refused for what it does: no capability is missing.
        Error::port(name, format!("the kernel refuses {of}:\n{log}\n"), cause)
    })
}

/// Frames that a port of AF_PACKET takes, kept from the kernel as long as this is kept: the port gets a copy,
/// and then the frame is dropped. So the kernel neither answers nor forwards it, and all other frames are the
/// kernel's as before. When the process dies, the kernel has all frames again.
#[derive(Debug)]
pub struct Withheld {
    _dropping: Arc<Dropping>,
    _hardware: Arc<Hardware>,
}

/// The attachment of a program that drops frames.
#[derive(Debug)]
struct Dropping {
    name: String,
    takes: Takes,
    local: Arc<Map>,
    link: OwnedFd,
}

impl Follow for Dropping {
    fn follow(&self, mac: [u8; 6]) -> Result<(), Error> {
        let instructions = instructions(mac, &self.takes, self.local.number(), End::Drop);
        exchange(&self.link, Hook::Ingress, &self.name, &instructions)
    }
}

impl Withheld {
    /// Keeps the frames of an interface from the kernel that a port with this choice takes:
    /// [`LocalAddresses::transit`]. This needs Linux 6.6, CAP_BPF and CAP_NET_ADMIN.
    pub fn at(interface: &Interface, local: &LocalAddresses, takes: impl Into<Takes>) -> Result<Self, Error> {
        let (takes, name) = (takes.into(), interface.name.clone());
        let failed = |what: &'static str| {
            let name = name.clone();
            move |cause| denied(&name, what, "CAP_BPF and CAP_NET_ADMIN", cause)
        };
        let hardware = local.hardware(interface);
        let local = local.kernel().map_err(failed("no map of addresses can be made"))?;
        let dropping = hardware.followed(|mac| {
            let instructions = instructions(mac, &takes, local.number(), End::Drop);
            let program = loaded(Hook::Ingress, &interface.name, &instructions)?;
            let link = bpf::attach(Hook::Ingress, &program, interface.index, 0).map_err(failed(
                "frames can't be kept from the kernel: AF_PACKET needs Linux 6.6 for that",
            ))?;
            Ok(Dropping { name: interface.name.clone(), takes, local, link })
        })?;
        Ok(Self { _dropping: dropping, _hardware: hardware })
    }
}

/// What happens to frames that are taken, and how the program sees a frame.
#[derive(Clone, Copy, Debug)]
enum End {
    /// They go to the socket of their queue, in this map.
    Socket(u32),
    /// They are dropped, behind sockets of AF_PACKET.
    Drop,
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
    /// An address of the router: by family, and the ports of UDP.
    LocalV4,
    LocalV6,
    /// An IPv6 packet without a fragment header.
    Whole,
    Port,
    /// A frame of NDN to the interface or to a group, and the type of an NDN packet.
    Ndn,
    Packet,
    Take,
    Kernel,
}

/// Verdicts of XDP, and of what runs behind AF_PACKET: the kernel goes on with the frame, or drops it.
const XDP_PASS: i32 = 2;
const TCX_NEXT: i32 = -1;
const TCX_DROP: i32 = 2;

/// Functions of the kernel.
const MAP_LOOKUP: i32 = 1;
const REDIRECT_MAP: i32 = 51;

/// Offsets in the context of XDP: first byte of the frame, its end, the queue that it came by.
const DATA: i16 = 0;
const DATA_END: i16 = 4;
const QUEUE: i16 = 16;
/// Offsets in the context behind AF_PACKET: whether there was a tag, which the kernel took off; first byte of
/// the frame, and its end.
const TCX_TAG: i16 = 20;
const TCX_DATA: i16 = 76;
const TCX_DATA_END: i16 = 80;

/// A constant that is compared with 16 bits of a frame.
fn half(bytes: [u8; 2]) -> i32 {
    i32::from(u16::from_ne_bytes(bytes))
}

/// Jumps to the kernel unless the frame has `bytes` from `R7` on.
fn needs(bytes: i32) -> [Line<Place>; 3] {
    [copy(R2, R7), add(R2, bytes), jump_above(R2, R8, Place::Kernel)]
}

/// Jumps to the kernel unless the frame is to this address.
fn needs_mac(mac: [u8; 6]) -> [Line<Place>; 4] {
    [
        load(Word, R1, R7, 0),
        jump_unless(R1, i32::from_ne_bytes([mac[0], mac[1], mac[2], mac[3]]), Place::Kernel),
        load(Half, R1, R7, 4),
        jump_unless(R1, half([mac[4], mac[5]]), Place::Kernel),
    ]
}

/// The program, as a table.
///
/// R6 is the context, R7 the frame (moved past tags: a type is always at 12, its packet at 14), R8 its end.
fn instructions(mac: [u8; 6], takes: &Takes, local: u32, end: End) -> Vec<Instruction> {
    use Place::{Kernel, Take};
    let (data, data_end) = match end {
        End::Socket(_) => (DATA, DATA_END),
        End::Drop => (TCX_DATA, TCX_DATA_END),
    };
    let mut lines = vec![copy(R6, R1), load(Word, R7, R6, data), load(Word, R8, R6, data_end)];
    if let End::Drop = end
        && takes.tags() == Tags::Kernel
    {
        lines.extend([load(Word, R1, R6, TCX_TAG), jump_unless(R1, 0, Kernel)]);
    }
    match takes {
        Takes::Transit(tags) => lines.extend(transit(mac, *tags, local, None)),
        Takes::Tunnels(tags, ports) => lines.extend(transit(mac, *tags, local, Some(ports))),
        Takes::Interests => lines.extend(interests(mac, false)),
        Takes::InterestsAndData => lines.extend(interests(mac, true)),
        Takes::All => {}
    }
    lines.push(Line::Label(Take));
    match end {
        End::Socket(sockets) => {
            // To the socket of the queue. Without one, the verdict in R3.
            lines.push(load(Word, R2, R6, QUEUE));
            lines.extend(load_map(R1, sockets));
            lines.extend([set(R3, XDP_PASS), call(REDIRECT_MAP), exit()]);
            lines.extend([Line::Label(Kernel), set(R0, XDP_PASS), exit()]);
        }
        End::Drop => {
            lines.extend([set(R0, TCX_DROP), exit()]);
            lines.extend([Line::Label(Kernel), set(R0, TCX_NEXT), exit()]);
        }
    }
    if *takes == Takes::All {
        // Nothing jumps there, and the kernel refuses what is never reached.
        lines.truncate(lines.len() - 3);
    }
    assemble(&lines)
}

/// The choice of transit, and of ESP to the router where there are ports of tunnels: the kernel's frames jump
/// there, and the others come out at the end.
fn transit(mac: [u8; 6], tags: Tags, local: u32, ports: Option<&Vec<u16>>) -> Vec<Line<Place>> {
    use Place::{Kernel, LocalV4, LocalV6, Lookup, Port, Tag, Take, Type, V4, V6, Whole};
    // To the interface's own address: multicast is not.
    let mut lines = needs(14).to_vec();
    lines.extend(needs_mac(mac));
    lines.push(load(Half, R1, R7, 12));
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
        // The key: ::ffff:a.b.c.d. The constant comes last: Linux 6.1 takes it for a saved register, and
        // refuses to have a part of that overwritten by who has not CAP_PERFMON.
        store_constant(Double, R10, -16, 0),
        load(Word, R1, R7, 14 + 16),
        store(Word, R10, -4, R1),
        store_constant(Word, R10, -8, i32::from_ne_bytes([0, 0, 0xff, 0xff])),
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

    lines.push(Line::Label(Lookup));
    lines.extend(load_map(R1, local));
    lines.extend([copy(R2, R10), add(R2, -16), call(MAP_LOOKUP), jump_if_null(R0, Take)]);
    // An address of the router.
    let Some(ports) = ports else {
        lines.push(jump(Kernel));
        return lines;
    };
    lines.extend([load(Half, R1, R7, 12), jump_unless(R1, half([0x08, 0x00]), LocalV6)]);
    lines.push(Line::Label(LocalV4));
    lines.extend(needs(14 + 20));
    lines.extend([
        load(Byte, R1, R7, 14 + 9),
        jump_if(R1, ESP.into(), Take),
        jump_unless(R1, UDP.into(), Kernel),
        load(Byte, R1, R7, 14),
        jump_unless(R1, 0x45, Kernel),
        load(Half, R1, R7, 14 + 6),
        and(R1, half([0x1f, 0xff])),
        jump_unless(R1, 0, Kernel),
    ]);
    lines.extend(needs(14 + 20 + 8));
    lines.extend([load(Half, R1, R7, 14 + 20 + 2), jump(Port), Line::Label(LocalV6)]);
    lines.extend(needs(14 + 40));
    lines.extend([
        load(Byte, R1, R7, 14 + 6),
        jump_if(R1, ESP.into(), Take),
        jump_unless(R1, FRAGMENT.into(), Whole),
    ]);
    lines.extend(needs(14 + 40 + 8));
    lines.extend([
        load(Byte, R1, R7, 14 + 40),
        jump_if(R1, ESP.into(), Take),
        jump(Kernel),
        Line::Label(Whole),
        jump_unless(R1, UDP.into(), Kernel),
    ]);
    lines.extend(needs(14 + 40 + 8));
    lines.extend([load(Half, R1, R7, 14 + 40 + 2), Line::Label(Port)]);
    lines.extend(ports.iter().map(|port| jump_if(R1, half(port.to_be_bytes()), Take)));
    lines.push(jump(Kernel));
    lines
}

/// The choice of Interests, and of Data in Ethernet frames if that is taken, too.
fn interests(mac: [u8; 6], takes_data: bool) -> Vec<Line<Place>> {
    use Place::{Kernel, Ndn, Packet, Take, V4, V6};
    let port = half(PORT_NDN.to_be_bytes());
    let mut lines = needs(14).to_vec();
    lines.extend([
        load(Half, R1, R7, 12),
        jump_unless(R1, half(TYPE_NDN), V4),
        load(Byte, R1, R7, 0),
        and(R1, 1),
        jump_unless(R1, 0, Ndn),
    ]);
    lines.extend(needs_mac(mac));
    lines.push(Line::Label(Ndn));
    lines.extend(needs(14 + 1));
    lines.push(load(Byte, R1, R7, 14));
    if takes_data {
        lines.push(jump_if(R1, CONTENT.into(), Take));
    }
    lines.push(jump(Packet));

    lines.push(Line::Label(V4));
    lines.extend(needs_mac(mac));
    lines.extend([load(Half, R1, R7, 12), jump_unless(R1, half([0x08, 0x00]), V6)]);
    lines.extend(needs(14 + 20 + 8 + 1));
    lines.extend([
        load(Byte, R1, R7, 14),
        jump_unless(R1, 0x45, Kernel),
        load(Byte, R1, R7, 14 + 9),
        jump_unless(R1, UDP.into(), Kernel),
        load(Half, R1, R7, 14 + 6),
        and(R1, half([0x3f, 0xff])),
        jump_unless(R1, 0, Kernel),
        load(Half, R1, R7, 14 + 20 + 2),
        jump_unless(R1, port, Kernel),
        load(Byte, R1, R7, 14 + 20 + 8),
        jump(Packet),
    ]);

    lines.extend([Line::Label(V6), jump_unless(R1, half([0x86, 0xdd]), Kernel)]);
    lines.extend(needs(14 + 40 + 8 + 1));
    lines.extend([
        load(Byte, R1, R7, 14),
        shift_right(R1, 4),
        jump_unless(R1, 6, Kernel),
        load(Byte, R1, R7, 14 + 6),
        jump_unless(R1, UDP.into(), Kernel),
        load(Half, R1, R7, 14 + 40 + 2),
        jump_unless(R1, port, Kernel),
        load(Byte, R1, R7, 14 + 40 + 8),
    ]);
    lines.extend([
        Line::Label(Packet),
        jump_if(R1, INTEREST.into(), Take),
        jump_unless(R1, LINK_PACKET.into(), Kernel),
    ]);
    lines
}

#[cfg(test)]
#[path = "program_tests.rs"]
mod tests;
