//! The sections of aligned transition arrays and what their elements say.
//!
//! ```text
//! head         u64 × 6        0 d   1 BASE_BITS   2 root's state, 0 for none   3 root's result, 0 for none
//!                             4 bytes of an element of results   5 number of halved arrays
//! arrays       u64 × 4 each   0 first slot   1 length L   2 reciprocal floor(2^32 / L)   3 halved
//! transitions  u64            low 32 input number, high 32 link; link 0: vacant
//! results      u8, u16, u32   by slot: the result of the entry that ends with its transition
//!
//! link         bit 31 accepting: an entry ends here; bits 0–30 the next state, 0 for none
//! state        base in the low BASE_BITS, below L of its array; the array above. State 0 is never used.
//! ```
//!
//! The transition of a state by input number y is in slot first + (base + y) mod L, if the slot's input is y.
//! With the reciprocal r no division is needed: y - (y·r >> 32)·L is y mod L, or L more. Inputs are those of
//! [`fsm`](crate::fsm). Input number 0 never accepts, because it doesn't end with a slash.
//!
//! A state of a *halved* array reads a number in two steps: first y & 0xffff; then, in the state that this
//! leads to, in any array, y >> 16. The second link counts. States with too many transitions for any length
//! are of this kind. The paper's solution, more primes, fails when a state has more than about the square
//! root of 2L transitions; `/com` has 100,000.

use std::marker::PhantomData;

use wirespeed_image::{Checked, Image, ImageBuilder, ImageError, SectionId, Table, number};

use super::form::Form;
use crate::name::SLASH;

/// Stride, root and its result.
pub const HEAD: SectionId = SectionId(0);
/// The arrays.
pub const ARRAYS: SectionId = SectionId(1);
/// The slots of all arrays.
pub const TRANSITIONS: SectionId = SectionId(2);
/// The results, by slot.
pub const RESULTS: SectionId = SectionId(3);

/// Elements of `head`.
pub const HEAD_LEN: usize = 6;
/// Place in `head` of the most bytes of a step.
pub const STRIDE: usize = 0;
/// Place in `head` of the bits of a state that are its base.
pub const BASE_BITS: usize = 1;
/// Place in `head` of the state that names start in.
pub const ROOT: usize = 2;
/// Place in `head` of the root entry's result.
pub const ROOT_RESULT: usize = 3;
/// Place in `head` of the bytes of an element of `results`.
pub const RESULT_BYTES: usize = 4;
/// Place in `head` of the number of halved arrays.
pub const HALVED: usize = 5;

/// Elements of a record of `arrays`: first slot, length, reciprocal, halved.
pub const RECORD: usize = 4;

/// Set in a link with which an entry ends.
pub const ACCEPTING: u32 = 1 << 31;
/// Slots of all arrays stay below.
pub const MAX_SLOTS: u64 = 1 << 31;

/// An array, as lookups use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) first: u32,
    pub(super) length: u32,
    pub(super) reciprocal: u64,
    pub(super) halved: bool,
}

impl Shape {
    /// An array of some length from a slot on.
    pub(super) const fn new(first: u32, length: u32, halved: bool) -> Self {
        Self { first, length, reciprocal: (1 << 32) / length as u64, halved }
    }

    /// An input modulo the length.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // below the length
    pub(super) const fn residue(self, input: u32) -> u32 {
        let length = self.length as u64;
        let quotient = (input as u64 * self.reciprocal) >> 32;
        let rest = input as u64 - quotient * length;
        (if rest >= length { rest - length } else { rest }) as u32
    }

    /// The slot of a residue with a base.
    #[inline]
    pub(super) const fn slot(self, base: u32, residue: u32) -> u32 {
        // Both are below the length, and that below 2^31.
        let sum = base + residue;
        self.first + if sum >= self.length { sum - self.length } else { sum }
    }

    /// Its record.
    pub(super) fn record(self) -> [u64; RECORD] {
        [self.first.into(), self.length.into(), self.reciprocal, self.halved.into()]
    }
}

/// An array and how full it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrayInfo {
    /// Its slots; in a MATA a prime.
    pub length: u32,
    /// Slots that hold a transition.
    pub transitions: u32,
    /// Whether its states take numbers in two halves.
    pub halved: bool,
}

/// A table of aligned transition arrays, ready for lookups.
#[derive(Clone, Debug)]
pub struct AlignedTable<F> {
    image: Image,
    pub(super) arrays: Vec<Shape>,
    form: PhantomData<F>,
}

/// An empty image for some arrays, with results of some width.
pub(super) fn allocate<F: Form>(
    arrays: &[Shape],
    width: usize,
    cap: Option<u64>,
) -> Result<Image, ImageError> {
    let slots = arrays.iter().map(|array| u64::from(array.length)).sum();
    let mut image = ImageBuilder::new(F::KIND, 1)
        .section::<u64>("head", HEAD_LEN as u64)
        .section::<u64>("arrays", (arrays.len() * RECORD) as u64)
        .section::<u64>("transitions", slots)
        .section_of_width("results", width, slots)
        .build(cap)?;
    let head = image.section_mut::<u64>(HEAD)?;
    head[STRIDE] = F::STRIDE.bytes() as u64;
    head[BASE_BITS] = F::BASE_BITS.into();
    head[RESULT_BYTES] = width as u64;
    head[HALVED] = arrays.iter().filter(|array| array.halved).count() as u64;
    for (record, array) in image.section_mut::<u64>(ARRAYS)?.chunks_exact_mut(RECORD).zip(arrays) {
        record.copy_from_slice(&array.record());
    }
    Ok(image)
}

impl<F: Form> AlignedTable<F> {
    /// The table of an image just compiled, or whose arrays were checked.
    pub(super) fn new(image: Image) -> Self {
        let arrays = image.section::<u64>(ARRAYS).chunks_exact(RECORD);
        let arrays = arrays.map(|record| shape(record).expect("checked before")).collect();
        Self { image, arrays, form: PhantomData }
    }

    /// The arrays and the load of each. O(slots).
    pub fn arrays(&self) -> Vec<ArrayInfo> {
        let slots = self.image.section::<u64>(TRANSITIONS);
        let info = |array: &Shape| {
            let from = array.first as usize;
            let used = slots[from..from + array.length as usize].iter().filter(|&&slot| slot >> 32 != 0);
            let transitions = u32::try_from(used.count()).expect("at most the length");
            ArrayInfo { length: array.length, transitions, halved: array.halved }
        };
        self.arrays.iter().map(info).collect()
    }

    /// Bytes of all sections for each name, infinite for none.
    #[allow(clippy::cast_precision_loss)] // a ratio
    pub fn bytes_per_name(&self) -> f64 {
        self.image.bytes() as f64 / self.image.entries() as f64
    }

    /// Whether the sections are there and agree with each other, all but the slots themselves.
    fn check_shape(image: &Image) -> Result<(), ImageError> {
        let malformed = |what: &str| Err(ImageError::Malformed(what.to_owned()));
        let usage = image.memory_usage();
        let [head, arrays, transitions, results, ..] = &usage[..] else {
            return malformed("a section is missing");
        };
        if (head.width, arrays.width, transitions.width) != (8, 8, 8) || !matches!(results.width, 1 | 2 | 4) {
            return malformed("a section's elements are of another width");
        }
        if head.len != HEAD_LEN as u64 || arrays.len % RECORD as u64 != 0 {
            return malformed("the head or the arrays' records are cut");
        }
        if transitions.len != results.len || transitions.len > MAX_SLOTS {
            return malformed("there is not a result for each slot, or more than 2^31 slots");
        }
        let head = image.section::<u64>(HEAD);
        if head[STRIDE] != F::STRIDE.bytes() as u64 || head[BASE_BITS] != u64::from(F::BASE_BITS) {
            return malformed("the stride or the bits of a base are another form's");
        }
        if head[RESULT_BYTES] != u64::from(results.width) {
            return malformed("results are of another width than the head says");
        }
        let records = image.section::<u64>(ARRAYS).chunks_exact(RECORD);
        if records.clone().filter(|record| record[3] == 1).count() as u64 != head[HALVED] {
            return malformed("there are more or fewer halved arrays than the head says");
        }
        if records.len() as u64 > 1 << (31 - F::BASE_BITS) {
            return malformed("more arrays than a state can name");
        }
        let mut first = 0;
        for record in records {
            let Some(array) = shape(record).filter(|array| u64::from(array.first) == first) else {
                return malformed("an array's record contradicts itself or the one before");
            };
            first += u64::from(array.length);
        }
        if first == transitions.len { Ok(()) } else { malformed("the arrays are not all slots") }
    }

    /// Whether an entry may end with a transition, where one does: with the slash that its input ends with.
    /// The second half of a number may have had it in the first.
    fn may_end(&self, slot: u64) -> bool {
        let last = (slot & 0xffff_ffff).to_le_bytes().into_iter().rfind(|&byte| byte != 0);
        let is_half = last.is_none() && self.arrays.iter().any(|array| array.halved);
        slot >> 63 == 0 || last == Some(SLASH) || is_half
    }

    /// Whether a lookup may go on in a state, 0 for none.
    #[inline]
    fn is_state(&self, state: u64) -> bool {
        let (array, base) = (state >> F::BASE_BITS, state & ((1 << F::BASE_BITS) - 1));
        let array = usize::try_from(array).ok().and_then(|array| self.arrays.get(array));
        state == 0 || state < 1 << 31 && array.is_some_and(|array| base < u64::from(array.length))
    }
}

/// The array of a record, where that is one.
fn shape(record: &[u64]) -> Option<Shape> {
    let [first, length] = [record[0], record[1]].map(|of| u32::try_from(of).ok());
    let (first, length) = (first?, length.filter(|length| (1..1 << 31).contains(length))?);
    let array = Shape::new(first, length, record[3] == 1);
    (array.record() == *record).then_some(array)
}

impl<F: Form> Table for AlignedTable<F> {
    const KIND: &'static str = F::KIND;
    const LAYOUT: u32 = 1;

    fn from_image(image: Image) -> Result<Self, ImageError> {
        Self::expect_kind(&image)?;
        Self::check_shape(&image)?;
        let table = Self::new(image);
        let (image, results) = (&table.image, table.image.results());
        let head = image.section::<u64>(HEAD);
        let bad =
            |section: &str| Err(ImageError::Malformed(format!("an element of {section} leads nowhere")));
        if !table.is_state(head[ROOT]) || head[ROOT_RESULT] > results.min(u64::from(u32::MAX)) {
            return bad("head");
        }
        if !image.section::<u64>(TRANSITIONS).iter().all(|&slot| table.admits(TRANSITIONS, slot, results)) {
            return bad("transitions");
        }
        let most = match image.width(RESULTS) {
            Some(1) => image.section::<u8>(RESULTS).iter().copied().max().map(number),
            Some(2) => image.section::<u16>(RESULTS).iter().copied().max().map(number),
            _ => image.section::<u32>(RESULTS).iter().copied().max().map(number),
        };
        if u64::from(most.unwrap_or(0)) > results {
            return bad("results");
        }
        Ok(table)
    }

    fn image(&self) -> &Image {
        &self.image
    }

    fn image_mut(&mut self, _: Checked) -> &mut Image {
        &mut self.image
    }

    fn admits(&self, section: SectionId, value: u64, results: u64) -> bool {
        match section {
            TRANSITIONS => self.is_state(value >> 32 & !u64::from(ACCEPTING)) && self.may_end(value),
            RESULTS => value <= results,
            _ => false,
        }
    }

    fn admits_at(&self, section: SectionId, index: u64, value: u64, results: u64) -> bool {
        match (section, usize::try_from(index)) {
            (HEAD, Ok(ROOT)) => self.is_state(value),
            (HEAD, Ok(ROOT_RESULT)) => value <= results.min(u64::from(u32::MAX)),
            // What a table is made by stays as it is.
            (HEAD | ARRAYS, Ok(at)) => self.image.section::<u64>(section).get(at) == Some(&value),
            _ => self.admits(section, value, results),
        }
    }
}
