//! The runtime over the kernels themselves: their host build under sanitizers, or a GPU.

use std::collections::VecDeque;
use std::time::Duration;

use wirespeed_dir24::Dir24;
use wirespeed_fib::{Address, BuildOptions, Engine, Lookup, NextHop, Prefix, Rib, V4};
use wirespeed_gpu::runtime::{Done, Gpu, GpuOptions, SlotSize, TableHandle, Ticket, Way};
use wirespeed_image::Table;
use wirespeed_image::device::OnDevice;

type Dir24Table = <Dir24 as Engine<V4>>::Table;

const KEYS: usize = 1501;
const ROUTES: u32 = 300;
const WAYS: [Way; 3] = Way::ALL;

fn start() -> Option<Gpu> {
    let driver = crate::device::driver()?;
    let slots = vec![SlotSize { slots: 2, keys: 64 }, SlotSize { slots: 3, keys: KEYS }];
    let options = GpuOptions { slots, timeout: Duration::from_secs(60), ..GpuOptions::default() };
    Some(Gpu::start(driver, options).expect("the device starts"))
}

fn random(i: u32) -> u32 {
    (i ^ i >> 15).wrapping_mul(0x9e37_79b1).rotate_left(13).wrapping_mul(0x85eb_ca6b)
}

fn prefix(i: u32) -> Prefix<V4> {
    let len = [8, 16, 20, 24, 28, 32][(i % 6) as usize];
    Prefix::new(V4(random(i)).keep(len), len).expect("host bits are zero")
}

/// Addresses, half of them in some prefix.
fn addresses(seed: u32) -> Vec<V4> {
    let address = |i: u32| if i.is_multiple_of(2) { random(i ^ seed) } else { random(i % ROUTES) ^ (i & 3) };
    (0..u32::try_from(KEYS).expect("few")).map(|i| V4(address(i))).collect()
}

fn send(gpu: &Gpu, handle: &TableHandle, way: Way, addresses: &[V4]) -> Ticket {
    let mut batch = gpu.batch(addresses.len()).expect("the device is there");
    let (keys, _) = batch.planes_mut(4, addresses.len());
    for (to, address) in keys.chunks_exact_mut(4).zip(addresses) {
        to.copy_from_slice(&address.0.to_le_bytes());
    }
    batch.submit_by(way, handle, 4, addresses.len())
}

fn check(done: &Done, table: &Dir24Table, addresses: &[V4]) {
    let mut right = vec![NextHop(0); addresses.len()];
    table.lookup_batch(addresses, &mut right);
    let results = done.results().expect("the batch is looked up");
    let found = results.chunks(done.result_bytes()).map(|bytes| {
        let mut wide = [0; 4];
        wide[..bytes.len()].copy_from_slice(bytes);
        NextHop(u32::from_le_bytes(wide))
    });
    assert!(found.eq(right), "version {}", done.version());
}

#[test]
fn every_way_over_patches_and_replacements() {
    let Some(gpu) = start() else { return };
    let mut rib = Rib::new();
    for i in 0..ROUTES {
        rib.insert(prefix(i), NextHop(1 + i % 100));
    }
    let options = BuildOptions::default();
    let (mut engine, mut table) = Dir24::build(&rib, &options).expect("it builds");
    let handle = gpu.upload(table.image(), |sections| table.programs(sections)).expect("it fits");
    let mut under_way = VecDeque::new();
    for step in 0..12u32 {
        let way = WAYS[(step % 3) as usize];
        // The same size twice in a row, so that graphs are recorded and replayed.
        let addresses = addresses(step)[..if step % 2 == 0 { KEYS } else { 17 }].to_vec();
        under_way.push_back((
            send(&gpu, &handle, way, &addresses),
            handle.version(),
            table.clone(),
            addresses,
        ));
        if under_way.len() == 3 {
            land(under_way.pop_front());
        }
        let changed: Vec<_> = (0..9).map(|i| prefix(random(step * 9 + i) % (2 * ROUTES))).collect();
        for (&prefix, i) in changed.iter().zip(0..) {
            if i % 3 == 0 {
                rib.remove(prefix);
            } else {
                rib.insert(prefix, NextHop(1 + (step + i) % 100));
            }
        }
        match engine.update(&table, &rib, &changed) {
            Ok(patch) => {
                table.apply(&patch).expect("it fits its table");
                if step % 4 == 1 { handle.patch_one_by_one(&patch) } else { handle.patch(&patch) }
                    .expect("it fits");
            }
            Err(_) => (engine, table) = Dir24::build(&rib, &options).expect("it builds"),
        }
        if step % 5 == 4 {
            (engine, table) = Dir24::build(&rib, &options).expect("it builds");
            handle.replace(table.image(), |sections| table.programs(sections)).expect("it fits");
        }
    }
    while !under_way.is_empty() {
        land(under_way.pop_front());
    }
    let addresses = addresses(99);
    check(&send(&gpu, &handle, Way::Copies, &addresses).wait(), &table, &addresses);
}

fn land(flight: Option<(Ticket, u64, Dir24Table, Vec<V4>)>) {
    let (ticket, version, table, addresses) = flight.expect("one is under way");
    let done = ticket.wait();
    assert_eq!(done.version(), version);
    check(&done, &table, &addresses);
}

#[test]
fn calibration_and_tuning_leave_lookups_right() {
    let Some(gpu) = start() else { return };
    let mut rib = Rib::new();
    for i in 0..ROUTES {
        rib.insert(prefix(i), NextHop(1 + i));
    }
    let (_, table) = Dir24::build(&rib, &BuildOptions::default()).expect("it builds");
    let handle = gpu.upload(table.image(), |sections| table.programs(sections)).expect("it fits");
    let calibration = gpu.calibrate(&handle, 4).expect("it measures");
    println!("{calibration}");
    assert!(!calibration.measured.is_empty());
    let tuning = gpu.tune(&handle, 4).expect("it measures");
    println!("{tuning}");
    assert!(!tuning.tuned.is_empty());
    for way in WAYS {
        let addresses = addresses(7);
        check(&send(&gpu, &handle, way, &addresses).wait(), &table, &addresses);
    }
}
