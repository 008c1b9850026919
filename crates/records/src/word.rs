//! Eight bytes in a word, the first one lowest.

/// A word whose bytes are all this one.
pub(crate) const fn each(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

/// The bytes that are equal to one: their highest bits.
pub(crate) const fn equal(word: u64, byte: u8) -> u64 {
    let differs = word ^ each(byte);
    !(((differs & each(0x7f)) + each(0x7f)) | differs) & each(0x80)
}

/// The bytes that are less than one, which is at most 0x80: their highest bits.
pub(crate) const fn less(word: u64, byte: u8) -> u64 {
    !((word | each(0x80)) - each(byte)) & !word & each(0x80)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_beside_every_other() {
        for (one, other) in (0..=255).flat_map(|one| (0..=255).map(move |other| (one, other))) {
            let bytes = [one, other, other, one, 0, one, 0xff, other];
            let word = u64::from_le_bytes(bytes);
            let flags = |is: &dyn Fn(u8) -> bool| {
                u64::from_le_bytes(bytes.map(|byte| if is(byte) { 0x80 } else { 0 }))
            };
            assert_eq!(equal(word, one), flags(&|byte| byte == one));
            for limit in [0, 1, 0x20, 0x7f, 0x80] {
                assert_eq!(less(word, limit), flags(&|byte| byte < limit));
            }
        }
    }
}
