//! `iptrie`: a Patricia trie that takes updates, and the level-compressed trie made from it that doesn't.

use iptrie::map::{LCTrieMap, RTrieMap};
use iptrie::{Ipv4Prefix, Ipv6Prefix};
use wirespeed_fib::{NextHop, Prefix, Rib, Update, V4, V6};

use super::{Native, index};
use crate::table::{Contestant, one_by_one};

/// `RTrieMap`.
pub struct IptrieRadix<P>(RTrieMap<P, u32>);

/// `LCTrieMap`.
pub struct IptrieLc<P>(LCTrieMap<P, u32>);

macro_rules! family {
    ($address:ty, $prefix:ty) => {
        impl IptrieRadix<$prefix> {
            /// Inserts all routes.
            pub fn build(rib: &Rib<$address>) -> Self {
                let mut map = RTrieMap::with_root_and_capacity(NextHop::NONE.0, rib.len());
                for (prefix, next_hop) in rib {
                    map.insert(Self::prefix(prefix), next_hop.0);
                }
                Self(map)
            }

            fn prefix(prefix: Prefix<$address>) -> $prefix {
                <$prefix>::new(prefix.address().std(), prefix.len())
                    .expect("no longer than the family allows")
            }
        }

        impl Contestant<$address> for IptrieRadix<$prefix> {
            one_by_one!($address);

            #[inline]
            fn one(&self, key: $address) -> NextHop {
                NextHop(*self.0.lookup(&key.std()).1)
            }

            fn update(&mut self, updates: &[Update<$address>]) -> bool {
                for update in updates {
                    let prefix = Self::prefix(update.prefix());
                    match update {
                        Update::Announce { next_hop, .. } => self.0.insert(prefix, index(*next_hop)),
                        // The root can't be taken out: it is the crate's answer where nothing else matches.
                        Update::Withdraw { prefix: root } if root.len() == 0 => {
                            self.0.insert(prefix, NextHop::NONE.0)
                        }
                        Update::Withdraw { .. } => self.0.remove(&prefix),
                    };
                }
                true
            }
        }

        impl IptrieLc<$prefix> {
            /// Inserts all routes, then compresses.
            pub fn build(rib: &Rib<$address>) -> Self {
                Self(IptrieRadix::<$prefix>::build(rib).0.compress())
            }
        }

        impl Contestant<$address> for IptrieLc<$prefix> {
            one_by_one!($address);

            #[inline]
            fn one(&self, key: $address) -> NextHop {
                NextHop(*self.0.lookup(&key.std()).1)
            }
        }
    };
}

family!(V4, Ipv4Prefix);
family!(V6, Ipv6Prefix);
