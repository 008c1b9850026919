//! Hosts files: `0.0.0.0 ads.example.com pixel.example.com # why`.

use wirespeed_fib::read::parts::split_word;

use super::super::table::column;
use super::{DomainList, Domains, End, Fault, Input, Ledger, Rule, address, each_line, value_of};
use crate::list::{Precedence, Scope};
use crate::names::NameBatch;
use crate::read::NameReason;

/// Names that machines have for themselves: block lists begin with them, and don't mean to block them.
const OWN: [&[u8]; 12] = [
    b"localhost",
    b"localhost.localdomain",
    b"local",
    b"broadcasthost",
    b"ip6-localhost",
    b"ip6-loopback",
    b"ip6-localnet",
    b"ip6-mcastprefix",
    b"ip6-allnodes",
    b"ip6-allrouters",
    b"ip6-allhosts",
    b"localhost6",
];

pub(super) fn read(input: &mut Input<'_>, ledger: &mut Ledger, into: &mut DomainList) -> Result<(), End> {
    let mut line = HostsLine::default();
    each_line(input, ledger, |text, _, ledger| line.read(text, into, ledger))
}

/// Reads lines in the same memory.
#[derive(Default)]
pub(super) struct HostsLine {
    domains: Domains,
    names: NameBatch,
    /// Whether each name is one of the machine's own.
    is_own: Vec<bool>,
}

impl HostsLine {
    /// Whether a line starts as one of a hosts file.
    pub(super) fn is_one(line: &[u8]) -> bool {
        let (word, rest) = split_word(line);
        address(word).is_some() && !column(rest).0.is_empty()
    }

    pub(super) fn read(
        &mut self,
        line: &[u8],
        into: &mut DomainList,
        ledger: &mut Ledger,
    ) -> Result<(), Fault> {
        let (word, rest) = split_word(line);
        let Some((address, text)) = address(word) else { return Err(NameReason::NotAnAddress.into()) };
        self.names.clear();
        self.is_own.clear();
        // All names are checked before the first is taken: a line counts as a whole or not at all.
        let (mut name, mut rest) = column(rest);
        if name.is_empty() {
            return Err(NameReason::NoName.into());
        }
        if name == word && column(rest).0.is_empty() {
            return Err(NameReason::OwnAddress.into());
        }
        while !name.is_empty() {
            self.names.push(self.domains.name(name)?).map_err(NameReason::from)?;
            self.is_own.push(OWN.iter().any(|own| name.eq_ignore_ascii_case(own)));
            (name, rest) = column(rest);
        }
        for (name, &is_own) in self.names.names().iter().zip(&self.is_own) {
            let value = if is_own { text } else { value_of(address, text) };
            into.insert(name, Scope::Exact, Precedence::default(), Rule::OneOf(value), ledger)?;
        }
        Ok(())
    }
}
