//! [`Synthetic`]: the paper's synthetic sets (sections 6 and 7.3).
//!
//! A set has N rules in C classes, of which F are full: each other class has one rule, and the full classes
//! share the rest evenly. A tuple of the trace matches C_m classes: the generator makes bundles of C_m rules
//! with one value, each under the mask of another class.

use std::collections::BTreeSet;

use wirespeed_rng::Rng;
use wirespeed_table::sort_by_number;

use super::{filled, random};
use crate::pattern::Pattern;
use crate::rule::Rule;
use crate::rules::RuleSet;
use crate::tuple::{Kind, Tuple};

/// The shape of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The paper's N.
    pub rules: usize,
    /// The paper's C.
    pub classes: usize,
    /// The paper's F; all classes if rules are spread evenly.
    pub full: usize,
    /// The paper's C_m.
    pub matching: usize,
}

/// A shape that no set can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ShapeError {
    /// A class without a rule, or no full class.
    #[error(
        "{rules} rules in {classes} classes, {full} of them full: each class takes a rule, and from 1 to all are full"
    )]
    Rules {
        /// N.
        rules: usize,
        /// C.
        classes: usize,
        /// F.
        full: usize,
    },
    /// A number of matching classes that is not possible.
    #[error("a tuple that matches {matching} of {classes} classes")]
    Matching {
        /// C_m.
        matching: usize,
        /// C.
        classes: usize,
    },
    /// More classes than there are masks.
    #[error("{classes} classes: only {found} masks with enough bits were found")]
    Masks {
        /// C.
        classes: usize,
        /// The number of masks.
        found: usize,
    },
}

impl Shape {
    /// A number of rules, spread evenly over a number of classes; a tuple matches one class.
    pub const fn even(rules: usize, classes: usize) -> Self {
        Self { rules, classes, full: classes, matching: 1 }
    }
}

/// A synthetic set, with the data for its traces.
#[derive(Clone, Debug)]
pub struct Synthetic<T: Tuple> {
    /// The rules. Their priorities have 8 bits, as in the paper.
    pub rules: RuleSet<T>,
    /// The value of each bundle, and the union of its masks.
    bundles: Vec<(T, T)>,
}

impl<T: Tuple> Synthetic<T> {
    /// The set of a shape.
    pub fn new(shape: Shape, seed: u64) -> Result<Self, ShapeError> {
        let Shape { rules, classes, full, matching } = shape;
        if classes == 0 || full == 0 || full > classes || rules < classes {
            return Err(ShapeError::Rules { rules, classes, full });
        }
        if matching == 0 || matching > classes {
            return Err(ShapeError::Matching { matching, classes });
        }
        let mut rng = Rng::new(seed);
        let masks = masks::<T>(&mut rng, classes)?;
        let shared = rules - (classes - full);
        // What is left to be made of each class.
        let mut left: Vec<(usize, T)> = (0..)
            .zip(masks)
            .map(|(at, mask)| {
                (if at < full { shared / full + usize::from(at < shared % full) } else { 1 }, mask)
            })
            .collect();
        let mut made = Vec::with_capacity(rules);
        let mut bundles = Vec::new();
        while !left.is_empty() {
            // The fullest first, so that whole bundles can be made for long.
            sort_by_number(&mut left, |(rules, _)| !(*rules as u64));
            let value: T = random(&mut rng);
            let bundle = matching.min(left.len());
            let mut all = T::default();
            for (rules, mask) in &mut left[..bundle] {
                made.push(Rule::new(
                    Pattern::new(value, *mask),
                    u32::try_from(rng.below(256)).expect("8 bits"),
                    0,
                ));
                all = all.or(mask);
                *rules -= 1;
            }
            left.retain(|(rules, _)| *rules > 0);
            if bundle == matching {
                bundles.push((value, all));
            }
        }
        rng.shuffle(&mut made);
        Ok(Self { rules: made.into_iter().collect(), bundles })
    }

    /// Tuples, `count` of them, that match C_m classes each (more only by chance). Each comes from a rule,
    /// with the bits that the bundle doesn't look at set at random.
    pub fn trace(&self, count: usize, seed: u64) -> Vec<T> {
        let mut rng = Rng::new(seed);
        let one = |_| {
            let (value, mask) = &self.bundles[rng.index(self.bundles.len())];
            filled(value, mask, &random(&mut rng))
        };
        (0..count).map(one).collect()
    }
}

/// The masks of C classes: combinations of fields that are wildcards, as in the paper, and if these are too
/// few, prefixes of the addresses among them.
fn masks<T: Tuple>(rng: &mut Rng, classes: usize) -> Result<Vec<T>, ShapeError> {
    /// Bits that make two values of a class differ, but by chance.
    const LEAST: u32 = 32;
    let mut masks = BTreeSet::new();
    let combinations = 1usize << T::FIELDS.len();
    for tries in 0..100 * (classes + combinations) {
        if masks.len() == classes {
            break;
        }
        let with_prefixes = tries > 4 * combinations;
        let mask = T::FIELDS.iter().fold(T::default(), |mask, field| {
            let is_address = matches!(field.kind, Kind::Ipv4 | Kind::Ipv6 | Kind::Mac);
            let len = match rng.chance(0.5) {
                true => 0,
                false if with_prefixes && is_address => {
                    8 + u16::try_from(rng.below(u64::from(field.width) - 7)).expect("a length")
                }
                false => field.width,
            };
            mask.with(field, field.prefix(len))
        });
        if mask.ones() >= LEAST {
            masks.insert(mask);
        }
    }
    let found = masks.len();
    if found < classes {
        return Err(ShapeError::Masks { classes, found });
    }
    let mut masks: Vec<T> = masks.into_iter().collect();
    rng.shuffle(&mut masks);
    Ok(masks)
}
