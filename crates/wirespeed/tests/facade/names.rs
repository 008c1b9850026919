//! Tables of names: every engine in the list, before, during and after updates, from every source, and
//! through every reader.

use std::sync::atomic::{AtomicBool, Ordering};

use wirespeed::engine::EngineName;
use wirespeed::image::{Image, ImageBuilder};
use wirespeed::namelookup::oracle::Oracle;
use wirespeed::names::generate::{self, Churn, ChurnSpec, Load, Paths, TableSpec, TraceSpec};
use wirespeed::names::{NameRib, read};
use wirespeed::prelude::*;
use wirespeed::{Error, Labels, NextHop};
use wirespeed_image::rounds;
use wirespeed_namelookup::NameDomain;

use crate::common;

/// A table with what engines get wrong in it, and some hundreds of names of usual shape.
pub(crate) fn names(seed: u64) -> NameRib {
    names_with(seed, 8_000)
}

/// A table with what engines get wrong in it, and a component of so many bytes.
fn names_with(seed: u64, longest: usize) -> NameRib {
    let mut names = generate::table(&TableSpec { names: 700, results: 300, seed }).unwrap().names;
    let long = format!("/{}", "c".repeat(longest));
    let deep = "/a".repeat(300);
    for (name, result) in [("/", 1), ("/com/a", 2), ("/com/ab", 3), ("/\u{1}", 4), (&long, 5), (&deep, 6)] {
        names.insert(Name::new(name).unwrap(), result);
    }
    names
}

/// Engines, each with a table for it. ATA has no space for a long component in its one array, and gets a
/// shorter one. Most runs have shorter ones for all.
pub(crate) fn engines(seed: u64) -> impl Iterator<Item = (EngineName, NameRib)> {
    let longest = |engine| match engine {
        EngineName::Ata | EngineName::Ata2 | EngineName::Ata3 => 100,
        _ if rounds::is_long() => 8_000,
        _ => 1_000,
    };
    common::engines::<NameDomain>().map(move |engine| (engine, names_with(seed, longest(engine))))
}

/// The entries that results need: not those whose nearest one above has their result.
fn reduced(names: &NameRib) -> Oracle {
    let oracle: Oracle = names.iter().collect();
    let is_left = |name: &NameBuf, result: u32| {
        name.parent().is_none_or(|parent| oracle.lookup(parent).result != result)
    };
    names.iter().filter(|(name, result)| is_left(name, *result)).collect()
}

/// Entries, names beneath and near them, and others.
pub(crate) fn keys(names: &NameRib) -> NameBatch {
    let mut batch = NameBatch::new();
    for (name, _) in names.iter() {
        for tail in [&b""[..], b"/x", b"x"] {
            if let Ok(near) = NameBuf::new(&[name.as_bytes(), tail].concat()) {
                batch.push(&near).unwrap();
            }
        }
    }
    for name in ["/", "/com", "/com/abc", "/nowhere/at/all"] {
        batch.push(Name::new(name).unwrap()).unwrap();
    }
    batch
}

/// Holds everything that a reader can do against the oracle.
#[track_caller]
pub(crate) fn check(reader: &NameReader, names: &NameRib, what: &str) {
    let oracle: Oracle = names.iter().collect();
    let batch = keys(names);
    let left = reader.is_aggregated().then(|| reduced(names));
    let right = |name: &Name| {
        let right = oracle.lookup(name);
        let length = left.as_ref().map_or(right.length, |left| left.lookup(name).length);
        Match { length, ..right }
    };
    let right: Vec<Match> = batch.names().iter().map(right).collect();
    let next_hops: Vec<_> = right.iter().map(|found| found.next_hop()).collect();
    for (name, right) in batch.names().iter().zip(&right) {
        assert_eq!(reader.lookup(name), right.next_hop(), "{what}: {name}");
        let found = reader.longest_match(name);
        assert_eq!(found, right.prefix(name).map(|prefix| (prefix, right.next_hop())), "{what}: {name}");
        assert_eq!(reader.enter().longest_match(name), found, "{what}");
        assert_eq!(reader.enter().lookup(name), right.next_hop(), "{what}");
    }
    let mut found = vec![NextHop(u32::MAX); batch.len()];
    reader.lookup_batch(&batch, &mut found);
    assert_eq!(found, next_hops, "{what}");
    found.fill(NextHop(u32::MAX));
    reader.par_lookup_batch(&batch, &mut found);
    assert_eq!(found, next_hops, "{what}");
    let mut matches = vec![Match::NONE; batch.len()];
    reader.match_batch(batch.names(), &mut matches);
    assert_eq!(matches, right, "{what}");
}

pub(crate) fn churn(names: &NameRib, count: usize) -> Vec<NameUpdate> {
    let spec = ChurnSpec { results: 400, ..ChurnSpec::default() };
    Churn::new(names, &spec).unwrap().take(count).map(|timed| timed.update).collect()
}

#[test]
fn every_engine_is_right_before_and_after_updates() {
    for (engine, rib) in engines(11) {
        is_right_before_and_after_updates(engine, rib, false);
    }
}

#[test]
fn an_aggregated_table_is_right_before_and_after_updates() {
    for (engine, rib) in engines(12) {
        is_right_before_and_after_updates(engine, with_redundant_ones(rib), true);
    }
}

/// Some more entries, beneath those that are there, with results that are theirs and others.
fn with_redundant_ones(mut rib: NameRib) -> NameRib {
    let entries: Vec<_> = rib.iter().collect();
    for (at, (name, result)) in entries.into_iter().enumerate().filter(|(_, (name, _))| name.len() < 1_000) {
        let below = NameBuf::new(&[name.as_bytes(), b"/x"].concat()).unwrap();
        let beneath = NameBuf::new(&[name.as_bytes(), b"/x/y/z"].concat()).unwrap();
        rib.insert(&below, if at % 3 == 0 { result + 1 } else { result });
        rib.insert(&beneath, result);
    }
    rib
}

fn is_right_before_and_after_updates(engine: EngineName, mut rib: NameRib, aggregate: bool) {
    let builder = NameTable::builder().rib(rib.clone()).engine(engine).aggregate(aggregate);
    let mut table = builder.build().unwrap();
    assert_eq!((table.engine(), table.len()), (engine, rib.len()));
    assert_eq!((table.is_aggregated(), table.reader().is_aggregated()), (aggregate, aggregate));
    let reader = table.reader();
    check(&reader, &rib, engine.as_str());
    for updates in churn(&rib, 300).chunks(100) {
        let applied = table.apply(updates).unwrap();
        let changes = updates.iter().filter(|update| rib.apply(update)).count();
        assert_eq!(applied.changes, changes);
        check(&reader.clone(), &rib, engine.as_str());
    }
    table.insert(Name::new("/one/by/one").unwrap(), NextHop(7)).unwrap();
    assert_eq!(reader.lookup(Name::new("/one/by/one/x").unwrap()), NextHop(7));
    let all: Vec<_> = table.entries().iter().map(|(name, _)| NameUpdate::remove(name)).collect();
    table.apply(&all).unwrap();
    assert!(table.is_empty());
    check(&reader, &NameRib::new(), engine.as_str());
    drop(table);
    check(&reader, &NameRib::new(), "after the writer is gone");
}

/// Each update moves all names to a new label. Readers see one label everywhere, and can tell what it stands
/// for.
#[test]
fn readers_see_updates_whole_and_resolve_what_they_see() {
    let texts = ["/a", "/a/b", "/c", "/d/e/f", "/"];
    for engine in common::engines::<NameDomain>() {
        let labels = Labels::new();
        let all: Vec<_> = texts.iter().map(|text| NameBuf::new(text).unwrap()).collect();
        let first = all.iter().map(|name| (name, "round 0".to_owned()));
        let mut table = NameTable::builder().labelled_names(&labels, first).engine(engine).build().unwrap();
        let (reader, is_over) = (table.reader(), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let (reader, all, labels, is_over) = (reader.clone(), &all, &labels, &is_over);
            let worker = scope.spawn(move || {
                let batch: NameBatch = all.iter().map(|name| &**name).collect();
                let mut found = vec![NextHop::NONE; batch.len()];
                while !is_over.load(Ordering::Relaxed) {
                    let known = labels.enter();
                    reader.lookup_batch(&batch, &mut found);
                    assert!(found.iter().all(|&next_hop| next_hop == found[0]), "{engine}: {found:?}");
                    assert!(known.get(found[0]).unwrap().starts_with("round"));
                }
            });
            for round in 1..200 {
                let label = labels.intern(format!("round {round}")).unwrap();
                let updates: Vec<_> = all.iter().map(|name| NameUpdate::insert(name, label)).collect();
                table.apply(&updates).unwrap();
            }
            is_over.store(true, Ordering::Relaxed);
            worker.join().unwrap();
        });
        assert_eq!(labels.get(reader.lookup(&all[0])).as_deref(), Some(&"round 199".to_owned()));
    }
}

#[test]
fn an_image_answers_at_once_and_takes_updates_where_it_is_asked_to() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("image");
    let plain = engines(21).map(|(engine, rib)| (engine, rib, false));
    let aggregated = engines(22).map(|(engine, rib)| (engine, with_redundant_ones(rib), true));
    for (engine, mut rib, aggregate) in plain.chain(aggregated) {
        let builder = NameTable::builder().rib(rib.clone()).engine(engine).aggregate(aggregate);
        builder.build().unwrap().save(&path).unwrap();
        let reader = NameReader::open(&path).unwrap();
        assert_eq!((reader.engine(), reader.is_aggregated()), (engine, aggregate));
        check(&reader, &rib, engine.as_str());
        check(&reader.clone(), &rib, "a clone");
        let mut table = NameTable::open(&path).unwrap();
        assert_eq!((table.engine(), table.is_aggregated()), (engine, aggregate));
        assert_eq!((table.len(), table.rebuilds()), (rib.len(), 0));
        let live = table.reader();
        check(&live, &rib, "opened");
        for (round, updates) in churn(&rib, 200).chunks(100).enumerate() {
            let applied = table.apply(updates).unwrap();
            assert!(applied.rebuilt || round > 0, "an image brings no engine");
            updates.iter().for_each(|update| {
                rib.apply(update);
            });
            check(&live, &rib, "opened and updated");
        }
        table.save(&path).unwrap();
        check(&NameReader::open(&path).unwrap(), &rib, "saved again");
    }
}

#[test]
fn labels_go_with_the_image() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("image");
    let labels = Labels::new();
    let name = NameBuf::new("/com/parc").unwrap();
    let table = NameTable::builder().labelled_names(&labels, [(&name, "core".to_owned())]).build().unwrap();
    table.save_labelled(&path, &labels).unwrap();
    let labels = Labels::<String>::open(&path).unwrap();
    assert_eq!(
        labels.get(NameReader::open(&path).unwrap().lookup(&name)).as_deref(),
        Some(&"core".to_owned())
    );
    assert_eq!(labels.intern("new".to_owned()), Ok(NextHop(2)));
    let error = Labels::<u32>::open(&path).unwrap_err();
    assert!(matches!(&error, Error::Label { text, .. } if text == "core"), "{error}");
    table.save(&path).unwrap();
    assert!(Labels::<u32>::open(&path).unwrap().is_empty());
}

#[test]
fn names_from_files_in_every_form() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    for (file, text) in [
        ("names", "/com/parc east\n/com/parc/www west\n"),
        ("domains", "*.parc.com east\nWWW.parc.com. west\n"),
        ("urls", "parc.com:80/ east\nhttp://www.parc.com west\n"),
        ("ndn", "ndn:/com/parc east\nndn:/com/parc/www west\n"),
    ] {
        // Labels that are there already keep their indexes.
        let labels = Labels::new();
        labels.intern("other".to_owned()).unwrap();
        let table = NameTable::builder().file(write(file, text), &labels).build().unwrap();
        let found =
            |name: &str| labels.get(table.reader().lookup(Name::new(name).unwrap())).as_deref().cloned();
        assert_eq!(
            (found("/com/parc/x"), found("/com/parc/www/x")),
            (Some("east".into()), Some("west".into()))
        );
    }
    let labels = Labels::<u32>::new();
    let list = write("list", "# no results\nparc.com\nexample.org\n");
    let table = NameTable::builder().file(&list, &labels).build().unwrap();
    let found = table.reader().lookup(Name::new("/org/example").unwrap());
    assert_eq!(labels.get(found).as_deref(), Some(&3), "the number of its line");

    let bad = write("bad", "/com/parc 1\n/com//www 2\n");
    let error = NameTable::builder().file(&bad, &labels).build().unwrap_err();
    assert!(matches!(error, Error::ReadNames(_)) && error.to_string().contains("bad:2: "), "{error}");
    let options = read::ReadOptions { lenient: true, ..Default::default() };
    let (fib, report) = read::read_table(&read::Source::Path(bad), &options).unwrap();
    let table = NameTable::builder().fib(fib, &labels).build().unwrap();
    assert_eq!((table.len(), report.records), (1, 2));
    let words = write("words", "/com/parc core\n");
    let error = NameTable::builder().file(words, &labels).build().unwrap_err();
    assert!(matches!(&error, Error::Label { text, .. } if text == "core"), "{error}");
}

#[test]
fn what_cannot_be_is_refused() {
    let name = NameBuf::new("/com/parc").unwrap();
    let error = NameTable::builder().names([(&name, NextHop::NONE)]).build().unwrap_err();
    assert!(matches!(&error, Error::NameWithoutResult { name } if name == "/com/parc"), "{error}");
    let mut table = NameTable::builder().names([(&name, NextHop(1))]).build().unwrap();
    let updates = [NameUpdate::remove(&name), NameUpdate::insert(&name, NextHop::NONE)];
    assert!(matches!(table.apply(&updates), Err(Error::NameWithoutResult { .. })));
    assert_eq!(table.len(), 1, "nothing is changed");
    let error = NameTable::builder().engine("sail-l").build().unwrap_err();
    assert!(matches!(error, Error::UnknownEngine(_)), "{error}");
    let error = NameTable::builder().rib(names(1)).memory_cap(1000).build().unwrap_err();
    assert!(matches!(error, Error::MemoryCap { what: "names", cap: 1000, .. }), "{error}");

    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("image");
    table.save(&path).unwrap();
    assert!(matches!(
        Ipv4Table::open(&path),
        Err(Error::ImageOf { found: "names", wanted: "addresses", .. })
    ));
    let bytes = std::fs::read(&path).unwrap();
    for at in (0..bytes.len()).step_by(bytes.len() / 50) {
        let mut bad = bytes.clone();
        bad[at] ^= 1;
        std::fs::write(&path, &bad).unwrap();
        assert!(NameTable::open(&path).is_err(), "byte {at}");
    }
    // A compiled table alone, and names that are not the table's.
    std::fs::write(&path, &bytes).unwrap();
    let bare = Image::open(&path).unwrap().without_attachments(&["names", "labels", "made"]).unwrap();
    bare.save(&path).unwrap();
    assert_eq!(NameReader::open(&path).unwrap().lookup(&name), NextHop(1));
    assert!(matches!(NameTable::open(&path), Err(Error::ImageWithout { what: "names", .. })));
    for made in ["sail-l", "mata", "acta twice", "acta aggregated twice", "", "acta "] {
        bare.with_attachment("made", made.as_bytes()).unwrap().save(&path).unwrap();
        assert!(matches!(NameReader::open(&path), Err(Error::Image { .. })), "{made:?}");
    }
    for records in [&b""[..], b"\x00\x01", b"\x00\x02/a\x01\x02\x01b\x01"] {
        bare.with_attachment("names", records).unwrap().save(&path).unwrap();
        assert!(matches!(NameTable::open(&path), Err(Error::Image { .. })), "{records:?}");
    }
    ImageBuilder::new("other", 1).build(None).unwrap().save(&path).unwrap();
    assert!(matches!(NameReader::open(&path), Err(Error::ImageKind { .. })));
    Ipv4Table::builder().build().unwrap().save(&path).unwrap();
    assert!(matches!(
        NameReader::open(&path),
        Err(Error::ImageOf { found: "addresses", wanted: "names", .. })
    ));
}

#[test]
fn equal_seeds_make_equal_tables() {
    let dir = tempfile::tempdir().unwrap();
    let image = |name: &str| {
        let path = dir.path().join(name);
        NameTable::builder().rib(names(5)).seed(7).build().unwrap().save(&path).unwrap();
        std::fs::read(path).unwrap()
    };
    assert_eq!(image("one"), image("two"));
}

#[test]
fn traces_of_a_table_match_in_it() {
    let rib = names(9);
    let spec = TraceSpec { load: Load::Heavy, misses: 0.0, seed: 1 };
    let trace = generate::trace(&rib, Paths::made(), &spec, 500).unwrap();
    let mut found = vec![NextHop::NONE; trace.len()];
    NameTable::builder().rib(rib).build().unwrap().reader().lookup_batch(&trace, &mut found);
    assert!(found.iter().all(|next_hop| next_hop.is_some()));
}
