//! AES-GCM by aws-lc-rs, which overwrites its keys when they are dropped.

use aws_lc_rs::aead::{AES_128_GCM, AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};

use super::aead::{Aead, TAG};

/// A key of AES-GCM.
pub(crate) struct Gcm(LessSafeKey);

impl Gcm {
    /// A key of 16 or 32 bytes.
    ///
    /// Panics if it is of another length.
    pub(crate) fn new(key: &[u8]) -> Self {
        let algorithm = if key.len() == 16 { &AES_128_GCM } else { &AES_256_GCM };
        Self(LessSafeKey::new(UnboundKey::new(algorithm, key).expect("a key of 16 or 32 bytes")))
    }
}

impl Aead for Gcm {
    fn seal(&self, nonce: [u8; 12], beside: &[u8], text_and_tag: &mut [u8]) {
        let (text, tag) = text_and_tag.split_at_mut(text_and_tag.len() - TAG);
        let nonce = Nonce::assume_unique_for_key(nonce);
        let made = self.0.seal_in_place_separate_tag(nonce, Aad::from(beside), text);
        tag.copy_from_slice(made.expect("a packet is shorter than the cipher's limit").as_ref());
    }

    fn open(&self, nonce: [u8; 12], beside: &[u8], text_and_tag: &mut [u8]) -> bool {
        let nonce = Nonce::assume_unique_for_key(nonce);
        let is_right = self.0.open_in_place(nonce, Aad::from(beside), text_and_tag).is_ok();
        if !is_right {
            text_and_tag.fill(0);
        }
        is_right
    }
}
