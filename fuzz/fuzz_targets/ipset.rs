#![no_main]

use libfuzzer_sys::fuzz_target;
use wirespeed_fib::read::Format;

fuzz_target!(|bytes: &[u8]| {
    wirespeed_fuzz::table(Some(Format::Ipset), bytes);
});
