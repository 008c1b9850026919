//! [`Dirty`]: what of the control plane's arrays the image doesn't have yet.

/// Places that may be others than in the image, some of them more than once.
#[derive(Clone, Debug, Default)]
pub(super) struct Dirty {
    places: Vec<u32>,
    /// Whether there is an image.
    is_noted: bool,
}

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

    /// What there is, ascending, each once, and from now on nothing.
    pub(super) fn take(&mut self) -> Taken<'_> {
        self.places.sort_unstable();
        self.places.dedup();
        Taken(&mut self.places)
    }

    pub(super) fn memory_usage(&self) -> u64 {
        (self.places.capacity() * size_of::<u32>()) as u64
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
