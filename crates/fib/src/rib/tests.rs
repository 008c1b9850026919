use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::address::{V4, V6};

fn prefixes<A: Address>() -> impl Strategy<Value = Prefix<A>> {
    // Few distinct octets, so that prefixes nest, share paths and repeat; now and then any address.
    let octet = prop_oneof![Just(0u8), Just(1), Just(127), Just(128), Just(255), any::<u8>()];
    (proptest::collection::vec(octet, A::OCTETS), 0..=A::BITS).prop_map(|(octets, len)| {
        let address = octets.iter().enumerate().fold(A::MIN, |a, (i, &o)| a.with_octet(i, o));
        Prefix::around(address, len)
    })
}

fn agrees_with_a_map<A: Address>(steps: &[(Prefix<A>, Option<u32>)]) {
    let mut rib = Rib::new();
    let mut map: BTreeMap<Prefix<A>, NextHop> = BTreeMap::new();
    for &(prefix, next_hop) in steps {
        match next_hop {
            Some(n) => assert_eq!(rib.insert(prefix, NextHop(n)), map.insert(prefix, NextHop(n))),
            None => assert_eq!(rib.remove(prefix), map.remove(&prefix)),
        }
    }
    assert_eq!(rib.len(), map.len());
    assert!(rib.iter().eq(map.iter().map(|(&p, &n)| (p, n))));
    for (len, &count) in rib.by_length().iter().enumerate() {
        assert_eq!(count, map.keys().filter(|p| usize::from(p.len()) == len).count());
    }
    for &(prefix, _) in steps {
        assert_eq!(rib.get(prefix), map.get(&prefix).copied());
        let inside = |p: &Prefix<A>| prefix.covers(*p);
        assert!(rib.covered(prefix).eq(map.iter().filter(|(p, _)| inside(p)).map(|(&p, &n)| (p, n))));
        let above = |p: &Prefix<A>| p.covers(prefix);
        assert!(rib.covering(prefix).eq(map.iter().filter(|(p, _)| above(p)).map(|(&p, &n)| (p, n))));
        let cover = map.iter().rfind(|(p, _)| above(p) && **p != prefix);
        assert_eq!(rib.cover(prefix), cover.map(|(&p, &n)| (p, n)));
        for address in [prefix.address(), prefix.last()] {
            let best = map.iter().filter(|(p, _)| p.contains(address)).max_by_key(|(p, _)| p.len());
            assert_eq!(rib.longest_match(address), best.map(|(&p, &n)| (p, n)));
        }
        // The cursor walks uncompressed and must agree with the longest match of each level.
        let mut cursor = Some(rib.cursor());
        let mut best = None;
        while let Some(at) = cursor {
            let octet = prefix.address().octet(usize::from(at.depth()));
            best = at.best(octet).or(best);
            let mut expanded = [NextHop::NONE; 256];
            at.expand(NextHop(u32::MAX), &mut expanded);
            let expected = at.best(octet).map_or(NextHop(u32::MAX), |(_, n)| n);
            assert_eq!(expanded[usize::from(octet)], expected);
            assert_eq!(at.octets().any(|o| o == octet), at.child(octet).is_some());
            assert!(at.octets().all(|o| at.child(o).is_some()));
            for bits in 0..=8 {
                let part = Prefix::around(prefix.address(), 8 * at.depth() + bits);
                let ends_here = |p: &Prefix<A>| p.len() > 8 * at.depth() || p.len() == 0 && at.depth() == 0;
                let best = map.iter().rfind(|(p, _)| p.covers(part) && ends_here(p));
                assert_eq!(at.best_within(octet, bits), best.map(|(p, &n)| (p.len(), n)));
                assert_eq!(at.is_longer(octet, bits), map.keys().any(|p| part.covers(*p) && *p != part));
            }
            cursor = at.child(octet);
        }
        assert_eq!(best, rib.longest_match(prefix.address()).map(|(p, n)| (p.len(), n)));
    }
    for (prefix, _) in map {
        rib.remove(prefix);
    }
    assert_eq!((rib.len(), rib.nodes.len() - rib.free.len()), (0, 1), "all nodes but the root are free");
}

proptest! {
    #[test]
    fn any_history_v4(steps in proptest::collection::vec((prefixes::<V4>(), proptest::option::weighted(0.7, 0..9u32)), 0..120)) {
        agrees_with_a_map(&steps);
    }

    #[test]
    fn any_history_v6(steps in proptest::collection::vec((prefixes::<V6>(), proptest::option::weighted(0.7, 0..9u32)), 0..120)) {
        agrees_with_a_map(&steps);
    }
}

#[test]
fn a_withdrawn_fork_leaves_its_neighbours() {
    let p = |text: &str| text.parse::<Prefix<V6>>().unwrap();
    let mut rib: Rib<V6> =
        [(p("2001:db8:1::/48"), NextHop(1)), (p("2001:db8:2::/48"), NextHop(2))].into_iter().collect();
    assert_eq!(rib.remove(p("2001:db8:1::/48")), Some(NextHop(1)));
    assert_eq!(rib.remove(p("2001:db8:1::/48")), None);
    assert_eq!(rib.longest_match(p("2001:db8:2::/48").last()), Some((p("2001:db8:2::/48"), NextHop(2))));
}

#[test]
fn an_announcement_without_a_next_hop_keeps_what_is_there() {
    let p: Prefix<V4> = "10.0.0.0/8".parse().unwrap();
    let mut rib = Rib::new();
    assert!(rib.apply(&Update::Announce { prefix: p, next_hop: None }));
    assert_eq!(rib.get(p), Some(NextHop(1)));
    assert!(rib.apply(&Update::Announce { prefix: p, next_hop: Some(NextHop(7)) }));
    assert!(!rib.apply(&Update::Announce { prefix: p, next_hop: None }));
    assert_eq!(rib.get(p), Some(NextHop(7)));
    assert!(rib.apply(&Update::Withdraw { prefix: p }));
    assert!(!rib.apply(&Update::Withdraw { prefix: p }));
}

/// Holds scattered hosts to little memory: as nodes they would take over 200 bytes each.
#[test]
fn scattered_hosts_take_little_memory() {
    const HOSTS: usize = 200_000;
    let mut rng = wirespeed_rng::Rng::new(1);
    let hosts: Vec<_> = (0..HOSTS).map(|_| Prefix::host(V6(rng.bits128() >> 3 | 1 << 125))).collect();
    let mut rib: Rib<V6> = hosts.iter().map(|&host| (host, NextHop(1))).collect();
    assert_eq!(rib.len(), HOSTS);
    let full = rib.memory_usage();
    assert!(full < 56 * HOSTS, "{} bytes each", full / HOSTS);
    // What comes and goes leaves nothing behind.
    for round in 0..3u32 {
        for host in &hosts[..HOSTS / 2] {
            assert!(rib.remove(*host).is_some(), "{host} in round {round}");
        }
        for host in &hosts[..HOSTS / 2] {
            assert_eq!(rib.insert(*host, NextHop(2 + round)), None);
        }
    }
    assert!(rib.memory_usage() < full + full / 8, "{} and then {}", full, rib.memory_usage());
    assert_eq!(rib.max_next_hop(), NextHop(4));
    hosts.iter().for_each(|&host| assert!(rib.remove(host).is_some()));
    assert_eq!((rib.iter().count(), rib.max_next_hop()), (0, NextHop::NONE));
}
