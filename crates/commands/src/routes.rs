//! Errors of reading routes, with the options that help.

use std::ffi::OsStr;
use std::path::Path;

use anyhow::anyhow;
use wirespeed_fib::PrefixError;
use wirespeed_fib::read::{ReadError, SkipReason};
use wirespeed_image::Image;

/// Whether host bits of a prefix are wrong.
#[must_use]
pub fn is_of_host_bits(error: &ReadError) -> bool {
    matches!(error, ReadError::Bad { reason: SkipReason::Prefix(PrefixError::HostBits), .. })
}

/// The error with the option that helps, if one does.
#[must_use]
pub fn naming_the_option(error: ReadError) -> anyhow::Error {
    match error {
        ReadError::SeveralSets { name, known } => {
            anyhow!("{name}: several sets: choose one with --set: {known}")
        }
        ReadError::SeveralVrfs { name, known } => {
            anyhow!("{name}: several VRFs: choose one with --vrf: {known}")
        }
        error if is_of_host_bits(&error) => anyhow!("{error} (--mask-host-bits clears them)"),
        error => error.into(),
    }
}

/// Whether a file is an image.
#[must_use]
pub fn is_image(from: &OsStr) -> bool {
    from != "-" && Image::is_at(Path::new(from)).unwrap_or_default()
}
