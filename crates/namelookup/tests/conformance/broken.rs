//! Engines that are each wrong in one way, and the tests of the suite that see it: proof that each test can
//! fail.

use std::sync::Mutex;

use wirespeed_image::{Image, ImageError, Patch, PatchBuilder, PatchError, Table};
use wirespeed_namelookup::conformance::{
    OfNames, churn, hand_picked_tables, hostile_names, images, live_readers, memory_cap, random_tables,
    random_updates, read_domains, real_names, refusals, refusals_at_the_cap,
};
use wirespeed_namelookup::{
    BuildError, BuildOptions, Engine, Lookup, Match, Name, NameBuf, NameDomain, NameTable, Names, NodeId,
    Outgrown, Step,
};
use wirespeed_table::conformance::{self as suite, Fault, must_fail};

use crate::sorted::{Sorted, SortedTable};

type Built = Result<(Sorted, SortedTable), BuildError>;

/// An engine with a fault, and without one outside of broken tests.
pub(crate) type Faulty = suite::Faulty<NameDomain, OfNames, Sorted>;

/// The name's last component cut off.
fn parent(name: &Name) -> &Name {
    name.parent().unwrap_or(name)
}

/// The name of these bytes, the root for none.
fn named(bytes: &[u8]) -> NameBuf {
    if bytes.is_empty() { NameBuf::root() } else { NameBuf::new(bytes).unwrap() }
}

/// The first components of a name.
fn cut(name: &Name, most: usize) -> &Name {
    let over = name.components().count().saturating_sub(most);
    name.prefixes().nth(over).unwrap()
}

wirespeed_table::faults! {
    Fault<NameDomain, OfNames, Sorted>, [Faulty];
    /// Takes `/com/a` for a prefix of `/com/ab`.
    ByteWise: hand_picked_tables, random_updates => {
        fn lookup(&self, table: &SortedTable, name: &Name) -> Match {
            let bytes = name.as_bytes();
            let found = (2..bytes.len()).rev().find_map(|len| {
                let prefix = Name::new(&bytes[..len]).ok()?;
                Some(table.lookup(prefix)).filter(|found| found.length as usize == len)
            });
            let whole = table.lookup(name);
            found.filter(|found| found.length > whole.length).unwrap_or(whole)
        }
    }
    /// Knows nothing of the root's entry.
    NoRoot: hand_picked_tables, random_updates, live_readers => {
        fn lookup(&self, table: &SortedTable, name: &Name) -> Match {
            let found = table.lookup(name);
            if found.length == 0 { Match::NONE } else { found }
        }
    }
    /// Takes a name for one that ends in a zero more.
    Padded: hand_picked_tables, hostile_names => {
        fn lookup(&self, table: &SortedTable, name: &Name) -> Match {
            let found = table.lookup(name);
            if found.length as usize == name.len() || name.is_empty() {
                return found;
            }
            let padded = table.exact(Name::new(&[name.as_bytes(), &[0]].concat()).unwrap());
            padded.map_or(found, |result| Match::new(result, name.len()))
        }
    }
    /// Doesn't tell letters of different case apart.
    CaseBlind: hand_picked_tables => {
        fn lookup(&self, table: &SortedTable, name: &Name) -> Match {
            let lower = name.as_bytes().to_ascii_lowercase();
            let found = table.lookup(&named(&lower));
            if found.is_some() { found } else { table.lookup(name) }
        }
    }
    /// Counts the slash after the prefix, too.
    WrongLength: hand_picked_tables, random_tables => {
        fn match_batch(&self, table: &SortedTable, names: Names<'_>, matches: &mut [Match]) {
            for (name, found) in names.iter().zip(matches) {
                *found = table.lookup(name);
                found.length += u32::from((found.length as usize) < name.len() && found.is_some());
            }
        }
    }
    /// Forgets the last name of an odd batch.
    OddRemainder: hand_picked_tables, random_tables, images => {
        fn lookup_batch(&self, table: &SortedTable, names: Names<'_>, results: &mut [u32]) {
            let even = names.len() / 2 * 2;
            table.lookup_batch(names.part(0..even), &mut results[..even]);
        }
    }
    /// Goes wrong in batches past 1,000 names only.
    LongBatch: hand_picked_tables => {
        fn lookup_batch(&self, table: &SortedTable, names: Names<'_>, results: &mut [u32]) {
            table.lookup_batch(names, results);
            if names.len() > 1_000 {
                results.swap(0, 3);
            }
        }
    }
    /// Mixes up the parts on several cores.
    Mixed: hand_picked_tables = "on all cores", random_tables = "on all cores" => {
        fn par_lookup_batch(&self, table: &SortedTable, names: Names<'_>, results: &mut [u32]) {
            table.lookup_batch(names, results);
            results.rotate_left(1);
        }
    }
    /// Explains something else than it does.
    Explained: hand_picked_tables = "explained", random_tables = "explained" => {
        fn explain(&self, table: &SortedTable, name: &Name) -> Vec<Step> {
            table.explain(parent(name))
        }
    }
    /// Stops after 64 components.
    Shallow: hand_picked_tables, hostile_names => {
        fn lookup(&self, table: &SortedTable, name: &Name) -> Match {
            table.lookup(cut(name, 64))
        }
    }
    /// Takes a component for another that has the same words in another order.
    Summed: hostile_names => {
        fn lookup(&self, table: &SortedTable, name: &Name) -> Match {
            let mut sorted = name.as_bytes().to_vec();
            if name.as_bytes().starts_with(b"/com/") && name.len() == 53 {
                sorted[5..].sort_unstable();
                let found = table.lookup(Name::new(&sorted).unwrap());
                if found.is_some() {
                    return found;
                }
            }
            table.lookup(name)
        }
    }
    /// Works its way through a deep name once for each component.
    Quadratic: hostile_names = "deep names take" => {
        fn lookup(&self, table: &SortedTable, name: &Name) -> Match {
            if name.len() > 9 << 20 {
                std::thread::sleep(std::time::Duration::from_millis(550));
            }
            table.lookup(name)
        }
    }
    /// Takes room for the square of what there is under one node.
    OutOfProportion: hostile_names = "for random names" => {
        fn build(&self, names: &NameTable, options: &BuildOptions) -> Built {
            let words = names.iter().any(|(name, _)| name.as_bytes().starts_with(b"/com/aaaaaaaabbbbbbbb"));
            let (engine, table) = Sorted::build(names, options)?;
            if !words {
                return Ok((engine, table));
            }
            let image = table.image().with_attachment("waste", &vec![0; 8 << 20])?;
            Ok((engine, crate::sorted::unchecked(image)))
        }
    }
    /// Leaves out of a patch what was removed.
    StaleRemoves: random_updates, hand_picked_tables, refusals => {
        fn patch(&self, engine: &mut Sorted, table: &SortedTable, names: &NameTable, changed: &[NodeId]) -> Result<Patch, Outgrown> {
            let came = changed.iter().filter(|&&id| !names.node(id).is_gone()).count();
            if came == 0 { Ok(Patch::default()) } else { engine.patch(table, names, changed) }
        }
    }
    /// Keeps the counts of the first table.
    StaleCounts: random_updates = "entries", hand_picked_tables = "entries" => {
        fn patch(&self, engine: &mut Sorted, table: &SortedTable, names: &NameTable, changed: &[NodeId]) -> Result<Patch, Outgrown> {
            let mut same = PatchBuilder::new();
            engine.patch(table, names, changed)?.writes().iter().for_each(|w| same.set(w.section(), w.index(), w.value));
            Ok(same.finish(None))
        }
        fn open(&self, image: Image) -> Result<SortedTable, ImageError> {
            Ok(crate::sorted::unchecked(image))
        }
        fn check(&self, _: &SortedTable, _: &Patch) -> Result<(), PatchError> {
            Ok(())
        }
    }
    /// Is outgrown by every change.
    Grudging: refusals = "builds of each call" => {
        fn patch(&self, _: &mut Sorted, _: &SortedTable, _: &NameTable, _: &[NodeId]) -> Result<Patch, Outgrown> {
            Err(Outgrown("patience"))
        }
    }
    /// Takes room for each insertion, and never gives it back.
    Leaks: churn = "not reclaimed" => {
        fn patch(&self, engine: &mut Sorted, table: &SortedTable, names: &NameTable, changed: &[NodeId]) -> Result<Patch, Outgrown> {
            engine.lose(changed.len())?;
            engine.patch(table, names, changed)
        }
    }
    /// An image depends on how many were built before it.
    Remembers: churn = "as if new" => {
        fn build(&self, names: &NameTable, options: &BuildOptions) -> Built {
            static TURN: std::sync::atomic::AtomicU8 = std::sync::atomic::AtomicU8::new(0);
            let (engine, table) = Sorted::build(names, options)?;
            let turn = TURN.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let image = table.image().with_attachment("turn", &[turn])?;
            Ok((engine, crate::sorted::unchecked(image)))
        }
        fn check(&self, table: &SortedTable, patch: &Patch) -> Result<(), PatchError> {
            table.image().check(patch)
        }
    }
    /// Takes whatever image comes.
    Trusting: images => {
        fn open(&self, image: Image) -> Result<SortedTable, ImageError> {
            Ok(crate::sorted::unchecked(image))
        }
    }
    /// Takes whatever image and patch come, as long as they are of its kind.
    TrustingAlike: images => {
        fn open(&self, image: Image) -> Result<SortedTable, ImageError> {
            SortedTable::expect_kind(&image)?;
            Ok(crate::sorted::unchecked(image))
        }
        fn check(&self, table: &SortedTable, patch: &Patch) -> Result<(), PatchError> {
            table.image().check(patch)
        }
    }
    /// Takes a patch that an image of the same content would be refused for.
    TrustingPatches: images = "check Ok" => {
        fn check(&self, table: &SortedTable, patch: &Patch) -> Result<(), PatchError> {
            table.image().check(patch)
        }
    }
    /// Takes images of layouts to come.
    AnyLayout: images = "later layout" => {
        fn open(&self, image: Image) -> Result<SortedTable, ImageError> {
            if image.layout() == u32::MAX {
                let (_, table) = Sorted::build(&NameTable::new(), &BuildOptions::default()).unwrap();
                return Ok(table);
            }
            SortedTable::from_image(image)
        }
    }
    /// Has no regard for the cap.
    Uncapped: memory_cap, refusals_at_the_cap = "over the cap" => {
        fn build(&self, names: &NameTable, options: &BuildOptions) -> Built {
            Sorted::build(names, &BuildOptions { memory_cap: None, ..options.clone() })
        }
    }
    /// Refuses the table that takes just what the cap is.
    OffByOne: memory_cap = "capped at" => {
        fn build(&self, names: &NameTable, options: &BuildOptions) -> Built {
            let memory_cap = options.memory_cap.map(|cap| cap - 1);
            Sorted::build(names, &BuildOptions { memory_cap, ..options.clone() })
        }
    }
    /// Refuses every table that isn't empty.
    Refuses: hand_picked_tables = "is refused", random_tables = "is refused", images = "is refused",
        memory_cap = "is refused" => {
        fn build(&self, names: &NameTable, options: &BuildOptions) -> Built {
            if names.len() > 1 {
                let (limit, found) = (1, names.len() as u64);
                return Err(BuildError::Limit { engine: "faulty", what: "names", limit, found });
            }
            Sorted::build(names, options)
        }
    }
    /// Refuses tables that are within what it says is its limit.
    RefusesForNothing: hand_picked_tables => {
        fn build(&self, names: &NameTable, options: &BuildOptions) -> Built {
            if names.len() > 100 {
                let (limit, found) = (10_000, names.len() as u64);
                return Err(BuildError::Limit { engine: "faulty", what: "names", limit, found });
            }
            Sorted::build(names, options)
        }
    }
}

/// Wrong for one name in some thousands.
struct SeldomWrong;

impl Fault<NameDomain, OfNames, Sorted> for SeldomWrong {
    fn lookup(&self, table: &SortedTable, name: &Name) -> Match {
        if name.as_bytes().ends_with(b"xk") { Match::NONE } else { table.lookup(name) }
    }
}

#[test]
fn real_names_fail() {
    if read_domains(0).is_some() {
        must_fail::<NameDomain, OfNames, Sorted>("", &SeldomWrong, real_names::<Faulty>);
    }
}

/// The names of the last update, where every table of [`Shared`] looks first.
static SHARED: Mutex<Vec<(Vec<u8>, u32)>> = Mutex::new(Vec::new());

/// Changes what live readers see before the patch is applied, bit by bit.
struct Shared;

impl Fault<NameDomain, OfNames, Sorted> for Shared {
    fn patch(
        &self,
        engine: &mut Sorted,
        table: &SortedTable,
        names: &NameTable,
        changed: &[NodeId],
    ) -> Result<Patch, Outgrown> {
        SHARED.lock().unwrap().clear();
        for (name, result) in names.iter() {
            SHARED.lock().unwrap().push((name.as_bytes().to_vec(), result));
            std::thread::yield_now();
        }
        engine.patch(table, names, changed)
    }

    fn lookup(&self, table: &SortedTable, name: &Name) -> Match {
        let found = table.lookup(name);
        let shared = SHARED.lock().unwrap();
        let mut now = shared.iter().filter(|(other, _)| other == name.as_bytes());
        now.next().map_or(found, |&(_, result)| Match::new(result, name.len()))
    }
}

#[test]
fn readers_see_a_state_that_changes() {
    must_fail::<NameDomain, OfNames, Sorted>("scoped thread panicked", &Shared, live_readers::<Faulty>);
}
