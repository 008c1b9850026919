//! GPU kernels, ceilings and trips: see [`wirespeed_benches::gpu`].

use anyhow::Result;
use clap::Parser;
use wirespeed_benches::data;
use wirespeed_benches::gpu::bench::{Bench, key_widths};
use wirespeed_benches::gpu::{ceiling, kernels};
use wirespeed_dir24::Dir24;
use wirespeed_fib::trace::{TraceKind, keys};
use wirespeed_fib::{Address, BuildOptions, Engine, Family, InFib, Lpm, V4};
use wirespeed_gpu::program::OnDevice;

/// Measures GPU kernels.
#[derive(Parser)]
struct Options {
    /// Keys of a trace
    #[arg(long, default_value_t = 1 << 26)]
    keys: usize,
    /// Rounds of each measurement
    #[arg(long, default_value_t = 9)]
    rounds: usize,
}

fn main() -> Result<()> {
    let options = Options::parse();
    let mut bench = Bench::open()?;
    println!("{:?}", bench.properties());
    for source in data::sources() {
        match source.family {
            Family::V4 => {
                let (rib, _) = source.rib::<V4>()?;
                let traces = traces(&rib, options.keys)?;
                let traces: Vec<_> = traces.iter().map(|(name, keys)| (name.as_str(), &keys[..])).collect();
                let wide = BuildOptions { next_hops: 300, ..BuildOptions::default() };
                show::<V4, Dir24>(&mut bench, &rib, &wide, &traces, &options)?;
                show::<V4, Dir24>(&mut bench, &rib, &BuildOptions::default(), &traces, &options)?;
                for bits in [16, 18, 20, 22, 24] {
                    let rate = ceiling::gather(&mut bench, traces[0].1, bits, 1, options.rounds)?;
                    println!("gather of 2^{bits} bytes: {:.1} G/s", rate / 1e9);
                }
            }
            Family::V6 => {}
        }
        break;
    }
    for (into, out) in [(4, 1), (4, 2), (3, 1), (8, 1), (16, 1), (6, 1)] {
        for batch in [1 << 16, 1 << 18, 1 << 20, 1 << 22] {
            let rate = ceiling::bus(&mut bench, into, out, batch, 4, 0.2)?;
            println!("bus: {into} bytes in, {out} out, batches of {batch}: {:.2} G/s", rate / 1e9);
        }
    }
    Ok(())
}

fn traces<A: Address>(rib: &wirespeed_fib::Rib<A>, count: usize) -> Result<Vec<(String, Vec<A>)>> {
    [TraceKind::Random, TraceKind::Prefix]
        .into_iter()
        .map(|kind| Ok((kind.to_string(), keys(rib, kind, count, 1)?)))
        .collect()
}

fn show<A: InFib, E: Engine<A, Table: OnDevice + Lpm<A>>>(
    bench: &mut Bench,
    rib: &wirespeed_fib::Rib<A>,
    build: &BuildOptions,
    traces: &[(&str, &[A])],
    options: &Options,
) -> Result<()> {
    let (_, table) = E::build(rib, build)?;
    for (trace, rate) in kernels::rates::<A, E>(bench, &table, traces, key_widths(A::FAMILY), options.rounds)? {
        let (shape, best) = rate.best();
        println!("{} {trace}: {:.1} G/s with {}x{}", rate.kernel, best / 1e9, shape.blocks, shape.threads);
    }
    Ok(())
}
