#![no_main]

use libfuzzer_sys::fuzz_target;
use wirespeed_classify::read::RuleFormat;

fuzz_target!(|bytes: &[u8]| {
    wirespeed_fuzz::rules(RuleFormat::NetworkPolicy, bytes);
    wirespeed_fuzz::policies(bytes);
});
