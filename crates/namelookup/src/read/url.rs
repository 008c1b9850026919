//! URLs as names: `scheme://user@host:port/path?query#fragment`. Only the host is required.

use std::net::Ipv6Addr;

use super::foreign::{foreign, is_address};
use super::host::host;
use super::reason::NameReason;
use crate::name::SLASH;

/// Appends the components of a URL; see [`NameFormat::Urls`](super::NameFormat::Urls).
pub(super) fn append(url: &[u8], name: &mut Vec<u8>) -> Result<(), NameReason> {
    if url.contains(&b'\\') {
        // Browsers take it for a slash, others for a part of the user.
        return Err(NameReason::Backslash);
    }
    let (scheme, authority, rest) = split(url);
    if scheme.is_none() && !url.starts_with(b"//") && authority.contains(&b'@') {
        return Err(NameReason::User);
    }
    authority_of(scheme, authority, name)?;
    append_rest(rest, name)
}

/// Appends the components of a URL's path only.
pub(super) fn append_path(url: &[u8], name: &mut Vec<u8>) -> Result<(), NameReason> {
    append_rest(split(url).2, name)
}

/// The scheme, the authority, and the rest from the path on.
fn split(url: &[u8]) -> (Option<&[u8]>, &[u8], &[u8]) {
    let (scheme, rest) = split_scheme(url);
    let (authority, rest) = rest.split_at(find(rest, |b| matches!(b, b'/' | b'?' | b'#')));
    (scheme, authority, rest)
}

fn append_rest(rest: &[u8], name: &mut Vec<u8>) -> Result<(), NameReason> {
    let rest = &rest[..find(rest, |b| b == b'#')];
    let (path, query) = rest.split_at(find(rest, |b| b == b'?'));
    let whole = path.strip_suffix(b"/");
    append_path_segments(whole.unwrap_or(path), name)?;
    if query.is_empty() {
        return Ok(());
    }
    // Dots at the end leave a slash there.
    let last = path.rsplit(|&b| b == SLASH).next().unwrap_or_default();
    if last.is_empty() || is_dots(last, 1) || is_dots(last, 2) {
        name.push(SLASH);
    }
    for &b in query {
        match b {
            SLASH => name.extend_from_slice(b"%2F"),
            _ => name.push(b),
        }
    }
    Ok(())
}

/// Appends the segments of a path that is empty or begins with a slash. The first has a sign before it, so
/// that it is no label of the host.
fn append_path_segments(path: &[u8], name: &mut Vec<u8>) -> Result<(), NameReason> {
    let begin = name.len();
    for segment in path.split(|&b| b == SLASH).skip(1) {
        match segment {
            [] => return Err(NameReason::RepeatedSlash),
            _ if is_dots(segment, 1) => {}
            _ if is_dots(segment, 2) => {
                let parent = name[begin..].iter().rposition(|&b| b == SLASH);
                name.truncate(begin + parent.unwrap_or(0));
            }
            _ => {
                let sign: &[u8] = if name.len() == begin { b"/=" } else { b"/" };
                name.extend_from_slice(sign);
                name.extend_from_slice(segment);
            }
        }
    }
    Ok(())
}

/// Whether a segment is so many dots (RFC 3986, section 5.2.4), which may be percent-encoded.
fn is_dots(segment: &[u8], dots: usize) -> bool {
    let (mut rest, mut found) = (segment, 0);
    while let Some(next) = match rest {
        [b'.', next @ ..] | [b'%', b'2', b'e' | b'E', next @ ..] => Some(next),
        _ => None,
    } {
        (rest, found) = (next, found + 1);
    }
    rest.is_empty() && found == dots
}

/// The scheme, if there is one, and the text after it and its slashes.
fn split_scheme(url: &[u8]) -> (Option<&[u8]>, &[u8]) {
    let colon = find(url, |b| b == b':');
    let (scheme, rest) = url.split_at(colon);
    let is_scheme = scheme.first().is_some_and(u8::is_ascii_alphabetic)
        && scheme.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'));
    match rest.strip_prefix(b"://") {
        Some(rest) if is_scheme => (Some(scheme), rest),
        _ => (None, url.strip_prefix(b"//").unwrap_or(url)),
    }
}

fn authority_of(scheme: Option<&[u8]>, authority: &[u8], name: &mut Vec<u8>) -> Result<(), NameReason> {
    let user = authority.iter().rposition(|&b| b == b'@').map_or(0, |at| at + 1);
    let authority = &authority[user..];
    let is_v6 = authority.first() == Some(&b'[');
    let host_end = match is_v6 {
        true => authority.iter().position(|&b| b == b']').map_or(authority.len(), |at| at + 1),
        false => find(authority, |b| b == b':'),
    };
    let (host_text, port) = authority.split_at(host_end);
    if is_v6 {
        if !is_ipv6(host_text) {
            // The heading of a filter list is `[Adblock Plus 2.0]`.
            let is_heading = !authority.iter().any(|b| matches!(b, b':' | b']'));
            return Err(foreign(authority).filter(|_| is_heading).unwrap_or(NameReason::Ipv6));
        }
        name.push(SLASH);
        append_ipv6(host_text, name);
    } else {
        host(host_text, name)?;
    }
    match port.split_first() {
        None | Some((b':', [])) => {}
        Some((b':', digits)) => {
            let number = port_number(digits).ok_or(NameReason::Port)?;
            if !is_usual(scheme, number) {
                name.extend_from_slice(format!("/:{number}").as_bytes());
            }
        }
        Some(_) => return Err(NameReason::Port),
    }
    Ok(())
}

/// Whether a host is a bracketed IPv6 address, with or without a zone.
fn is_ipv6(host: &[u8]) -> bool {
    let inner = host.strip_prefix(b"[").and_then(|rest| rest.strip_suffix(b"]")).unwrap_or_default();
    inner.contains(&b':') && is_address(inner)
}

/// Appends a bracketed IPv6 address in its usual form (RFC 5952): each address has one name.
fn append_ipv6(host: &[u8], name: &mut Vec<u8>) {
    let text = String::from_utf8_lossy(host).to_ascii_lowercase();
    let inner = text.trim_matches(['[', ']']);
    let (address, zone) = inner.split_at(inner.find('%').unwrap_or(inner.len()));
    match address.parse::<Ipv6Addr>() {
        Ok(address) => name.extend_from_slice(format!("[{address}{zone}]").as_bytes()),
        Err(_) => name.extend_from_slice(text.as_bytes()),
    }
}

/// Reads at most five digits as a number of 16 bits.
fn port_number(digits: &[u8]) -> Option<u16> {
    let is_number = digits.len() <= 5 && digits.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(digits).ok().filter(|_| is_number)?.parse().ok()
}

/// Whether a port is the default of a scheme.
fn is_usual(scheme: Option<&[u8]>, port: u16) -> bool {
    let Some(scheme) = scheme else { return matches!(port, 80 | 443) };
    let usual: &[(&str, u16)] = &[("http", 80), ("https", 443), ("ws", 80), ("wss", 443), ("ftp", 21)];
    usual.iter().any(|&(name, usual)| usual == port && scheme.eq_ignore_ascii_case(name.as_bytes()))
}

/// The position of the first such byte, or the end if there is none.
fn find(text: &[u8], is_it: impl Fn(u8) -> bool) -> usize {
    text.iter().position(|&b| is_it(b)).unwrap_or(text.len())
}
