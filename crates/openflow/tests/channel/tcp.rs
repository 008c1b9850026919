//! Connections: several controllers, one that vanishes, one that does not read, and forwarding meanwhile.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use wirespeed_openflow::wire::{Field, FlowCommand, FlowMod, Instructions, Match, number};
use wirespeed_openflow::{Channel, Fail, Switch, SwitchOptions, Target};
use wirespeed_router::io::Port;
use wirespeed_router::io::memory::{Limits, MemoryPort};
use wirespeed_router::{Memory, Published, Settings, Stats, Worker};

use super::bundles::{add, control};
use super::messages::{HELLO, message, messages, multipart, output};

fn connected(channel: &Channel) -> TcpStream {
    let mut stream = TcpStream::connect(channel.listening()[0]).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(&HELLO).unwrap();
    stream
}

/// Reads until the bytes end with a barrier's reply.
fn until_barrier(stream: &mut TcpStream) -> Vec<(u8, Vec<u8>)> {
    stream.write_all(&message(20, &[])).unwrap();
    let (mut bytes, mut part) = (Vec::new(), [0; 65_536]);
    while !bytes.ends_with(&[4, 21, 0, 8, 0, 0, 0, 20]) {
        let count = stream.read(&mut part).unwrap();
        assert!(count > 0, "the switch ended the connection");
        bytes.extend(&part[..count]);
    }
    messages(&bytes)
}

fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn listening() -> Target {
    Target::Listen("127.0.0.1:0".to_owned())
}

/// Forwards frames from a port to another one while something is done.
fn forwarding(switch: &Switch, during: impl FnOnce(&Published)) -> Stats {
    let (stop, published) = (AtomicBool::new(false), Published::default());
    let app = switch.app().unwrap();
    std::thread::scope(|scope| {
        let ends = Ends(&stop);
        let worker = scope.spawn(|| {
            let mut memory = Memory::new(256).unwrap();
            let source = Box::new(|give: &mut dyn FnMut(&[u8])| {
                let mut frame = [0; 64];
                frame[..12].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1]);
                give(&frame);
            });
            let names = ["in".to_owned(), "out".to_owned()];
            let ports = MemoryPort::ports(names, source, &mut memory, Limits::default());
            let ports = ports.into_iter().map(|port| Box::new(port) as Box<dyn Port>).collect();
            Worker::new(app, memory, ports, Settings::default()).run(&stop, &published).unwrap()
        });
        during(&published);
        drop(ends);
        worker.join().unwrap()
    })
}

#[test]
fn controllers_come_and_go_while_frames_are_forwarded() {
    let switch = Switch::new(SwitchOptions::with_ports(["in", "out"])).unwrap();
    let channel = Channel::open(&switch, &[listening()]).unwrap();
    switch.flow_mod(&FlowMod::add(0, 1, Match::all().with(Field::InPort, 1), output(2))).unwrap();
    let stats = forwarding(&switch, |published| {
        let mut first = connected(&channel);
        let mut second = connected(&channel);
        until_barrier(&mut first);
        until_barrier(&mut second);
        eventually("both have greeted", || channel.controllers() == 2);
        // One vanishes in the middle of a message.
        let flow = FlowMod::add(0, 9, Match::all().with(Field::InPort, 2), output(1)).to_message(5);
        first.write_all(&flow[..flow.len() / 2]).unwrap();
        drop(first);
        eventually("the first is gone", || channel.controllers() == 1);
        assert_eq!(switch.flows(), 1, "half a message changes nothing");
        // Another one asks much and never reads: it is not read either, and others go on.
        let mut deaf = connected(&channel);
        deaf.set_write_timeout(Some(Duration::from_millis(300))).unwrap();
        let flood = multipart(12, &[]).repeat(1000);
        while deaf.write_all(&flood).is_ok() {}
        for number in 0..1000_u32 {
            let matched = Match::all().with(Field::EthDst, number.into());
            second.write_all(&FlowMod::add(1, 5, matched, output(1)).to_message(number)).unwrap();
        }
        assert!(until_barrier(&mut second).iter().all(|(kind, _)| *kind == 21));
        assert_eq!(switch.flows(), 1001);
        // Noise is no message of this version.
        let mut noise = connected(&channel);
        noise.write_all(&[0xa5; 10_000]).unwrap();
        let before = published.stats().frames_out;
        eventually("frames go on", || published.stats().frames_out > before);
    });
    assert!(stats.is_whole() && stats.frames_out > 0);
    drop(channel);
}

#[test]
fn a_master_makes_others_slaves() {
    let switch = Switch::new(SwitchOptions::with_ports(["a"])).unwrap();
    let channel = Channel::open(&switch, &[listening()]).unwrap();
    let (mut first, mut second) = (connected(&channel), connected(&channel));
    let master = |generation| message(24, &[0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, generation]);
    let flow = FlowMod::add(0, 1, Match::all(), output(number::port::FLOOD)).to_message(3);
    first.write_all(&master(1)).unwrap();
    assert_eq!(until_barrier(&mut first).iter().filter(|(kind, _)| *kind == 25).count(), 1);
    second.write_all(&master(2)).unwrap();
    until_barrier(&mut second);
    first.write_all(&flow).unwrap();
    let answers = until_barrier(&mut first);
    let error = answers.iter().find(|(kind, _)| *kind == 1).expect("a slave may not");
    assert_eq!(error.1[..4], [0, 1, 0, 10]);
    second.write_all(&flow).unwrap();
    until_barrier(&mut second);
    assert_eq!(switch.flows(), 1);
}

/// A standalone switch learns and floods without a controller, and follows flows once there is one.
#[test]
fn a_switch_connects_and_stands_alone_without() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let options = SwitchOptions { fail: Fail::Standalone, ..SwitchOptions::with_ports(["a", "b"]) };
    let switch = Switch::new(options).unwrap();
    assert!(switch.is_standalone());
    let channel =
        Channel::open(&switch, &[format!("tcp:{}", listener.local_addr().unwrap()).parse().unwrap()])
            .unwrap();
    let (mut stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(&HELLO).unwrap();
    until_barrier(&mut stream);
    eventually("it has a controller", || !switch.is_standalone());
    drop(stream);
    eventually("it stands alone again", || switch.is_standalone());
    drop(channel);
}

/// Each bundle takes all flows away and adds one again, so a frame between two of its changes would be
/// dropped. Controllers vanish with bundles of half the memory that all bundles may have.
#[test]
fn frames_see_no_part_of_a_bundle_and_vanished_controllers_leave_nothing() {
    let flow = FlowMod::add(0, 1, Match::all().with(Field::InPort, 1), output(2));
    let delete = FlowMod { command: FlowCommand::Delete, ..FlowMod::add(0, 0, Match::all(), output(2)) };
    let changes = [delete.to_message(1), flow.to_message(2)];
    let most_bundle_bytes = 2 * changes.concat().len() - 1;
    let options = SwitchOptions { most_bundle_bytes, ..SwitchOptions::with_ports(["in", "out"]) };
    let switch = Switch::new(options).unwrap();
    let channel = Channel::open(&switch, &[listening()]).unwrap();
    switch.flow_mod(&flow).unwrap();
    let asked: Vec<Vec<u8>> = changes.iter().map(|change| add(1, 3, change)).collect();
    let stats = forwarding(&switch, |published| {
        for _ in 0..200 {
            let mut vanishing = connected(&channel);
            vanishing.write_all(&asked.concat()).unwrap();
            until_barrier(&mut vanishing);
            vanishing.write_all(&asked[0][..20]).unwrap();
            drop(vanishing);
            eventually("it is gone", || channel.controllers() == 0);
            let mut whole = connected(&channel);
            whole.write_all(&[asked.concat(), control(1, 4, 3)].concat()).unwrap();
            let kinds: Vec<u8> = until_barrier(&mut whole).into_iter().map(|(kind, _)| kind).collect();
            assert_eq!(kinds, [0, 4, 21]);
            drop(whole);
            eventually("it is gone", || channel.controllers() == 0);
        }
        let before = published.stats().frames_out;
        eventually("frames go on", || published.stats().frames_out > before);
    });
    assert_eq!(stats.frames_in, stats.frames_out + stats.queued, "{stats:?}");
}

/// Ends the workers when it is dropped, also by a panic.
struct Ends<'s>(&'s AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Frames that a switch sends while its only controller is there and once that is gone. The controller gives
/// it one flow for all frames.
fn sent_with_and_without(fail: Fail, flow: Instructions) -> (bool, bool) {
    let options = SwitchOptions { fail, ..SwitchOptions::with_ports(["in", "out"]) };
    let switch = Switch::new(options).unwrap();
    let channel = Channel::open(&switch, &[listening()]).unwrap();
    let mut controller = connected(&channel);
    controller.write_all(&FlowMod::add(0, 1, Match::all(), flow).to_message(1)).unwrap();
    until_barrier(&mut controller);
    eventually("it has a controller", || channel.controllers() == 1 && !switch.is_standalone());
    let mut sent = (false, false);
    let stats = forwarding(&switch, |published| {
        // Whether frames go out: asked behind frames that came in and what was under way.
        let sends = || {
            let wait = |frames| {
                let from = published.stats().frames_in;
                eventually("frames come in", || published.stats().frames_in > from + frames);
            };
            wait(10_000);
            let before = published.stats().frames_out;
            wait(10_000);
            published.stats().frames_out > before
        };
        sent.0 = sends();
        drop(controller);
        eventually("the controller is gone", || channel.controllers() == 0);
        let stands_alone = fail == Fail::Standalone;
        eventually("it goes on as it should", || switch.is_standalone() == stands_alone);
        sent.1 = sends();
        assert_eq!((switch.flows(), switch.is_standalone()), (1, stands_alone));
    });
    assert!(stats.is_whole());
    sent
}

#[test]
fn flows_hold_without_a_controller_unless_the_switch_stands_alone() {
    assert_eq!(sent_with_and_without(Fail::Secure, output(2)), (true, true));
    assert_eq!(sent_with_and_without(Fail::Secure, Instructions::default()), (false, false));
    // It floods in place of its flow, which drops all.
    assert_eq!(sent_with_and_without(Fail::Standalone, Instructions::default()), (false, true));
    assert_eq!(sent_with_and_without(Fail::Standalone, output(1)), (false, true));
}
