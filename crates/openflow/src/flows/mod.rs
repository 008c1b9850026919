//! Flows, groups and meters as `ovs-ofctl -O OpenFlow13` writes and reads them: `dump-flows`, `dump-groups`
//! and `dump-meters`, one after the other in one text, in any order.
//!
//! ```text
//! group_id=1,type=select,bucket=weight:50,actions=output:1,bucket=weight:50,actions=output:2
//! meter=1 kbps burst stats bands=
//! type=drop rate=1000 burst_size=100
//! table=0,priority=100,tcp,in_port=1,nw_dst=10.0.0.0/8 actions=meter:1,dec_ttl,group:1
//! ```
//!
//! The grammar is that of ovs-fields(7) and ovs-actions(7), as far as OpenFlow 1.3 goes: fields, actions and
//! words of Open vSwitch alone are an error that names them, since a flow without them would be another flow.
//! The bands of a meter follow it, in its line or in lines of their own.

mod actions;
mod fields;
mod groups;

use crate::error::Error;
use crate::switch::Switch;
use crate::wire::{FlowMod, GroupMod, Match, MeterMod};

/// The priority of a flow that has none.
const PRIORITY: u16 = 0x8000;

/// The content of a text, each part with the number of its line, from 1 on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lines {
    /// The flows.
    pub flows: Vec<(usize, FlowMod)>,
    /// The groups.
    pub groups: Vec<(usize, GroupMod)>,
    /// The meters.
    pub meters: Vec<(usize, MeterMod)>,
}

/// The numbers of what was added to a switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Loaded {
    /// The flows.
    pub flows: usize,
    /// The groups.
    pub groups: usize,
    /// The meters.
    pub meters: usize,
}

/// Heads of dumps, which say nothing.
const HEADS: [&str; 4] = ["OFPST_FLOW", "NXST_FLOW", "OFPST_GROUP_DESC", "OFPST_METER_CONFIG"];

/// Reads flows, groups and meters. Empty lines, comments behind `#`, and the heads of dumps are passed over.
pub fn read(text: &str) -> Result<Lines, Error> {
    let mut lines = Lines::default();
    // Whether a band may follow: the line before it was of a meter.
    let mut is_meter = false;
    for (at, line) in (1..).zip(text.lines()) {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() || HEADS.iter().any(|head| line.starts_with(head)) {
            continue;
        }
        let wrong = |why| Error::Flow { line: at, why };
        let is_band = line.starts_with("type=");
        if is_band && let Some((_, meter)) = lines.meters.last_mut().filter(|_| is_meter) {
            groups::more_of_meter(meter, line).map_err(wrong)?;
            continue;
        }
        is_meter = line.starts_with("meter=");
        if is_meter {
            lines.meters.push((at, groups::meter(line).map_err(wrong)?));
        } else if line.starts_with("group_id=") {
            lines.groups.push((at, groups::group(line).map_err(wrong)?));
        } else if is_band {
            return Err(wrong("a band without its meter".to_owned()));
        } else {
            lines.flows.push((at, flow(line).map_err(wrong)?));
        }
    }
    for (at, meter) in &mut lines.meters {
        let whole = groups::whole_meter(meter.clone());
        *meter = whole.map_err(|why| Error::Flow { line: *at, why })?;
    }
    Ok(lines)
}

/// Reads flows, groups and meters and adds them to a switch: meters first, then groups, each behind those
/// that it leads to, then flows, which use them. Fails at the first that the switch refuses; what was added
/// before it stays.
pub fn load(switch: &Switch, text: &str) -> Result<Loaded, Error> {
    let Lines { flows, groups, meters } = read(text)?;
    let loaded = Loaded { flows: flows.len(), groups: groups.len(), meters: meters.len() };
    for (line, meter) in meters {
        switch.meter_mod(&meter).map_err(|failure| Error::Refused { line, failure })?;
    }
    for (line, group) in groups::in_order(groups) {
        switch.group_mod(&group).map_err(|failure| Error::Refused { line, failure })?;
    }
    let (lines, flows): (Vec<usize>, Vec<FlowMod>) = flows.into_iter().unzip();
    match switch.flow_mods(&flows) {
        Ok(()) => Ok(loaded),
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
        let flows = read(text).unwrap().flows;
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
            assert!(read(line).unwrap().flows[0].1.instructions.apply.contains(&set), "{line}");
        }
    }

    #[test]
    fn a_priority_alone_is_that_of_any_tag() {
        for line in ["dl_vlan_pcp=3 actions=drop", "vlan_pcp=3,ip actions=drop"] {
            let matched = read(line).unwrap().flows[0].1.matched;
            let of = |field| (matched.value.of(field), matched.mask.of(field));
            assert_eq!((of(Field::VlanPcp), of(Field::VlanVid)), ((3, 7), (0x1000, 0x1000)), "{line}");
        }
    }

    #[test]
    fn tags_are_matched_by_all_words_for_them() {
        for (words, vid, pcp) in [
            ("vlan_tci=0x1000/0x1000", (0x1000, 0x1000), (0, 0)),
            ("vlan_tci=0x0000/0x1fff", (0, 0x1fff), (0, 0)),
            ("vlan_tci=0", (0, 0x1fff), (0, 0)),
            ("vlan_tci=0x1005/0x1fff", (0x1005, 0x1fff), (0, 0)),
            ("vlan_tci=0xf123", (0x1123, 0x1fff), (7, 7)),
            ("vlan_tci=0/0xfff", (0, 0xfff), (0, 0)),
            ("vlan_vid=0/0xfff", (0, 0xfff), (0, 0)),
            ("vlan_vid=0x1000/0x1000", (0x1000, 0x1000), (0, 0)),
            ("dl_vlan=0xffff", (0, 0x1fff), (0, 0)),
            ("dl_vlan=5,dl_vlan_pcp=0", (0x1005, 0x1fff), (0, 7)),
            ("vlan_tci=0/0", (0, 0), (0, 0)),
        ] {
            let matched = read(&format!("ip,{words} actions=drop")).unwrap().flows[0].1.matched;
            let of = |field| (matched.value.of(field), matched.mask.of(field));
            assert_eq!((of(Field::VlanVid), of(Field::VlanPcp)), (vid, pcp), "{words}");
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
            "tcp,udp actions=drop",
            "ip,arp actions=drop",
            "tcp6,tcp actions=drop",
            "dl_vlan=0xffff,dl_vlan_pcp=3 actions=drop",
            "vlan_tci=0/0xefff actions=drop",
            "vlan_tci=0x2000/0x2000 actions=drop",
            "vlan_vid=0x3005 actions=drop",
            "dl_vlan=5,vlan_tci=0x1000/0x1000 actions=drop",
            "priority=70000 actions=drop",
            "actions=output:2,output",
            "ip actions=mod_vlan_vid:5,output:2",
            "ip,dl_vlan=0xffff actions=set_field:4101->vlan_vid,output:2",
        ] {
            assert!(matches!(read(line), Err(Error::Flow { line: 1, .. })), "{line}");
        }
    }

    const DUMPS: &str = "OFPST_FLOW reply (OF1.3) (xid=0x2):\n \
        cookie=0x0, duration=3.1s, table=0, n_packets=0, n_bytes=0, priority=5,in_port=1 actions=meter:2,group:1\n \
        OFPST_GROUP_DESC reply (OF1.3) (xid=0x2):\n \
        group_id=1,type=select,bucket=weight:50,actions=group:3,bucket=weight:50,actions=output:1\n \
        group_id=3,type=ff,bucket=watch_port:2,actions=output:2,bucket=watch_group:4,actions=group:4\n \
        group_id=4,type=indirect,bucket=actions=output:3\n\
        OFPST_METER_CONFIG reply (OF1.3) (xid=0x2):\n\
        meter=2 kbps burst stats bands=\n\
        type=drop rate=1000 burst_size=100\n\n\
        meter=3 pktps bands=\n\
        type=drop rate=10\n\
        type=dscp_remark rate=5 prec_level=1\n";

    fn switch() -> Switch {
        Switch::new(crate::switch::SwitchOptions::with_ports(["a", "b", "c"])).unwrap()
    }

    #[test]
    fn dumps_are_loaded_in_any_order() {
        let lines = read(DUMPS).unwrap();
        assert_eq!((lines.flows.len(), lines.groups.len(), lines.meters.len()), (1, 3, 2));
        assert_eq!((lines.meters[0].1.bands.len(), lines.meters[1].1.bands.len()), (1, 2));
        let loaded = Loaded { flows: 1, groups: 3, meters: 2 };
        assert_eq!(load(&switch(), DUMPS).unwrap(), loaded);
        // Groups and meters first, and the other way round.
        let (flows, others) = DUMPS.split_once("OFPST_GROUP").unwrap();
        assert_eq!(load(&switch(), &format!("OFPST_GROUP{others}{flows}")).unwrap(), loaded);
        // Without what it uses, the flow is refused at its line.
        assert!(matches!(load(&switch(), flows), Err(Error::Refused { line: 2, .. })));
        // Groups that lead to one another, a group twice, a port that is not there.
        let ring = "group_id=1,type=all,bucket=actions=group:2\ngroup_id=2,type=all,bucket=actions=group:1\n";
        assert!(matches!(load(&switch(), ring), Err(Error::Refused { line: 1, .. })));
        let twice = "group_id=1,type=all\n\ngroup_id=1,type=all\n";
        assert!(matches!(load(&switch(), twice), Err(Error::Refused { line: 3, .. })));
        let port = "group_id=1,type=all,bucket=actions=output:9";
        assert!(matches!(load(&switch(), port), Err(Error::Refused { line: 1, .. })));
    }

    #[test]
    fn groups_and_meters_of_other_versions_are_refused_with_their_line() {
        for (line, why) in [
            ("group_id=1,type=select,selection_method=hash,bucket=actions=output:1", "selection_method"),
            ("group_id=1,type=select,bucket=bucket_id:0,weight:1,actions=output:1", "bucket_id"),
            ("group_id=1,type=fair,bucket=actions=output:1", "type=fair"),
            ("group_id=1,bucket=actions=output:1", "type="),
            ("group_id=all,type=all", "all"),
            ("group_id=4294967296,type=all", "4294967296"),
            ("group_id=1,type=all,bucket=actions=goto_table:2", "goto_table"),
            ("group_id=1,type=all,bucket=actions=resubmit(,1)", "resubmit"),
            ("group_id=1,type=select,bucket=weight:70000,actions=output:1", "70000"),
            ("group_id=1,type=all,bucket=weight:1,actions=output:1,bucket=nonsense", "nonsense"),
            ("meter=controller pktps bands=\ntype=drop rate=1", "controller"),
            ("meter=1 kbps slow bands=\ntype=drop rate=1", "slow"),
            ("meter=1 kbps pktps bands=\ntype=drop rate=1", "meter"),
            ("meter=0 kbps bands=\ntype=drop rate=1", "meter"),
            ("meter=1 kbps bands=\ntype=drop", "meter"),
        ] {
            match read(&format!("# one line more\n{line}\n")) {
                Err(Error::Flow { line: 2, why: said }) => assert!(said.contains(why), "{line}: {said}"),
                other => panic!("{line}: {other:?}"),
            }
        }
        for line in [
            "meter=1 kbps bands=\ntype=mark rate=1",
            "meter=1 kbps bands=\ntype=drop rate=1 prec_level=1",
            "priority=1 actions=drop\ntype=drop rate=1",
        ] {
            assert!(matches!(read(line), Err(Error::Flow { line: 2, .. })), "{line}");
        }
    }

    #[test]
    fn any_text_is_read() {
        let mut rng = wirespeed_rng::Rng::new(3);
        for end in 0..DUMPS.len() {
            let _ = read(&DUMPS[..end]);
        }
        for _ in 0..wirespeed_image::rounds::fewer(20_000) {
            let mut bytes = DUMPS.as_bytes().to_vec();
            for _ in 0..1 + rng.index(4) {
                let (at, from) = (rng.index(bytes.len()), rng.index(bytes.len()));
                bytes[at] = DUMPS.as_bytes()[from];
            }
            let text = String::from_utf8(bytes).unwrap();
            // What is no flow, group or meter says where.
            if let Err(error) = load(&switch(), &text) {
                assert!(matches!(error, Error::Flow { line: 1.., .. } | Error::Refused { line: 1.., .. }));
            }
        }
    }
}
