//! Recognition by content: nothing panics, and what is recognised is read as that or refused.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| wirespeed_fuzz::content(bytes));
