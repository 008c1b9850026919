//! Many tables in one: both families, matched prefixes, labels, refused calls and readers.

#![allow(clippy::cast_possible_truncation)] // numbers that are drawn are small

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use wirespeed::fib::synth::rng::Rng;
use wirespeed::prelude::*;
use wirespeed::{Address, Error, Prefix, VrfId, VrfReader, VrfRoutes, VrfUpdate, Vrfs};
use wirespeed_image::{Stop, rounds};

pub(crate) fn net(text: &str) -> IpNet {
    text.parse().unwrap()
}

pub(crate) fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// The route of the longest match, by the routes alone.
fn right(model: &BTreeMap<VrfId, VrfRoutes>, vrf: VrfId, address: IpAddr) -> Option<(IpNet, NextHop)> {
    let routes = model.get(&vrf)?;
    match address {
        IpAddr::V4(address) => routes.v4.longest_match(address.into()).map(|(p, n)| (p.into(), n)),
        IpAddr::V6(address) => routes.v6.longest_match(address.into()).map(|(p, n)| (p.into(), n)),
    }
}

pub(crate) fn check(reader: &VrfReader, model: &BTreeMap<VrfId, VrfRoutes>, gives_prefixes: bool) {
    let mut rng = Rng::new(model.len() as u64);
    let mut keys: Vec<(VrfId, IpAddr)> = Vec::new();
    for (&vrf, routes) in model {
        keys.extend(routes.v4.iter().flat_map(|(p, _)| [p.address(), p.last()]).map(|a| (vrf, a.to_ip())));
        keys.extend(routes.v6.iter().flat_map(|(p, _)| [p.address(), p.last()]).map(|a| (vrf, a.to_ip())));
    }
    for _ in 0..400 {
        let vrf = VrfId(rng.below(40) as u32);
        keys.push((vrf, Ipv4Addr::from(rng.bits() as u32).into()));
        keys.push((vrf, Ipv6Addr::from(rng.bits128()).into()));
    }
    // VRFs and families are mixed.
    let mut shuffled: Vec<_> = keys.iter().map(|&key| (rng.bits(), key)).collect();
    shuffled.sort_unstable();
    let (vrfs, addresses): (Vec<_>, Vec<_>) = shuffled.into_iter().map(|(_, key)| key).unzip();
    let mut found = vec![NextHop(u32::MAX); vrfs.len()];
    reader.lookup_batch(&vrfs, &addresses, &mut found);
    let mut lengths = vec![u8::MAX; vrfs.len()];
    let mut again = found.clone();
    let prefixes = reader.lookup_prefixes(&vrfs, &addresses, &mut again, &mut lengths);
    assert_eq!(prefixes.is_ok(), gives_prefixes);
    for (at, (&vrf, &address)) in vrfs.iter().zip(&addresses).enumerate() {
        let right = right(model, vrf, address);
        assert_eq!(found[at], right.map_or(NextHop::NONE, |(_, n)| n), "{address} in {vrf}");
        assert_eq!(reader.lookup(vrf, address), found[at], "{address} in {vrf}, alone");
        if gives_prefixes {
            assert_eq!(
                (again[at], lengths[at]),
                right.map_or((NextHop::NONE, 0), |(p, n)| (n, p.prefix_len()))
            );
            assert_eq!(reader.lookup_prefix(vrf, address).unwrap(), right);
        }
    }
}

pub(crate) fn drawn(rng: &mut Rng) -> IpNet {
    if rng.below(2) == 0 {
        Prefix::<V4>::around(V4(rng.bits() as u32 & 0xc0f0_0f00), rng.below(33) as u8).into()
    } else {
        Prefix::<V6>::around(V6(rng.bits128() & (0xf00f_u128 << 100)), rng.below(129) as u8).into()
    }
}

pub(crate) fn insert(routes: &mut VrfRoutes, prefix: IpNet, next_hop: Option<NextHop>) {
    match (prefix, next_hop) {
        (IpNet::V4(prefix), Some(next_hop)) => routes.v4.insert(prefix.try_into().unwrap(), next_hop),
        (IpNet::V6(prefix), Some(next_hop)) => routes.v6.insert(prefix.try_into().unwrap(), next_hop),
        (IpNet::V4(prefix), None) => routes.v4.remove(prefix.try_into().unwrap()),
        (IpNet::V6(prefix), None) => routes.v6.remove(prefix.try_into().unwrap()),
    };
}

fn random_changes(prefix_lookups: bool) {
    let builder = Vrfs::builder();
    let mut vrfs = if prefix_lookups { builder.prefix_lookups() } else { builder }.build().unwrap();
    let (reader, mut rng) = (vrfs.reader(), Rng::new(9));
    let mut model = BTreeMap::<VrfId, VrfRoutes>::new();
    for round in 0..60 {
        let mut updates = Vec::new();
        for _ in 0..rng.below(30) {
            let vrf = VrfId(rng.below(30) as u32);
            match (rng.below(10), model.get_mut(&vrf)) {
                (0, Some(_)) => {
                    model.remove(&vrf);
                    updates.push(VrfUpdate::Remove(vrf));
                }
                (1..7, Some(routes)) => {
                    let (prefix, next_hop) = (drawn(&mut rng), NextHop(1 + rng.below(70_000) as u32));
                    insert(routes, prefix, Some(next_hop));
                    updates.push(VrfUpdate::announce(vrf, prefix, next_hop).unwrap());
                }
                (7..9, Some(routes)) => {
                    let prefix = drawn(&mut rng);
                    insert(routes, prefix, None);
                    updates.push(VrfUpdate::withdraw(vrf, prefix).unwrap());
                }
                _ => {
                    let routes = (0..rng.below(20)).map(|_| (drawn(&mut rng), NextHop(7)));
                    let routes = VrfRoutes::new(routes).unwrap();
                    model.insert(vrf, routes.clone());
                    updates.push(VrfUpdate::Set(vrf, routes.into()));
                }
            }
        }
        vrfs.apply(updates).unwrap();
        assert!(vrfs.ids().eq(model.keys().copied()) && vrfs.len() == model.len());
        if round % 6 == 0 {
            check(&reader, &model, prefix_lookups);
            for (&vrf, routes) in &model {
                let held = vrfs.routes(vrf).unwrap();
                assert!(held.v4.iter().eq(routes.v4.iter()) && held.v6.iter().eq(routes.v6.iter()), "{vrf}");
            }
        }
    }
    assert!(vrfs.routes(VrfId(99)).is_none());
}

#[test]
fn vrfs_come_and_go() {
    random_changes(false);
}

#[test]
fn vrfs_give_prefixes() {
    random_changes(true);
}

#[test]
fn a_refused_call_changes_neither_family() {
    let (one, two) = (VrfId(1), VrfId(2));
    let routes = [(net("10.0.0.0/8"), NextHop(1)), (net("2001:db8::/32"), NextHop(2))];
    let mut vrfs = Vrfs::builder().vrf(one, routes).memory_cap(64 << 10).build().unwrap();
    let (reader, model) = (vrfs.reader(), BTreeMap::from([(one, VrfRoutes::new(routes).unwrap())]));
    let many = |v6: bool| {
        (0..9_000u32).map(move |n| match v6 {
            false => Prefix::<V4>::host(V4(n.wrapping_mul(0x9e37_79b1))).into(),
            true => Prefix::<V6>::host(V6(u128::from(n.wrapping_mul(0x9e37_79b1)) << 90)).into(),
        })
    };
    let with = |prefixes: &mut dyn Iterator<Item = IpNet>| -> VrfUpdate {
        VrfUpdate::set(two, prefixes.map(|prefix| (prefix, NextHop(3)))).unwrap()
    };
    let announce = VrfUpdate::announce(one, net("10.1.0.0/16"), NextHop(4)).unwrap();
    let cases = [
        (vec![announce.clone(), with(&mut many(false))], "the compiled table of VRFs takes"),
        (vec![announce.clone(), with(&mut many(true))], "cap"),
        (vec![announce.clone(), VrfUpdate::Remove(two)], "there is no VRF 2"),
        (
            vec![announce.clone(), VrfUpdate::announce(two, net("::/0"), NextHop(1)).unwrap()],
            "there is no VRF 2",
        ),
        (
            vec![announce.clone(), VrfUpdate::announce(one, net("::/0"), NextHop::NONE).unwrap()],
            "no next hop",
        ),
        (vec![announce, VrfUpdate::Set(VrfId(1 << 20), Box::default())], "the largest is 1048575"),
    ];
    for (refused, (updates, why)) in (1..).zip(cases) {
        let error = vrfs.apply(updates).unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
        assert_eq!(vrfs.refused(), refused);
        check(&reader, &model, false);
        assert!(vrfs.ids().eq([one]));
    }
    assert!(matches!(reader.lookup_prefix(one, ip("10.0.0.1")), Err(Error::NoPrefixLookups)));
    vrfs.insert(one, net("10.1.0.0/16"), NextHop(4)).unwrap();
    assert_eq!(reader.lookup(one, ip("10.1.2.3")), NextHop(4));
    assert!(Vrfs::builder().vrf(one, [(net("::/0"), NextHop::NONE)]).build().is_err());
}

#[test]
fn labels_end_with_the_last_vrf_that_uses_them() {
    let labels = Labels::<String>::new();
    let label = |text: &str| labels.intern(text.to_owned()).unwrap();
    let (red, blue) = (VrfId(1), VrfId(2));
    let mut vrfs = Vrfs::builder()
        .labels(&labels)
        .prefix_lookups()
        .vrf(red, [(net("10.0.0.0/8"), label("a")), (net("2001:db8::/32"), label("b"))])
        .vrf(blue, [(net("10.0.0.0/8"), label("a"))])
        .build()
        .unwrap();
    let held = || {
        labels.reclaim();
        let mut held: Vec<_> = labels.enter().iter().map(|(_, text)| text.clone()).collect();
        held.sort_unstable();
        held
    };
    assert_eq!(held(), ["a", "b"]);
    vrfs.remove_vrf(red).unwrap();
    assert_eq!(held(), ["a"]);
    vrfs.insert(blue, net("10.0.0.0/8"), label("c")).unwrap();
    assert_eq!(held(), ["c"]);
    vrfs.set(blue, [(net("::/0"), label("d"))]).unwrap();
    assert_eq!(held(), ["d"]);
    // A refused call leaves no claim of its own; that of `intern` is the caller's.
    let e = label("e");
    vrfs.insert(red, net("::/0"), e).unwrap_err();
    assert_eq!(held(), ["d", "e"]);
    labels.release(e);
    assert_eq!(held(), ["d"]);
    drop(vrfs);
    assert_eq!(held(), Vec::<String>::new());
}

/// Every state that a reader sees is that after a whole call, in each family.
#[test]
fn readers_see_whole_calls() {
    let ids = [0, 5, 900].map(VrfId);
    let mut vrfs = Vrfs::builder().build().unwrap();
    let set = |n: u32| ids.map(|id| VrfUpdate::set(id, [(net("10.0.0.0/8"), NextHop(n))]).unwrap());
    vrfs.apply(set(1)).unwrap();
    let (reader, stop) = (vrfs.reader(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let _stop = Stop(&stop);
        for _ in 0..2 {
            scope.spawn(|| {
                let (addresses, mut found, mut last) = ([ip("10.1.2.3"); 3], [NextHop::NONE; 3], 0);
                while !stop.load(Ordering::Relaxed) {
                    reader.lookup_batch(&ids, &addresses, &mut found);
                    assert!(
                        found[0].0 >= last && found.iter().all(|&next_hop| next_hop == found[0]),
                        "{found:?}"
                    );
                    last = found[0].0;
                }
            });
        }
        for n in (2..2_000).step_by(rounds::stride()) {
            vrfs.apply(set(n)).unwrap();
        }
    });
}

/// A thousand VRFs of three routes take at most 32 MiB.
#[test]
fn a_thousand_vrfs_take_little() {
    let mut rng = Rng::new(1);
    let mut prefix = |len| IpNet::from(Prefix::<V4>::around(V4(rng.bits() as u32), len));
    let vrfs = (0..1_000).map(|vrf| (VrfId(vrf), [8, 16, 24].map(|len| (prefix(len), NextHop(len.into())))));
    let vrfs = vrfs.fold(Vrfs::builder(), |builder, (vrf, routes)| builder.vrf(vrf, routes)).build().unwrap();
    assert!(vrfs.len() == 1_000 && vrfs.memory_usage() < 32 << 20, "{vrfs:?}");
}
