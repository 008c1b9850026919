#![no_main]

use libfuzzer_sys::fuzz_target;

// The format recognised, the compression too.
fuzz_target!(|bytes: &[u8]| {
    wirespeed_fuzz::table(None, bytes);
    wirespeed_fuzz::updates(None, bytes);
});
