//! [`ws_table`]: a live table of addresses of both families.
#![allow(unsafe_code)]

use std::ffi::c_char;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::Path;

use wirespeed::IpBuilder;
use wirespeed::content::Content;
use wirespeed::fib::merge::{MergeSource, read_sources};
use wirespeed::fib::read::{Source, is_built_in, read_fib};
use wirespeed::prelude::*;

use crate::boundary::{Failure, free, given, handle, input, status, text, ws_status};
use crate::labels::{Text, Texts, index};
use crate::live::{Held, Live};
use crate::options::{Options, is_image, with, ws_options};
use crate::reader::ws_reader;

/// Table of IPv4 and IPv6 routes, live: it changes while its readers look up.
pub struct ws_table(Live<Routes>);

struct Routes {
    table: IpTable,
    /// The options for reading files of routes.
    options: Options<'static>,
}

impl Held for Routes {
    type Live = Self;

    fn live(&mut self) -> Result<&mut Self, Failure> {
        Ok(self)
    }

    fn attach_labels(live: &mut Self, labels: &Labels<Text>) {
        live.table.attach_labels(labels);
    }

    fn load(live: &mut Self, path: &Path, labels: &Labels<Text>) -> Result<(), Failure> {
        if let Ok(content @ Content::Routes(_)) = Content::of_file(path) {
            live.options.check(path, content)?;
        }
        Ok(live.table.load_as(path, labels, &live.options.reading()?).map(drop)?)
    }

    fn save(&self, path: &Path, labels: &Labels<Text>) -> Result<(), wirespeed::Error> {
        self.table.save_labelled(path, labels)
    }

    fn len(&self) -> usize {
        self.table.len()
    }
}

/// Route, or a change of one.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ws_route {
    /// Address of the prefix in network order: 16 bytes for IPv6, the first 4 for IPv4.
    pub address: [u8; 16],
    /// Next hop, from 1. A change to 0 removes the route.
    pub next_hop: u32,
    /// 4 or 6.
    pub family: u8,
    /// Length of the prefix in bits.
    pub depth: u8,
}

/// Makes a table without routes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ws_table_new(options: *const ws_options) -> *mut ws_table {
    // SAFETY: the caller keeps the rules of the header.
    handle(|| build(&[], unsafe { Options::of(options) }?))
}

/// Makes a table of count routes. Of several routes of one prefix the last one counts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ws_table_from_routes(
    routes: *const ws_route,
    count: usize,
    options: *const ws_options,
) -> *mut ws_table {
    // SAFETY: the caller keeps the rules of the header.
    handle(|| build(unsafe { input(routes, count, "routes") }?, unsafe { Options::of(options) }?))
}

/// Makes a table of a file: an image that ws_table_save or lookupctl build wrote, or routes in any format
/// that lookupctl reads, recognised by content. The next hops of routes are labels, numbered from 1 in the
/// order in which they appear: the text "7" may have the number 1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ws_table_open(path: *const c_char, options: *const ws_options) -> *mut ws_table {
    // SAFETY: the caller keeps the rules of the header.
    handle(|| open(Path::new(unsafe { text(path, "path") }?), unsafe { Options::of(options) }?))
}

/// Makes a table of count sources that are merged. A source is a text NAME=FILE or NAME:COLUMN,COLUMN=FILE: a
/// file of routes, the field of its values if they have no names or are a list, and the columns to take. The
/// labels are records such as asn=64496,country=DE. Each field of an address comes from the longest prefix
/// that has it, of all sources, and where several have it at one prefix, from the first of them. See
/// ws_reader_label_field.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ws_table_open_merged(
    sources: *const *const c_char,
    count: usize,
    options: *const ws_options,
) -> *mut ws_table {
    handle(|| {
        // SAFETY: the caller keeps the rules of the header, also for texts in arrays.
        let (texts, options) = unsafe { (input(sources, count, "sources")?, Options::of(options)?) };
        let options = options.only_for("addresses")?;
        let sources = texts.iter().enumerate().map(|(at, &source)| {
            // SAFETY: as above.
            let source = unsafe { text(source, "source") }.map_err(|failure| failure.at(at))?;
            let parsed = source.parse::<MergeSource>();
            parsed.map_err(|why| Failure::argument(format!("{source:?}: {why}")).at(at))
        });
        let sources = sources.collect::<Result<Vec<_>, Failure>>()?;
        if sources.is_empty() {
            return Err(Failure::argument("a merged table needs a source"));
        }
        let (merged, reports) =
            read_sources(&sources, &options.reading()?).map_err(|error| Failure::state(error.to_string()))?;
        let contents: Vec<_> = reports.iter().map(|report| Content::Routes(report.format)).collect();
        if !contents.iter().any(|&content| options.how.check(content).is_ok()) {
            options.check(Path::new(&sources[0].file), contents[0])?;
        }
        let labels = Labels::new();
        let table = with_settings(IpTable::builder().fib(merged.fib, &labels), &options).build()?;
        Ok(of(table, Texts::of(labels), options))
    })
}

/// Frees a table, or does nothing with NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ws_table_free(table: *mut ws_table) {
    // SAFETY: the caller keeps the rules of the header.
    unsafe { free(table) }
}

/// Writes the number of routes to count.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ws_table_len(table: *const ws_table, count: *mut usize) -> ws_status {
    // SAFETY: the caller keeps the rules of the header.
    status(|| unsafe { given(table, "table")?.0.len(count) })
}

/// Inserts a route of IPv4, or replaces that of an equal prefix, as rte_fib_add does. The address is in host
/// order, the next hop is from 1 to UINT32_MAX - 1. In a table with labels it is the number of a label.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ws_table_insert4(
    table: *const ws_table,
    address: u32,
    depth: u8,
    next_hop: u64,
) -> ws_status {
    // SAFETY: the caller keeps the rules of the header.
    status(|| insert(unsafe { given(table, "table") }?, v4(address, depth)?, next_hop))
}

/// Inserts a route of IPv6, or replaces that of an equal prefix: see ws_table_insert4. The address has 16
/// bytes in network order.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ws_table_insert6(
    table: *const ws_table,
    address: *const u8,
    depth: u8,
    next_hop: u64,
) -> ws_status {
    // SAFETY: the caller keeps the rules of the header.
    status(|| insert(unsafe { given(table, "table") }?, unsafe { v6(address, depth) }?, next_hop))
}

/// Inserts a route that is written as text, such as "10.0.0.0/8" or "2001:db8::/32", with a label. Fails if
/// the table has routes with numbers of the caller's own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ws_table_insert_label(
    table: *const ws_table,
    prefix: *const c_char,
    label: *const c_char,
) -> ws_status {
    status(|| {
        // SAFETY: the caller keeps the rules of the header.
        let (table, prefix, label) =
            unsafe { (given(table, "table")?, text(prefix, "prefix")?, text(label, "label")?) };
        let prefix: IpNet =
            prefix.parse().map_err(|_| Failure::argument(format!("{prefix:?} is not a prefix")))?;
        table.0.change_to(label, |routes, next_hop| Ok(routes.table.insert(prefix, next_hop).map(drop)?))
    })
}

/// Removes a route of IPv4. It is no error if there is none. The address is in host order.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ws_table_remove4(table: *const ws_table, address: u32, depth: u8) -> ws_status {
    // SAFETY: the caller keeps the rules of the header.
    status(|| remove(unsafe { given(table, "table") }?, v4(address, depth)?))
}

/// Removes a route of IPv6. It is no error if there is none. The address has 16 bytes in network order.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ws_table_remove6(
    table: *const ws_table,
    address: *const u8,
    depth: u8,
) -> ws_status {
    // SAFETY: the caller keeps the rules of the header.
    status(|| remove(unsafe { given(table, "table") }?, unsafe { v6(address, depth) }?))
}

/// Makes count changes in order: all or, if it fails, none. Readers see all changes of a family at once. One
/// call with many changes costs much less than a call for each.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ws_table_apply(
    table: *const ws_table,
    changes: *const ws_route,
    count: usize,
) -> ws_status {
    status(|| {
        // SAFETY: the caller keeps the rules of the header.
        let (table, changes) = unsafe { (given(table, "table")?, input(changes, count, "changes")?) };
        let next_hops: Vec<NextHop> = changes.iter().map(|change| NextHop(change.next_hop)).collect();
        let updates = changes.iter().enumerate().map(|(at, change)| change.update(at));
        let updates = updates.collect::<Result<Vec<_>, _>>()?;
        table.0.change(&next_hops, |routes| routes.table.apply(&updates))
    })
}

/// Replaces all routes by those of a file, as ws_table_open reads it, in one step for the readers of a
/// family. Fails if the table has routes with numbers of the caller's own. Labels keep their numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ws_table_load(table: *const ws_table, path: *const c_char) -> ws_status {
    // SAFETY: the caller keeps the rules of the header.
    status(|| unsafe { given(table, "table")?.0.load(path) })
}

/// Saves the table as an image file, with its routes and labels. An existing file is replaced as a whole or
/// not at all.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ws_table_save(table: *const ws_table, path: *const c_char) -> ws_status {
    // SAFETY: the caller keeps the rules of the header.
    status(|| unsafe { given(table, "table")?.0.save(path) })
}

/// Lets labels end that no route leads to: their numbers may be given to other labels, and their texts are
/// freed. A program whose labels change without end calls it now and then, at a moment when no thread holds a
/// number or a text of this table or its readers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ws_table_forget_labels(table: *const ws_table) -> ws_status {
    // SAFETY: the caller keeps the rules of the header.
    status(|| unsafe { given(table, "table")?.0.forget_labels() })
}

/// Makes a reader of a table. It sees all later changes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ws_table_reader(table: *const ws_table) -> *mut ws_reader {
    handle(|| {
        // SAFETY: the caller keeps the rules of the header.
        let table = unsafe { given(table, "table") }?;
        let state = table.0.lock()?;
        Ok(ws_reader::new(state.table.table.reader(), state.texts.labels().clone()))
    })
}

fn build(routes: &[ws_route], options: Options<'_>) -> Result<ws_table, Failure> {
    let options = options.only_for("addresses")?;
    let routes =
        routes.iter().enumerate().map(|(at, route)| Ok((route.prefix(at)?, NextHop(route.next_hop))));
    let routes = routes.collect::<Result<Vec<_>, Failure>>()?;
    let table = with_settings(IpTable::builder().routes(routes), &options).build()?;
    Ok(of(table, Texts::new(), options))
}

fn open(path: &Path, options: Options<'_>) -> Result<ws_table, Failure> {
    let options = options.only_for("addresses")?;
    let (table, labels) = if !is_built_in(path) && is_image(path)? {
        options.none_for_image(path)?;
        let (mut table, labels) = (IpTable::open(path)?, Labels::open(path)?);
        table.attach_labels(&labels);
        (table, labels)
    } else {
        let labels = Labels::new();
        let read = read_fib(&Source::Path(path.to_owned()), &options.reading()?);
        let (fib, report) = read.map_err(wirespeed::Error::from)?;
        options.check(path, Content::Routes(report.format))?;
        (with_settings(IpTable::builder().fib(fib, &labels), &options).build()?, labels)
    };
    Ok(of(table, Texts::of(labels), options))
}

fn of(table: IpTable, texts: Texts, options: Options<'_>) -> ws_table {
    ws_table(Live::of(Routes { table, options: options.for_later() }, texts))
}

fn with_settings(builder: IpBuilder, options: &Options<'_>) -> IpBuilder {
    let builder = with(builder, options.engine, IpBuilder::engine);
    let builder = with(builder, options.memory_cap, IpBuilder::memory_cap);
    if options.prefix_lookups { builder.prefix_lookups() } else { builder }
}

fn insert(table: &ws_table, prefix: IpNet, next_hop: u64) -> Result<(), Failure> {
    let next_hop = index(next_hop, "the next hop")?;
    if !next_hop.is_some() {
        return Err(Failure::argument(format!("the route {prefix} has no next hop: they start at 1")));
    }
    table.0.change(&[next_hop], |routes| routes.table.insert(prefix, next_hop))
}

fn remove(table: &ws_table, prefix: IpNet) -> Result<(), Failure> {
    table.0.change(&[], |routes| routes.table.remove(prefix))
}

impl ws_route {
    fn prefix(&self, at: usize) -> Result<IpNet, Failure> {
        let [a, b, c, d, ..] = self.address;
        let prefix = match self.family {
            4 => v4(u32::from_be_bytes([a, b, c, d]), self.depth),
            6 => net(Ipv6Addr::from(self.address), self.depth),
            other => Err(Failure::argument(format!("family {other} is not 4 or 6"))),
        };
        prefix.map_err(|failure| failure.at(at))
    }

    fn update(&self, at: usize) -> Result<AnyUpdate, Failure> {
        let (prefix, next_hop) = (self.prefix(at)?, NextHop(self.next_hop));
        let update = match next_hop {
            NextHop::NONE => AnyUpdate::withdraw(prefix),
            next_hop => AnyUpdate::announce(prefix, next_hop),
        };
        update.map_err(|error| Failure::from(wirespeed::Error::from(error)).at(at))
    }
}

/// An IPv4 prefix of an address in host order.
fn v4(address: u32, depth: u8) -> Result<IpNet, Failure> {
    net(Ipv4Addr::from(address), depth)
}

/// An IPv6 prefix.
///
/// # Safety
///
/// The pointer is NULL or leads to 16 bytes.
unsafe fn v6(address: *const u8, depth: u8) -> Result<IpNet, Failure> {
    // SAFETY: the caller vouches for the bytes.
    let octets = *unsafe { given(address.cast::<[u8; 16]>(), "address") }?;
    net(Ipv6Addr::from(octets), depth)
}

fn net(address: impl Into<IpAddr>, depth: u8) -> Result<IpNet, Failure> {
    IpNet::new(address.into(), depth)
        .map_err(|_| Failure::argument(format!("depth {depth} is longer than an address")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The label of an address.
    fn label(table: &ws_table, address: &str) -> Option<String> {
        let state = table.0.lock().unwrap();
        let found = state.table.table.reader().lookup(address.parse::<IpAddr>().unwrap());
        state.texts.labels().get(found).map(|label| label.to_string())
    }

    #[test]
    fn labels_of_bgp_are_next_hops_or_origins_and_stay_so_when_loaded_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("dump");
        let dump = |origin: u32| {
            format!("TABLE_DUMP2|1|B|192.0.2.7|3|10.0.0.0/8|3 {origin}|IGP|192.0.2.1|0|0||NAG||\n")
        };
        for (origins, [first, second]) in [(false, ["192.0.2.1"; 2]), (true, ["1", "2"])] {
            std::fs::write(&path, dump(1)).unwrap();
            let mut options = Options::default();
            options.how.routes.origins = origins;
            let table = open(&path, options).unwrap();
            assert_eq!(label(&table, "10.1.2.3").as_deref(), Some(first));
            std::fs::write(&path, dump(2)).unwrap();
            let name = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
            // SAFETY: a table, and a text that ends with a zero.
            assert_eq!(unsafe { ws_table_load(&raw const table, name.as_ptr()) }, ws_status::Ok);
            assert_eq!(label(&table, "10.1.2.3").as_deref(), Some(second));
        }
    }

    #[test]
    fn a_part_of_a_file_is_read_and_loaded_and_options_without_use_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sets");
        let sets =
            |net: &str| format!("create a hash:net\nadd a 192.0.2.0/24\ncreate b hash:net\nadd b {net}\n");
        let mut options = Options::default();
        options.how.set("set", "b").unwrap();
        std::fs::write(&path, sets("10.0.0.0/8")).unwrap();
        let table = open(&path, options.clone()).unwrap();
        assert_eq!(label(&table, "10.1.2.3").as_deref(), Some("member"));
        std::fs::write(&path, sets("10.2.0.0/16")).unwrap();
        let name = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
        // SAFETY: a table, and a text that ends with a zero.
        let load = || unsafe { ws_table_load(&raw const table, name.as_ptr()) };
        assert_eq!(load(), ws_status::Ok);
        assert_eq!([label(&table, "10.1.2.3"), label(&table, "192.0.2.1")], [None, None]);
        std::fs::write(&path, "10.0.0.0/8 core\n").unwrap();
        assert_eq!(load(), ws_status::Failed);
        let said = format!("{:?}", open(&path, options).err().unwrap());
        assert!(said.contains("sets: options: set is for sets of ipset and nft"), "{said}");
    }

    #[test]
    fn a_file_of_zstd_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let (path, text) = (dir.path().join("routes.zst"), b"10.0.0.0/8 core\n");
        let len = u8::try_from(text.len()).unwrap();
        // A frame of one block, which is stored.
        let frame = [&[0x28, 0xb5, 0x2f, 0xfd, 0x20, len, len << 3 | 1, 0, 0][..], text].concat();
        std::fs::write(&path, frame).unwrap();
        let table = open(&path, Options::default()).unwrap();
        assert_eq!(label(&table, "10.1.2.3").as_deref(), Some("core"));
    }
}
