//! Requests and their answers, without a connection.

use wirespeed_openflow::wire::{Action, Failure, Field, FlowCommand, FlowMod, Instructions, Match, number};
use wirespeed_openflow::{Session, Switch, SwitchOptions};
use wirespeed_rng::Rng;

use super::messages::{HELLO, all_flows, ask, greeted, message, messages, multipart, output, refused};

fn barrier(session: &mut Session, before: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let mut answers = messages(&session.receive(&[before, &message(20, &[])].concat()).unwrap());
    assert_eq!(answers.pop().unwrap().0, 21, "the barrier's reply comes last");
    answers
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

#[test]
fn a_switch_tells_what_it_is() {
    let (_, mut session) = greeted();
    let (kind, features) = ask(&mut session, &message(5, &[]));
    assert_eq!((kind, features.len(), features[7], features[12]), (6, 24, 1, 254));
    assert_eq!(ask(&mut session, &message(2, b"anyone?")), (3, b"anyone?".to_vec()));
    assert_eq!(ask(&mut session, &message(7, &[])), (8, vec![0, 0, 0, 128]));
    assert!(barrier(&mut session, &message(9, &[0, 0, 0xff, 0xff])).is_empty());
    assert_eq!(ask(&mut session, &message(7, &[])), (8, vec![0, 0, 0xff, 0xff]));
    let ports = ask(&mut session, &multipart(13, &[])).1;
    assert_eq!((ports.len(), &ports[8 + 64 + 16..][..2]), (8 + 4 * 64, &b"b\0"[..]));
    assert_eq!(ask(&mut session, &multipart(0, &[])).1.len(), 8 + 1056);
    assert_eq!(ask(&mut session, &multipart(3, &[])).1.len(), 8 + 254 * 24);
    assert_eq!(ask(&mut session, &multipart(4, &[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0])).1.len(), 8 + 4 * 112);
    assert_eq!(ask(&mut session, &multipart(5, &[0xff; 8])).1.len(), 8);
    assert_eq!(ask(&mut session, &multipart(8, &[])).1.len(), 8 + 40);
    assert_eq!(ask(&mut session, &multipart(11, &[])).1.len(), 8 + 16);
    assert_eq!(ask(&mut session, &message(22, &[0, 0, 0, 1, 0, 0, 0, 0])).0, 23);
    // The features of tables come in parts, and only the last one says that it is.
    let parts = messages(&session.receive(&multipart(12, &[])).unwrap());
    assert!(parts.len() > 1);
    let more: Vec<u16> = parts.iter().map(|(_, body)| u16_at(body, 2)).collect();
    assert!(more[..more.len() - 1].iter().all(|&more| more == 1) && more.last() == Some(&0));
    let tables: usize = parts
        .iter()
        .map(|(_, body)| {
            let (mut at, mut tables) = (8, 0);
            while at < body.len() {
                at += usize::from(u16_at(body, at));
                tables += 1;
            }
            assert_eq!(at, body.len());
            tables
        })
        .sum();
    assert_eq!(tables, 254);
}

#[test]
fn flows_are_told_as_they_were_added() {
    let (switch, mut session) = greeted();
    let matched = Match::all()
        .with(Field::EthType, 0x86dd)
        .with(Field::IpProto, 58)
        .with(Field::Icmpv6Type, 135)
        .with(Field::Ipv6NdSll, 0x0200_0000_0001)
        .with_masked(Field::Ipv6Src, 0x2001 << 112, 0xffff << 112);
    let mut flow = FlowMod::add(3, 77, matched, output(2));
    flow.instructions.goto = Some(9);
    flow.instructions.metadata = Some((5, 7));
    (flow.cookie, flow.idle, flow.flags) = (0xabcd, 30, FlowMod::SEND_REMOVED);
    assert!(barrier(&mut session, &flow.to_message(1)).is_empty());
    let told = ask(&mut session, &multipart(1, &all_flows(0xff))).1;
    let entry = &told[8..];
    assert_eq!((usize::from(u16_at(entry, 0)), entry[2], u16_at(entry, 12)), (entry.len(), 3, 77));
    // The match and the instructions are the bytes of the message.
    assert_eq!(entry[48..], flow.to_message(1)[48..]);
    // Aggregated, and by what they lead to.
    let aggregate = ask(&mut session, &multipart(2, &all_flows(3))).1;
    assert_eq!(aggregate[24..28], [0, 0, 0, 1]);
    let mut by_port = all_flows(3);
    by_port[4..8].copy_from_slice(&[0, 0, 0, 4]);
    assert_eq!(ask(&mut session, &multipart(1, &by_port)).1.len(), 8);
    // Modified, deleted by cookie, and told to be gone.
    flow.command = FlowCommand::ModifyStrict;
    flow.instructions = output(3);
    session.receive(&flow.to_message(1)).unwrap();
    let told = ask(&mut session, &multipart(1, &all_flows(0xff))).1;
    assert_eq!(told[8 + 48..], flow.to_message(1)[48..]);
    flow.command = FlowCommand::Delete;
    (flow.cookie, flow.cookie_mask, flow.matched) = (0, 1, Match::all());
    flow.instructions = Instructions::default();
    assert!(barrier(&mut session, &flow.to_message(1)).is_empty(), "no bit of this cookie");
    (flow.cookie, flow.cookie_mask) = (0xcd, 0xff);
    let gone = messages(&session.receive(&flow.to_message(1)).unwrap());
    assert_eq!((gone.len(), gone[0].0, gone[0].1[10], gone[0].1[11]), (1, 11, 2, 3));
    assert_eq!(switch.flows(), 0);
}

#[test]
fn errors_have_the_types_of_the_specification() {
    let (switch, mut session) = greeted();
    let flow = |matched, instructions| FlowMod::add(0, 1, matched, instructions).to_message(1);
    let tcp = Match::all().with(Field::TcpDst, 80);
    assert_eq!(refused(&mut session, &flow(tcp, output(1))), (4, 9));
    assert_eq!(refused(&mut session, &flow(Match::all(), output(9))), (2, 4));
    let goto = Instructions { goto: Some(0), ..Instructions::default() };
    assert_eq!(refused(&mut session, &flow(Match::all(), goto)), (3, 2));
    let meter = Instructions { meter: Some(5), ..Instructions::default() };
    assert_eq!(refused(&mut session, &flow(Match::all(), meter)), (12, 3));
    let group = Instructions { apply: vec![Action::Group(5)], has_apply: true, ..Instructions::default() };
    assert_eq!(refused(&mut session, &flow(Match::all(), group)), (2, 9));
    let queue = Instructions { apply: vec![Action::SetQueue(3)], has_apply: true, ..output(1) };
    assert_eq!(refused(&mut session, &flow(Match::all(), queue)), (2, 8));
    let queue = Instructions { write: vec![Action::SetQueue(3)], has_write: true, ..output(1) };
    assert_eq!(refused(&mut session, &flow(Match::all(), queue)), (2, 8));
    let set = Action::SetField(Field::TcpDst, 80);
    let set = Instructions { apply: vec![set], has_apply: true, ..Instructions::default() };
    assert_eq!(refused(&mut session, &flow(Match::all(), set)), (2, 10));
    let mut overlap = FlowMod::add(0, 1, Match::all(), output(1));
    overlap.flags = FlowMod::CHECK_OVERLAP;
    session
        .receive(&FlowMod::add(0, 1, Match::all().with(Field::InPort, 1), output(1)).to_message(1))
        .unwrap();
    assert_eq!(refused(&mut session, &overlap.to_message(1)), (5, 3));
    let mut table = FlowMod::add(255, 1, Match::all(), output(1));
    assert_eq!(refused(&mut session, &table.to_message(1)), (5, 2));
    (table.table, table.flags) = (0, 0x20);
    assert_eq!(refused(&mut session, &table.to_message(1)), (5, 7));
    assert_eq!(refused(&mut session, &message(99, &[])), (1, 1));
    assert_eq!(refused(&mut session, &message(4, &[0; 8])), (1, 3));
    assert_eq!(refused(&mut session, &multipart(77, &[])), (1, 2));
    assert_eq!(refused(&mut session, &message(14, &[0; 3])), (1, 6));
    assert_eq!(
        refused(
            &mut session,
            &message(
                16,
                &[
                    0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                    0, 0
                ]
            )
        ),
        (7, 0)
    );
    assert_eq!(refused(&mut session, &message(17, &[254, 0, 0, 0, 0, 0, 0, 0])), (8, 0));
    assert_eq!(refused(&mut session, &message(9, &[0, 1, 0, 0])), (10, 0));
    // A bit of the value outside of the mask, and a field twice.
    let oxm = |fields: &[u8]| {
        let mut body =
            FlowMod::add(0, 1, Match::all(), Instructions::default()).to_message(1)[8..48].to_vec();
        body.extend([0, 1]);
        body.extend((4 + fields.len() as u16).to_be_bytes());
        body.extend(fields);
        body.resize(body.len().next_multiple_of(8), 0);
        message(14, &body)
    };
    assert_eq!(
        refused(&mut session, &oxm(&[0x80, 0, 0x05, 16, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 1])),
        (4, 5)
    );
    assert_eq!(refused(&mut session, &oxm(&[0x80, 0, 0, 4, 0, 0, 0, 1, 0x80, 0, 0, 4, 0, 0, 0, 1])), (4, 10));
    assert_eq!(refused(&mut session, &oxm(&[0x80, 0, 0, 3, 0, 0, 1])), (4, 1));
    assert_eq!(refused(&mut session, &oxm(&[0x80, 0, 90, 4, 0, 0, 0, 1])), (4, 6));
    assert_eq!(switch.flows(), 1);
}

#[test]
fn groups_and_meters_are_told_as_they_were_added() {
    let (_, mut session) = greeted();
    let bucket = |port: u32| {
        let mut bucket = vec![0, 32, 0, 1];
        bucket.extend([0xff; 8]);
        bucket.extend([0; 4]);
        bucket.extend([0, 0, 0, 16]);
        bucket.extend(port.to_be_bytes());
        bucket.extend([0xff, 0xff, 0, 0, 0, 0, 0, 0]);
        bucket
    };
    let group = |command: u8, number: u32, kind: u8, buckets: &[Vec<u8>]| {
        let mut body = vec![0, command, kind, 0];
        body.extend(number.to_be_bytes());
        body.extend(buckets.concat());
        message(15, &body)
    };
    let buckets = [bucket(1), bucket(2)];
    assert!(barrier(&mut session, &group(0, 7, 1, &buckets)).is_empty());
    assert_eq!(refused(&mut session, &group(0, 7, 1, &buckets)), (6, 0));
    assert_eq!(refused(&mut session, &group(1, 8, 1, &buckets)), (6, 8));
    assert_eq!(refused(&mut session, &group(0, 8, 9, &buckets)), (6, 10));
    assert_eq!(refused(&mut session, &group(0, 8, 2, &buckets)), (6, 12));
    assert_eq!(refused(&mut session, &group(0, 8, 3, &buckets)), (6, 13));
    let told = ask(&mut session, &multipart(7, &[])).1;
    assert_eq!(told[16..], buckets.concat());
    assert_eq!(ask(&mut session, &multipart(6, &[0, 0, 0, 7, 0, 0, 0, 0])).1.len(), 8 + 40 + 2 * 16);
    // A flow that uses the group goes with it.
    let uses = Instructions { apply: vec![Action::Group(7)], has_apply: true, ..Instructions::default() };
    let mut flow = FlowMod::add(0, 1, Match::all(), uses);
    flow.flags = FlowMod::SEND_REMOVED;
    session.receive(&flow.to_message(1)).unwrap();
    let gone = messages(&session.receive(&group(2, number::group::ALL, 0, &[])).unwrap());
    assert_eq!((gone.len(), gone[0].0, gone[0].1[10]), (1, 11, 3));
    // A meter with a band that drops.
    let band = [0, 1, 0, 16, 0, 0, 3, 232, 0, 0, 0, 0, 0, 0, 0, 0];
    let meter =
        |command: u8, number: u8| message(29, &[&[0, command, 0, 1, 0, 0, 0, number][..], &band].concat());
    assert!(barrier(&mut session, &meter(0, 3)).is_empty());
    assert_eq!(refused(&mut session, &meter(0, 3)), (12, 1));
    assert_eq!(refused(&mut session, &meter(1, 4)), (12, 3));
    assert_eq!(refused(&mut session, &meter(0, 0)), (12, 2));
    let told = ask(&mut session, &multipart(10, &[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0])).1;
    assert_eq!(told[16..], band);
    assert_eq!(ask(&mut session, &multipart(9, &[0, 0, 0, 3, 0, 0, 0, 0])).1.len(), 8 + 40 + 16);
    assert_eq!(refused(&mut session, &multipart(9, &[0, 0, 0, 9, 0, 0, 0, 0])), (12, 3));
}

#[test]
fn the_memory_of_actions_has_a_bound() {
    use wirespeed_openflow::wire::{Bucket, Command, GroupKind, GroupMod};
    let long = |count| Instructions {
        apply: vec![Action::DecNwTtl; count],
        has_apply: true,
        ..Instructions::default()
    };
    let most_bytes = 10 * 100 * size_of::<Action>();
    let options = SwitchOptions { most_bytes, ..SwitchOptions::with_ports(["a"]) };
    let switch = Switch::new(options).unwrap();
    let flow = |priority, count| FlowMod::add(0, priority, Match::all(), long(count));
    // Equal ones count, too.
    (1..=10).for_each(|priority| switch.flow_mod(&flow(priority, 100)).unwrap());
    assert_eq!(switch.flow_mod(&flow(11, 1)), Err(Failure::FLOW_TABLE_FULL));
    switch.flow_mod(&flow(11, 0)).unwrap();
    // In the place of another one, up to the bound, and below it.
    assert_eq!(switch.flow_mod(&flow(1, 101)), Err(Failure::FLOW_TABLE_FULL));
    [flow(1, 100), flow(1, 50)].iter().for_each(|flow| switch.flow_mod(flow).unwrap());
    let modify = |count| FlowMod { command: FlowCommand::Modify, ..flow(0, count) };
    assert_eq!(switch.flow_mod(&modify(91)), Err(Failure::FLOW_TABLE_FULL));
    switch.flow_mod(&modify(90)).unwrap();
    assert_eq!(switch.flow_mod(&flow(1, 101)), Err(Failure::FLOW_TABLE_FULL));
    // Groups share the bound, and what goes leaves its place.
    let group = |command, count| {
        let actions = vec![Action::DecNwTtl; count];
        let bucket = Bucket { weight: 0, watch_port: u32::MAX, watch_group: u32::MAX, actions };
        GroupMod { command, kind: GroupKind::All, number: 1, buckets: vec![bucket] }
    };
    assert_eq!(switch.group_mod(&group(Command::Add, 400)), Err(Failure::OUT_OF_BUCKETS));
    switch.flow_mod(&FlowMod { command: FlowCommand::Delete, ..flow(0, 0) }).unwrap();
    switch.group_mod(&group(Command::Add, 400)).unwrap();
    assert_eq!(switch.group_mod(&group(Command::Modify, 600)), Err(Failure::OUT_OF_BUCKETS));
    assert_eq!(switch.flow_mod(&flow(1, 200)), Err(Failure::FLOW_TABLE_FULL));
    for number in [1, number::group::ALL] {
        switch.group_mod(&GroupMod { number, ..group(Command::Delete, 0) }).unwrap();
        (1..=10).for_each(|priority| switch.flow_mod(&flow(priority, 100)).unwrap());
        switch.flow_mod(&FlowMod { command: FlowCommand::Delete, ..flow(0, 0) }).unwrap();
        switch.group_mod(&group(Command::Add, 400)).unwrap();
    }
}

#[test]
fn groups_and_meters_tell_how_many_flows_use_them() {
    use wirespeed_openflow::wire::{Band, Command, GroupKind, GroupMod, MeterMod};
    let (switch, mut session) = greeted();
    let group = |command, number| GroupMod { command, kind: GroupKind::All, number, buckets: Vec::new() };
    [7, 8].iter().for_each(|&number| switch.group_mod(&group(Command::Add, number)).unwrap());
    let bands = vec![Band { rate: 1, burst: 0, remark: None }];
    switch.meter_mod(&MeterMod { command: Command::Add, flags: 1, number: 3, bands }).unwrap();
    let mut users = || {
        let mut count = |kind, number: u8, at: usize| {
            let told = ask(&mut session, &multipart(kind, &[0, 0, 0, number, 0, 0, 0, 0])).1;
            u32::from_be_bytes(*told[8 + at..].first_chunk().unwrap())
        };
        [count(6, 7, 8), count(6, 8, 8), count(9, 3, 12)]
    };
    let uses = |group: u32, meter| {
        // One flow, however often it names the group.
        let apply = vec![Action::Group(group); 2];
        Instructions { apply, has_apply: true, meter, ..Instructions::default() }
    };
    let add = |priority, instructions| FlowMod::add(0, priority, Match::all(), instructions);
    (1..=5).for_each(|priority| switch.flow_mod(&add(priority, uses(7, Some(3)))).unwrap());
    assert_eq!(users(), [5, 0, 5]);
    // In the place of another flow, and of the flow itself.
    switch.flow_mod(&add(1, output(2))).unwrap();
    switch.flow_mod(&add(2, uses(7, Some(3)))).unwrap();
    assert_eq!(users(), [4, 0, 4]);
    switch.flow_mod(&FlowMod { command: FlowCommand::Modify, ..add(0, uses(8, None)) }).unwrap();
    assert_eq!(users(), [0, 5, 0]);
    switch.flow_mod(&FlowMod { command: FlowCommand::DeleteStrict, ..add(2, uses(8, None)) }).unwrap();
    switch.flow_mod(&FlowMod { hard: 1, ..add(9, uses(8, Some(3))) }).unwrap();
    assert_eq!(users(), [0, 5, 1]);
    // A flow whose time is over, and flows that go with their group.
    std::thread::sleep(std::time::Duration::from_millis(1050));
    switch.keep_time();
    assert_eq!(users(), [0, 4, 0]);
    switch.group_mod(&group(Command::Delete, 8)).unwrap();
    switch.group_mod(&group(Command::Add, 8)).unwrap();
    assert_eq!((users(), switch.flows()), ([0, 0, 0], 0));
}

#[test]
fn roles_and_what_is_told_unasked() {
    let (switch, mut session) = greeted();
    let role =
        |role: u8, generation: u8| message(24, &[0, 0, 0, role, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, generation]);
    assert_eq!(ask(&mut session, &role(2, 5)).1[3], 2);
    assert_eq!(refused(&mut session, &role(2, 4)), (11, 0));
    assert_eq!(refused(&mut session, &role(9, 5)), (11, 2));
    assert_eq!(ask(&mut session, &role(3, 6)).1[3], 3);
    // A slave changes nothing, and is told of ports alone.
    let flow = FlowMod::add(0, 1, Match::all(), output(1)).to_message(1);
    assert_eq!(refused(&mut session, &flow), (1, 10));
    switch.set_link(2, false);
    let told = messages(&session.receive(&[]).unwrap());
    assert_eq!((told.len(), told[0].0, told[0].1[0]), (1, 12, 2));
    assert_eq!(ask(&mut session, &role(1, 0)).1[3], 1);
    let masks = ask(&mut session, &message(26, &[])).1;
    assert_eq!(masks, [0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 7, 0, 0, 0, 15, 0, 0, 0, 0]);
    session.receive(&message(28, &[0; 24])).unwrap();
    switch.set_link(2, true);
    assert!(session.receive(&[]).unwrap().is_empty(), "nothing is wanted");
}

#[test]
fn a_packet_out_to_the_tables_comes_back() {
    let (_, mut session) = greeted();
    session
        .receive(&FlowMod::add(0, 0, Match::all(), output(number::port::CONTROLLER)).to_message(1))
        .unwrap();
    let mut body = vec![0xff, 0xff, 0xff, 0xff, 0, 0, 0, 2, 0, 16, 0, 0, 0, 0, 0, 0];
    body.extend([0, 0, 0, 16, 0xff, 0xff, 0xff, 0xf9, 0xff, 0xff, 0, 0, 0, 0, 0, 0]);
    body.extend([7; 60]);
    let (kind, told) = ask(&mut session, &message(13, &body));
    // No buffer, the whole packet, no match in table 0, and the port.
    assert_eq!((kind, &told[..8]), (10, &[0xff, 0xff, 0xff, 0xff, 0, 60, 0, 0][..]));
    assert_eq!(told[16..28], [0, 1, 0, 12, 0x80, 0, 0, 4, 0, 0, 0, 2]);
    assert_eq!(told[34..], [7; 60]);
    body[..4].copy_from_slice(&[0, 0, 0, 1]);
    assert_eq!(refused(&mut session, &message(13, &body)), (1, 8));
}

#[test]
fn timeouts_end_flows() {
    let (switch, mut session) = greeted();
    let mut flow = FlowMod::add(0, 1, Match::all(), output(1));
    (flow.hard, flow.flags) = (1, FlowMod::SEND_REMOVED);
    session.receive(&flow.to_message(1)).unwrap();
    (flow.hard, flow.idle, flow.priority) = (0, 1, 2);
    session.receive(&flow.to_message(1)).unwrap();
    let until = std::time::Instant::now() + std::time::Duration::from_secs(30);
    let mut gone = Vec::new();
    // The switch keeps no time by itself here.
    let keeper = switch.clone();
    while gone.len() < 2 && std::time::Instant::now() < until {
        std::thread::sleep(std::time::Duration::from_millis(50));
        keeper.keep_time();
        gone.extend(messages(&session.receive(&[]).unwrap()));
    }
    let mut reasons: Vec<(u8, u8, u8)> = gone.iter().map(|(kind, body)| (*kind, body[9], body[10])).collect();
    reasons.sort_unstable();
    // The priority 1 by its hard timeout (1), the priority 2 by its idle timeout (0).
    assert_eq!(reasons, [(11, 1, 1), (11, 2, 0)]);
    assert_eq!(switch.flows(), 0);
}

#[test]
fn any_cut_of_the_bytes_gives_the_same_answers() {
    let mut asked = HELLO.to_vec();
    asked.extend(FlowMod::add(0, 5, Match::all().with(Field::InPort, 2), output(1)).to_message(9));
    asked.extend(multipart(1, &all_flows(0xff)));
    asked.extend(message(2, &[3; 300]));
    asked.extend(message(20, &[]));
    let answers = |cuts: &[usize]| {
        let (_, mut session) = (0, Session::new(&greeted().0));
        let (mut from, mut all) = (0, Vec::new());
        for &to in cuts.iter().chain([&asked.len()]) {
            all.extend(session.receive(&asked[from..to]).unwrap());
            from = to;
        }
        // The time that the flow has been there differs.
        messages(&all).into_iter().map(|(kind, body)| (kind, body.len())).collect::<Vec<_>>()
    };
    let whole = answers(&[]);
    assert_eq!(whole.len(), 4);
    for cut in 1..asked.len() {
        assert_eq!(answers(&[cut]), whole, "cut at {cut}");
    }
    let each: Vec<usize> = (1..asked.len()).collect();
    assert_eq!(answers(&each), whole);
}

#[test]
fn messages_that_come_together_are_handled_one_after_the_other() {
    let (switch, mut session) = greeted();
    // Two masks by turns.
    let flow = |number: u32| {
        let (field, value) = if number.is_multiple_of(2) { (Field::InPort, 1) } else { (Field::EthSrc, 7) };
        FlowMod::add(0, 10 + number as u16, Match::all().with(field, value), output(1))
    };
    let mut asked = Vec::new();
    (0..30).for_each(|number| asked.extend(flow(number).to_message(number)));
    asked.extend(FlowMod::add(255, 1, Match::all(), output(1)).to_message(30));
    asked.extend(message(2, &[3; 5]));
    for number in [4, 4, 7] {
        asked.extend(FlowMod { command: FlowCommand::DeleteStrict, ..flow(number) }.to_message(31));
    }
    asked.extend(flow(7).to_message(32));
    asked.extend(message(20, &[]));
    // A length that lies ends the session: what follows is not read as messages.
    asked.extend([4, 2, 0, 7, 0, 0, 0, 1]);
    asked.extend(flow(50).to_message(33));
    let kinds: Vec<u8> =
        messages(&session.receive(&asked).unwrap()).into_iter().map(|(kind, _)| kind).collect();
    assert_eq!((kinds, switch.flows()), (vec![1, 3, 21, 1], 29));
    assert_eq!(session.receive(&message(20, &[])), None);
}

#[test]
fn lies_about_lengths_end_in_errors() {
    let mut rng = Rng::new(3);
    let seeds = [
        FlowMod::add(0, 5, Match::all().with(Field::InPort, 2).with(Field::EthType, 0x800), output(1))
            .to_message(9),
        multipart(1, &all_flows(0xff)),
        message(
            15,
            &[
                0, 0, 0, 0, 0, 0, 0, 7, 0, 16, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0,
                0,
            ],
        ),
        message(29, &[0, 0, 0, 1, 0, 0, 0, 3, 0, 1, 0, 16, 0, 0, 3, 232, 0, 0, 0, 0, 0, 0, 0, 0]),
        message(
            13,
            &[
                0xff, 0xff, 0xff, 0xff, 0, 0, 0, 2, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 1, 0, 0,
                0, 0, 0, 0, 0, 0, 1, 2, 3,
            ],
        ),
    ];
    for round in 0..20_000 {
        let (_, mut session) = match round % 64 {
            0 => greeted(),
            _ => continue,
        };
        for _ in 0..64 {
            let mut bytes = seeds[rng.index(seeds.len())].clone();
            for _ in 0..1 + rng.below(3) {
                // The length of the message is right, so that the next one is found.
                let at = 8 + rng.index(bytes.len() - 8);
                bytes[at] = [0, 1, 7, 8, 0xff, rng.bits() as u8][rng.index(6)];
            }
            let answers = session.receive(&bytes).expect("a message of the right length ends no session");
            messages(&answers);
        }
        assert_eq!(messages(&session.receive(&message(20, &[])).unwrap()).last().unwrap().0, 21);
    }
    // A length that is shorter than a header ends the session: nothing says where the next message is.
    let (_, mut session) = greeted();
    let last = session.receive(&[4, 2, 0, 7, 0, 0, 0, 1, 0]).unwrap();
    assert_eq!(messages(&last)[0].1[..4], [0, 1, 0, 6]);
    assert!(session.receive(&message(2, &[])).is_none());
}
