//! The data plane against a slow, plain model, over random flows and packets.

#![allow(clippy::cast_possible_truncation, clippy::unwrap_used)] // every function here is a test or helps one

mod fields;
mod groups;
mod list;
mod local;
mod made;
mod model;
mod tables;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use wirespeed_openflow::wire::{Command, Field, FlowMod, GroupMod, Request};
use wirespeed_openflow::{Session, Switch, SwitchOptions};
use wirespeed_rng::Rng;

use made::PORTS;
use model::Model;

/// The settings of a switch with the ports of the model.
fn options() -> SwitchOptions {
    SwitchOptions::with_ports((1..=PORTS).map(|n| format!("p{n}")))
}

/// Which flows there are.
#[derive(Clone, Copy, PartialEq)]
enum Kinds {
    /// Flows on all fields.
    All,
    /// Flows on links, tags, IPv4 and ports, which have a classifier of narrow tuples.
    Narrow,
}

impl Kinds {
    fn has(self, flow: &FlowMod) -> bool {
        use Field::{EthDst, EthSrc, EthType, InPort, IpDscp, IpProto, Ipv4Dst, Ipv4Src, VlanPcp, VlanVid};
        use Field::{TcpDst, TcpSrc, UdpDst, UdpSrc};
        let narrow = [InPort, EthDst, EthSrc, EthType, VlanVid, VlanPcp, IpDscp, IpProto, Ipv4Src, Ipv4Dst];
        let ports = [TcpSrc, TcpDst, UdpSrc, UdpDst];
        self == Self::All
            || flow.matched.iter().all(|field| narrow.contains(&field) || ports.contains(&field))
    }
}

/// A switch and a model with the same groups and flows.
fn both(rng: &mut Rng, flows: u16, kinds: Kinds, options: SwitchOptions) -> (Switch, Model) {
    let switch = Switch::new(options).unwrap();
    let mut model = Model { ports: PORTS, ..Model::default() };
    for (number, kind, buckets) in made::groups(rng) {
        let asked = GroupMod { command: Command::Add, kind, number, buckets: buckets.clone() };
        switch.group_mod(&asked).unwrap();
        model.groups.insert(number, (kind, buckets));
    }
    for priority in 0..flows {
        let flow = made::flow(rng, priority);
        if kinds.has(&flow) {
            add(&switch, &mut model, flow);
        }
    }
    (switch, model)
}

/// Adds a flow to both, if its message is one.
fn add(switch: &Switch, model: &mut Model, flow: FlowMod) {
    let Ok(Request::FlowMod(flow)) = Request::read(&flow.to_message(1)) else { return };
    switch.flow_mod(&flow).unwrap();
    model.flows.push(*flow);
    model.counts.push((0, 0));
}

/// A number in the order of the network.
fn be(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

/// The bodies of the answers to a question for statistics of a kind, one after the other.
fn asked(switch: &Switch, kind: u8, body: &[u8]) -> Vec<u8> {
    let mut session = Session::new(switch);
    let mut request = vec![4, 0, 0, 8, 0, 0, 0, 1];
    request.extend([4, 18, 0, 16 + body.len() as u8, 0, 0, 0, 2, 0, kind, 0, 0, 0, 0, 0, 0]);
    request.extend(body);
    let answer = session.receive(&request).unwrap();
    let (mut rest, mut found) = (&answer[..], Vec::new());
    while !rest.is_empty() {
        let (message, more) = rest.split_at(be(&rest[2..4]) as usize);
        if message[1] == 19 {
            found.extend(&message[16..]);
        }
        rest = more;
    }
    found
}

/// Packets and bytes of each flow of a switch, by table and priority, from its own statistics.
fn statistics(switch: &Switch) -> Vec<(u8, u16, u64, u64)> {
    // All flows: table 255, any port and group, no match.
    let body = [&[255, 0, 0, 0][..], &[0xff; 8], &[0; 20], &[0, 1, 0, 4, 0, 0, 0, 0]].concat();
    let answer = asked(switch, 1, &body);
    let (mut rest, mut found) = (&answer[..], Vec::new());
    while !rest.is_empty() {
        let (entry, more) = rest.split_at(be(&rest[..2]) as usize);
        let priority = be(&entry[12..14]) as u16;
        found.push((entry[2], priority, be(&entry[32..40]), be(&entry[40..48])));
        rest = more;
    }
    found.sort();
    found
}

/// Flows, lookups and matches of the tables of a switch, from its own statistics.
fn tables(switch: &Switch) -> Vec<[u64; 3]> {
    let answer = asked(switch, 3, &[]);
    let of = |entry: &[u8]| [be(&entry[4..8]), be(&entry[8..16]), be(&entry[16..24])];
    answer.chunks(24).map(of).collect()
}

/// Packets in and out and bytes in and out of the ports of a switch, from its own statistics. None has an
/// error or a loss.
fn ports(switch: &Switch) -> Vec<[u64; 4]> {
    let answer = asked(switch, 4, &[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]);
    let of = |(at, entry): (usize, &[u8])| {
        assert_eq!(be(&entry[..4]), at as u64 + 1);
        assert!(entry[40..104].iter().all(|&byte| byte == 0), "drops and errors");
        std::array::from_fn(|at| be(&entry[8 + 8 * at..][..8]))
    };
    answer.chunks(112).enumerate().map(of).collect()
}

/// Packets that a port sent, and those that it dropped instead, from the statistics.
fn transmitted(switch: &Switch, port: u8) -> [u64; 2] {
    let answer = asked(switch, 4, &[0, 0, 0, port, 0, 0, 0, 0]);
    [16, 48].map(|at| be(&answer[at..at + 8]))
}

/// Numbers of frames and bytes by port, counted over the frames that came in and went out.
fn ports_by_frames(count: u32, came: &[(u32, Vec<u8>)], sent: &[(u32, Vec<u8>)]) -> Vec<[u64; 4]> {
    let mut counts = vec![[0; 4]; count as usize];
    for (place, frames) in [(0, came), (1, sent)] {
        for (port, frame) in frames {
            let of_port = &mut counts[*port as usize - 1];
            of_port[place] += 1;
            of_port[place + 2] += frame.len() as u64;
        }
    }
    counts
}

/// Compares all statistics of a switch with what a model counted, and with frames that came and went.
#[track_caller]
fn compare_statistics(switch: &Switch, model: &Model, came: &[(u32, Vec<u8>)], sent: &[(u32, Vec<u8>)]) {
    let flows = model.flows.iter().zip(&model.counts);
    let mut counts: Vec<(u8, u16, u64, u64)> =
        flows.map(|(flow, count)| (flow.table, flow.priority, count.0, count.1)).collect();
    counts.sort();
    assert_eq!(statistics(switch), counts, "flows");
    assert_eq!(ports(switch), ports_by_frames(PORTS, came, sent), "ports");
    let tables = tables(switch);
    for (table, found) in (0..).zip(&tables) {
        let flows = model.flows.iter().filter(|flow| flow.table == table).count() as u64;
        let [looked_up, matched] = model.of_table.get(usize::from(table)).copied().unwrap_or_default();
        assert_eq!(*found, [flows, looked_up, matched], "table {table}");
    }
}

fn compare(seed: u64, flows: u16, kinds: Kinds, with_classifier: bool) {
    let mut rng = Rng::new(seed);
    let (switch, mut model) = both(&mut rng, flows, kinds, options());
    if with_classifier {
        switch.settle();
        assert!(switch.has_classifier(0), "seed {seed}");
        assert!(flows < 160 || switch.has_classifier(1) && switch.has_classifier(2), "seed {seed}");
        switch.keep_time();
    }
    let frames: Vec<(u32, Vec<u8>)> =
        (0..400).map(|_| (1 + rng.below(PORTS.into()) as u32, made::frame(&mut rng))).collect();
    let (stats, sent, counters) =
        list::run(&switch, switch.app().unwrap(), PORTS, &frames, 1 + rng.index(64));
    assert!(stats.is_whole() && stats.frames_in == 400, "{stats:?}");
    let mut expected: Vec<(u32, Vec<u8>)> =
        frames.iter().flat_map(|(port, frame)| model.frame(*port, frame)).collect();
    expected.sort();
    let of = |name: &str| counters.iter().find(|(known, _)| *known == name).map(|&(_, count)| count);
    assert_eq!((of("lost_copies"), stats.made_lost), (Some(0), 0), "seed {seed}");
    assert_eq!(sent.len(), expected.len(), "seed {seed}");
    for (sent, expected) in sent.iter().zip(&expected) {
        assert_eq!(sent, expected, "seed {seed}");
    }
    assert_eq!(of("packet_ins").unwrap() + of("lost_packet_ins").unwrap(), model.told, "seed {seed}");
    assert_eq!(of("classified").unwrap() > 0, with_classifier);
    assert!(!with_classifier || flows < 160 || of("classified_later").unwrap() > 50, "seed {seed}");
    compare_statistics(&switch, &model, &frames, &sent);
}

#[test]
fn random_flows_do_what_the_model_does() {
    for seed in 0..wirespeed_image::rounds::fewer(300) as u64 {
        compare(seed, 60, Kinds::All, false);
    }
}

#[test]
fn the_classifier_does_what_the_model_does() {
    for seed in 1000..1004 {
        compare(seed, 80, Kinds::All, true);
        compare(seed, 160, Kinds::All, true);
        compare(seed, 160, Kinds::Narrow, true);
    }
}

/// Runs chunks that are handed over to the classifier's device, and compares with the model. A chunk is all
/// frames of a port.
fn compare_large(seed: u64, kinds: Kinds, settings: SwitchOptions, is_by_gpu: bool) {
    let mut rng = Rng::new(seed);
    let sizes = [1025, 1500, 2048, 4096];
    let (switch, mut model) = both(&mut rng, 160, kinds, SwitchOptions { workers: sizes.len(), ..settings });
    switch.settle();
    assert!(switch.has_classifier(0), "seed {seed}");
    let (mut all_frames, mut all_sent) = (Vec::new(), Vec::new());
    for (port, size) in (1..).zip(sizes) {
        let frames: Vec<(u32, Vec<u8>)> = (0..size).map(|_| (port, made::frame(&mut rng))).collect();
        let (stats, sent, counters) = list::run(&switch, switch.app().unwrap(), PORTS, &frames, size);
        assert!(stats.is_whole() && stats.frames_in == size as u64 && stats.made_lost == 0, "{stats:?}");
        let of = |name: &str| counters.iter().find(|(known, _)| *known == name).unwrap().1;
        // All frames are handed over; at once only those are that a better flow may be for.
        assert_eq!((of("classified"), of("lost_copies")), (size as u64, 0), "seed {seed}");
        assert_eq!((stats.chunks_cpu, stats.chunks_gpu), (u64::from(!is_by_gpu), u64::from(is_by_gpu)));
        let expected = frames.iter().flat_map(|(port, frame)| model.frame(*port, frame));
        let mut expected: Vec<(u32, Vec<u8>)> = expected.collect();
        expected.sort();
        assert!(sent == expected, "seed {seed}, {size} frames");
        all_frames.extend(frames);
        all_sent.extend(sent);
    }
    compare_statistics(&switch, &model, &all_frames, &all_sent);
}

#[test]
fn large_chunks_do_what_the_model_does() {
    for seed in 2000..2003 {
        compare_large(seed, Kinds::All, options(), false);
        compare_large(seed, Kinds::Narrow, options(), false);
    }
}

/// Settings with the host build of the kernels in a GPU's place, and what loses that device.
fn with_device<T: wirespeed::engine::Served>() -> Option<(SwitchOptions, Arc<AtomicBool>)> {
    use wirespeed::gpu::runtime::{Gpu, GpuOptions, SlotSize};
    use wirespeed_kernels_host::{HostDriver, Sanitizers};
    let driver = HostDriver::for_tests(Sanitizers::Off)?;
    let lose = driver.switch();
    let slots = vec![SlotSize { slots: 4, keys: 1 << 10 }, SlotSize { slots: 2, keys: 1 << 13 }];
    let device = GpuOptions { slots, ..T::gpu_options() };
    let fleet = wirespeed::Fleet::new(vec![Gpu::start(Box::new(driver), device).unwrap()]).unwrap();
    Some((SwitchOptions { device: wirespeed::Device::Gpu, fleet: Some(fleet), ..options() }, lose))
}

fn on_a_device<T: wirespeed::engine::Served>(kinds: Kinds) {
    let Some((settings, _)) = with_device::<T>() else { return };
    compare_large(2003, kinds, settings, true);
}

#[test]
fn large_chunks_on_a_device_do_what_the_model_does() {
    on_a_device::<wirespeed_classify::OpenFlow13Tuple>(Kinds::All);
    on_a_device::<wirespeed_classify::OpenFlowTuple>(Kinds::Narrow);
}

/// A flow of each way of a frame that does not go out; the destination's last byte says which.
#[test]
fn each_frame_that_stays_has_its_own_count() {
    use wirespeed_openflow::wire::{Action, Instructions, Match};
    use wirespeed_router::Reason;
    const CONTROLLER: u32 = 0xffff_fffd;
    let switch = Switch::new(SwitchOptions::with_ports(["a", "b", "c"])).unwrap();
    switch.set_link(3, false);
    let to = |port| Action::Output { port, max_len: 0xffff };
    let ways = [
        vec![to(1)],
        vec![to(3)],
        vec![],
        vec![to(CONTROLLER)],
        // By the interpreter.
        vec![Action::SetField(Field::EthSrc, 7), to(1)],
        vec![Action::SetField(Field::EthSrc, 7), to(3)],
        vec![Action::SetField(Field::EthSrc, 7)],
        vec![to(CONTROLLER), to(2)],
    ];
    let mut frames = Vec::new();
    for (number, apply) in (1..).zip(ways) {
        let instructions = Instructions { apply, has_apply: true, ..Instructions::default() };
        let matched = Match::all().with(Field::EthDst, u128::from(number));
        switch.flow_mod(&FlowMod::add(0, 1, matched, instructions)).unwrap();
        let mut frame = vec![0; 60];
        frame[5] = number;
        frames.extend(vec![(1, frame); number.into()]);
    }
    // More than can wait for controllers.
    let mut many = vec![0; 60];
    many[5] = 4;
    frames.extend(vec![(1, many); 2000]);
    let (stats, sent, counters) = list::run(&switch, switch.app().unwrap(), 3, &frames, 16);
    assert!(stats.is_whole(), "{stats:?}");
    let of = |name: &str| counters.iter().find(|(known, _)| *known == name).unwrap().1;
    let dropped = |reason| stats.dropped.of(reason);
    assert_eq!((dropped(Reason::SamePort), dropped(Reason::NoPort)), (1 + 5, 2 + 6));
    assert_eq!((dropped(Reason::Denied), of("dropped_by_flow")), (3 + 7, 3 + 7));
    let lost = of("lost_packet_ins");
    assert!(lost > 900, "{lost}");
    assert_eq!(stats.to_controller + dropped(Reason::QueueFull), 4 + 2000);
    assert_eq!(dropped(Reason::QueueFull), lost);
    assert_eq!((stats.to_kernel, sent.len()), (0, 8));
}

/// Frames that go back as they are, and by the interpreter.
#[test]
fn a_port_that_forwards_nothing_sends_nothing_back() {
    use wirespeed_openflow::wire::{Action, Instructions, Match};
    use wirespeed_router::Reason;
    const IN_PORT: u32 = 0xffff_fff8;
    let switch = Switch::new(SwitchOptions::with_ports(["a", "b"])).unwrap();
    let back = Action::Output { port: IN_PORT, max_len: 0 };
    for (number, apply) in [(1, vec![back]), (2, vec![Action::SetField(Field::EthSrc, 7), back])] {
        let instructions = Instructions { apply, has_apply: true, ..Instructions::default() };
        let matched = Match::all().with(Field::EthDst, number);
        switch.flow_mod(&FlowMod::add(0, 1, matched, instructions)).unwrap();
    }
    let frame = |port: u32, number: u8| {
        let mut frame = vec![0; 60];
        frame[5] = number;
        (port, frame)
    };
    let frames = [(1, 1), (1, 1), (1, 2), (2, 1), (2, 2), (2, 2)].map(|(port, number)| frame(port, number));
    // OFPT_PORT_MOD: port 1, its address, OFPPC_NO_FWD.
    let mut session = Session::new(&switch);
    session.receive(&[4, 0, 0, 8, 0, 0, 0, 1]).unwrap();
    let mut message = vec![4, 16, 0, 40, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 2, 0, 0, 1, 0, 1, 0, 0];
    message.extend([0, 0, 0, 1 << 5].repeat(2));
    message.extend([0; 8]);
    session.receive(&message).unwrap();
    let (stats, sent, _) = list::run(&switch, switch.app().unwrap(), 2, &frames, 4);
    assert!(stats.is_whole(), "{stats:?}");
    assert_eq!((stats.dropped.of(Reason::NoPort), stats.dropped.all()), (3, 3));
    let sources: Vec<_> = sent.iter().map(|(port, frame)| (*port, frame[5], frame[11])).collect();
    assert_eq!(sources, [(2, 1, 0), (2, 2, 7), (2, 2, 7)]);
}

/// Flows that come, change and go while the classifier stays, in chunks that it answers at once and in those
/// that are handed over to it.
#[test]
fn the_classifier_stays_while_flows_change() {
    use wirespeed_openflow::wire::FlowCommand;
    const ROUNDS: usize = 12;
    for (seed, kinds) in [(1, Kinds::Narrow), (2, Kinds::All)] {
        let mut rng = Rng::new(seed);
        let (switch, mut model) = both(&mut rng, 160, kinds, SwitchOptions { workers: ROUNDS, ..options() });
        switch.settle();
        let (mut next, mut classified) = (200, 0);
        for round in 0..ROUNDS {
            for _ in 0..4 {
                let at = rng.index(model.flows.len());
                match rng.below(3) {
                    0 => {
                        let flow = made::flow(&mut rng, next);
                        if kinds.has(&flow) {
                            add(&switch, &mut model, flow);
                        }
                        next += 1;
                    }
                    1 => {
                        let command = FlowCommand::DeleteStrict;
                        switch.flow_mod(&FlowMod { command, ..model.flows.remove(at) }).unwrap();
                        model.counts.remove(at);
                    }
                    _ => {
                        let other = made::flow(&mut rng, 0);
                        let command = FlowCommand::ModifyStrict;
                        let changed =
                            FlowMod { command, instructions: other.instructions, ..model.flows[at].clone() };
                        if let Ok(Request::FlowMod(changed)) = Request::read(&changed.to_message(1))
                            && switch.flow_mod(&changed).is_ok()
                        {
                            model.flows[at].instructions = changed.instructions;
                        }
                    }
                }
            }
            assert!(switch.has_classifier(0), "seed {seed}, round {round}");
            let (frames, chunk) = if round % 3 == 0 { (1100, 1100) } else { (300, 100) };
            let frames: Vec<(u32, Vec<u8>)> = (0..frames)
                .map(|_| {
                    (if chunk > 1024 { 1 } else { 1 + rng.below(PORTS.into()) as u32 }, made::frame(&mut rng))
                })
                .collect();
            let (stats, sent, counters) = list::run(&switch, switch.app().unwrap(), PORTS, &frames, chunk);
            assert!(stats.is_whole() && stats.made_lost == 0, "{stats:?}");
            let mut expected: Vec<(u32, Vec<u8>)> =
                frames.iter().flat_map(|(port, frame)| model.frame(*port, frame)).collect();
            expected.sort();
            assert!(sent == expected, "seed {seed}, round {round}");
            classified += counters.iter().find(|(name, _)| *name == "classified").unwrap().1;
        }
        assert!(classified > 2000, "{classified}");
    }
}

/// A classifier is built although flows change again and again.
#[test]
fn a_stream_of_changes_does_not_put_the_classifier_off() {
    use wirespeed_openflow::wire::{Instructions, Match};
    let switch = Switch::new(options()).unwrap();
    let start = std::time::Instant::now();
    for number in 0.. {
        let bits = number % 4 + 1;
        let mask = u128::from(u32::MAX << bits);
        let value = u128::from((number as u32) << 8);
        let matched = Match::all().with(Field::EthType, 0x0800).with_masked(Field::Ipv4Src, value, mask);
        switch.flow_mod(&FlowMod::add(0, 20, matched, Instructions::default())).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(50));
        switch.keep_time();
        if switch.has_classifier(0) {
            break;
        }
        assert!(start.elapsed().as_secs() < 60, "no classifier");
    }
}

/// Adds, changes and removes flows at random, and compares after each step.
#[test]
fn changes_of_flows_are_seen() {
    let mut rng = Rng::new(7);
    let (switch, mut model) = both(&mut rng, 30, Kinds::All, options());
    let mut session = Session::new(&switch);
    session.receive(&[4, 0, 0, 8, 0, 0, 0, 1]).unwrap();
    let mut next = 100;
    for round in 0..60 {
        match rng.below(3) {
            0 => {
                add(&switch, &mut model, made::flow(&mut rng, next));
                next += 1;
            }
            1 => {
                // All flows within a match of the table go.
                let mut asked = made::flow(&mut rng, 0);
                asked.command = wirespeed_openflow::wire::FlowCommand::Delete;
                asked.instructions = wirespeed_openflow::wire::Instructions::default();
                if Request::read(&asked.to_message(1)).is_err() {
                    continue;
                }
                session.receive(&asked.to_message(1)).unwrap();
                model
                    .flows
                    .retain(|flow| flow.table != asked.table || !flow.matched.is_within(&asked.matched));
            }
            _ if !model.flows.is_empty() => {
                let at = rng.index(model.flows.len());
                let mut asked = model.flows.remove(at);
                asked.command = wirespeed_openflow::wire::FlowCommand::DeleteStrict;
                switch.flow_mod(&asked).unwrap();
            }
            _ => {}
        }
        assert_eq!(switch.flows(), model.flows.len(), "round {round}");
    }
    model.counts = vec![(0, 0); model.flows.len()];
    let frames: Vec<(u32, Vec<u8>)> =
        (0..300).map(|_| (1 + rng.below(PORTS.into()) as u32, made::frame(&mut rng))).collect();
    let (_, sent, _) = list::run(&switch, switch.app().unwrap(), PORTS, &frames, 32);
    let mut expected: Vec<(u32, Vec<u8>)> =
        frames.iter().flat_map(|(port, frame)| model.frame(*port, frame)).collect();
    expected.sort();
    assert_eq!(sent, expected);
}
