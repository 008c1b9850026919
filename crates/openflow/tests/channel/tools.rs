//! Controllers that others wrote, where they are installed: `ovs-ofctl` of Open vSwitch, and os-ken.

use std::process::Command;

use wirespeed_openflow::{Channel, Switch, SwitchOptions, Target};

fn listening(switch: &Switch) -> (Channel, String) {
    let channel = Channel::open(switch, &[Target::Listen("127.0.0.1:0".to_owned())]).unwrap();
    let address = format!("tcp:{}", channel.listening()[0]);
    (channel, address)
}

/// Runs `ovs-ofctl`; what it writes.
fn ofctl(arguments: &[&str]) -> Option<String> {
    let output = Command::new("timeout")
        .args(["60", "ovs-ofctl", "-O", "OpenFlow13"])
        .args(arguments)
        .output()
        .ok()?;
    if output.status.code() == Some(127) {
        return None;
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {text}{error}");
    Some(text)
}

#[test]
fn ovs_ofctl_drives_the_switch() {
    if !Command::new("ovs-ofctl").arg("--version").output().is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: no ovs-ofctl");
        return;
    }
    let switch = Switch::new(SwitchOptions::with_ports(["a", "b", "c"])).unwrap();
    let (_channel, address) = listening(&switch);
    let to = address.as_str();
    let run =
        |arguments: &[&str]| ofctl(&[&arguments[..1], &[to], &arguments[1..]].concat()).expect("installed");
    let show = run(&["show"]);
    assert!(
        show.contains("dpid:0000000000000001") && show.contains("2(b)") && show.contains("n_tables:254"),
        "{show}"
    );
    run(&["add-group", "group_id=5,type=select,bucket=weight:1,output:1,bucket=weight:2,output:2"]);
    run(&["add-group", "group_id=2,type=ff,bucket=watch_port:1,output:1,bucket=watch_group:5,group:5"]);
    run(&["add-meter", "meter=3,kbps,burst,band=type=drop,rate=1000,burst_size=100"]);
    run(&["add-meter", "meter=4,pktps,stats,bands=type=drop,rate=9,type=dscp_remark,rate=5,prec_level=1"]);
    let flows = [
        "table=0,priority=100,tcp,in_port=1,nw_dst=10.0.0.0/8,tp_dst=80 actions=meter:3,dec_ttl,output:2,goto_table:1",
        "table=1,priority=7,ipv6,ipv6_src=2001:db8::/32 actions=push_vlan:0x8100,set_field:4100->vlan_vid,group:5",
        "table=1,priority=9,arp,arp_tpa=10.1.2.3,arp_op=1 actions=write_metadata:0x7/0xff,goto_table:2",
        "table=2,priority=1,mpls,mpls_label=77 actions=pop_mpls:0x0800,CONTROLLER:65535",
        "table=0,priority=0,idle_timeout=60,send_flow_rem actions=drop",
    ];
    flows.iter().for_each(|flow| {
        run(&["add-flow", flow]);
    });
    let dump = run(&["dump-flows"]);
    assert_eq!(dump.lines().filter(|line| line.contains("table=")).count(), flows.len(), "{dump}");
    for part in [
        "nw_dst=10.0.0.0/8",
        "tp_dst=80",
        "meter:3",
        "dec_ttl",
        "goto_table:1",
        "ipv6_src=2001:db8::/32",
        "mpls_label=77",
        "group:5",
    ] {
        assert!(dump.contains(part), "{part} in {dump}");
    }
    // What it writes is read here, and comes to the same flows.
    let other = Switch::new(SwitchOptions::with_ports(["a", "b", "c"])).unwrap();
    let (_other_channel, other_to) = listening(&other);
    let run_other = |arguments: &[&str]| {
        ofctl(&[&arguments[..1], &[other_to.as_str()], &arguments[1..]].concat()).unwrap()
    };
    let dumps = [&*dump, &run(&["dump-groups"]), &run(&["dump-meters"])].concat();
    let loaded = wirespeed_openflow::flows::load(&other, &dumps).unwrap();
    assert_eq!((loaded.flows, loaded.groups, loaded.meters), (flows.len(), 2, 2), "{dumps}");
    // Behind the heads, whose numbers of messages differ.
    for verb in ["dump-groups", "dump-meters"] {
        assert!(run(&[verb]).lines().skip(1).eq(run_other(&[verb]).lines().skip(1)), "{dumps}");
    }
    let bare = |text: &str| {
        let mut lines: Vec<String> = text
            .lines()
            .filter(|line| line.contains("table="))
            .map(|line| {
                line.split(", ")
                    .filter(|word| !word.trim().starts_with("duration="))
                    .collect::<Vec<_>>()
                    .join(", ")
            })
            .collect();
        lines.sort();
        lines
    };
    assert_eq!(bare(&run_other(&["dump-flows"])), bare(&dump));
    assert!(run(&["dump-groups"]).contains("group_id=5,type=select"));
    assert!(run(&["dump-meters"]).contains("rate=1000"));
    assert!(run(&["dump-ports"]).contains("port"));
    assert!(run(&["dump-tables"]).contains("table 0"));
    assert!(run(&["dump-desc"]).contains("Wirespeed"));
    for verb in [
        "dump-aggregate",
        "dump-group-features",
        "meter-features",
        "dump-ports-desc",
        "meter-stats",
        "dump-group-stats",
        "dump-table-features",
        "queue-stats",
    ] {
        run(&[verb]);
    }
    run(&["mod-flows", "table=0,tcp actions=output:3"]);
    assert!(
        run(&["dump-flows", "table=0,tcp"]).contains("output:3")
            || run(&["dump-flows", "table=0"]).contains("output:3")
    );
    run(&["mod-port", "2", "no-forward"]);
    assert!(run(&["show"]).contains("NO_FWD"));
    run(&["del-flows", "table=1"]);
    assert_eq!(switch.flows(), 3);
    run(&["del-groups"]);
    run(&["del-flows"]);
    assert_eq!(switch.flows(), 0);
    // Bundles: flows alone, and changes of several kinds; one of them fails.
    let file = |lines: &str| {
        let path = std::env::temp_dir().join(format!("wirespeed-bundle-{}", std::process::id()));
        std::fs::write(&path, lines).unwrap();
        path.into_os_string().into_string().unwrap()
    };
    let many: Vec<String> =
        (0..2000).map(|at| format!("priority={},in_port=1 actions=output:2", at + 1)).collect();
    ofctl(&["--bundle", "add-flows", to, &file(&many.join("\n"))]).unwrap();
    assert_eq!(switch.flows(), 2000);
    let replaced = "flow delete\ngroup add group_id=1,type=all,bucket=output:2\nflow add actions=group:1\n\
                    packet-out in_port=1,packet=010203040506010203040506ffff,actions=output:2\n";
    run(&["bundle", &file(replaced)]);
    assert_eq!(switch.flows(), 1);
    let wrong = format!("{replaced}group delete group_id=1\nflow add actions=group:1\n");
    let failed = Command::new("ovs-ofctl").args(["-O", "OpenFlow13", "bundle", to, &file(&wrong)]).output();
    let failed = failed.unwrap();
    let told = String::from_utf8_lossy(&failed.stderr);
    assert!(!failed.status.success() && told.contains("OFPBFC_MSG_FAILED"), "{told}");
    assert!(told.contains("OFPGMFC_GROUP_EXISTS"), "{told}");
    assert_eq!(switch.flows(), 1);
    std::fs::remove_file(file("")).unwrap();
}

#[test]
fn os_ken_drives_the_switch() {
    let python =
        |arguments: &[&str]| Command::new("timeout").args(["60", "python3"]).args(arguments).output();
    if !python(&["-c", "import os_ken"]).is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: no os-ken for python3");
        return;
    }
    let switch = Switch::new(SwitchOptions::with_ports(["a", "b", "c"])).unwrap();
    let (_channel, address) = listening(&switch);
    let (host, port) = address.trim_start_matches("tcp:").rsplit_once(':').unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/channel/osken.py");
    let output = python(&[script, host, port]).unwrap();
    let (told, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && told.contains("done"), "{told}{errors}");
    assert_eq!(switch.flows(), 0);
}
