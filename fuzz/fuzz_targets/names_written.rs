//! Lists of domains of every format written in every other: what is written answers as what was read.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| wirespeed_fuzz::lists_written(bytes));
