//! Rate of the façade's own batch lookups, for `bench.py`: `batch_rate ROUTES ADDRESSES`. The addresses are
//! 32-bit numbers, little-endian. Each line that comes in starts a round over all addresses in one batch, and
//! is answered by the seconds of this thread's CPU time that the round took and the sum of its results.

use std::io::{BufRead, Write};

use rustix::time::{ClockId, clock_gettime};
use wirespeed::prelude::*;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut argument = || arguments.next().ok_or("batch_rate ROUTES ADDRESSES");
    let (routes, addresses) = (argument()?, argument()?);
    let labels = Labels::<String>::new();
    let table = Ipv4Table::builder().file(routes, &labels).build()?;
    let bytes = std::fs::read(addresses)?;
    let addresses: Vec<u32> = bytes.as_chunks().0.iter().map(|&bytes| u32::from_le_bytes(bytes)).collect();
    let (reader, mut output) = (table.reader(), std::io::stdout());
    for line in std::io::stdin().lock().lines() {
        line?;
        let start = seconds();
        // New memory for the results, as numpy gets it.
        let mut found = vec![0u32; addresses.len()];
        reader.lookup_batch(&addresses, bytemuck::cast_slice_mut(&mut found));
        let took = seconds() - start;
        let sum: u64 = found.iter().map(|&number| u64::from(number)).sum();
        writeln!(output, "{took} {sum}")?;
        output.flush()?;
    }
    Ok(())
}

/// CPU time of this thread: others run on this machine, too.
fn seconds() -> f64 {
    std::time::Duration::try_from(clock_gettime(ClockId::ThreadCPUTime))
        .map_or(0.0, |time| time.as_secs_f64())
}
