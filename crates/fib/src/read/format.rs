//! The formats by name.

use std::fmt;
use std::str::FromStr;

/// A format of routes or updates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// Prefix and next hop, one route a line, `#` comments.
    Plain,
    /// CAIDA's prefix, length and origin AS, separated by tabs.
    Pfx2as,
    /// The records of `bgpdump -m`, one on each line: tables and updates.
    Bgpdump,
    /// The output of `ip route`.
    IpRoute,
    /// The output of `ip -json route`.
    IpRouteJson,
    /// The output of FRR's `show ip route json`.
    FrrJson,
    /// CSV or TSV whose first line names its columns: a prefix or a range of addresses, and values.
    Csv,
    /// Validated ROA payloads as rpki-client and Routinator write them in JSON, see [`rpki`](crate::rpki).
    VrpJson,
    /// Validated ROA payloads as rpki-client and Routinator write them in CSV, see [`rpki`](crate::rpki).
    VrpCsv,
    /// A MaxMind DB, whose records' fields are values.
    Mmdb,
    /// The ranges of AWS (`ip-ranges.json`).
    Aws,
    /// The ranges of Google (`cloud.json`, `goog.json`).
    Gcp,
    /// The service tags of Azure (`ServiceTags_Public_….json`).
    Azure,
    /// The ranges of Oracle (`public_ip_ranges.json`).
    Oracle,
    /// The ranges of Cloudflare, as its API answers.
    Cloudflare,
    /// Delegations of a regional registry (`delegated-ripencc-extended-latest`).
    Delegated,
    /// Sets of addresses, as `ipset save` writes them.
    Ipset,
    /// Named sets of addresses, as `nft -j list ruleset` writes them.
    NftSets,
    /// MRT (RFC 6396, 8050): tables and updates.
    Mrt,
    /// `A prefix [next hop]` and `W prefix`, one update on each line, with an optional time before it.
    Updates,
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 20] = [
        Self::Plain,
        Self::Pfx2as,
        Self::Bgpdump,
        Self::IpRoute,
        Self::IpRouteJson,
        Self::FrrJson,
        Self::Csv,
        Self::VrpJson,
        Self::VrpCsv,
        Self::Mmdb,
        Self::Aws,
        Self::Gcp,
        Self::Azure,
        Self::Oracle,
        Self::Cloudflare,
        Self::Delegated,
        Self::Ipset,
        Self::NftSets,
        Self::Mrt,
        Self::Updates,
    ];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Pfx2as => "pfx2as",
            Self::Bgpdump => "bgpdump",
            Self::IpRoute => "ip-route",
            Self::IpRouteJson => "ip-route-json",
            Self::FrrJson => "frr-json",
            Self::Csv => "csv",
            Self::VrpJson => "vrp-json",
            Self::VrpCsv => "vrp-csv",
            Self::Mmdb => "mmdb",
            Self::Aws => "aws",
            Self::Gcp => "gcp",
            Self::Azure => "azure",
            Self::Oracle => "oracle",
            Self::Cloudflare => "cloudflare",
            Self::Delegated => "delegated",
            Self::Ipset => "ipset",
            Self::NftSets => "nft-sets",
            Self::Mrt => "mrt",
            Self::Updates => "updates",
        }
    }

    /// Whether a file of this format can hold a table.
    pub const fn holds_routes(self) -> bool {
        !matches!(self, Self::Updates | Self::VrpJson | Self::VrpCsv)
    }

    /// Whether a file of this format holds validated ROA payloads.
    pub const fn holds_vrps(self) -> bool {
        matches!(self, Self::VrpJson | Self::VrpCsv)
    }

    /// Whether tables with next hops are also written in this format. Lists of prefixes are also written as
    /// [sets](Self::has_sets), and payloads as they are read.
    pub const fn is_written(self) -> bool {
        self.holds_routes()
            && (!self.has_fields() || matches!(self, Self::Csv | Self::Mmdb))
            && !self.has_sets()
    }

    /// Whether routes of this format have fields by name, so that [`Columns`](super::Columns) choose their
    /// values.
    pub const fn has_fields(self) -> bool {
        matches!(self, Self::Csv | Self::Mmdb | Self::Delegated) || self.is_cloud()
    }

    /// Whether a file of this format has sets by name, of which one is the table.
    pub const fn has_sets(self) -> bool {
        matches!(self, Self::Ipset | Self::NftSets)
    }

    /// Whether a cloud provider publishes its ranges in this format.
    pub(super) const fn is_cloud(self) -> bool {
        matches!(self, Self::Aws | Self::Gcp | Self::Azure | Self::Oracle | Self::Cloudflare)
    }

    /// Whether a file of this format can hold updates.
    pub const fn holds_updates(self) -> bool {
        matches!(self, Self::Updates | Self::Bgpdump | Self::Mrt)
    }

    /// Whether a file of this format names the BGP peers of its routes.
    pub const fn names_peers(self) -> bool {
        matches!(self, Self::Bgpdump | Self::Mrt)
    }

    /// The cargo feature that this build lacks for the format. `None` if it lacks none.
    pub const fn missing_feature(self) -> Option<&'static str> {
        match self {
            Self::Mmdb if !cfg!(feature = "mmdb") => Some("mmdb"),
            Self::Mrt if !cfg!(feature = "mrt") => Some("mrt"),
            _ => None,
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        Self::ALL
            .into_iter()
            .find(|format| format.name() == name)
            .ok_or_else(|| UnknownFormat { name: name.into() })
    }
}

/// A name that is no format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown format {name:?}; there are {}", Format::ALL.map(Format::name).join(", "))]
pub struct UnknownFormat {
    name: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_there_and_back() {
        for format in Format::ALL {
            assert_eq!(format.to_string().parse(), Ok(format));
        }
        assert!("xml".parse::<Format>().unwrap_err().to_string().contains("ip-route-json"));
    }

    #[test]
    fn recognises_each_by_content() {
        let cases: [(&[u8], Option<Format>); 56] = [
            (b"{\"nftables\": [{\"metainfo\"", Some(Format::NftSets)),
            (b"create a hash:ip family inet\nadd a 192.0.2.1\n", Some(Format::Ipset)),
            (b"create a thing\n", None),
            (b"{\"syncToken\":\"1\",\"prefixes\":[{\"ip_prefix\":", Some(Format::Aws)),
            (b"{\n \"prefixes\": [{\n  \"ipv6Prefix\": \"2001:", Some(Format::Gcp)),
            (b"{\"changeNumber\":1,\"values\":[{\"properties\":{\"addressPrefixes\"", Some(Format::Azure)),
            (b"{\"regions\":[{\"region\":\"x\",\"cidrs\":[", Some(Format::Oracle)),
            (b"{\"success\":true,\"result\":{\"ipv4_cidrs\":[", Some(Format::Cloudflare)),
            (b"{\"values\":[]}", Some(Format::FrrJson)),
            (b"{\"10.0.0.0/8\":[{\"cidrs\":1", Some(Format::FrrJson)),
            (b"2|ripencc|20260101|1|19830705|20260101|+0100\n", Some(Format::Delegated)),
            (b"# note\n2.3|apnic|20260101|1||20260101|+1000\n", Some(Format::Delegated)),
            (b"3|apnic|20260101|1||20260101|+1000\n", Some(Format::Delegated)),
            (b"2|nowhere|20260101\n", None),
            (b"10.0.0.0/8 192.0.2.1\n", Some(Format::Plain)),
            (b"# a comment\n\n2001:db8::/32 13335", Some(Format::Plain)),
            (b"10.0.0.1 core\n", Some(Format::Plain)),
            (b"1.0.0.0\t24\t13335\n", Some(Format::Pfx2as)),
            (b"TABLE_DUMP2|1687212000|B|147.28.7.1|3130|1.6.165.0/24|3130", Some(Format::Bgpdump)),
            (b"BGP4MP|1687212000|W|147.28.7.1|3130|1.6.165.0/24\n", Some(Format::Bgpdump)),
            (b"default via 192.0.2.1 dev eth0\n", Some(Format::IpRoute)),
            (b"10.0.0.0/8 via 192.0.2.1 dev eth0\n", Some(Format::IpRoute)),
            (b"10.0.0.0/8 \n\tnexthop via 192.0.2.1\n", Some(Format::IpRoute)),
            (b"blackhole 10.9.0.0/16\n", Some(Format::IpRoute)),
            (b"192.0.2.7 dev eth0 scope link\n", Some(Format::IpRoute)),
            (b" \n[{\"dst\":\"default\"}]", Some(Format::IpRouteJson)),
            (b"{\"10.0.0.0/8\":[", Some(Format::FrrJson)),
            (b"A 10.0.0.0/8 192.0.2.1\n", Some(Format::Updates)),
            (b"1687212000.5 W 10.0.0.0/8\n", Some(Format::Updates)),
            (b"\x53\x7e\xd6\x00\x00\x0d\x00\x01\x00\x00\x00\x10", Some(Format::Mrt)),
            (b"\x00\x00\x01\x00\x00\x02", Some(Format::Mmdb)),
            (b"ab\xab\xcd\xefMaxMind.com", Some(Format::Mmdb)),
            (b"1.0.0.0/24\n1.0.4.0/22\n", Some(Format::Plain)),
            (b"1.0.0.0/24", Some(Format::Plain)),
            (b"2001:db8::/32\n 10.0.0.0/8\n", Some(Format::Plain)),
            (b"192.0.2.1\n", Some(Format::Plain)),
            (b"10.0.0.0 255.0.0.0 192.0.2.1\n", Some(Format::Plain)),
            (b"prefix,asn\n10.0.0.0/8,13335\n", Some(Format::Csv)),
            (b"# note\n\nstart_ip\tend_ip\tas\n1.0.0.0\t1.0.0.255\t1\n", Some(Format::Csv)),
            (b"ASN,IP Prefix,Max Length,Trust Anchor\nAS1,10.0.0.0/8,8,ripe\n", Some(Format::VrpCsv)),
            (b"{\n \"metadata\": {},\n \"roas\": [", Some(Format::VrpJson)),
            (b"{\"metadata\":{\"10.0.0.0/8\":[", Some(Format::FrrJson)),
            (b"{\"aspas\": [{\"customer_asid\"", Some(Format::VrpJson)),
            (b"{\"metadata\":{},\"aspas\":[", Some(Format::VrpJson)),
            (b"{\"roas\":[", Some(Format::VrpJson)),
            (b"{\"roas\":{\"10.0.0.0/8\":[", Some(Format::FrrJson)),
            (b"network\n10.0.0.0/8\n", Some(Format::Csv)),
            (b"a,b\n10.0.0.0/8,13335\n", Some(Format::Plain)),
            (b"prefix,asn\n13335,10.0.0.0/8\n", Some(Format::Csv)),
            (b"prefix,asn\n10.0.0.0/8\n", Some(Format::Csv)),
            (b"network\nquick\n", None),
            (b"\"10.0.0.0/8\",\"a b\"\n", Some(Format::Plain)),
            (b"oops\n10.0.0.0/8 192.0.2.1\n", Some(Format::Plain)),
            (b"", Some(Format::Plain)),
            (b"the quick brown fox\n", None),
            (b"\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00", None),
        ];
        for (start, format) in cases {
            assert_eq!(Format::recognise(start), format, "{}", start.escape_ascii());
        }
    }
}
