//! Next hops past what an element holds are refused with both numbers; up to there they are looked up.

use wirespeed_fib::{
    Address, BuildError, BuildOptions, Engine, LiveTable, Lookup, NextHop, Prefix, Rib, Update, V4, V6,
};
use wirespeed_fold::{FoldHot, FoldV4, FoldV6};

fn limit<A: Address, E: Engine<A>>(limit: u32) {
    let rib = |next_hop| -> Rib<A> { [(Prefix::DEFAULT, NextHop(next_hop))].into_iter().collect() };
    let (_, table) = E::build(&rib(limit), &BuildOptions::default()).expect("the limit itself fits");
    assert_eq!(table.lookup(A::MAX), NextHop(limit));
    match E::build(&rib(limit + 1), &BuildOptions::default()) {
        Err(BuildError::Limit { what: "next hops", limit: stated, found, .. }) => {
            assert_eq!((stated, found), (u64::from(limit), u64::from(limit) + 1));
        }
        other => panic!("over the limit: {:?}", other.map(|_| ())),
    }
    // An update past it is an error, too, and nothing has changed.
    let mut live =
        LiveTable::<A, E>::new(rib(limit), BuildOptions::default()).expect("a valid table is built");
    let past = Update::announce(Prefix::around(A::MIN, 1), NextHop(limit + 1));
    assert!(live.apply([&past]).is_err());
    assert!(live.apply([&past]).is_err() && live.model().len() == 1);
    assert_eq!(live.reader().enter().lookup(A::MIN), NextHop(limit));
    live.apply([&Update::announce(Prefix::around(A::MIN, 1), NextHop(limit))])
        .expect("the limit itself fits");
    assert_eq!(live.rebuilds(), 1);
}

#[test]
fn v4() {
    limit::<V4, FoldV4>(u32::MAX - 1);
}

#[test]
fn v6() {
    limit::<V6, FoldV6>((1 << 30) - 1);
}

#[test]
fn hot() {
    limit::<V4, FoldHot>((1 << 30) - 1);
}
