//! The Public Suffix List: `com`, `*.ck`, `!www.ck`, in two sections that comments begin and end.

use std::cell::Cell;

use wirespeed_fib::read::parts::split_word;

use super::{DomainList, Domains, End, Fault, Input, Ledger, Rule, each_line_except};
use crate::list::{Precedence, Scope};
use crate::name::Name;
use crate::read::NameReason;

const BEGIN_ICANN: &[u8] = b"// ===BEGIN ICANN DOMAINS===";
const END_ICANN: &[u8] = b"// ===END ICANN DOMAINS===";
const BEGIN_PRIVATE: &[u8] = b"// ===BEGIN PRIVATE DOMAINS===";
const END_PRIVATE: &[u8] = b"// ===END PRIVATE DOMAINS===";

/// The value of rules in no section, of lists that people make for themselves.
const LISTED: &str = "listed";
const PRIVATE: &str = "private";

pub(super) fn read(
    input: &mut Input<'_>,
    ledger: &mut Ledger,
    into: &mut DomainList,
    icann_only: bool,
) -> Result<(), End> {
    into.list.mark_suffixes();
    let section = Cell::new(LISTED);
    let mut domains = Domains::default();
    let is_comment = |line: &[u8]| {
        match line {
            BEGIN_ICANN => section.set("icann"),
            BEGIN_PRIVATE => section.set(PRIVATE),
            END_ICANN | END_PRIVATE => section.set(LISTED),
            _ => {}
        }
        line.starts_with(b"//")
    };
    each_line_except(input, ledger, is_comment, |line, _, ledger| {
        let section = section.get();
        if icann_only && section == PRIVATE {
            return Err(NameReason::OtherSection.into());
        }
        // A rule ends at the first blank.
        rule(split_word(line).0, section, &mut domains, into, ledger)
    })
}

fn rule(
    word: &[u8],
    section: &str,
    domains: &mut Domains,
    into: &mut DomainList,
    ledger: &mut Ledger,
) -> Result<(), Fault> {
    let (low, exception) = (Precedence::default(), Precedence { level: 1, weight: 0 });
    match word {
        b"*" => into.insert(Name::ROOT, Scope::Beneath, low, Rule::Value(section), ledger),
        [b'!', domain @ ..] => {
            into.insert(domains.name(domain)?, Scope::Subtree, exception, Rule::Exception, ledger)
        }
        [b'*', b'.', domain @ ..] => {
            into.insert(domains.name(domain)?, Scope::Beneath, low, Rule::Value(section), ledger)
        }
        domain => into.insert(domains.name(domain)?, Scope::Subtree, low, Rule::Value(section), ledger),
    }
}
