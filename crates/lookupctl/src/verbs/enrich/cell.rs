//! Names of cells, and domains of names.

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

/// Writes a name as a domain.
pub(super) fn domain(name: &Name, into: &mut String) {
    let labels: Vec<_> = name.components().map(String::from_utf8_lossy).collect();
    for (at, label) in labels.iter().rev().enumerate() {
        if at > 0 {
            into.push('.');
        }
        into.push_str(label);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domains_of_names() {
        let mut text = String::new();
        domain(Name::new("/uk/co/example").unwrap(), &mut text);
        assert_eq!(text, "example.co.uk");
    }
}
