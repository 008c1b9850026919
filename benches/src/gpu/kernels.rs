//! Rates of kernels: keys and results on the device, nothing over the bus.

use anyhow::{Result, ensure};
use wirespeed_fib::{Address, Engine, Lookup, NextHop};
use wirespeed_gpu::driver::Shape;
use wirespeed_image::device::OnDevice;

use super::bench::{Bench, Uploaded};

/// A measurement of one program with one kind of keys.
#[derive(Clone, Debug)]
pub struct Rate {
    /// The engine's name.
    pub engine: String,
    /// The program's kernel.
    pub kernel: String,
    /// Bytes of a key.
    pub key_bytes: usize,
    /// Bytes of a result.
    pub result_bytes: usize,
    /// Each launch that was tried, with its rate in keys a second.
    pub shapes: Vec<(Shape, f64)>,
}

impl Rate {
    /// The fastest launch and its rate.
    pub fn best(&self) -> (Shape, f64) {
        let none = (Shape::row(0, 0, 0), 0.0);
        self.shapes.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or(none)
    }
}

/// Measures each program of a table on some keys, for each kind of keys that holds them all, after checking
/// the results of each against the CPU's.
pub fn rates<A: Address, E: Engine<A, Table: OnDevice + Lookup<A>>>(
    bench: &mut Bench,
    table: &E::Table,
    traces: &[(&str, &[A])],
    widths: &[usize],
    rounds: usize,
) -> Result<Vec<(String, Rate)>> {
    let uploaded = bench.upload(table)?;
    let mut rates = Vec::new();
    for &(trace, addresses) in traces {
        for &bytes in widths {
            let of_trace = of_keys::<A, E>(bench, table, &uploaded, addresses, bytes, rounds)?;
            rates.extend(of_trace.into_iter().map(|rate| (trace.to_owned(), rate)));
        }
    }
    bench.forget(&uploaded)?;
    Ok(rates)
}

fn of_keys<A: Address, E: Engine<A, Table: OnDevice + Lookup<A>>>(
    bench: &mut Bench,
    table: &E::Table,
    uploaded: &Uploaded,
    addresses: &[A],
    bytes: usize,
    rounds: usize,
) -> Result<Vec<Rate>> {
    // Cut to what a key holds, so that each kind has its right answers.
    let cut: Vec<A> =
        addresses.iter().map(|address| address.keep(u8::try_from(8 * bytes).unwrap_or(128))).collect();
    let mut right = vec![NextHop::NONE; cut.len()];
    table.par_lookup_batch(&cut, &mut right);
    let keys = bench.keys(&cut, bytes)?;
    let mut rates = Vec::new();
    for program in &uploaded.programs {
        let mut shapes = Vec::new();
        for shape in bench.shapes(program, bytes)? {
            shapes.push((shape, bench.rate(program, &keys, shape, rounds)?));
        }
        let rate = Rate {
            engine: E::NAME.into(),
            kernel: program.kernel(bytes).name,
            key_bytes: bytes,
            result_bytes: program.result_bytes,
            shapes,
        };
        // By the launch whose rate is told, over results that were spoilt before.
        bench.spoil(&keys)?;
        bench.launch(program, &keys, rate.best().0)?;
        let wrong = bench.differing(program, &keys, &right)?;
        ensure!(wrong == 0, "{} with {:?}: {wrong} of {} keys", program.stem, rate.best().0, keys.count);
        rates.push(rate);
    }
    bench.drop_keys(&keys)?;
    Ok(rates)
}
