//! IPsec ESP tunnels (RFC 4303): packets sealed and opened where they lie, security associations, policies.
//!
//! ```text
//! lines of `ip xfrm` ─► read::Lines ─► Change ─► Database ─┬─ State: associations, policies
//!                                                          └─ Reader, one a thread: rules ─► number of a policy
//! packet out   policy ─► Outbound::Protect(Sa) ─► Sealing::begin, take, write_next ─► seal, several at once
//! packet in    Arrival::read ─► Beginning::begin ─► open, several at once ─► policy ─► Inbound
//! ```
//!
//! The suites are AES-GCM-128 and -256 (RFC 4106), AES-128-CTR with HMAC-SHA1-96 (RFC 3686, RFC 2404), and
//! NULL with HMAC-SHA1-96 (RFC 2410) for tests: [`Keys`]. Tunnels are IPv4 or IPv6, with either inside, bare
//! or in UDP (RFC 3948). Sequence numbers have 32 or 64 bits, and a window of up to [`MOST_WINDOW`] packets
//! refuses replays. ICMP errors tell the size of a path. Services and congestion are copied outside, and
//! congestion comes back inside (RFC 6040, normal mode). Each packet that does not go through has a
//! [`Fault`], and nothing of its text gets out.
//!
//! Keys are overwritten when they are dropped, and no text shows them. ring does AES-GCM (with the feature
//! `aws-lc` aws-lc-rs, which is faster with AVX-512), RustCrypto's `aes` and `ctr` do AES-CTR; HMAC-SHA1 is
//! done here, because it is as fast as AES-CTR only if it works on several packets at once. [`Fragments`]
//! puts ESP packets together that came in fragments. Not here are transport mode, IKE, and packets cut for a
//! path: who sends them does that.
//!
//! With the feature `gpu` an NVIDIA GPU encrypts, decrypts, makes tags and checks them, in chunks: the module
//! `gpu`.
//!
//! `apps::Esp` of `wirespeed-router` does all of this for the frames of a router.
//!
//! # A packet through a tunnel
//!
//! ```
//! use wirespeed_esp::read::Lines;
//! use wirespeed_esp::{Arrival, Database, Opening, Scratch, Sealing, open, seal};
//!
//! let lines = Lines::read(
//!     "ip xfrm state add src 192.0.2.1 dst 192.0.2.2 proto esp spi 0x100 mode tunnel \
//!      aead 'rfc4106(gcm(aes))' 0x00112233445566778899aabbccddeeff01020304 128",
//! );
//! assert!(lines.skipped.is_empty());
//! let mut database = Database::new()?;
//! database.apply(lines.changes)?;
//! let state = database.state();
//!
//! let inner = *b"\x45\0\0\x1c\0\x01\x40\0\x40\x11\x26\xcb\x0a\x01\0\x01\x0a\x02\0\x02\x03\xe8\x07\xd0\0\x08\0\0";
//! let sa = state.sa("192.0.2.2".parse()?, 0x100).ok_or("none")?;
//! let sealing = Sealing::begin(sa, &inner).map_err(|fault| fault.name())?;
//! let mut packets = vec![vec![0; sealing.len()]];
//! packets[0][sealing.head()..][..inner.len()].copy_from_slice(&inner);
//! let unsealed = sealing.write(0, &mut packets[0]).map_err(|fault| fault.name())?;
//! seal(&[unsealed], &mut packets[..], &mut Scratch::default());
//!
//! // At the other end, which has the same association.
//! let arrival = Arrival::read(&packets[0], |address| state.is_end(address), |port| state.is_port(port));
//! let Arrival::Esp(envelope) = arrival else { return Err("no ESP".into()) };
//! let sa = state.sa(envelope.dst, envelope.spi).ok_or("none")?;
//! let opening = Opening::begin(sa, envelope, 0).map_err(|fault| fault.name())?;
//! let mut outcomes = Vec::new();
//! open(&[opening], &mut packets[..], &mut Scratch::default(), &mut outcomes);
//! let opened = outcomes[0].map_err(|fault| fault.name())?;
//! // The tunnel took a hop.
//! assert_eq!(packets[0][opened.start..][..opened.len][12..], inner[12..]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod crypto;
mod database;
mod error;
mod fault;
mod fragments;
#[cfg(feature = "gpu")]
pub mod gpu;
mod ip;
mod keepalives;
mod mapping;
mod narrow;
mod open;
mod packets;
mod path;
mod policy;
pub mod read;
mod reader;
#[cfg(test)]
mod recorded_tests;
mod sa;
mod seal;
mod secret;
mod selector;
mod state;
mod window;

pub use crypto::Keys;
pub use database::{Change, Database, Replaced};
pub use error::Error;
pub use fault::{Fault, Faults};
pub use fragments::Fragments;
pub use ip::Ports;
pub use open::{Arrival, Beginning, Envelope, Opened, Opening, open};
pub use packets::Packets;
pub use policy::{Action, Direction, Policy, Template};
pub use reader::{FamilyReaders, Reader};
pub use sa::{Sa, SaConfig, Taken};
pub use seal::{Scratch, Sealing, Unsealed, seal};
pub use secret::Secret;
pub use selector::Selector;
pub use state::{Inbound, Outbound, State};
pub use window::MOST_WINDOW;
