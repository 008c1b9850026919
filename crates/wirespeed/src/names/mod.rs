//! Hierarchical names and their longest prefix match: NDN names, domains, URLs.
//!
//! ```text
//! names, lists, images ──► builder ──► NameTable      one writer: apply, insert, remove, save
//!                                          └─ reader() ──► NameReader      shared by threads: lookup, lookup_batch, match_batch, enter
//! values ──► Labels::intern ──► index ─ ─ in the table ─ ─ ► index ──► Labels::get ──► &value
//! ```
//!
//! A [`Name`] is a sequence of components; `/com/ab` is no prefix of `/com/abc`. Results are indexes,
//! [`NextHop`](crate::NextHop), as with addresses. [`Labels`](crate::Labels) map them to values. [`tlv`]
//! makes names from NDN packets. [`read`] makes names from domains, URLs, NDN URIs, and files of these.
//!
//! # An NDN forwarder's FIB
//!
//! The forwarder looks up Interests and finds faces, while routes change. `examples/ndn_forwarder.rs` is a
//! complete program.
//!
//! ```
//! use wirespeed::names::tlv::{Packet, WireNameBuf};
//! use wirespeed::prelude::*;
//!
//! // The faces; in a forwarder, sockets.
//! let faces = Labels::new();
//! let route = |uri: &str| -> Result<NameBuf, Box<dyn std::error::Error>> {
//!     Ok(WireNameBuf::from_uri(uri.as_bytes())?.as_wire().to_name()?)
//! };
//! let mut fib = NameTable::builder()
//!     .labelled_names(&faces, [(route("ndn:/com")?, "udp4://192.0.2.1"), (route("ndn:/com/parc")?, "udp4://192.0.2.2")])
//!     .build()?;
//! let reader = fib.reader(); // one a forwarding thread
//!
//! // A burst of packets, as they came off the wire.
//! let packets: [&[u8]; 2] = [
//!     b"\x05\x16\x07\x0e\x08\x03com\x08\x04parc\x36\x01\x03\x0a\x04\x01\x02\x03\x04", // /com/parc/v=3
//!     b"\x05\x11\x07\x09\x08\x07example\x0a\x04\x01\x02\x03\x05",                     // /example
//! ];
//! let (mut text, mut names) = (Vec::new(), NameBatch::new());
//! for packet in packets {
//!     let interest = Packet::parse(packet)?;
//!     names.push(interest.name.write_name(&mut text)?)?;
//! }
//! let mut out = [NextHop::NONE; 2];
//! let known = faces.enter(); // before the lookup: then what it finds resolves
//! reader.lookup_batch(&names, &mut out);
//! assert_eq!(out.map(|face| known.get(face).copied()), [Some("udp4://192.0.2.2"), None]);
//!
//! // A producer registers its prefix; readers see it from the next batch on.
//! let face = faces.intern("udp4://192.0.2.3")?;
//! fib.apply(&[NameUpdate::insert(route("ndn:/example")?, face), NameUpdate::remove(route("ndn:/com")?)])?;
//! reader.lookup_batch(&names, &mut out);
//! assert_eq!(faces.get(out[1]).as_deref(), Some(&"udp4://192.0.2.3"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # A filter of domains and URLs
//!
//! Lists are used without changes: `*.example.com` or `example.com` for a domain and all names beneath it,
//! `example.com/ads` for a path and all paths beneath it. `examples/url_filter.rs` is a complete program.
//!
//! ```
//! use wirespeed::names::read::{Former, NameFormat};
//! use wirespeed::prelude::*;
//!
//! # let dir = tempfile::tempdir()?;
//! # let (ads, allowed) = (dir.path().join("ads.txt"), dir.path().join("allowed.txt"));
//! std::fs::write(&ads, "*.tracker.example\nnews.example/ads\n")?;
//! std::fs::write(&allowed, "news.example/ads/about.html\n")?;
//!
//! let verdicts = Labels::new();
//! let table = NameTable::builder()
//!     .list(&ads, &verdicts, "ad")
//!     .list(&allowed, &verdicts, "allowed") // the longest prefix wins, so exceptions are entries
//!     .build()?;
//!
//! let urls = [
//!     "https://pixel.tracker.example/p.gif?id=1",
//!     "http://NEWS.example/ads/banner",
//!     "http://news.example/ads/about.html",
//!     "http://news.example/adsl",
//! ];
//! let (mut former, mut names) = (Former::default(), NameBatch::new());
//! for url in urls {
//!     names.push(former.form(url.as_bytes(), NameFormat::Urls)?)?;
//! }
//! let mut found = [NextHop::NONE; 4];
//! let known = verdicts.enter();
//! table.reader().lookup_batch(&names, &mut found);
//! let verdict = found.map(|verdict| known.get(verdict).copied());
//! assert_eq!(verdict, [Some("ad"), Some("ad"), Some("allowed"), None]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Lists that tell names alone from names beneath, or have exceptions (hosts files, Adblock filter lists,
//! dnsmasq, response policy zones, the Public Suffix List), are a [`NameList`].
//!
//! # Images
//!
//! A compiled table can be saved as an image, with its names and labels. A service that opens an image starts
//! at once.
//!
//! ```
//! use wirespeed::prelude::*;
//!
//! # let dir = tempfile::tempdir()?;
//! # let image = dir.path().join("names.img");
//! let labels = Labels::new();
//! let name = NameBuf::from_domain(b"parc.com")?;
//! NameTable::builder().labelled_names(&labels, [(&name, 64496)]).build()?.save_labelled(&image, &labels)?;
//!
//! let (reader, labels) = (NameReader::open(&image)?, Labels::<u32>::open(&image)?); // looks up alone
//! assert_eq!(labels.get(reader.lookup(Name::new("/com/parc/www")?)).as_deref(), Some(&64496));
//! let mut table = NameTable::open(&image)?; // takes updates too
//! table.remove(&name)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

//!
//! # A file that changes
//!
//! [`load`](NameTable::load) replaces all names in one step, from a file or an image;
//! [`replace`](NameTable::replace) does it from memory. A [`Reloader`](crate::Reloader) calls `load` when the
//! file has changed.
//!
//! ```
//! use wirespeed::Reloader;
//! use wirespeed::prelude::*;
//!
//! # let dir = tempfile::tempdir()?;
//! # let path = dir.path().join("blocked.txt");
//! std::fs::write(&path, "tracker.example ads\n")?;
//! let labels = Labels::<String>::new();
//! let (mut table, mut reloader) = (NameTable::builder().build()?, Reloader::new(&path));
//! let reader = table.reader();
//! reloader.if_changed(|path| table.load(path, &labels))?; // from a timer
//! let found = reader.lookup(NameBuf::from_domain(b"pixel.tracker.example")?);
//! assert_eq!(labels.get(found).as_deref().map(String::as_str), Some("ads"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # On a GPU
//!
//! One call of the builder brings names to GPUs, as with addresses. Batches go to the CPU or to a GPU.
//! Updates reach both. If a GPU fails, the CPU answers.
//!
//! ```
//! use wirespeed::prelude::*;
//!
//! let mut table = NameTable::builder()
//!     .names([(NameBuf::new("/com/parc")?, NextHop(1)), (NameBuf::new("/com/parc/www")?, NextHop(1))])
//!     .aggregate(true) // only the names that results need
//!     .device(Device::Auto)
//!     .build()?;
//! let reader = table.reader();
//! let requests: NameBatch = (0..10_000).map(|_| Name::new("/com/parc/www/a").unwrap()).collect();
//! let mut found = vec![NextHop::NONE; requests.len()];
//! reader.lookup_batch(&requests, &mut found);
//! assert!(found.iter().all(|&next_hop| next_hop == NextHop(1)));
//!
//! table.insert(Name::new("/com/parc/www")?, NextHop(2))?; // on the GPUs too
//! reader.lookup_batch(&requests, &mut found);
//! assert_eq!(found[0], NextHop(2));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod any;
mod builder;
mod entry_list;
pub mod image_file;
mod list;
mod reader;
mod replace;
mod table;

pub use any::{AnyNameGuard, AnyNameReader, AnyNames};
pub use builder::NameBuilder;
pub use list::{NameList, NameListBuilder};
pub use reader::{NameGuard, NameReader};
pub use table::NameTable;

pub use crate::batches::Matches;
pub use crate::engine::served::NAME_BYTES;

/// A queue of batches of names, several under way at once.
pub type NamePipeline<'k> = crate::Pipeline<'k, NameDomain>;

/// Names with their results: the model of a table, as [`Rib`](crate::Rib) is for routes. Insert, remove,
/// iterate, look up. It is not compiled, and readers don't use it.
pub use wirespeed_namelookup::NameTable as NameRib;
pub use wirespeed_namelookup::{
    BuildError, Components, Engine, Lookup, Match, Name, NameBatch, NameBuf, NameDomain, NameError,
    NameUpdate, Names, merge, read, tlv, write,
};

#[cfg(feature = "synth")]
pub use wirespeed_namelookup::generate;

/// The parts of lists of domains: scopes, verdicts, answers.
pub use wirespeed_namelookup::list as lists;
