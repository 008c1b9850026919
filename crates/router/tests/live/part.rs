//! Parts of a test that run in a process of their own, in a namespace. `WIRESPEED_PART` says which:
//!
//! | part | does |
//! |---|---|
//! | `forward DRIVER ml=OWN>PEER mr=OWN>PEER` | forwards between both interfaces until its input ends |
//! | `offload INTERFACE checksum`, `segmentation` | switches offloads of a host off |
//! | `serve PORT BYTES` | sends bytes to whoever connects |
//! | `fetch ADDRESS BYTES` | reads them and checks each |
//! | `blast INTERFACE FROM TO SECONDS PACE` | sends frames of 60 bytes: so many a second, or 0 for all that go |
//! | `count INTERFACE SECONDS` | waits for frames, and says how many come a second |
//! | `inject INTERFACE HEX,HEX,…` | sends frames |
//! | `capture INTERFACE COUNT` | says that many frames from 02:… on, in hexadecimal |
//! | `fanout INTERFACE SECONDS` | receives by two sockets of one group, and says what each got |
//! | `twice INTERFACE` | opens what can be opened once |
//! | `beggar INTERFACE` | opens what it may not, and says why not |
//! | `modest INTERFACE` | opens everything with few capabilities |
//! | `punt ADDRESS` | sends a ping by a TUN device to the kernel |
//!
//! Each says `ready` once it runs.

use std::collections::BTreeSet;
use std::error::Error;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use wirespeed_router::io::{
    Attach, Copying, Interface, LocalAddresses, Offload, PacketOptions, PacketPort, Port, Program, Tags, Tun,
    Umem, XdpOptions,
};
use wirespeed_router::{Frame, Memory};

use crate::forward;

pub(crate) fn play() {
    let Ok(part) = std::env::var("WIRESPEED_PART") else { return };
    let words: Vec<&str> = part.split(' ').collect();
    match words[..] {
        ["forward", driver, left, right] => forward::run(driver, [left, right], &input_ends()),
        ["offload", interface, what] => offload(interface, what),
        ["serve", port, bytes] => serve(port.parse().expect("a port"), bytes.parse().expect("a number")),
        ["fetch", address, bytes] => fetch(address, bytes.parse().expect("a number")),
        ["blast", interface, from, to, seconds, pace] => {
            let (seconds, pace) = (seconds.parse().expect("a number"), pace.parse().expect("a number"));
            blast(interface, mac(from), mac(to), seconds, pace);
        }
        ["count", interface, seconds] => count(interface, seconds.parse().expect("a number")),
        ["inject", interface, frames] => inject(interface, frames),
        ["capture", interface, count] => capture(interface, count.parse().expect("a number")),
        ["fanout", interface, seconds] => fanout(interface, seconds.parse().expect("a number")),
        ["twice", interface] => twice(interface),
        ["beggar", interface] => beggar(interface),
        ["modest", interface] => modest(interface),
        ["punt", address] => punt(address),
        _ => panic!("{part} is no part"),
    }
}

/// Says a line at once: the parent waits for it.
pub(crate) fn say(line: &str) {
    println!("\n{line}");
    std::io::stdout().flush().expect("the parent reads");
}

/// A hardware address.
pub(crate) fn mac(text: &str) -> [u8; 6] {
    let bytes: Vec<u8> =
        text.split(':').map(|byte| u8::from_str_radix(byte, 16).expect("a hardware address")).collect();
    bytes.try_into().expect("six bytes")
}

/// A flag that is set when the parent closes the input.
fn input_ends() -> Arc<AtomicBool> {
    let ended = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&ended);
    thread::spawn(move || {
        let _ = std::io::stdin().read(&mut [0]);
        flag.store(true, Ordering::Release);
    });
    ended
}

fn offload(interface: &str, what: &str) {
    let interface = Interface::open(interface).expect("an interface");
    let offloads: &[Offload] = match what {
        "checksum" => &[Offload::TransmitChecksum],
        _ => &[Offload::Segmentation, Offload::GenericSegmentation],
    };
    for &offload in offloads {
        interface.set_offload(offload, false).expect("root may");
        assert_eq!(interface.offload(offload), Some(false), "{offload}");
    }
    let checksums = interface.offload(Offload::TransmitChecksum);
    assert_eq!(checksums, Some(what != "checksum"), "only what was asked for");
    say("ready");
}

/// The byte at a place of the transfer.
const fn byte(at: usize) -> u8 {
    (at ^ at >> 8 ^ at >> 16).to_le_bytes()[0]
}

fn serve(port: u16, bytes: usize) {
    let listener = TcpListener::bind(("::", port)).expect("a free port");
    say("ready");
    let (mut stream, _) = listener.accept().expect("a connection");
    let data: Vec<u8> = (0..bytes).map(byte).collect();
    stream.write_all(&data).expect("the other side reads");
}

fn fetch(address: &str, bytes: usize) {
    let address: SocketAddr = address.parse().expect("an address");
    let start = Instant::now();
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(5)).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a timeout");
    let mut data = Vec::new();
    stream.read_to_end(&mut data).expect("all bytes");
    let seconds = start.elapsed().as_secs_f64();
    assert_eq!(data.len(), bytes);
    assert!(data.iter().enumerate().all(|(at, &found)| found == byte(at)), "the bytes that were sent");
    say("ready");
    say(&format!("{:.0} Mb/s", bytes as f64 * 8.0 / 1e6 / seconds));
}

/// A frame of UDP to a host that nobody is: the other side counts it and drops it.
pub(crate) fn blast_frame(from: [u8; 6], to: [u8; 6]) -> Vec<u8> {
    let mut frame = Vec::new();
    etherparse::PacketBuilder::ethernet2(from, to)
        .ipv4([10, 0, 1, 2], [10, 0, 2, 99], 64)
        .udp(1000, 1001)
        .write(&mut frame, &[7; 18])
        .expect("a vector");
    frame
}

fn blast(interface: &str, from: [u8; 6], to: [u8; 6], seconds: f64, pace: f64) {
    let interface = Interface::open(interface).expect("an interface");
    let mut memory = Memory::new(8192).expect("memory");
    // AF_XDP sends frames whose bytes lie together, as a host's stack does. The ring of AF_PACKET lends its
    // pages, and the next interface copies them.
    let program = Program::attach(&interface, &LocalAddresses::new(), Tags::Kernel, Attach::Skb);
    let program = Arc::new(program.expect("root may"));
    let mut umem = Umem::new(&memory);
    let port = umem.open(&program, 0, &XdpOptions::default(), &mut memory);
    let mut port = port.expect("a free queue");
    let bytes = blast_frame(from, to);
    let mut frames: Vec<Frame> = Vec::new();
    say("ready");
    let start = Instant::now();
    while start.elapsed().as_secs_f64() < seconds {
        if pace > 0.0 && port.counts().sent as f64 > pace * start.elapsed().as_secs_f64() {
            thread::sleep(Duration::from_micros(200));
            port.poll(&mut memory).expect("the interface is there");
            continue;
        }
        let chunk = if pace > 0.0 { 8 } else { 64 };
        while frames.len() < chunk
            && let Some(frame) = memory.copy_of(&bytes)
        {
            frames.push(frame);
        }
        port.send(&mut memory, &mut frames).expect("frames go out");
    }
    let rate = port.counts().sent as f64 / start.elapsed().as_secs_f64();
    frames.drain(..).for_each(|frame| memory.give(frame));
    port.close(&mut memory);
    assert_eq!(memory.free(), memory.buffers() as usize, "every buffer came back");
    say(&format!("sent {} frames, {:.3} Mpps", port.counts().sent, rate / 1e6));
}

/// A port of AF_PACKET at a host.
fn packet_port(interface: &str) -> PacketPort {
    let interface = Interface::open(interface).expect("an interface");
    PacketPort::open(&interface, &PacketOptions::default()).expect("root may")
}

fn count(interface: &str, seconds: f64) {
    let path = format!("/sys/class/net/{interface}/statistics/rx_packets");
    let frames = || {
        let text = std::fs::read_to_string(&path).expect("an interface");
        text.trim().parse::<f64>().expect("a number")
    };
    let few = frames() + 100.0;
    say("ready");
    let start = Instant::now();
    while frames() < few && start.elapsed() < Duration::from_secs(5) {
        thread::sleep(Duration::from_millis(1));
    }
    // The first moments, in which queues fill, are left out.
    thread::sleep(Duration::from_millis(300));
    let (before, start) = (frames(), Instant::now());
    thread::sleep(Duration::from_secs_f64(seconds));
    let rate = (frames() - before) / start.elapsed().as_secs_f64();
    say(&format!("frames a second: {rate:.0}"));
}

fn inject(interface: &str, frames: &str) {
    let mut port = packet_port(interface);
    let mut memory = Memory::new(64).expect("memory");
    let frame = |hex: &str| {
        let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal");
        (0..hex.len()).step_by(2).map(byte).collect::<Vec<u8>>()
    };
    let mut frames: Vec<Frame> =
        frames.split(',').map(|hex| memory.copy_of(&frame(hex)).expect("free buffers")).collect();
    let count = frames.len();
    assert_eq!(port.send(&mut memory, &mut frames).expect("the interface is up"), count);
    let counts = port.counts();
    say(&format!("ready: {} sent, {} refused", counts.sent, counts.refused));
}

/// Beginning of the hardware addresses that tests make up.
pub(crate) const MADE_UP: [u8; 2] = [0x02, 0x77];

fn capture(interface: &str, count: usize) {
    let mut port = packet_port(interface);
    let mut memory = Memory::new(64).expect("memory");
    let (mut frames, mut seen) = (Vec::new(), 0);
    say("ready");
    let start = Instant::now();
    while seen < count && start.elapsed() < Duration::from_secs(5) {
        port.receive(&mut memory, &mut frames, 16).expect("the interface is up");
        for frame in frames.drain(..) {
            let bytes = memory.bytes(&frame);
            if bytes[..2] == MADE_UP {
                let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                say(&format!("frame {hex}"));
                seen += 1;
            }
            memory.give(frame);
        }
        thread::sleep(Duration::from_millis(1));
    }
}

fn fanout(interface: &str, seconds: f64) {
    let interface = Interface::open(interface).expect("an interface");
    let mut options = PacketOptions::default();
    options.fanout = Some(7);
    let mut ports = [0, 1].map(|_| PacketPort::open(&interface, &options).expect("root may"));
    let mut memory = Memory::new(1024).expect("memory");
    let (mut frames, mut sources) = (Vec::new(), [const { BTreeSet::new() }; 2]);
    say("ready");
    let start = Instant::now();
    while start.elapsed().as_secs_f64() < seconds {
        for (port, sources) in ports.iter_mut().zip(&mut sources) {
            port.receive(&mut memory, &mut frames, 256).expect("the interface is up");
            for frame in frames.drain(..) {
                let bytes = memory.bytes(&frame);
                // UDP over IPv4 without options: the port that it comes from.
                if bytes[12..14] == [8, 0] && bytes[23] == 17 {
                    assert!(sources.insert([bytes[34], bytes[35]]), "each flow has one frame");
                }
                memory.give(frame);
            }
        }
        thread::sleep(Duration::from_millis(1));
    }
    assert!(sources[0].is_disjoint(&sources[1]), "a frame goes to one socket");
    say(&format!("flows: {} and {}", sources[0].len(), sources[1].len()));
}

/// What an error and its causes say.
fn text(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

fn twice(interface: &str) {
    let interface = Interface::open(interface).expect("an interface");
    let attach = |how| Program::attach(&interface, &LocalAddresses::new(), Tags::Kernel, how);
    let program = Arc::new(attach(Attach::Auto).expect("root may"));
    for how in [Attach::Auto, Attach::Native, Attach::Skb] {
        let said = text(&attach(how).expect_err("one program an interface"));
        assert!(said.contains("another XDP program"), "{how:?}: {said}");
    }
    let mut memory = Memory::new(10_000).expect("memory");
    let mut umem = Umem::new(&memory);
    let options = XdpOptions::default();
    let mut port = umem.open(&program, 0, &options, &mut memory).expect("a free queue");
    let free = memory.free();
    assert_eq!(free + port.held(), 10_000);
    let mut open =
        |queue, options: &XdpOptions, memory: &mut Memory| umem.open(&program, queue, options, memory);
    let said = text(&open(0, &options, &mut memory).expect_err("one socket a queue"));
    assert!(said.contains("queue 0 has a socket"), "{said}");
    assert!(open(77, &options, &mut memory).is_err(), "no such queue");
    let mut never = options.clone();
    never.copying = Copying::Never;
    let said = text(&open(1, &never, &mut memory).expect_err("a virtual interface copies"));
    assert!(said.contains("without copies"), "{said}");
    assert_eq!(memory.free(), free, "an error keeps no buffer");
    let lengths = [0, 13, 14, 60, 1522, 1523];
    let mut frames: Vec<Frame> =
        lengths.map(|len| memory.copy_of(&vec![0; len]).expect("free buffers")).into();
    assert_eq!(port.send(&mut memory, &mut frames).expect("the interface is up"), 6);
    assert_eq!((port.counts().sent, port.counts().refused, frames.len()), (3, 3, 0));
    let start = Instant::now();
    while port.unsent() > 0 {
        assert!(start.elapsed() < Duration::from_secs(5), "{} are not sent", port.unsent());
        port.poll(&mut memory).expect("the interface is up");
    }
    // More frames than buffers: the second port has the rest, and none is left.
    let mut second = open(1, &options, &mut memory).expect("a free queue");
    assert_eq!(memory.free() + port.held() + second.held(), 10_000);
    port.close(&mut memory);
    second.close(&mut memory);
    assert_eq!((memory.free(), port.held()), (10_000, 0));
    // A closed queue can be opened again, though the socket that registered the memory is gone.
    let mut again = open(0, &options, &mut memory).expect("the queue is free again");
    again.close(&mut memory);
    assert_eq!(memory.free(), 10_000);
    say("ready");
}

fn beggar(interface: &str) {
    let interface = Interface::open(interface).expect("everybody may ask");
    let said = text(&PacketPort::open(&interface, &PacketOptions::default()).expect_err("it may not"));
    assert!(said.contains("needs CAP_NET_RAW"), "{said}");
    let attached = Program::attach(&interface, &LocalAddresses::new(), Tags::Kernel, Attach::Auto);
    let said = text(&attached.expect_err("it may not"));
    assert!(said.contains("CAP_BPF"), "{said}");
    let unusable = interface.unusable(2048).expect("a reason").to_string();
    assert!(unusable.contains("CAP_NET_RAW"), "{unusable}");
    let said = text(&interface.set_offload(Offload::TransmitChecksum, false).expect_err("it may not"));
    assert!(said.contains("needs CAP_NET_ADMIN"), "{said}");
    let said = text(&Tun::open("beggar%d").expect_err("it may not"));
    assert!(said.contains("needs CAP_NET_ADMIN"), "{said}");
    say("ready");
}

fn modest(interface: &str) {
    let interface = Interface::open(interface).expect("everybody may ask");
    let mut memory = Memory::new(20_000).expect("memory");
    let program = Program::attach(&interface, &LocalAddresses::new(), Tags::Forward, Attach::Auto);
    let program = Arc::new(program.expect("CAP_BPF and CAP_NET_ADMIN are enough"));
    let mut port = Umem::new(&memory)
        .open(&program, 0, &XdpOptions::default(), &mut memory)
        .expect("CAP_NET_RAW and CAP_IPC_LOCK are enough");
    port.close(&mut memory);
    PacketPort::open(&interface, &PacketOptions::default()).expect("CAP_NET_RAW is enough");
    Tun::open("modest%d").expect("CAP_NET_ADMIN is enough");
    say("ready");
}

fn punt(address: &str) {
    let mut tun = Tun::open("punt%d").expect("root may make a device");
    let mut packet = Vec::new();
    let to: std::net::Ipv4Addr = address.parse().expect("an address");
    etherparse::PacketBuilder::ipv4([10, 0, 1, 2], to.octets(), 64)
        .icmpv4_echo_request(7, 7)
        .write(&mut packet, b"through the kernel")
        .expect("a vector");
    assert!(tun.to_kernel(&packet).expect("the device is up"));
    assert!(!tun.to_kernel(&[0x10; 40]).expect("the device is up"), "no IP");
    let counts = tun.counts();
    assert_eq!((counts.given, counts.given_bytes, counts.refused), (1, packet.len() as u64, 1));
    say(&format!("ready {}", tun.name()));
    thread::sleep(Duration::from_millis(300));
}
