//! Frames of 64 bytes from memory to memory through one worker, by a million exact flows and a thousand
//! wildcards, and by a thousand wildcards of 64 masks over IPv6, in the first table
//! and in the second; and changes of flows a second from a controller over loopback, while the worker
//! forwards.
//!
//! ```text
//! cargo run --release -p wirespeed-openflow --example switch_speed [FLOWS] [SECONDS] [OTHER]
//! ```
//!
//! OTHER is the address of another switch that waits for controllers, such as Open vSwitch after
//! `ovs-vsctl set-controller br0 ptcp:6654`. It gets the same changes, before and after ours, and forwards
//! nothing.
//!
//! A ring of one frame a flow goes round: port 1 gives frames, and port 2 takes them back. Each frame has to
//! go out of port 2, and the flows' counters have to be as many as the frames: that is checked after each
//! run.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use wirespeed_openflow::wire::{Action, Field, FlowMod, Instructions, Match};
use wirespeed_openflow::{Channel, Switch, SwitchOptions, Target};
use wirespeed_rng::Rng;
use wirespeed_router::frames::Datagram;
use wirespeed_router::io::{Port, PortCounts};
use wirespeed_router::{Error, Frame, Mac, Memory, Published, Settings, Stats, Worker};

/// Wildcard flows.
const WILDCARDS: u32 = 1000;
/// Bytes between buffers: head room and a frame of 64 bytes.
const STRIDE: u32 = 384;

/// One end of a ring of frames.
struct Ring {
    ready: Arc<Mutex<VecDeque<Frame>>>,
    is_source: bool,
    counts: PortCounts,
}

impl Port for Ring {
    fn name(&self) -> &'static str {
        "ring"
    }

    fn receive(&mut self, _: &mut Memory, frames: &mut Vec<Frame>, most: usize) -> Result<usize, Error> {
        if !self.is_source {
            return Ok(0);
        }
        let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        let count = most.min(ready.len());
        frames.extend(ready.drain(..count));
        self.counts.received += count as u64;
        Ok(count)
    }

    fn send(&mut self, _: &mut Memory, frames: &mut Vec<Frame>) -> Result<usize, Error> {
        let count = frames.len();
        self.ready.lock().unwrap_or_else(PoisonError::into_inner).extend(frames.drain(..));
        self.counts.sent += count as u64;
        Ok(count)
    }

    fn held(&self) -> usize {
        if self.is_source { self.ready.lock().unwrap_or_else(PoisonError::into_inner).len() } else { 0 }
    }

    fn close(&mut self, memory: &mut Memory) {
        if self.is_source {
            let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
            ready.drain(..).for_each(|frame| memory.give(frame));
        }
    }

    fn counts(&self) -> PortCounts {
        self.counts
    }
}

fn output() -> Instructions {
    Instructions {
        apply: vec![Action::Output { port: 2, max_len: 0 }],
        has_apply: true,
        ..Instructions::default()
    }
}

const fn mac(number: u32) -> u128 {
    0x0200_0000_0000 | number as u128
}

/// The exact flow of a number: link, addresses, protocol and ports.
fn exact(number: u32) -> FlowMod {
    let matched = Match::all()
        .with(Field::InPort, 1)
        .with(Field::EthDst, mac(number % 1024))
        .with(Field::EthSrc, mac(number / 1024))
        .with(Field::EthType, 0x0800)
        .with(Field::IpProto, 17)
        .with(Field::Ipv4Src, (0x0a00_0000 | number).into())
        .with(Field::Ipv4Dst, (0x0b00_0000 | number.wrapping_mul(7919) & 0xff_ffff).into())
        .with(Field::UdpSrc, (number & 0xffff).into())
        .with(Field::UdpDst, (number >> 4 & 0xffff).into());
    FlowMod::add(0, 40_000, matched, output())
}

/// The frame of a flow; beyond the flows one that only a wildcard matches.
fn frame(number: u32, flows: u32) -> Vec<u8> {
    let (source, destination) = match number < flows {
        true => (0x0a00_0000 | number, 0x0b00_0000 | number.wrapping_mul(7919) & 0xff_ffff),
        false => (0xc000_0000 | number.wrapping_mul(2_654_435_761) >> 4, 0xd000_0000 | number),
    };
    let address = |number: u32| {
        let [.., a, b, c, d] = u128::to_be_bytes(mac(number));
        Mac([2, 0, a, b, c, d])
    };
    let ip = |number: u32| IpAddr::from(Ipv4Addr::from(number));
    let [high, low, ..] = (number << 16).to_be_bytes();
    let [dst_high, dst_low, ..] = (number >> 4 << 16).to_be_bytes();
    Datagram {
        to: address(number % 1024),
        from: address(number / 1024),
        addresses: (ip(source), ip(destination)),
        ports: (u16::from_be_bytes([high, low]), u16::from_be_bytes([dst_high, dst_low])),
        hops: 64,
        bytes: 60,
    }
    .to_bytes()
}

/// Wildcards of some dozen masks, and one for all that is left.
fn wildcards() -> Vec<FlowMod> {
    let mut rng = Rng::new(1);
    let mut flows = vec![FlowMod::add(0, 1, Match::all(), output())];
    for number in 1..WILDCARDS {
        let (source, destination) = (8 + 2 * rng.below(9), 8 + 4 * rng.below(4));
        let prefix = |bits: u64| u128::from(u32::MAX << (32 - bits));
        let mut matched = Match::all()
            .with(Field::EthType, 0x0800)
            .with_masked(Field::Ipv4Src, 0xc000_0000 | u128::from(rng.below(1 << 28)), prefix(source))
            .with_masked(Field::Ipv4Dst, 0xd000_0000 | u128::from(rng.below(1 << 20)), prefix(destination));
        if rng.chance(0.3) {
            matched = matched.with(Field::IpProto, 17).with(Field::UdpDst, rng.below(1 << 16).into());
        }
        flows.push(FlowMod::add(0, 2 + (number % 30_000) as u16, matched, output()));
    }
    flows
}

/// The prefix of all addresses of IPv6 here.
const V6: u128 = 0x2001_0db8 << 96;

/// A random address of IPv6: few are in each of the flows' prefixes.
fn address_v6(rng: &mut Rng) -> u128 {
    V6 | u128::from(rng.below(1 << 12)) << 84 | u128::from(rng.bits())
}

/// Wildcards over IPv6 of 64 masks in a table, and one for all that is left.
fn wildcards_v6(table: u8) -> Vec<FlowMod> {
    let mut rng = Rng::new(3);
    let mut flows = vec![FlowMod::add(table, 1, Match::all(), output())];
    let prefix = |bits: u32| u128::MAX << (128 - bits);
    for number in 1..WILDCARDS {
        let (source, destination) = (32 + number % 8, 34 + number / 8 % 8);
        let matched = Match::all()
            .with(Field::EthType, 0x86dd)
            .with_masked(Field::Ipv6Src, address_v6(&mut rng) & prefix(source), prefix(source))
            .with_masked(Field::Ipv6Dst, address_v6(&mut rng) & prefix(destination), prefix(destination));
        flows.push(FlowMod::add(table, 2 + (number % 30_000) as u16, matched, output()));
    }
    flows
}

/// A flow of the first table that leads all frames to the second one, with these changes.
fn to_second(apply: Vec<Action>) -> FlowMod {
    let has_apply = !apply.is_empty();
    let instructions = Instructions { apply, has_apply, goto: Some(1), ..Instructions::default() };
    FlowMod::add(0, 1, Match::all(), instructions)
}

/// A frame of IPv6.
fn frame_v6(rng: &mut Rng) -> Vec<u8> {
    let ip = |number: u128| IpAddr::from(Ipv6Addr::from_bits(number));
    let addresses = (ip(address_v6(rng)), ip(address_v6(rng)));
    let (to, from) = (Mac([2, 0, 0, 0, 0, 1]), Mac([2, 0, 0, 0, 0, 2]));
    Datagram { to, from, addresses, ports: (40_000, 53), hops: 64, bytes: 64 }.to_bytes()
}

/// Seconds that this thread had a CPU, where Linux tells: on a machine with other work they say more than the
/// clock.
fn on_cpu() -> f64 {
    let times = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    times.split(' ').next().and_then(|nanoseconds| nanoseconds.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
}

/// Forwards frames for some seconds; `meanwhile` runs beside it.
fn forward(
    switch: &Switch,
    frames: &[Vec<u8>],
    seconds: f64,
    meanwhile: impl FnOnce() + Send,
) -> (Stats, f64, f64) {
    let buffers = u32::try_from(frames.len() + 1024).expect("fewer than 2^32 frames");
    let mut memory = Memory::with_stride(buffers, STRIDE).expect("memory for the frames");
    let ready: VecDeque<Frame> =
        frames.iter().map(|bytes| memory.copy_of(bytes).expect("a buffer for each frame")).collect();
    let ready = Arc::new(Mutex::new(ready));
    let port = |is_source| Ring { ready: Arc::clone(&ready), is_source, counts: PortCounts::default() };
    let ports: Vec<Box<dyn Port>> = vec![Box::new(port(true)), Box::new(port(false))];
    let app = switch.app().expect("a worker for each run");
    let mut worker = Worker::new(app, memory, ports, Settings::default());
    let stop = AtomicBool::new(false);
    let begin = Instant::now();
    std::thread::scope(|scope| {
        let stop = &stop;
        scope.spawn(move || {
            let until = begin + Duration::from_secs_f64(seconds);
            meanwhile();
            std::thread::sleep(until.saturating_duration_since(Instant::now()));
            stop.store(true, Ordering::Relaxed);
        });
        let before = on_cpu();
        let stats = worker.run(stop, &Published::default()).expect("a run without faults");
        let (took, on_cpu) = (begin.elapsed().as_secs_f64(), on_cpu() - before);
        assert!(stats.is_whole(), "{stats:?}");
        assert_eq!(stats.frames_in, stats.frames_out, "each frame has a flow: {stats:?}");
        (stats, took, on_cpu)
    })
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let flows: u32 = arguments.next().map_or(1 << 20, |text| text.parse().expect("a number of flows"));
    let seconds: f64 = arguments.next().map_or(5.0, |text| text.parse().expect("a number of seconds"));
    let other: Option<SocketAddr> =
        arguments.next().map(|text| text.parse().expect("the address and port of a switch"));
    let options = SwitchOptions { workers: 8, ..SwitchOptions::with_ports(["in", "out"]) };
    let switch = Switch::new(options).expect("two ports");
    let begin = Instant::now();
    for from in (0..flows).step_by(4096) {
        let some: Vec<FlowMod> = (from..flows.min(from + 4096)).map(exact).collect();
        switch.flow_mods(&some).expect("flows that are right");
    }
    let took = begin.elapsed().as_secs_f64();
    println!(
        "{flows} exact flows added in {took:.2} s: {:.0} a second, without a channel",
        f64::from(flows) / took
    );
    switch.flow_mods(&wildcards()).expect("wildcards that are right");

    let mut rng = Rng::new(2);
    let mut numbers: Vec<u32> = (0..flows).collect();
    rng.shuffle(&mut numbers);
    let exact_frames: Vec<Vec<u8>> = numbers.iter().map(|&number| frame(number, flows)).collect();
    let wild_frames: Vec<Vec<u8>> = (flows..flows + 65_536).map(|number| frame(number, flows)).collect();
    let mixed: Vec<Vec<u8>> = exact_frames
        .chunks(9)
        .zip(wild_frames.iter().cycle())
        .flat_map(|(nine, one)| nine.iter().cloned().chain([one.clone()]))
        .collect();
    let run_at = |switch: &Switch, name: &str, frames: &[Vec<u8>]| {
        let (stats, took, on_cpu) = forward(switch, frames, seconds, || ());
        let frames = stats.frames_out as f64;
        let (rate, each) = (frames / took / 1e6, on_cpu / frames * 1e9);
        println!("{name}: {rate:.2} Mpps, one worker; {each:.0} ns of its CPU a frame");
    };
    let run = |name: &str, frames: &[Vec<u8>]| run_at(&switch, name, frames);
    run("exact, hash tables", &exact_frames);
    run("exact, 4,096 flows in the nearest caches", &exact_frames[..4096.min(exact_frames.len())]);
    run("wildcards, hash tables", &wild_frames);
    switch.settle();
    assert!(switch.has_classifier(0));
    switch.keep_time();
    run("exact, classifier", &exact_frames);
    run("wildcards, classifier", &wild_frames);
    run("nine exact to one wildcard, classifier", &mixed);

    let frames_v6: Vec<Vec<u8>> = (0..65_536).map(|_| frame_v6(&mut rng)).collect();
    for (table, name) in [(0, "64 masks over IPv6"), (1, "64 masks over IPv6 in the second table")] {
        let options = SwitchOptions { workers: 4, ..SwitchOptions::with_ports(["in", "out"]) };
        let switch = Switch::new(options).expect("two ports");
        switch.flow_mods(&wildcards_v6(table)).expect("wildcards that are right");
        if table == 1 {
            switch.flow_mod(&to_second(Vec::new())).expect("a flow that is right");
        }
        run_at(&switch, &format!("{name}, hash tables"), &frames_v6);
        switch.settle();
        assert!(switch.has_classifier(table));
        run_at(&switch, &format!("{name}, classifier"), &frames_v6);
        if table == 1 {
            let link = Action::SetField(Field::EthSrc, mac(7));
            switch.flow_mod(&to_second(vec![link])).expect("a flow that is right");
            run_at(&switch, &format!("{name}, classifier, with another source"), &frames_v6);
        }
    }

    let channel = Channel::open(&switch, &[Target::Listen("127.0.0.1:0".to_owned())]).expect("a free port");
    let address = channel.listening()[0];
    let more = 500_000_u32;
    let other = |which: &str| {
        if let Some(address) = other {
            let rate = f64::from(more) / controller(address, flows, more);
            println!("{rate:.0} flow-mods a second by the other switch, {which} time");
        }
    };
    other("the first");
    let rate = Mutex::new(0.0);
    let (stats, took, _) = forward(&switch, &exact_frames, seconds, || {
        let took = controller(address, flows, more);
        *rate.lock().unwrap_or_else(PoisonError::into_inner) = f64::from(more) / took;
    });
    let rate = rate.into_inner().unwrap_or_else(PoisonError::into_inner);
    println!(
        "{rate:.0} flow-mods a second over loopback to the barrier's reply, while one worker forwards {:.2} Mpps",
        stats.frames_out as f64 / took / 1e6
    );
    assert_eq!(switch.flows(), (flows + WILDCARDS + more) as usize);
    other("the second");
}

/// Adds flows over TCP, and returns the seconds until the barrier was answered.
fn controller(address: SocketAddr, first: u32, count: u32) -> f64 {
    let mut bytes = vec![4, 0, 0, 8, 0, 0, 0, 1];
    for number in first..first + count {
        bytes.extend(exact(number).to_message(number));
    }
    bytes.extend([4, 20, 0, 8, 0xff, 0xff, 0xff, 0xff]);
    let mut stream = TcpStream::connect(address).expect("the switch listens");
    let begin = Instant::now();
    stream.write_all(&bytes).expect("the switch reads");
    let mut answer = Vec::new();
    let mut part = [0; 4096];
    while !answer.ends_with(&[4, 21, 0, 8, 0xff, 0xff, 0xff, 0xff]) {
        let count = stream.read(&mut part).expect("the switch answers");
        assert!(count > 0, "the switch ended the connection");
        answer.extend(&part[..count]);
    }
    let took = begin.elapsed().as_secs_f64();
    let mut messages = &answer[..];
    while let [_, kind, high, low, ..] = *messages {
        assert_ne!(kind, 1, "the switch refused a change");
        messages = &messages[usize::from(u16::from_be_bytes([high, low])).max(8)..];
    }
    took
}
