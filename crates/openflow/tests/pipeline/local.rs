//! The port LOCAL: what the host sends and receives by the switch.

use wirespeed_openflow::wire::{Action, Failure, Field, FlowMod, Instructions, Match, number::port};
use wirespeed_openflow::{PortInfo, Session, Switch, SwitchOptions};
use wirespeed_router::Mac;

use crate::{list, statistics, transmitted};

fn output(to: u32) -> Instructions {
    Instructions {
        apply: vec![Action::Output { port: to, max_len: 0 }],
        has_apply: true,
        ..Instructions::default()
    }
}

fn switch(has_local: bool) -> Switch {
    let local = PortInfo { name: "host0".to_owned(), mac: Mac([2, 0, 0, 0, 9, 9]), kbps: 1000 };
    let options =
        SwitchOptions { local: has_local.then_some(local), ..SwitchOptions::with_ports(["a", "b"]) };
    Switch::new(options).unwrap()
}

/// A frame of UDP whose last byte is this.
fn frame(last: u8) -> Vec<u8> {
    let mut frame = vec![0; 60];
    frame[12..15].copy_from_slice(&[8, 0, 0x45]);
    (frame[17], frame[23], frame[59]) = (46, 17, last);
    frame
}

#[test]
fn the_host_is_at_the_port_local() {
    for with_classifier in [false, true] {
        let switch = switch(true);
        let of = |in_port: u32| Match::all().with(Field::InPort, in_port.into());
        switch.flow_mod(&FlowMod::add(0, 9, of(1), output(port::LOCAL))).unwrap();
        switch.flow_mod(&FlowMod::add(0, 8, of(port::LOCAL), output(2))).unwrap();
        switch.flow_mod(&FlowMod::add(0, 7, of(2), output(port::ALL))).unwrap();
        if with_classifier {
            // It is worth it from four masks on.
            for bits in 1..=4_u32 {
                let mask = u128::from(u32::MAX << bits);
                let matched =
                    Match::all().with(Field::EthType, 0x0800).with_masked(Field::Ipv4Src, 1 << 31, mask);
                switch.flow_mod(&FlowMod::add(0, 20, matched, output(1))).unwrap();
            }
            std::thread::sleep(std::time::Duration::from_millis(220));
            switch.keep_time();
            assert!(switch.has_classifier(0));
            switch.keep_time();
        }
        // The router's third port is LOCAL.
        let frames = [(1, frame(1)), (3, frame(3)), (2, frame(2))];
        let (stats, sent, _) = list::run(&switch, switch.app().unwrap(), 3, &frames, 16);
        assert!(stats.is_whole(), "{stats:?}");
        let expected = [(1, frame(2)), (2, frame(3)), (3, frame(1)), (3, frame(2))];
        assert_eq!(sent, expected, "with a classifier: {with_classifier}");
    }
}

#[test]
fn controllers_see_the_port_local() {
    let answers = |has_local| {
        let switch = switch(has_local);
        let mut session = Session::new(&switch);
        session.receive(&[4, 0, 0, 8, 0, 0, 0, 1]).unwrap();
        let mut ask = |request: &[u8]| session.receive(request).unwrap();
        let descriptions = ask(&[4, 18, 0, 16, 0, 0, 0, 2, 0, 13, 0, 0, 0, 0, 0, 0]);
        let counters = ask(&[
            &[4, 18, 0, 24, 0, 0, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0][..],
            &[0xff, 0xff, 0xff, 0xfe, 0, 0, 0, 0],
        ]
        .concat());
        (switch, descriptions, counters)
    };
    let (switch, descriptions, counters) = answers(true);
    assert_eq!(descriptions.len(), 16 + 3 * 64);
    let last = &descriptions[16 + 2 * 64..];
    assert_eq!((&last[..4], &last[8..14]), (&[0xff, 0xff, 0xff, 0xfe][..], &[2, 0, 0, 0, 9, 9][..]));
    assert_eq!((counters[1], &counters[16..20]), (19, &[0xff, 0xff, 0xff, 0xfe][..]));
    // A controller sends to the host as to any port.
    assert_eq!(packet_out(&switch, port::CONTROLLER, port::LOCAL), None);
    assert_eq!(packet_out(&switch, port::LOCAL, 1), None);
    let (stats, sent, _) = list::run(&switch, switch.app().unwrap(), 3, &[], 16);
    assert!(stats.is_whole(), "{stats:?}");
    assert_eq!(sent, [(1, frame(5)), (3, frame(5))]);
    // Without the port, all of this is refused.
    let (switch, descriptions, counters) = answers(false);
    assert_eq!((descriptions.len(), counters[1]), (16 + 2 * 64, 1));
    let refused = switch.flow_mod(&FlowMod::add(0, 1, Match::all(), output(port::LOCAL)));
    assert_eq!(refused, Err(Failure::ACTION_OUT_PORT));
    // A bad request for its port, and a bad action for its port.
    assert_eq!(packet_out(&switch, port::LOCAL, 1), Some([0, 1, 0, 11]));
    assert_eq!(packet_out(&switch, 1, port::LOCAL), Some([0, 2, 0, 4]));
}

/// Frames of controllers count as sent once a worker has them, and as dropped where they find no place.
#[test]
fn frames_of_controllers_are_counted_where_they_go_out() {
    const PLACES: u64 = 1024;
    let switch = switch(false);
    assert_eq!(send(&switch, port::CONTROLLER, 1, &[2; 40_000]), None);
    (1..PLACES + 5).for_each(|_| assert_eq!(packet_out(&switch, port::CONTROLLER, 1), None));
    assert_eq!(transmitted(&switch, 1), [0, 5]);
    let (stats, sent, _) = list::run(&switch, switch.app().unwrap(), 2, &[], 16);
    assert!(stats.is_whole() && !sent.is_empty(), "{stats:?}");
    // The first one is too large for a buffer.
    assert_eq!(transmitted(&switch, 1), [sent.len() as u64, 6]);
}

/// A controller can give its packet a tunnel and a port that no frame has. Classifiers do not know of such.
#[test]
fn packets_of_controllers_find_flows_that_no_frame_finds() {
    let switch = switch(false);
    let tunnel = |number| Match::all().with(Field::TunnelId, number);
    let from = |port: u32| Match::all().with(Field::InPort, port.into());
    let to_next = Instructions { goto: Some(1), ..Instructions::default() };
    switch.flow_mod(&FlowMod::add(0, 100, tunnel(0), Instructions::default())).unwrap();
    switch.flow_mod(&FlowMod::add(0, 50, Match::all(), to_next)).unwrap();
    switch.flow_mod(&FlowMod::add(1, 60, from(port::CONTROLLER), Instructions::default())).unwrap();
    // Enough masks for a classifier of both tables, with the flows for ports and tunnels among them.
    for bits in 0..16 {
        for (table, matched) in [(0, tunnel(0)), (1, from(1))] {
            let mask = u128::from(u64::MAX >> 16) << bits & u128::from(u64::MAX >> 16);
            let matched = matched.with_masked(Field::EthSrc, 1 << 47, mask);
            switch.flow_mod(&FlowMod::add(table, 1, matched, Instructions::default())).unwrap();
        }
    }
    switch.settle();
    assert!(switch.has_classifier(0) && switch.has_classifier(1));
    let set_tunnel = [0, 25, 0, 16, 0x80, 0, 76, 8, 0, 0, 0, 0, 0, 0, 0, 5];
    assert_eq!(packet_out(&switch, port::CONTROLLER, port::TABLE), None);
    assert_eq!(send_by(&switch, port::CONTROLLER, &set_tunnel, port::TABLE, &frame(5)), None);
    let packets = statistics(&switch).into_iter().filter(|flow| flow.2 > 0);
    let packets: Vec<_> = packets.map(|(table, priority, packets, _)| (table, priority, packets)).collect();
    assert_eq!(packets, [(0, 50, 1), (0, 100, 1), (1, 60, 1)]);
}

/// Sends a frame as a controller does. Returns the type and the code of the error, if there is one.
fn packet_out(switch: &Switch, in_port: u32, to: u32) -> Option<[u8; 4]> {
    send(switch, in_port, to, &frame(5))
}

fn send(switch: &Switch, in_port: u32, to: u32, frame: &[u8]) -> Option<[u8; 4]> {
    send_by(switch, in_port, &[], to, frame)
}

/// Sends a frame by actions, and then out of a port.
fn send_by(switch: &Switch, in_port: u32, actions: &[u8], to: u32, frame: &[u8]) -> Option<[u8; 4]> {
    let mut session = Session::new(switch);
    session.receive(&[4, 0, 0, 8, 0, 0, 0, 1]).unwrap();
    let [high, low] = (8 + 16 + (actions.len() + 16 + frame.len()) as u16).to_be_bytes();
    let mut request = vec![4, 13, high, low, 0, 0, 0, 3, 0xff, 0xff, 0xff, 0xff];
    request.extend(in_port.to_be_bytes());
    request.extend([0, 16 + actions.len() as u8, 0, 0, 0, 0, 0, 0]);
    request.extend(actions);
    request.extend([0, 0, 0, 16]);
    request.extend(to.to_be_bytes());
    request.extend([0; 8]);
    request.extend(frame);
    let answer = session.receive(&request).unwrap();
    (!answer.is_empty()).then(|| {
        assert_eq!(answer[1], 1, "{answer:02x?}");
        *answer[8..].first_chunk().unwrap()
    })
}
