//! Sequence numbers: replays, order, both halves, and the end.

use wirespeed_esp::{Fault, Sa, SaConfig};

use crate::{config, inner, opened, sealed, suites};

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

/// Two associations of the same keys, as after a restart, do not begin with the same vector.
#[test]
fn vectors_differ_after_a_restart() {
    let config = config(suites(9).remove(0), false);
    let vectors: std::collections::HashSet<Vec<u8>> = (0..50)
        .map(|_| sealed(&Sa::new(&config).unwrap(), &inner(false, 1, 0)).unwrap()[28..36].to_vec())
        .collect();
    assert_eq!(vectors.len(), 50);
}
