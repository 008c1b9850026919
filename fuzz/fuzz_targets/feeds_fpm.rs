#![no_main]

use libfuzzer_sys::fuzz_target;

// FRR's side of a connection of FPM.
fuzz_target!(|bytes: &[u8]| wirespeed_fuzz::feed(
    wirespeed_feeds::Recorded::fpm(wirespeed_feeds::fpm::Options::default()),
    bytes
));
