//! [`Suffix`]: the public suffix of a name, by the algorithm of the Public Suffix List.
//!
//! ```text
//! rules  com, *.ck, !www.ck
//!
//! /com/example/www      com wins                  suffix /com       registrable /com/example
//! /ck/a/b/c             *.ck wins                 suffix /ck/a      registrable /ck/a/b
//! /ck/www/a             the exception wins        suffix /ck        registrable /ck/www
//! /example/a/b          none: the rule * counts   suffix /example   registrable /example/a
//! ```

use super::entry::{Answer, Scope, Verdict};
use crate::name::{Name, SLASH};

/// The public suffix of a name, and the registrable domain: the suffix and one label more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suffix<'n> {
    /// The public suffix, a prefix of the name.
    pub suffix: &'n Name,
    /// The registrable domain, a prefix of the name. `None` if the name is a public suffix itself.
    pub registrable: Option<&'n Name>,
    /// Whether a rule of the list says so, rather than the rule `*` that counts where the list has none.
    pub is_listed: bool,
}

impl<'n> Suffix<'n> {
    /// The suffix of a name, by the winning rule. `None` for the root, which has no suffix.
    pub(super) fn of(name: &'n Name, rule: Option<Answer>) -> Option<Self> {
        let suffix = match rule {
            None => one_more(name, 0)?,
            Some(rule) => match (rule.verdict, rule.scope) {
                (Verdict::Exception, _) => rule.entry(name).parent().unwrap_or(Name::ROOT),
                (_, Scope::OneLabel | Scope::Beneath) => one_more(name, rule.length as usize)?,
                _ => rule.entry(name),
            },
        };
        let registrable = one_more(name, suffix.len());
        (!name.is_empty()).then_some(Self { suffix, registrable, is_listed: rule.is_some() })
    }
}

/// The prefix of a name with one label more than its first `len` bytes. `None` if these are the whole name.
fn one_more(name: &Name, len: usize) -> Option<&Name> {
    let bytes = name.as_bytes();
    let after = bytes.get(len + 1..)?;
    let label = after.iter().position(|&b| b == SLASH).unwrap_or(after.len());
    Some(Name::new_unchecked(&bytes[..len + 1 + label]))
}
