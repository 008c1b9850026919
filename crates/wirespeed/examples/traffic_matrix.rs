//! The traffic matrix of a router: packets and bytes by the port that they come from and the next hop that
//! they go to. A GPU makes the packets, looks them up, and counts them. They never leave its memory.
//!
//! ```sh
//! cargo run --release -p wirespeed --example traffic_matrix
//! ```
//!
//! The kernels of the job are in `traffic_matrix.cu`. Its memory and stream are those of `cudarc`; any other
//! CUDA library does as well. The CPU makes and counts the same packets, and all counts are compared. Between
//! two rounds the routes change. Without a GPU the CPU counts alone.

use std::sync::Arc;
use std::time::Instant;

use cudarc::driver::{CudaContext, CudaFunction, CudaSlice, CudaStream};
use cudarc::driver::{DevicePtr as _, DevicePtrMut as _, LaunchConfig, PushKernelArg as _};
use cudarc::nvrtc::Ptx;
use wirespeed::DeviceTable;
use wirespeed::fib::synth::{self, TableSpec};
use wirespeed::gpu::driver::devices;
use wirespeed::on_device::{DeviceKeys, DeviceMemory, DevicePtr, MOST_RESULT_BYTES, Stream};
use wirespeed::prelude::*;
use wirespeed::{Family, Ipv4Reader, Rib};

/// Packets of a round.
const PACKETS: usize = 1 << 22;
/// Ports that packets come from.
const PORTS: u32 = 4;
/// Next hops that they go to.
const NEXT_HOPS: u32 = 6;
/// Results that are counted: no route, the next hops, and all larger numbers.
const COLUMNS: u32 = NEXT_HOPS + 2;
const CELLS: usize = (PORTS * COLUMNS) as usize;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Packets and bytes, a row of columns for each port.
#[derive(Debug, PartialEq, Eq)]
struct Matrix {
    packets: Vec<u64>,
    bytes: Vec<u64>,
}

fn main() -> Outcome<()> {
    let mut table = Ipv4Table::builder().rib(routes(100_000)?).device(Device::Auto).build()?;
    let reader = table.reader();
    let mut job = match table.fleet() {
        Some(_) => Some(Job::on(reader.on_device(0)?)?),
        None => {
            println!("no GPU: {}", table.device_note().unwrap_or_default());
            println!("the CPU counts alone");
            None
        }
    };
    for round in 0..2 {
        let first = round * PACKETS as u64;
        let began = Instant::now();
        let right = on_cpu(&reader, first, PACKETS);
        println!("\nround {round}: {PACKETS} packets, on the CPU in {:.1?}", began.elapsed());
        if let Some(job) = &mut job {
            let began = Instant::now();
            let (counted, version) = job.count(first)?;
            println!("on the GPU in {:.1?}, in state {version} of the table", began.elapsed());
            if counted != right {
                return Err("the counts of the GPU differ from those of the CPU".into());
            }
            println!("all {} counts are those of the CPU", 2 * CELLS);
        }
        right.print();
        // The next round sees it: a quarter of all addresses go another way.
        table.insert("64.0.0.0/2".parse::<Ipv4Net>()?, NextHop(NEXT_HOPS))?;
        table.insert("64.0.0.0/3".parse::<Ipv4Net>()?, NextHop(1))?;
    }
    Ok(())
}

/// Synthetic routes to few next hops.
fn routes(prefixes: usize) -> Outcome<Rib<V4>> {
    let spec = TableSpec { prefixes, ..TableSpec::full(Family::V4) };
    let rib: Rib<V4> = synth::table(&spec)?;
    Ok(rib.iter().map(|(prefix, next_hop)| (prefix, NextHop(1 + next_hop.0 % NEXT_HOPS))).collect())
}

/// A job on a GPU: its kernels, its stream, and its memory.
struct Job {
    table: DeviceTable<V4>,
    stream: Arc<CudaStream>,
    make: CudaFunction,
    count: CudaFunction,
    addresses: CudaSlice<u32>,
    lengths: CudaSlice<u16>,
    from: CudaSlice<u8>,
    /// Enough in every state of the table.
    results: CudaSlice<u8>,
    packets: CudaSlice<u64>,
    bytes: CudaSlice<u64>,
}

impl Job {
    /// Makes a job on the GPU that has the table.
    fn on(table: DeviceTable<V4>) -> Outcome<Self> {
        // CUDA may number GPUs in another way than the fleet of the table.
        let number = devices()?.iter().position(|device| device.bus == table.bus()).ok_or("a GPU is gone")?;
        // The primary context of the GPU, which the table's memory belongs to.
        let context = CudaContext::new(number)?;
        let stream = context.new_stream()?;
        // The driver compiles it for its GPU; nothing of CUDA needs to be installed.
        let module = context.load_module(Ptx::from_src(include_str!("traffic_matrix.ptx")))?;
        Ok(Self {
            make: module.load_function("make_packets")?,
            count: module.load_function("count_packets")?,
            addresses: stream.alloc_zeros(PACKETS)?,
            lengths: stream.alloc_zeros(PACKETS)?,
            from: stream.alloc_zeros(PACKETS)?,
            results: stream.alloc_zeros(PACKETS * MOST_RESULT_BYTES)?,
            packets: stream.alloc_zeros(CELLS)?,
            bytes: stream.alloc_zeros(CELLS)?,
            stream,
            table,
        })
    }

    /// Makes packets, looks them up and counts them: three steps in one stream, without a wait between them.
    /// Returns the counts, and the state of the table that the lookup saw.
    fn count(&mut self, first: u64) -> Outcome<(Matrix, u64)> {
        let shape = LaunchConfig { grid_dim: (1024, 1, 1), block_dim: (256, 1, 1), shared_mem_bytes: 0 };
        let (count, ports, columns) = (PACKETS as u64, PORTS, COLUMNS);
        self.stream.memset_zeros(&mut self.packets)?;
        self.stream.memset_zeros(&mut self.bytes)?;
        let mut make = self.stream.launch_builder(&self.make);
        make.arg(&first).arg(&count).arg(&ports);
        make.arg(&mut self.addresses).arg(&mut self.lengths).arg(&mut self.from);
        #[allow(unsafe_code)] // a launch
        // SAFETY: these are the arguments of `make_packets`, and each block of memory holds `PACKETS`.
        unsafe {
            make.launch(shape)?;
        }

        let enqueued = {
            let (addresses, _in_use) = self.addresses.device_ptr(&self.stream);
            let (results, _results_in_use) = self.results.device_ptr_mut(&self.stream);
            let stream = Stream(self.stream.cu_stream().expose_provenance() as u64);
            let keys = DeviceKeys::whole(DevicePtr(addresses), PACKETS);
            let results = DeviceMemory { at: DevicePtr(results), bytes: PACKETS * MOST_RESULT_BYTES };
            #[allow(unsafe_code)] // the contract of `lookup_on`
            // SAFETY: both blocks are of this GPU and its primary context, and as long as stated. This stream
            // alone uses them, and they live until it was waited for below.
            unsafe {
                self.table.lookup_on(stream, keys, results)?
            }
        };

        let result_bytes = u32::try_from(enqueued.result_bytes)?;
        let shared_mem_bytes = u32::try_from(2 * CELLS * size_of::<u64>())?;
        let mut add = self.stream.launch_builder(&self.count);
        add.arg(&self.results).arg(&result_bytes).arg(&self.lengths).arg(&self.from).arg(&count);
        add.arg(&ports).arg(&columns).arg(&mut self.packets).arg(&mut self.bytes);
        #[allow(unsafe_code)] // a launch
        // SAFETY: these are the arguments of `count_packets`: results of that width, and a cell for each port
        // and column in both matrices and in shared memory.
        unsafe {
            add.launch(LaunchConfig { shared_mem_bytes, ..shape })?;
        }
        let (packets, bytes) = (self.stream.clone_dtoh(&self.packets)?, self.stream.clone_dtoh(&self.bytes)?);
        self.stream.synchronize()?;
        Ok((Matrix { packets, bytes }, enqueued.version))
    }
}

/// Makes the packets of the kernels, and counts them.
fn on_cpu(reader: &Ipv4Reader, first: u64, count: usize) -> Matrix {
    let mut matrix = Matrix { packets: vec![0; CELLS], bytes: vec![0; CELLS] };
    let state = reader.enter(); // lookups through it run on the CPU
    let numbers: Vec<u64> = (first..).take(count).map(number_at).collect();
    for numbers in numbers.chunks(4096) {
        #[allow(clippy::cast_possible_truncation)] // the low half is the address
        let addresses: Vec<u32> = numbers.iter().map(|&number| number as u32).collect();
        let mut found = vec![NextHop::NONE; addresses.len()];
        state.lookup_batch(&addresses, &mut found);
        for (&number, next_hop) in numbers.iter().zip(found) {
            let (length, port) = (40 + (number >> 32) % 1461, (number >> 48) % u64::from(PORTS));
            let column = next_hop.0.min(COLUMNS - 1);
            #[allow(clippy::cast_possible_truncation)] // less than PORTS
            let cell = (port as u32 * COLUMNS + column) as usize;
            matrix.packets[cell] += 1;
            matrix.bytes[cell] += length;
        }
    }
    matrix
}

/// The `n`-th number of a sequence that looks random (splitmix64).
const fn number_at(n: u64) -> u64 {
    let n = n.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let n = (n ^ n >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ n >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ n >> 31
}

impl Matrix {
    fn print(&self) {
        print!("{:>10}{:>18}", "megabytes", "no route");
        (1..=NEXT_HOPS).for_each(|next_hop| print!("{:>12}", format!("to {next_hop}")));
        println!();
        for (port, cells) in self.bytes.chunks(COLUMNS as usize).enumerate() {
            print!("{:>10}{:>18}", format!("from {port}"), cells[0] / 1_000_000);
            cells[1..=NEXT_HOPS as usize].iter().for_each(|bytes| print!("{:>12}", bytes / 1_000_000));
            println!();
        }
        println!("{} packets", self.packets.iter().sum::<u64>());
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn the_cpu_counts_every_packet_once_and_where_it_goes() {
        let rib = routes(2_000).unwrap();
        let mut table = Ipv4Table::builder().rib(rib.clone()).build().unwrap();
        let matrix = on_cpu(&table.reader(), 7, 10_000);
        let mut right = Matrix { packets: vec![0; CELLS], bytes: vec![0; CELLS] };
        for n in 7..10_007 {
            let number = number_at(n);
            let address = V4(u32::try_from(number & 0xffff_ffff).unwrap());
            let column = rib.longest_match(address).map_or(0, |(_, next_hop)| next_hop.0 as usize);
            let cell = usize::try_from((number >> 48) % 4).unwrap() * COLUMNS as usize + column;
            right.packets[cell] += 1;
            right.bytes[cell] += 40 + (number >> 32) % 1461;
        }
        assert_eq!(matrix, right);
        assert_eq!(matrix.packets.iter().sum::<u64>(), 10_000);
        // A next hop beyond the last column is counted in it.
        table.insert("0.0.0.0/0".parse::<Ipv4Net>().unwrap(), NextHop(1000)).unwrap();
        let others = on_cpu(&table.reader(), 7, 10_000);
        let last = |matrix: &Matrix| -> u64 {
            matrix.packets.chunks(COLUMNS as usize).map(|cells| cells[COLUMNS as usize - 1]).sum()
        };
        assert!(last(&matrix) == 0 && last(&others) > 0);
    }

    #[test]
    fn the_ptx_has_both_kernels() {
        let ptx = include_str!("traffic_matrix.ptx");
        assert!(ptx.contains(".entry make_packets(") && ptx.contains(".entry count_packets("));
    }
}
