//! [`Aead`]: what a library has to do.

/// Bytes of a tag.
pub(crate) const TAG: usize = 16;

/// A cipher that authenticates what it encrypts, and some bytes beside it.
pub(crate) trait Aead: Send + Sync {
    /// Encrypts a text in place, and writes the tag behind it: the last [`TAG`] bytes are the tag's.
    fn seal(&self, nonce: [u8; 12], beside: &[u8], text_and_tag: &mut [u8]);

    /// Decrypts a text in place. Returns whether the tag behind it is right. If not, the text is overwritten.
    fn open(&self, nonce: [u8; 12], beside: &[u8], text_and_tag: &mut [u8]) -> bool;
}
