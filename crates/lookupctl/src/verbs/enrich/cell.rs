//! The content of a cell: a name, the host of a URL, or nothing.

use std::net::IpAddr;

use wirespeed::names::Name;
use wirespeed::names::read::{Former, NameFormat};
use wirespeed_records::address;

/// Whether a cell says that there is no value.
pub(super) fn is_unset(cell: &[u8]) -> bool {
    matches!(cell, b"" | b"-" | b"(empty)")
}

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

/// The host of a URL, without user and port; any other cell as it is.
pub(super) fn host(cell: &[u8]) -> &[u8] {
    if cell.starts_with(b"/") {
        return cell;
    }
    let after = memchr::memmem::find(cell, b"://").map_or(cell, |at| &cell[at + 3..]);
    let authority = after.split(|byte| matches!(byte, b'/' | b'?' | b'#')).next().unwrap_or_default();
    let host = memchr::memrchr(b'@', authority).map_or(authority, |at| &authority[at + 1..]);
    if let Some(inner) = host.strip_prefix(b"[") {
        return inner.split(|&byte| byte == b']').next().unwrap_or_default();
    }
    match memchr::memchr(b':', host) {
        // More than one colon is an IPv6 address.
        Some(at) if memchr::memchr(b':', &host[at + 1..]).is_none() => &host[..at],
        _ => host,
    }
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
    fn hosts_of_urls() {
        for (cell, right) in [
            ("www.example.com", "www.example.com"),
            ("https://user:x@www.example.com:8443/a?b@c#d", "www.example.com"),
            ("www.example.com:443", "www.example.com"),
            ("example.com/a:b", "example.com"),
            ("http://[2001:db8::1]:80/", "2001:db8::1"),
            ("2001:db8::1", "2001:db8::1"),
            ("/com/example", "/com/example"),
        ] {
            assert_eq!(host(cell.as_bytes()), right.as_bytes(), "{cell}");
        }
        let mut text = String::new();
        domain(Name::new("/uk/co/example").unwrap(), &mut text);
        assert_eq!(text, "example.co.uk");
    }
}
