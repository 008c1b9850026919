#![no_main]

use libfuzzer_sys::fuzz_target;

// Sets, a line `--`, and rules that name the sets.
fuzz_target!(|bytes: &[u8]| wirespeed_fuzz::rules_beside_sets(bytes));
