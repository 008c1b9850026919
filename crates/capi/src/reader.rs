//! [`ws_reader`]: lookups of addresses.
//!
//! A batch sees one state of the table. It is looked up a block at a time: the block's results lie in the
//! first-level cache, and go from there to the caller's array in the width that it has.
#![allow(unsafe_code)]

use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::path::Path;

use wirespeed::engine::Addresses;
use wirespeed::prelude::*;
use wirespeed::{Key, Reader};

use crate::boundary::{
    Failure, addresses, batch, free, given, handle, output, place, status, text, ws_status,
};
use crate::labels::{Text, label_of, write_field};

/// Looks up addresses in a table or an image.
pub struct ws_reader {
    reader: IpReader,
    labels: Labels<Text>,
}

impl ws_reader {
    pub(crate) fn new(reader: IpReader, labels: Labels<Text>) -> Self {
        Self { reader, labels }
    }
}

/// Opens an image file that ws_table_save or lookupctl build wrote, for lookups alone. Memory holds one copy
/// of the table.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ws_reader_open(path: *const c_char) -> *mut ws_reader {
    handle(|| {
        // SAFETY: the caller keeps the rules of the header.
        let path = Path::new(unsafe { text(path, "path") }?);
        Ok(ws_reader::new(IpReader::open(path)?, Labels::open(path)?))
    })
}

/// Frees a reader, or does nothing with NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ws_reader_free(reader: *mut ws_reader) {
    // SAFETY: the caller keeps the rules of the header.
    unsafe { free(reader) }
}

/// Looks up count IPv4 addresses in host order, and writes their next hops, 0 where no prefix matches: as
/// rte_fib_lookup_bulk. The batch sees one state of the table. Batches of 1,000 and more are fastest.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ws_lookup_bulk(
    reader: *const ws_reader,
    addresses: *const u32,
    next_hops: *mut u64,
    count: usize,
) -> ws_status {
    status(|| {
        // SAFETY: the caller keeps the rules of the header.
        let (reader, (keys, results)) =
            unsafe { (given(reader, "reader")?, batch((addresses, next_hops), count, NAMES)?) };
        look_up(reader.reader.v4(), keys, results, |&key| key, |next_hop| u64::from(next_hop.0));
        Ok(())
    })
}

/// Looks up like ws_lookup_bulk, and writes numbers of 32 bits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ws_lookup_bulk32(
    reader: *const ws_reader,
    addresses: *const u32,
    next_hops: *mut u32,
    count: usize,
) -> ws_status {
    status(|| {
        // SAFETY: the caller keeps the rules of the header.
        let (reader, (keys, results)) =
            unsafe { (given(reader, "reader")?, batch((addresses, next_hops), count, NAMES)?) };
        look_up(reader.reader.v4(), keys, results, |&key| key, |next_hop| next_hop.0);
        Ok(())
    })
}

/// Looks up count IPv6 addresses of 16 bytes each in network order, like ws_lookup_bulk and as
/// rte_fib6_lookup_bulk. An IPv4-mapped address is an IPv6 address.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ws_lookup6_bulk(
    reader: *const ws_reader,
    addresses: *const [u8; 16],
    next_hops: *mut u64,
    count: usize,
) -> ws_status {
    status(|| {
        // SAFETY: the caller keeps the rules of the header.
        let (reader, (keys, results)) =
            unsafe { (given(reader, "reader")?, batch((addresses, next_hops), count, NAMES)?) };
        look_up(reader.reader.v6(), keys, results, of_octets, |next_hop| u64::from(next_hop.0));
        Ok(())
    })
}

/// Looks up IPv4 addresses like ws_lookup_bulk, and writes the length of each matched prefix to depths, 0
/// where none matches. Fails if the table was made without prefix_lookups.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ws_lookup_prefix_bulk(
    reader: *const ws_reader,
    addresses: *const u32,
    next_hops: *mut u64,
    depths: *mut u8,
    count: usize,
) -> ws_status {
    // SAFETY: the caller keeps the rules of the header.
    status(|| unsafe {
        prefixes(given(reader, "reader")?.reader.v4(), (addresses, next_hops, depths), count, |&key| key)
    })
}

/// Looks up IPv6 addresses like ws_lookup6_bulk, and writes lengths like ws_lookup_prefix_bulk.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ws_lookup6_prefix_bulk(
    reader: *const ws_reader,
    addresses: *const [u8; 16],
    next_hops: *mut u64,
    depths: *mut u8,
    count: usize,
) -> ws_status {
    // SAFETY: the caller keeps the rules of the header.
    status(|| unsafe {
        prefixes(given(reader, "reader")?.reader.v6(), (addresses, next_hops, depths), count, of_octets)
    })
}

/// Looks up one IPv4 address in host order.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ws_lookup(reader: *const ws_reader, address: u32, next_hop: *mut u64) -> ws_status {
    status(|| {
        // SAFETY: the caller keeps the rules of the header.
        let (reader, next_hop) = unsafe { (given(reader, "reader")?, place(next_hop, "next_hop")?) };
        next_hop.write(reader.reader.v4().lookup(address).0.into());
        Ok(())
    })
}

/// Label of a next hop, or NULL if it has none. The text stays until the table and all its readers are freed,
/// or the label ends by ws_table_forget_labels.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ws_reader_label(reader: *const ws_reader, next_hop: u64) -> *const c_char {
    // SAFETY: the caller keeps the rules of the header.
    label_of(|| Ok(&unsafe { given(reader, "reader") }?.labels), next_hop)
}

/// Writes the value of a field of a next hop's label, where labels are records such as asn=64496,country=DE:
/// of CSV with several columns, a MaxMind DB, ranges of clouds, or merged sources. At most size bytes are
/// written to value, with the zero that ends them; length gets the bytes of the whole value without that
/// zero, 0 for a label that lacks the field and for a next hop without a label. Fails if no label of the
/// table has the field; the message lists those that are there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ws_reader_label_field(
    reader: *const ws_reader,
    next_hop: u64,
    field: *const c_char,
    value: *mut c_char,
    size: usize,
    length: *mut usize,
) -> ws_status {
    status(|| {
        // SAFETY: the caller keeps the rules of the header.
        unsafe { label_field(&given(reader, "reader")?.labels, next_hop, field, (value, size), length) }
    })
}

/// Writes the value of a field of a label, and its length.
///
/// # Safety
///
/// The pointers keep the rules of the header.
pub(crate) unsafe fn label_field(
    labels: &Labels<Text>,
    number: u64,
    field: *const c_char,
    value: (*mut c_char, usize),
    length: *mut usize,
) -> Result<(), Failure> {
    // SAFETY: the caller vouches for them.
    unsafe {
        text_of_text((field, "field"), value, length, |field, value| {
            write_field(labels, number, field, value)
        })
    }
}

/// Writes a text that is found by another one, and its length.
///
/// # Safety
///
/// The pointers keep the rules of the header.
pub(crate) unsafe fn text_of_text(
    (by, what): (*const c_char, &str),
    (value, size): (*mut c_char, usize),
    length: *mut usize,
    write: impl FnOnce(&str, &mut [MaybeUninit<c_char>]) -> Result<usize, Failure>,
) -> Result<(), Failure> {
    // SAFETY: the caller vouches for them.
    let (by, length) = unsafe { (text(by, what)?, place(length, "length")?) };
    let beside = [(addresses(by.as_bytes()), what), (addresses(std::slice::from_ref(length)), "length")];
    // SAFETY: the caller vouches for it.
    let value = unsafe { output(value, size, "value", &beside) }?;
    length.write(write(by, value)?);
    Ok(())
}

const NAMES: (&str, &str) = ("addresses", "next_hops");

/// Keys of a block: enough for a fast batch, few enough for the first-level cache.
const BLOCK: usize = 1024;

fn of_octets(octets: &[u8; 16]) -> u128 {
    u128::from_be_bytes(*octets)
}

/// Looks up a batch in one state of the table.
fn look_up<A: Addresses, K, N: Key<A> + Default, R>(
    reader: &Reader<A>,
    keys: &[K],
    results: &mut [MaybeUninit<R>],
    key: impl Fn(&K) -> N,
    result: impl Fn(NextHop) -> R,
) {
    let (state, mut block) = (reader.enter(), Block::new());
    for (keys, results) in keys.chunks(BLOCK).zip(results.chunks_mut(BLOCK)) {
        let (keys, found, _) = block.of(keys, &key);
        state.lookup_batch(keys, found);
        results.iter_mut().zip(found).for_each(|(to, found)| _ = to.write(result(*found)));
    }
}

/// Looks up a batch with the lengths of its prefixes.
///
/// # Safety
///
/// The pointers keep the rules of the header.
unsafe fn prefixes<A: Addresses, K, N: Key<A> + Default>(
    reader: &Reader<A>,
    (keys, next_hops, depths): (*const K, *mut u64, *mut u8),
    count: usize,
    key: impl Fn(&K) -> N,
) -> Result<(), Failure> {
    // SAFETY: the caller vouches for them.
    let (keys, next_hops) = unsafe { batch((keys, next_hops), count, NAMES) }?;
    let beside = [(addresses(keys), NAMES.0), (addresses(next_hops), NAMES.1)];
    // SAFETY: the caller vouches for it.
    let depths = unsafe { output(depths, count, "depths", &beside) }?;
    let (state, mut block) = (reader.enter(), Block::new());
    let results = next_hops.chunks_mut(BLOCK).zip(depths.chunks_mut(BLOCK));
    for (keys, (next_hops, depths)) in keys.chunks(BLOCK).zip(results) {
        let (keys, found, lengths) = block.of(keys, &key);
        state.lookup_prefixes(keys, found, lengths)?;
        next_hops.iter_mut().zip(found).for_each(|(to, found)| _ = to.write(found.0.into()));
        depths.iter_mut().zip(lengths).for_each(|(to, length)| _ = to.write(*length));
    }
    Ok(())
}

/// The keys and results of a block.
struct Block<N> {
    keys: [N; BLOCK],
    found: [NextHop; BLOCK],
    lengths: [u8; BLOCK],
}

impl<N: Copy + Default> Block<N> {
    fn new() -> Self {
        Self { keys: [N::default(); BLOCK], found: [NextHop::NONE; BLOCK], lengths: [0; BLOCK] }
    }

    /// Fills the keys in.
    fn of<K>(&mut self, keys: &[K], key: impl Fn(&K) -> N) -> (&[N], &mut [NextHop], &mut [u8]) {
        self.keys.iter_mut().zip(keys).for_each(|(to, from)| *to = key(from));
        let len = keys.len();
        (&self.keys[..len], &mut self.found[..len], &mut self.lengths[..len])
    }
}
