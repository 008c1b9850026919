//! Updates as patches: the table is brought up to date with each prefix that changed.
//!
//! On the way down to what a prefix reaches, chunks of the first 32 bits change in place. Beneath, a chunk
//! takes the place of another: one of that content that is there already, itself changed in place where
//! nothing else leads to it, or a free one; and so on up to the 32nd bit.

use wirespeed_fib::{Outgrown, Prefix, Rib, V6};
use wirespeed_image::{Changes, Patch};

use super::build::FoldV6;
use super::form::Change;
use super::walk::Walk;

impl FoldV6 {
    pub(super) fn patch(&mut self, rib: &Rib<V6>, changed: &[Prefix<V6>]) -> Result<Patch, Outgrown> {
        let mut changes = Changes::collected();
        let mut walk = Walk::new(rib);
        for &prefix in changed {
            let now = rib.get(prefix).map_or(0, |next_hop| next_hop.0);
            if now >= self.form.base {
                return Err(Outgrown("room for next hops"));
            }
            self.results = self.results.max(now);
            let change = Change { prefix, decided_by: prefix.len() };
            self.form.refresh(&mut walk, change, &mut changes)?;
        }
        Ok(changes.finish((rib.len() as u64, u64::from(self.results))))
    }
}
