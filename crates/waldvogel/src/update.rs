//! Updates as patches.
//!
//! A route that comes or goes is one key, and the markers that only it needs; a route that gets another next
//! hop is one value. Then there are the markers beneath it whose best match it is: few, as the tree needs few
//! (11 thousand of 257 thousand keys of the real IPv6 table), and found in a set in order. All values come
//! from the Rib as it is after all changes.

use wirespeed_fib::{Address, Outgrown, Prefix, Rib};
use wirespeed_image::{Changes, Image, Patch};

use crate::buckets::{Edit, Words};
use crate::build::Waldvogel;
use crate::sections::WIDE;
use crate::value::MAX_NEXT_HOP;

impl<A: Address> Waldvogel<A> {
    pub(crate) fn patch_beside(
        &mut self,
        table: &Image,
        rib: &Rib<A>,
        changed: &[Prefix<A>],
    ) -> Result<Patch, Outgrown> {
        let mut edit = Edit { changes: Changes::to(table), wide: Words::live(table.section(WIDE)) };
        for &prefix in changed {
            let now = rib.get(prefix).unwrap_or_default().0;
            if now > MAX_NEXT_HOP {
                return Err(Outgrown("room for next hops"));
            }
            self.results = self.results.max(now);
        }
        self.form.refresh_all(rib, changed, &mut edit)?;
        Ok(edit.changes.finish((rib.len() as u64, u64::from(self.results))))
    }
}
