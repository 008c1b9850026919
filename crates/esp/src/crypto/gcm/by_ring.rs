//! AES-GCM by ring. ring does not overwrite its keys, so this does.

#![allow(unsafe_code)] // the bytes of a key are overwritten where they lie

use std::mem::MaybeUninit;

use ring::aead::{AES_128_GCM, AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};

use super::aead::{Aead, TAG};

/// A key of AES-GCM, boxed so that it does not move and leave copies of itself behind.
pub(crate) struct Gcm(Box<MaybeUninit<LessSafeKey>>);

impl Gcm {
    /// A key of 16 or 32 bytes.
    ///
    /// Panics if it is of another length.
    pub(crate) fn new(key: &[u8]) -> Self {
        let algorithm = if key.len() == 16 { &AES_128_GCM } else { &AES_256_GCM };
        let key = UnboundKey::new(algorithm, key).expect("a key of 16 or 32 bytes");
        Self(Box::new(MaybeUninit::new(LessSafeKey::new(key))))
    }

    fn key(&self) -> &LessSafeKey {
        // SAFETY: `new` has written it, and only `drop` overwrites it.
        unsafe { self.0.assume_init_ref() }
    }
}

impl Drop for Gcm {
    fn drop(&mut self) {
        // SAFETY: the pointer is the box's, so the bytes are there for writing. 1. Nobody reads them as a key
        // afterwards: the value is going away. 2. The key owns no memory and no other resource, so it needs
        // no drop of its own.
        unsafe { zeroize::zeroize_flat_type(&raw mut *self.0) }
    }
}

impl Aead for Gcm {
    fn seal(&self, nonce: [u8; 12], beside: &[u8], text_and_tag: &mut [u8]) {
        let (text, tag) = text_and_tag.split_at_mut(text_and_tag.len() - TAG);
        let nonce = Nonce::assume_unique_for_key(nonce);
        let made = self.key().seal_in_place_separate_tag(nonce, Aad::from(beside), text);
        tag.copy_from_slice(made.expect("a packet is shorter than the cipher's limit").as_ref());
    }

    fn open(&self, nonce: [u8; 12], beside: &[u8], text_and_tag: &mut [u8]) -> bool {
        let nonce = Nonce::assume_unique_for_key(nonce);
        let is_right = self.key().open_in_place(nonce, Aad::from(beside), text_and_tag).is_ok();
        if !is_right {
            text_and_tag.fill(0);
        }
        is_right
    }
}
