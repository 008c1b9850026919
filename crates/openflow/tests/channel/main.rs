//! Controllers: what they ask and are answered, half messages, floods and lies, roles, and real controllers
//! where they are installed.

#![allow(clippy::cast_possible_truncation, clippy::unwrap_used)] // every function here is a test or helps one

mod bundles;
mod flow_texts;
mod messages;
mod requests;
mod tcp;
mod tools;

use proptest::prelude::*;

const WORDS: &[&str] = &[
    "table=0,",
    "table=3,",
    "priority=7,",
    "cookie=0x1,",
    "tcp,",
    "ip,",
    "ipv6,",
    "arp,",
    "in_port=1,",
    "in_port=7,",
    "nw_dst=10.0.0.0/8,",
    "nw_src=10.0.0.1,",
    "ipv6_dst=2001:db8::/32,",
    "tp_dst=80,",
    "dl_vlan=5,",
    "vlan_tci=0x1000/0x1000,",
    "dl_dst=01:00:00:00:00:00/01:00:00:00:00:00,",
    "metadata=0x1/0xff,",
    "idle_timeout=10,",
    "send_flow_rem,",
    "n_packets=3,",
    " actions=",
    "output:2",
    "drop",
    "group:1",
    "meter:1,",
    "goto_table:1",
    "set_field:10.0.0.1->ip_dst,",
    "push_vlan:0x8100,",
    "dec_ttl,",
    "write_actions(output:1),",
    "CONTROLLER:128",
    "\n",
    "\n",
    "# a comment\n",
    "OFPST_FLOW reply:\n",
    "group_id=1,type=select,",
    "bucket=weight:50,actions=output:1,",
    "bucket=actions=group:2",
    "group_id=2,type=all,bucket=actions=output:2\n",
    "meter=1 kbps burst stats bands=\n",
    "type=drop rate=1000 burst_size=100\n",
    "type=dscp_remark rate=7",
    "=",
    ",",
    "0x",
    "\u{e9}",
];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// The fuzz target makes the same checks.
    #[test]
    fn any_texts_of_flows(words in prop::collection::vec(prop::sample::select(WORDS), 0..24)) {
        flow_texts::check(&words.concat());
    }
}

#[test]
fn texts_of_flows_as_they_are_written() {
    for text in [
        "table=0,priority=100,tcp,in_port=1,nw_dst=10.0.0.0/8 actions=meter:1,dec_ttl,group:1\n\
         group_id=1,type=select,bucket=weight:50,actions=output:1,bucket=weight:50,actions=output:2\n\
         meter=1 kbps burst stats bands=\ntype=drop rate=1000 burst_size=100\n",
        "ipv6,ipv6_dst=2001:db8::/32 actions=output:2\nactions=drop\n",
    ] {
        flow_texts::check(text);
    }
}
