//! Associations and policies that change while packets are under way.

use std::sync::atomic::{AtomicBool, Ordering};

use wirespeed::classify::Ipv4Tuple;
use wirespeed_esp::read::Lines;
use wirespeed_esp::{
    Arrival, Change, Database, Direction, Error, Fault, Inbound, Opening, Outbound, Reader, Replaced, Sa,
    Scratch, Sealing, State, open,
};

use crate::{inner, opened, sealed};

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

fn replace(database: &mut Database, text: &str) -> Result<Replaced, Error> {
    let lines = Lines::read(text);
    assert_eq!(lines.skipped, []);
    database.replace(lines.changes)
}

fn sa(state: &State, spi: u32) -> &Sa {
    state.sa("192.0.2.2".parse().unwrap(), spi).unwrap()
}

/// Associations, new ones beside those that there were: kept, removed, added, changed.
fn counts(replaced: Replaced) -> [usize; 5] {
    let Replaced { kept, changed, added, ended, policies, .. } = replaced;
    [kept, changed, added, ended, policies]
}

#[test]
fn associations_that_stay_go_on_and_others_begin_or_end() {
    let mut database = Database::new().unwrap();
    let line = |spi: &str, key: &str| SA.replace("0x100", spi).replace("0x00112233", key);
    let (first, second) = (line("0x101", "0x00000001"), line("0x102", "0x00000002"));
    let (third, rekeyed) = (line("0x103", "0x00000003"), line("0x102", "0x99999999"));
    assert_eq!(counts(replace(&mut database, &format!("{first}\n{second}\n")).unwrap()), [0, 0, 2, 0, 0]);
    let before = database.state();
    let packet = inner(false, 60, 0);
    let sent: Vec<_> = [0x101, 0x101, 0x102].map(|spi| sealed(sa(&before, spi), &packet).unwrap()).into();
    for (spi, packet) in [0x101, 0x101, 0x102].iter().zip(&sent) {
        opened(sa(&before, *spi), packet).unwrap();
    }
    // One stays, one has other keys under its index, one is new.
    let replaced = replace(&mut database, &format!("{first}\n{rekeyed}\n{third}\n")).unwrap();
    assert_eq!(counts(replaced), [1, 0, 2, 1, 0]);
    let after = database.state();
    assert_eq!(sa(&after, 0x101).sent(), 2);
    assert_eq!(opened(sa(&after, 0x101), &sent[0]), Err(Fault::Replay));
    let next = sealed(sa(&after, 0x101), &packet).unwrap();
    assert_eq!(next[24..28], [0, 0, 0, 3], "the sequence number");
    assert!(sent.iter().all(|sent| sent[28..36] != next[28..36]), "the vectors");
    opened(sa(&after, 0x101), &next).unwrap();
    // The numbers of other keys begin anew, and a packet of the old ones does not pass.
    assert_eq!((sa(&after, 0x102).sent(), sa(&after, 0x103).sent()), (0, 0));
    assert_eq!(opened(sa(&after, 0x102), &sent[2]), Err(Fault::Tag));
    assert!(sealed(sa(&after, 0x102), &packet).is_ok() && sealed(sa(&after, 0x103), &packet).is_ok());
    // The old one is ended for packets that are under way, the one that stayed is not.
    assert_eq!(sealed(sa(&before, 0x102), &packet).err(), Some(Fault::SaGone));
    assert!(std::ptr::eq(sa(&before, 0x101), sa(&after, 0x101)));
    // What can't be made changes nothing.
    let twice = format!("{third}\n{third}\n");
    assert!(matches!(replace(&mut database, &twice), Err(Error::SaExists { spi: 0x103, .. })));
    assert!(std::sync::Arc::ptr_eq(&after, &database.state()));
    assert_eq!(counts(replace(&mut database, "state flush\n").unwrap()), [0, 0, 0, 3, 0]);
    assert_eq!(sealed(sa(&after, 0x101), &packet).err(), Some(Fault::SaGone));
}

/// A line `update` with the keys that there are: numbers go on, and so does the place of the association.
#[test]
fn an_update_with_the_same_keys_goes_on() {
    let mut database = Database::new().unwrap();
    let packet = inner(false, 60, 0);
    apply(&mut database, &format!("{SA}\n{}\n{OUT}\n", SA.replace("0x100", "0x101"))).unwrap();
    let before = database.state();
    let sent: Vec<Vec<u8>> = (0..3).map(|_| sealed(sa(&before, 0x100), &packet).unwrap()).collect();
    opened(sa(&before, 0x100), &sent[0]).unwrap();
    opened(sa(&before, 0x100), &sent[2]).unwrap();
    let update = SA.replace("add", "update");
    // The line as it was: the association itself stays.
    apply(&mut database, &update).unwrap();
    assert!(std::ptr::eq(sa(&before, 0x100), sa(&database.state(), 0x100)));
    let mut vectors: Vec<Vec<u8>> = sent.iter().map(|sent| sent[28..36].to_vec()).collect();
    // Other words, twice in one call, and numbers that were used already.
    let words = "limit packet-hard 9";
    let (one, other) = (format!("{update} {words}"), format!("{update} replay-oseq 1 {words}"));
    apply(&mut database, &format!("{one}\n{other}\n")).unwrap();
    let state = database.state();
    assert_eq!(sealed(sa(&before, 0x100), &packet).err(), Some(Fault::SaGone));
    assert_eq!((sa(&state, 0x100).sent(), sa(&state, 0x100).carried().0), (3, 5));
    let next = sealed(sa(&state, 0x100), &packet).unwrap();
    assert_eq!(next[24..28], [0, 0, 0, 4]);
    vectors.push(next[28..36].to_vec());
    opened(sa(&state, 0x100), &sent[1]).unwrap();
    for old in &sent {
        assert_eq!(opened(sa(&state, 0x100), old), Err(Fault::Replay));
    }
    let newest = |state: &State| {
        let number = policy(&database.reader(), Direction::Out, &packet);
        match state.outbound(number) {
            Outbound::Protect(sa) => sa.spi(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(newest(&state), 0x101, "the one that was changed is no newer for it");
    // A change that fails behind it: what was made before holds, and the numbers go on.
    let behind = "state delete dst 192.0.2.2 spi 9999";
    assert!(matches!(apply(&mut database, &format!("{update}\n{behind}\n")), Err(Error::NoSa { .. })));
    assert_eq!(sealed(sa(&state, 0x100), &packet).err(), Some(Fault::SaGone));
    assert_eq!(sa(&database.state(), 0x100).sent(), 4);
    // Other keys: a new one, the newest.
    apply(&mut database, &update.replace("0x0011", "0x9911")).unwrap();
    let state = database.state();
    assert_eq!(sa(&state, 0x100).sent(), 0);
    assert_eq!(opened(sa(&state, 0x100), &next), Err(Fault::Tag));
    vectors.sort();
    vectors.dedup();
    assert_eq!(vectors.len(), 4, "no vector comes twice");
}

/// Another description with the same keys: numbers go on, and never back.
#[test]
fn an_association_that_changes_with_its_keys_goes_on() {
    let mut database = Database::new().unwrap();
    let with = |words: &str| format!("{SA} {words}\n");
    replace(&mut database, &with("limit packet-hard 9")).unwrap();
    let before = database.state();
    let packet = inner(false, 60, 0);
    let sent: Vec<Vec<u8>> = (0..3).map(|_| sealed(sa(&before, 0x100), &packet).unwrap()).collect();
    opened(sa(&before, 0x100), &sent[0]).unwrap();
    opened(sa(&before, 0x100), &sent[2]).unwrap();
    let mut vectors: Vec<Vec<u8>> = sent.iter().map(|sent| sent[28..36].to_vec()).collect();
    let mut seal_next = |state: &State, number: u8| {
        let next = sealed(sa(state, 0x100), &packet).unwrap();
        assert_eq!(next[24..28], [0, 0, 0, number]);
        vectors.push(next[28..36].to_vec());
    };
    // The tunnel and the limit: the window is the same, with a packet that has not come yet.
    let other = with("limit packet-hard 7").replace("reqid 1", "reqid 5");
    assert_eq!(counts(replace(&mut database, &other).unwrap()), [0, 1, 0, 0, 0]);
    let state = database.state();
    assert_eq!(sealed(sa(&before, 0x100), &packet).err(), Some(Fault::SaGone));
    assert_eq!(sa(&state, 0x100).carried().0, 5, "its limit is not begun again");
    seal_next(&state, 4);
    opened(sa(&state, 0x100), &sent[1]).unwrap();
    assert_eq!(opened(sa(&state, 0x100), &sent[2]), Err(Fault::Replay));
    assert_eq!(sealed(sa(&state, 0x100), &packet).err(), Some(Fault::Lifetime));
    // Another window, and numbers that are lower than those that were used, or higher.
    let wide = with("replay-window 256 replay-oseq 2 replay-seq 1");
    replace(&mut database, &wide).unwrap();
    seal_next(&database.state(), 5);
    for old in &sent {
        assert_eq!(opened(sa(&database.state(), 0x100), old), Err(Fault::Replay));
    }
    replace(&mut database, &with("replay-window 256 replay-oseq 9 replay-seq 8")).unwrap();
    let state = database.state();
    seal_next(&state, 10);
    assert_eq!(sa(&state, 0x100).received(), 8);
    let count = vectors.len();
    vectors.sort();
    vectors.dedup();
    assert_eq!(vectors.len(), count, "no vector comes twice");
}

#[test]
fn policies_and_the_order_are_those_of_the_new_lines() {
    let mut database = Database::new().unwrap();
    let reader = database.reader();
    let packet = inner(false, 20, 0);
    let way = || {
        let number = policy(&reader, Direction::Out, &packet);
        match reader.state().outbound(number) {
            Outbound::Protect(sa) => Ok(sa.spi()),
            other => Err(format!("{other:?}")),
        }
    };
    let other = SA.replace("0x100", "0x101");
    let block = "policy add src 10.1.0.1 dst any dir out action block";
    let allow = "policy add src 10.1.0.0/24 dst any dir out action allow";
    replace(&mut database, &format!("{SA}\n{other}\n{OUT}\n{allow}\n")).unwrap();
    assert_eq!(way(), Ok(0x101));
    let number = policy(&reader, Direction::Out, &packet);
    // The newest association is the last line's, though both are as they were.
    let replaced = replace(&mut database, &format!("{other}\n{SA}\n{OUT}\n{allow}\n")).unwrap();
    assert_eq!((counts(replaced), way()), ([2, 0, 0, 0, 0], Ok(0x100)));
    assert_eq!(policy(&reader, Direction::Out, &packet), number, "a policy that stays keeps its rule");
    // Among equals the first line decides, though the others are older here.
    let replaced = replace(&mut database, &format!("{SA}\n{block}\n{allow}\n{OUT}\n")).unwrap();
    assert_eq!((counts(replaced), way()), ([1, 0, 0, 1, 1], Err("Discard".to_owned())));
    let replaced = replace(&mut database, &format!("{SA}\n{allow}\n{block}\n{OUT}\n")).unwrap();
    assert_eq!((counts(replaced), way()), ([1, 0, 0, 0, 0], Err("Pass".to_owned())));
    // Policies that go, one that says something else, and what no policy is for.
    let text =
        format!("{SA}\n{}\npolicy setdefault out block\n", OUT.replace("dst 192.0.2.2", "dst 192.0.2.9"));
    let replaced = replace(&mut database, &text).unwrap();
    assert_eq!((counts(replaced), way()), ([1, 0, 0, 0, 3], Err("Unkeyed".to_owned())));
    assert_eq!(
        counts(replace(&mut database, &format!("{SA}\npolicy setdefault out block\n")).unwrap())[4],
        1
    );
    assert_eq!(way(), Err("Discard".to_owned()));
    replace(&mut database, SA).unwrap();
    assert_eq!(way(), Err("Pass".to_owned()));
    assert!(reader.rules(Direction::Out).are_empty());
}
