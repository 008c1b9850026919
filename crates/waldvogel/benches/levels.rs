//! Rates with each vector level of this CPU, in turns, on real tables: random keys and keys by prefix.
//!
//! `cargo bench -p wirespeed-waldvogel --bench levels -- FIB…`

use wirespeed_fib::conformance::compare_levels;
use wirespeed_fib::{V4, V6};
use wirespeed_waldvogel::Waldvogel;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    compare_levels::<V4, Waldvogel<V4>>(std::env::args().skip(1))?;
    compare_levels::<V6, Waldvogel<V6>>(std::env::args().skip(1))
}
