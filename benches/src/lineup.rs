//! Who takes part: the engines, the rivals, DPDK where it is built in, the ceiling for random IPv4 keys.

use anyhow::Result;
use wirespeed_fib::{InFib, V4, V6};

use crate::table::{Contestant, Contested, Lane, lane};
use crate::{engines, rivals};

/// A contestant that is yet to be built.
pub struct Entry<D: Contested> {
    /// The name in tables and records.
    pub name: String,
    /// The most entries with which it is built within a minute or so.
    pub most: usize,
    #[allow(clippy::type_complexity)] // a constructor
    build: Box<dyn Fn(&D::Source) -> Result<Box<dyn Lane<D>>>>,
}

impl<D: Contested> Entry<D> {
    /// A name and how to build what bears it.
    pub fn new(
        name: impl Into<String>,
        build: impl Fn(&D::Source) -> Result<Box<dyn Lane<D>>> + 'static,
    ) -> Self {
        Self { name: name.into(), most: usize::MAX, build: Box::new(build) }
    }

    /// A name and how to build the contestant that bears it.
    pub fn of<C: Contestant<D> + 'static>(
        name: impl Into<String>,
        build: impl Fn(&D::Source) -> Result<C> + 'static,
    ) -> Self {
        let name: String = name.into();
        Self::new(name.clone(), move |source| lane(name.as_str(), source, &build))
    }

    /// States the most entries with which it is built within a minute or so.
    #[must_use]
    pub fn up_to(self, most: usize) -> Self {
        Self { most, ..self }
    }

    /// Builds it. An error where the table is more than it can hold.
    pub fn build(&self, source: &D::Source) -> Result<Box<dyn Lane<D>>> {
        (self.build)(source)
    }
}

/// A family that there are rivals for.
pub trait Lineup: rivals::Native + InFib {
    /// The contestants of a contest of lookups.
    fn lookups(slow: bool) -> Vec<Entry<Self>>;
    /// The contestants of a contest of updates.
    fn updates() -> Vec<Entry<Self>>;
}

/// A line of a lineup: a name, a type with a `build` that can't fail.
macro_rules! entry {
    ($name:literal, $table:ty) => {
        Entry::of($name, |rib| Ok(<$table>::build(rib)))
    };
}

macro_rules! lineup {
    ($address:ty, $iptrie:ty, $dpdk:ident, $of_papers:expr) => {
        impl Lineup for $address {
            fn lookups(slow: bool) -> Vec<Entry<Self>> {
                let mut entries = engines::lookups();
                #[cfg(feature = "dpdk")]
                entries.extend(crate::dpdk::$dpdk::lookups(slow));
                #[cfg(not(feature = "dpdk"))]
                let _ = slow;
                entries.extend(rust_rivals!($address, $iptrie));
                entries.push(entry!("iptrie-lc", rivals::IptrieLc<$iptrie>));
                entries.extend($of_papers);
                entries
            }

            fn updates() -> Vec<Entry<Self>> {
                let mut entries = engines::updates();
                #[cfg(feature = "dpdk")]
                entries.extend(crate::dpdk::$dpdk::updates());
                entries.extend(rust_rivals!($address, $iptrie));
                entries
            }
        }
    };
}

macro_rules! rust_rivals {
    ($address:ty, $iptrie:ty) => {
        [
            entry!("treebitmap", rivals::Treebitmap<$address>),
            entry!("ts_bart", rivals::Bart<$address>),
            entry!("prefix-trie", rivals::PrefixTrie<$address>),
            entry!("poptrie", rivals::Poptrie<$address>),
            entry!("iptrie-radix", rivals::IptrieRadix<$iptrie>),
        ]
    };
}

lineup!(V4, iptrie::Ipv4Prefix, fib, sail_paper());
lineup!(V6, iptrie::Ipv6Prefix, fib6, [Entry::new("planb", rivals::planb)]);

/// What the SAIL paper is measured against and no crate has.
fn sail_paper() -> [Entry<V4>; 2] {
    [Entry::new("lulea", rivals::lulea), Entry::of("pbf", rivals::Pbf::build)]
}

#[cfg(test)]
mod tests;
