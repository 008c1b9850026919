//! Fuzz targets of OpenFlow: a session gets any bytes, and what it reads it can write; a switch gets any
//! frames.

use wirespeed_openflow::wire::{Header, Request};
use wirespeed_openflow::{Session, Switch, SwitchOptions, flows};
use wirespeed_router::Settings;

use crate::list;

/// Gives bytes to a session in two parts, after a greeting. Answers are whole messages of the right version,
/// and a flow that is read is written as the flow that it is.
pub fn session(bytes: &[u8]) {
    let (&cut, bytes) = bytes.split_first().unwrap_or((&0, &[]));
    if let Some(header) = Header::of(bytes)
        && let Some(message) = bytes.get(..usize::from(header.len))
        && let Ok(Request::FlowMod(flow)) = Request::read(message)
    {
        let again = Request::read(&flow.to_message(header.xid));
        assert_eq!(again, Ok(Request::FlowMod(flow)), "what is read is written as it is");
    }
    let options = SwitchOptions {
        most_flows: 64,
        most_groups: 16,
        most_meters: 16,
        ..SwitchOptions::with_ports(["a", "b"])
    };
    let Ok(switch) = Switch::new(options) else { return };
    let mut session = Session::new(&switch);
    let (first, second) = bytes.split_at(usize::from(cut).min(bytes.len()));
    for part in [&[4, 0, 0, 8, 0, 0, 0, 1], first, second] {
        let Some(answers) = session.receive(part) else { return };
        let mut rest = &answers[..];
        while !rest.is_empty() {
            let header = Header::of(rest).expect("a header");
            assert!(header.version == 4 && usize::from(header.len) <= rest.len());
            rest = &rest[usize::from(header.len)..];
        }
    }
}

/// Flows that look at headers of every kind, change them, and send frames to ports, groups and controllers.
const FLOWS: &str = "\
meter=1 kbps bands=type=drop rate=1000
group_id=1,type=select,bucket=weight:50,actions=output:1,bucket=weight:50,actions=output:2
group_id=2,type=all,bucket=actions=dec_ttl,output:2,bucket=actions=IN_PORT
table=0,priority=9,tcp,nw_dst=10.0.0.0/8 actions=meter:1,dec_ttl,group:1
table=0,priority=8,ipv6,ipv6_dst=2000::/3 actions=group:2
table=0,priority=7,dl_vlan=5 actions=strip_vlan,goto_table:1
table=0,priority=6,udp,tp_dst=53 actions=set_field:192.0.2.1->ip_src,output:2
table=0,priority=5,arp actions=CONTROLLER:128
table=0,priority=1 actions=goto_table:1
table=1,priority=3,ip actions=push_vlan:0x8100,set_field:4102->vlan_vid,output:2
table=1,priority=1 actions=output:1
";

/// Gives frames to a switch. Each is sent, dropped for a reason, or a controller's.
pub fn frames(frames: &[Vec<u8>]) {
    let switch = Switch::new(SwitchOptions::with_ports(["a", "b"])).expect("a switch");
    flows::load(&switch, FLOWS).expect("flows");
    let (stats, _) =
        list::run(switch.app().expect("a worker"), frames, 2, Settings { chunk: 64, ..Settings::default() });
    assert!(stats.is_whole() && stats.frames_in == frames.len() as u64, "{stats:?}");
}
