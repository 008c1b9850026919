//! [`FamilyReader`]: the tables of one family, live or of an image; and [`Entered`], a state of them.

use std::ops::Deref;
use std::sync::Arc;

use wirespeed_fib::Address;
use wirespeed_forest::ForestTable;
use wirespeed_image::live;

/// Reads the tables of one family.
#[derive(Clone)]
pub(super) enum FamilyReader<A: Address> {
    /// Tables with a writer.
    Live(live::Reader<ForestTable<A>>),
    /// Tables that never change.
    Fixed(Arc<ForestTable<A>>),
}

/// A state of the tables of one family.
pub(super) enum Entered<'a, A: Address> {
    Live(live::Guard<'a, ForestTable<A>>),
    Fixed(&'a ForestTable<A>),
}

impl<A: Address> FamilyReader<A> {
    #[inline]
    pub(super) fn enter(&self) -> Entered<'_, A> {
        match self {
            Self::Live(reader) => Entered::Live(reader.enter()),
            Self::Fixed(table) => Entered::Fixed(table),
        }
    }
}

impl<A: Address> Deref for Entered<'_, A> {
    type Target = ForestTable<A>;

    #[inline]
    fn deref(&self) -> &ForestTable<A> {
        match self {
            Self::Live(guard) => guard,
            Self::Fixed(table) => table,
        }
    }
}
