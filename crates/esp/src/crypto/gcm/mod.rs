//! [`Aead`]: AES-GCM by a library, ring or aws-lc-rs, behind a small trait.
//!
//! Sealing 1,408 bytes took ring 0.17 370 ns and aws-lc-rs 1.19 712 ns on an AMD EPYC with VAES and without
//! AVX-512. With AVX-512 (Zen 5) aws-lc-rs was the faster one for nearly all sizes, by up to a fifth
//! (`benches/record/amd-epyc-26-2-2-cores/2026-11-29-esp-core.txt`). ring compiles in 12 s of CPU time and
//! aws-lc-rs in 48 s, so the feature `aws-lc` is off by default. `wirespeed-router` and `lookupctl` pass it
//! on.

mod aead;
#[cfg(not(feature = "aws-lc"))]
mod by_ring;

#[cfg(feature = "aws-lc")]
mod by_aws_lc;

pub(crate) use aead::{Aead, TAG};
#[cfg(feature = "aws-lc")]
pub(super) use by_aws_lc::Gcm;
#[cfg(not(feature = "aws-lc"))]
pub(super) use by_ring::Gcm;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Secret;

    fn bytes(hex: &str) -> Vec<u8> {
        Secret::from_hex(&format!("0x{hex}")).unwrap().bytes().to_vec()
    }

    /// Cases of "The Galois/Counter Mode of Operation" (McGrew, Viega), appendix B: 2, 3, 4, 14 and 16.
    #[test]
    fn texts_are_those_of_the_specification() {
        let text = "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525\
                    b16aedf5aa0de657ba637b391aafd255";
        let beside = "feedfacedeadbeeffeedfacedeadbeefabaddad2";
        let key = "feffe9928665731c6d6a8f9467308308";
        let short = &text[..120];
        let cases = [
            ("00".repeat(16), "00".repeat(12), String::new(), "00".repeat(16), "0388dace60b6a392f328c2b971b2fe78".to_owned(), "ab6e47d42cec13bdf53a67b21257bddf"),
            (key.to_owned(), "cafebabefacedbaddecaf888".to_owned(), String::new(), text.to_owned(),
             "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091473f5985".to_owned(),
             "4d5c2af327cd64a62cf35abd2ba6fab4"),
            (key.to_owned(), "cafebabefacedbaddecaf888".to_owned(), beside.to_owned(), short.to_owned(),
             "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091".to_owned(),
             "5bc94fbc3221a5db94fae95ae7121a47"),
            ("00".repeat(32), "00".repeat(12), String::new(), "00".repeat(16), "cea7403d4d606b6e074ec5d3baf39d18".to_owned(), "d0d1c8a799996bf0265b98b5d48ab919"),
            (key.repeat(2), "cafebabefacedbaddecaf888".to_owned(), beside.to_owned(), short.to_owned(),
             "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662".to_owned(),
             "76fc6ece0f4e1768cddf8853bb2d551b"),
        ];
        for (key, nonce, beside, text, cipher, tag) in cases {
            let gcm = Gcm::new(&bytes(&key));
            let nonce: [u8; 12] = bytes(&nonce).try_into().unwrap();
            let mut buffer = bytes(&text);
            buffer.extend([0; TAG]);
            gcm.seal(nonce, &bytes(&beside), &mut buffer);
            assert_eq!(buffer, [bytes(&cipher), bytes(tag)].concat());
            for at in 0..buffer.len() {
                let mut wrong = buffer.clone();
                wrong[at] ^= 0x40;
                assert!(!gcm.open(nonce, &bytes(&beside), &mut wrong), "byte {at}");
                assert!(
                    wrong[..text.len() / 2].iter().all(|&byte| byte == 0),
                    "the text of a wrong tag stays"
                );
            }
            assert!(gcm.open(nonce, &bytes(&beside), &mut buffer));
            assert_eq!(buffer[..text.len() / 2], bytes(&text));
        }
    }
}
