//! Batches that are used again and again allocate nothing, on the CPU and on the kernels' host build in a
//! GPU's place.

#![allow(clippy::unwrap_used)] // a test

use std::time::Duration;

use wirespeed::engine::Served;
use wirespeed::gpu::runtime::{Gpu, GpuOptions, SlotSize};
use wirespeed::names::NameDomain;
use wirespeed::prelude::*;
use wirespeed::{Batches, Fleet};
use wirespeed_image::Counting;
use wirespeed_kernels_host::{HostDriver, Sanitizers};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A device with small slots; `None` where there is no compiler.
fn device(options: GpuOptions) -> Option<Fleet> {
    let slots = vec![SlotSize { slots: 4, keys: 1 << 10 }];
    let options = GpuOptions { slots, timeout: Duration::from_secs(30), ..options };
    let driver = HostDriver::for_tests(Sanitizers::Off)?;
    Some(Fleet::new(vec![Gpu::start(Box::new(driver), options).unwrap()]).unwrap())
}

/// Fills batches one key at a time and from slices, reads the answers, and counts what is allocated once the
/// source is warm.
fn check<'k, D: Served>(
    batches: &Batches<D>,
    keys: D::Keys<'k>,
    each: impl Fn(usize) -> D::Key<'k>,
    count: usize,
    is_gpu: bool,
) {
    let mut read = vec![D::Answer::default(); count];
    let mut once = || {
        let mut batch = batches.batch(count).unwrap();
        (0..count / 2).for_each(|at| batch.push(each(at)).unwrap());
        let rest = batch.extend_from(keys);
        assert_eq!(count / 2 + rest, count);
        let answers = batch.submit().wait();
        assert_eq!(answers.is_from_gpu(), is_gpu);
        answers.copy_to(&mut read);
    };
    // One for each slot, and memory of the source.
    (0..20).for_each(|_| once());
    let before = ALLOCATOR.of_this_thread();
    assert!(before > 0, "it counts");
    (0..50).for_each(|_| once());
    assert_eq!(ALLOCATOR.of_this_thread() - before, 0, "allocations of 50 batches");
}

#[test]
fn batches_of_addresses() {
    let keys: Vec<V4> = (0..500).map(|n| V4(0x0a00_0000 + n * 77)).collect();
    let routes = || [("10.0.0.0/16".parse::<Ipv4Net>().unwrap(), NextHop(1))];
    let table = Ipv4Table::builder().routes(routes()).build().unwrap();
    check(&table.reader().batches(), &keys, |at| keys[at], 500, false);
    let Some(fleet) = device(V4::gpu_options()) else { return };
    let table = Ipv4Table::builder().routes(routes()).device(Device::Gpu).fleet(fleet).build().unwrap();
    check(&table.reader().batches(), &keys, |at| keys[at], 500, true);
}

#[test]
fn batches_of_names() {
    let names: Vec<_> = (0..500).map(|n| NameBuf::new(&format!("/com/{n}")).unwrap()).collect();
    let all: NameBatch = names.iter().map(|name| &**name as &Name).collect();
    let entries = || [(NameBuf::new("/com").unwrap(), NextHop(1))];
    let table = NameTable::builder().names(entries()).build().unwrap();
    check(&table.reader().batches(), all.names(), |at| &names[at], 500, false);
    let Some(fleet) = device(NameDomain::gpu_options()) else { return };
    let table = NameTable::builder().names(entries()).device(Device::Gpu).fleet(fleet).build().unwrap();
    check(&table.reader().batches(), all.names(), |at| &names[at], 500, true);
}

#[test]
fn batches_of_tuples() {
    let tuples: Vec<Ipv4Tuple> = (0..500).map(|n| format!("dport={n}").parse().unwrap()).collect();
    let rules = || -> RuleSet<Ipv4Tuple> { ["dport=53 action=1".parse().unwrap()].into_iter().collect() };
    let table = Classifier::builder().rule_set(rules()).build().unwrap();
    check(&table.reader().batches(), &tuples, |at| &tuples[at], 500, false);
    let Some(fleet) = device(Ipv4Tuple::gpu_options()) else { return };
    let builder = Classifier::builder().rule_set(rules()).device(Device::Gpu).fleet(fleet);
    check(&builder.build().unwrap().reader().batches(), &tuples, |at| &tuples[at], 500, true);
}
