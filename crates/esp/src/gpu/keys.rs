//! Keys as the kernels take them: round keys, and the powers of the hash key or the states of the HMAC.

use aes::cipher::{BlockEncrypt, KeyInit};
use bytemuck::Zeroable;
use zeroize::{Zeroize, Zeroizing};

use super::aes::expand;
use super::layout::{DeviceKeys, POWERS};
use crate::crypto::sha1::Hmac;
use crate::crypto::{Keys, Suite, gcm, sha1};
use crate::error::Error;

/// Keys in the device's layout. They are overwritten when they are dropped.
pub(super) struct Prepared {
    pub(super) keys: Box<DeviceKeys>,
    /// Bytes of a tag.
    pub(super) tag: usize,
}

impl Prepared {
    /// Prepares keys. Fails if one has a wrong length, or if the device has no kernels for them.
    pub(super) fn new(keys: &Keys, is_extended: bool) -> Result<Self, Error> {
        // Lengths are checked where the CPU's ciphers are made.
        let suite = Suite::new(keys)?;
        let mut to = Self { keys: Box::new(DeviceKeys::zeroed()), tag: suite.tag() };
        to.keys.is_extended = is_extended.into();
        match keys {
            Keys::Gcm(secret) => {
                let key = to.cipher(secret.bytes());
                to.keys.is_gcm = 1;
                to.powers(key);
            }
            Keys::CtrSha1 { cipher, authentication } => {
                to.cipher(cipher.bytes());
                let hmac = Hmac::new(authentication.bytes());
                let (inner, outer) = hmac.states();
                let hash = to.keys.hash.as_flattened_mut();
                hash[..5].copy_from_slice(inner);
                hash[5..10].copy_from_slice(outer);
            }
            Keys::NullSha1 { .. } => return Err(Error::DeviceSuite(suite.name())),
        }
        Ok(to)
    }

    /// Writes the round keys of a key with its salt behind it, and gives back the key.
    fn cipher<'k>(&mut self, secret: &'k [u8]) -> &'k [u8] {
        let (key, salt) = secret.split_at(secret.len() - 4);
        self.keys.salt = salt.iter().fold(0, |word, &byte| word << 8 | u32::from(byte));
        self.keys.rounds = expand(key, &mut self.keys.round_keys);
        key
    }

    /// Writes the powers of the hash key, the encryption of zeroes (NIST SP 800-38D, 7.1).
    fn powers(&mut self, key: &[u8]) {
        let mut zeroes = [0; 16].into();
        match key.len() {
            16 => ::aes::Aes128::new(key.into()).encrypt_block(&mut zeroes),
            _ => ::aes::Aes256::new(key.into()).encrypt_block(&mut zeroes),
        }
        let first = Zeroizing::new(u128::from_be_bytes(zeroes.into()));
        zeroes.zeroize();
        let mut power = Zeroizing::new(*first);
        for to in &mut self.keys.hash {
            let mut bytes = power.to_be_bytes();
            for (word, bytes) in to.iter_mut().zip(bytes.chunks_exact(4)) {
                *word = bytes.iter().fold(0, |word, &byte| word << 8 | u32::from(byte));
            }
            bytes.zeroize();
            *power = product(*power, *first);
        }
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        bytemuck::bytes_of_mut(&mut *self.keys).zeroize();
    }
}

/// The product of two elements of GHASH's field (NIST SP 800-38D, 6.3), in a time that depends on neither.
fn product(x: u128, mut y: u128) -> u128 {
    let mut sum = 0;
    for bit in (0..128).rev() {
        sum ^= y & (x >> bit & 1).wrapping_neg();
        y = y >> 1 ^ (0xe1 << 120) & (y & 1).wrapping_neg();
    }
    sum
}

// The layouts agree in these.
const _: () = assert!(size_of::<DeviceKeys>() == 256 + 16 * POWERS && gcm::TAG == 16 && sha1::TAG == 12);
