//! The content of a cell: an address, a name, the host of a URL, or nothing.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use wirespeed::names::Name;
use wirespeed::names::read::{Former, NameFormat};

/// Whether a cell says that there is no value.
pub(super) fn is_unset(cell: &[u8]) -> bool {
    matches!(cell, b"" | b"-" | b"(empty)")
}

/// Parses an address. An IPv4 address of four decimal numbers is parsed here: most are.
pub(super) fn address(cell: &[u8]) -> Option<IpAddr> {
    if let Some(address) = dotted(cell) {
        return Some(IpAddr::V4(address));
    }
    std::str::from_utf8(cell).ok()?.parse::<Ipv6Addr>().ok().map(IpAddr::V6)
}

fn dotted(cell: &[u8]) -> Option<Ipv4Addr> {
    let (mut whole, mut part, mut digits, mut dots) = (0u32, 0u32, 0, 0);
    for &byte in cell {
        match byte {
            b'0'..=b'9' if digits == 0 || (part != 0 && digits < 3) => {
                part = part * 10 + u32::from(byte - b'0');
                digits += 1;
            }
            b'.' if digits > 0 && part < 256 && dots < 3 => {
                whole = whole << 8 | part;
                (part, digits, dots) = (0, 0, dots + 1);
            }
            _ => return None,
        }
    }
    (dots == 3 && digits > 0 && part < 256).then(|| Ipv4Addr::from_bits(whole << 8 | part))
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

    #[test]
    fn addresses_are_those_of_the_standard_library() {
        for text in [
            "10.0.0.1",
            "255.255.255.255",
            "256.0.0.1",
            "1.2.3",
            "1.2.3.4.5",
            "01.2.3.4",
            "0.0.0.0",
            "1.2.3.",
            ".1.2.3",
            "1..2.3",
            "1.2.3.4444",
            "1.2.3.004",
            "::1",
            "2001:db8::ffff:10.1.2.3",
            "x",
            "",
            "1.2.3.4 ",
            "::ffff:192.0.2.1",
            "1.2.3.4/8",
            "fe80::1%eth0",
            "999.1.1.1",
        ] {
            assert_eq!(address(text.as_bytes()), text.parse().ok(), "{text:?}");
        }
    }
}
