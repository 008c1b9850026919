//! [`Dirty`]: what of the control plane's arrays the image doesn't have yet.

/// Places that may be others than in the image, some of them more than once.
#[derive(Clone, Debug, Default)]
pub(super) struct Dirty {
    places: Vec<u32>,
    /// Memory for sorting.
    other: Vec<u32>,
    /// Whether there is an image.
    is_noted: bool,
}

/// The fewest places that are sorted by digits.
const SOME: usize = 1 << 7;
/// The fewest places that are sorted by larger digits.
const MANY: usize = 1 << 11;

impl Dirty {
    /// There is an image now, which has all.
    pub(super) fn start(&mut self) {
        self.is_noted = true;
        self.places.clear();
    }

    #[inline]
    pub(super) fn note(&mut self, place: u32) {
        if self.is_noted {
            self.places.push(place);
        }
    }

    /// How many were noted.
    pub(super) const fn len(&self) -> usize {
        self.places.len()
    }

    /// What there is, ascending, each once, and from now on nothing.
    pub(super) fn take(&mut self) -> Taken<'_> {
        sort(&mut self.places, &mut self.other, |place| place);
        self.places.dedup();
        Taken(&mut self.places)
    }

    pub(super) fn memory_usage(&self) -> u64 {
        ((self.places.capacity() + self.other.capacity()) * size_of::<u32>()) as u64
    }
}

/// Sorts keys by their places: a few by comparing, more by digits from the lowest on. Each digit takes a pass
/// over all. `other` is memory for that.
pub(super) fn sort<K: Copy>(keys: &mut Vec<K>, other: &mut Vec<K>, place: impl Fn(K) -> u32 + Copy) {
    match keys.len() {
        ..SOME => keys.sort_unstable_by_key(|&key| place(key)),
        SOME..MANY => sort_by_digits::<8, K>(keys, other, place),
        MANY.. => sort_by_digits::<11, K>(keys, other, place),
    }
}

fn sort_by_digits<const BITS: u32, K: Copy>(
    keys: &mut Vec<K>,
    other: &mut Vec<K>,
    place: impl Fn(K) -> u32 + Copy,
) {
    let most = keys.iter().fold(0, |most, &key| most | place(key));
    other.resize(keys.len(), keys[0]);
    let mut counts = [0u32; MANY];
    let next = &mut counts[..1 << BITS];
    let mut shift = 0;
    while shift < u32::BITS && most >> shift != 0 {
        let digit = |key: K| (place(key) >> shift) as usize % (1 << BITS);
        next.fill(0);
        keys.iter().for_each(|&key| next[digit(key)] += 1);
        next.iter_mut().fold(0, |from, next| from + std::mem::replace(next, from));
        for &key in keys.iter() {
            let next = &mut next[digit(key)];
            other[*next as usize] = key;
            *next += 1;
        }
        std::mem::swap(keys, other);
        shift += BITS;
    }
}

/// Places that are forgotten when they have been seen.
#[derive(Debug)]
pub(super) struct Taken<'d>(&'d mut Vec<u32>);

impl std::ops::Deref for Taken<'_> {
    type Target = [u32];

    fn deref(&self) -> &[u32] {
        self.0
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use wirespeed_rng::Rng;

    use super::*;

    #[test]
    fn they_ascend_each_once() {
        let mut rng = Rng::new(1);
        for (len, below) in [
            (0, 1),
            (5, 3),
            (SOME, 2),
            (400, 1 << 24),
            (1_000, 1 << 32),
            (3_000, 1 << 24),
            (5_000, 900),
            (2_000, 1 << 32),
        ] {
            let mut dirty = Dirty::default();
            dirty.note(1);
            dirty.start();
            let places: Vec<_> =
                (0..len).map(|_| u32::try_from(rng.below(below)).expect("32 bits")).collect();
            places.iter().for_each(|&place| dirty.note(place));
            assert!(
                dirty.take().iter().eq(&std::collections::BTreeSet::from_iter(places)),
                "{len} below {below}"
            );
            assert!(dirty.take().is_empty());
        }
    }
}
