//! Lookups on GPUs through the façade: without one, and on the kernels' host build in a GPU's place.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use wirespeed::engine::{EngineName, Engines};
use wirespeed::fib::synth::{self, UpdateSpec};
use wirespeed::gpu::driver::devices;
use wirespeed::gpu::runtime::GpuOptions;
use wirespeed::{
    AnyUpdate, Device, Error, Fleet, IpTable, Ipv4Table, NextHop, Prefix, Reader, Rib, Table, Update, V4, V6,
};

use crate::common::{Native, addresses, check, has_gpu, on_host, rib};

/// A device in a GPU's place, and what makes it be lost; `None` where there is no compiler.
fn host() -> Option<(Fleet, Arc<AtomicBool>)> {
    on_host(GpuOptions::default())
}

#[test]
fn without_a_gpu_asking_for_one_is_an_error() {
    if has_gpu() {
        eprintln!("skipped: there is a GPU");
        return;
    }
    let error = Ipv4Table::builder().device(Device::Gpu).build().unwrap_err();
    assert!(matches!(&error, Error::Gpu(why) if error.to_string().contains(&why.to_string())), "{error}");
    assert!(matches!(IpTable::builder().device(Device::Gpu).build(), Err(Error::Gpu(_))));
}

#[test]
fn without_a_gpu_auto_goes_on_on_the_cpu_and_says_why() {
    if has_gpu() {
        eprintln!("skipped: there is a GPU");
        return;
    }
    let rib = rib::<V4>(3);
    let table = Table::builder().rib(rib.clone()).device(Device::Auto).build().unwrap();
    let why = table.device_note().unwrap();
    assert_eq!(why, devices().map_or_else(|error| error.to_string(), |_| why.clone()));
    assert!(!why.is_empty() && table.fleet().is_none() && table.lookups().is_none());
    assert_eq!(table.engine(), V4::best(&rib), "as on a machine that was never to have a GPU");
    check(&table.reader(), &rib, "on the CPU");
    check_pipeline(&table.reader(), &rib, "on the CPU");
    let both = IpTable::builder().device(Device::Auto).build().unwrap();
    assert!(both.v4().device_note().is_some() && both.v6().device_note().is_some());
}

#[test]
fn the_cpu_is_what_nobody_asked_otherwise_for() {
    let table = Ipv4Table::builder().build().unwrap();
    assert!(table.device_note().is_none() && table.fleet().is_none());
    // Nor are GPUs taken that are there.
    let Some((fleet, _)) = host() else { return };
    let table = Ipv4Table::builder().fleet(fleet).build().unwrap();
    assert!(table.fleet().is_none() && table.lookups().is_none());
}

/// Holds what a pipeline gives against the routes, batch by batch in order.
pub(crate) fn check_pipeline<A: Native>(reader: &Reader<A>, rib: &Rib<A>, what: &str) {
    let keys = addresses(rib);
    let mut found = vec![NextHop(u32::MAX); 700];
    let mut pipeline = reader.pipeline();
    let (mut batches, mut at) = (keys.chunks(found.len()), 0);
    assert!(!pipeline.is_ready() && pipeline.next(&mut found).is_none());
    loop {
        while pipeline.under_way() < 3
            && let Some(batch) = batches.next()
        {
            pipeline.submit(batch);
        }
        let Some(batch) = pipeline.next(&mut found) else { break };
        assert_eq!(batch, &keys[at..at + batch.len()], "{what}: in order");
        for (&address, &found) in batch.iter().zip(&found) {
            let right = rib.longest_match(address).map_or(NextHop::NONE, |(_, next_hop)| next_hop);
            assert_eq!(found, right, "{what}: {address} in a pipeline");
        }
        at += batch.len();
    }
    assert_eq!(at, keys.len(), "{what}");
}

/// Updates a table on a GPU that has few next hops at first, for which there is an engine of its own, or
/// many; routes of lengths up to one.
fn a_table_on_a_gpu_follows_updates<A: Native>(next_hops: u32, longest: u8, engine: EngineName) {
    let Some((fleet, _)) = host() else { return };
    let few = |(prefix, next_hop): (_, NextHop)| (prefix, NextHop(1 + 7 * next_hop.0 % next_hops));
    let mut rib: Rib<A> =
        rib::<A>(17).iter().filter(|(prefix, _)| prefix.len() <= longest).map(few).collect();
    let builder = Table::builder().rib(rib.clone()).device(Device::Gpu).fleet(fleet);
    let mut table = builder.build().unwrap();
    assert_eq!((table.engine(), A::best_on_gpu(&rib)), (engine, engine));
    assert!(table.fleet().is_some() && table.device_note().is_none());
    let reader = table.reader();
    check(&reader, &rib, "as built");
    let on_gpu = table.lookups().unwrap();
    assert!(on_gpu.gpu > 0 && on_gpu.cpu == 0, "{on_gpu:?}");
    let spec = UpdateSpec { next_hops: 400, ..UpdateSpec::real(A::FAMILY) };
    let updates: Vec<_> = synth::Updates::new(&rib, &spec).take(300).map(|timed| timed.update).collect();
    for updates in updates.chunks(150) {
        table.apply(updates).unwrap();
        for update in updates {
            rib.apply(update);
        }
        check(&reader, &rib, "after updates");
    }
    // Entries get wider: built anew, but where they have the width of any next hop.
    let wide = Update::announce(Prefix::around(A::from_u128_low(1 << 20), 16), NextHop(70_000));
    let has_widths = engine != EngineName::Waldvogel;
    assert_eq!(table.apply(&[wide]).unwrap().rebuilt, has_widths);
    rib.apply(&wide);
    check(&reader.clone(), &rib, "after a rebuild");
    check_pipeline(&reader, &rib, "after a rebuild");
    assert_eq!(table.lookups().unwrap().cpu, 0, "all of it on the GPU");
}

#[test]
fn a_table_on_a_gpu_follows_updates_v4() {
    a_table_on_a_gpu_follows_updates::<V4>(100, 32, EngineName::FoldHot);
    a_table_on_a_gpu_follows_updates::<V4>(400, 32, EngineName::Rank);
}

#[test]
fn a_table_on_a_gpu_follows_updates_v6() {
    a_table_on_a_gpu_follows_updates::<V6>(400, 64, EngineName::Fold);
    // Some routes are too scattered for chunks on a GPU.
    a_table_on_a_gpu_follows_updates::<V6>(400, 128, EngineName::Waldvogel);
}

#[test]
fn a_gpu_that_is_lost_costs_no_answer() {
    let Some((fleet, switch)) = host() else { return };
    let rib = rib::<V4>(23);
    let mut table = Table::builder().rib(rib.clone()).device(Device::Gpu).fleet(fleet).build().unwrap();
    let reader = table.reader();
    check(&reader, &rib, "before");
    let keys = addresses(&rib);
    let mut pipeline = reader.pipeline();
    let mut found = vec![NextHop::NONE; keys.len()];
    let batch = &keys[..500];
    pipeline.submit(batch);
    pipeline.submit(batch);
    switch.store(true, Ordering::Relaxed);
    pipeline.submit(batch);
    for _ in 0..3 {
        assert_eq!(pipeline.next(&mut found), Some(batch));
        for (&address, &found) in batch.iter().zip(&found) {
            let right = rib.longest_match(address).map_or(NextHop::NONE, |(_, next_hop)| next_hop);
            assert_eq!(found, right, "{address} when the GPU was lost");
        }
    }
    check(&reader, &rib, "after");
    let counts = table.lookups().unwrap();
    assert!(counts.gpu > 0 && counts.cpu > 0, "{counts:?}");
    assert!(table.device_note().is_some_and(|note| !note.is_empty()));
    // And updates go on.
    let update = Update::announce("198.18.0.0/15".parse::<Prefix<V4>>().unwrap(), NextHop(9));
    table.apply(&[update]).unwrap();
    let mut found = [NextHop::NONE];
    reader.lookup_batch(&[Ipv4Addr::new(198, 18, 9, 9)], &mut found);
    assert_eq!(found, [table.routes().longest_match(V4(0xc612_0909)).unwrap().1]);
}

#[test]
fn auto_keeps_small_batches_on_the_cpu() {
    let Some((fleet, _)) = host() else { return };
    let rib = rib::<V4>(29);
    let builder = Table::builder().rib(rib.clone()).device(Device::Auto).fleet(fleet);
    let table = builder.latency_bound(Duration::from_secs(1)).build().unwrap();
    let mut found = [NextHop::NONE; 1];
    for address in addresses(&rib).into_iter().take(100) {
        table.reader().lookup_batch(&[address], &mut found);
    }
    assert_eq!(table.lookups().map(|counts| (counts.cpu, counts.gpu)), Some((100, 0)));
}

#[test]
fn both_families_share_the_gpus() {
    let Some((fleet, _)) = host() else { return };
    let (v4, v6) = (rib::<V4>(31), rib::<V6>(31));
    let mut table =
        IpTable::builder()
            .routes(v4.iter().map(|(prefix, next_hop)| (prefix.into(), next_hop)).chain(
                v6.iter().map(|(prefix, next_hop)| (wirespeed::prelude::IpNet::from(prefix), next_hop)),
            ))
            .engine(EngineName::Fold)
            .device(Device::Gpu)
            .fleet(fleet)
            .build()
            .unwrap();
    let reader = table.reader();
    check(reader.v4(), &v4, "IPv4");
    check(reader.v6(), &v6, "IPv6");
    let default = "::/0".parse::<Prefix<V6>>().unwrap();
    table.apply(&[AnyUpdate::V6(Update::announce(default, NextHop(5)))]).unwrap();
    let mixed: Vec<IpAddr> = addresses(&v4)
        .into_iter()
        .zip(addresses(&v6))
        .flat_map(|(four, six)| [IpAddr::V4(four.std()), IpAddr::V6(six.std())])
        .collect();
    let before = table.v4().lookups().unwrap().gpu;
    let mut found = vec![NextHop(u32::MAX); mixed.len()];
    reader.lookup_batch(&mixed, &mut found);
    for (&address, &found) in mixed.iter().zip(&found) {
        assert_eq!(found, reader.lookup(address), "{address}");
    }
    assert_eq!(table.v4().lookups().unwrap().gpu, before + mixed.len() as u64 / 2);
}
