//! [`NearHops`]: copies of next hops side by side, so that a frame's takes one read from few cache lines.

use wirespeed::{Labels, LabelsGuard, NextHop};

use crate::{Hop, Mac, PortId, Route};

/// Next hops that are copied: those of the first indexes, 16 bytes each.
const MOST: u32 = 1024;

/// Copies of the next hops of the first indexes.
#[derive(Debug, Default)]
pub(super) struct NearHops {
    /// The changes of the labels that the copies have.
    changes: u64,
    hops: Vec<Hop>,
}

/// No next hop: no packet is so small that it may go there.
const NONE: Hop = Hop::new(PortId(0), Mac([0; 6]), Mac([0; 6]), 0);

impl NearHops {
    /// Copies the next hops again, if labels changed.
    #[inline]
    pub(super) fn refresh(&mut self, routes: &Labels<Route>, guard: &LabelsGuard<'_, Route>) {
        // Before the copies: a change while they are made is copied the next time.
        let changes = routes.changes();
        if changes != self.changes {
            self.copy(guard);
            self.changes = changes;
        }
    }

    #[cold]
    fn copy(&mut self, guard: &LabelsGuard<'_, Route>) {
        let hop = |index| via(guard.get(NextHop(index))).copied().unwrap_or(NONE);
        self.hops.clear();
        self.hops.extend((0..MOST).map(hop));
    }

    /// The next hop of an index, with an MTU of 0 if it has none; `None` if it is not copied.
    #[inline]
    pub(super) fn get(&self, found: NextHop) -> Option<&Hop> {
        self.hops.get(found.0 as usize)
    }
}

/// The next hop of a route that has one.
pub(super) fn via(route: Option<&Route>) -> Option<&Hop> {
    match route {
        Some(Route::Via(hop)) => Some(hop),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_those_of_the_labels() {
        let hop = |port| Hop::new(PortId(port), Mac([2, 0, 0, 0, 0, 1]), Mac([2, 0, 0, 0, 0, 2]), 1500);
        let routes = Labels::new();
        let mut near = NearHops::default();
        let kernel = routes.intern(Route::Kernel).unwrap();
        let indexes: Vec<NextHop> =
            (0..2000).map(|port| routes.intern(Route::Via(hop(port))).unwrap()).collect();
        near.refresh(&routes, &routes.enter());
        assert_eq!((near.get(NextHop::NONE), near.get(kernel)), (Some(&NONE), Some(&NONE)));
        assert_eq!((near.get(indexes[0]), near.get(indexes[1000])), (Some(&hop(0)), Some(&hop(1000))));
        assert_eq!(near.get(indexes[1999]), None, "not copied");
        routes.replace(indexes[7], Route::Blackhole).unwrap();
        routes.replace(indexes[8], Route::Via(hop(9))).unwrap();
        near.refresh(&routes, &routes.enter());
        assert_eq!((near.get(indexes[7]), near.get(indexes[8])), (Some(&NONE), Some(&hop(9))));
    }
}
