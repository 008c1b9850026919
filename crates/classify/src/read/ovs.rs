//! Flows as `ovs-ofctl dump-flows` writes them, with statistics before them, and without.
//!
//! ```text
//!  cookie=0x0, duration=3.1s, table=0, n_packets=0, n_bytes=0, priority=100,tcp,in_port=1,nw_dst=10.0.0.0/8 actions=output:2
//! ```

use wirespeed_input::Input;

use super::RuleFile;
use super::report::{Fault, ReadError, Reading};
use crate::rule::RuleError;
use crate::text::{Parts, RuleTextError};
use crate::tuple::{Tuple, TupleError, VLAN_NONE};

/// What Open vSwitch takes where none is given (`OFP_DEFAULT_PRIORITY`).
const PRIORITY: u32 = 0x8000;

/// What says nothing about packets.
const STATISTICS: [&str; 14] = [
    "cookie",
    "duration",
    "n_packets",
    "n_bytes",
    "idle_age",
    "hard_age",
    "idle_timeout",
    "hard_timeout",
    "send_flow_rem",
    "check_overlap",
    "reset_counts",
    "no_packet_counts",
    "no_byte_counts",
    "importance",
];

pub(super) fn read<T: Tuple>(
    input: &mut Input<'_>,
    reading: &mut Reading,
    file: &mut RuleFile<T>,
    table: u8,
) -> Result<(), ReadError> {
    reading.each_line(input, |line, report| {
        if line.contains("_FLOW reply") {
            report.records -= 1;
            return Ok(());
        }
        let (matches, actions) = match line.split_once("actions=") {
            Some((matches, actions)) => (matches, Some(actions.trim())),
            None => (line, None),
        };
        let mut parts = Parts::<T>::default();
        parts.priority = PRIORITY;
        for word in matches.split([',', ' ', '\t']).filter(|word| !word.is_empty()) {
            match word.split_once('=') {
                Some(("table", number)) if number.parse() != Ok(table) => {
                    report.elsewhere += 1;
                    return Ok(());
                }
                Some(("table", _)) => {}
                Some(("priority", number)) => {
                    parts.priority = number.parse().map_err(|_| Fault::bad("not a priority"))?;
                }
                Some((name, _)) if STATISTICS.contains(&name) => {}
                None if STATISTICS.contains(&word) => {}
                Some((name, value)) => field(&mut parts, name, value)?,
                None => shorthand(&mut parts, word)?,
            }
        }
        parts.action = actions.map_or(0, |actions| file.intern(actions));
        let rule = parts.rule().map_err(Fault::bad)?;
        file.add(rule).map_err(Fault::Bad)
    })
}

fn field<T: Tuple>(parts: &mut Parts<T>, name: &str, value: &str) -> Result<(), Fault> {
    let (name, value) = match (name, value) {
        ("in_port", "LOCAL") => (name, "65534"),
        ("eth_src", _) => ("dl_src", value),
        ("eth_dst", _) => ("dl_dst", value),
        ("eth_type", _) => ("dl_type", value),
        ("ip_src", _) => ("nw_src", value),
        ("ip_dst", _) => ("nw_dst", value),
        ("ip_proto", _) => ("nw_proto", value),
        ("arp_spa", _) => ("nw_src", value),
        ("arp_tpa", _) => ("nw_dst", value),
        ("arp_op", _) => ("nw_proto", value),
        ("tcp_src" | "udp_src" | "sctp_src" | "icmp_type", _) => ("tp_src", value),
        ("tcp_dst" | "udp_dst" | "sctp_dst" | "icmp_code", _) => ("tp_dst", value),
        ("vlan_tci", "0" | "0x0" | "0x0000") => return put(parts, "dl_vlan", &VLAN_NONE.to_string()),
        _ => (name, value),
    };
    put(parts, name, value)
}

/// Words that stand for a type and a protocol.
fn shorthand<T: Tuple>(parts: &mut Parts<T>, word: &str) -> Result<(), Fault> {
    let (dl_type, proto) = match word {
        "ip" => ("0x0800", None),
        "arp" => ("0x0806", None),
        "rarp" => ("0x8035", None),
        "ipv6" => ("0x86dd", None),
        "tcp" | "udp" | "icmp" | "sctp" => ("0x0800", Some(word)),
        "tcp6" | "udp6" | "sctp6" => ("0x86dd", Some(&word[..word.len() - 1])),
        "icmp6" => ("0x86dd", Some("icmpv6")),
        _ => return Err(Fault::left_out(format!("no field of a tuple ({word})"))),
    };
    match T::field_of("dl_type") {
        Some(_) => put(parts, "dl_type", dl_type)?,
        // A tuple of one protocol sees packets of that alone.
        None if dl_type == own_type::<T>() => {}
        None => return Err(Fault::left_out(format!("not of this tuple's protocol ({word})"))),
    }
    proto.map_or(Ok(()), |proto| put(parts, "nw_proto", proto))
}

/// The EtherType of the packets that a tuple of addresses is of.
fn own_type<T: Tuple>() -> &'static str {
    let is_wide = T::field_of("src").is_some_and(|field| field.width == 128);
    if is_wide { "0x86dd" } else { "0x0800" }
}

fn put<T: Tuple>(parts: &mut Parts<T>, name: &str, value: &str) -> Result<(), Fault> {
    parts.field(name, value).map_err(|error| match error {
        RuleTextError::Tuple(TupleError::Field { field, .. }) => {
            Fault::left_out(format!("no field of a tuple ({field})"))
        }
        RuleTextError::Rule(RuleError::Patterns { .. }) => Fault::left_out(error.to_string()),
        error => Fault::bad(error),
    })
}
