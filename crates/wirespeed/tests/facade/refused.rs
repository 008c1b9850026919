//! Routes and names without a next hop, and prefixes with host bits: refused wherever they come in.

use std::fmt::Debug;

use wirespeed::names::NameRib;
use wirespeed::prelude::*;
use wirespeed::{Error, Family, Prefix, Rib, Table, VrfRoutes};

use crate::common::{Native, check};

/// Holds a table's routes and what a refusal says against what is right after so many of them.
fn refused<A: Native>(
    table: &mut Table<A>,
    change: impl FnOnce(&mut Table<A>) -> Result<(), Error>,
    why: &str,
) {
    let (before, refused) = (table.routes().to_rib(), table.refused());
    let reader = table.reader();
    let error = change(table).unwrap_err().to_string();
    assert!(error.contains(why) && !error.contains('\n'), "{error}");
    assert_eq!(table.refused(), refused + 1, "{error}");
    assert!(table.routes().iter().eq(before.iter()), "{error}");
    check(&reader, &before, &error);
}

fn table_refuses<A: Native>([net, longer]: [&str; 2])
where
    Prefix<A>: TryFrom<A::Net, Error: Into<Error>>,
{
    let (prefix, longer): (Prefix<A>, Prefix<A>) = (net.parse().unwrap(), longer.parse().unwrap());
    let none = format!("the route {longer} has no next hop");
    for prefix_lookups in [false, true] {
        let builder = Table::<A>::builder().routes([(prefix, NextHop(7))]);
        let mut table = if prefix_lookups { builder.prefix_lookups() } else { builder }.build().unwrap();
        refused(&mut table, |table| table.insert(longer, NextHop::NONE).map(drop), &none);
        let updates = [Update::announce(longer, NextHop(8)), Update::announce(longer, NextHop::NONE)];
        refused(&mut table, |table| table.apply(&updates).map(drop), &none);
        let some = (prefix, NextHop(7));
        for rib in [vec![(longer, NextHop::NONE)], vec![some, (longer, NextHop::NONE)]] {
            let rib: Rib<A> = rib.into_iter().collect();
            refused(&mut table, |table| table.replace(rib).map(drop), &none);
        }
    }
    let error = Table::<A>::builder().routes([(longer, NextHop::NONE)]).build().unwrap_err();
    assert!(error.to_string().contains(&none), "{error}");
    let rib: Rib<A> = [(longer, NextHop::NONE)].into_iter().collect();
    let error = Table::<A>::builder().rib(rib).prefix_lookups().build().unwrap_err();
    assert!(error.to_string().contains(&none), "{error}");
}

#[test]
fn a_route_to_nothing_is_refused() {
    table_refuses::<V4>(["10.0.0.0/8", "10.128.0.0/9"]);
    table_refuses::<V6>(["2001:db8::/32", "2001:db8:1::/48"]);
}

fn nets() -> [IpNet; 2] {
    ["10.0.0.0/8", "2001:db8::/32"].map(|net| net.parse().unwrap())
}

/// Prefixes with host bits, and what is said about them.
fn odd() -> [(IpNet, &'static str); 2] {
    [
        ("10.1.2.3/8", "host bits are set in 10.1.2.3/8: without them it is 10.0.0.0/8"),
        ("2001:db8::1/32", "host bits are set in 2001:db8::1/32: without them it is 2001:db8::/32"),
    ]
    .map(|(net, why)| (net.parse().unwrap(), why))
}

#[track_caller]
fn says<T: Debug, E: Into<Error>>(result: Result<T, E>, why: &str) {
    let error: Error = result.unwrap_err().into();
    assert!(error.to_string().contains(why), "{error}");
}

#[test]
fn a_table_of_both_families_refuses_them() {
    let nets = nets();
    let mut table = IpTable::builder().routes(nets.map(|net| (net, NextHop(1)))).build().unwrap();
    let [four, six] = nets.map(|net| AnyUpdate::announce(net, NextHop(5)).unwrap());
    for (at, net) in nets.into_iter().enumerate() {
        says(table.insert(net, NextHop::NONE), "no next hop");
        let none = AnyUpdate::announce(net, NextHop::NONE).unwrap();
        says(table.apply(&[four, six, none]), "no next hop");
        says(IpTable::builder().routes([(net, NextHop::NONE)]).build(), "no next hop");
        let (mut v4, mut v6) = (Rib::new(), Rib::new());
        match net {
            IpNet::V4(net) => v4.insert(net.try_into().unwrap(), NextHop::NONE),
            IpNet::V6(net) => v6.insert(net.try_into().unwrap(), NextHop::NONE),
        };
        says(table.replace(v4, v6), "no next hop");
        assert_eq!(table.refused(), 3 * (at as u64 + 1));
    }
    for (at, (net, why)) in odd().into_iter().enumerate() {
        says(table.insert(net, NextHop(2)), why);
        says(table.remove(net), why);
        says(AnyUpdate::announce(net, NextHop(2)), why);
        says(AnyUpdate::withdraw(net), why);
        says(IpTable::builder().routes([(net, NextHop(2))]).build(), why);
        says(IpTable::builder().labelled_routes(&Labels::new(), [(net, 5)]).build(), why);
        assert_eq!(table.refused(), 6 + 2 * (at as u64 + 1));
        table.insert(net.trunc(), NextHop(1)).unwrap();
    }
    assert!(table.routes().eq(nets.map(|net| (net, NextHop(1)))));
}

#[test]
fn vrfs_refuse_them() {
    let (vrf, nets) = (VrfId(3), nets());
    let mut vrfs = Vrfs::builder().vrf(vrf, nets.map(|net| (net, NextHop(1)))).build().unwrap();
    for net in nets {
        says(vrfs.insert(vrf, net, NextHop::NONE), "no next hop");
        says(vrfs.set(vrf, [(net, NextHop::NONE)]), "no next hop");
        says(vrfs.apply([VrfUpdate::announce(vrf, net, NextHop::NONE).unwrap()]), "no next hop");
        says(vrfs.apply([VrfUpdate::set(vrf, [(net, NextHop::NONE)]).unwrap()]), "no next hop");
        says(Vrfs::builder().vrf(vrf, [(net, NextHop::NONE)]).build(), "no next hop");
    }
    assert_eq!(vrfs.refused(), 8);
    for (net, why) in odd() {
        says(vrfs.insert(vrf, net, NextHop(2)), why);
        says(vrfs.remove(vrf, net), why);
        says(vrfs.set(vrf, [(net, NextHop(2))]), why);
        says(VrfUpdate::set(vrf, [(net, NextHop(2))]), why);
        says(VrfUpdate::announce(vrf, net, NextHop(2)), why);
        says(VrfUpdate::withdraw(vrf, net), why);
        says(VrfRoutes::new([(net, NextHop(2))]), why);
        says(Vrfs::builder().vrf(vrf, [(net, NextHop(2))]).build(), why);
    }
    assert_eq!(vrfs.refused(), 14);
    let routes = vrfs.routes(vrf).unwrap();
    assert_eq!([routes.v4.len(), routes.v6.len()], [1, 1]);
    assert!(routes.v4.iter().map(|(_, n)| n).chain(routes.v6.iter().map(|(_, n)| n)).eq([NextHop(1); 2]));
}

fn one_family_refuses_host_bits<A: Native>()
where
    Prefix<A>: TryFrom<A::Net, Error = wirespeed::HostBits>,
{
    let (odd, why) = odd()[usize::from(A::FAMILY == Family::V6)];
    let net = A::net(odd);
    let prefix = Prefix::<A>::try_from(A::net(odd.trunc())).unwrap();
    let mut table = Table::<A>::builder().routes([(prefix, NextHop(7))]).build().unwrap();
    refused(&mut table, |table| table.insert(net, NextHop(8)).map(drop), why);
    refused(&mut table, |table| table.remove(net).map(drop), why);
    says(Table::<A>::builder().routes([(net, NextHop(8))]).build(), why);
    says(Table::<A>::builder().labelled_routes(&Labels::new(), [(net, 5)]).build(), why);
    table.insert(A::net(odd.trunc()), NextHop(8)).unwrap();
    assert!(table.routes().iter().eq([(prefix, NextHop(8))]));
}

#[test]
fn host_bits_are_refused() {
    one_family_refuses_host_bits::<V4>();
    one_family_refuses_host_bits::<V6>();
}

#[test]
fn files_refuse_host_bits_where_they_are_not_masked() {
    use wirespeed::fib::read::{ReadOptions, read_fib_from};
    let dir = tempfile::tempdir().unwrap();
    let (path, labels) = (dir.path().join("routes"), Labels::<String>::new());
    let text = "10.0.0.0/8 a\n10.1.2.3/16 b\n";
    std::fs::write(&path, text).unwrap();
    says(Ipv4Table::builder().file(&path, &labels).build(), ":2: host bits are set");
    let mut table = Ipv4Table::builder().build().unwrap();
    says(table.load(&path, &labels), ":2: host bits are set");
    assert!(table.is_empty());
    let options = ReadOptions { mask_host_bits: true, ..ReadOptions::default() };
    let (fib, _) = read_fib_from(text.as_bytes(), "routes", &options).unwrap();
    let table = Ipv4Table::builder().fib(fib, &labels).build().unwrap();
    assert_eq!(
        table.routes().get("10.1.0.0/16".parse::<Prefix<V4>>().unwrap()),
        labels.find(&"b".to_owned())
    );
    // Networks of `ipnet` are looked up as they are inserted.
    let (net, host) = ("10.1.0.0/16".parse::<Ipv4Net>().unwrap(), "10.1.2.3/16".parse::<Ipv4Net>().unwrap());
    let routes = table.routes();
    assert_eq!((routes.get(net), routes.get(host)), (labels.find(&"b".to_owned()), None));
    assert_eq!((routes.covering(net).count(), routes.covered(net).count()), (2, 1));
    assert_eq!((routes.cover(net).map(|(cover, _)| cover.len()), routes.cover(host)), (Some(8), None));
    assert_eq!((routes.covering(host).count(), routes.covered(host).count()), (0, 0));
}

/// Whoever prints an error and its causes reads each once.
#[test]
fn no_cause_is_told_twice() {
    fn check(error: impl std::error::Error) {
        let (text, mut cause) = (error.to_string(), error.source());
        while let Some(next) = cause {
            assert!(!text.contains(&next.to_string()), "{text}: {next}");
            cause = next.source();
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let (path, labels) = (dir.path().join("none"), Labels::<String>::new());
    let refused = |path: &std::path::Path| {
        check(Ipv4Table::builder().file(path, &labels).build().unwrap_err());
        check(NameTable::builder().file(path, &labels).build().unwrap_err());
        check(Classifier::<Ipv4Tuple>::builder().file(path, &labels).build().unwrap_err());
        check(Ipv4Table::open(path).unwrap_err());
        check(Ipv4Table::builder().build().unwrap().load(path, &labels).unwrap_err());
    };
    refused(&path);
    std::fs::write(&path, "10.0.0.1/8 a").unwrap();
    refused(&path);
    let route = [("10.0.0.0/8".parse::<Ipv4Net>().unwrap(), NextHop(u32::MAX))];
    let error = Ipv4Table::builder().routes(route).build().unwrap_err();
    assert!(matches!(error, Error::Build { .. }), "{error}");
    check(error);
}

#[test]
fn a_name_without_a_result_is_refused() {
    let name = NameBuf::new("/com/parc").unwrap();
    let names: NameRib = [(&name, 1)].into_iter().collect();
    let mut table = NameTable::builder().rib(names).build().unwrap();
    says(table.insert(&name, NextHop::NONE), "the name /com/parc has no result");
    let updates = [NameUpdate::remove(&name), NameUpdate::insert(&name, NextHop::NONE)];
    says(table.apply(&updates), "the name /com/parc has no result");
    says(NameTable::builder().names([(&name, NextHop::NONE)]).build(), "the name /com/parc has no result");
    assert_eq!((table.refused(), table.len()), (2, 1));
    assert_eq!(table.reader().lookup(&name), NextHop(1));
}
