//! Lookups of keys that are in a GPU's memory already, in the caller's own stream: needs the feature `gpu`.
//!
//! ```text
//! the caller's stream   kernel makes keys ──► lookup_on ──► kernel uses results ──► …
//!                                                ▲
//! Reader::on_device(n) ──► DeviceTable ──────────┘   sees all updates; keeps its copy of the table alive
//! ```
//!
//! A GPU job, or packet I/O on a GPU, has its keys there. Nothing travels over the bus. A [`DeviceTable`] is
//! the copy of a table on one GPU; readers of addresses, names and rules hand it out. Pointers and streams
//! are plain numbers, so any CUDA library can call it. `examples/traffic_matrix.rs` is a complete program: it
//! makes packets on the GPU, looks them up, and counts them there by result.
//!
//! ```no_run
//! use wirespeed::on_device::{DeviceKeys, DeviceMemory, DevicePtr, Stream};
//! use wirespeed::prelude::*;
//!
//! # fn of_the_job() -> (Stream, DevicePtr, DevicePtr) { unimplemented!() }
//! let routes = [("10.0.0.0/8".parse::<Ipv4Net>()?, NextHop(1))];
//! let table = Ipv4Table::builder().routes(routes).device(Device::Gpu).build()?;
//! let on_gpu = table.reader().on_device(0)?;
//!
//! // A million addresses, and four bytes for the result of each.
//! let (stream, addresses, results) = of_the_job();
//! let count = 1 << 20;
//! let memory = DeviceMemory { at: results, bytes: 4 * count };
//! // SAFETY: both blocks are of GPU 0 and its primary context, and as long as said. The job uses them in the
//! // order of this stream, and frees them after it has waited for the stream.
//! let enqueued = unsafe { on_gpu.lookup_on(stream, DeviceKeys::whole(addresses, count), memory)? };
//! // A kernel that the job starts in the stream now sees results of `enqueued.result_bytes` bytes.
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Keys
//!
//! All integers are those of the GPU, little-endian. Fields of packets are in network order: a kernel swaps
//! their bytes.
//!
//! | keys | first part | second part | starts at a multiple of |
//! |---|---|---|---|
//! | [`whole`](DeviceKeys::whole), IPv4 | the address, `u32`: `0x0a000001` is 10.0.0.1 | | 4 |
//! | [`first_24`](DeviceKeys::first_24) | bits 0 to 15, `u16` | bits 16 to 23, `u8` | 2 and 1 |
//! | [`whole`](DeviceKeys::whole), IPv6 | the address, 16 bytes, least significant first | | 16 |
//! | [`first_64`](DeviceKeys::first_64) | bits 0 to 63, `u64` | | 8 |
//! | [`first_48`](DeviceKeys::first_48) | bits 0 to 31, `u32` | bits 32 to 47, `u16` | 4 and 2 |
//! | [`packed`](DeviceKeys::packed), names | places of 32 names, 68 bytes each | all names' bytes | 16 |
//! | [`ended`](DeviceKeys::ended), names | the end of each name, `u32` | all names' bytes | 16 |
//! | [`tuples`](DeviceKeys::tuples) | whole words of 32 tuples, and so on | the byte that is left of each | 16 |
//!
//! Lookups are fastest if all parts and the results start at multiples of 16 bytes.
//!
//! Whole addresses are always right. Fewer bytes are right while no prefix is longer:
//! [`key_bytes`](DeviceTable::key_bytes) tells how many are needed now. A lookup of keys that have become too
//! narrow is an error, and nothing is put into the stream. The check is made in the order of updates, so no
//! answer is ever wrong.
//!
//! # Results
//!
//! Results are numbers of 1, 2 or 4 bytes, as wide as the table needs in the state that the lookup sees. An
//! update can make them wider. The caller states the bytes of its memory: the lookup is an error, and nothing
//! is put into the stream, if they are too few. [`MOST_RESULT_BYTES`] for each key are always enough, and
//! [`Enqueued::result_bytes`] tells the width that was written. 0 is no match.
//!
//! - Addresses and names: a result is a [`NextHop`](crate::NextHop).
//! - Rules: a result is the number of a rule, as
//!   [`RuleReader::lookup_batch`](crate::RuleReader::lookup_batch) gives it. The width is chosen in the order
//!   of updates, so a number always fits. An update that takes a rule out, or puts a rule in place of
//!   another, gives its number a new meaning.
//! - Names with lengths ([`Wanted::Matches`]): a result is a [`Match`](crate::names::Match), 8 bytes: the
//!   next hop, `u32`, and the length in bytes, `u32`.
//! - Addresses of a table for [prefix lookups](crate::Builder::prefix_lookups): a result is the number of a
//!   pair of next hop and prefix length. A number keeps its pair for ever, so counts by number stay right.
//!   Take results apart on the host with [`next_hops`](DeviceTable::next_hops) or
//!   [`prefixes`](DeviceTable::prefixes).
//!
//! [`Labels`](crate::Labels) resolve next hops as always: enter them before the lookup, and keep the guard
//! until its results are resolved.
//!
//! # States and updates
//!
//! A lookup sees one state of the table: all updates that were applied before the call, and none of those
//! after it. [`Enqueued::version`] tells two states apart. Updates wait on the GPU until earlier lookups have
//! read the table; the threads that apply them don't. So a lookup that stands in its stream for long holds up
//! updates, and lookups after these. Don't let the stream wait for the host between a lookup and its end: if
//! a batch of the GPU is held up for longer than
//! [`GpuOptions::timeout`](crate::gpu::runtime::GpuOptions::timeout), the GPU counts as lost.
//!
//! # Lifetime
//!
//! A [`DeviceTable`] keeps its copy of the table, and the GPU's owner thread, alive. It stays valid after the
//! table and all readers are gone, and then has their last state. It can be dropped while lookups are under
//! way: memory of the table is freed when they have ended. The caller's own memory and stream are the
//! caller's concern: see the safety section of [`lookup_on`](DeviceTable::lookup_on).
//!
//! # Contexts and streams
//!
//! - Memory and stream are of the GPU's primary context, which runtime libraries use unless told otherwise.
//!   GPU `n` of a [`Fleet`](crate::Fleet) need not have number `n` in CUDA: [`bus`](DeviceTable::bus) tells
//!   which GPU it is.
//! - The call comes from the GPU's owner thread. So the stream must not be the default stream of the calling
//!   thread (handle 2), which would be another stream there. The legacy default stream (handle 0) is allowed.
//! - The stream must not be recording a graph. A lookup can't be part of a graph of the caller, because a
//!   replay would see memory of a state that is gone.
//! - The lookup is in the stream when the call returns. The call takes some microseconds; it does not wait
//!   for the GPU.
//! - A lookup can read and write memory of another GPU if the context has access to it (peers).

mod keys;
mod table;

pub use keys::DeviceKeys;
#[cfg(feature = "rules")]
pub use keys::TUPLE_GROUP;
#[cfg(feature = "names")]
pub use keys::{NAME_GROUP, NAME_GROUP_BYTES};
pub use table::{DeviceTable, MOST_RESULT_BYTES};

pub use crate::gpu::driver::{DevicePtr, Stream};
#[cfg(feature = "names")]
pub use crate::gpu::names::Wanted;
pub use crate::gpu::runtime::{DeviceMemory, Enqueued};
