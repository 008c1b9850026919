//! Configurations of dnsmasq, the options that give values to domains:
//! `address=/ads.example/pixel.example/0.0.0.0`.

use std::net::IpAddr;

use super::{DomainList, Domains, End, Input, Ledger, Rule, address, each_line, value_of};
use crate::list::{Precedence, Scope};
use crate::name::Name;
use crate::names::NameBatch;
use crate::read::NameReason;

/// The value of a domain that dnsmasq answers itself, with nothing.
const NXDOMAIN: &str = "nxdomain";

/// The weights of options for one domain, the order of dnsmasq from 2.86 on. A domain without `*.` weighs
/// more than any with it.
const SERVER: u8 = 0;
const USUAL_SERVERS: u8 = 1;
const NO_SERVER: u8 = 2;
const ADDRESS: u8 = 3;
const WHOLE: u8 = 4;

pub(super) fn read(input: &mut Input<'_>, ledger: &mut Ledger, into: &mut DomainList) -> Result<(), End> {
    let (mut domains, mut names, mut scopes) = (Domains::default(), NameBatch::new(), Vec::new());
    each_line(input, ledger, |line, _, ledger| {
        let (key, list, last) = option(line).ok_or(NameReason::OtherOption)?;
        let mut text = String::new();
        let (rule, weight) = meaning(key, last, &mut text)?;
        names.clear();
        scopes.clear();
        for domain in list.split(|&b| b == b'/') {
            let (name, scope, weight) = match domain {
                b"" => (Name::ROOT, Scope::OneLabel, weight + WHOLE),
                b"#" => (Name::ROOT, Scope::Subtree, weight + WHOLE),
                [b'*', b'.', domain @ ..] => (domains.name(domain)?, Scope::Beneath, weight),
                [b'.', domain @ ..] | domain => (domains.name(domain)?, Scope::Subtree, weight + WHOLE),
            };
            names.push(name).map_err(NameReason::from)?;
            scopes.push((scope, weight));
        }
        for (name, &(scope, weight)) in names.names().iter().zip(&scopes) {
            into.insert(name, scope, Precedence { level: 0, weight }, rule, ledger)?;
        }
        Ok(())
    })
}

/// Whether a line is an option that gives values to domains.
pub(super) fn is_option(line: &[u8]) -> bool {
    option(line).is_some()
}

/// The name of an option, its domains between the first slash and the last, and what follows. `None` for
/// other options.
fn option(line: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let line = uncomment(line);
    let (key, value) = line.split_at_checked(line.iter().position(|&b| b == b'=')?)?;
    let (key, value) = (key.trim_ascii(), value[1..].trim_ascii());
    let value = value.strip_prefix(b"/")?;
    let last = value.iter().rposition(|&b| b == b'/')?;
    matches!(key, b"address" | b"server" | b"local").then_some((key, &value[..last], &value[last + 1..]))
}

/// A line without the comment at its end: a `#` after a blank. Others are parts of values.
fn uncomment(line: &[u8]) -> &[u8] {
    let comment = line.windows(2).position(|pair| pair[0].is_ascii_whitespace() && pair[1] == b'#');
    &line[..comment.unwrap_or(line.len())]
}

/// The rule of an option, and its weight. `text` is memory for a value.
fn meaning<'t>(key: &[u8], last: &[u8], text: &'t mut String) -> Result<(Rule<'t>, u8), NameReason> {
    let is_address = key == b"address";
    match last {
        // An address that is none says the same as no server.
        b"" => return Ok((Rule::Value(NXDOMAIN), NO_SERVER)),
        b"#" if is_address => return Ok((Rule::OneOf(super::BLOCKED), ADDRESS)),
        b"#" => return Ok((Rule::Exception, USUAL_SERVERS)),
        _ => {}
    }
    if is_address {
        let (found, word) =
            address(last).filter(|(_, word)| !word.contains('%')).ok_or(NameReason::NotAnAddress)?;
        text.push_str(value_of(found, word));
        return Ok((Rule::OneOf(text), ADDRESS));
    }
    // 192.0.2.1#5353@eth0: the port and the interface stay parts of the value.
    let end = last.iter().position(|b| matches!(b, b'#' | b'@')).unwrap_or(last.len());
    let has_address = address(&last[..end]).is_some_and(|(found, _): (IpAddr, _)| !found.is_unspecified());
    let is_word = last.iter().all(u8::is_ascii_graphic);
    match std::str::from_utf8(last) {
        Ok(last) if has_address && is_word => text.extend(["server=", last]),
        _ => return Err(NameReason::NotAnAddress),
    }
    Ok((Rule::OneOf(text), SERVER))
}
