#![no_main]

use libfuzzer_sys::fuzz_target;

// Flows, groups and meters as text.
fuzz_target!(|bytes: &[u8]| wirespeed_fuzz::flow_text(bytes));
