//! Adblock filter lists, the rules for domains: `||ads.example.com^`, `@@||good.example.com^$important`.
//!
//! ```text
//! @@ || *. example.com ^ $important
//! │  │  │                └ modifiers: only this one is understood
//! │  │  └ names beneath    ^ or | the end of the host
//! │  └ || the domain and all names beneath it, | the domain alone
//! └ an exception
//! ```

use wirespeed_fib::read::parts::split_word;

use super::super::table::column;
use super::hosts::HostsLine;
use super::{BLOCKED, DomainList, Domains, End, Input, Ledger, Rule, each_line_except};
use crate::list::{Precedence, Scope};
use crate::read::NameReason;

pub(super) fn read(input: &mut Input<'_>, ledger: &mut Ledger, into: &mut DomainList) -> Result<(), End> {
    let (mut domains, mut hosts) = (Domains::default(), HostsLine::default());
    each_line_except(input, ledger, is_comment, |line, _, ledger| {
        if HostsLine::is_one(line) {
            return hosts.read(line, into, ledger);
        }
        let Found { domain, scope, is_exception, is_important } = rule(line.trim_ascii())?;
        let name = domains.name(domain)?;
        // An exception wins over blocks of all names, and importance over both.
        let precedence = Precedence { level: 2 * u8::from(is_important) + u8::from(is_exception), weight: 0 };
        let rule = if is_exception { Rule::Exception } else { Rule::OneOf(BLOCKED) };
        into.insert(name, scope, precedence, rule, ledger)
    })
}

/// Marks of rules for elements of pages, and for the content of answers.
const COSMETIC: [&[u8]; 9] = [b"##", b"#@#", b"#?#", b"#@?#", b"#$#", b"#@$#", b"#%#", b"$$", b"$@$"];

/// Comments start with `!`, or with `#` as in hosts files; a heading is in brackets.
fn is_comment(line: &[u8]) -> bool {
    match line {
        [b'!', b'#', ..] => false,
        [b'!', ..] => true,
        [b'#', ..] => !is_cosmetic(line),
        [b'[', b'$', ..] => false,
        [b'[', .., b']'] => true,
        _ => false,
    }
}

/// Whether a line has a mark of rules for elements. A line of a hosts file may have one in its comment, and a
/// comment may have one after a blank, or be a row of them.
fn is_cosmetic(line: &[u8]) -> bool {
    let word = split_word(line).0;
    let is_row = word.iter().all(|&b| b == b'#');
    !is_row && COSMETIC.iter().any(|mark| word.windows(mark.len()).any(|part| part == *mark))
}

struct Found<'l> {
    domain: &'l [u8],
    scope: Scope,
    is_exception: bool,
    is_important: bool,
}

fn rule(line: &[u8]) -> Result<Found<'_>, NameReason> {
    if line.starts_with(b"!#") {
        return Err(NameReason::Instruction);
    }
    if is_cosmetic(line) || line.starts_with(b"[$") {
        return Err(NameReason::Cosmetic);
    }
    let (is_exception, rule) = match line.strip_prefix(b"@@") {
        Some(rule) => (true, rule),
        None => (false, line),
    };
    if rule.starts_with(b"/") {
        return Err(if rule[1..].contains(&b'/') { NameReason::Regex } else { NameReason::Path });
    }
    let (pattern, is_important) = match rule.iter().position(|&b| b == b'$') {
        None => (rule, false),
        Some(at) if &rule[at + 1..] == b"important" => (&rule[..at], true),
        Some(_) => return Err(NameReason::Modifier),
    };
    let anchors = pattern.iter().take_while(|&&b| b == b'|').count();
    let rest = &pattern[anchors..];
    // A host ends at the separator, or at the end of the address, or both.
    let host = rest.strip_suffix(b"|").unwrap_or(rest);
    let host = host.strip_suffix(b"^").unwrap_or(host);
    let has_end = host.len() < rest.len();
    if host.iter().any(|b| matches!(b, b'/' | b':' | b'?')) {
        return Err(NameReason::Path);
    }
    let (domain, scope) = match (anchors, has_end) {
        (0, false) => (only_word(host)?, Scope::Exact),
        (1, true) => (host, Scope::Exact),
        (2, true) => match host.strip_prefix(b"*.") {
            Some(domain) => (domain, Scope::Beneath),
            None => (host, Scope::Subtree),
        },
        _ => return Err(NameReason::Unanchored),
    };
    Ok(Found { domain, scope, is_exception, is_important })
}

/// The only word of a line, which may have a comment after it.
fn only_word(line: &[u8]) -> Result<&[u8], NameReason> {
    let (word, rest) = split_word(line);
    if !column(rest).0.is_empty() {
        return Err(NameReason::TooManyColumns);
    }
    // What is no host is a pattern, which is searched for anywhere in an address.
    let is_at_an_end = |b: Option<&u8>| matches!(b, Some(b'-' | b'_' | b'.'));
    let is_pattern = is_at_an_end(word.first()) || is_at_an_end(word.last()) || !word.contains(&b'.');
    if is_pattern { Err(NameReason::Unanchored) } else { Ok(word) }
}
