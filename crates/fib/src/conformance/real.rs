//! Full real tables with a day of real updates, where they are at hand.

use wirespeed_image::{Table, real_data};
use wirespeed_table::Engine;

use super::{Expected, build, check, scattered};
use crate::fib::{Fib, InFib};
use crate::oracle::boundaries;
use crate::read::{ReadOptions, Source, collect_updates, read_fib};
use crate::update::Update;

/// Every table of the real ones that has prefixes of this family, built whole and probed at each
/// prefix; then the table that has updates, after each of the first of them and after all.
pub fn real_tables<A: InFib, E: Engine<A>>() {
    let Some(tables) = real_data("fib") else { return };
    let files = std::fs::read_dir(tables).expect("the folder can be listed");
    for file in files {
        let path = file.expect("the folder can be listed").path();
        let name = path.display().to_string();
        // One of them has a line with host bits set.
        let options = ReadOptions { lenient: true, ..ReadOptions::default() };
        let (fib, _) = read_fib(&Source::Path(path.clone()), &options).expect("a real table is read");
        let rib = A::rib(&fib);
        if rib.is_empty() {
            continue;
        }
        let (engine, table) = build::<A, E>(rib);
        let mut addresses = boundaries(rib.iter().map(|(prefix, _)| prefix));
        addresses.extend(scattered::<A>(100_000));
        check(&table, &Expected::of(rib), &addresses, &name);
        let file = path.file_name().expect("a file has a name").to_str().expect("a name is text");
        if let Some(updates) = real_data(&format!("updates/{file}")) {
            day_of_updates(fib, engine, table, &Source::Path(updates));
        }
    }
}

/// Applies updates of a file, few at a time and then many at a time, and probes where they changed something.
fn day_of_updates<A: InFib, E: Engine<A>>(
    mut fib: Fib,
    mut engine: E,
    mut table: E::Table,
    updates: &Source,
) {
    let (updates, _) =
        collect_updates(updates, &ReadOptions::default(), &mut fib.next_hops).expect("real updates are read");
    let updates: Vec<Update<A>> = updates.iter().filter_map(|timed| A::update(&timed.update)).collect();
    let mut rib = A::rib(&fib).clone();
    let (few, many) = updates.split_at(updates.len().min(200));
    let steps = few.chunks(40).chain(many.chunks(250_000));
    for (step, chunk) in steps.enumerate() {
        let changed: Vec<_> = chunk.iter().filter(|update| rib.apply(update)).map(Update::prefix).collect();
        match engine.update(&table, &rib, &changed) {
            Ok(patch) => table.apply(&patch).expect("an engine's patch fits its table"),
            Err(_) => (engine, table) = build::<A, E>(&rib),
        }
        let what = format!("real updates, step {step}");
        check(&table, &Expected::of(&rib), &boundaries(changed.into_iter().take(20_000)), &what);
    }
    let addresses = boundaries(rib.iter().map(|(prefix, _)| prefix));
    check(&table, &Expected::of(&rib), &addresses, "after all real updates");
}
