//! [`Suite`]: the ciphers of a security association, with its keys.
//!
//! | suite | bytes of a packet: vector, tag | from |
//! |---|---|---|
//! | AES-GCM-128, -256 | 8, 16 | RFC 4106 |
//! | AES-128-CTR with HMAC-SHA1-96 | 8, 12 | RFC 3686, RFC 2404 |
//! | NULL with HMAC-SHA1-96 | 0, 12 | RFC 2410, RFC 2404 |

pub(crate) mod ctr;
pub(crate) mod gcm;
pub(crate) mod sha1;

use zeroize::Zeroizing;

use crate::error::Error;
use crate::secret::Secret;

use self::ctr::Ctr;
use self::gcm::Gcm;
use self::sha1::Hmac;

/// The keys of a security association.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Keys {
    /// AES-GCM with a tag of 16 bytes: a key of 16 or 32 bytes, and the salt of 4 behind it (RFC 4106, 8.1).
    Gcm(Secret),
    /// AES-128-CTR and HMAC-SHA1-96.
    CtrSha1 {
        /// The key of 16 bytes, and the nonce of 4 behind it (RFC 3686, 5.1).
        cipher: Secret,
        /// The key of 20 bytes for the tag.
        authentication: Secret,
    },
    /// No encryption, and HMAC-SHA1-96: for tests. Anyone can read the packets.
    NullSha1 {
        /// The key of 20 bytes for the tag.
        authentication: Secret,
    },
}

/// Ciphers with keys.
pub(crate) enum Suite {
    Gcm { gcm: Gcm, salt: Zeroizing<[u8; 4]> },
    CtrSha1 { ctr: Ctr, nonce: Zeroizing<[u8; 4]>, hmac: Hmac },
    NullSha1 { hmac: Hmac },
}

impl Suite {
    /// The ciphers for keys. Fails if one has a wrong length.
    pub(crate) fn new(keys: &Keys) -> Result<Self, Error> {
        let of_sha1 = |key: &Secret| match key.len() {
            20 => Ok(Hmac::new(key.bytes())),
            len => Err(Error::Key { algorithm: "hmac(sha1)", found: len * 8, wanted: "160 bits" }),
        };
        Ok(match keys {
            Keys::Gcm(key) => match (key.len(), key.bytes().split_last_chunk::<4>()) {
                (20 | 36, Some((key, salt))) => Self::Gcm { gcm: Gcm::new(key), salt: Zeroizing::new(*salt) },
                (len, _) => {
                    let wanted = "160 or 288 bits, 32 of them the salt";
                    return Err(Error::Key { algorithm: "rfc4106(gcm(aes))", found: len * 8, wanted });
                }
            },
            Keys::CtrSha1 { cipher, authentication } => {
                match cipher
                    .bytes()
                    .split_last_chunk::<4>()
                    .map(|(key, nonce)| (key.first_chunk().filter(|_| key.len() == 16), nonce))
                {
                    Some((Some(key), nonce)) => Self::CtrSha1 {
                        ctr: Ctr::new(key),
                        nonce: Zeroizing::new(*nonce),
                        hmac: of_sha1(authentication)?,
                    },
                    _ => {
                        let (found, wanted) = (cipher.len() * 8, "160 bits, 32 of them the nonce");
                        return Err(Error::Key { algorithm: "rfc3686(ctr(aes))", found, wanted });
                    }
                }
            }
            Keys::NullSha1 { authentication } => Self::NullSha1 { hmac: of_sha1(authentication)? },
        })
    }

    /// The name of the suite.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Gcm { .. } => "AES-GCM",
            Self::CtrSha1 { .. } => "AES-128-CTR with HMAC-SHA1-96",
            Self::NullSha1 { .. } => "NULL with HMAC-SHA1-96",
        }
    }

    /// Bytes of the initialisation vector in a packet.
    pub(crate) const fn vector(&self) -> usize {
        match self {
            Self::Gcm { .. } | Self::CtrSha1 { .. } => 8,
            Self::NullSha1 { .. } => 0,
        }
    }

    /// Bytes of the tag.
    pub(crate) const fn tag(&self) -> usize {
        match self {
            Self::Gcm { .. } => gcm::TAG,
            Self::CtrSha1 { .. } | Self::NullSha1 { .. } => sha1::TAG,
        }
    }

    /// The key of the tag, where that is made apart from the cipher.
    pub(crate) const fn hmac(&self) -> Option<&Hmac> {
        match self {
            Self::Gcm { .. } => None,
            Self::CtrSha1 { hmac, .. } | Self::NullSha1 { hmac } => Some(hmac),
        }
    }
}
