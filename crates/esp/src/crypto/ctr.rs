//! AES-128-CTR for ESP (RFC 3686).

use aes::Aes128;
use aes::cipher::{InnerIvInit, KeyInit, StreamCipher};
use ctr::{CtrCore, flavors};

/// A key of AES-128-CTR. It is overwritten when it is dropped.
pub(crate) struct Ctr(Box<Aes128>);

impl Ctr {
    /// The key of these bytes.
    pub(crate) fn new(key: &[u8; 16]) -> Self {
        Self(Box::new(Aes128::new(key.into())))
    }

    /// Encrypts or decrypts a text in place. The counter block is nonce, initialisation vector and 1 (RFC
    /// 3686, 4).
    pub(crate) fn apply(&self, nonce: [u8; 4], vector: [u8; 8], text: &mut [u8]) {
        let mut block = [0; 16];
        block[..4].copy_from_slice(&nonce);
        block[4..12].copy_from_slice(&vector);
        block[15] = 1;
        let core = CtrCore::<_, flavors::Ctr32BE>::inner_iv_init(&*self.0, &block.into());
        ctr::cipher::StreamCipherCoreWrapper::from_core(core).apply_keystream(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Secret;

    fn bytes(hex: &str) -> Vec<u8> {
        Secret::from_hex(&format!("0x{hex}")).unwrap().bytes().to_vec()
    }

    /// Vectors 1 to 3 of RFC 3686, 6.
    #[test]
    fn texts_are_those_of_rfc_3686() {
        let counting: String = (0..36).map(|byte| format!("{byte:02x}")).collect();
        let cases = [
            (
                "ae6852f8121067cc4bf7a5765577f39e",
                "00000030",
                "0000000000000000",
                "53696e676c6520626c6f636b206d7367",
                "e4095d4fb7a7b3792d6175a3261311b8",
            ),
            (
                "7e24067817fae0d743d6ce1f32539163",
                "006cb6db",
                "c0543b59da48d90b",
                &counting[..64],
                "5104a106168a72d9790d41ee8edad388eb2e1efc46da57c8fce630df9141be28",
            ),
            (
                "7691be035e5020a8ac6e618529f9a0dc",
                "00e0017b",
                "27777f3f4a1786f0",
                &counting,
                "c1cf48a89f2ffdd9cf4652e9efdb72d74540a42bde6d7836d59a5ceaaef3105325b2072f",
            ),
        ];
        for (key, nonce, vector, text, cipher) in cases {
            let ctr = Ctr::new(&bytes(key).try_into().unwrap());
            let mut buffer = bytes(text);
            ctr.apply(bytes(nonce).try_into().unwrap(), bytes(vector).try_into().unwrap(), &mut buffer);
            assert_eq!(buffer, bytes(cipher));
        }
    }
}
