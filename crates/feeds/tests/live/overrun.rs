//! More events than the kernel's buffer holds.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::time::Duration;

use wirespeed_feeds::{Change, Reason, kernel};

use crate::follower::Follower;
use crate::namespace::Namespace;

#[test]
fn an_overrun_is_repaired() {
    if wirespeed_image::rounds::leaves_to_ci() {
        return;
    }
    let Some(namespace) = Namespace::new() else { return };
    namespace.add_link();
    let mut options = namespace.options();
    options.receive_buffer = 4_096;
    let mut follower = Follower::synced(kernel::follow(options).unwrap());
    let prefix = |n: u32| format!("100.{}.{}.{}/30", n >> 14, n >> 6 & 255, (n & 63) << 2);
    let mut commands = String::new();
    for n in 0..50_000 {
        writeln!(commands, "route add {} via 10.9.0.2", prefix(n)).unwrap();
    }
    for n in (0..50_000).step_by(2) {
        writeln!(commands, "route replace {} via 10.9.0.3", prefix(n)).unwrap();
    }
    for n in (0..50_000).step_by(3) {
        writeln!(commands, "route del {}", prefix(n)).unwrap();
    }
    for n in (0..50_000).step_by(6) {
        writeln!(commands, "route add {} via 10.9.0.4", prefix(n)).unwrap();
    }
    namespace.batch(&commands);
    let status = follower.feed.status();
    follower.until("a comparison", |follower| {
        follower.feed.status().overruns == 0 || follower.seen.contains(&Change::Resynced(Reason::Overrun))
    });
    follower.settle(Duration::from_secs(2));
    println!("{:?}", follower.feed.status());
    assert!(follower.feed.status().overruns > 0, "no overrun to repair: {status:?}");

    let fresh = Follower::synced(kernel::follow(namespace.options()).unwrap());
    assert_eq!(follower.model, fresh.model);
    let listed = namespace.ip("-4 route show table main");
    let listed: BTreeSet<String> = listed
        .lines()
        .filter_map(|line| line.split(' ').next())
        .map(|prefix| if prefix.contains('/') { prefix.to_owned() } else { format!("{prefix}/32") })
        .collect();
    let held = follower.model.routes.keys().filter(|key| !key.contains(':') && !key.contains(' '));
    assert_eq!(held.cloned().collect::<BTreeSet<_>>(), listed);
}
