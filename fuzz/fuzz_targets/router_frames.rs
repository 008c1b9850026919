#![no_main]

use libfuzzer_sys::fuzz_target;

// Frames, each behind its length in two bytes.
fuzz_target!(|bytes: &[u8]| wirespeed_fuzz::frames(bytes));
