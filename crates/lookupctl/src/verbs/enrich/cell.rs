//! Names of cells.

use std::net::IpAddr;

use wirespeed::names::Name;
use wirespeed::names::read::{Former, NameFormat};
use wirespeed_records::address;

/// Parses a name, a domain or a URL. An address is the host of a URL, because no domain is an address.
pub(super) fn name<'f>(cell: &'f [u8], former: &'f mut Former) -> Option<&'f Name> {
    let form = match address(cell) {
        Some(IpAddr::V4(_)) => NameFormat::Urls,
        // Without brackets it is no host.
        Some(IpAddr::V6(_)) => return None,
        None => NameFormat::recognise([cell])?,
    };
    former.form(cell, form).ok()
}
