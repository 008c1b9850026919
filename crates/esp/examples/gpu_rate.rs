//! Rates of a GPU that seals and opens: `gpu_rate [SECONDS [host]]`, for each suite and size of packets.
//!
//! First a chunk is held against the CPU: what the device seals byte for byte, what it opens against what was
//! sealed, and a wrong bit in each frame is refused. Then chunks are timed in two ways.
//!
//! - *Whole*: the trip of 32 chunks from pinned memory and back, from the first start to the last end, in the
//!   best round. The CPU fills them before, and neither gathers nor reads frames in that time.
//! - *Kernel*: the median of chunks alone, without copies.
//!
//! Rates are those of inner packets, without headers and tags. The CPU's own are those of the example `rate`.
//! `host` checks the host build of the kernels, which needs a C++ compiler, and times nothing.

mod packets;

use std::time::{Duration, Instant};

use wirespeed_esp::gpu::driver::{Cuda, Driver};
use wirespeed_esp::gpu::{Device, Options, Transform};
use wirespeed_esp::{Fault, Keys, Sa, SaConfig, Scratch, Sealing, Secret, seal};
use wirespeed_kernels_host::{HostDriver, Sanitizers, build};

use packets::packet;

type Failure = Box<dyn std::error::Error>;

/// Bytes before the ESP header: the outer IPv4 header.
const OUTER: usize = 20;
/// Bytes from the ESP header to the text.
const HEADER: usize = 16;
const SIZES: [usize; 3] = [64, 512, 1500];
const CHUNKS: [usize; 3] = [256 << 10, 1 << 20, 4 << 20];
const SLOTS: usize = 32;

/// A suite's name, its keys, and the bytes of its tag.
fn suites() -> [(&'static str, Keys, usize); 3] {
    let secret = |len: u8| Secret::new((1..=len).collect());
    [
        ("AES-GCM-128", Keys::Gcm(secret(20)), 16),
        ("AES-GCM-256", Keys::Gcm(secret(36)), 16),
        ("AES-128-CTR HMAC-SHA1-96", Keys::CtrSha1 { cipher: secret(20), authentication: secret(20) }, 12),
    ]
}

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let seconds: f64 = arguments.next().map_or(Ok(0.2), |text| text.parse())?;
    let is_host = arguments.next().is_some_and(|word| word == "host");
    let driver: Box<dyn Driver> = if is_host {
        Box::new(HostDriver::start(&build(Sanitizers::Off)?)?)
    } else {
        Box::new(Cuda::open(0)?)
    };
    let chunks = if is_host { &CHUNKS[..1] } else { &CHUNKS[..] };
    println!("# {}; {SLOTS} chunks under way; Gb/s of inner packets", driver.properties().name);
    let bytes = CHUNKS[chunks.len() - 1];
    let options = Options { keys: 1, slots: SLOTS, frames: bytes / SIZES[0], bytes, lanes: None };
    let mut device = Device::new(driver, &options)?;
    println!(
        "{:<25} {:>6} {:>9} {:>7} {:>11} {:>11} {:>12} {:>12}",
        "suite", "bytes", "chunk KB", "frames", "seal whole", "open whole", "seal kernel", "open kernel"
    );
    for (name, keys, tag) in suites() {
        device.set(0, &keys, false)?;
        for size in SIZES {
            for bytes in chunks {
                let frames = Frames::new(&keys, size, tag, *bytes)?;
                let count = frames.clear.len();
                frames.check(&mut device)?;
                if is_host {
                    println!("{name:<25} {size:>6} {:>9} {count:>7} as on the CPU", bytes >> 10);
                    continue;
                }
                let least = Duration::from_secs_f64(seconds);
                let rate = |time: f64| (count * size * 8) as f64 / time / 1e9;
                let whole = [Transform::Seal, Transform::Open]
                    .map(|transform| frames.whole(&mut device, transform, least).map(rate));
                let alone = [Transform::Seal, Transform::Open]
                    .map(|transform| frames.alone(&mut device, transform, least).map(rate));
                let ([seal_whole, open_whole], [seal_alone, open_alone]) = (whole, alone);
                println!(
                    "{name:<25} {size:>6} {:>9} {count:>7} {:>11.1} {:>11.1} {:>12.1} {:>12.1}",
                    bytes >> 10,
                    seal_whole?,
                    open_whole?,
                    seal_alone?,
                    open_alone?
                );
            }
        }
    }
    Ok(())
}

/// Frames of a chunk from the ESP header on, before they are sealed and as the CPU seals them.
struct Frames {
    clear: Vec<Vec<u8>>,
    sealed: Vec<Vec<u8>>,
    tag: usize,
}

impl Frames {
    /// Frames to fill a chunk of so many bytes.
    fn new(keys: &Keys, size: usize, tag: usize, bytes: usize) -> Result<Self, Failure> {
        let config = SaConfig {
            path_mtu: 1600,
            ..SaConfig::new(0x100, "192.0.2.1".parse()?, "192.0.2.2".parse()?, keys.clone())
        };
        let sa = Sa::new(&config)?;
        let inner = packet(size);
        let len = Sealing::begin(&sa, &inner).map_err(Fault::name)?.len();
        let mut packets = vec![vec![0; len]; bytes / (len - OUTER).next_multiple_of(16)];
        let mut unsealed = Vec::new();
        for (at, packet) in packets.iter_mut().enumerate() {
            let sealing = Sealing::begin(&sa, &inner).map_err(Fault::name)?;
            packet[sealing.head()..][..size].copy_from_slice(&inner);
            unsealed.push(sealing.write(at, packet).map_err(Fault::name)?);
        }
        let of = |packets: &[Vec<u8>]| packets.iter().map(|packet| packet[OUTER..].to_vec()).collect();
        let clear = of(&packets);
        seal(&unsealed, &mut packets[..], &mut Scratch::default());
        Ok(Self { clear, sealed: of(&packets), tag })
    }

    fn fill(device: &mut Device, slot: usize, frames: &[Vec<u8>]) -> Result<(), Failure> {
        let mut chunk = device.chunk(slot)?;
        chunk.clear();
        frames.iter().try_for_each(|frame| chunk.push(0, 0, frame))?;
        Ok(())
    }

    /// Holds the device against the CPU.
    fn check(&self, device: &mut Device) -> Result<(), Failure> {
        Self::fill(device, 0, &self.clear)?;
        device.start(0, Transform::Seal)?;
        device.wait(0)?;
        let chunk = device.chunk(0)?;
        for (at, sealed) in self.sealed.iter().enumerate() {
            assert!(chunk.frame(at) == sealed, "frame {at} is sealed otherwise than on the CPU");
        }
        device.start(0, Transform::Open)?;
        device.wait(0)?;
        let chunk = device.chunk(0)?;
        for (at, clear) in self.clear.iter().enumerate() {
            let end = clear.len() - self.tag;
            assert!(chunk.is_right(at) && chunk.frame(at)[..end] == clear[..end], "frame {at} is not opened");
        }
        let mut wrong = self.sealed.clone();
        for (at, frame) in wrong.iter_mut().enumerate() {
            let byte = at % frame.len();
            frame[byte] ^= 1 << (at % 8);
        }
        Self::fill(device, 0, &wrong)?;
        device.start(0, Transform::Open)?;
        device.wait(0)?;
        let chunk = device.chunk(0)?;
        for (at, frame) in wrong.iter().enumerate() {
            let text = &chunk.frame(at)[HEADER..frame.len() - self.tag];
            assert!(!chunk.is_right(at) && text.iter().all(|&byte| byte == 0), "frame {at} is opened");
        }
        Ok(())
    }

    /// The frames that a transform begins with.
    fn before(&self, transform: Transform) -> &[Vec<u8>] {
        match transform {
            Transform::Seal => &self.clear,
            Transform::Open => &self.sealed,
        }
    }

    /// Seconds of a chunk, of many that are under way at once. The best round counts, since others share the
    /// bus.
    fn whole(&self, device: &mut Device, transform: Transform, least: Duration) -> Result<f64, Failure> {
        let (mut best, begin) = (f64::INFINITY, Instant::now());
        while best.is_infinite() || begin.elapsed() < least {
            (0..SLOTS).try_for_each(|slot| Self::fill(device, slot, self.before(transform)))?;
            let start = Instant::now();
            (0..SLOTS).try_for_each(|slot| device.start(slot, transform))?;
            (0..SLOTS).try_for_each(|slot| device.wait(slot))?;
            best = best.min(start.elapsed().as_secs_f64() / SLOTS as f64);
        }
        Ok(best)
    }

    /// Seconds of a chunk's kernels alone.
    fn alone(&self, device: &mut Device, transform: Transform, least: Duration) -> Result<f64, Failure> {
        let (mut times, begin) = (Vec::new(), Instant::now());
        while times.is_empty() || begin.elapsed() < least {
            Self::fill(device, 0, self.before(transform))?;
            device.start(0, transform)?;
            times.push(device.kernels_took(0)?);
        }
        times.sort_unstable();
        Ok(times[times.len() / 2].as_secs_f64())
    }
}
