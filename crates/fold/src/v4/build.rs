//! [`FoldV4`]: build and update, on top of the [`Form`].

use wirespeed_fib::{BuildError, BuildOptions, Engine, Outgrown, Prefix, Rib, V4};
use wirespeed_image::{Patch, width_for};

use super::form::Form;
use super::layout::{FoldTableV4, MAX_NEXT_HOP};

/// FOLD's control plane for IPv4: build, and keep up to date, a [`FoldTableV4`].
///
/// Memory: the chunks of the table once more, and a megabyte for the slots.
#[derive(Clone, Debug)]
pub struct FoldV4 {
    pub(super) form: Form,
    /// The largest that has been in the table.
    pub(super) results: u32,
}

impl Engine<V4> for FoldV4 {
    const NAME: &'static str = "fold";
    type Table = FoldTableV4;

    fn build(rib: &Rib<V4>, options: &BuildOptions) -> Result<(Self, FoldTableV4), BuildError> {
        let results = rib.max_next_hop().0;
        let widest = results.max(options.next_hops);
        if widest > MAX_NEXT_HOP {
            let (limit, found) = (u64::from(MAX_NEXT_HOP), u64::from(widest));
            return Err(BuildError::Limit { engine: "fold", what: "next hops", limit, found });
        }
        // All ones is taken.
        let mut form = Form::new(width_for(u64::from(widest) + 1));
        form.fill(rib);
        let image = form.compile(rib.len(), results, options)?;
        Ok((Self { form, results }, FoldTableV4::new(image)))
    }

    fn update(&mut self, rib: &Rib<V4>, changed: &[Prefix<V4>]) -> Result<Patch, Outgrown> {
        self.patch(rib, changed)
    }

    fn memory_usage(&self) -> u64 {
        self.form.memory_usage()
    }
}
