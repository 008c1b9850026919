//! Both families in one table.

use proptest::prelude::*;
use std::collections::HashSet;
use wirespeed::fib::synth::rng::Rng;
use wirespeed::prelude::*;
use wirespeed::{Address, Rib};

use crate::common::{addresses, answers, rib};

fn table(v4: &Rib<V4>, v6: &Rib<V6>) -> IpTable {
    let routes = v4.iter().map(|(prefix, n)| (IpNet::from(prefix), n));
    IpTable::builder().routes(routes.chain(v6.iter().map(|(prefix, n)| (prefix.into(), n)))).build().unwrap()
}

fn right(v4: &Rib<V4>, v6: &Rib<V6>) -> Vec<(IpAddr, NextHop)> {
    fn of<A: Address>(rib: &Rib<A>) -> Vec<(IpAddr, NextHop)> {
        let addresses = addresses(rib);
        addresses.iter().map(|address| address.to_ip()).zip(answers(rib, &addresses)).collect()
    }
    let mut right = [of(v4), of(v6)].concat();
    Rng::new(9).shuffle(&mut right);
    right
}

fn check(reader: &IpReader, right: &[(IpAddr, NextHop)]) {
    let guard = reader.enter();
    for &(address, right) in right {
        assert_eq!(reader.lookup(address), right, "{address}");
        assert_eq!(guard.lookup(address), right, "{address}");
    }
    for len in [0, 1, 511, 513, right.len()] {
        let (addresses, right): (Vec<_>, Vec<_>) = right[..len].iter().copied().unzip();
        let mut found = vec![NextHop(u32::MAX); len];
        reader.lookup_batch(&addresses, &mut found);
        assert_eq!(found, right);
        found.fill(NextHop(u32::MAX));
        guard.lookup_batch(&addresses, &mut found);
        assert_eq!(found, right);
    }
}

#[test]
fn addresses_of_both_families_in_one_batch() {
    let (mut v4, mut v6) = (rib(31), rib(32));
    let mut table = table(&v4, &v6);
    assert_eq!(table.len(), v4.len() + v6.len());
    let reader = table.reader();
    check(&reader, &right(&v4, &v6));

    let updates: Vec<AnyUpdate> = v4
        .iter()
        .step_by(3)
        .map(|(prefix, _)| AnyUpdate::withdraw(prefix).unwrap())
        .chain(v6.iter().step_by(2).map(|(prefix, n)| AnyUpdate::announce(prefix, NextHop(n.0 + 1)).unwrap()))
        .collect();
    let applied = table.apply(&updates).unwrap();
    assert_eq!(applied.changes, updates.len());
    for update in &updates {
        match update {
            AnyUpdate::V4(update) => v4.apply(update),
            AnyUpdate::V6(update) => v6.apply(update),
        };
    }
    check(&reader, &right(&v4, &v6));
    check(&reader.clone(), &right(&v4, &v6));
}

#[test]
fn one_family_alone_and_neither() {
    let (v4, v6) = (rib(33), rib(34));
    check(&table(&v4, &Rib::new()).reader(), &right(&v4, &Rib::new()));
    check(&table(&Rib::new(), &v6).reader(), &right(&Rib::new(), &v6));
    let empty = table(&Rib::new(), &Rib::new());
    assert!(empty.is_empty());
    assert_eq!(empty.reader().lookup("::1".parse().unwrap()), NextHop::NONE);
}

#[test]
fn a_mapped_address_is_ipv6_until_it_is_made_canonical() {
    let net = |text: &str| text.parse::<IpNet>().unwrap();
    let mut table = IpTable::builder().routes([(net("192.0.2.0/24"), NextHop(4))]).build().unwrap();
    let reader = table.reader();
    let mapped: IpAddr = "::ffff:192.0.2.1".parse().unwrap();
    assert!(mapped.is_ipv6());
    assert_eq!(reader.lookup(mapped), NextHop::NONE);
    assert_eq!(reader.lookup(mapped.to_canonical()), NextHop(4));

    table.insert(net("::ffff:0:0/96"), NextHop(6)).unwrap();
    let mut found = [NextHop::NONE; 2];
    reader.lookup_batch(&[mapped, mapped.to_canonical()], &mut found);
    assert_eq!(found, [NextHop(6), NextHop(4)]);
    table.remove(net("::ffff:0:0/96")).unwrap();
    assert_eq!(reader.lookup(mapped), NextHop::NONE);
}

#[test]
#[should_panic(expected = "a result for each address")]
fn a_batch_needs_a_place_for_each_result() {
    table(&Rib::new(), &Rib::new()).reader().lookup_batch(&[IpAddr::from([1, 2, 3, 4])], &mut []);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// Labels, both families, random histories: what a reader resolves is what a map of prefixes to labels
    /// says.
    #[test]
    fn labels_of_random_histories(steps in proptest::collection::vec(
        (any::<bool>(), 0u8..4, 0u8..=32, proptest::option::weighted(0.7, 0u16..40)), 1..80))
    {
        let labels = Labels::new();
        let mut table = IpTable::builder().labels(&labels).build().unwrap();
        let reader = table.reader();
        let mut model: Vec<(IpNet, u16)> = Vec::new();
        for (six, octet, len, label) in steps {
            let net: IpNet = match six {
                true => Ipv6Net::new_assert(Ipv6Addr::from([octet; 16]), len * 4).trunc().into(),
                false => Ipv4Net::new_assert(Ipv4Addr::from([octet; 4]), len).trunc().into(),
            };
            model.retain(|&(known, _)| known != net);
            match label {
                Some(label) => {
                    model.push((net, label));
                    table.insert(net, labels.intern(label).unwrap()).unwrap();
                }
                None => {
                    table.remove(net).unwrap();
                }
            }
            prop_assert_eq!(table.len(), model.len());
            let used: HashSet<u16> = model.iter().map(|&(_, label)| label).collect();
            prop_assert_eq!(labels.len(), used.len());
            let known = labels.enter();
            for octet in 0..4 {
                for address in [IpAddr::from([octet; 4]), IpAddr::from([octet; 16])] {
                    let longest = model.iter().filter(|(net, _)| net.contains(&address));
                    let right = longest.max_by_key(|(net, _)| net.prefix_len()).map(|(_, label)| label);
                    prop_assert_eq!(known.get(reader.lookup(address)), right, "{}", address);
                }
            }
        }
    }
}
