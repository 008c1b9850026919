//! [`Role`]: the columns that flow and log records usually have, found by their names; and the names of new
//! ones.

/// The content of a column, as lookups need it.
///
/// ```
/// use wirespeed_records::Role;
///
/// let names = ["ts", "SrcAddr", "dstAddr"].map(str::to_owned);
/// assert_eq!(Role::Source.find(&names), Ok(Some("SrcAddr")));
/// assert_eq!(Role::Name.find(&names), Ok(None));
/// let names = ["src", "src_ip"].map(str::to_owned);
/// assert_eq!(Role::Source.find(&names), Err(vec!["src", "src_ip"]));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Role {
    /// A source address.
    Source,
    /// A destination address.
    Destination,
    /// An address of a record that has neither source nor destination.
    Address,
    /// A name, a domain or a URL.
    Name,
    /// The number or the name of an IP protocol.
    Protocol,
    /// A source port.
    SourcePort,
    /// A destination port.
    DestinationPort,
    /// The type of an ICMP message.
    IcmpType,
    /// The code of an ICMP message.
    IcmpCode,
}

impl Role {
    /// The usual names of such columns, without regard to case: those of Zeek, Suricata, nfdump, NetFlow and
    /// IPFIX collectors, clouds, ECS, and what people choose. Names that only one family of addresses has are
    /// none.
    #[must_use]
    pub const fn usual(self) -> &'static [&'static str] {
        match self {
            Self::Source => &[
                "id.orig_h",
                "sa",
                "srcaddr",
                "src_ip",
                "src",
                "src_addr",
                "srcip",
                "source_ip",
                "sourceip",
                "source.ip",
                "source_address",
                "saddr",
                "ip_src",
            ],
            Self::Destination => &[
                "id.resp_h",
                "da",
                "dstaddr",
                "dst_ip",
                "dst",
                "dst_addr",
                "dstip",
                "dest_ip",
                "dest",
                "destination_ip",
                "destinationip",
                "destip",
                "destination.ip",
                "destination_address",
                "daddr",
                "ip_dst",
                "dest_addr",
            ],
            Self::Address => {
                &["ip", "address", "ip_address", "client_ip", "clientip", "remote_addr", "remote_ip"]
            }
            Self::Name => &[
                "query",
                "qname",
                "server_name",
                "host",
                "hostname",
                "domain",
                "dns.question.name",
                "dns.rrname",
            ],
            Self::Protocol => &[
                "proto",
                "protocol",
                "pr",
                "prot",
                "ip_proto",
                "ip_protocol",
                "protocolidentifier",
                "network.transport",
            ],
            Self::SourcePort => &[
                "id.orig_p",
                "sp",
                "srcport",
                "src_port",
                "sport",
                "source_port",
                "sourceport",
                "source.port",
                "sourcetransportport",
                "l4_src_port",
                "spt",
            ],
            Self::DestinationPort => &[
                "id.resp_p",
                "dp",
                "dstport",
                "dst_port",
                "dport",
                "dest_port",
                "destport",
                "destination_port",
                "destinationport",
                "destination.port",
                "destinationtransportport",
                "l4_dst_port",
                "dpt",
            ],
            Self::IcmpType => &["icmp_type", "icmptype", "icmp.type"],
            Self::IcmpCode => &["icmp_code", "icmpcode", "icmp.code"],
        }
    }

    /// The only column with a usual name, or `None` if there is none. Fails with their names if there are
    /// several.
    pub fn find(self, names: &[String]) -> Result<Option<&str>, Vec<&str>> {
        let is_usual = |name: &&str| self.usual().iter().any(|usual| usual.eq_ignore_ascii_case(name));
        let found: Vec<&str> = names.iter().map(String::as_str).filter(is_usual).collect();
        match &*found {
            [] => Ok(None),
            [one] => Ok(Some(one)),
            _ => Err(found),
        }
    }
}

/// The name of a new column: of the column that is looked up, the table, and the field or part of the answer.
/// None is the column where several are looked up together.
///
/// ```
/// use wirespeed_records::added_name;
///
/// assert_eq!(added_name(Some("src"), "asn", None), "src_asn");
/// assert_eq!(
///     added_name(Some("id.orig_h"), "geo", Some("country.iso_code")),
///     "id_orig_h_geo_country_iso_code"
/// );
/// ```
#[must_use]
pub fn added_name(column: Option<&str>, table: &str, part: Option<&str>) -> String {
    let parts: Vec<_> = column.into_iter().chain([table]).chain(part).collect();
    parts.join("_").replace('.', "_")
}
