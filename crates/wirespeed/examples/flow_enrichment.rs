//! Attaches the networks at both ends to flows: labels by prefix, addresses of both families in batches.
//!
//! `cargo run --release -p wirespeed --example flow_enrichment [FLOWS]`
//!
//! The table and the flows are synthetic and seeded. What comes out is the traffic by pair of networks.

use std::collections::HashMap;
use std::time::Instant;

use wirespeed::fib::synth::rng::Rng;
use wirespeed::fib::synth::{self, TableSpec};
use wirespeed::prelude::*;
use wirespeed::{Address, Family, Rib};

/// What is known of a network.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Network {
    asn: u32,
    name: String,
}

/// What was seen on the wire.
struct Flow {
    from: IpAddr,
    to: IpAddr,
    bytes: u64,
}

/// Flows that are looked up at a time.
const BATCH: usize = 1024;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let flows = std::env::args().nth(1).map_or(Ok(1_000_000), |count| count.parse::<usize>())?;
    let fib = synth::fib(
        Some(&TableSpec { prefixes: 200_000, ..TableSpec::full(Family::V4) }),
        Some(&TableSpec { prefixes: 50_000, ..TableSpec::full(Family::V6) }),
    )?;

    // A service has its prefixes and what it knows of them from somewhere; here each next hop is a network.
    let labels = Labels::new();
    let network = |index: NextHop| Network { asn: 64_496 + index.0, name: format!("network-{index}") };
    let v4 = fib.v4.iter().map(|(prefix, index)| (IpNet::from(prefix), network(index)));
    let v6 = fib.v6.iter().map(|(prefix, index)| (IpNet::from(prefix), network(index)));
    let began = Instant::now();
    let table = IpTable::builder().labelled_routes(&labels, v4.chain(v6)).build()?;
    println!(
        "{} prefixes, {} networks, {} KiB, built in {:.2?}",
        table.len(),
        labels.len(),
        table.memory_usage() >> 10,
        began.elapsed()
    );

    let flows = made(&fib.v4, &fib.v6, flows);
    let began = Instant::now();
    let traffic = enrich(&table.reader(), &flows);
    println!("{} flows enriched in {:.2?}", flows.len(), began.elapsed());

    let mut top: Vec<_> = traffic.into_iter().collect();
    top.sort_unstable_by_key(|&(ends, bytes)| (std::cmp::Reverse(bytes), ends));
    for ((from, to), bytes) in top.into_iter().take(5) {
        println!("{bytes:>12} bytes  {} -> {}", show(&labels, from), show(&labels, to));
    }
    Ok(())
}

/// Bytes by the networks at both ends.
fn enrich(reader: &IpReader, flows: &[Flow]) -> HashMap<(NextHop, NextHop), u64> {
    let (mut addresses, mut found) = (Vec::with_capacity(2 * BATCH), vec![NextHop::NONE; 2 * BATCH]);
    let mut traffic = HashMap::new();
    for batch in flows.chunks(BATCH) {
        addresses.clear();
        addresses.extend(batch.iter().flat_map(|flow| [flow.from, flow.to]));
        let found = &mut found[..addresses.len()];
        reader.lookup_batch(&addresses, found);
        for (flow, ends) in batch.iter().zip(found.chunks_exact(2)) {
            // Counting by index and resolving at the end is cheaper than by value.
            *traffic.entry((ends[0], ends[1])).or_default() += flow.bytes;
        }
    }
    traffic
}

fn show(labels: &Labels<Network>, end: NextHop) -> String {
    labels
        .get(end)
        .map_or_else(|| "unknown".to_owned(), |network| format!("AS{} {}", network.asn, network.name))
}

/// Flows between the networks of a table, a fifth of them of IPv6.
fn made(v4: &Rib<V4>, v6: &Rib<V6>, count: usize) -> Vec<Flow> {
    let mut rng = Rng::new(1);
    let (v4, v6) = (inside(v4), inside(v6));
    (0..count)
        .map(|_| {
            let addresses = if rng.below(5) == 0 { &v6 } else { &v4 };
            let mut address = || addresses[rng.index(addresses.len())];
            let (from, to) = (address(), address());
            Flow { from, to, bytes: 40 + rng.below(1460) }
        })
        .collect()
}

/// An address inside each prefix.
fn inside<A: Address>(rib: &Rib<A>) -> Vec<IpAddr> {
    rib.iter().map(|(prefix, _)| prefix.last().to_ip()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_get_the_networks_at_both_ends() {
        let labels = Labels::new();
        let network = |asn| Network { asn, name: format!("as{asn}") };
        let routes = [("10.0.0.0/8", 1), ("10.1.0.0/16", 2), ("2001:db8::/32", 1)];
        let routes = routes.map(|(prefix, asn)| (prefix.parse::<IpNet>().unwrap(), network(asn)));
        let table = IpTable::builder().labelled_routes(&labels, routes).build().unwrap();
        let flow =
            |from: &str, to: &str| Flow { from: from.parse().unwrap(), to: to.parse().unwrap(), bytes: 10 };
        // More than a batch, and not a whole number of them.
        let flows: Vec<_> = (0..1500)
            .flat_map(|_| [flow("10.0.0.1", "10.1.0.1"), flow("2001:db8::1", "192.0.2.1")])
            .collect();
        let traffic = enrich(&table.reader(), &flows);
        let ends = |from, to| (labels.find(&network(from)).unwrap(), to);
        assert_eq!(traffic.len(), 2);
        assert_eq!(traffic[&ends(1, labels.find(&network(2)).unwrap())], 15_000);
        assert_eq!(traffic[&ends(1, NextHop::NONE)], 15_000);
        assert_eq!(show(&labels, ends(2, NextHop::NONE).0), "AS2 as2");
    }

    #[test]
    fn made_flows_lie_inside_the_table() {
        let spec = |family| TableSpec { prefixes: 2000, ..TableSpec::full(family) };
        let fib = synth::fib(Some(&spec(Family::V4)), Some(&spec(Family::V6))).unwrap();
        let table = IpTable::builder().fib(fib.clone(), &Labels::<String>::new()).build().unwrap();
        let flows = made(&fib.v4, &fib.v6, 3000);
        let traffic = enrich(&table.reader(), &flows);
        assert!(traffic.keys().all(|(from, to)| from.is_some() && to.is_some()));
        assert_eq!(traffic.values().sum::<u64>(), flows.iter().map(|flow| flow.bytes).sum::<u64>());
    }
}
