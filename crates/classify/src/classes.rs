//! [`Classes`]: the entries of a set by their masks (the paper's section 4.2).

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::rank::Rank;
use crate::rules::{Entry, RuleSet};
use crate::tuple::Tuple;

/// The entries of one mask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class<T> {
    /// The mask.
    pub mask: T,
    /// The best rank of an entry. A lookup that has found a better rank skips the class.
    pub best: Rank,
    /// Values and ranks, best first. Several entries may have one value.
    pub entries: Vec<(T, Rank)>,
}

/// All classes of a set, the one with the best entry first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Classes<T>(pub Vec<Class<T>>);

impl<T: Tuple> RuleSet<T> {
    /// The entries by their masks.
    pub fn classes(&self) -> Classes<T> {
        Classes::of(self)
    }
}

impl<T: Tuple> Classes<T> {
    /// The classes of a set. O(n log n).
    pub fn of(rules: &RuleSet<T>) -> Self {
        let mut places: FxHashMap<T, usize> = FxHashMap::default();
        let mut classes: Vec<Class<T>> = Vec::new();
        for Entry { pattern, rank } in rules.ranked() {
            let place = *places.entry(*pattern.mask()).or_insert_with(|| {
                classes.push(Class { mask: *pattern.mask(), best: rank, entries: Vec::new() });
                classes.len() - 1
            });
            classes[place].entries.push((*pattern.value(), rank));
        }
        Self(classes)
    }

    /// The number of entries of each class of a set, in any order: the sizes that [`of`](Self::of) would
    /// find. It needs the memory of a number for each mask only. O(masks of all rules).
    pub fn sizes(rules: &RuleSet<T>) -> Vec<u64> {
        let mut sizes: FxHashMap<T, u64> = FxHashMap::default();
        for (_, rule) in rules.iter() {
            let mut masks = vec![(*rule.base().mask(), 1)];
            for range in rule.ranges() {
                let (field, mut of_range) = (range.field(), BTreeMap::<u128, u64>::new());
                range.prefixes().for_each(|(_, mask)| *of_range.entry(mask).or_default() += 1);
                let with = |(mask, count): &(T, u64)| {
                    let (mask, count) = (*mask, *count);
                    of_range.iter().map(move |(&bits, &more)| (mask.with(&field, bits), count * more))
                };
                masks = masks.iter().flat_map(with).collect();
            }
            masks.into_iter().for_each(|(mask, count)| *sizes.entry(mask).or_default() += count);
        }
        sizes.into_values().collect()
    }

    /// The number of classes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no classes.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of classes that match a tuple: the paper's C_m of one packet. O(n).
    pub fn matching(&self, tuple: &T) -> usize {
        let matches =
            |class: &&Class<T>| class.entries.iter().any(|(value, _)| tuple.matches(value, &class.mask));
        self.0.iter().filter(matches).count()
    }
}

#[cfg(test)]
mod tests {
    use crate::{Classes, Ipv4Tuple, RuleSet};

    #[test]
    fn sizes_are_those_of_the_classes() {
        let texts = [
            "tcp",
            "udp",
            "src=10.0.0.0/8 sport=1-6",
            "src=10.0.0.1-10.0.0.9 dport=1-65534",
            "udp dport=1-6",
        ];
        let rules: RuleSet<Ipv4Tuple> = texts.map(|text| text.parse().expect("a rule")).into_iter().collect();
        let mut sizes = Classes::sizes(&rules);
        let mut right: Vec<u64> = rules.classes().0.iter().map(|class| class.entries.len() as u64).collect();
        sizes.sort_unstable();
        right.sort_unstable();
        assert_eq!(sizes, right);
    }

    #[test]
    fn classes_are_by_mask_and_best_first() {
        let texts =
            ["tcp priority=1", "udp priority=5", "src=10.0.0.0/8 priority=3", "priority=0", "tcp priority=1"];
        let rules: RuleSet<Ipv4Tuple> = texts.map(|text| text.parse().expect("a rule")).into_iter().collect();
        let classes = rules.classes();
        let numbers: Vec<Vec<u32>> =
            classes.0.iter().map(|c| c.entries.iter().map(|(_, rank)| rank.result()).collect()).collect();
        assert_eq!(numbers, [vec![2, 1, 5], vec![3], vec![4]]);
        assert_eq!(classes.matching(&"src=10.0.0.1 tcp".parse().expect("a tuple")), 3);
    }
}
