//! Numbers that are known to fit a narrower type, such as lengths of frames: a debug build checks each.

macro_rules! narrow {
    ($($name:ident),*) => {$(
        #[doc = concat!("The number as a `", stringify!($name), "`. The caller knows that it fits.")]
        #[inline]
        #[allow(clippy::cast_possible_truncation)] // that is what the caller knows
        pub(crate) const fn $name(number: usize) -> $name {
            debug_assert!(number <= $name::MAX as usize);
            number as $name
        }
    )*};
}

narrow!(u8, u16, u32);
