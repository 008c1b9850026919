//! Keys that are on the GPU already, as a GPU job or GPU packet I/O has them: looked up there, on the job's
//! own stream, with nothing over the bus.
//!
//! ```sh
//! cargo run --release -p wirespeed-gpu --example device_keys
//! ```
//!
//! Here the job's memory and stream are `cudarc`'s; raw pointers and a raw stream of any other library do as
//! well, as long as they are of the GPU's primary context.

use cudarc::driver::{CudaContext, DevicePtr as _, DevicePtrMut as _};
use wirespeed_dir24::Dir24;
use wirespeed_fib::{BuildOptions, Engine, NextHop, Rib, V4};
use wirespeed_gpu::driver::{Cuda, DevicePtr, Stream};
use wirespeed_gpu::runtime::{Gpu, GpuOptions};
use wirespeed_image::Table;
use wirespeed_image::device::OnDevice;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let driver = match Cuda::open(0) {
        Ok(driver) => driver,
        Err(why) => {
            eprintln!("nothing to show: {why}");
            return Ok(());
        }
    };
    let gpu = Gpu::start(Box::new(driver), GpuOptions::default())?;
    let routes = [("10.0.0.0/8", 1), ("10.1.0.0/16", 2), ("192.0.2.0/24", 3)];
    let routes = routes.map(|(prefix, next_hop)| (prefix.parse().expect("a prefix"), NextHop(next_hop)));
    let rib: Rib<V4> = routes.into_iter().collect();
    let (_, table) = Dir24::build(&rib, &BuildOptions::default())?;
    let handle = gpu.upload(table.image(), |sections| table.programs(sections))?;

    // The job: its context is the GPU's primary one, as the runtime's is.
    let context = CudaContext::new(0)?;
    let stream = context.new_stream()?;
    let addresses: Vec<u32> = (0..1 << 20u32).map(|i| 0x0a00_0000 + i).collect();
    let keys = stream.clone_htod(&addresses)?;
    let mut results = stream.alloc_zeros::<u8>(addresses.len() * handle.result_bytes())?;

    let enqueued = {
        let (keys_at, _keys_in_use) = keys.device_ptr(&stream);
        let (results_at, _results_in_use) = results.device_ptr_mut(&stream);
        let raw = Stream(stream.cu_stream().expose_provenance() as u64);
        let (keys_at, results_at) = (DevicePtr(keys_at), DevicePtr(results_at));
        #[allow(unsafe_code)] // the contract of `lookup_on`
        // SAFETY: both slices are of this GPU and its primary context and as long as said; the job uses them
        // in the order of this stream only, and they live until it is done below.
        unsafe {
            gpu.lookup_on(&handle, raw, keys_at, None, 4, results_at, addresses.len())?
        }
    };
    // Whatever the job does next on its stream sees the results; here it fetches them.
    let found = stream.clone_dtoh(&results)?;
    let matched = found.chunks(enqueued.result_bytes).filter(|result| result.iter().any(|&byte| byte != 0));
    println!("{} keys, {} with a route", addresses.len(), matched.count());
    Ok(())
}
