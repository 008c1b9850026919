//! Engines that are each wrong in one way, and the tests of the suite that see it: proof that each test can
//! fail.

use std::cell::{Cell, RefCell};
use std::sync::Mutex;

use wirespeed_fib::conformance::{
    OfRoutes, churn, hand_picked_tables, images, live_readers, memory_cap, random_tables, random_updates,
    real_tables, refusals, refusals_at_the_cap,
};
use wirespeed_fib::{
    Address, BuildError, BuildOptions, Engine, Lookup, NextHop, Outgrown, Prefix, Rib, Step, V4, V6,
    VectorLevel,
};
use wirespeed_image::{Image, ImageError, Patch, PatchBuilder, PatchError, Table, real_data};
use wirespeed_table::conformance::{self as suite, Fault, must_fail};

use crate::sorted::{Sorted, SortedTable, unchecked};

/// An engine with a fault, and without one outside of broken tests.
pub(crate) type Faulty<A> = suite::Faulty<A, OfRoutes, Sorted>;

type Right = SortedTable<V4>;
type Built = Result<(Sorted, Right), BuildError>;

/// The next hop of the longest route of an address that a faulty lookup takes for a match.
fn longest<A: Address>(table: &SortedTable<A>, address: A, is_taken: impl Fn(Prefix<A>) -> bool) -> NextHop {
    let mut routes = table.matching(address).map(|at| table.route(at));
    routes.find(|&(prefix, _)| is_taken(prefix)).map_or(NextHop::NONE, |(_, next_hop)| next_hop)
}

/// The routes with some of them as they are in a table that they came after.
fn with_old<'p>(table: &Right, rib: &Rib<V4>, some: impl Iterator<Item = &'p Prefix<V4>>) -> Rib<V4> {
    let mut old = rib.clone();
    for &prefix in some {
        let mut routes = table.matching(prefix.address()).map(|at| table.route(at));
        if let Some((_, next_hop)) = routes.find(|route| route.0 == prefix) {
            old.insert(prefix, next_hop);
        }
    }
    old
}

/// Opens an image whatever results it states.
fn open_unstated(mut image: Image) -> Result<Right, ImageError> {
    let stated = image.results();
    image.set_counts(image.entries(), u32::MAX.into());
    let table = Right::from_image(image)?;
    Ok(recounted(&table, table.image().entries(), stated))
}

/// A table of an image whose counts are other ones.
fn recounted(table: &Right, entries: u64, results: u64) -> Right {
    let mut image = table.image().clone();
    image.set_counts(entries, results);
    unchecked(image)
}

/// The writes of a patch with other counts.
fn counting(patch: &Patch, counts: Option<(u64, u64)>) -> Patch {
    let mut same = PatchBuilder::new();
    patch.writes().iter().for_each(|w| same.set(w.section(), w.index(), w.value));
    same.finish(counts)
}

wirespeed_table::faults! {
    Fault<V4, OfRoutes, Sorted>, [V4, Faulty<V4>];
    /// Knows nothing of the default route.
    NoDefault: hand_picked_tables, random_updates, images => {
        fn lookup(&self, table: &Right, address: V4) -> NextHop {
            longest(table, address, |prefix| prefix.len() > 0)
        }
    }
    /// Takes the shortest match.
    Shortest: hand_picked_tables, random_tables, random_updates, images, churn, refusals => {
        fn lookup(&self, table: &Right, address: V4) -> NextHop {
            table.matching(address).last().map_or(NextHop::NONE, |at| table.route(at).1)
        }
    }
    /// Knows nothing of single hosts.
    NoHosts: hand_picked_tables, random_tables, random_updates, images, live_readers, churn, refusals,
        refusals_at_the_cap => {
        fn lookup(&self, table: &Right, address: V4) -> NextHop {
            longest(table, address, |prefix| prefix.len() < V4::BITS)
        }
    }
    /// Leaves out the last address of each prefix.
    NoLast: hand_picked_tables, random_tables, random_updates, live_readers, churn, refusals => {
        fn lookup(&self, table: &Right, address: V4) -> NextHop {
            longest(table, address, |prefix| prefix.len() == V4::BITS || address != prefix.last())
        }
    }
    /// Leaves out the first address of each prefix.
    NoFirst: hand_picked_tables, random_tables, random_updates, live_readers, churn, refusals => {
        fn lookup(&self, table: &Right, address: V4) -> NextHop {
            longest(table, address, |prefix| prefix.len() == V4::BITS || address != prefix.address())
        }
    }
    /// Begins each prefix of a host one address before.
    Early: hand_picked_tables, random_tables, random_updates, churn, refusals, refusals_at_the_cap => {
        fn lookup(&self, table: &Right, address: V4) -> NextHop {
            let after = address.next().and_then(|next| table.matching(next).next());
            match after.map(|at| table.route(at)) {
                Some((prefix, next_hop)) if prefix.len() == V4::BITS => next_hop,
                _ => table.lookup(address),
            }
        }
    }
    /// Lets a hole lead to the route around it.
    NoHoles: hand_picked_tables, random_tables, random_updates => {
        fn lookup(&self, table: &Right, address: V4) -> NextHop {
            let mut next_hops = table.matching(address).map(|at| table.route(at).1);
            next_hops.find(|next_hop| next_hop.is_some()).unwrap_or_default()
        }
    }
    /// Has next hops of 8 bits.
    Narrow: hand_picked_tables, random_tables, random_updates => {
        fn lookup(&self, table: &Right, address: V4) -> NextHop {
            NextHop(table.lookup(address).0 & 0xff)
        }
    }
    /// Has next hops of 16 bits.
    NarrowToo: hand_picked_tables => {
        fn lookup(&self, table: &Right, address: V4) -> NextHop {
            NextHop(table.lookup(address).0 & 0xffff)
        }
    }
    /// Has next hops of 24 bits.
    NearlyWide: hand_picked_tables => {
        fn lookup(&self, table: &Right, address: V4) -> NextHop {
            NextHop(table.lookup(address).0 & 0xff_ffff)
        }
    }
    /// Forgets the last address of an odd batch.
    OddRemainder: hand_picked_tables, random_tables, random_updates, images, churn => {
        fn lookup_batch(&self, table: &Right, addresses: &[V4], next_hops: &mut [NextHop]) {
            let even = addresses.len() / 2 * 2;
            table.lookup_batch(&addresses[..even], &mut next_hops[..even]);
        }
    }
    /// Gives each result of a batch to the key before it.
    Shifted: hand_picked_tables, random_tables, random_updates, images, churn, refusals => {
        fn lookup_batch(&self, table: &Right, addresses: &[V4], next_hops: &mut [NextHop]) {
            table.lookup_batch(addresses, next_hops);
            next_hops.rotate_left(usize::from(next_hops.len() > 1));
        }
    }
    /// Goes wrong on CPUs without vectors only.
    WithoutVectors: hand_picked_tables, random_tables, images => {
        fn lookup_batch(&self, table: &Right, addresses: &[V4], next_hops: &mut [NextHop]) {
            table.lookup_batch(addresses, next_hops);
            if VectorLevel::best() == VectorLevel::Portable && next_hops.len() > 1 {
                next_hops.rotate_left(1);
            }
        }
    }
    /// Goes wrong in batches past 1,000 addresses only.
    LongBatch: hand_picked_tables, churn => {
        fn lookup_batch(&self, table: &Right, addresses: &[V4], next_hops: &mut [NextHop]) {
            table.lookup_batch(addresses, next_hops);
            if addresses.len() > 1_000 {
                next_hops[1_000] = NextHop(77);
            }
        }
    }
    /// Finds nothing for the first address after a part on several cores.
    Border: hand_picked_tables = "on all cores", random_tables = "on all cores" => {
        fn par_lookup_batch(&self, table: &Right, addresses: &[V4], next_hops: &mut [NextHop]) {
            table.lookup_batch(addresses, next_hops);
            next_hops.iter_mut().skip(2_048).step_by(2_048).for_each(|border| *border = NextHop(77));
        }
    }
    /// Is right in batches only.
    Single: hand_picked_tables = "alone", random_tables = "alone", images = "alone" => {
        fn lookup(&self, table: &Right, address: V4) -> NextHop {
            longest(table, address, |prefix| prefix.len() != 25 && prefix.len() != 32)
        }
        fn lookup_batch(&self, table: &Right, addresses: &[V4], next_hops: &mut [NextHop]) {
            table.lookup_batch(addresses, next_hops);
        }
    }
    /// Matches otherwise than it looks up.
    Matches: images = "in a batch" => {
        fn match_batch(&self, table: &Right, addresses: &[V4], next_hops: &mut [NextHop]) {
            table.lookup_batch(addresses, next_hops);
            next_hops.rotate_left(1);
        }
    }
    /// Explains another lookup.
    Explained: hand_picked_tables = "explained", random_tables = "explained" => {
        fn explain(&self, table: &Right, address: V4) -> Vec<Step> {
            table.explain(V4(address.0 ^ 1 << 31))
        }
    }
    /// Explains a next hop with a digit too many.
    LongExplained: hand_picked_tables = "explained", random_tables = "explained" => {
        fn explain(&self, table: &Right, address: V4) -> Vec<Step> {
            let mut steps = table.explain(address);
            steps.last_mut().unwrap().meaning.push('0');
            steps
        }
    }
    /// Leaves routes in that are withdrawn.
    StaleWithdraws: hand_picked_tables, random_updates, churn, refusals => {
        fn patch(&self, engine: &mut Sorted, table: &Right, rib: &Rib<V4>, changed: &[Prefix<V4>]) -> Result<Patch, Outgrown> {
            let gone = changed.iter().filter(|&&prefix| rib.get(prefix).is_none());
            engine.patch(table, &with_old(table, rib, gone), changed)
        }
    }
    /// Takes no notice of a route that has another next hop than before.
    StaleNextHops: random_updates, live_readers, churn, refusals => {
        fn patch(&self, engine: &mut Sorted, table: &Right, rib: &Rib<V4>, changed: &[Prefix<V4>]) -> Result<Patch, Outgrown> {
            let there = changed.iter().filter(|&&prefix| rib.get(prefix).is_some());
            engine.patch(table, &with_old(table, rib, there), changed)
        }
    }
    /// Keeps the counts of the first table.
    StaleCounts: hand_picked_tables, random_updates, refusals => {
        fn patch(&self, engine: &mut Sorted, table: &Right, rib: &Rib<V4>, changed: &[Prefix<V4>]) -> Result<Patch, Outgrown> {
            Ok(counting(&engine.patch(table, rib, changed)?, None))
        }
        fn open(&self, image: Image) -> Result<Right, ImageError> {
            Ok(unchecked(image))
        }
        fn check(&self, _: &Right, _: &Patch) -> Result<(), PatchError> {
            Ok(())
        }
    }
    /// Counts a route too many.
    Miscounts: hand_picked_tables = "entries", random_tables = "entries" => {
        fn build(&self, rib: &Rib<V4>, options: &BuildOptions) -> Built {
            let (engine, table): (_, Right) = Sorted::build(rib, options)?;
            let table = recounted(&table, rib.len() as u64 + 1, table.image().results());
            Ok((engine, table))
        }
    }
    /// States that there are no results.
    NoResults: hand_picked_tables = "stated", random_tables = "stated", images = "stated" => {
        fn build(&self, rib: &Rib<V4>, options: &BuildOptions) -> Built {
            let (engine, table): (_, Right) = Sorted::build(rib, options)?;
            Ok((engine, recounted(&table, rib.len() as u64, 0)))
        }
        fn open(&self, image: Image) -> Result<Right, ImageError> {
            open_unstated(image)
        }
    }
    /// States the results that there were at first.
    StaleResults: hand_picked_tables = "stated" => {
        fn patch(&self, engine: &mut Sorted, table: &Right, rib: &Rib<V4>, changed: &[Prefix<V4>]) -> Result<Patch, Outgrown> {
            let counts = (rib.len() as u64, table.image().results());
            Ok(counting(&engine.patch(table, rib, changed)?, Some(counts)))
        }
        fn open(&self, image: Image) -> Result<Right, ImageError> {
            open_unstated(image)
        }
        fn check(&self, _: &Right, _: &Patch) -> Result<(), PatchError> {
            Ok(())
        }
    }
    /// Is outgrown by every change.
    Grudging: churn = "not reclaimed", refusals = "builds", refusals_at_the_cap = "builds" => {
        fn patch(&self, _: &mut Sorted, _: &Right, _: &Rib<V4>, _: &[Prefix<V4>]) -> Result<Patch, Outgrown> {
            Err(Outgrown("patience"))
        }
    }
    /// Takes room for each change, and never gives it back.
    Leaks: churn = "not reclaimed" => {
        fn patch(&self, engine: &mut Sorted, table: &Right, rib: &Rib<V4>, changed: &[Prefix<V4>]) -> Result<Patch, Outgrown> {
            engine.lose(changed.len() / 10);
            engine.patch(table, rib, changed)
        }
    }
    /// Has an image that depends on how many were built before it.
    Remembers: churn = "as if new" => {
        fn build(&self, rib: &Rib<V4>, options: &BuildOptions) -> Built {
            thread_local!(static TURN: Cell<u8> = const { Cell::new(0) });
            let (engine, table): (_, Right) = Sorted::build(rib, options)?;
            TURN.set(TURN.get().wrapping_add(1));
            Ok((engine, unchecked(table.image().with_attachment("turn", &[TURN.get()])?)))
        }
    }
    /// Takes whatever image comes.
    Trusting: images = "another kind" => {
        fn open(&self, image: Image) -> Result<Right, ImageError> {
            Ok(unchecked(image))
        }
    }
    /// Takes images of layouts to come.
    AnyLayout: images = "later layout" => {
        fn open(&self, image: Image) -> Result<Right, ImageError> {
            if image.layout() == u32::MAX { Ok(unchecked(image)) } else { Right::from_image(image) }
        }
    }
    /// Takes an image without sections.
    Bare: images = "sections are missing" => {
        fn open(&self, image: Image) -> Result<Right, ImageError> {
            Right::expect_kind(&image)?;
            if image.memory_usage().is_empty() { Ok(unchecked(image)) } else { Right::from_image(image) }
        }
    }
    /// Takes whatever image of its sections and patch come.
    TrustingAlike: images => {
        fn open(&self, image: Image) -> Result<Right, ImageError> {
            Right::expect_kind(&image)?;
            if image.memory_usage().len() < 6 { Right::from_image(image) } else { Ok(unchecked(image)) }
        }
        fn check(&self, table: &Right, patch: &Patch) -> Result<(), PatchError> {
            table.image().check(patch)
        }
    }
    /// Takes next hops past the stated results, from images and patches.
    Unstated: images = "past the stated results" => {
        fn open(&self, image: Image) -> Result<Right, ImageError> {
            open_unstated(image)
        }
        fn check(&self, table: &Right, patch: &Patch) -> Result<(), PatchError> {
            recounted(table, 0, u32::MAX.into()).check(&counting(patch, None))
        }
    }
    /// Takes every patch.
    Gullible: images = "check Ok" => {
        fn check(&self, _: &Right, _: &Patch) -> Result<(), PatchError> {
            Ok(())
        }
    }
    /// Takes no patch of few writes.
    Strict: images = "check Err" => {
        fn check(&self, table: &Right, patch: &Patch) -> Result<(), PatchError> {
            if patch.writes().len() < 4 { return Err(PatchError::Section(crate::sorted::HEAD)); }
            table.check(patch)
        }
    }
    /// Opens no image of two routes.
    Suspicious: images => {
        fn open(&self, image: Image) -> Result<Right, ImageError> {
            if image.entries() == 2 {
                return Err(ImageError::Malformed("two routes".to_owned()));
            }
            Right::from_image(image)
        }
    }
    /// Has no regard for the cap.
    Uncapped: memory_cap = "a byte less does", refusals_at_the_cap = "over the cap" => {
        fn build(&self, rib: &Rib<V4>, options: &BuildOptions) -> Built {
            Sorted::build(rib, &BuildOptions { memory_cap: None, ..options.clone() })
        }
    }
    /// Refuses the table that takes just what the cap is.
    OffByOne: memory_cap = "capped at" => {
        fn build(&self, rib: &Rib<V4>, options: &BuildOptions) -> Built {
            let memory_cap = options.memory_cap.map(|cap| cap - 1);
            Sorted::build(rib, &BuildOptions { memory_cap, ..options.clone() })
        }
    }
    /// Finds no room at its cap for an odd number of routes.
    Odd: refusals_at_the_cap = "had to go at once" => {
        fn build(&self, rib: &Rib<V4>, options: &BuildOptions) -> Built {
            let memory_cap = if options.tight && rib.len() % 2 == 1 { Some(0) } else { options.memory_cap };
            Sorted::build(rib, &BuildOptions { memory_cap, ..options.clone() })
        }
    }
    /// Refuses tables of more than a hundred routes.
    Refuses: hand_picked_tables = "a valid table is built", random_tables = "a valid table is built",
        random_updates, images = "is refused", memory_cap = "is refused", churn, refusals_at_the_cap => {
        fn build(&self, rib: &Rib<V4>, options: &BuildOptions) -> Built {
            if rib.len() > 100 {
                let (limit, found) = (100, rib.len() as u64);
                return Err(BuildError::Limit { engine: "faulty", what: "routes", limit, found });
            }
            Sorted::build(rib, options)
        }
    }
    /// Leaves in what a call changed that not all agreed to.
    Insists: refusals => {
        fn patch(&self, engine: &mut Sorted, table: &Right, rib: &Rib<V4>, changed: &[Prefix<V4>]) -> Result<Patch, Outgrown> {
            if IS_TAKEN_BACK.take() { Ok(Patch::default()) } else { engine.patch(table, rib, changed) }
        }
        fn unpublished(&self, _: &mut Sorted) {
            IS_TAKEN_BACK.set(true);
        }
    }
    /// Changes the table before a call can fail.
    Hasty: refusals => {
        fn patch(&self, engine: &mut Sorted, table: &Right, rib: &Rib<V4>, changed: &[Prefix<V4>]) -> Result<Patch, Outgrown> {
            CHANGED.replace(changed.iter().map(|&prefix| (prefix, rib.get(prefix).unwrap_or_default())).collect());
            engine.patch(table, rib, changed)
        }
        fn lookup(&self, table: &Right, address: V4) -> NextHop {
            let changed = |prefix| CHANGED.with_borrow(|all| all.iter().find(|c| c.0 == prefix).map(|c| c.1));
            let at = table.matching(address).next();
            at.map_or(NextHop::NONE, |at| {
                let (prefix, next_hop) = table.route(at);
                changed(prefix).unwrap_or(next_hop)
            })
        }
    }
    /// Changes what readers see before the patch is applied.
    Half: live_readers = "scoped thread panicked" => {
        fn patch(&self, engine: &mut Sorted, table: &Right, rib: &Rib<V4>, changed: &[Prefix<V4>]) -> Result<Patch, Outgrown> {
            *SEEN.lock().unwrap() = Some((changed[0], rib.get(changed[0]).unwrap_or_default()));
            std::thread::sleep(std::time::Duration::from_millis(1));
            engine.patch(table, rib, changed)
        }
        fn lookup(&self, table: &Right, address: V4) -> NextHop {
            let at = table.matching(address).next();
            let (prefix, next_hop) = at.map_or((Prefix::DEFAULT, NextHop::NONE), |at| table.route(at));
            let seen = SEEN.lock().unwrap().filter(|seen| seen.0 == prefix);
            seen.map_or(next_hop, |seen| seen.1)
        }
    }
}

thread_local! {
    /// Whether the engine of [`Insists`] is about to take changes back.
    static IS_TAKEN_BACK: Cell<bool> = const { Cell::new(false) };
    /// The last changes of [`Hasty`].
    static CHANGED: RefCell<Vec<(Prefix<V4>, NextHop)>> = const { RefCell::new(Vec::new()) };
}

/// A change of [`Half`], which every copy of the table sees.
static SEEN: Mutex<Option<(Prefix<V4>, NextHop)>> = Mutex::new(None);

/// A wrong answer in a real table is seen, too; without data there is none to be seen.
#[test]
fn real_tables_fail() {
    if real_data("fib").is_some() {
        must_fail::<V4, OfRoutes, Sorted>("right is", &NoLast, real_tables::<V4, Faulty<V4>>);
    }
}

/// Faults of long addresses.
mod of_v6 {
    use super::*;

    type Right = SortedTable<V6>;

    wirespeed_table::faults! {
        Fault<V6, OfRoutes, Sorted>, [V6, Faulty<V6>];
        /// Knows nothing of single hosts.
        NoHosts: hand_picked_tables, random_tables, random_updates => {
            fn lookup(&self, table: &Right, address: V6) -> NextHop {
                longest(table, address, |prefix| prefix.len() < V6::BITS)
            }
        }
        /// Looks at the upper half of an address only.
        UpperHalf: hand_picked_tables, random_tables, random_updates => {
            fn lookup(&self, table: &Right, address: V6) -> NextHop {
                table.lookup(address.keep(64))
            }
        }
        /// Doesn't look at the last bit of an address.
        AllButOne: hand_picked_tables, random_tables, random_updates => {
            fn lookup(&self, table: &Right, address: V6) -> NextHop {
                table.lookup(address.keep(127))
            }
        }
    }
}
