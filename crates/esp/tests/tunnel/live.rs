//! Associations and policies that change while packets are under way.

use std::sync::atomic::{AtomicBool, Ordering};

use wirespeed::classify::Ipv4Tuple;
use wirespeed_esp::read::Lines;
use wirespeed_esp::{
    Arrival, Change, Database, Direction, Error, Fault, Inbound, Opening, Outbound, Reader, Scratch, Sealing,
    open,
};

use crate::{inner, sealed};

const SA: &str = "state add src 192.0.2.1 dst 192.0.2.2 proto esp spi 0x100 reqid 1 mode tunnel \
                  aead 'rfc4106(gcm(aes))' 0x00112233445566778899aabbccddeeff01020304 128";
const OUT: &str = "policy add src 10.1.0.0/16 dst 10.2.0.0/16 dir out \
                   tmpl src 192.0.2.1 dst 192.0.2.2 proto esp reqid 1 mode tunnel";

fn apply(database: &mut Database, text: &str) -> Result<(), Error> {
    let lines = Lines::read(text);
    assert_eq!(lines.skipped, []);
    database.apply(lines.changes)
}

fn policy(reader: &Reader, direction: Direction, packet: &[u8]) -> u32 {
    let tuple = Ipv4Tuple::of_packet(packet).unwrap();
    let mut number = [0];
    reader.rules(direction).v4.lookup_batch(&[tuple], &mut number);
    number[0]
}

#[test]
fn policies_lead_to_the_newest_association() {
    let mut database = Database::new().unwrap();
    let reader = database.reader();
    let packet = inner(false, 20, 0);
    let spi = |reader: &Reader| {
        let number = policy(reader, Direction::Out, &packet);
        match reader.state().outbound(number) {
            Outbound::Protect(sa) => Ok(sa.spi()),
            other => Err(format!("{other:?}")),
        }
    };
    assert_eq!(spi(&reader), Err("Pass".to_owned()));
    assert!(reader.rules(Direction::Out).are_empty());
    apply(&mut database, OUT).unwrap();
    assert_eq!(spi(&reader), Err("Unkeyed".to_owned()));
    apply(&mut database, SA).unwrap();
    assert_eq!(spi(&reader), Ok(0x100));
    assert!(matches!(apply(&mut database, SA), Err(Error::SaExists { spi: 0x100, .. })));
    apply(&mut database, &SA.replace("0x100", "0x101")).unwrap();
    assert_eq!(spi(&reader), Ok(0x101));
    apply(&mut database, "state delete dst 192.0.2.2 spi 0x101").unwrap();
    assert_eq!(spi(&reader), Ok(0x100));
    assert!(matches!(apply(&mut database, "state delete dst 192.0.2.2 spi 9999"), Err(Error::NoSa { .. })));
    // A policy that comes first, and goes.
    apply(&mut database, "policy add src 10.1.0.1 dst any dir out action block").unwrap();
    assert_eq!(spi(&reader), Ok(0x100), "the older one of equals comes first");
    apply(&mut database, "policy update src 10.1.0.0/16 dst 10.2.0.0/16 dir out priority 5 action allow")
        .unwrap();
    assert_eq!(spi(&reader), Err("Discard".to_owned()));
    apply(&mut database, "policy delete src 10.1.0.1 dst any dir out").unwrap();
    assert_eq!(spi(&reader), Err("Pass".to_owned()));
    apply(&mut database, "policy flush\npolicy setdefault out block").unwrap();
    assert_eq!(spi(&reader), Err("Discard".to_owned()));
    assert!(reader.rules(Direction::Out).are_empty());
}

#[test]
fn an_association_serves_its_direction() {
    let mut database = Database::new().unwrap();
    apply(&mut database, OUT).unwrap();
    apply(&mut database, &(SA.to_owned() + " dir out")).unwrap();
    let (reader, dst) = (database.reader(), "192.0.2.2".parse().unwrap());
    let number = policy(&reader, Direction::Out, &inner(false, 20, 0));
    let state = reader.state();
    assert!(!state.is_end(dst) && state.sa(dst, 0x100).is_none());
    assert!(matches!(state.outbound(number), Outbound::Protect(_)));
    apply(&mut database, &(SA.replace("add", "update") + " dir in")).unwrap();
    let state = reader.state();
    assert!(state.is_end(dst) && state.sa(dst, 0x100).is_some());
    assert!(matches!(state.outbound(number), Outbound::Unkeyed));
}

#[test]
fn packets_that_come_in_are_checked() {
    let mut database = Database::new().unwrap();
    let reader = database.reader();
    apply(&mut database, SA).unwrap();
    apply(&mut database, &SA.replace("0x100 reqid 1", "0x200 reqid 2")).unwrap();
    apply(&mut database, &OUT.replace("dir out", "dir fwd")).unwrap();
    // Files have one for packets that are taken, too.
    apply(&mut database, &OUT.replace("dir out", "dir in")).unwrap();
    let packet = inner(false, 20, 0);
    let number = policy(&reader, Direction::In, &packet);
    let state = reader.state();
    let dst = "192.0.2.2".parse().unwrap();
    assert_eq!(state.inbound(number, None), Inbound::Unprotected);
    assert_eq!(state.inbound(number, state.sa(dst, 0x100)), Inbound::Accept);
    assert_eq!(state.inbound(number, state.sa(dst, 0x200)), Inbound::Discard);
    assert_eq!(state.inbound(0, None), Inbound::Accept);
    assert_eq!(
        state.inbound(0, state.sa(dst, 0x100)),
        Inbound::Discard,
        "what a tunnel brings needs a policy"
    );
    apply(&mut database, "policy setdefault in block").unwrap();
    assert_eq!(reader.state().inbound(0, None), Inbound::Discard);
}

#[test]
fn an_association_that_goes_takes_its_packets_along() {
    let mut database = Database::new().unwrap();
    apply(&mut database, SA).unwrap();
    let state = database.state();
    let sa = state.sas().next().unwrap();
    let packet = inner(false, 100, 0);
    let sent = sealed(sa, &packet).unwrap();
    let Arrival::Esp(envelope) = Arrival::read(&sent, |_| true, |_| false) else { panic!() };
    let opening = Opening::begin(sa, envelope, 0).unwrap();
    let sealing = Sealing::begin(sa, &packet).unwrap();
    database.apply([Change::RemoveSa(envelope.dst, envelope.spi)]).unwrap();
    let (mut packets, mut outcomes) = (vec![sent.clone()], Vec::new());
    open(&[opening], &mut packets[..], &mut Scratch::default(), &mut outcomes);
    assert_eq!(outcomes, [Err(Fault::SaGone)]);
    assert!(packets[0][36..].iter().all(|&byte| byte == 0));
    let mut bytes = vec![0; sealing.len()];
    assert_eq!(sealing.write(0, &mut bytes).err(), Some(Fault::SaGone));
    assert_eq!(Opening::begin(sa, envelope, 0).err(), Some(Fault::SaGone));
    assert!(database.state().sa(envelope.dst, envelope.spi).is_none());
}

/// A reader finds policies that lead to the tunnel while the writer changes all of them.
#[test]
fn readers_go_on_while_the_writer_changes() {
    let mut database = Database::new().unwrap();
    apply(&mut database, SA).unwrap();
    apply(&mut database, OUT).unwrap();
    let is_done = AtomicBool::new(false);
    let packet = inner(false, 20, 0);
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..2)
            .map(|_| {
                let (reader, is_done, packet) = (database.reader(), &is_done, &packet);
                scope.spawn(move || {
                    let mut rounds = 0_u64;
                    while !is_done.load(Ordering::Relaxed) || rounds == 0 {
                        let number = policy(&reader, Direction::Out, packet);
                        let state = reader.state();
                        // A reader that slept through two changes found a policy that is gone by now.
                        let is_known = matches!(state.outbound(number), Outbound::Protect(_));
                        assert!(is_known || policy(&reader, Direction::Out, packet) != number);
                        rounds += 1;
                    }
                    rounds
                })
            })
            .collect();
        for round in 0..60_u32 {
            let text = format!(
                "{}\npolicy update src 10.9.0.0/16 dst any dir out priority {round} action block",
                OUT.replace("add", "update")
            );
            apply(&mut database, &text).unwrap();
            apply(&mut database, &SA.replace("add", "update")).unwrap();
        }
        is_done.store(true, Ordering::Relaxed);
        assert!(readers.into_iter().all(|reader| reader.join().unwrap() > 0));
    });
}
