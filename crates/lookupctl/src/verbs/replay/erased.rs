//! Places without their types: what drives a trace is compiled once for all of them. A batch pays for it with two calls through a table
//! of methods.

use std::ops::Range;

use wirespeed_fib::NextHop;

use super::place::{GpuState, Lane, Place};

/// A place of some type.
pub(in crate::verbs) trait AnyPlace {
    /// Keys of the trace.
    fn count(&self) -> usize;
    /// A lane for batches of at most so many keys.
    fn any_lane(&self, batch: usize) -> Box<dyn Lane + '_>;
    /// What GPUs have to do with it.
    fn gpu_state(&self) -> Option<GpuState>;
}

impl<P: Place> AnyPlace for P {
    fn count(&self) -> usize {
        self.len()
    }

    fn any_lane(&self, batch: usize) -> Box<dyn Lane + '_> {
        Box::new(self.lane(batch))
    }

    fn gpu_state(&self) -> Option<GpuState> {
        self.gpu()
    }
}

/// One of them as a place.
pub(in crate::verbs) struct Erased<'a>(pub(in crate::verbs) Box<dyn AnyPlace + 'a>);

impl Place for Erased<'_> {
    type Lane<'p>
        = Box<dyn Lane + 'p>
    where
        Self: 'p;

    fn len(&self) -> usize {
        self.0.count()
    }

    fn lane(&self, batch: usize) -> Box<dyn Lane + '_> {
        self.0.any_lane(batch)
    }

    fn gpu(&self) -> Option<GpuState> {
        self.0.gpu_state()
    }
}

impl<L: Lane + ?Sized> Lane for Box<L> {
    fn depth(&self) -> usize {
        (**self).depth()
    }

    fn under_way(&self) -> usize {
        (**self).under_way()
    }

    fn is_ready(&self) -> bool {
        (**self).is_ready()
    }

    fn submit(&mut self, keys: Range<usize>) {
        (**self).submit(keys);
    }

    fn take(&mut self) -> &[NextHop] {
        (**self).take()
    }
}
