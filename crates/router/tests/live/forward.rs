//! A forwarder that is built on ports alone: it writes hardware addresses and nothing else. After each round
//! it counts the buffers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use wirespeed_router::io::{
    Attach, ForwardingOff, Interface, LocalAddresses, PacketOptions, PacketPort, Port, Program, Tags, Umem,
    XdpOptions,
};
use wirespeed_router::{Frame, Memory};

use crate::part::{mac, say};

/// One of both sides: its ports, one a queue, and what waits to be sent.
struct Side {
    /// The first twelve bytes of a frame that leaves here.
    addresses: [u8; 12],
    ports: Vec<Box<dyn Port>>,
    waiting: Vec<Vec<Frame>>,
    /// The kernel's forwarding, off where it would forward too.
    _off: Option<ForwardingOff>,
}

/// Addresses of the forwarder's own kernel.
const LOCAL: [&str; 4] = ["10.0.1.1", "10.0.2.1", "fd01::1", "fd02::1"];

/// The most frames that wait for a port.
const WAITING: usize = 512;

/// Frames that are received at once.
const CHUNK: usize = 64;

/// Forwards until the flag is set. A side is `INTERFACE=OWN>PEER`.
pub(crate) fn run(driver: &str, sides: [&str; 2], ended: &AtomicBool) {
    let mut memory = Memory::new(32_768).expect("memory");
    let mut umem = Umem::new(&memory);
    let local = LocalAddresses::new();
    local.set(LOCAL.map(|address| address.parse().expect("an address"))).expect("few addresses");
    let mut sides = sides.map(|side| {
        let (name, macs) = side.split_once('=').expect("a side");
        let (own, peer) = macs.split_once('>').expect("two addresses");
        let mut addresses = [0; 12];
        addresses[..6].copy_from_slice(&mac(peer));
        addresses[6..].copy_from_slice(&mac(own));
        let interface = Interface::open(name).expect("an interface");
        let ports = open(driver, &interface, &local, &mut umem, &mut memory);
        let waiting = ports.iter().map(|_| Vec::new()).collect();
        let off = driver.starts_with("packet").then(|| ForwardingOff::at(&interface).expect("root may"));
        Side { addresses, ports, waiting, _off: off }
    });
    check(&memory, &sides, 0);
    say("ready");
    let mut dropped = 0_u64;
    let mut idle = 0_u32;
    let mut frames = Vec::with_capacity(CHUNK);
    while !ended.load(Ordering::Acquire) {
        let mut moved = 0;
        for from in 0..2 {
            let to = 1 - from;
            for queue in 0..sides[from].ports.len() {
                let port = &mut sides[from].ports[queue];
                moved += port.receive(&mut memory, &mut frames, CHUNK).expect("the interface is there");
                check(&memory, &sides, frames.len());
                let out = queue % sides[to].ports.len();
                for frame in frames.drain(..) {
                    memory.bytes_mut(&frame)[..12].copy_from_slice(&sides[to].addresses);
                    if sides[to].waiting[out].len() < WAITING {
                        sides[to].waiting[out].push(frame);
                    } else {
                        memory.give(frame);
                        dropped += 1;
                    }
                }
            }
        }
        for side in &mut sides {
            for (port, waiting) in side.ports.iter_mut().zip(&mut side.waiting) {
                if waiting.is_empty() {
                    port.poll(&mut memory).expect("the interface is there");
                } else {
                    port.send(&mut memory, waiting).expect("the interface is there");
                }
            }
        }
        check(&memory, &sides, 0);
        idle = if moved > 0 { 0 } else { idle.saturating_add(1) };
        match idle {
            0..64 => {}
            64..512 => thread::yield_now(),
            _ => thread::sleep(Duration::from_micros(50)),
        }
    }
    for side in &mut sides {
        side.waiting.iter_mut().flat_map(|waiting| waiting.drain(..)).for_each(|frame| memory.give(frame));
        for port in &mut side.ports {
            port.close(&mut memory);
            assert_eq!((port.held(), port.unsent()), (0, 0));
            say(&format!("{}: {:?}", port.name(), port.counts()));
        }
    }
    assert_eq!(memory.free(), memory.buffers() as usize, "every buffer came back");
    let received: u64 = sides.iter().flat_map(|side| &side.ports).map(|port| port.counts().received).sum();
    say(&format!("forwarded {received} frames, {dropped} dropped for a full port"));
}

/// Opens a port for each queue of an interface.
fn open(
    driver: &str,
    interface: &Interface,
    local: &LocalAddresses,
    umem: &mut Umem,
    memory: &mut Memory,
) -> Vec<Box<dyn Port>> {
    if driver.starts_with("packet") {
        let mut options = PacketOptions::default();
        options.transit = Some(local.transit(interface, Tags::Forward));
        options.bypass = driver == "packet-bypass";
        return vec![Box::new(PacketPort::open(interface, &options).expect("root may"))];
    }
    assert!(["native", "skb"].contains(&driver), "{driver}");
    assert_eq!(interface.unusable(memory.stride()), None);
    let attach = if driver == "skb" { Attach::Skb } else { Attach::Auto };
    let program = Arc::new(Program::attach(interface, local, Tags::Forward, attach).expect("root may"));
    say(&format!("{}: {:?}, {} queues", interface.name, program.runs(), interface.queues));
    let expected = if driver == "skb" { Attach::Skb } else { Attach::Native };
    assert_eq!(program.runs(), expected, "{:?}", program.why_not_native());
    let options = XdpOptions::default();
    (0..interface.queues)
        .map(|queue| {
            Box::new(umem.open(&program, queue, &options, memory).expect("a free queue")) as Box<dyn Port>
        })
        .collect()
}

/// Panics unless each buffer is free, held by a port, waits, or is in hand.
fn check(memory: &Memory, sides: &[Side; 2], in_hand: usize) {
    let held: usize = sides.iter().flat_map(|side| &side.ports).map(|port| port.held()).sum();
    let waiting: usize = sides.iter().flat_map(|side| &side.waiting).map(Vec::len).sum();
    assert_eq!(memory.free() + held + waiting + in_hand, memory.buffers() as usize);
}
