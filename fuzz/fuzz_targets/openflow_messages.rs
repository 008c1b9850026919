#![no_main]

use libfuzzer_sys::fuzz_target;

// A controller's bytes, in two parts. What the switch answers has to be whole messages.
fuzz_target!(|bytes: &[u8]| wirespeed_fuzz::openflow::session(bytes));
