//! A forest of one table against the suite that every IP engine passes, and forests of other strides.

mod fibs;

use wirespeed_fib::conformance::{Expected, check, scattered, tables};
use wirespeed_fib::{Address, BuildOptions, Engine, Rib, Strides, V4, V6, oracle};
use wirespeed_forest::ForestOf;

wirespeed_fib::conformance!(forest_v4, wirespeed_fib::V4, wirespeed_forest::ForestOf<wirespeed_fib::V4>);
wirespeed_fib::conformance!(forest_v6, wirespeed_fib::V6, wirespeed_forest::ForestOf<wirespeed_fib::V6>);

fn of_both_strides<A: Address>() {
    let given = |strides| BuildOptions { strides: Strides::Given(strides), ..BuildOptions::default() };
    for (name, rib) in tables::hand_picked::<A>() {
        let mut addresses = oracle::boundaries(rib.iter().map(|(prefix, _)| prefix));
        addresses.extend(scattered::<A>(300));
        for stride in [4, 8u8] {
            let options = given(vec![stride; (A::BITS / stride).into()]);
            let (_, table) = ForestOf::<A>::build(&rib, &options).expect("a valid table is built");
            assert_eq!(table.stride(), stride);
            check(&table, &Expected::of(&rib), &addresses, &format!("{name}, stride {stride}"));
        }
    }
    assert!(ForestOf::<A>::build(&Rib::new(), &given(vec![3; 9])).is_err());
}

#[test]
fn a_forest_has_one_of_two_strides() {
    of_both_strides::<V4>();
    of_both_strides::<V6>();
}
