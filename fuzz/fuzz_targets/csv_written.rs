//! Routes written as CSV and as sets, and payloads of the RPKI: what is written reads back equal.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| wirespeed_fuzz::tables_written(bytes));
