//! Sequence numbers: replays, order, both halves, and the end.

use wirespeed_esp::{
    Arrival, Beginning, Change, Database, Fault, Sa, SaConfig, Scratch, Sealing, open, seal,
};

use crate::{arrival, config, inner, opened, sealed, suites, with_hop_less};

#[test]
fn no_packet_is_taken_twice() {
    for keys in suites(4) {
        for is_extended in [false, true] {
            let config = SaConfig { is_extended, window: 64, ..config(keys.clone(), false) };
            let (here, there) = (Sa::new(&config).unwrap(), Sa::new(&config).unwrap());
            let sent: Vec<Vec<u8>> =
                (0..200).map(|at| sealed(&here, &inner(false, at, 0)).unwrap()).collect();
            // Order within the window does not matter: number 2 lies 63 behind number 65.
            for at in [5, 3, 63, 0, 64, 1] {
                assert!(opened(&there, &sent[at]).is_ok(), "{at}");
            }
            assert_eq!(opened(&there, &sent[63]), Err(Fault::Replay));
            assert!(opened(&there, &sent[199]).is_ok());
            assert!(opened(&there, &sent[136]).is_ok());
            // What is too old counts as the future, with an upper half more, and its tag is none of that.
            let too_old = if is_extended { Fault::Tag } else { Fault::Replay };
            assert_eq!(opened(&there, &sent[135]), Err(too_old));
            assert_eq!(opened(&there, &sent[10]), Err(too_old));
            assert_eq!(there.received(), 200);
        }
    }
}

/// A forged packet with a high number does not move the window.
#[test]
fn forged_numbers_do_not_count() {
    let config = SaConfig { is_extended: true, ..config(suites(5).remove(2), false) };
    let (here, there) = (Sa::new(&config).unwrap(), Sa::new(&config).unwrap());
    let sent = sealed(&here, &inner(false, 9, 0)).unwrap();
    let mut forged = sent.clone();
    forged[24] = 0x70;
    assert_eq!(opened(&there, &forged), Err(Fault::Tag));
    assert_eq!(there.received(), 0);
    assert!(opened(&there, &sent).is_ok());
}

#[test]
fn the_upper_half_is_found_where_the_lower_begins_again() {
    for keys in suites(6) {
        let start = 5 << 32 | 0xffff_fff0;
        let config = SaConfig { is_extended: true, sent: start, received: start, ..config(keys, false) };
        let (here, there) = (Sa::new(&config).unwrap(), Sa::new(&config).unwrap());
        let sent: Vec<Vec<u8>> = (0..40).map(|at| sealed(&here, &inner(true, at, 0)).unwrap()).collect();
        for at in [20, 2, 39, 14, 15, 16] {
            assert!(opened(&there, &sent[at]).is_ok(), "{at}");
        }
        assert_eq!(opened(&there, &sent[2]), Err(Fault::Replay));
        assert_eq!(there.received(), start + 40);
    }
}

#[test]
fn an_association_ends_with_its_numbers() {
    for (is_extended, last) in [(false, u64::from(u32::MAX)), (true, u64::MAX)] {
        for keys in suites(7) {
            let config = SaConfig { is_extended, sent: last - 2, received: last - 2, ..config(keys, true) };
            let (here, there) = (Sa::new(&config).unwrap(), Sa::new(&config).unwrap());
            for _ in 0..2 {
                let sent = sealed(&here, &inner(false, 30, 0)).unwrap();
                assert!(opened(&there, &sent).is_ok());
            }
            for _ in 0..3 {
                assert_eq!(sealed(&here, &inner(false, 30, 0)), Err(Fault::Sequence));
            }
            assert_eq!(here.sent(), last);
        }
    }
}

#[test]
fn an_association_ends_with_its_limits() {
    let keys = suites(8).remove(0);
    let config = SaConfig { most_packets: Some(3), ..config(keys, false) };
    let by_bytes = SaConfig { most_packets: None, most_bytes: Some(100), ..config.clone() };
    let fine = SaConfig { most_packets: None, ..config.clone() };
    for (limited, most) in [(&config, 3), (&by_bytes, 2)] {
        let here = Sa::new(limited).unwrap();
        let sent = (0..9).filter(|_| sealed(&here, &inner(false, 30, 0)).is_ok()).count();
        assert_eq!(sent, most);
        assert_eq!(sealed(&here, &inner(false, 30, 0)), Err(Fault::Lifetime));
        let (far, there) = (Sa::new(&fine).unwrap(), Sa::new(limited).unwrap());
        let outcomes: Vec<_> =
            (0..5).map(|_| opened(&there, &sealed(&far, &inner(false, 30, 0)).unwrap())).collect();
        assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), most);
        assert_eq!(outcomes[4], Err(Fault::Lifetime));
    }
}

/// Packets in a row take their numbers at once. Those that come twice in a list, or of two associations in
/// turns, are told apart.
#[test]
fn lists_of_packets_have_the_numbers_of_packets_one_by_one() {
    for keys in suites(10) {
        let last = u64::from(u32::MAX);
        let one = SaConfig { sent: last - 4, received: last - 4, ..config(keys.clone(), false) };
        let other = SaConfig { spi: 0x777, most_packets: Some(3), ..config(keys, false) };
        let mut database = Database::new().unwrap();
        database.apply([&one, &other].map(|config| Change::AddSa(Box::new(config.clone())))).unwrap();
        let state = database.state();
        let [here, limited] = [&one, &other].map(|config| Sa::new(config).unwrap());
        let mut packets = Vec::new();
        for (sa, wanted) in [(&here, Fault::Sequence), (&limited, Fault::Lifetime)] {
            let inners: Vec<Vec<u8>> = (0..6).map(|at| inner(false, 10 * at, 0)).collect();
            let sealings: Vec<_> = inners.iter().map(|inner| Sealing::begin(sa, inner).unwrap()).collect();
            let mut numbers = sealings[0].take(sealings.len());
            let (mut unsealed, begin) = (Vec::new(), packets.len());
            for (sealing, inner) in sealings.into_iter().zip(&inners) {
                let mut packet = vec![0; sealing.len()];
                packet[sealing.head()..][..inner.len()].copy_from_slice(inner);
                match sealing.write_next(packets.len(), &mut packet, &mut numbers) {
                    Ok(written) => {
                        unsealed.push(written);
                        packets.push(packet);
                    }
                    Err(fault) => assert_eq!(fault, wanted),
                }
            }
            drop(numbers);
            seal(&unsealed, &mut packets[..], &mut Scratch::default());
            // The first has four numbers left, and the other may have three packets.
            assert_eq!(packets.len() - begin, if wanted == Fault::Sequence { 4 } else { 3 });
        }
        assert_eq!((here.sent(), limited.carried()), (last, (3, 60 + 30)));
        // Packets 0 to 3 of the one, 4 to 6 of the other, in turns; two of them come twice.
        let order = [4, 0, 1, 5, 1, 2, 6, 3, 4];
        let mut came: Vec<Vec<u8>> = order.iter().map(|&at| packets[at].clone()).collect();
        let mut beginning = Beginning::new(&state);
        let openings: Vec<_> = came
            .iter()
            .enumerate()
            .map(|(at, packet)| match arrival(&here, packet) {
                Arrival::Esp(envelope) => beginning.begin(envelope, at).unwrap(),
                other => panic!("{other:?}"),
            })
            .collect();
        drop(beginning);
        let mut outcomes = Vec::new();
        open(&openings, &mut came[..], &mut Scratch::default(), &mut outcomes);
        let seen = |at: usize| order[..at].contains(&order[at]);
        for (at, (outcome, packet)) in outcomes.iter().zip(&came).enumerate() {
            let wanted = with_hop_less(&inner(false, 10 * (order[at] % 4), 0));
            let found = outcome.map(|opened| packet[opened.start..][..opened.len].to_vec());
            assert_eq!(found, if seen(at) { Err(Fault::Replay) } else { Ok(wanted) }, "{at}");
        }
        let known = state.sa(one.dst, one.spi).unwrap();
        assert_eq!((known.received(), known.carried()), (last, (4, 80 + 60)));
        // Nothing is left of a window's lock, and an index that is nobody's has no association.
        let mut beginning = Beginning::new(&state);
        let mut begin = |packet: &[u8]| match arrival(&here, packet) {
            Arrival::Esp(envelope) => beginning.begin(envelope, 0).err(),
            other => panic!("{other:?}"),
        };
        assert_eq!(begin(&packets[0]), Some(Fault::Replay));
        packets[0][20..24].fill(0x99);
        assert_eq!(begin(&packets[0]), Some(Fault::NoSa));
    }
}

/// Two associations of the same keys, as after a restart, do not begin with the same vector.
#[test]
fn vectors_differ_after_a_restart() {
    let config = config(suites(9).remove(0), false);
    let vectors: std::collections::HashSet<Vec<u8>> = (0..50)
        .map(|_| sealed(&Sa::new(&config).unwrap(), &inner(false, 1, 0)).unwrap()[28..36].to_vec())
        .collect();
    assert_eq!(vectors.len(), 50);
}
