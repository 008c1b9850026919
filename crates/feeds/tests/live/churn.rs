//! Random changes of every kind: the followed state is the one that a fresh dump gives.

use std::fmt::Write;
use std::time::Duration;

use wirespeed_feeds::kernel;

use crate::follower::Follower;
use crate::namespace::Namespace;

/// A small generator: the tests need no quality, but the same sequence each time.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// A change of a route of one of a few prefixes, metrics, gateways and next-hop objects.
fn change(random: &mut Random) -> String {
    let is_v6 = random.below(2) == 1;
    let verb = ["add", "add", "append", "prepend", "replace", "del", "del"]
        [usize::try_from(random.below(7)).unwrap()];
    let (family, prefix, gateway) = if is_v6 {
        ("-6", format!("2001:db8:{}::/48", random.below(3)), "2001:db8:9::")
    } else {
        ("-4", format!("192.0.{}.0/24", random.below(3)), "10.9.0.")
    };
    let mut hop = || format!("{gateway}{}", 2 + random.below(3));
    let (one, two) = (hop(), hop());
    let metric = 10 * (1 + random.below(2));
    let path = match random.below(8) {
        0 => format!("nexthop via {one} weight 2 nexthop via {two}"),
        1 => "dev a0".to_owned(),
        2 if !is_v6 => "nhid 1".to_owned(),
        3 if is_v6 => "nhid 2".to_owned(),
        _ => format!("via {one}"),
    };
    // Among IPv6 routes of one metric, with gateways and without, the kernel takes turns. Here they are
    // apart.
    let is_alone = is_v6 && (path.starts_with("dev") || path.starts_with("nhid"));
    let metric = if is_alone { metric + 100 } else { metric };
    format!("{family} route {verb} {prefix} metric {metric} {path}\n")
}

#[test]
fn random_changes_lead_to_what_a_dump_tells() {
    let Some(namespace) = Namespace::new() else { return };
    namespace.add_link();
    let _ = namespace.try_ip("nexthop add id 1 via 10.9.0.9 dev a0");
    let _ = namespace.try_ip("-6 nexthop add id 2 via 2001:db8:9::9 dev a0");
    let mut follower = Follower::synced(kernel::follow(namespace.options()).unwrap());
    let mut random = Random(1);
    for round in 0..wirespeed_image::rounds::cases(60) {
        let mut commands = String::new();
        for _ in 0..40 {
            // `ip -batch` takes no family before the object: it goes by the address.
            write!(commands, "{}", change(&mut random).trim_start_matches("-4 ").trim_start_matches("-6 "))
                .unwrap();
        }
        namespace.batch(&commands);
        follower.settle(Duration::from_millis(150));
        let mut fresh = Follower::synced(kernel::follow(namespace.options()).unwrap());
        // Link-local addresses come when the kernel has made sure that nobody else has them.
        for model in [&mut follower.model, &mut fresh.model] {
            model.routes.retain(|key, _| !key.contains("fe80"));
        }
        assert_eq!(follower.model, fresh.model, "after round {round}: {commands}");
    }
    let status = follower.feed.status();
    assert_eq!((status.overruns, status.resyncs), (0, 0), "nothing but events led there");
}
