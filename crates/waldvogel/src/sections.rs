//! The sections of an image, in order.

use wirespeed_image::SectionId;

/// Values by the first bits.
pub const ROOT: SectionId = SectionId(0);
/// Values by the next bits.
pub const CHUNKS: SectionId = SectionId(1);
/// The lengths that records are for.
pub const ROPES: SectionId = SectionId(2);
/// The records: what to do after a try in vain.
pub const MISSES: SectionId = SectionId(3);
/// Keys of up to 48 bits.
pub const SLOTS: SectionId = SectionId(4);
/// The groups of these keys.
pub const PILOTS: SectionId = SectionId(5);
/// Longer keys.
pub const WIDE: SectionId = SectionId(6);
/// The seed, which says where a key is. Stays as it was built.
pub const SEED: SectionId = SectionId(7);
