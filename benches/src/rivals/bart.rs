//! `ts_bart`: BART in Rust, a tree of eight-bit strides with bitmaps and path compression.

use std::marker::PhantomData;
use std::net::IpAddr;

use ipnet::IpNet;
use ts_bart::{RoutingTable as _, SimpleTable};
use wirespeed_fib::{NextHop, Prefix, Rib, Update};

use super::{Native, index, or_none};
use crate::table::{Contestant, one_by_one};

/// `SimpleTable`, the table for a single family: `Table` would ask for the family of each key first.
pub struct Bart<A: Native>
where
    A::Std: Into<IpAddr>,
{
    table: SimpleTable<u32>,
    family: PhantomData<A>,
}

impl<A: Native> Bart<A>
where
    A::Std: Into<IpAddr>,
{
    /// Inserts all routes.
    pub fn build(rib: &Rib<A>) -> Self {
        let mut table = SimpleTable::default();
        for (prefix, next_hop) in rib {
            table.insert(net(prefix), next_hop.0);
        }
        Self { table, family: PhantomData }
    }
}

/// A prefix in the type of the crate `ipnet`.
fn net<A: Native>(prefix: Prefix<A>) -> IpNet
where
    A::Std: Into<IpAddr>,
{
    IpNet::new_assert(prefix.address().std().into(), prefix.len())
}

impl<A: Native> Contestant<A> for Bart<A>
where
    A::Std: Into<IpAddr>,
{
    one_by_one!(A);

    #[inline]
    fn one(&self, key: A) -> NextHop {
        or_none(self.table.lookup(key.std().into()))
    }

    fn update(&mut self, updates: &[Update<A>]) -> bool {
        for update in updates {
            let prefix = net(update.prefix());
            match update {
                Update::Announce { next_hop, .. } => self.table.insert(prefix, index(*next_hop)),
                Update::Withdraw { .. } => self.table.remove(prefix),
            };
        }
        true
    }
}
