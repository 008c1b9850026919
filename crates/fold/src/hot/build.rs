//! [`FoldHot`]: build and update, on top of the [`Form`].

use wirespeed_fib::{BuildError, BuildOptions, Engine, Outgrown, Prefix, Rib, Standing, V4};
use wirespeed_image::{Patch, Table, width_for};

use super::form::Form;
use super::layout::{FoldHotTable, MAX_NEXT_HOP};

/// The control plane of FOLD with hot blocks: build, and keep up to date, a [`FoldHotTable`].
///
/// Memory: about 18 bytes for each chunk of the table, and its hot blocks. An update reads the chunks in the
/// table.
#[derive(Clone, Debug)]
pub struct FoldHot {
    pub(super) form: Form,
    /// The largest that has been in the table.
    pub(super) results: u32,
}

impl Engine<V4> for FoldHot {
    const NAME: &'static str = "fold-hot";
    const STANDING: Standing = Standing::Niche("lookups on a GPU");
    type Table = FoldHotTable;

    fn build(rib: &Rib<V4>, options: &BuildOptions) -> Result<(Self, FoldHotTable), BuildError> {
        let results = rib.max_next_hop().0;
        let widest = results.max(options.results);
        if widest > MAX_NEXT_HOP {
            let (limit, found) = (u64::from(MAX_NEXT_HOP), u64::from(widest));
            return Err(BuildError::Limit { engine: "fold-hot", what: "next hops", limit, found });
        }
        // All ones is taken.
        let width = width_for(u64::from(widest) + 1);
        // One byte's next hops take nothing to speak of; of more, room for those to come, and what is left of
        // two bytes is for the numbers of chunks.
        let base = match width {
            1 => 1 << 8,
            _ => (widest + widest / 8 + 64).min(MAX_NEXT_HOP + 1),
        };
        let mut form = Form::new(width, base);
        form.fill(rib);
        let image = form.compile(rib, results, options)?;
        Ok((Self { form, results }, FoldHotTable::new(image)))
    }

    fn patch(
        &mut self,
        table: &Self::Table,
        rib: &Rib<V4>,
        changed: &[Prefix<V4>],
    ) -> Result<Patch, Outgrown> {
        self.patch(table.image(), rib, changed)
    }

    fn memory_usage(&self) -> u64 {
        self.form.memory_usage()
    }
}
