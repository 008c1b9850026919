//! [`FoldV4`]: build and update, on top of the [`Form`].

use wirespeed_fib::{Address, BuildError, BuildOptions, Engine, Outgrown, Prefix, Rib, Standing, V4};
use wirespeed_image::{Patch, Table, width_for};

use super::form::Form;
use super::layout::{FoldTableV4, LONG, MAX_NEXT_HOP, SHORT, SLOT_BITS, SLOTS};

/// FOLD's control plane for IPv4: build, and keep up to date, a [`FoldTableV4`].
///
/// Memory: about 18 bytes for each chunk of the table. An update reads the chunks in the table.
#[derive(Clone, Debug)]
pub struct FoldV4 {
    pub(super) form: Form,
    /// The largest that has been in the table.
    pub(super) results: u32,
}

impl Engine<V4> for FoldV4 {
    const NAME: &'static str = "fold";
    const STANDING: Standing = Standing::Recommended;
    type Table = FoldTableV4;

    fn build(rib: &Rib<V4>, options: &BuildOptions) -> Result<(Self, FoldTableV4), BuildError> {
        let results = rib.max_next_hop().0;
        let widest = results.max(options.results);
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

/// Bytes that an image takes at most: as if no two chunks were equal, with next hops of one byte and without
/// head room. Real tables stay far below, scattered host routes take all of it. Nothing is built: a pass over
/// the routes.
pub fn most_bytes(rib: &Rib<V4>) -> u64 {
    #[allow(clippy::cast_possible_truncation)] // 18
    const SHORT_FROM: u8 = SLOT_BITS as u8;
    let (mut slots, mut blocks, mut long) = (0u64, 0u64, 0u64);
    let (mut last_slot, mut last_block, mut last_long) = (None, None, None);
    // They come in order.
    for (prefix, _) in rib.iter().filter(|(prefix, _)| prefix.len() > SHORT_FROM) {
        let slot = Some(prefix.address().keep(SHORT_FROM));
        slots += u64::from(std::mem::replace(&mut last_slot, slot) != slot);
        if prefix.len() > 24 {
            blocks += u64::from(std::mem::replace(&mut last_block, slot) != slot);
            let octets = Some(prefix.address().keep(24));
            long += u64::from(std::mem::replace(&mut last_long, octets) != octets);
        }
    }
    let arrays = 2 * SLOTS * size_of::<u32>();
    let (chunk, block) = (SHORT, SHORT * size_of::<u32>());
    arrays as u64 + slots * chunk as u64 + blocks * block as u64 + long * LONG as u64
}

#[cfg(test)]
mod tests {
    use wirespeed_fib::conformance::tables;
    use wirespeed_fib::{NextHop, Prefix};
    use wirespeed_image::{Table, rounds};

    use super::*;

    #[test]
    fn what_a_table_takes_at_most() {
        if rounds::leaves_to_ci() {
            return;
        }
        // A slot with a block and two long chunks each.
        let hosts = (0..100u32).map(|at| (Prefix::host(V4((at << 20) | ((at % 2) << 8))), NextHop(1)));
        let more = (0..100u32).map(|at| (Prefix::host(V4(at << 20 | 0x1000)), NextHop(1)));
        let rib: Rib<V4> = hosts.chain(more).collect();
        assert_eq!(most_bytes(&rib), (2 << 20) + 100 * (64 + 256 + 2 * 256));
        for (name, rib) in tables::hand_picked::<V4>() {
            let (form, table) =
                FoldV4::build(&rib, &BuildOptions::default()).expect("a valid table is built");
            if form.form.width == 1 {
                // Head room, and even chunks of slots without longer routes, one for each next hop.
                let most = most_bytes(&rib) / 8 * 9 + 100 * (64 + 256 + 256) + 256 * 64 + 4_096;
                assert!(table.image().bytes() <= most, "{name}: {} {most}", table.image().bytes());
            }
        }
    }
}
