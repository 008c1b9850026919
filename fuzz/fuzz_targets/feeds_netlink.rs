#![no_main]

use libfuzzer_sys::fuzz_target;

// Datagrams of the kernel.
fuzz_target!(|bytes: &[u8]| wirespeed_fuzz::feed(wirespeed_feeds::Recorded::netlink(1_000), bytes));
