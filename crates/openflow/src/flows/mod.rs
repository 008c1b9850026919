//! Flows as `ovs-ofctl` writes and reads them: one a line, such as
//! `table=0,priority=100,tcp,in_port=1,nw_dst=10.0.0.0/8 actions=dec_ttl,output:2`.
//!
//! The grammar is that of ovs-fields(7) and ovs-actions(7), as far as OpenFlow 1.3 goes: fields and actions
//! of Open vSwitch alone are an error that names them, since a flow without them would be another flow.

mod actions;
mod fields;

use crate::error::Error;
use crate::switch::Switch;
use crate::wire::{FlowMod, Match};

/// The priority of a flow that has none.
const PRIORITY: u16 = 0x8000;

/// Reads flows, one a line. Empty lines, comments behind `#`, and the head of a dump are passed over.
pub fn read(text: &str) -> Result<Vec<(usize, FlowMod)>, Error> {
    let mut flows = Vec::new();
    for (at, line) in (1..).zip(text.lines()) {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() || line.starts_with("OFPST_FLOW") || line.starts_with("NXST_FLOW") {
            continue;
        }
        let flow = flow(line).map_err(|why| Error::Flow { line: at, why })?;
        flows.push((at, flow));
    }
    Ok(flows)
}

/// Reads flows and adds them to a switch. Returns their number.
pub fn load(switch: &Switch, text: &str) -> Result<usize, Error> {
    let (lines, flows): (Vec<usize>, Vec<FlowMod>) = read(text)?.into_iter().unzip();
    match switch.flow_mods(&flows) {
        Ok(()) => Ok(flows.len()),
        Err((at, failure)) => Err(Error::Refused { line: lines[at], failure }),
    }
}

/// Reads one flow.
fn flow(line: &str) -> Result<FlowMod, String> {
    let (matches, actions) = line.split_once("actions=").ok_or("no actions")?;
    let mut flow = FlowMod::add(0, PRIORITY, Match::all(), crate::wire::Instructions::default());
    let mut wanted = Vec::new();
    for word in matches.split([',', ' ', '\t']).filter(|word| !word.is_empty()) {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (word, None),
        };
        match (name, value) {
            ("table", Some(value)) => flow.table = small(value)?,
            ("priority", Some(value)) => flow.priority = small(value)?,
            ("cookie", Some(value)) => flow.cookie = number(value)?,
            ("idle_timeout", Some(value)) => flow.idle = small(value)?,
            ("hard_timeout", Some(value)) => flow.hard = small(value)?,
            ("duration" | "n_packets" | "n_bytes" | "idle_age" | "hard_age", Some(_)) => {}
            ("send_flow_rem", None) => flow.flags |= FlowMod::SEND_REMOVED,
            ("check_overlap", None) => flow.flags |= FlowMod::CHECK_OVERLAP,
            ("reset_counts", None) => flow.flags |= FlowMod::RESET_COUNTS,
            ("no_packet_counts", None) => flow.flags |= FlowMod::NO_PACKETS,
            ("no_byte_counts", None) => flow.flags |= FlowMod::NO_BYTES,
            (name, value) => wanted.push((name, value)),
        }
    }
    flow.matched = fields::matched(&wanted)?;
    flow.instructions = actions::instructions(actions.trim(), &flow.matched)?;
    // What is read here is held to the rules that hold for messages.
    let message = flow.to_message(0);
    match crate::wire::Request::read(&message) {
        Ok(crate::wire::Request::FlowMod(read)) => Ok(*read),
        Ok(_) => Err("no flow".to_owned()),
        Err(failure) => Err(format!("no flow of OpenFlow 1.3: {failure}")),
    }
}

/// A number, decimal or hexadecimal.
fn number(text: &str) -> Result<u64, String> {
    let read = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => text.parse(),
    };
    read.map_err(|_| format!("{text:?} is no number"))
}

/// A number that fits a type.
fn small<N: TryFrom<u64>>(text: &str) -> Result<N, String> {
    number(text)?.try_into().map_err(|_| format!("{text} is too large"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Action, Field};

    #[test]
    fn a_dump_is_read() {
        let text = "OFPST_FLOW reply (OF1.3) (xid=0x2):\n \
            cookie=0x7, duration=3.1s, table=2, n_packets=9, n_bytes=540, idle_timeout=5, send_flow_rem \
            priority=100,tcp,in_port=1,nw_dst=10.0.0.0/8,tp_dst=80 \
            actions=meter:3,set_field:02:00:00:00:00:09->eth_dst,dec_ttl,output:2,goto_table:3\n\
            # a comment\n\
            priority=0 actions=CONTROLLER:65535\n\
            ipv6,ipv6_src=2001:db8::/32 actions=drop\n\
            dl_vlan=5,dl_vlan_pcp=3 actions=pop_vlan,push_mpls:0x8847,set_field:7->mpls_label,write_actions(group:4)\n";
        let flows = read(text).unwrap();
        assert_eq!(flows.len(), 4);
        let first = &flows[0].1;
        assert_eq!((first.cookie, first.table, first.idle, first.priority), (7, 2, 5, 100));
        assert_eq!(first.flags, FlowMod::SEND_REMOVED);
        assert_eq!(first.matched.value.of(Field::TcpDst), 80);
        assert_eq!(first.matched.mask.of(Field::Ipv4Dst), 0xff00_0000);
        assert_eq!((first.instructions.meter, first.instructions.goto), (Some(3), Some(3)));
        assert_eq!(first.instructions.apply.len(), 3);
        assert_eq!(flows[1].1.instructions.apply[0], Action::Output { port: 0xffff_fffd, max_len: 0xffff });
        assert!(flows[2].1.instructions.apply.is_empty());
        assert_eq!(flows[3].1.matched.value.of(Field::VlanVid), 0x1005);
        assert_eq!(flows[3].1.instructions.write, [Action::Group(4)]);
    }

    #[test]
    fn a_tag_is_set_where_there_is_one() {
        for line in
            ["dl_vlan=4 actions=mod_vlan_vid:5,2", "ip actions=push_vlan:0x8100,set_field:4101->vlan_vid,2"]
        {
            let set = Action::SetField(Field::VlanVid, 0x1005);
            assert!(read(line).unwrap()[0].1.instructions.apply.contains(&set), "{line}");
        }
    }

    #[test]
    fn what_is_no_flow_of_this_version_is_refused() {
        for line in [
            "reg0=1 actions=drop",
            "actions=learn(table=1)",
            "tp_dst=80 actions=drop",
            "tcp,nw_src=10.0.0.0/99 actions=drop",
            "tcp",
            "priority=70000 actions=drop",
            "actions=output:2,output",
            "ip actions=mod_vlan_vid:5,output:2",
            "ip,dl_vlan=0xffff actions=set_field:4101->vlan_vid,output:2",
        ] {
            assert!(matches!(read(line), Err(Error::Flow { line: 1, .. })), "{line}");
        }
    }
}
