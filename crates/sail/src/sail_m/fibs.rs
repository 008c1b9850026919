//! [`Fibs`]: the routing tables of several virtual routers, what the user owns and SAIL_M is built from.

use std::fmt;

use wirespeed_fib::{Address, BuildError, Rib, Undo, Update};

/// The number of a FIB: of a virtual router or VRF. The paper's FIB index `i`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct FibId(pub u16);

impl FibId {
    /// The largest number of FIBs.
    pub const COUNT: usize = 1 << 16;

    /// The id as an index.
    #[inline]
    pub fn index(self) -> usize {
        self.0.into()
    }
}

impl fmt::Display for FibId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// FIBs of one family by their ids. Ids are handed out from 0 on, and again when a FIB was removed; next hops
/// are each FIB's own, so that one index may mean different things in two of them.
#[derive(Clone, Debug)]
pub struct Fibs<A: Address> {
    ribs: Vec<Option<Rib<A>>>,
}

impl<A: Address> Default for Fibs<A> {
    fn default() -> Self {
        Self { ribs: Vec::new() }
    }
}

impl<A: Address> Fibs<A> {
    /// No FIB.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a FIB; the lowest id that is free is its own. O(FIBs).
    pub fn add(&mut self, rib: Rib<A>) -> Result<FibId, FibsError> {
        let at = self.ribs.iter().position(Option::is_none).unwrap_or(self.ribs.len());
        let Ok(id) = u16::try_from(at).map(FibId) else {
            return Err(FibsError::Full { limit: FibId::COUNT, found: at + 1 });
        };
        match self.ribs.get_mut(at) {
            Some(free) => *free = Some(rib),
            None => self.ribs.push(Some(rib)),
        }
        Ok(id)
    }

    /// Removes a FIB; its routes, if it was there.
    pub fn remove(&mut self, id: FibId) -> Option<Rib<A>> {
        let removed = self.ribs.get_mut(id.index())?.take();
        while self.ribs.last().is_some_and(Option::is_none) {
            self.ribs.pop();
        }
        removed
    }

    /// The routes of a FIB.
    pub fn rib(&self, id: FibId) -> Option<&Rib<A>> {
        self.ribs.get(id.index())?.as_ref()
    }

    /// Applies an update to a FIB; whether its table is another one after it.
    pub fn apply(&mut self, id: FibId, update: &Update<A>) -> Result<bool, FibsError> {
        Ok(self.exchange(id, update)?.is_some())
    }

    /// Applies an update to a FIB; what takes it back, `None` where it changed nothing.
    pub fn exchange(&mut self, id: FibId, update: &Update<A>) -> Result<Option<Undo<A>>, FibsError> {
        Ok(self.rib_mut(id).ok_or(FibsError::NoFib(id))?.exchange(update))
    }

    /// Takes a change of a FIB back. Of several changes the last one goes first.
    pub fn undo(&mut self, id: FibId, undo: Undo<A>) {
        if let Some(rib) = self.rib_mut(id) {
            rib.undo(undo);
        }
    }

    /// Puts a FIB back that was removed, under the id that it had.
    pub(super) fn put_back(&mut self, id: FibId, rib: Rib<A>) {
        if self.ribs.len() <= id.index() {
            self.ribs.resize_with(id.index() + 1, || None);
        }
        self.ribs[id.index()] = Some(rib);
    }

    fn rib_mut(&mut self, id: FibId) -> Option<&mut Rib<A>> {
        self.ribs.get_mut(id.index())?.as_mut()
    }

    /// The FIBs, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (FibId, &Rib<A>)> {
        (0..=u16::MAX).map(FibId).zip(&self.ribs).filter_map(|(id, rib)| Some((id, rib.as_ref()?)))
    }

    /// Number of FIBs.
    pub fn len(&self) -> usize {
        self.iter().count()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ribs.is_empty()
    }

    /// One past the highest id.
    pub fn slots(&self) -> usize {
        self.ribs.len()
    }

    /// Bytes held.
    pub fn memory_usage(&self) -> u64 {
        self.iter().map(|(_, rib)| rib.memory_usage() as u64).sum()
    }
}

/// The reason why a change of FIBs failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FibsError {
    /// The table can't be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// There is no FIB of this id.
    #[error("there is no FIB {0}")]
    NoFib(FibId),
    /// All ids are taken.
    #[error("the table holds at most {limit} FIBs, and this is number {found}")]
    Full {
        /// The largest number of FIBs.
        limit: usize,
        /// The number with this FIB.
        found: usize,
    },
}

#[cfg(test)]
mod tests {
    use wirespeed_fib::{NextHop, Prefix, V4};

    use super::*;

    #[test]
    fn ids_are_lowest_first_and_come_back() {
        let mut fibs = Fibs::<V4>::new();
        let ids: Vec<_> = (0..3).map(|_| fibs.add(Rib::new()).unwrap()).collect();
        assert_eq!(ids, [FibId(0), FibId(1), FibId(2)]);
        assert!(fibs.remove(FibId(1)).is_some() && fibs.remove(FibId(1)).is_none());
        assert_eq!((fibs.len(), fibs.slots()), (2, 3));
        assert_eq!(fibs.add(Rib::new()).unwrap(), FibId(1));
        fibs.remove(FibId(1));
        fibs.remove(FibId(2));
        assert_eq!((fibs.len(), fibs.slots()), (1, 1));
        assert!(fibs.remove(FibId(u16::MAX)).is_none());
    }

    #[test]
    fn the_last_id_is_followed_by_none() {
        let mut fibs = Fibs::<V4> { ribs: vec![Some(Rib::new()); FibId::COUNT] };
        let error = fibs.add(Rib::new()).unwrap_err();
        assert_eq!(error.to_string(), "the table holds at most 65536 FIBs, and this is number 65537");
        fibs.remove(FibId(7));
        assert_eq!(fibs.add(Rib::new()).unwrap(), FibId(7));
    }

    #[test]
    fn an_update_of_no_fib_is_an_error() {
        let mut fibs = Fibs::<V4>::new();
        let update = Update::Announce { prefix: Prefix::DEFAULT, next_hop: Some(NextHop(1)) };
        assert!(matches!(fibs.apply(FibId(0), &update), Err(FibsError::NoFib(FibId(0)))));
        fibs.add(Rib::new()).unwrap();
        assert!(fibs.apply(FibId(0), &update).unwrap() && !fibs.apply(FibId(0), &update).unwrap());
    }
}
