//! Groups that select by weight and groups that fail over, while ports die and return.

use std::collections::BTreeMap;

use wirespeed_openflow::wire::{
    Action, Band, Bucket, Command, FlowMod, GroupKind, GroupMod, Instructions, Match, MeterMod, number,
};
use wirespeed_openflow::{Session, Switch, SwitchOptions};

use crate::{asked, be, list, transmitted};

const ANY: u32 = number::port::ANY;
const PORTS: u32 = 6;
/// The port that frames come in at.
const IN: u32 = 6;

/// A switch, for some runs, whose frames from port 6 all go to group 1.
fn switch() -> Switch {
    let ports = SwitchOptions::with_ports((1..=PORTS).map(|n| format!("p{n}")));
    Switch::new(SwitchOptions { workers: 8, ..ports }).unwrap()
}

fn add_flow(switch: &Switch) {
    let apply = vec![Action::Group(1)];
    let instructions = Instructions { apply, has_apply: true, ..Instructions::default() };
    switch.flow_mod(&FlowMod::add(0, 1, Match::all(), instructions)).unwrap();
}

/// A bucket that outputs to a port, and is live as this port or this group is.
fn bucket(weight: u16, to: u32, watch_port: u32, watch_group: u32) -> Bucket {
    let output = Action::Output { port: to, max_len: number::WHOLE };
    Bucket { weight, watch_port, watch_group, actions: vec![output] }
}

fn add_group(switch: &Switch, number: u32, kind: GroupKind, buckets: Vec<Bucket>) {
    switch.group_mod(&GroupMod { command: Command::Add, kind, number, buckets }).unwrap();
}

/// A frame of a flow of UDP, whose source port and a part of whose source address are its number.
fn frame(flow: u16, last: u8) -> Vec<u8> {
    let mut frame = vec![0; 60];
    frame[12..15].copy_from_slice(&[8, 0, 0x45]);
    (frame[17], frame[22], frame[23]) = (46, 64, 17);
    let [high, low] = flow.to_be_bytes();
    frame[26..34].copy_from_slice(&[10, 0, low, high, 10, 9, 9, 9]);
    frame[34..38].copy_from_slice(&[high, low, 0, 53]);
    frame[39] = 26;
    frame[59] = last;
    frame
}

/// The port of each flow, by its number. Each has two frames, far from each other: they go the same way.
fn ways(switch: &Switch, flows: u16) -> BTreeMap<u16, u32> {
    let frames: Vec<(u32, Vec<u8>)> =
        [1, 2].into_iter().flat_map(|last| (0..flows).map(move |flow| (IN, frame(flow, last)))).collect();
    let (stats, sent, _) = list::run(switch, switch.app().unwrap(), PORTS, &frames, 64);
    assert!(stats.is_whole(), "{stats:?}");
    let mut found: BTreeMap<u16, Vec<u32>> = BTreeMap::new();
    for (port, frame) in &sent {
        found.entry(u16::from_be_bytes([frame[34], frame[35]])).or_default().push(*port);
    }
    let one = |(flow, ports): (u16, Vec<u32>)| {
        assert!(ports.len() == 2 && ports[0] == ports[1], "flow {flow} goes to {ports:?}");
        (flow, ports[0])
    };
    found.into_iter().map(one).collect()
}

/// The number of flows of each port.
fn shares(ways: &BTreeMap<u16, u32>) -> [usize; PORTS as usize] {
    let mut shares = [0; PORTS as usize];
    ways.values().for_each(|&port| shares[port as usize - 1] += 1);
    shares
}

#[test]
fn flows_are_shared_by_weight_and_stay_where_they_are() {
    const FLOWS: u16 = 4000;
    let (switch, count) = (switch(), usize::from(FLOWS));
    // No flow goes to a weight of 0. The last bucket lives while one of another group's ports does.
    let other = vec![bucket(1, 4, 4, number::group::ANY), bucket(1, 5, 5, number::group::ANY)];
    add_group(&switch, 2, GroupKind::FastFailover, other);
    let weights = [10_u16, 30, 0, 60];
    let buckets = vec![
        bucket(weights[0], 1, 1, number::group::ANY),
        bucket(weights[1], 2, ANY, number::group::ANY),
        bucket(weights[2], 3, ANY, number::group::ANY),
        bucket(weights[3], 4, ANY, 2),
    ];
    add_group(&switch, 1, GroupKind::Select, buckets);
    add_flow(&switch);
    let all = ways(&switch, FLOWS);
    assert_eq!(all.len(), count);
    let found = shares(&all);
    for (weight, found) in weights.into_iter().zip(found) {
        let share = f64::from(weight) / 100.0;
        // Six standard deviations of as many throws.
        let most = 6.0 * (f64::from(FLOWS) * share * (1.0 - share)).sqrt();
        let expected = f64::from(FLOWS) * share;
        assert!((found as f64 - expected).abs() <= most, "{found} of weight {weight}: {expected} ± {most}");
    }
    // A dead port is passed over. Flows of other buckets stay.
    switch.set_link(1, false);
    let without = ways(&switch, FLOWS);
    assert_eq!((without.len(), shares(&without)[0]), (count, 0));
    assert!(all.iter().all(|(flow, &port)| port == 1 || without[flow] == port));
    // A group lives as long as a bucket of it does.
    switch.set_link(5, false);
    assert_eq!(ways(&switch, FLOWS), without);
    switch.set_link(4, false);
    let second = ways(&switch, FLOWS);
    assert_eq!((second.len(), shares(&second)), (count, [0, count, 0, 0, 0, 0]));
    // What comes back gets the flows that it had.
    [1, 4, 5].into_iter().for_each(|port| switch.set_link(port, true));
    assert_eq!(ways(&switch, FLOWS), all);
}

#[test]
fn a_group_fails_over_and_back() {
    let switch = switch();
    let buckets = vec![
        bucket(0, 1, 1, number::group::ANY),
        // It outputs to another port than the one that it watches.
        bucket(0, 2, 3, number::group::ANY),
        bucket(0, 4, 4, number::group::ANY),
    ];
    add_group(&switch, 1, GroupKind::FastFailover, buckets);
    add_flow(&switch);
    let mut session = Session::new(&switch);
    session.receive(&[4, 0, 0, 8, 0, 0, 0, 1]).unwrap();
    let to = |port: Option<u32>| -> BTreeMap<u16, u32> {
        port.map(|port| (0..10).map(|flow| (flow, port)).collect()).unwrap_or_default()
    };
    assert_eq!(ways(&switch, 10), to(Some(1)));
    switch.set_link(1, false);
    assert_eq!(ways(&switch, 10), to(Some(2)));
    // A port that a controller took down is as dead as one without a link: OFPPC_PORT_DOWN of port 3.
    let port_mod = |is_down: u8| {
        let mut message = vec![4, 16, 0, 40, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0, 2, 0, 0, 1, 0, 3, 0, 0];
        message.extend([0, 0, 0, is_down, 0, 0, 0, 1]);
        message.extend([0; 8]);
        message
    };
    session.receive(&port_mod(1)).unwrap();
    assert_eq!(ways(&switch, 10), to(Some(4)));
    switch.set_link(4, false);
    assert_eq!(ways(&switch, 10), to(None), "no bucket is live");
    session.receive(&port_mod(0)).unwrap();
    assert_eq!(ways(&switch, 10), to(Some(2)));
    switch.set_link(1, true);
    assert_eq!(ways(&switch, 10), to(Some(1)));
}

/// Packets and bytes of group 1 or of meter 1, and those of its buckets or bands, from the statistics.
fn counted(switch: &Switch, kind: u8) -> Vec<[u64; 2]> {
    let entry = asked(switch, kind, &[0, 0, 0, 1, 0, 0, 0, 0]);
    let parts = std::iter::once(&entry[16..32]).chain(entry[40..].chunks(16));
    parts.map(|part| [be(&part[..8]), be(&part[8..])]).collect()
}

/// A change of a group or of a meter lets its own counters go on, and those of its buckets and bands begin
/// anew.
#[test]
fn counters_of_groups_and_meters_outlive_a_change() {
    const GROUPS: u8 = 6;
    const METERS: u8 = 9;
    let switch = switch();
    let any = number::group::ANY;
    let group = |command, buckets| GroupMod { command, kind: GroupKind::All, number: 1, buckets };
    let band = |rate| Band { rate, burst: 1, remark: None };
    let flags = MeterMod::PKTPS | MeterMod::BURST;
    let meter = |command, bands| MeterMod { command, flags, number: 1, bands };
    add_group(&switch, 1, GroupKind::All, vec![bucket(0, 1, ANY, any), bucket(0, 2, ANY, any)]);
    switch.meter_mod(&meter(Command::Add, vec![band(1)])).unwrap();
    let apply = vec![Action::Group(1)];
    let instructions = Instructions { meter: Some(1), apply, has_apply: true, ..Instructions::default() };
    switch.flow_mod(&FlowMod::add(0, 1, Match::all(), instructions)).unwrap();
    let run = |frames: u8| {
        let frames: Vec<(u32, Vec<u8>)> = (0..frames).map(|at| (IN, frame(1, at))).collect();
        let (stats, sent, _) = list::run(&switch, switch.app().unwrap(), PORTS, &frames, 8);
        assert!(stats.is_whole(), "{stats:?}");
        sent.len() as u64
    };
    // One packet a second: one or two pass, whatever the time between them.
    let first = run(20) / 2;
    assert!((1..20).contains(&first), "{first} pass the meter");
    let packets = |packets: u64| [packets, packets * 60];
    assert_eq!(counted(&switch, GROUPS), [first, first, first].map(packets));
    assert_eq!(counted(&switch, METERS), [20, 20 - first].map(packets));
    // Without buckets and with one, and with two bands that no packet is over.
    switch.group_mod(&group(Command::Modify, Vec::new())).unwrap();
    assert_eq!(counted(&switch, GROUPS), [first].map(packets));
    switch.group_mod(&group(Command::Modify, vec![bucket(0, 3, ANY, any)])).unwrap();
    switch.meter_mod(&meter(Command::Modify, vec![band(1_000_000), band(2_000_000)])).unwrap();
    assert_eq!(counted(&switch, GROUPS), [first, 0].map(packets));
    assert_eq!(counted(&switch, METERS), [20, 0, 0].map(packets));
    switch.meter_mod(&meter(Command::Modify, Vec::new())).unwrap();
    assert_eq!(run(5), 5);
    assert_eq!(counted(&switch, GROUPS), [first + 5, 5].map(packets));
    assert_eq!(counted(&switch, METERS), [25].map(packets));
    // One that is removed and added again begins anew.
    switch.meter_mod(&meter(Command::Delete, Vec::new())).unwrap();
    switch.meter_mod(&meter(Command::Add, Vec::new())).unwrap();
    switch.group_mod(&group(Command::Delete, Vec::new())).unwrap();
    add_group(&switch, 1, GroupKind::All, vec![bucket(0, 3, ANY, any)]);
    assert_eq!((counted(&switch, GROUPS), counted(&switch, METERS)), (vec![[0; 2]; 2], vec![[0; 2]]));
}

/// A port's counters are those of frames that went out of it: copies for which there was no buffer are told
/// as dropped.
#[test]
fn copies_without_a_buffer_are_dropped_and_not_sent() {
    const COPIES: usize = 64;
    const FRAMES: u8 = 128;
    let switch = switch();
    add_group(&switch, 1, GroupKind::All, vec![bucket(0, 2, ANY, number::group::ANY); COPIES]);
    add_flow(&switch);
    let frames: Vec<(u32, Vec<u8>)> = (0..FRAMES).map(|at| (IN, frame(1, at))).collect();
    let (_, sent, counters) = list::run(&switch, switch.app().unwrap(), PORTS, &frames, FRAMES.into());
    let lost = counters.iter().find(|(name, _)| *name == "lost_copies").unwrap().1;
    assert!(lost > 0 && lost + sent.len() as u64 == COPIES as u64 * u64::from(FRAMES), "{lost}");
    assert_eq!(transmitted(&switch, 2), [sent.len() as u64, lost]);
}
