//! Several addresses of one name: all are its value, in the order of the list, each once.
//!
//! ```text
//! 192.0.2.1 a.example
//! 192.0.2.2 a.example       the entry becomes 192.0.2.1,192.0.2.2 when the list is read
//! ```
//!
//! Until then the entry has the last address alone, and the others are kept here. So a name with very many
//! addresses takes no more than they do.

use rustc_hash::{FxHashMap, FxHashSet};
use wirespeed_fib::TooManyNextHops;

use super::super::labels::Labels;
use crate::list::{Before, Entries, Precedence, Scope, Verdict};
use crate::name::{Name, NameBuf};

/// The names that have several addresses so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Several {
    numbers: FxHashMap<(NameBuf, Scope), usize>,
    all: Vec<Group>,
}

/// The addresses of an entry.
#[derive(Clone, Debug)]
struct Group {
    name: NameBuf,
    scope: Scope,
    precedence: Precedence,
    /// The results of the addresses, perhaps with some twice. None while the entry is something else.
    results: Vec<u32>,
}

impl Several {
    /// Notes that a name has another entry of a scope after the one before. `joins` if it is one of several
    /// addresses.
    pub(super) fn meet(
        &mut self,
        (name, scope): (&Name, Scope),
        before: Before,
        (precedence, verdict): (Precedence, Verdict),
        joins: bool,
    ) {
        if precedence < before.precedence {
            return;
        }
        let is_beside = joins && before.is_of_reading && precedence == before.precedence;
        if !is_beside || before.verdict == Verdict::Exception {
            self.forget(name, scope);
        } else if verdict != before.verdict {
            self.join(name, scope, precedence, before.verdict, verdict);
        }
    }

    fn join(&mut self, name: &Name, scope: Scope, precedence: Precedence, before: Verdict, next: Verdict) {
        let at = *self.numbers.entry((name.to_owned(), scope)).or_insert_with(|| {
            self.all.push(Group { name: name.to_owned(), scope, precedence, results: Vec::new() });
            self.all.len() - 1
        });
        let group = &mut self.all[at];
        if group.results.is_empty() {
            group.precedence = precedence;
            group.results.push(before.result());
        }
        group.results.push(next.result());
    }

    fn forget(&mut self, name: &Name, scope: Scope) {
        if self.all.is_empty() {
            return;
        }
        if let Some(&at) = self.numbers.get(&(name.to_owned(), scope)) {
            self.all[at].results.clear();
        }
    }

    /// Gives the names with several addresses all of them as their value, and forgets them.
    pub(super) fn join_all(
        &mut self,
        list: &mut Entries,
        labels: &mut Labels,
    ) -> Result<(), TooManyNextHops> {
        let mut seen = FxHashSet::default();
        for Group { name, scope, precedence, results } in std::mem::take(self).all {
            if results.is_empty() {
                continue;
            }
            seen.clear();
            let each = results.into_iter().filter(|&result| seen.insert(result));
            let texts: Vec<_> =
                each.filter_map(|result| labels.label(result)).map(|label| label.to_string()).collect();
            let result = labels.intern(&texts.join(","))?;
            let verdict = Verdict::value(result).expect("results start at 1");
            list.insert(&name, scope, precedence, verdict);
        }
        Ok(())
    }
}
