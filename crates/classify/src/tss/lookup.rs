//! Lookups: single, and by batches.

use wirespeed_table::{Load, Lookup, Step};

use super::batch::{one, under};
use super::form::Form;
use super::hash::SUBTABLES;
use super::layout::{CLASS_WORDS, CLASSES, FILTERS, SLOTS, TssTable, View, slot_elements, table_slots};
use super::place::value_of;
use super::simd;
use crate::rank::Rank;
use crate::tuple::Tuple;

impl<T: Tuple, F: Form> Lookup<T> for TssTable<T, F> {
    fn lookup(&self, tuple: &T) -> u32 {
        one::<T, F>(&self.view(), tuple).result()
    }

    fn lookup_batch(&self, tuples: &[T], results: &mut [u32]) {
        assert_eq!(tuples.len(), results.len(), "a result for each tuple");
        simd::batch::<T, F>(&self.view(), tuples, results);
    }

    fn shape(&self) -> Option<String> {
        let (classes, [slots, ..]) = (self.classes(), self.sizes());
        let filters = if F::FILTERED { self.expected_false_positives() } else { None };
        let filters = filters.map_or_else(String::new, |expected| {
            format!(", filters that let {:.2} of 1,000 pass that a class does not match", 1_000.0 * expected)
        });
        Some(format!("{} entries of {classes} classes in tables of {slots} slots{filters}", self.entries()))
    }

    fn loads(&self) -> Vec<Load> {
        let [slots, bits, set] = self.sizes();
        let places = slots / SUBTABLES as u64;
        let subtables = ["slots of subtables 1", "slots of subtables 2", "slots of subtables 3"].into_iter();
        let mut loads: Vec<_> =
            subtables.zip(self.taken()).map(|(what, taken)| Load { what, places, taken }).collect();
        if F::FILTERED {
            loads.push(Load { what: "bits of filters", places: bits, taken: set });
        }
        loads
    }

    fn expected_false_positives(&self) -> Option<f64> {
        Self::expected_false_positives(self)
    }

    fn explain(&self, tuple: &T) -> Vec<Step> {
        explain::<T, F>(&self.view(), tuple)
    }
}

impl<T: Tuple, F: Form> TssTable<T, F> {
    /// Patterns that have a slot. O(table).
    pub fn entries(&self) -> u64 {
        let ranks = self.view().slots.iter().skip(Self::SLOT - 1).step_by(Self::SLOT);
        ranks.filter(|&&rank| rank != 0).count() as u64
    }

    /// Slots and bits that classes have, and bits that are set.
    fn sizes(&self) -> [u64; 3] {
        let view = self.view();
        let (mut slots, mut bits) = (0, 0);
        for &number in view.order {
            let class = view.class(number);
            slots += u64::from(table_slots(class.d()));
            bits += if F::FILTERED { 1 << class.log() } else { 0 };
        }
        [slots, bits, view.filters.iter().map(|word| u64::from(word.count_ones())).sum()]
    }

    /// Slots that are taken of the first subtables of all classes, of the second, and of the third.
    fn taken(&self) -> [u64; SUBTABLES] {
        let view = self.view();
        let mut taken = [0; SUBTABLES];
        for &number in view.order {
            let class = view.class(number);
            for (taken, subtable) in taken.iter_mut().zip(0..) {
                let first = class.first_slot() + subtable * class.d();
                let is_taken = |slot: &u32| view.rank(*slot, Self::SLOT) != Rank::NONE;
                *taken += (first..first + class.d()).filter(is_taken).count() as u64;
            }
        }
        taken
    }

    /// The share of tuples that get past the filter of a class which they don't match, by the formula
    /// `(1 - e^(-kn/m))^k` of the paper's section 4.3, on average over the classes. `None` without classes or
    /// filters. O(table).
    pub fn expected_false_positives(&self) -> Option<f64> {
        const K: f64 = 2.0;
        let view = self.view();
        if !F::FILTERED || view.order.is_empty() {
            return None;
        }
        let of_one = |&number: &u32| {
            let class = view.class(number);
            let slots = class.first_slot()..class.first_slot() + table_slots(class.d());
            let is_taken = |slot: &u32| view.rank(*slot, Self::SLOT) != Rank::NONE;
            let n: u32 = slots.filter(is_taken).map(|_| 1).sum();
            (1.0 - (-K * f64::from(n) / 2f64.powi(class.log().cast_signed())).exp()).powf(K)
        };
        let classes = u32::try_from(view.order.len()).map_or(f64::INFINITY, f64::from);
        Some(view.order.iter().map(of_one).sum::<f64>() / classes)
    }
}

/// The steps of a lookup in words.
fn explain<T: Tuple, F: Form>(view: &View<'_>, tuple: &T) -> Vec<Step> {
    let (elements, mut steps) = (slot_elements(T::WORDS), Vec::new());
    let (mut best, mut bound) = (Rank::NONE, Rank::from_bits(u64::MAX));
    let name = |section: wirespeed_image::SectionId| match section {
        FILTERS => "filters",
        SLOTS => "slots",
        CLASSES => "classes",
        _ => "order",
    };
    let mut step = |section, index: u64, value: u64, meaning: String| {
        steps.push(Step { section: name(section), index, value, meaning });
    };
    let mut last = (CLASSES, 0, 0);
    for &number in view.order {
        let class = view.class(number);
        bound = bound.min(class.bound());
        let record = u64::from(number) * CLASS_WORDS as u64;
        last = (CLASSES, record + super::layout::BOUND_AT as u64, class.0[super::layout::BOUND_AT].into());
        if best >= bound {
            break;
        }
        let masked = under(tuple, class.mask(T::WORDS));
        let hash = view.keys.hash(number, masked.words());
        let missing = hash.bits(class.log()).into_iter().find(|&bit| !view.has_bit(class.first_bits(), bit));
        if F::FILTERED
            && let Some(bit) = missing
        {
            let at = class.first_bits() + bit / 32;
            let meaning = format!("class {number} has nothing: bit {bit} of its filter is not set");
            step(FILTERS, at.into(), view.filters[at as usize].into(), meaning);
            continue;
        }
        let slots = view.slots_of(class.first_slot(), class.d(), hash);
        let found = view.probe::<T>(slots, &value_of(&masked));
        let slot = slots.into_iter().find(|&slot| view.rank(slot, elements) == found).unwrap_or(slots[0]);
        let meaning = match found {
            Rank::NONE => format!("class {number} has nothing in slots {slots:?}"),
            _ => format!(
                "class {number} has rule {} of priority {} in slot {slot}",
                found.result(),
                found.priority()
            ),
        };
        let at = (slot as usize + 1) * elements - 1;
        step(SLOTS, at as u64, view.slots[at], meaning);
        best = best.max(found);
    }
    let meaning = match best {
        Rank::NONE => "no match: no class is left".to_owned(),
        _ => format!(
            "result {}, of priority {}: no class left has a better one",
            best.result(),
            best.priority()
        ),
    };
    step(last.0, last.1, last.2, meaning);
    steps
}
