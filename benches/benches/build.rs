//! What a table costs before its first lookup: reading its file, building the Rib, compiling each engine, and
//! loading a compiled image.

use std::hint::black_box;

use criterion::{BatchSize, BenchmarkId, Criterion, criterion_group, criterion_main};
use wirespeed_benches::data::{Source, sources};
use wirespeed_benches::lineup::Lineup;
use wirespeed_fib::{BuildOptions, Engine, Family, Rib, V4, V6};
use wirespeed_image::{Image, Table};
use wirespeed_sail::{SailL, SailLTable};

fn builds(criterion: &mut Criterion) {
    #[cfg(feature = "dpdk")]
    wirespeed_benches::dpdk::start(wirespeed_benches::machine::last_core()).expect("DPDK starts");
    for family in [Family::V4, Family::V6] {
        let Some(source) = sources().into_iter().find(|source| source.family == family) else { continue };
        match family {
            Family::V4 => on::<V4>(criterion, &source),
            Family::V6 => on::<V6>(criterion, &source),
        }
    }
}

fn on<A: Lineup>(criterion: &mut Criterion, source: &Source)
where
    SailL: Engine<A, Table = SailLTable<A>>,
{
    let (rib, _) = source.rib::<A>().expect("the table is read");
    let routes: Vec<_> = rib.iter().collect();
    let mut group = criterion.benchmark_group(format!("{}/build", source.name));
    group.sample_size(10);
    if source.path().is_some() {
        group.bench_function("read", |bencher| {
            bencher.iter(|| black_box(source.read().expect("the table is read")));
        });
    }
    group.bench_function("rib", |bencher| {
        bencher.iter(|| black_box(routes.iter().copied().collect::<Rib<A>>()));
    });
    for entry in A::lookups(false) {
        group.bench_function(BenchmarkId::from_parameter(&entry.name), |bencher| {
            bencher.iter_batched(|| (), |()| entry.build(&rib).ok(), BatchSize::PerIteration);
        });
    }
    let dir = std::env::temp_dir().join(format!("wirespeed-bench-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a temporary folder");
    let path = dir.join("table.img");
    let (_, table) = SailL::build(&rib, &BuildOptions::default()).expect("the table is built");
    table.image().save(&path).expect("the image is saved");
    group.bench_function("open-image", |bencher| {
        bencher.iter(|| Image::open(&path).and_then(SailLTable::<A>::from_image).expect("it is opened"));
    });
    group.finish();
    std::fs::remove_dir_all(&dir).expect("the temporary folder goes");
}

criterion_group!(benches, builds);
criterion_main!(benches);
