//! `ip_network_table-deps-treebitmap`: the tree bitmap under `ip_network_table`.

use ip_network_table_deps_treebitmap::IpLookupTable;
use ip_network_table_deps_treebitmap::address::Address as Bits;
use wirespeed_fib::{NextHop, Rib, Update};

use super::{Native, index, or_none};
use crate::table::{Contestant, one_by_one};

/// `IpLookupTable` over the standard library's addresses.
pub struct Treebitmap<A: Native>(IpLookupTable<A::Std, u32>)
where
    A::Std: Bits;

impl<A: Native> Treebitmap<A>
where
    A::Std: Bits,
{
    /// Inserts all routes.
    pub fn build(rib: &Rib<A>) -> Self {
        let mut table = IpLookupTable::with_capacity(rib.len());
        for (prefix, next_hop) in rib {
            table.insert(prefix.address().std(), u32::from(prefix.len()), next_hop.0);
        }
        Self(table)
    }
}

impl<A: Native> Contestant<A> for Treebitmap<A>
where
    A::Std: Bits,
{
    one_by_one!(A);

    #[inline]
    fn one(&self, key: A) -> NextHop {
        or_none(self.0.longest_match(key.std()).map(|(_, _, value)| value))
    }

    fn update(&mut self, updates: &[Update<A>]) -> bool {
        for update in updates {
            let prefix = update.prefix();
            let (address, len) = (prefix.address().std(), u32::from(prefix.len()));
            match update {
                Update::Announce { next_hop, .. } => self.0.insert(address, len, index(*next_hop)),
                Update::Withdraw { .. } => self.0.remove(address, len),
            };
        }
        true
    }
}
