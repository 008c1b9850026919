//! The content of a cell: nothing, or the host of a URL.

/// Whether a cell says that there is no value: it is empty, or has a mark of Zeek or nfdump.
///
/// ```
/// use wirespeed_records::is_unset;
///
/// assert!(is_unset(b"") && is_unset(b"-") && is_unset(b"(empty)"));
/// assert!(!is_unset(b"192.0.2.1"));
/// ```
#[must_use]
pub fn is_unset(cell: &[u8]) -> bool {
    matches!(cell, b"" | b"-" | b"(empty)")
}

/// The host of a URL, without user and port; any other cell as it is.
///
/// ```
/// use wirespeed_records::host;
///
/// assert_eq!(host(b"https://user@www.example.com:8443/a?b"), b"www.example.com");
/// ```
#[must_use]
pub fn host(cell: &[u8]) -> &[u8] {
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
    }
}
