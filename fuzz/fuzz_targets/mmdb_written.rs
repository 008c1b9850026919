#![no_main]

use libfuzzer_sys::fuzz_target;

// Routes as lines. The file that is made of them answers as they do.
fuzz_target!(|bytes: &[u8]| wirespeed_fuzz::mmdb_written(bytes));
