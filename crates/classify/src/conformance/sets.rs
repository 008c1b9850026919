//! Rule sets that engines are held against.

use wirespeed_rng::Rng;

use super::probes::{flipped, random};
use crate::expand::FieldRange;
use crate::pattern::Pattern;
use crate::rank::RuleNumber;
use crate::rule::Rule;
use crate::rules::RuleSet;
use crate::tuple::{Field, Tuple};

/// Sets with a name for each.
pub type Named<T> = Vec<(&'static str, RuleSet<T>)>;

fn rule<T: Tuple>(value: T, mask: T, priority: u32) -> Rule<T> {
    Rule::new(Pattern::new(value, mask), priority, 0)
}

/// The field with the most bits, which is an address.
pub(super) fn widest<T: Tuple>() -> Field {
    *T::FIELDS.iter().max_by_key(|field| field.width).expect("a tuple has fields")
}

/// The last field of 16 bits, which is a port; and the one before.
pub(super) fn ports<T: Tuple>() -> [Field; 2] {
    let mut fields = T::FIELDS.iter().rev().filter(|field| field.width == 16);
    [(); 2].map(|()| *fields.next().expect("a tuple has two ports"))
}

/// Every bit of every field, as a mask.
pub fn bits<T: Tuple>() -> impl Iterator<Item = T> {
    let bits = |field: &'static Field| (0..field.width).map(move |bit| T::default().with(field, 1 << bit));
    T::FIELDS.iter().flat_map(bits)
}

/// Small sets, each with something that an engine might get wrong.
pub fn hand_picked<T: Tuple>() -> Named<T> {
    let mut rng = Rng::new(1);
    let tuple: T = random(&mut rng);
    let (all, none, field) = (T::USED, T::default(), widest::<T>());
    let prefix = |len: u16| T::default().with(&field, field.prefix(len));
    let one_in =
        |rng: &mut Rng, n: u64| random::<T>(rng).and(&(1..n).fold(T::USED, |mask, _| mask.and(&random(rng))));
    let each_field = || T::FIELDS.iter().map(|field| T::default().with(field, field.all()));
    let masks: Vec<T> = (0..64).map(|_| one_in(&mut rng, 3)).collect();
    let out_of_order = [9, 4, 70_000, 1, RuleNumber::MOST, 5].into_iter().zip([1, 2, 1, 1, 2, 2]);
    let mut numbered = RuleSet::new();
    for (number, priority) in out_of_order {
        numbered.insert_at(number, rule(tuple, prefix(8), priority)).expect("a free number");
    }
    for (number, value) in [(RuleNumber::MOST - 1, all), (1 << 24 | 5, none)] {
        numbered.insert_at(number, rule(value, all, 9)).expect("a free number");
    }
    let nested = |sign: i64| {
        (0..=field.width).map(move |len| {
            let priority = u32::try_from(1_000 + sign * i64::from(len)).expect("positive");
            rule(tuple, prefix(len), priority)
        })
    };
    vec![
        ("no rules", RuleSet::new()),
        ("a rule that matches all", [rule(none, none, 0)].into_iter().collect()),
        ("two rules that match all", [rule(none, none, 7), rule(none, none, 7)].into_iter().collect()),
        ("one exact rule", [rule(tuple, all, 3)].into_iter().collect()),
        ("zero under every mask", masks.iter().map(|&mask| rule(none, mask, 1)).collect()),
        ("exact rules a bit apart", bits::<T>().map(|bit| rule(xor(tuple, bit), all, 1)).collect()),
        ("exact rules at random", (0..300).map(|_| rule(random(&mut rng), all, 1)).collect()),
        ("a class for each bit", bits::<T>().map(|bit| rule(tuple, bit, 1)).collect()),
        ("a class for each bit, the other way", bits::<T>().map(|bit| rule(bit, bit, 1)).collect()),
        ("a class for each field", each_field().map(|mask| rule(tuple, mask, 1)).collect()),
        ("nested prefixes, the longest first", nested(1).collect()),
        ("nested prefixes, the shortest first", nested(-1).collect()),
        ("all classes match, equals", masks.iter().map(|&mask| rule(tuple, mask, 5)).collect()),
        (
            "all classes match, the last is best",
            (0..).zip(&masks).map(|(p, &mask)| rule(tuple, mask, p)).collect(),
        ),
        (
            "all classes match, the first is best",
            (0..).zip(&masks).map(|(p, &mask)| rule(tuple, mask, 99 - p)).collect(),
        ),
        ("one pattern again and again", (0..40u32).map(|n| rule(tuple, masks[0], n % 3)).collect()),
        (
            "the lowest and the highest priority",
            [0, u32::MAX, 0, u32::MAX - 1].map(|p| rule(tuple, masks[1], p)).into_iter().collect(),
        ),
        ("numbers far apart and out of order", numbered),
        (
            "masks with holes",
            (0..200).map(|_| rule(flipped(tuple, &mut rng), one_in(&mut rng, 2), 1)).collect(),
        ),
        ("ranges of ports", ranges(&mut rng)),
        ("ranges that no hash tells apart", crowded(&mut rng)),
        ("1,024 classes", classes(&mut rng, 1_024, 2_048)),
    ]
}

fn xor<T: Tuple>(mut tuple: T, other: T) -> T {
    tuple.words_mut().iter_mut().zip(other.words()).for_each(|(word, other)| *word ^= other);
    tuple
}

/// Rules whose ports lie in ranges, the worst and usual ones, with and without more.
fn ranges<T: Tuple>(rng: &mut Rng) -> RuleSet<T> {
    let [dport, sport] = ports::<T>();
    let range = |field, (from, to)| FieldRange::new(field, from, to).expect("a range");
    let edges = [(1, 65_534), (0, 1023), (1024, 65_535), (53, 53), (5, 9), (0, 65_535), (49_152, 65_534)];
    let mut rules = RuleSet::new();
    for (at, &of_sport) in edges.iter().enumerate() {
        for &of_dport in &edges {
            if at == 0 && of_dport.0 == 49_152 {
                continue;
            }
            let mask = T::default().with(&widest::<T>(), widest::<T>().prefix(3));
            let pattern = Pattern::new(random(rng), mask);
            let both = [range(sport, of_sport), range(dport, of_dport)];
            let priority = u32::try_from(rng.below(3)).expect("small");
            rules
                .insert(Rule::with_ranges(pattern, both, priority, 0).expect("900 at most"))
                .expect("a number");
        }
    }
    rules
}

/// Rules whose ranges fix the same bits or none, a few of them wide or beside a mask with holes.
fn crowded<T: Tuple>(rng: &mut Rng) -> RuleSet<T> {
    let ([dport, sport], field) = (ports::<T>(), widest::<T>());
    let range = |field, from, to| FieldRange::new(field, from, to).expect("a range");
    let with = |pattern, ranges: &[FieldRange], priority| {
        Rule::with_ranges(pattern, ranges.iter().copied(), priority, 0).expect("few patterns")
    };
    let mut rules: Vec<Rule<T>> =
        (0..30).map(|n| with(Pattern::all(), &[range(dport, n + 1, 200 - n)], 3)).collect();
    for n in 0..3 {
        let holes = T::default().with(&field, field.all() / 255 * (11 << n));
        let ports = [range(dport, 1, 65_534), range(sport, 5, 9 + u128::from(n))];
        rules.push(with(Pattern::new(random(rng), holes), &ports, 2 + n));
        let byte = field.width - 8;
        let address = range(field, ((1 + u128::from(n)) << byte) | 1, ((200 - u128::from(n)) << byte) - 2);
        rules.push(with(Pattern::all(), &[address], 4 - n));
    }
    rng.shuffle(&mut rules);
    rules.into_iter().collect()
}

/// So many classes with so many rules in all, over a few values, so that several match.
pub fn classes<T: Tuple>(rng: &mut Rng, classes: usize, rules: usize) -> RuleSet<T> {
    let base: T = random(rng);
    let mut masks = std::collections::BTreeSet::new();
    while masks.len() < classes {
        masks.insert(random::<T>(rng).and(&random(rng)));
    }
    let masks: Vec<T> = masks.into_iter().collect();
    let value = |at: usize, rng: &mut Rng| if at < classes { base } else { flipped(base, rng) };
    (0..rules)
        .map(|at| {
            let priority = u32::try_from(rng.below(1_000)).expect("small");
            rule(value(at, rng), masks[at % classes], priority)
        })
        .collect()
}

/// Sets of the sizes that the paper and its targets have.
pub fn large<T: Tuple>() -> Named<T> {
    let mut rng = Rng::new(2);
    let mask = T::USED.with(&T::FIELDS[0], 0);
    let priority = |rng: &mut Rng| u32::try_from(rng.bits() >> 32).expect("32 bits");
    let one_class = (0..128 << 10).map(|_| rule(random(&mut rng), mask, priority(&mut rng))).collect();
    // A value counts up in one field, and nothing else differs.
    let field = widest::<T>();
    let counted = (0..40_000u128)
        .map(|n| rule(T::default().with(&field, n), T::default().with(&field, field.all()), 1))
        .collect();
    let skewed = {
        let mut rules: RuleSet<T> = classes(&mut rng, 1_024, 1_024);
        let mask = random::<T>(&mut rng).or(&random(&mut rng));
        for _ in 0..20_000 {
            rules.insert(rule(random(&mut rng), mask, priority(&mut rng))).expect("a number");
        }
        rules
    };
    vec![
        ("one class of 128 K rules", one_class),
        ("a class of consecutive numbers", counted),
        ("1,023 small classes and a large one", skewed),
        ("16 K rules in 64 classes", classes(&mut rng, 64, 16 << 10)),
    ]
}

/// A small world of values and masks, so that random rules overlap and random tuples match.
#[derive(Debug)]
pub struct World<T> {
    values: Vec<T>,
    masks: Vec<T>,
    priorities: u64,
}

impl<T: Tuple> World<T> {
    /// One at random.
    pub fn new(rng: &mut Rng) -> Self {
        let base: T = random(rng);
        let count = 2 + rng.index(12);
        let values =
            (0..count).map(|_| (0..rng.index(6)).fold(base, |value, _| flipped(value, rng))).collect();
        let masks = (0..1 + rng.index(20)).map(|_| mask(rng)).collect();
        Self { values, masks, priorities: [1, 3, 1 << 32][rng.index(3)] }
    }

    /// A rule of it.
    pub fn rule(&self, rng: &mut Rng) -> Rule<T> {
        let pattern = Pattern::new(self.value(rng), self.masks[rng.index(self.masks.len())]);
        let priority = u32::try_from(rng.below(self.priorities)).expect("32 bits");
        let action = u32::try_from(rng.below(100)).expect("small");
        if !rng.chance(0.1) {
            return Rule::new(pattern, priority, action);
        }
        let field = ports::<T>()[rng.index(2)];
        let (one, other) = (self.value(rng).field(&field), u128::from(rng.below(65_536)));
        let range = FieldRange::new(field, one.min(other), one.max(other)).expect("a range");
        Rule::with_ranges(pattern, [range], priority, action).expect("30 patterns at most")
    }

    /// So many rules of it.
    pub fn rules(&self, rng: &mut Rng, count: usize) -> RuleSet<T> {
        (0..count).map(|_| self.rule(rng)).collect()
    }

    /// Tuples of it.
    pub fn tuples(&self, rng: &mut Rng, count: usize) -> Vec<T> {
        (0..count).map(|_| self.value(rng)).collect()
    }

    fn value(&self, rng: &mut Rng) -> T {
        let value = self.values[rng.index(self.values.len())];
        if rng.chance(0.5) { value } else { flipped(value, rng) }
    }
}

/// A mask as rules have them: of prefixes and whole fields, or with holes.
fn mask<T: Tuple>(rng: &mut Rng) -> T {
    match rng.index(8) {
        0 => T::USED,
        1 => T::default(),
        2 => random::<T>(rng).and(&random(rng)),
        _ => T::FIELDS.iter().fold(T::default(), |mask, field| {
            let len = [0, field.width, u16::try_from(rng.below(129)).expect("small").min(field.width)]
                [rng.index(3)];
            mask.with(field, field.prefix(len))
        }),
    }
}
