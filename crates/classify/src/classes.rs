//! [`Classes`]: the entries of a set by their masks (the paper's section 4.2).

use rustc_hash::FxHashMap;

use crate::rank::Rank;
use crate::rules::{Entry, RuleSet};
use crate::tuple::Tuple;

/// The entries of one mask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class<T> {
    /// The mask.
    pub mask: T,
    /// The best rank of an entry: once something better was found, the class need not be looked at.
    pub best: Rank,
    /// Values and ranks, best first; of one value there may be several.
    pub entries: Vec<(T, Rank)>,
}

/// All classes of a set, the one with the best entry first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Classes<T>(pub Vec<Class<T>>);

impl<T: Tuple> Classes<T> {
    /// Of a set. O(n log n).
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

    /// How many.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many match a tuple: the paper's C_m of one packet. O(n).
    pub fn matching(&self, tuple: &T) -> usize {
        let matches =
            |class: &&Class<T>| class.entries.iter().any(|(value, _)| tuple.matches(value, &class.mask));
        self.0.iter().filter(matches).count()
    }
}

#[cfg(test)]
mod tests {
    use crate::{Ipv4Tuple, RuleSet};

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
