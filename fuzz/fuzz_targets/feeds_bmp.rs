#![no_main]

use libfuzzer_sys::fuzz_target;

// A router's side of a connection of BMP.
fuzz_target!(|bytes: &[u8]| wirespeed_fuzz::feed(
    wirespeed_feeds::Recorded::bmp(wirespeed_feeds::bmp::Options::default()),
    bytes
));
