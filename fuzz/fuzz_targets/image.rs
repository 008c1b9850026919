//! The image container: whatever the bytes are, an image is refused or every section lies inside it.
//!
//! The bytes are tried as they are, and again with length and checksum made right, to get behind these.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wirespeed_image::{Image, SectionId};

/// Where the header states the length.
const LENGTH: std::ops::Range<usize> = 40..48;

fuzz_target!(|bytes: &[u8]| {
    try_image(bytes);
    if bytes.len() >= 128 {
        let mut sealed = bytes.to_vec();
        sealed[..8].copy_from_slice(b"WIRESPD\x1a");
        sealed[8..12].copy_from_slice(&1u32.to_le_bytes());
        sealed[LENGTH].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
        wirespeed_fuzz::seal(&mut sealed);
        try_image(&sealed);
    }
});

fn try_image(bytes: &[u8]) {
    let Ok(image) = Image::from_bytes(bytes) else { return };
    for id in (0..).map(SectionId).take(image.sections()) {
        let sum: u64 = match image.width(id) {
            Some(1) => image.section::<u8>(id).iter().map(|&e| u64::from(e)).fold(0, u64::wrapping_add),
            Some(2) => image.section::<u16>(id).iter().map(|&e| u64::from(e)).fold(0, u64::wrapping_add),
            Some(4) => image.section::<u32>(id).iter().map(|&e| u64::from(e)).fold(0, u64::wrapping_add),
            _ => image.section::<u64>(id).iter().copied().fold(0, u64::wrapping_add),
        };
        std::hint::black_box((sum, image.padded(id).len()));
    }
    let mut again = Vec::new();
    image.write(&mut again).expect("a Vec takes what is written");
    assert_eq!(again, bytes, "an image is written as it was read");
}
