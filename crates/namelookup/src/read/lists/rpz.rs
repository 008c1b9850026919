//! Response policy zones as master files (RFC 1035, section 5): `ads.example CNAME .`,
//! `*.good.example CNAME rpz-passthru.`.
//!
//! ```text
//! name of a rule    = name of the record, without the name of the zone: of the SOA record, or of the first $ORIGIN
//! ads.example.rpz.net. 60 IN CNAME .      as a transfer shows it
//! ads.example          CNAME .            as people write it, relative to $ORIGIN or to the zone
//!                      A 192.0.2.1        no name: that of the record before
//! ```

use super::{DomainList, Domains, End, Fault, Input, Ledger, Rule, address, each_line_except, value_of};
use crate::list::{Precedence, Scope};
use crate::name::Name;
use crate::read::NameReason;

/// The number of words in the data of a SOA record.
const SOA_WORDS: usize = 7;

pub(super) fn read(input: &mut Input<'_>, ledger: &mut Ledger, into: &mut DomainList) -> Result<(), End> {
    let mut zone = Zone::default();
    each_line_except(input, ledger, |text| text[0] == b';', |line, _, ledger| zone.line(line, into, ledger))?;
    if zone.open.is_some() {
        let place = super::Place::Line(input.lines_read().max(1));
        return ledger.cut(place, "a record whose parenthesis does not end");
    }
    Ok(())
}

/// Whether text has the first record of a zone, or a rule with an action that only zones have.
pub(super) fn is_zone(start: &[u8]) -> bool {
    start.split(|&b| b == b'\n').any(|line| {
        let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let Some(first) = words.next() else { return false };
        if matches!(first[0], b';' | b'#' | b'!') {
            return false;
        }
        let is_directive = matches!(first, b"$TTL" | b"$ORIGIN");
        let after: Vec<_> = words.take(5).collect();
        // A table has a result after a name, which may be called SOA; a record has more behind it.
        let is_soa =
            after.windows(2).any(|pair| pair[0].eq_ignore_ascii_case(b"SOA") && !pair[1].starts_with(b"#"));
        let is_rule = after.windows(2).any(|pair| {
            pair[0].eq_ignore_ascii_case(b"CNAME")
                && (matches!(pair[1], b"." | b"*.") || action(pair[1]).is_some())
        });
        is_directive || is_soa || is_rule
    })
}

/// The special targets, which are actions.
fn action(target: &[u8]) -> Option<Rule<'static>> {
    match target.to_ascii_lowercase().as_slice() {
        b"rpz-passthru." => Some(Rule::Exception),
        b"rpz-drop." => Some(Rule::Value("drop")),
        b"rpz-tcp-only." => Some(Rule::Value("tcp-only")),
        _ => None,
    }
}

/// The state of a zone between lines.
#[derive(Default)]
struct Zone {
    /// The name of the zone, lower case, with a dot at its end, once it is known.
    apex: Option<Vec<u8>>,
    /// What names without a dot at their end are relative to; without it, to the zone.
    origin: Option<Vec<u8>>,
    /// The name of the last record, below the zone, without a dot at its end; empty for the zone itself.
    owner: Option<Vec<u8>>,
    /// The words so far of a SOA record whose parenthesis is open.
    open: Option<usize>,
    domains: Domains,
}

impl Zone {
    fn line(&mut self, line: &[u8], into: &mut DomainList, ledger: &mut Ledger) -> Result<(), Fault> {
        let line = uncomment(line);
        if let Some(words) = self.open.take() {
            return Err(self.continuation(words, line).into());
        }
        let mut rest = line;
        if rest.trim_ascii().is_empty() {
            return Err(NameReason::Comment.into());
        }
        if rest[0] == b'$' {
            return self.directive(rest).map_err(Fault::from);
        }
        // A record that is not understood must not give its name to the next one.
        let before = self.owner.take();
        let name = match rest[0].is_ascii_whitespace() {
            true => None,
            false => Some(next(&mut rest).ok_or(NameReason::Record)?),
        };
        let (kind, data) = kind(&mut rest).ok_or(NameReason::Record)?;
        let is_soa = kind.eq_ignore_ascii_case(b"SOA");
        // Without $ORIGIN, @ is the zone, whatever its name is.
        let is_nameless = name == Some(b"@") && self.origin.is_none();
        if is_soa && self.apex.is_none() && !is_nameless {
            self.apex = Some(self.absolute(name.ok_or(NameReason::Record)?)?);
        }
        let owner = match name {
            None => before.ok_or(NameReason::Record)?,
            Some(name) => self.below_zone(name)?,
        };
        let owner = self.owner.insert(owner).clone();
        if is_soa {
            let depth = depth(data).ok_or(NameReason::Record)?;
            self.open = (depth > 0).then(|| words_of(data));
            return Err(
                if owner.is_empty() { NameReason::ZoneRecord } else { NameReason::OtherRecord }.into()
            );
        }
        if data.contains(&b'(') || data.contains(&b')') {
            return Err(NameReason::Record.into());
        }
        if owner.is_empty() {
            return Err(NameReason::ZoneRecord.into());
        }
        self.rule(&owner, kind, data, into, ledger)
    }

    /// A line after a SOA record whose parenthesis is open, with so many words before it.
    fn continuation(&mut self, words: usize, line: &[u8]) -> NameReason {
        let words = words + words_of(line);
        if line.contains(&b'(') || words > SOA_WORDS {
            return NameReason::Record;
        }
        self.open = (!line.contains(&b')')).then_some(words);
        NameReason::ZoneRecord
    }

    /// `$ORIGIN` and `$TTL`; others ask for what nobody does here.
    fn directive(&mut self, mut line: &[u8]) -> Result<(), NameReason> {
        let name = next(&mut line).unwrap_or_default();
        let value = next(&mut line).ok_or(NameReason::Record)?;
        if !line.trim_ascii().is_empty() {
            return Err(NameReason::Record);
        }
        if name.eq_ignore_ascii_case(b"$TTL") {
            return if is_ttl(value) { Err(NameReason::ZoneRecord) } else { Err(NameReason::Record) };
        }
        if !name.eq_ignore_ascii_case(b"$ORIGIN") {
            return Err(NameReason::Record);
        }
        let origin = self.absolute(value)?;
        self.apex.get_or_insert_with(|| origin.clone());
        self.origin = Some(origin);
        Err(NameReason::ZoneRecord)
    }

    /// A name with a dot at its end, lower case.
    fn absolute(&self, name: &[u8]) -> Result<Vec<u8>, NameReason> {
        let name = name.to_ascii_lowercase();
        if name.ends_with(b".") {
            return Ok(name);
        }
        let origin = self.origin.as_ref().or(self.apex.as_ref()).ok_or(NameReason::OutOfZone)?;
        match (name.as_slice(), origin.as_slice()) {
            (b"@", origin) => Ok(origin.to_vec()),
            (name, b".") => Ok([name, b"."].concat()),
            (name, origin) => Ok([name, b".", origin].concat()),
        }
    }

    /// A name without the zone's, which is empty for the zone itself.
    fn below_zone(&self, name: &[u8]) -> Result<Vec<u8>, NameReason> {
        let is_absolute = name.ends_with(b".");
        let Some(apex) = &self.apex else {
            // A part of a zone, without its head.
            return match name {
                b"@" => Ok(Vec::new()),
                _ if is_absolute => Err(NameReason::OutOfZone),
                name => Ok(name.to_ascii_lowercase()),
            };
        };
        let mut name = self.absolute(name)?;
        if name == *apex {
            return Ok(Vec::new());
        }
        let zone = if apex == b"." { &[][..] } else { &apex[..] };
        let below = name.strip_suffix(zone).and_then(|below| below.strip_suffix(b".")).map(<[u8]>::len);
        name.truncate(below.filter(|&len| len > 0).ok_or(NameReason::OutOfZone)?);
        Ok(name)
    }

    fn rule(
        &mut self,
        owner: &[u8],
        kind: &[u8],
        data: &[u8],
        into: &mut DomainList,
        ledger: &mut Ledger,
    ) -> Result<(), Fault> {
        let last = owner.rsplit(|&b| b == b'.').next().unwrap_or_default();
        if matches!(last, b"rpz-ip" | b"rpz-client-ip" | b"rpz-nsip" | b"rpz-nsdname") {
            return Err(NameReason::Trigger.into());
        }
        let mut text = String::new();
        let (rule, weight) = self.content(owner, kind, data, &mut text)?;
        let (name, scope) = match owner {
            b"*" => (Name::ROOT, Scope::Beneath),
            [b'*', b'.', domain @ ..] => (self.domains.name(domain)?, Scope::Beneath),
            domain => (self.domains.name(domain)?, Scope::Exact),
        };
        into.insert(name, scope, Precedence { level: 0, weight }, rule, ledger)
    }

    /// What a record says, and its weight beside other records of its name. `text` is memory for a value.
    fn content<'t>(
        &self,
        owner: &[u8],
        kind: &[u8],
        mut data: &[u8],
        text: &'t mut String,
    ) -> Result<(Rule<'t>, u8), NameReason> {
        let kind = kind.to_ascii_uppercase();
        if !matches!(kind.as_slice(), b"CNAME" | b"A" | b"AAAA") {
            return match LOCAL_DATA.contains(&kind.as_slice()) && !data.trim_ascii().is_empty() {
                true => Ok((Rule::Value("local-data"), 0)),
                false => Err(NameReason::OtherRecord),
            };
        }
        let word = next(&mut data).ok_or(NameReason::Record)?;
        if !data.trim_ascii().is_empty() {
            return Err(NameReason::Record);
        }
        if kind != b"CNAME" {
            let (found, word) = address(word).ok_or(NameReason::NotAnAddress)?;
            if found.is_ipv4() != (kind == b"A") || word.contains('%') {
                return Err(NameReason::NotAnAddress);
            }
            text.push_str(value_of(found, word));
            return Ok((Rule::OneOf(text), 1));
        }
        let rule = match word {
            b"." => Rule::Value("nxdomain"),
            b"*." => Rule::Value("nodata"),
            word => match action(word) {
                Some(action) => action,
                None => self.target(owner, word, text)?,
            },
        };
        Ok((rule, 2))
    }

    /// A target that is a domain: the rule's own name, which is the old form of an exception, or another.
    fn target<'t>(&self, owner: &[u8], word: &[u8], text: &'t mut String) -> Result<Rule<'t>, NameReason> {
        let lower = word.to_ascii_lowercase();
        let last = lower.strip_suffix(b".").unwrap_or(&lower).rsplit(|&b| b == b'.').next();
        if last.is_some_and(|last| last.starts_with(b"rpz-")) {
            return Err(NameReason::Action);
        }
        if lower.strip_suffix(b".") == Some(owner) {
            return Ok(Rule::Exception);
        }
        let target = self.absolute(word)?;
        let domain = target.strip_prefix(b"*.").unwrap_or(&target);
        Domains::default().name(domain)?;
        let target = target.strip_suffix(b".").unwrap_or(&target);
        text.push_str("cname=");
        text.push_str(std::str::from_utf8(target).map_err(|_| NameReason::Record)?);
        Ok(Rule::Value(text))
    }
}

/// Types of records, beside addresses, that are answers of a rule. Zones have others for themselves.
const LOCAL_DATA: [&[u8]; 14] = [
    b"TXT", b"SPF", b"MX", b"SRV", b"PTR", b"HTTPS", b"SVCB", b"CAA", b"NAPTR", b"URI", b"TLSA", b"SSHFP",
    b"HINFO", b"LOC",
];

/// The type of a record, and its data: after a TTL and a class, in any order.
fn kind<'l>(line: &mut &'l [u8]) -> Option<(&'l [u8], &'l [u8])> {
    let (mut has_ttl, mut has_class) = (false, false);
    loop {
        let word = next(line)?;
        if !has_ttl && is_ttl(word) {
            has_ttl = true;
        } else if !has_class && word.eq_ignore_ascii_case(b"IN") {
            has_class = true;
        } else {
            let is_type = word[0].is_ascii_alphabetic() && word.iter().all(u8::is_ascii_alphanumeric);
            return is_type.then_some((word, *line));
        }
    }
}

/// A time: `3600` or `1h30m`.
fn is_ttl(word: &[u8]) -> bool {
    let is_of_time = |b: &u8| b.is_ascii_digit() || b"smhdwSMHDW".contains(b);
    word.first().is_some_and(u8::is_ascii_digit) && word.iter().all(is_of_time)
}

/// The next word.
fn next<'l>(line: &mut &'l [u8]) -> Option<&'l [u8]> {
    let (word, rest) = super::super::parts::split_word(line);
    *line = rest;
    (!word.is_empty()).then_some(word)
}

/// The number of words in a line, without parentheses.
fn words_of(line: &[u8]) -> usize {
    line.split(|b| b.is_ascii_whitespace() || matches!(b, b'(' | b')'))
        .filter(|word| !word.is_empty())
        .count()
}

/// The parentheses that stay open after data: none or one. `None` if they don't fit.
fn depth(data: &[u8]) -> Option<u32> {
    let mut depth = 0_u32;
    for byte in data {
        match byte {
            b'(' => depth += 1,
            b')' => depth = depth.checked_sub(1)?,
            _ => {}
        }
    }
    (depth <= 1).then_some(depth)
}

/// A line without the comment at its end: a `;` outside of quotes.
fn uncomment(line: &[u8]) -> &[u8] {
    let (mut quoted, mut escaped) = (false, false);
    for (at, byte) in line.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => quoted = !quoted,
            b';' if !quoted => return &line[..at],
            _ => {}
        }
    }
    line
}
