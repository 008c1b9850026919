//! Traces in every format (text, packed, captures), for a table of either family: nothing panics, and what is
//! read, written as text, reads back equal.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wirespeed_fib::trace::capture::from_capture;
use wirespeed_fib::trace::{from_packed, from_text, write_packed, write_text};
use wirespeed_fib::{Address, V4, V6};

fuzz_target!(|bytes: &[u8]| {
    family::<V4>(bytes);
    family::<V6>(bytes);
});

fn family<A: Address>(bytes: &[u8]) {
    for trace in [from_text::<A>(bytes, "fuzz"), from_packed(bytes, "fuzz"), from_capture(bytes, "fuzz")] {
        match trace {
            Ok(trace) => {
                let mut text = Vec::new();
                write_text(&trace.keys, &mut text).expect("a Vec takes what is written");
                if !trace.keys.is_empty() {
                    assert_eq!(from_text::<A>(&text[..], "again").expect("it reads back").keys, trace.keys);
                    let mut packed = Vec::new();
                    write_packed(&trace.keys, &mut packed).expect("a Vec takes what is written");
                    assert_eq!(
                        from_packed::<A>(&packed[..], "again").expect("it reads back").keys,
                        trace.keys
                    );
                }
            }
            Err(error) => drop(error.to_string()),
        }
    }
}
