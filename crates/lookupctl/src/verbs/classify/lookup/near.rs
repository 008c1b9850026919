//! Rules that match a tuple, and rules that fail by one field only. The nearest come first. The distance is
//! the position of the highest bit of the field that would have to change, as a share of the field's width:
//! 80 is nearer to 81 than 10.0.0.1 is to 192.0.2.1.

use wirespeed::engine::RuleTuple;
use wirespeed_classify::tuple::{Field, FieldMatch};
use wirespeed_classify::{Rank, Rule, RuleNumber, RuleSet};

/// The result of testing every rule.
pub(super) struct Near<'r, T> {
    /// The number of other rules that match, besides the best.
    pub(super) also: usize,
    /// Rules that fail by one field only: first the rules that would win, and among these the nearest.
    pub(super) misses: Vec<Miss<'r, T>>,
    /// The number of such rules; only the first are held.
    pub(super) count: usize,
}

/// A rule that one field keeps from matching.
pub(super) struct Miss<'r, T> {
    rank: Rank,
    /// The distance of the field from a matching value.
    distance: u32,
    pub(super) number: RuleNumber,
    pub(super) rule: &'r Rule<T>,
    pub(super) field: &'static Field,
    /// Whether it would win if it matched.
    pub(super) would_win: bool,
}

impl<'r, T: RuleTuple> Near<'r, T> {
    /// Finds the rules that nearly match a tuple whose best rule is `best` (0 for none), with at most `most`
    /// misses.
    pub(super) fn of(rules: &'r RuleSet<T>, tuple: &T, best: u32, most: usize) -> Self {
        let rank_of = |number: RuleNumber, rule: &Rule<T>| Rank::new(rule.priority(), number);
        let best = RuleNumber::new(best)
            .and_then(|number| Some(rank_of(number, rules.rule(number.get())?)))
            .unwrap_or(Rank::NONE);
        let (mut matching, mut misses) = (0usize, Vec::new());
        let fields: Vec<_> = T::FIELDS.iter().map(Bits::of::<T>).collect();
        for (number, rule) in rules.iter() {
            let mut fails = fields.iter().filter(|bits| !bits.admit(rule, tuple));
            match (fails.next(), fails.next()) {
                (None, _) => matching += 1,
                (Some(&Bits { field, .. }), None) => {
                    let rank = rank_of(number, rule);
                    let distance = distance(rule, field, tuple);
                    misses.push(Miss { rank, distance, number, rule, field, would_win: rank > best });
                }
                _ => {}
            }
        }
        let count = misses.len();
        misses.sort_unstable_by_key(|miss| (!miss.would_win, miss.distance, std::cmp::Reverse(miss.rank)));
        misses.truncate(most);
        Self { also: if best == Rank::NONE { 0 } else { matching.saturating_sub(1) }, misses, count }
    }
}

/// The place of a field in the words of a tuple. Rules are compared by words: putting the numbers of fields
/// together for each rule takes several times as long.
struct Bits {
    field: &'static Field,
    /// Each word that has bits of the field, and these bits.
    words: Vec<(usize, u32)>,
}

impl Bits {
    fn of<T: RuleTuple>(field: &'static Field) -> Self {
        let mut all = T::default();
        all.set_field(field, u128::MAX);
        let words = all.words().iter().copied().enumerate().filter(|&(_, bits)| bits != 0).collect();
        Self { field, words }
    }

    /// Whether the field has a value that the rule wants.
    fn admit<T: RuleTuple>(&self, rule: &Rule<T>, tuple: &T) -> bool {
        let (value, mask) = (rule.base().value().words(), rule.base().mask().words());
        let is_equal = |&(at, bits): &(usize, u32)| (tuple.words()[at] & mask[at] ^ value[at]) & bits == 0;
        let range = || rule.ranges().iter().find(|range| range.field() == *self.field);
        self.words.iter().all(is_equal)
            && range().is_none_or(|range| (range.from()..=range.to()).contains(&tuple.field(self.field)))
    }
}

/// The distance of a field from a matching value, from 0 to 128 for a field of any width.
fn distance<T: RuleTuple>(rule: &Rule<T>, field: &Field, tuple: &T) -> u32 {
    let is = tuple.field(field);
    let apart = match rule.field(field) {
        FieldMatch::Masked { value, mask } => (is ^ value) & mask,
        FieldMatch::Range(from, to) => from.saturating_sub(is) | is.saturating_sub(to),
    };
    (u128::BITS - apart.leading_zeros()) * u128::BITS / u32::from(field.width)
}

#[cfg(test)]
mod tests {
    use wirespeed_classify::{Ipv4Tuple, Ipv6Tuple, OpenFlowTuple};

    use super::*;

    #[test]
    fn rules_that_fail_by_one_field() {
        let rules: RuleSet<Ipv4Tuple> = [
            "dport=443 proto=tcp priority=5",
            "src=10.0.0.0/8 dport=80-90 proto=tcp priority=9",
            "src=10.0.0.0/8 priority=1",
            "src=192.0.2.0/24 dport=443 proto=udp priority=9",
            "dport=1 priority=0",
            "priority=0",
        ]
        .iter()
        .map(|text| text.parse::<Rule<_>>().unwrap())
        .collect();
        let tuple = "src=10.0.0.1 dport=443 proto=tcp".parse().unwrap();
        let near = Near::of(&rules, &tuple, 1, 9);
        let found: Vec<_> =
            near.misses.iter().map(|miss| (miss.number.get(), miss.field.name, miss.would_win)).collect();
        assert_eq!(found, [(2, "dport", true), (5, "dport", false)]);
        assert_eq!((near.also, near.count), (2, 2));
        assert_eq!(Near::of(&rules, &tuple, 1, 1).misses.len(), 1);
        let far = [
            "dport=90 src=10.0.0.0/8 priority=2",
            "dport=442 priority=1",
            "src=11.0.0.0/8",
            "src=192.0.2.0/24",
        ];
        let far: RuleSet<Ipv4Tuple> = far.iter().map(|text| text.parse::<Rule<_>>().unwrap()).collect();
        let order: Vec<_> =
            Near::of(&far, &tuple, 0, 9).misses.iter().map(|miss| miss.number.get()).collect();
        assert_eq!(order, [2, 1, 3, 4], "the nearest first");
        let one: RuleSet<_> = rules.rule(2).cloned().into_iter().collect();
        let none = Near::of(&one, &tuple, 0, 5);
        assert!(none.also == 0 && none.misses[0].would_win);
    }

    #[test]
    fn fields_of_several_words_and_within_a_word() {
        fn failing<T: RuleTuple>(rule: &str, tuple: &str) -> Vec<&'static str> {
            let rules: RuleSet<T> = [rule.parse::<Rule<T>>().unwrap()].into_iter().collect();
            let near = Near::of(&rules, &tuple.parse().unwrap(), 0, 9);
            near.misses.iter().map(|miss| miss.field.name).collect()
        }
        let six = "src=2001:db8::/64 dport=1024-1030 proto=udp priority=1";
        assert_eq!(failing::<Ipv6Tuple>(six, "src=2001:db8:0:1::1 dport=1030 proto=udp"), ["src"]);
        assert_eq!(failing::<Ipv6Tuple>(six, "src=2001:db8::1 dport=1031 proto=udp"), ["dport"]);
        assert!(failing::<Ipv6Tuple>(six, "src=2001:db9::1 dport=1031 proto=udp").is_empty());
        let flow = "in_port=1 dl_src=02:00:00:00:00:01 nw_tos=4 priority=1";
        assert_eq!(failing::<OpenFlowTuple>(flow, "in_port=1 dl_src=02:00:00:00:00:02 nw_tos=4"), ["dl_src"]);
    }
}
