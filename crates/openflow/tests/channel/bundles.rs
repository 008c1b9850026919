//! Bundles: all of their changes or none, in the messages of the ONF's extension 230.

use wirespeed_openflow::wire::{
    Action, Band, Bucket, Command, Field, FlowCommand, FlowMod, GroupKind, GroupMod, Instructions, Match,
    MeterMod, number,
};
use wirespeed_openflow::{Session, Switch, SwitchOptions};
use wirespeed_rng::Rng;

use super::messages::{HELLO, all_flows, ask, greeted, message, messages, multipart, output};

const OPEN: u8 = 0;
const CLOSE: u8 = 2;
const COMMIT: u8 = 4;
const DISCARD: u8 = 6;

/// A request about a bundle. Its number is in the header, too.
pub(crate) fn control(id: u8, step: u8, flags: u8) -> Vec<u8> {
    let mut asked = message(4, &[&experimenter(2300)[..], &[0, 0, 0, id, 0, step, 0, flags]].concat());
    asked[7] = 100 + id;
    asked
}

/// A message for a bundle.
pub(crate) fn add(id: u8, flags: u8, inner: &[u8]) -> Vec<u8> {
    let mut asked = message(4, &[&experimenter(2301)[..], &[0, 0, 0, id, 0, 0, 0, flags], inner].concat());
    asked[4..8].copy_from_slice(&inner[4..8]);
    asked
}

fn experimenter(kind: u16) -> [u8; 8] {
    let [high, low] = kind.to_be_bytes();
    [0x4f, 0x4e, 0x46, 0, 0, 0, high, low]
}

/// The code of version 1.4 of an error about bundles, or the type and the code of another one.
fn failure(answer: &(u8, Vec<u8>)) -> Result<u16, (u16, u16)> {
    let word = |at: usize| u16::from_be_bytes([answer.1[at], answer.1[at + 1]]);
    assert_eq!(answer.0, 1, "an error: {answer:?}");
    match word(0) {
        0xffff => {
            assert_eq!(answer.1[4..8], [0x4f, 0x4e, 0x46, 0]);
            Ok(word(2) - 2300)
        }
        kind => Err((kind, word(2))),
    }
}

/// What a bundle's commit leads to: `None` if it is made, else the failures that are told.
fn commit(session: &mut Session, id: u8, inner: &[Vec<u8>]) -> Option<Vec<Result<u16, (u16, u16)>>> {
    let mut asked = control(id, OPEN, 3);
    inner.iter().for_each(|inner| asked.extend(add(id, 3, inner)));
    asked.extend(control(id, COMMIT, 3));
    let answers = messages(&session.receive(&asked).unwrap());
    let (errors, others): (Vec<_>, Vec<_>) = answers.iter().partition(|(kind, _)| *kind == 1);
    let replies: Vec<u8> = others.iter().filter(|(kind, _)| *kind == 4).map(|(_, body)| body[13]).collect();
    let failures: Vec<_> = errors.into_iter().map(failure).collect();
    assert_eq!(replies, if failures.is_empty() { vec![OPEN + 1, COMMIT + 1] } else { vec![OPEN + 1] });
    (!failures.is_empty()).then_some(failures)
}

/// All that a switch tells of its flows, groups, meters and ports, without times.
fn told(session: &mut Session) -> Vec<Vec<u8>> {
    let word = |at: usize| move |rest: &[u8]| usize::from(u16::from_be_bytes([rest[at], rest[at + 1]]));
    let mut told = Vec::new();
    let mut tell = |kind: u16, body: &[u8], time: std::ops::Range<usize>, len: &dyn Fn(&[u8]) -> usize| {
        for (_, body) in messages(&session.receive(&multipart(kind, body)).unwrap()) {
            let mut rest = &body[8..];
            while !rest.is_empty() {
                let (element, after) = rest.split_at(len(rest));
                let mut element = element.to_vec();
                element[time.clone()].fill(0);
                told.push(element);
                rest = after;
            }
        }
    };
    tell(1, &all_flows(0xff), 4..12, &word(0));
    tell(6, &[0xff, 0xff, 0xff, 0xfc, 0, 0, 0, 0], 32..40, &word(0));
    tell(7, &[], 0..0, &word(0));
    tell(9, &[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0], 32..40, &word(4));
    tell(10, &[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0], 0..0, &word(0));
    tell(13, &[], 0..0, &|_| 64);
    told.sort();
    told
}

fn flow(priority: u16, to: u32) -> Vec<u8> {
    FlowMod::add(0, priority, Match::all().with(Field::InPort, 1), output(to)).to_message(priority.into())
}

#[test]
fn a_bundle_goes_from_open_to_commit() {
    let (switch, mut session) = greeted();
    let reply = |id: u8, step: u8, flags: u8| {
        let mut wanted = control(id, step + 1, flags);
        wanted[7] = 100 + id;
        (4, wanted[8..].to_vec())
    };
    assert_eq!(ask(&mut session, &control(7, OPEN, 3)), reply(7, OPEN, 3));
    for priority in 1..=3 {
        assert!(session.receive(&add(7, 3, &flow(priority, 2))).unwrap().is_empty());
    }
    assert_eq!(ask(&mut session, &control(7, CLOSE, 3)), reply(7, CLOSE, 3));
    assert_eq!(switch.flows(), 0, "nothing is made before it is asked for");
    assert_eq!(ask(&mut session, &control(7, COMMIT, 3)), reply(7, COMMIT, 3));
    assert_eq!(switch.flows(), 3);
    // One that is not opened, nor closed; one that is discarded; flags of any kind.
    session.receive(&add(8, 0, &flow(4, 2))).unwrap();
    assert_eq!(ask(&mut session, &control(8, COMMIT, 0)), reply(8, COMMIT, 0));
    session.receive(&add(8, 1, &flow(5, 2))).unwrap();
    assert_eq!(ask(&mut session, &control(8, DISCARD, 1)), reply(8, DISCARD, 1));
    assert_eq!(switch.flows(), 4);
    // Messages of other kinds: a packet goes behind the last change.
    let mut packet = vec![0xff, 0xff, 0xff, 0xff, 0, 0, 0, 1, 0, 16, 0, 0, 0, 0, 0, 0];
    packet.extend([0, 0, 0, 16, 0xff, 0xff, 0xff, 0xf9, 0xff, 0xff, 0, 0, 0, 0, 0, 0]);
    packet.extend([7; 60]);
    let port_down = |last: u8| {
        let mut body = vec![0, 0, 0, 2, 0, 0, 0, 0, 2, 0, 0, 1, 0, last, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1];
        body.resize(32, 0);
        message(16, &body)
    };
    let all = [message(13, &packet), flow(9, number::port::CONTROLLER), port_down(2), message(17, &[0; 8])];
    let asked = [&all.map(|inner| add(9, 3, &inner)).concat()[..], &control(9, COMMIT, 3)].concat();
    let kinds = messages(&session.receive(&asked).unwrap()).into_iter().map(|(kind, _)| kind);
    assert_eq!(kinds.collect::<Vec<_>>(), [12, 4, 10], "the port, the answer, and the packet");
    assert_eq!(commit(&mut session, 9, &[flow(10, 2), port_down(9)]), Some(vec![Err((7, 1)), Ok(13)]));
}

#[test]
fn failures_have_the_codes_of_the_extension() {
    let (switch, mut session) = greeted();
    let mut fails = |asked: &[u8]| failure(&ask(&mut session, asked));
    // No such bundle; no such step; no such flags; no such message of the ONF, and of somebody else.
    for step in [CLOSE, COMMIT, DISCARD] {
        assert_eq!(fails(&control(1, step, 3)), Ok(2));
    }
    assert_eq!(fails(&control(1, 9, 3)), Ok(6));
    assert_eq!(fails(&control(1, OPEN, 4)), Ok(7));
    assert_eq!(fails(&add(1, 4, &flow(1, 2))), Ok(7));
    let mut other = control(1, OPEN, 3);
    other[15] = 0;
    assert_eq!(fails(&other), Err((1, 4)));
    other[8] = 0;
    assert_eq!(fails(&other), Err((1, 3)));
    // Opened twice; closed twice; added to when closed; other flags, when added, closed and committed.
    let (session, flow) = (&mut session, flow(1, 2));
    for (steps, code) in [
        (vec![control(1, OPEN, 3)], 2),
        (vec![control(1, CLOSE, 3), control(1, CLOSE, 3)], 4),
        (vec![control(1, CLOSE, 3), add(1, 3, &flow)], 4),
        (vec![add(1, 1, &flow)], 7),
        (vec![control(1, CLOSE, 1)], 7),
        (vec![control(1, COMMIT, 1)], 7),
    ] {
        ask(session, &control(1, OPEN, 3));
        session.receive(&add(1, 3, &flow)).unwrap();
        let answers = messages(&session.receive(&steps.concat()).unwrap());
        assert_eq!(answers.last().map(failure), Some(Ok(code)), "{steps:?}");
        // The bundle is gone, and what comes later makes no other one of its number.
        let is_committed = steps[0][23 - 2] == COMMIT;
        if !is_committed {
            assert_eq!(failure(&ask(session, &add(1, 3, &flow))), Ok(2));
        }
        assert_eq!(failure(&ask(session, &control(1, COMMIT, 3))), Ok(2));
    }
    // A message that does not hold by itself; one that only the commit finds out.
    let mut wrong = flow.clone();
    wrong[25] = 9;
    assert_eq!(commit(session, 2, &[flow.clone(), wrong]), Some(vec![Err((5, 6)), Ok(13)]));
    let to_group = FlowMod::add(0, 1, Match::all(), Instructions::default()).to_message(9);
    let full = FlowMod::add(254, 1, Match::all(), Instructions::default()).to_message(0x0a0b);
    let answers = {
        let asked = [add(3, 3, &to_group), add(3, 3, &full), add(3, 3, &flow), control(3, COMMIT, 3)];
        session.receive(&asked.concat()).unwrap()
    };
    assert_eq!(answers[4..8], [0, 0, 0x0a, 0x0b], "the number of the message that fails");
    let answers = messages(&answers);
    assert_eq!(answers.iter().map(failure).collect::<Vec<_>>(), [Err((5, 2)), Ok(13)]);
    assert_eq!((&answers[0].1[4..], switch.flows()), (&full[..64.min(full.len())], 0));
    // A slave changes nothing.
    ask(session, &message(24, &[0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]));
    for asked in [control(1, OPEN, 3), add(1, 3, &flow)] {
        assert_eq!(failure(&ask(session, &asked)), Err((1, 10)));
    }
}

/// A change of any kind, that may fail.
fn any_change(rng: &mut Rng) -> Vec<u8> {
    let xid = rng.bits() as u32;
    let number = 1 + rng.below(4) as u32;
    match rng.below(10) {
        0..6 => {
            let mut matched = Match::all();
            if rng.chance(0.8) {
                matched = matched.with(Field::InPort, 1 + u128::from(rng.below(3)));
            }
            if rng.chance(0.3) {
                matched = matched.with_masked(Field::EthDst, 0, 0xff << (8 * rng.below(3)));
            }
            let apply = match rng.below(3) {
                0 => Action::Group(number),
                _ => Action::Output { port: 1 + rng.below(4) as u32, max_len: 0 },
            };
            let meter = rng.chance(0.2).then_some(number);
            let instructions =
                Instructions { apply: vec![apply], has_apply: true, meter, ..Instructions::default() };
            let mut asked = FlowMod::add(rng.below(2) as u8, rng.below(4) as u16, matched, instructions);
            asked.command = match rng.below(12) {
                0 => FlowCommand::Delete,
                1 => FlowCommand::DeleteStrict,
                2 => FlowCommand::Modify,
                3 => FlowCommand::ModifyStrict,
                _ => FlowCommand::Add,
            };
            asked.cookie = rng.bits();
            asked.flags = [0, FlowMod::SEND_REMOVED, FlowMod::CHECK_OVERLAP][rng.index(3)];
            asked.hard = 100 * rng.below(2) as u16;
            asked.to_message(xid)
        }
        6..8 => {
            let kind = if rng.chance(0.5) { GroupKind::All } else { GroupKind::Select };
            let actions = match rng.below(3) {
                0 => vec![Action::Group(1 + rng.below(4) as u32)],
                _ => vec![Action::Output { port: 1 + rng.below(4) as u32, max_len: 0 }],
            };
            let bucket = Bucket { weight: 1, watch_port: u32::MAX, watch_group: u32::MAX, actions };
            let command = [Command::Add, Command::Modify, Command::Delete][rng.index(3)];
            let number = if rng.chance(0.05) { number::group::ALL } else { number };
            GroupMod { command, kind, number, buckets: vec![bucket] }.to_message(xid)
        }
        _ => {
            let bands = vec![Band { rate: 1 + rng.below(9) as u32, burst: 0, remark: None }];
            let command = [Command::Add, Command::Modify, Command::Delete][rng.index(3)];
            let number = if rng.chance(0.05) { number::meter::ALL } else { number };
            MeterMod { command, flags: 1, number, bands }.to_message(xid)
        }
    }
}

/// Changes in bundles against the same ones without, if all of them hold; else against no change.
#[test]
fn bundles_are_made_whole_or_not_at_all() {
    let (mut made, mut refused) = (0, 0);
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let options = SwitchOptions { most_flows: 12, ..SwitchOptions::with_ports(["a", "b", "c", "d"]) };
        let (mut bundled, mut plain) = {
            let new = || Session::new(&Switch::new(options.clone()).unwrap());
            (new(), new())
        };
        for session in [&mut bundled, &mut plain] {
            session.receive(&HELLO).unwrap();
        }
        for _ in 0..40 {
            let changes: Vec<Vec<u8>> = (0..1 + rng.below(5)).map(|_| any_change(&mut rng)).collect();
            let before = told(&mut bundled);
            match commit(&mut bundled, 1, &changes) {
                None => {
                    let answers = messages(&plain.receive(&changes.concat()).unwrap());
                    assert!(answers.iter().all(|(kind, _)| *kind == 11), "{answers:?}");
                    made += 1;
                }
                Some(failures) => {
                    assert_eq!(failures.last(), Some(&Ok(13)));
                    assert_eq!(told(&mut bundled), before);
                    refused += 1;
                }
            }
            assert_eq!(told(&mut bundled), told(&mut plain));
        }
    }
    assert!(made > 300 && refused > 300, "{made} made, {refused} refused");
}

#[test]
fn flows_that_a_bundle_did_not_end_keep_their_time() {
    let (switch, mut session) = greeted();
    let timed = |priority: u16| {
        let mut asked = FlowMod::add(0, priority, Match::all(), output(2));
        (asked.hard, asked.flags) = (1, FlowMod::SEND_REMOVED);
        asked
    };
    [1, 2].iter().for_each(|&priority| switch.flow_mod(&timed(priority)).unwrap());
    let replaced = FlowMod::add(0, 1, Match::all(), output(3)).to_message(1);
    let deleted = FlowMod { command: FlowCommand::DeleteStrict, ..timed(2) }.to_message(2);
    let wrong = FlowMod::add(0, 9, Match::all(), output(9)).to_message(3);
    let changes = [replaced, deleted, timed(3).to_message(4), wrong];
    assert_eq!(commit(&mut session, 1, &changes), Some(vec![Err((2, 4)), Ok(13)]));
    // One that is made has timers.
    assert_eq!(commit(&mut session, 1, &changes[2..3]), None);
    assert_eq!(switch.flows(), 3);
    std::thread::sleep(std::time::Duration::from_millis(1050));
    switch.keep_time();
    let gone = messages(&session.receive(&[]).unwrap());
    let mut gone: Vec<_> = gone.iter().map(|(kind, body)| (*kind, body[9], body[10])).collect();
    gone.sort_unstable();
    assert_eq!((gone, switch.flows()), (vec![(11, 1, 1), (11, 2, 1), (11, 3, 1)], 0));
}
