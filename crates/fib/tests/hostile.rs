//! Tables of any routes as MaxMind DB files. The fuzz target makes the same checks.

#![cfg(feature = "mmdb")]

mod mmdb_written;

use proptest::prelude::*;
use wirespeed_fib::{Prefix, V4, V6};

/// A line with a route, of few addresses, so that many routes lie in others.
fn line() -> impl Strategy<Value = String> {
    let v4 = (any::<u32>(), 0_u8..=32)
        .prop_map(|(bits, len)| Prefix::around(V4(bits & 0xc000_0003), len).to_string());
    let v6 = (any::<u128>(), 0_u8..=128).prop_map(|(bits, len)| {
        // Among them those of IPv4.
        Prefix::around(V6(bits & (0xc000_u128 << 112 | 0xc000_0003)), len).to_string()
    });
    let text = prop::sample::select(vec!["a", "b", "asn=1", "asn=1,country.iso_code=DE", "c.d=x,c.e=y", "7"]);
    (prop_oneof![v4, v6], text).prop_map(|(prefix, text)| format!("{prefix} {text}\n"))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_what_the_routes_say(lines in prop::collection::vec(line(), 0..40)) {
        mmdb_written::check(lines.concat().as_bytes());
    }
}
