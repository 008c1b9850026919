//! Recognises lines that are not names: hosts files, CSV, filter lists. Their words could be read as domains
//! with odd characters, and would match nothing or too much.

use std::net::IpAddr;

use wirespeed_fib::read::parts::split_word;

use super::format::NameFormat;
use super::reason::NameReason;

/// The kind of a word that is not a domain, if it is recognised.
pub(super) fn foreign(word: &[u8]) -> Option<NameReason> {
    let has = |what: &[u8]| word.windows(what.len()).any(|part| part == what);
    let cosmetic = [&b"##"[..], b"#@#", b"#?#", b"#$#", b"#%#"].iter().any(|mark| has(mark));
    if word.starts_with(b"||") || word.starts_with(b"@@") || word.contains(&b'^') || cosmetic {
        return Some(NameReason::Filter);
    }
    if matches!(word.first(), Some(b'!' | b'[')) {
        return Some(NameReason::Filter);
    }
    if word.iter().any(|b| matches!(b, b',' | b';')) {
        return Some(NameReason::Csv);
    }
    if word.contains(&b'*') {
        return Some(NameReason::Wildcard);
    }
    is_address(word).then_some(NameReason::Address)
}

/// Refuses a line whose first word could be read as a name but is something else: an address, of a hosts file
/// or alone, which is not a domain, except as a URL's host; or a rule for the look of a page, which could be
/// read as a URL's fragment.
pub(super) fn check_line(word: &[u8], rest: &[u8], format: NameFormat) -> Result<(), NameReason> {
    if !matches!(format, NameFormat::Domains | NameFormat::Urls) {
        return Ok(());
    }
    let may_be_address = word.first().is_some_and(u8::is_ascii_digit) || word.contains(&b':');
    if may_be_address && is_address(word) {
        return Err(match split_word(rest).0.first() {
            Some(first) if *first != b'#' => NameReason::HostsFile,
            _ => NameReason::Address,
        });
    }
    if format == NameFormat::Urls && word.contains(&b'#') && foreign(word) == Some(NameReason::Filter) {
        return Err(NameReason::Filter);
    }
    Ok(())
}

/// Whether a word is only an IP address, with or without a zone.
pub(super) fn is_address(word: &[u8]) -> bool {
    let word = word.split(|&b| b == b'%').next().unwrap_or(word);
    std::str::from_utf8(word).is_ok_and(|word| word.parse::<IpAddr>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_words_look_like() {
        for (word, reason) in [
            ("||ads.example.com^", Some(NameReason::Filter)),
            ("@@||good.example^$third-party", Some(NameReason::Filter)),
            ("example.com##.banner", Some(NameReason::Filter)),
            ("example.com#@#.banner", Some(NameReason::Filter)),
            ("!", Some(NameReason::Filter)),
            ("[Adblock", Some(NameReason::Filter)),
            ("ads.example.com,ads", Some(NameReason::Csv)),
            ("ads.example.com;ads", Some(NameReason::Csv)),
            ("ads*.example.com", Some(NameReason::Wildcard)),
            ("10.0.0.1", Some(NameReason::Address)),
            ("2001:db8::1", Some(NameReason::Address)),
            ("example.com", None),
            ("exa$mple.com", None),
            ("", None),
        ] {
            assert_eq!(foreign(word.as_bytes()), reason, "{word}");
        }
    }

    #[test]
    fn lines_that_pass_for_names() {
        use NameFormat::{Domains, Names, Ndn, Urls};
        for (line, format, right) in [
            ("0.0.0.0 ads.example.com", Domains, Err(NameReason::HostsFile)),
            ("0.0.0.0\tads.example.com # why", Urls, Err(NameReason::HostsFile)),
            ("::1 localhost", Urls, Err(NameReason::HostsFile)),
            ("fe80::1%lo0 localhost", Urls, Err(NameReason::HostsFile)),
            ("192.0.2.1", Domains, Err(NameReason::Address)),
            ("192.0.2.1 # host", Urls, Err(NameReason::Address)),
            ("192.0.2.1/a 1", Urls, Ok(())),
            ("192.0.2.1:80 1", Urls, Ok(())),
            ("http://192.0.2.1 1", Urls, Ok(())),
            ("[2001:db8::1] 1", Urls, Ok(())),
            ("example.com##.banner", Urls, Err(NameReason::Filter)),
            ("example.com/a#b 1", Urls, Ok(())),
            ("/0.0.0.0 x", Names, Ok(())),
            ("0.0.0.0 x", Ndn, Ok(())),
        ] {
            let (word, rest) = split_word(line.as_bytes());
            assert_eq!(check_line(word, rest, format), right, "{line}");
        }
    }
}
