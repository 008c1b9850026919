//! The Public Suffix List: see `list` of the crate.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wirespeed_namelookup::read::lists::ListFormat;

fuzz_target!(|bytes: &[u8]| wirespeed_fuzz::list(ListFormat::Psl, bytes));
