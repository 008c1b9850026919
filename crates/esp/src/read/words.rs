//! [`Words`]: the words of a line, with values of the kinds that are in them.

use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;

use super::skip::{Skip, Skipping};
use crate::selector::Selector;

/// The words of a line. A word in quotes may have spaces, or be empty.
pub(super) struct Words<'l> {
    rest: &'l str,
}

impl<'l> Words<'l> {
    pub(super) const fn of(line: &'l str) -> Self {
        Self { rest: line }
    }

    /// The next word, which stays.
    pub(super) fn peek(&self) -> Option<&'l str> {
        Words { rest: self.rest }.next()
    }

    /// The value that follows a word.
    pub(super) fn value(&mut self, of: &str) -> Result<&'l str, Skipping> {
        self.next().ok_or_else(|| (Skip::End, of.to_owned()))
    }

    /// A value of some kind.
    pub(super) fn parsed<T: FromStr>(&mut self, of: &str) -> Result<T, Skipping> {
        let word = self.value(of)?;
        word.parse().map_err(|_| (Skip::Value, word.to_owned()))
    }

    /// A number, in hexadecimal behind `0x`.
    pub(super) fn number<T: TryFrom<u64>>(&mut self, of: &str) -> Result<T, Skipping> {
        let word = self.value(of)?;
        let number = match word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => word.parse().ok(),
        };
        number.and_then(|number| T::try_from(number).ok()).ok_or_else(|| (Skip::Value, word.to_owned()))
    }

    /// A prefix; an address is one of full length, and `any` and `default` are all addresses.
    pub(super) fn prefix(&mut self, of: &str) -> Result<Option<IpNet>, Skipping> {
        let word = self.value(of)?;
        if matches!(word, "any" | "default" | "all") {
            return Ok(None);
        }
        let parsed = word.parse().or_else(|_| word.parse::<IpAddr>().map(IpNet::from));
        let net: IpNet = parsed.map_err(|_| (Skip::Value, word.to_owned()))?;
        Ok(Some(net.trunc()))
    }

    /// A protocol, by name or number; `None` for any.
    fn protocol(&mut self) -> Result<Option<u8>, Skipping> {
        const NAMES: &[(&str, Option<u8>)] = &[
            ("any", None),
            ("icmp", Some(1)),
            ("tcp", Some(6)),
            ("udp", Some(17)),
            ("gre", Some(47)),
            ("esp", Some(50)),
            ("ipv6-icmp", Some(58)),
            ("icmpv6", Some(58)),
            ("sctp", Some(132)),
        ];
        let Some((_, number)) = NAMES.iter().find(|(name, _)| Some(*name) == self.peek()) else {
            return self.number("proto").map(Some);
        };
        self.next();
        Ok(*number)
    }
}

/// A selector on its way.
#[derive(Default)]
pub(super) struct Selecting {
    src: Option<IpNet>,
    dst: Option<IpNet>,
    protocol: Option<u8>,
    ports: (Option<u16>, Option<u16>),
}

impl Selecting {
    /// Takes a word with its value, if it is one of a selector.
    pub(super) fn take(&mut self, word: &str, words: &mut Words<'_>) -> Result<bool, Skipping> {
        match word {
            "src" => self.src = words.prefix(word)?,
            "dst" => self.dst = words.prefix(word)?,
            "proto" | "upspec" => self.protocol = words.protocol()?,
            "sport" | "type" => self.ports.0 = Some(words.number(word)?),
            "dport" | "code" => self.ports.1 = Some(words.number(word)?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The selector. A prefix that is not given is all addresses of the other's family.
    pub(super) fn done(&self) -> Result<Selector, Skipping> {
        let all = |like: IpNet| {
            let all = if like.addr().is_ipv4() { "0.0.0.0/0" } else { "::/0" };
            all.parse().map_err(|_| (Skip::Value, all.to_owned()))
        };
        let (src, dst) = match (self.src, self.dst) {
            (Some(src), Some(dst)) => (src, dst),
            (Some(src), None) => (src, all(src)?),
            (None, Some(dst)) => (all(dst)?, dst),
            (None, None) => return Err((Skip::Missing, "src or dst".to_owned())),
        };
        if src.addr().is_ipv4() != dst.addr().is_ipv4() {
            return Err((Skip::Value, format!("{dst} is of another family than {src}")));
        }
        let (source_port, destination_port) = self.ports;
        Ok(Selector { src, dst, protocol: self.protocol, source_port, destination_port })
    }
}

impl<'l> Iterator for Words<'l> {
    type Item = &'l str;

    fn next(&mut self) -> Option<&'l str> {
        let rest = self.rest.trim_start();
        let quote = rest.chars().next().filter(|first| matches!(first, '\'' | '"'));
        let (word, rest) = match quote {
            Some(quote) => rest[1..].split_once(quote).unwrap_or((&rest[1..], "")),
            None => rest.split_at(rest.find(char::is_whitespace).unwrap_or(rest.len())),
        };
        self.rest = rest;
        (quote.is_some() || !word.is_empty()).then_some(word)
    }
}
