//! Rates with each vector level of this CPU, in turns, on real tables: random keys and keys by prefix.
//!
//! `cargo bench -p wirespeed-rank --bench levels -- FIB…`

use wirespeed_fib::V4;
use wirespeed_fib::conformance::compare_levels;
use wirespeed_rank::Rank;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    compare_levels::<V4, Rank>(std::env::args().skip(1))
}
