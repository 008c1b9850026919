//! The right answers, and the names that are checked.
//!
//! The answers come without a lookup: entries and names are sorted as bytes and walked in step. All names
//! that start with an entry's bytes follow it without a gap, so the entries that a name starts with form a
//! stack. The last entry of the stack that ends at the end of a component is the longest match.
//!
//! ```text
//! entries   /com/a              /com/ab           │ stack when /com/a/x is due: /com/a
//! names       /com/a-  /com/a/x      /com/abc     │ /com/a- starts with /com/a too, but no component ends there
//! ```

use wirespeed::names::generate::Domains;
use wirespeed::names::{Match, Name, NameBatch, NameBuf, NameRib};

/// The number of entries in a part. Builds that look up slowly, for tests, check fewer random names.
const PART: usize = if cfg!(debug_assertions) { 1 << 11 } else { 1 << 14 };

/// A table's entries, in the order of their bytes.
pub(super) struct Truth {
    entries: NameBatch,
    results: Vec<u32>,
    /// Whether each entry is left out of the compiled table, so that no match has its length.
    is_dropped: Vec<bool>,
}

impl Truth {
    /// Makes the truth about a table. An aggregated table drops each entry whose nearest entry above has its
    /// result.
    pub(super) fn of(names: &NameRib, is_aggregated: bool) -> Self {
        let mut all: Vec<(NameBuf, u32)> = names.iter().collect();
        all.sort_unstable();
        let entries = all.iter().map(|(name, _)| &**name).collect();
        let results: Vec<_> = all.into_iter().map(|(_, result)| result).collect();
        let mut truth = Self { entries, is_dropped: vec![false; results.len()], results };
        if is_aggregated {
            truth.aggregate();
        }
        truth
    }

    fn aggregate(&mut self) {
        let mut stack: Vec<usize> = Vec::new();
        for entry in 0..self.len() {
            self.pop(&mut stack, self.bytes(entry));
            let name = self.entries.names().name(entry);
            let above =
                stack.iter().rev().find(|&&above| self.entries.names().name(above).is_prefix_of(name));
            self.is_dropped[entry] = above.is_some_and(|&above| self.results[above] == self.results[entry]);
            stack.push(entry);
        }
    }

    /// Number of entries.
    pub(super) fn len(&self) -> usize {
        self.results.len()
    }

    /// The number of parts: those of the entries, and some of random names.
    pub(super) fn parts(&self) -> usize {
        let of_entries = self.len().div_ceil(PART);
        of_entries + of_entries.max(4)
    }

    /// The names of a part, sorted, and their right answers.
    pub(super) fn part(&self, part: usize) -> (NameBatch, Vec<Match>) {
        let of_entries = self.len().div_ceil(PART);
        let mut names = match part.checked_sub(of_entries) {
            None => self.near(part * PART..self.len().min((part + 1) * PART)),
            Some(random) => self.random(random as u64),
        };
        names.sort_unstable();
        names.dedup();
        let right = self.answers(&names);
        (names.iter().map(|name| &**name).collect(), right)
    }

    /// Entries and names near them: with one or two more components, one more byte, one byte less, or another
    /// last byte.
    fn near(&self, entries: std::ops::Range<usize>) -> Vec<NameBuf> {
        let mut names = Vec::with_capacity(7 * entries.len());
        for entry in entries {
            let name = self.entries.names().name(entry);
            let bytes = name.as_bytes();
            names.push(name.to_owned());
            names.extend(name.parent().map(ToOwned::to_owned));
            let shorter = &bytes[..bytes.len().saturating_sub(1)];
            let other = bytes.last().map_or(0, |last| last ^ 1);
            let longer = [&b"/x"[..], b"/x/x", b"x"].map(|more| [bytes, more].concat());
            let edits = longer.into_iter().chain([shorter.to_owned(), [shorter, &[other]].concat()]);
            names.extend(edits.filter_map(|edit| NameBuf::new(&edit).ok()));
        }
        names
    }

    /// Generated names of usual shape: alone, beneath entries, and the first half of an entry with the second
    /// half of another.
    fn random(&self, seed: u64) -> Vec<NameBuf> {
        let mut domains = Domains::new(seed + 1);
        let mut names = Vec::with_capacity(2 * PART);
        for at in 0..PART {
            let made = domains.draw().to_owned();
            if let Some(entry) = at.checked_mul(self.len()).map(|at| at / PART).filter(|_| self.len() > 0) {
                let entry = self.entries.names().name(entry);
                let half = entry.components().count().div_ceil(2);
                let first = entry.components().take(half).chain(made.components().skip(1));
                names.extend(NameBuf::from_components(first).ok());
                let beneath = entry.components().chain(made.components());
                names.extend(NameBuf::from_components(beneath).ok());
            }
            names.push(made);
        }
        names
    }

    /// The right answers for sorted names.
    pub(super) fn answers(&self, names: &[NameBuf]) -> Vec<Match> {
        let Some(first) = names.first() else { return Vec::new() };
        // The entries that the first name starts with lie before it, at most one for each length.
        let mut next = self.position(first);
        let mut stack: Vec<usize> = (0..=first.len())
            .filter_map(|len| self.entry(&first.as_bytes()[..len]))
            .filter(|&entry| entry < next)
            .collect();
        let mut right = Vec::with_capacity(names.len());
        for name in names {
            while next < self.len() && self.bytes(next) <= name.as_bytes() {
                self.pop(&mut stack, self.bytes(next));
                stack.push(next);
                next += 1;
            }
            self.pop(&mut stack, name.as_bytes());
            let is_prefix = |&entry: &usize| self.entries.names().name(entry).is_prefix_of(name);
            let mut matching = stack.iter().rev().copied().filter(is_prefix).peekable();
            let longest = matching.peek().copied();
            // The result of the longest entry is right here, too: a dropped entry has the result of the entry
            // above it.
            let left = matching.find(|&entry| !self.is_dropped[entry]);
            right.push(longest.zip(left).map_or(Match::NONE, |(longest, left)| {
                Match::new(self.results[longest], self.bytes(left).len())
            }));
        }
        right
    }

    /// Pops the entries that the bytes don't start with.
    fn pop(&self, stack: &mut Vec<usize>, bytes: &[u8]) {
        while stack.last().is_some_and(|&entry| !bytes.starts_with(self.bytes(entry))) {
            stack.pop();
        }
    }

    fn bytes(&self, entry: usize) -> &[u8] {
        self.entries.names().name(entry).as_bytes()
    }

    /// The first entry that does not come before a name.
    fn position(&self, name: &Name) -> usize {
        self.first(|entry| entry >= name.as_bytes())
    }

    /// The entry with exactly these bytes.
    fn entry(&self, bytes: &[u8]) -> Option<usize> {
        let at = self.first(|entry| entry >= bytes);
        (at < self.len() && self.bytes(at) == bytes).then_some(at)
    }

    fn first(&self, is_there: impl Fn(&[u8]) -> bool) -> usize {
        let (mut from, mut to) = (0, self.len());
        while from < to {
            let middle = from.midpoint(to);
            if is_there(self.bytes(middle)) { to = middle } else { from = middle + 1 }
        }
        from
    }
}

#[cfg(test)]
mod tests {
    use wirespeed::names::generate::{TableSpec, table};
    use wirespeed_namelookup::oracle::Oracle;

    use super::*;

    fn held_against_the_oracle(names: &NameRib) {
        let oracle = names.iter().collect::<Oracle>();
        held(&Truth::of(names, false), names, |name| oracle.lookup(name));
        let reduced: Oracle = names
            .iter()
            .filter(|(name, result)| name.parent().is_none_or(|above| oracle.lookup(above).result != *result))
            .collect();
        held(&Truth::of(names, true), names, |name| {
            assert_eq!(reduced.lookup(name).result, oracle.lookup(name).result);
            reduced.lookup(name)
        });
    }

    fn held(truth: &Truth, names: &NameRib, oracle: impl Fn(&Name) -> Match) {
        let (mut asked, mut hits) = (0, 0);
        for part in 0..truth.parts() {
            let (names, right) = truth.part(part);
            assert_eq!(names.len(), right.len());
            for (name, right) in names.names().iter().zip(right) {
                assert_eq!(right, oracle(name), "{name}");
                asked += 1;
                hits += usize::from(right.is_some());
            }
        }
        assert!(
            asked > 3 * PART && (names.is_empty() || (hits > names.len() && hits < asked)),
            "{hits} of {asked}"
        );
    }

    #[test]
    fn a_walk_gives_what_the_oracle_gives() {
        if wirespeed_image::rounds::leaves_to_ci() {
            return;
        }
        let odd = ["/", "/com/a", "/com/ab", "/com/a/b", "/com/a-", "/com/a\u{1}", "/com/a/b/c/d", "/a"];
        let odd: NameRib =
            odd.iter().zip(1..).map(|(name, result)| (Name::new(name).unwrap(), result)).collect();
        let mut without_root = odd.clone();
        without_root.remove(Name::ROOT);
        let mut more = table(&TableSpec { names: 40_000, results: 9, seed: 1 }).unwrap().names;
        odd.iter().skip(1).for_each(|(name, result)| {
            more.insert(&name, result);
        });
        more.remove(Name::ROOT);
        for names in [&NameRib::new(), &without_root, &more] {
            held_against_the_oracle(names);
        }
        let (truth, oracle) = (Truth::of(&odd, false), odd.iter().collect::<Oracle>());
        let (names, right) = truth.part(0);
        assert!(names.names().iter().zip(right).all(|(name, right)| right == oracle.lookup(name)));
    }
}
