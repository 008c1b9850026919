//! Hosts and domains as components.

use std::net::Ipv4Addr;

use super::foreign::foreign;
use super::reason::NameReason;
use crate::name::SLASH;

/// Appends the components of a domain in a list with scopes of its own, where `*.` and a dot before the
/// domain are no part of it. The root is an error.
pub(super) fn plain_domain(word: &[u8], name: &mut Vec<u8>) -> Result<(), NameReason> {
    is_domain_alone(word)?;
    normal_labels(word, word, name)
}

pub(super) fn domain(word: &[u8], name: &mut Vec<u8>) -> Result<(), NameReason> {
    is_domain_alone(word)?;
    domain_labels(word, name)
}

/// Refuses URLs and addresses.
fn is_domain_alone(word: &[u8]) -> Result<(), NameReason> {
    if word.iter().any(|b| matches!(b, b'/' | b':' | b'?' | b'#')) {
        return Err(foreign(word).unwrap_or(NameReason::NotADomain));
    }
    if is_ipv4(word) {
        return Err(NameReason::Address);
    }
    Ok(())
}

/// Appends the components of a URL's host without a slash: of a domain, or an IPv4 address as one component.
pub(super) fn host(host: &[u8], name: &mut Vec<u8>) -> Result<(), NameReason> {
    if is_ipv4(host) {
        name.push(SLASH);
        name.extend_from_slice(host);
        return Ok(());
    }
    domain_labels(host, name)
}

/// Appends the components of a domain, or of the prefix `*.example.com` or `.example.com`.
fn domain_labels(host: &[u8], name: &mut Vec<u8>) -> Result<(), NameReason> {
    if matches!(host, b"*" | b".") {
        return Ok(());
    }
    let domain = host.strip_prefix(b"*").filter(|rest| rest.starts_with(b".")).unwrap_or(host);
    let domain = domain.strip_prefix(b".").unwrap_or(domain);
    normal_labels(domain, host, name)
}

/// Appends the components of a domain without a sign before it. `host` is its source.
fn normal_labels(domain: &[u8], host: &[u8], name: &mut Vec<u8>) -> Result<(), NameReason> {
    let domain = domain.strip_suffix(b".").unwrap_or(domain);
    if domain.is_ascii() {
        return labels(domain, host, name);
    }
    let Ok(domain) = idna::domain_to_ascii_cow(domain, idna::AsciiDenyList::EMPTY) else {
        return Err(foreign(host).unwrap_or(NameReason::Idna));
    };
    labels(domain.as_bytes().strip_suffix(b".").unwrap_or(domain.as_bytes()), host, name)
}

/// Appends the labels of an ASCII domain in reverse order. `host` is its source.
#[inline]
fn labels(domain: &[u8], host: &[u8], name: &mut Vec<u8>) -> Result<(), NameReason> {
    for label in domain.rsplit(|&b| b == b'.') {
        if label.is_empty() {
            return Err(foreign(host).unwrap_or(NameReason::EmptyLabel));
        }
        if !label.iter().all(|&b| is_of_label(b)) {
            return Err(foreign(host).unwrap_or(NameReason::Character));
        }
        name.push(SLASH);
        name.extend(label.iter().map(u8::to_ascii_lowercase));
    }
    Ok(())
}

/// Whether a byte may be in a label: letters, digits, `-`, and `_`, which names of services use.
const fn is_of_label(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

fn is_ipv4(host: &[u8]) -> bool {
    let is_digit = |b: Option<&u8>| b.is_some_and(u8::is_ascii_digit);
    is_digit(host.first())
        && is_digit(host.last())
        && std::str::from_utf8(host).is_ok_and(|host| host.parse::<Ipv4Addr>().is_ok())
}
