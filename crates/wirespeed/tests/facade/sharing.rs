//! Tables and readers that threads share.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use wirespeed::classify::{Classifier, ClassifierBuilder, Ipv4Tuple, Ipv6Tuple, OpenFlowTuple, RuleReader};
use wirespeed::names::{NameBuilder, NameReader, NameTable};
use wirespeed::{
    Builder, Error, Fleet, IpBuilder, IpReader, IpTable, Ipv4Reader, Ipv4Table, Ipv6Reader, Ipv6Table,
    Labels, NextHop, Prefix, Reader, Table, Update, V4, VrfReader, Vrfs, VrfsBuilder,
};
use wirespeed_image::rounds;

use crate::common::{check, engines, rib};

const fn shared<T: Send + Sync>() {}
const fn cloned<T: Clone>() {}

/// Every type that outlives a lookup can be shared: checked when this is compiled.
const _: () = {
    shared::<Ipv4Table>();
    shared::<Ipv6Table>();
    shared::<IpTable>();
    shared::<NameTable>();
    shared::<Classifier<Ipv4Tuple>>();
    shared::<Classifier<Ipv6Tuple>>();
    shared::<Classifier<OpenFlowTuple>>();

    shared::<Builder<V4>>();
    shared::<IpBuilder>();
    shared::<NameBuilder>();
    shared::<ClassifierBuilder<Ipv4Tuple>>();

    shared::<Vrfs>();
    shared::<VrfsBuilder>();
    shared::<VrfReader>();
    cloned::<VrfReader>();

    shared::<Ipv4Reader>();
    shared::<Ipv6Reader>();
    shared::<IpReader>();
    shared::<NameReader>();
    shared::<RuleReader<Ipv4Tuple>>();
    shared::<RuleReader<OpenFlowTuple>>();
    cloned::<Ipv4Reader>();
    cloned::<IpReader>();
    cloned::<NameReader>();
    cloned::<RuleReader<Ipv6Tuple>>();

    shared::<Labels<String>>();
    cloned::<Labels<String>>();
    shared::<Error>();
    shared::<Fleet>();
    shared::<NextHop>();
    shared::<Prefix<V4>>();
    shared::<Update<V4>>();
};

/// A reader in a `static`, as for a service whose tables live as long as it does.
static READER: OnceLock<Ipv4Reader> = OnceLock::new();

#[test]
fn a_static_reader_serves_all_threads() {
    let rib = rib::<V4>(3);
    let table = Ipv4Table::builder().rib(rib.clone()).build().unwrap();
    let reader = READER.get_or_init(|| table.reader());
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| check(reader, &rib, "a static reader"));
        }
    });
    drop(table);
    check(reader, &rib, "after its table");
}

/// One reader, many threads at once, while the table changes: no thread sees half a change.
#[test]
fn one_reader_for_all_threads_sees_whole_changes() {
    for engine in engines::<V4>() {
        let halves: [Prefix<V4>; 2] = ["10.0.0.0/9", "10.128.0.0/9"].map(|p| p.parse().unwrap());
        let both = |next_hop| halves.map(|half| Update::announce(half, NextHop(next_hop)));
        let mut table = Table::builder().engine(engine).build().unwrap();
        table.apply(&both(1)).unwrap();
        let (reader, stop): (Arc<Reader<V4>>, _) = (Arc::new(table.reader()), AtomicBool::new(false));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                let (reader, stop) = (Arc::clone(&reader), &stop);
                scope.spawn(move || {
                    let (keys, mut found, mut last) =
                        ([V4(0x0a00_0001), V4(0x0aff_0001)], [NextHop::NONE; 2], 0);
                    while !stop.load(Ordering::Relaxed) {
                        reader.lookup_batch(&keys, &mut found);
                        assert_eq!(found[0], found[1], "{engine}");
                        let guard = reader.enter();
                        // A guard within a guard, as a function that is called under one takes it.
                        assert!(reader.enter().lookup(keys[0]) >= guard.lookup(keys[1]), "{engine}");
                        assert!(found[0].0 >= last, "{engine}: a change was undone");
                        last = found[0].0;
                    }
                });
            }
            for next_hop in (2..200).step_by(rounds::stride()) {
                table.apply(&both(next_hop)).unwrap();
            }
            stop.store(true, Ordering::Relaxed);
        });
    }
}
