//! Keys that are in a GPU's memory already, through the façade: on the kernels' host build in a GPU's place.
//! Keys are written here byte by byte as the documents of `on_device` say.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use wirespeed::classify::oracle::Oracle;
use wirespeed::engine::{Addresses, RuleTuple, Served};
use wirespeed::gpu::GpuError;
use wirespeed::gpu::driver::{Driver, Pinned};
use wirespeed::gpu::runtime::GpuOptions;
use wirespeed::names::{NameDomain, NameRib};
use wirespeed::on_device::{
    DeviceKeys, DeviceMemory, DevicePtr, Enqueued, MOST_RESULT_BYTES, NAME_GROUP, NAME_GROUP_BYTES, Stream,
    TUPLE_GROUP, Wanted,
};
use wirespeed::prelude::*;
use wirespeed::{DeviceTable, Error, Fleet, Prefix, Reader, Rib, Table};
use wirespeed_image::rounds;

use crate::common::{addresses, answers, host_driver, rib, start};
use crate::{classify, names};

/// Bytes of each part of keys, and of results.
const PART: usize = 1 << 18;

/// Devices in the place of GPUs, with memory and a stream of a caller on the last.
struct Host {
    fleet: Fleet,
    switch: Arc<AtomicBool>,
    parts: [Pinned; 3],
    stream: Stream,
}

#[allow(unsafe_code)] // plays the caller with memory on a GPU
impl Host {
    fn new(devices: usize, options: &GpuOptions) -> Option<Self> {
        let mut gpus = Vec::new();
        for _ in 1..devices {
            gpus.push(start(host_driver()?, options.clone()));
        }
        let mut driver = host_driver()?;
        let (switch, stream) = (driver.switch(), driver.stream().unwrap());
        let parts = [0; 3].map(|_| driver.alloc_pinned(PART).unwrap());
        gpus.push(start(driver, options.clone()));
        Some(Self { fleet: Fleet::new(gpus).unwrap(), switch, parts, stream })
    }

    /// Writes a part of keys.
    fn put(&self, part: usize, bytes: &[u8]) -> DevicePtr {
        let to = self.parts[part];
        assert!(bytes.len() <= to.len);
        // SAFETY: the memory is that long, and every lookup was waited for.
        unsafe { to.host.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        to.device
    }

    /// The memory for results.
    fn results(&self, bytes: usize) -> DeviceMemory {
        DeviceMemory { at: self.parts[2].device, bytes }
    }

    /// Looks up with so many bytes for results. `wait` looks one key up in the same table, by which all
    /// earlier work is done. What no result was written to must be as before.
    fn lookup<D: Served>(
        &self,
        table: &DeviceTable<D>,
        keys: DeviceKeys<D>,
        bytes: usize,
        wait: impl Fn(),
    ) -> Result<(Enqueued, Vec<u8>), Error> {
        const UNUSED: u8 = 0xee;
        let of = self.parts[2];
        // SAFETY: the memory is that long, and every lookup was waited for.
        unsafe { of.host.write_bytes(UNUSED, of.len) };
        // SAFETY: the parts of keys are longer than the keys in them, and written before; nobody else uses
        // the memory until `wait` has waited.
        let enqueued = unsafe { table.lookup_on(self.stream, keys, self.results(bytes)) };
        wait();
        // SAFETY: as above.
        let all = unsafe { std::slice::from_raw_parts(of.host, of.len) };
        let used = enqueued.as_ref().map_or(0, |enqueued| keys.count() * enqueued.result_bytes);
        assert!(all[used..].iter().all(|&byte| byte == UNUSED), "only results are written");
        enqueued.map(|enqueued| (enqueued, all[..used].to_vec()))
    }
}

fn numbers((enqueued, bytes): &(Enqueued, Vec<u8>)) -> Vec<u32> {
    let mut numbers = vec![7; bytes.len() / enqueued.result_bytes];
    enqueued.unpack(bytes, &mut numbers);
    numbers
}

fn bytes_of<const N: usize>(numbers: impl IntoIterator<Item = [u8; N]>) -> Vec<u8> {
    numbers.into_iter().flatten().collect()
}

#[allow(clippy::cast_possible_truncation)] // the low bits are what is wanted
fn low(number: u128) -> (u64, u32, u16, u8) {
    (number as u64, number as u32, number as u16, number as u8)
}

/// Addresses as keys of each width.
trait OnDevice: Addresses {
    fn put(host: &Host, addresses: &[Self], bytes: usize) -> DeviceKeys<Self>;
}

impl OnDevice for V4 {
    fn put(host: &Host, addresses: &[Self], bytes: usize) -> DeviceKeys<Self> {
        let of = |shift: u8| addresses.iter().map(move |address| low(u128::from(address.0 >> shift)));
        match bytes {
            3 => DeviceKeys::first_24(
                host.put(0, &bytes_of(of(16).map(|low| low.2.to_le_bytes()))),
                host.put(1, &bytes_of(of(8).map(|low| [low.3]))),
                addresses.len(),
            ),
            4 => {
                let whole = bytes_of(of(0).map(|low| low.1.to_le_bytes()));
                DeviceKeys::whole(host.put(0, &whole), addresses.len())
            }
            _ => panic!("{bytes} bytes"),
        }
    }
}

impl OnDevice for V6 {
    fn put(host: &Host, addresses: &[Self], bytes: usize) -> DeviceKeys<Self> {
        let of = |shift: u8| addresses.iter().map(move |address| low(address.0 >> shift));
        match bytes {
            6 => DeviceKeys::first_48(
                host.put(0, &bytes_of(of(96).map(|low| low.1.to_le_bytes()))),
                host.put(1, &bytes_of(of(80).map(|low| low.2.to_le_bytes()))),
                addresses.len(),
            ),
            8 => {
                let high = bytes_of(of(64).map(|low| low.0.to_le_bytes()));
                DeviceKeys::first_64(host.put(0, &high), addresses.len())
            }
            16 => {
                let whole = bytes_of(addresses.iter().map(|address| address.0.to_le_bytes()));
                DeviceKeys::whole(host.put(0, &whole), addresses.len())
            }
            _ => panic!("{bytes} bytes"),
        }
    }
}

/// Holds keys of all widths that are right against the routes, and sees that narrower ones are refused.
fn check<A: OnDevice>(host: &Host, table: &DeviceTable<A>, wait: impl Fn() + Copy, rib: &Rib<A>, what: &str) {
    let keys = addresses(rib);
    let right = answers(rib, &keys);
    let mut taken = 0;
    for bytes in [3, 4, 6, 8, 16].into_iter().filter(|&bytes| (bytes <= 4) == (A::BITS == 32)) {
        for count in [0, 1, 7, 1000, keys.len()] {
            let (keys, right) = (A::put(host, &keys[..count], bytes), &right[..count]);
            let found = host.lookup(table, keys, count * MOST_RESULT_BYTES, wait);
            if bytes < table.key_bytes() {
                let narrow = GpuError::NarrowKeys { asked: bytes, least: table.key_bytes() };
                assert!(
                    matches!(found, Err(Error::Gpu(ref why)) if *why == narrow),
                    "{what}: {bytes}: {found:?}"
                );
                continue;
            }
            let found = found.unwrap();
            let (results, width) = (numbers(&found), table.result_bytes());
            assert_eq!((found.0.result_bytes, found.0.version), (width, table.version()), "{what}");
            let mut next_hops = vec![NextHop(u32::MAX); count];
            table.next_hops(&results, &mut next_hops);
            assert_eq!(next_hops, right, "{what}: {count} keys of {bytes} bytes");
            taken += 1;
            if count > 0 {
                let short = host.lookup(table, keys, count * width - 1, wait);
                assert!(matches!(short, Err(Error::Gpu(GpuError::ResultMemory { .. }))), "{short:?}");
            }
        }
    }
    assert!(taken >= 5, "{what}: whole addresses are always right");
}

fn follows_updates<A: OnDevice>(short: u8) {
    let Some(host) = Host::new(1, &GpuOptions::default()) else { return };
    let few = |(prefix, next_hop): (Prefix<A>, NextHop)| (prefix, NextHop(1 + next_hop.0 % 200));
    let mut rib: Rib<A> = rib::<A>(41).iter().filter(|(prefix, _)| prefix.len() <= short).map(few).collect();
    let builder = Table::builder().rib(rib.clone()).device(Device::Gpu).fleet(host.fleet.clone());
    let mut table = builder.build().unwrap();
    let (reader, on_gpu) = (table.reader(), table.reader().on_device(0).unwrap());
    let wait = || reader.lookup_batch(&[A::MIN], &mut [NextHop::NONE]);
    assert_eq!((on_gpu.device(), on_gpu.bus(), on_gpu.has_prefix_lookups()), (0, "host", false));
    assert!(matches!(on_gpu.prefixes(&[], &mut [], &mut []), Err(Error::NoPrefixLookups)));
    assert_eq!(on_gpu.key_bytes() * 8, usize::from(short), "the narrowest keys");
    check(&host, &on_gpu, wait, &rib, "as built");

    // Keys that were packed before a longer prefix came are refused, and never answered wrongly.
    let probes = [A::from_u128_low(0), A::from_u128_low(1)];
    let packed = A::put(&host, &probes, usize::from(short) / 8);
    let before = host.lookup(&on_gpu, packed, 8, wait).unwrap();
    let longest = Update::announce(Prefix::around(probes[1], A::BITS), NextHop(9));
    table.apply(&[longest]).unwrap();
    rib.apply(&longest);
    let refused = host.lookup(&on_gpu, packed, 8, wait);
    assert!(matches!(refused, Err(Error::Gpu(GpuError::NarrowKeys { .. }))), "{refused:?}");
    let whole = A::put(&host, &probes, size_of::<A>());
    let after = host.lookup(&on_gpu, whole, 8, wait).unwrap();
    assert!(after.0.version > before.0.version);
    assert_eq!(numbers(&after)[1], 9);
    check(&host, &on_gpu, wait, &rib, "after a longer prefix");

    // Results get wider: memory that was enough before is refused.
    let narrow = on_gpu.result_bytes();
    let wide = Update::announce(Prefix::around(probes[1], 20), NextHop(70_000));
    table.apply(&[wide]).unwrap();
    rib.apply(&wide);
    if narrow < MOST_RESULT_BYTES {
        let whole = A::put(&host, &probes, size_of::<A>());
        let refused = host.lookup(&on_gpu, whole, 2 * narrow, wait).unwrap_err();
        let why = format!("results of 2 keys take 8 bytes, the memory for them has {}", 2 * narrow);
        assert!(refused.to_string().ends_with(&why), "{refused}");
    }
    check(&host, &on_gpu.clone(), wait, &rib, "after a rebuild");

    // The last state stays when the table is gone.
    drop(table);
    check(&host, &on_gpu, wait, &rib, "after the table was dropped");
    drop(reader);
    let keys = A::put(&host, &probes, size_of::<A>());
    #[allow(unsafe_code)]
    // SAFETY: as in `Host::lookup`; the memory lives as long as the driver, which ends after its last work.
    let alone = unsafe { on_gpu.lookup_on(host.stream, keys, host.results(8)) }.unwrap();
    assert_eq!(alone.version, on_gpu.version());
}

#[test]
fn addresses_v4_are_right_in_all_widths_through_updates() {
    follows_updates::<V4>(24);
}

#[test]
fn addresses_v6_are_right_in_all_widths_through_updates() {
    if rounds::leaves_to_ci() {
        return;
    }
    follows_updates::<V6>(48);
    follows_updates::<V6>(64);
}

#[test]
fn results_of_tables_for_prefix_lookups_are_taken_apart_on_the_host() {
    let Some(host) = Host::new(1, &GpuOptions::default()) else { return };
    let mut rib = rib::<V4>(43);
    let builder = Table::builder().rib(rib.clone()).prefix_lookups().device(Device::Gpu);
    let mut table = builder.fleet(host.fleet.clone()).build().unwrap();
    let (reader, on_gpu) = (table.reader(), table.reader().on_device(0).unwrap());
    assert!(on_gpu.has_prefix_lookups());
    let wait = || reader.lookup_batch(&[V4(0)], &mut [NextHop::NONE]);
    for round in 0..2 {
        check(&host, &on_gpu, wait, &rib, "for prefixes");
        let keys = addresses(&rib);
        let packed = V4::put(&host, &keys, 4);
        let results = numbers(&host.lookup(&on_gpu, packed, 4 * keys.len(), wait).unwrap());
        let (mut next_hops, mut lengths) = (vec![NextHop(7); keys.len()], vec![99; keys.len()]);
        on_gpu.prefixes(&results, &mut next_hops, &mut lengths).unwrap();
        for ((&address, next_hop), length) in keys.iter().zip(next_hops).zip(lengths) {
            let right = rib.longest_match(address);
            let right = right.map_or((NextHop::NONE, 0), |(prefix, next_hop)| (next_hop, prefix.len()));
            assert_eq!((next_hop, length), right, "round {round}: {address}");
        }
        // A pair that is new.
        let update = Update::announce("192.0.2.0/27".parse::<Prefix<V4>>().unwrap(), NextHop(1000));
        table.apply(&[update]).unwrap();
        rib.apply(&update);
    }
}

/// Names in both forms.
fn put_names(host: &Host, batch: &NameBatch, wanted: Wanted) -> [DeviceKeys<NameDomain>; 2] {
    let all: Vec<&[u8]> = batch.names().iter().map(Name::as_bytes).collect();
    let text = host.put(1, &all.concat());
    let (mut groups, mut ends) = (Vec::new(), Vec::new());
    let (mut start, mut end) = (0, 0);
    for group in all.chunks(NAME_GROUP) {
        let record = groups.len();
        groups.extend(u32::try_from(start).unwrap().to_le_bytes());
        for name in group {
            end += name.len();
            groups.extend(u16::try_from(end - start).unwrap().to_le_bytes());
            ends.extend(u32::try_from(end).unwrap().to_le_bytes());
        }
        groups.resize(record + NAME_GROUP_BYTES, 0);
        start = end;
    }
    groups.resize(groups.len().next_multiple_of(16), 0);
    let ended = groups.len() as u64;
    let first = host.put(0, &[groups, ends].concat());
    [
        DeviceKeys::packed(wanted, first, text, batch.len()),
        DeviceKeys::ended(wanted, first.plus(ended), text, batch.len()),
    ]
}

#[test]
fn names_are_right_in_both_forms_through_updates() {
    let Some(host) = Host::new(1, &NameDomain::gpu_options()) else { return };
    let mut rib = names::names(45);
    let builder = NameTable::builder().rib(rib.clone()).device(Device::Gpu).fleet(host.fleet.clone());
    let mut table = builder.build().unwrap();
    let (reader, on_gpu) = (table.reader(), table.reader().on_device(0).unwrap());
    let root: NameBatch = [Name::new("/").unwrap()].into_iter().collect();
    let wait = || reader.lookup_batch(&root, &mut [NextHop::NONE]);
    let check = |rib: &NameRib| {
        // One name is of 8,000 bytes: three of those are too much for the text of a group's short ends.
        let keys: NameBatch =
            names::keys(rib).names().iter().filter(|name| name.as_bytes().len() < 1_000).collect();
        let right: Vec<Match> = keys.names().iter().map(|name| rib.lookup(name)).collect();
        for keys in put_names(&host, &keys, Wanted::Results) {
            let found = host.lookup(&on_gpu, keys, 4 * keys.count(), wait).unwrap();
            assert_eq!(found.0.version, on_gpu.version());
            let right: Vec<u32> = right.iter().map(|right| right.next_hop().0).collect();
            assert_eq!(numbers(&found), right);
        }
        for keys in put_names(&host, &keys, Wanted::Matches) {
            let (enqueued, bytes) = host.lookup(&on_gpu, keys, 8 * keys.count(), wait).unwrap();
            assert_eq!(enqueued.result_bytes, size_of::<Match>());
            let mut matches = vec![Match::default(); keys.count()];
            bytemuck::cast_slice_mut(&mut matches).copy_from_slice(&bytes);
            assert_eq!(matches, right);
            let short = host.lookup(&on_gpu, keys, 8 * keys.count() - 1, wait);
            assert!(matches!(short, Err(Error::Gpu(GpuError::ResultMemory { .. }))), "{short:?}");
        }
        assert!(right.iter().filter(|right| right.next_hop().is_some()).count() > 1_000);
    };
    check(&rib);
    for updates in names::churn(&rib, 100).chunks(50) {
        table.apply(updates).unwrap();
        updates.iter().for_each(|update| _ = rib.apply(update));
        check(&rib);
    }
    let wide = NameUpdate::insert(Name::new("/one/of/many").unwrap(), NextHop(70_000));
    table.apply(std::slice::from_ref(&wide)).unwrap();
    rib.apply(&wide);
    check(&rib);
    let none = DeviceKeys::packed(Wanted::Results, DevicePtr(0), DevicePtr(0), 0);
    assert!(host.lookup(&on_gpu, none, 0, wait).unwrap().1.is_empty());
    drop(table);
    check(&rib);
}

fn put_tuples<T: RuleTuple>(host: &Host, tuples: &[T]) -> DeviceKeys<T> {
    let whole = T::PACKED / 4;
    let mut words = vec![0; tuples.len().next_multiple_of(TUPLE_GROUP) * whole];
    let mut tails = Vec::new();
    for (t, tuple) in tuples.iter().enumerate() {
        for w in 0..whole {
            words[(t / TUPLE_GROUP * whole + w) * TUPLE_GROUP + t % TUPLE_GROUP] = tuple.words()[w];
        }
        if T::PACKED % 4 != 0 {
            tails.push(tuple.words()[whole].to_be_bytes()[0]);
        }
    }
    let words = host.put(0, &bytes_of(words.into_iter().map(u32::to_le_bytes)));
    let tails = if tails.is_empty() { DevicePtr(0) } else { host.put(1, &tails) };
    DeviceKeys::tuples(words, tails, tuples.len())
}

fn rules_follow_updates<T: RuleTuple>() {
    let Some(host) = Host::new(1, &T::gpu_options()) else { return };
    let mut set = classify::rules::<T>(47);
    let builder = Classifier::builder().rule_set(set.clone()).device(Device::Gpu).fleet(host.fleet.clone());
    let mut classifier = builder.build().unwrap();
    let (reader, on_gpu) = (classifier.reader(), classifier.reader().on_device(0).unwrap());
    let wait = || reader.lookup_batch(&[T::default()], &mut [0]);
    let check = |set: &RuleSet<T>| {
        let (oracle, tuples) = (Oracle::of(set), classify::tuples(set));
        for count in [0, 1, 33, tuples.len()] {
            let keys = put_tuples(&host, &tuples[..count]);
            let found = host.lookup(&on_gpu, keys, 4 * count, wait).unwrap();
            let right: Vec<u32> = tuples[..count].iter().map(|tuple| oracle.lookup(tuple)).collect();
            assert_eq!(numbers(&found), right);
            assert_eq!(found.0.version, on_gpu.version());
        }
    };
    assert_eq!(on_gpu.result_bytes(), 1, "numbers up to 154");
    check(&set);
    for updates in classify::churn(&set, 30, 7).chunks(15) {
        classifier.apply(updates).unwrap();
        updates.iter().for_each(|update| _ = set.apply(update).unwrap());
        check(&set);
    }
    // Numbers that don't fit the results of before: refused before anything is looked up, if the memory is
    // too small, and otherwise wider.
    let mut seen = Vec::new();
    for (priority, number, bytes) in [(1, 255, 2), (2, 65_534, 2), (3, 65_535, 4)] {
        let rule = format!("priority=400000000{priority} action=8").parse().unwrap();
        let wide = RuleUpdate::Set(number, rule);
        seen.push(classifier.apply(std::slice::from_ref(&wide)).unwrap().rebuilt);
        set.apply(&wide).unwrap();
        let keys = put_tuples(&host, &[T::default(); 3]);
        let refused = host.lookup(&on_gpu, keys, 3 * bytes - 1, wait);
        assert!(matches!(refused, Err(Error::Gpu(GpuError::ResultMemory { .. }))), "{refused:?}");
        let found = host.lookup(&on_gpu, keys, 3 * bytes, wait).unwrap();
        assert_eq!((found.0.result_bytes, on_gpu.result_bytes()), (bytes, bytes), "{number}");
        assert_eq!(numbers(&found), [number; 3], "a rule for all tuples, before all others");
        check(&set);
    }
    assert!(seen.contains(&false), "{seen:?}: a patch, and no new table, brought the number");
    drop(classifier);
    check(&set);
}

#[test]
fn rules_are_right_through_updates_and_their_numbers_always_fit() {
    if wirespeed_image::rounds::leaves_to_ci() {
        return;
    }
    rules_follow_updates::<Ipv4Tuple>();
    rules_follow_updates::<Ipv6Tuple>();
    rules_follow_updates::<OpenFlowTuple>();
}

#[test]
fn a_table_that_is_on_no_gpu_or_on_fewer_is_an_error() {
    let reader = Ipv4Table::builder().build().unwrap().reader();
    let on_cpu = reader.on_device(0).unwrap_err().to_string();
    assert!(on_cpu.contains("no GPU has the table"), "{on_cpu}");
    let names = NameTable::builder().build().unwrap().reader();
    assert_eq!(names.on_device(0).unwrap_err().to_string(), on_cpu);
    let rules = Classifier::<Ipv4Tuple>::builder().build().unwrap().reader();
    assert_eq!(rules.on_device(0).unwrap_err().to_string(), on_cpu);

    let Some(host) = Host::new(2, &GpuOptions::default()) else { return };
    let rib = rib::<V4>(49);
    let builder = Table::builder().rib(rib.clone()).device(Device::Gpu).fleet(host.fleet.clone());
    let reader = builder.build().unwrap().reader();
    let error = reader.on_device(2).unwrap_err().to_string();
    assert!(error.ends_with("no GPU 2: there are 2, numbered from 0"), "{error}");
    assert_eq!(reader.on_device(0).unwrap().device(), 0);
    // The second one has the caller's memory.
    let on_gpu = reader.on_device(1).unwrap();
    check(&host, &on_gpu, || wait_for_both(&reader), &rib, "on the second GPU");
    assert_eq!(on_gpu.device(), 1);
    let debug = format!("{on_gpu:?}");
    assert!(debug.contains("device: 1") && debug.contains("host"), "{debug}");
}

/// Batches under way at once go to both devices: each takes the one with the fewest keys.
fn wait_for_both(reader: &Reader<V4>) {
    let keys = vec![V4(0); 100];
    let mut pipeline = reader.pipeline();
    (0..4).for_each(|_| pipeline.submit(&keys));
    while pipeline.next(&mut [NextHop::NONE; 100]).is_some() {}
}

#[test]
fn a_gpu_that_is_lost_is_an_error_at_the_call() {
    let Some(host) = Host::new(1, &GpuOptions::default()) else { return };
    let rib = rib::<V4>(51);
    let builder = Table::builder().rib(rib.clone()).device(Device::Gpu).fleet(host.fleet.clone());
    let reader = builder.build().unwrap().reader();
    let on_gpu = reader.on_device(0).unwrap();
    let wait = || reader.lookup_batch(&[V4(0)], &mut [NextHop::NONE]);
    check(&host, &on_gpu, wait, &rib, "before");
    let keys = V4::put(&host, &[V4(0)], 4);
    let needed = on_gpu.key_bytes();
    host.switch.store(true, Ordering::Relaxed);
    // The batch after it finds out, if this one does not.
    #[allow(unsafe_code)]
    // SAFETY: the memory lives as long as the driver.
    drop(unsafe { on_gpu.lookup_on(host.stream, keys, host.results(4)) });
    wait();
    let lost = host.lookup(&on_gpu, keys, 4, wait).unwrap_err();
    assert!(matches!(&lost, Error::Gpu(GpuError::Lost(_))), "{lost}");
    assert!(matches!(reader.on_device(0), Err(Error::Gpu(GpuError::Lost(_)))));
    assert_eq!((on_gpu.version(), on_gpu.key_bytes()), (0, needed), "what is known of it stays");
}

#[test]
fn a_copy_that_missed_an_update_is_out_of_use() {
    let build = |cap| {
        let host = Host::new(1, &GpuOptions { memory_cap: cap, ..GpuOptions::default() })?;
        let few = |(prefix, next_hop): (_, NextHop)| (prefix, NextHop(1 + next_hop.0 % 200));
        let rib: Rib<V4> = rib::<V4>(53).iter().map(few).collect();
        let table = Table::builder().rib(rib).device(Device::Gpu).fleet(host.fleet.clone()).build().unwrap();
        Some((host, table))
    };
    let Some((host, table)) = build(None) else { return };
    let used = host.fleet.gpus()[0].usage().device();
    drop((table, host));
    // Memory for one table, and not for another one beside it.
    let Some((host, mut table)) = build(Some(used + 1000)) else { return };
    let (reader, on_gpu) = (table.reader(), table.reader().on_device(0).unwrap());
    let wait = || reader.lookup_batch(&[V4(0)], &mut [NextHop::NONE]);
    let keys = V4::put(&host, &[V4(0x0a00_0001)], 4);
    host.lookup(&on_gpu, keys, 4, wait).unwrap();
    let wide = Update::announce("10.0.0.0/8".parse::<Prefix<V4>>().unwrap(), NextHop(70_000));
    assert!(table.apply(&[wide]).unwrap().rebuilt);
    let refused = host.lookup(&on_gpu, keys, 4, wait).unwrap_err();
    assert!(matches!(&refused, Error::Gpu(GpuError::OverCap { .. })), "{refused}");
    assert!(reader.on_device(0).is_err() && table.device_note().is_some());
}
