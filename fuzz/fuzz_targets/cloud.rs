#![no_main]

use libfuzzer_sys::fuzz_target;
use wirespeed_fib::read::Format;

fuzz_target!(|bytes: &[u8]| {
    for format in [Format::Aws, Format::Gcp, Format::Azure, Format::Oracle, Format::Cloudflare] {
        wirespeed_fuzz::table(Some(format), bytes);
    }
});
