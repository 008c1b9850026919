//! Writers of tables and updates in the formats that [`read`](crate::read) reads.
//!
//! Every table can be written as [`Format::Plain`] and reads back equal. CSV and MaxMind DB have the fields
//! of labels (`asn=13335,country=US`). The other formats hold less (pfx2as only AS numbers, MRT only
//! addresses, sets only members). A next hop that a format can't hold is an error.

mod csv;
mod json;
#[cfg(feature = "mmdb")]
mod mmdb;
#[cfg(feature = "mrt")]
mod mrt;
mod sets;
mod text;
mod vrps;

use std::io::{self, Write};
use std::net::IpAddr;

use crate::fib::Fib;
use crate::next_hop::{NextHop, NextHops};
use crate::read::any_prefix::AnyPrefix;
use crate::read::text::{TYPES, next_hop};
use crate::read::{FieldType, Format, TimedUpdate};
#[cfg(feature = "mmdb")]
pub use mmdb::MmdbOptions;
pub use sets::SetOptions;
pub use vrps::write_vrps;

/// The reason why a table or update could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// An error of the operating system.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The format can't hold such a next hop, or needs one and there is none.
    #[error("{format} can't hold {prefix} with the next hop {next_hop:?}")]
    NextHop {
        /// The format.
        format: Format,
        /// The prefix.
        prefix: String,
        /// Its next hop.
        next_hop: String,
    },
    /// A next hop that is not in the table of next hops.
    #[error("{prefix} has next hop {next_hop}, which is not among the {known} known")]
    UnknownNextHop {
        /// The prefix.
        prefix: String,
        /// Its next hop.
        next_hop: NextHop,
        /// The number of known next hops.
        known: usize,
    },
    /// The format is not one of tables, or not one of updates.
    #[error("{format} holds no {wanted}")]
    WrongKind {
        /// The format.
        format: Format,
        /// The content to write.
        wanted: &'static str,
    },
    /// A field whose name readers of CSV take for the prefix or a part of it, or can't read.
    #[error("no column of CSV can have the name {name:?}: it would be read as something else")]
    Column {
        /// The name of the field.
        name: String,
    },
    /// A value of another type than its field.
    #[error("{prefix}: the field {field} is {of}, and {value:?} is no such value")]
    FieldType {
        /// The prefix.
        prefix: String,
        /// The name of the field.
        field: String,
        /// The value.
        value: String,
        /// The type of the field.
        of: FieldType,
    },
    /// A field whose type is stated, and that no label has.
    #[error("no field {field}; there are {known}")]
    NoField {
        /// The field.
        field: String,
        /// The fields of the labels, not more than 40.
        known: String,
    },
    /// A field that had values of several types where the table was read.
    #[error(
        "the field {field} has values of several types in the file that was read: state the one to write"
    )]
    SeveralTypes {
        /// The field.
        field: String,
    },
    /// A set has members of one family.
    #[error("{format} holds prefixes of one family, and the table has both: choose one")]
    BothFamilies {
        /// The format.
        format: Format,
    },
    /// A set of ipset has no member of length 0.
    #[error("{format} holds no prefix of length 0")]
    WholeFamily {
        /// The format.
        format: Format,
    },
    /// The text is no name of a set or a table of sets.
    #[error("{name:?} is no name of a set: letters, digits, _, - and . after a letter, not more than 31")]
    SetName {
        /// The text.
        name: String,
    },
    /// The table takes more nodes or bytes than the numbers of a MaxMind DB can tell.
    #[error("the table is too large for a MaxMind DB")]
    TooLarge,
    /// The format is read, not written.
    #[error("{format} is read only: write plain")]
    ReadOnly {
        /// The format.
        format: Format,
    },
    /// The build leaves the format out.
    #[error("{format} needs a build with the feature `{feature}`")]
    LeftOut {
        /// The format.
        format: Format,
        /// The cargo feature that writes it.
        feature: &'static str,
    },
}

/// Writes a table, IPv4 first, in order. `out` gets small pieces: pass a buffered writer.
pub fn write_fib(fib: &Fib, format: Format, out: &mut dyn Write) -> Result<(), WriteError> {
    let mut routes = Routes { fib, format };
    match format {
        Format::Plain => text::plain(&mut routes, out),
        Format::Pfx2as => text::pfx2as(&mut routes, out),
        Format::Bgpdump => text::bgpdump(&mut routes, out),
        Format::IpRoute => text::ip_route(&mut routes, out),
        Format::IpRouteJson => json::ip_route(&mut routes, out),
        Format::FrrJson => json::frr(&mut routes, out),
        #[cfg(feature = "mrt")]
        Format::Mrt => mrt::table(&mut routes, out),
        #[cfg(not(feature = "mrt"))]
        Format::Mrt => Err(WriteError::LeftOut { format, feature: "mrt" }),
        Format::Updates => Err(WriteError::WrongKind { format, wanted: "routes" }),
        #[cfg(feature = "mmdb")]
        Format::Mmdb => mmdb::table(&mut routes, &MmdbOptions::default(), out),
        #[cfg(not(feature = "mmdb"))]
        Format::Mmdb => Err(WriteError::LeftOut { format, feature: "mmdb" }),
        Format::Csv => csv::table(&mut routes, out),
        Format::VrpJson
        | Format::VrpCsv
        | Format::Aws
        | Format::Gcp
        | Format::Azure
        | Format::Oracle
        | Format::Cloudflare
        | Format::Delegated => Err(WriteError::ReadOnly { format }),
        Format::Ipset => sets::ipset(&mut routes, &SetOptions::default(), out),
        Format::NftSets => sets::nft(&mut routes, &SetOptions::default(), out),
    }
}

/// Writes a list of prefixes as a set of [`Format::Ipset`] or [`Format::NftSets`], like [`write_fib`], with
/// these names. A set of nft has the same addresses, without the prefixes that lie within others.
pub fn write_set(
    fib: &Fib,
    format: Format,
    options: &SetOptions,
    out: &mut dyn Write,
) -> Result<(), WriteError> {
    let routes = &mut Routes { fib, format };
    match format {
        Format::Ipset => sets::ipset(routes, options, out),
        Format::NftSets => sets::nft(routes, options, out),
        format => Err(WriteError::WrongKind { format, wanted: "set" }),
    }
}

/// Writes a table as a MaxMind DB, like [`write_fib`], with types of its fields and words about itself.
#[cfg(feature = "mmdb")]
pub fn write_mmdb(fib: &Fib, options: &MmdbOptions, out: &mut dyn Write) -> Result<(), WriteError> {
    mmdb::table(&mut Routes { fib, format: Format::Mmdb }, options, out)
}

/// A table as a MaxMind DB file whose records have so many bits.
#[cfg(all(test, feature = "mmdb"))]
pub(crate) fn mmdb_of(fib: &Fib, bits: Option<u16>) -> Result<Vec<u8>, WriteError> {
    mmdb::encode(&mut Routes { fib, format: Format::Mmdb }, &MmdbOptions::default(), bits)
}

/// Writes updates in order. `out` gets small pieces: pass a buffered writer.
pub fn write_updates<'u>(
    updates: impl IntoIterator<Item = &'u TimedUpdate>,
    next_hops: &NextHops,
    format: Format,
    out: &mut dyn Write,
) -> Result<(), WriteError> {
    let write = match format {
        Format::Updates => text::update,
        Format::Bgpdump => text::bgpdump_update,
        #[cfg(feature = "mrt")]
        Format::Mrt => mrt::update,
        #[cfg(not(feature = "mrt"))]
        Format::Mrt => return Err(WriteError::LeftOut { format, feature: "mrt" }),
        _ => return Err(WriteError::WrongKind { format, wanted: "updates" }),
    };
    updates.into_iter().try_for_each(|update| write(update, next_hops, out))
}

/// The routes of a table with their next hops as text.
struct Routes<'f> {
    fib: &'f Fib,
    format: Format,
}

impl Routes<'_> {
    /// Gives every route to `write`.
    fn each(
        &mut self,
        mut write: impl FnMut(AnyPrefix, &str) -> Result<(), WriteError>,
    ) -> Result<(), WriteError> {
        let v4 = self.fib.v4.iter().map(|(prefix, hop)| (AnyPrefix::V4(prefix), hop));
        let v6 = self.fib.v6.iter().map(|(prefix, hop)| (AnyPrefix::V6(prefix), hop));
        v4.chain(v6).try_for_each(|(prefix, hop)| {
            write(prefix, text_of(hop, prefix, &self.fib.next_hops, self.format)?)
        })
    }
}

fn refuse(format: Format, prefix: AnyPrefix, next_hop: &str) -> WriteError {
    WriteError::NextHop { format, prefix: prefix.to_string(), next_hop: next_hop.to_owned() }
}

/// The text of a next hop. Fails if it can't be read back; texts of a user's own table may be anything.
fn text_of(hop: NextHop, prefix: AnyPrefix, hops: &NextHops, format: Format) -> Result<&str, WriteError> {
    let text = hops.text(hop).ok_or_else(|| WriteError::UnknownNextHop {
        prefix: prefix.to_string(),
        next_hop: hop,
        known: hops.len(),
    })?;
    next_hop(text.as_bytes()).map_err(|_| refuse(format, prefix, text))
}

/// A next hop's text as a kernel's route.
#[derive(Debug, PartialEq, Eq)]
enum Way<'t> {
    /// A word such as `blackhole`.
    Type(&'t str),
    /// One member, or those of a group.
    Members(Vec<Member<'t>>),
}

/// A next hop of the kernel: an address, a device, or both.
#[derive(Debug, PartialEq, Eq)]
struct Member<'t> {
    gateway: Option<IpAddr>,
    device: Option<&'t str>,
}

impl<'t> Way<'t> {
    fn of(text: &'t str) -> Self {
        if TYPES.contains(&text) {
            Self::Type(text)
        } else {
            Self::Members(text.split(',').map(Member::of).collect())
        }
    }

    /// Whether a gateway tells the family of a default route.
    fn has_gateway(&self) -> bool {
        matches!(self, Self::Members(members) if members.iter().any(|member| member.gateway.is_some()))
    }
}

impl<'t> Member<'t> {
    fn of(text: &'t str) -> Self {
        let (address, device) = match text.split_once('%') {
            Some((address, device)) => (address, Some(device)),
            None => (text, None),
        };
        // An address in an unusual spelling would read back in the usual one.
        let gateway = address.parse().ok().filter(|gateway: &IpAddr| gateway.to_string() == address);
        match (gateway, device) {
            (Some(gateway), None) => Self { gateway: Some(gateway), device: None },
            // In other cases a device after an address would be lost on reading back.
            (Some(IpAddr::V6(gateway)), device) if gateway.is_unicast_link_local() => {
                Self { gateway: Some(gateway.into()), device }
            }
            _ => Self { gateway: None, device: Some(text) },
        }
    }
}

/// Whether an address is of the other family than a prefix.
fn is_foreign(address: IpAddr, prefix: AnyPrefix) -> bool {
    address.is_ipv4() != matches!(prefix, AnyPrefix::V4(_))
}

/// A prefix as a destination: `default` if the next hops tell its family.
fn destination(prefix: AnyPrefix, way: &Way<'_>) -> String {
    match prefix {
        AnyPrefix::V4(prefix) if prefix.len() == 0 && way.has_gateway() => "default".to_owned(),
        AnyPrefix::V6(prefix) if prefix.len() == 0 => "default".to_owned(),
        _ => prefix.to_string(),
    }
}

#[cfg(test)]
mod tests;
