//! Tables, addresses and right answers; and a device in a GPU's place.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};
use wirespeed::engine::{Addresses, EngineName, Engines, of_domain};
use wirespeed::fib::synth::{self, TableSpec};
use wirespeed::fib::{oracle, synth::rng::Rng};
use wirespeed::gpu::driver::devices;
use wirespeed::gpu::runtime::{Gpu, GpuOptions, SlotSize};
use wirespeed::{Address, Fleet, Key, NextHop, Reader, Rib, V4, V6};
use wirespeed_image::{Stop, rounds};
use wirespeed_kernels_host::{HostDriver, Sanitizers};

/// The engines of a domain that a test goes through.
pub(crate) fn engines<D: Engines>() -> impl Iterator<Item = EngineName> {
    rounds::engines(of_domain::<D>(), |engine| engine.standing().is_paper())
}

/// The kernels' host build in a GPU's place, with small slots, and what makes it be lost; `None` where there
/// is no compiler.
pub(crate) fn on_host(options: GpuOptions) -> Option<(Fleet, Arc<AtomicBool>)> {
    let driver = host_driver()?;
    let switch = driver.switch();
    Some((Fleet::new(vec![start(driver, options)]).unwrap(), switch))
}

/// The driver of the kernels' host build; `None` where there is no compiler.
pub(crate) fn host_driver() -> Option<HostDriver> {
    HostDriver::for_tests(Sanitizers::Off)
}

/// Starts a device with small slots.
pub(crate) fn start(driver: HostDriver, options: GpuOptions) -> Gpu {
    let options = GpuOptions {
        slots: vec![SlotSize { slots: 4, keys: 1 << 10 }, SlotSize { slots: 2, keys: 1 << 13 }],
        timeout: Duration::from_secs(30),
        ..options
    };
    Gpu::start(Box::new(driver), options).unwrap()
}

/// Whether this machine has a GPU after all.
pub(crate) fn has_gpu() -> bool {
    devices().is_ok_and(|devices| !devices.is_empty())
}

/// A table with what engines get wrong in it, and some hundreds of routes of today's shape.
pub(crate) fn rib<A: Address>(seed: u64) -> Rib<A> {
    let spec = TableSpec {
        prefixes: if rounds::is_plain() { 300 } else { 800 },
        seed,
        ..TableSpec::full(A::FAMILY)
    };
    let mut rib: Rib<A> = synth::table(&spec).unwrap();
    let mut rng = Rng::new(seed);
    for at in 0..150u32 {
        let len = u8::try_from(rng.below(u64::from(A::BITS) + 1)).unwrap();
        rib.insert(wirespeed::Prefix::around(A::from_u128_low(rng.bits128()), len), NextHop(1 + at % 300));
    }
    rib
}

/// The ends of all prefixes and their neighbours, and random addresses.
pub(crate) fn addresses<A: Address>(rib: &Rib<A>) -> Vec<A> {
    let mut rng = Rng::new(5);
    let mut addresses = oracle::boundaries(rib.iter().map(|(prefix, _)| prefix));
    addresses.extend((0..500).map(|_| A::from_u128_low(rng.bits128())));
    addresses
}

/// The longest match of each address, from the ranges of addresses that the routes make. A scan of all routes
/// says the same, and would take most of the time of a test.
pub(crate) fn matches<A: Address>(
    rib: &Rib<A>,
    addresses: &[A],
) -> Vec<Option<(wirespeed::Prefix<A>, NextHop)>> {
    let routes: Vec<_> = rib.iter().collect();
    let numbered = routes.iter().zip(1..).map(|(&(prefix, _), number)| (prefix, NextHop(number)));
    let ranges = oracle::ranges(numbered);
    let find = |&address: &A| {
        let at = ranges.partition_point(|&(first, _)| first <= address) - 1;
        ranges[at].1.0.checked_sub(1).map(|route| routes[route as usize])
    };
    addresses.iter().map(find).collect()
}

/// The right next hop of each address.
pub(crate) fn answers<A: Address>(rib: &Rib<A>, addresses: &[A]) -> Vec<NextHop> {
    matches(rib, addresses)
        .into_iter()
        .map(|found| found.map_or(NextHop::NONE, |(_, next_hop)| next_hop))
        .collect()
}

/// Holds everything that a reader can do against the ranges of the routes.
pub(crate) fn check<A: Native>(reader: &Reader<A>, rib: &Rib<A>, what: &str) {
    let addresses = addresses(rib);
    let right = answers(rib, &addresses);
    let guard = reader.enter();
    for (&address, &right) in addresses.iter().zip(&right) {
        assert_eq!(reader.lookup(address), right, "{what}: {address}");
        assert_eq!(guard.lookup(address), right, "{what}: {address} through a guard");
        assert_eq!(reader.lookup(address.std()), right, "{what}: {address} of the standard library");
        assert_eq!(reader.lookup(address.int()), right, "{what}: {address} as an integer");
    }
    // Batches of all sizes around those of the blocks inside.
    for len in [0, 1, 3, 511, 512, 513, 1500, addresses.len()] {
        let len = len.min(addresses.len());
        let (addresses, right) = (&addresses[..len], &right[..len]);
        assert_eq!(batch(reader, addresses), right, "{what}: {len}");
        let keys: Vec<_> = addresses.iter().map(|address| address.std()).collect();
        assert_eq!(batch(reader, &keys), right, "{what}: {len} of the standard library");
        let keys: Vec<_> = addresses.iter().map(|address| address.int()).collect();
        assert_eq!(batch(reader, &keys), right, "{what}: {len} integers");
        let mut found = vec![NextHop::NONE; len];
        guard.lookup_batch(&keys, &mut found);
        assert_eq!(found, right, "{what}: {len} through a guard");
        let mut found = vec![NextHop(u32::MAX); len];
        reader.par_lookup_batch(addresses, &mut found);
        assert_eq!(found, right, "{what}: {len} on all cores");
    }
}

fn batch<A: Addresses, K: Key<A>>(reader: &Reader<A>, keys: &[K]) -> Vec<NextHop> {
    // Filled with what is nobody's answer.
    let mut found = vec![NextHop(u32::MAX); keys.len()];
    reader.lookup_batch(keys, &mut found);
    found
}

/// Makes changes while two threads look up again and again.
pub(crate) fn under_readers(look: impl Fn() + Sync, change: impl FnOnce()) {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    look();
                }
            });
        }
        let _stop = Stop(&stop); // also after a panic
        change();
    });
}

/// An address in the other types that are keys.
pub(crate) trait Native: Addresses {
    type Std: Key<Self>;
    type Int: Key<Self>;
    type Net: Copy;
    fn net(net: IpNet) -> Self::Net;
    fn std(self) -> Self::Std;
    fn int(self) -> Self::Int;
}

impl Native for V4 {
    type Std = Ipv4Addr;
    type Int = u32;
    type Net = Ipv4Net;

    fn net(net: IpNet) -> Ipv4Net {
        let IpNet::V4(net) = net else { panic!("{net}") };
        net
    }

    fn std(self) -> Ipv4Addr {
        self.into()
    }

    fn int(self) -> u32 {
        self.0
    }
}

impl Native for V6 {
    type Std = Ipv6Addr;
    type Int = u128;
    type Net = Ipv6Net;

    fn net(net: IpNet) -> Ipv6Net {
        let IpNet::V6(net) = net else { panic!("{net}") };
        net
    }

    fn std(self) -> Ipv6Addr {
        self.into()
    }

    fn int(self) -> u128 {
        self.0
    }
}

/// Counts the warnings of a thread.
pub(crate) struct Warnings(pub(crate) Arc<AtomicUsize>);

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= tracing::Level::WARN
    }

    fn event(&self, _: &Event<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
