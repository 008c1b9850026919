//! Updates as patches: the table is brought up to date with all prefixes that changed.
//!
//! On the way down to what a prefix reaches, chunks of the first 32 bits change in place. Beneath, a chunk
//! takes the place of another: one of that content that is there already, itself changed in place where
//! nothing else leads to it, or a free one; and so on up to the 32nd bit.

use std::borrow::Cow;

use wirespeed_fib::{Outgrown, Prefix, Rib, V6};
use wirespeed_image::{Changes, Image, Patch};

use super::build::FoldV6;
use super::reached::Changed;
use super::walk::Walk;

impl FoldV6 {
    pub(super) fn patch(
        &mut self,
        table: &Image,
        rib: &Rib<V6>,
        changed: &[Prefix<V6>],
    ) -> Result<Patch, Outgrown> {
        self.form.settle();
        let mut changes = Changes::to(table);
        let mut walk = Walk::new(rib);
        let changed = in_order(changed);
        let (whole, inside) = match changed.split_first() {
            Some((first, rest)) if first.len() == 0 => (Some(0), rest),
            _ => (None, &*changed),
        };
        self.form.refresh(&mut walk, Changed { cover: whole, inside }, &mut changes)?;
        Ok(changes.finish((rib.len() as u64, u64::from(self.form.results))))
    }
}

/// Changed routes in order, each once.
fn in_order(changed: &[Prefix<V6>]) -> Cow<'_, [Prefix<V6>]> {
    if changed.is_sorted_by(|a, b| a < b) {
        return changed.into();
    }
    let mut changed = changed.to_vec();
    changed.sort_unstable();
    changed.dedup();
    changed.into()
}
