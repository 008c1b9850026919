//! IP lookup in one small table, or in thousands of tables at once.
//!
//! A forest is a set of tries, one for each table. All cut addresses into strides of one length, 4 or 8 bits,
//! and equal subtrees of all tries are stored once, like the nodes of a folded trie (Rétvári et al.,
//! "Compressing IP forwarding tables", SIGCOMM 2013). SAIL_M (Yang et al., SIGCOMM 2014, section 4.3) shares
//! its levels over all tables, too, but has a next hop of each table in each of its arrays, so a thousand
//! small tables cost a thousand next hops each time. A forest has no such arrays: a table costs the nodes
//! that no other table has.
//!
//! - [`ForestOf`] is the engine of a single small table. FOLD and RANK have a first level that takes from
//!   hundreds of kilobytes up for any table; a forest of one route takes some kilobytes.
//! - [`LiveFibs`] are tables by number, which come and go and change while readers look up. [`Fibs`] are
//!   their routes, [`ForestTable`] looks up.
//!
//! ```
//! use wirespeed_fib::{BuildOptions, Engine, Lookup, NextHop, Rib, V4};
//! use wirespeed_forest::ForestOf;
//!
//! let rib: Rib<V4> = [("10.0.0.0/8".parse().unwrap(), NextHop(1))].into_iter().collect();
//! let (_, table) = ForestOf::<V4>::build(&rib, &BuildOptions::default())?;
//! let address = "10.1.2.3".parse::<V4>().unwrap();
//! assert_eq!(Lookup::<V4>::lookup(&table, address), NextHop(1));
//! # Ok::<(), wirespeed_fib::BuildError>(())
//! ```

mod build;
mod chunks;
mod content;
mod contents;
mod fibs;
mod kernel;
pub mod layout;
mod links;
mod lookup;
mod nodes;
mod rest;
mod saved;
mod simd;
mod update;

pub use build::{Forest, ForestOf};
pub use fibs::{Change, FibId, FibKeys, Fibs, FibsError, FibsUpdate, InFibs};
pub use layout::ForestTable;

/// Tables that take updates, and come and go, while any number of readers look up.
///
/// ```
/// use wirespeed_fib::{BuildOptions, NextHop, Rib, V4};
/// use wirespeed_forest::{FibId, Fibs, FibsUpdate, LiveFibs};
///
/// let mut live = LiveFibs::<V4>::new(Fibs::new(), BuildOptions::default())?;
/// let (red, blue) = (FibId(7), FibId(4_000));
/// let routes = |n| [("10.0.0.0/8".parse().unwrap(), NextHop(n))].into_iter().collect::<Rib<V4>>();
/// live.apply(&[FibsUpdate::Set(red, routes(1).into()), FibsUpdate::Set(blue, routes(2).into())])?;
///
/// let (reader, address) = (live.reader(), "10.1.2.3".parse::<V4>().unwrap());
/// assert_eq!(reader.enter().lookup_in(blue, address), NextHop(2));
/// live.apply(&[FibsUpdate::Remove(blue)])?;
/// assert_eq!(reader.enter().lookup_in(blue, address), NextHop::NONE);
/// # Ok::<(), wirespeed_forest::FibsError>(())
/// ```
pub type LiveFibs<A> = wirespeed_table::Live<InFibs<A>, Forest>;

wirespeed_fib::whole! {
    wirespeed_fib::V4, ForestOf<wirespeed_fib::V4>;
    wirespeed_fib::V6, ForestOf<wirespeed_fib::V6>;
    InFibs<wirespeed_fib::V4>, Forest;
    InFibs<wirespeed_fib::V6>, Forest;
}
