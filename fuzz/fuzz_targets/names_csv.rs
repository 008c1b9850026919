//! Tables of names in CSV: nothing panics, strict and lenient reading agree, and merged with themselves they
//! are the same.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| wirespeed_fuzz::names_csv(bytes));
