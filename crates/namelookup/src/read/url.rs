//! URLs as names: `scheme://user@host:port/path?query#fragment`. Only the host is required.

use super::foreign::{foreign, is_address};
use super::form::host;
use super::reason::NameReason;
use crate::name::SLASH;

/// Appends the components of a URL; see [`NameFormat::Urls`](super::NameFormat::Urls).
pub(super) fn append(url: &[u8], name: &mut Vec<u8>) -> Result<(), NameReason> {
    let (scheme, authority, rest) = split(url);
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
    if path.windows(2).any(|pair| pair == b"//") {
        return Err(NameReason::RepeatedSlash);
    }
    let whole = path.strip_suffix(b"/");
    name.extend_from_slice(whole.unwrap_or(path));
    if query.is_empty() {
        return Ok(());
    }
    if whole.is_some() || path.is_empty() {
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
        name.extend(host_text.iter().map(u8::to_ascii_lowercase));
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
