//! Files that were once read as something else than they say: each is answered as the firewall or switch
//! does, or refused.

use crate::common::Folder;

/// The actions of tuples by a file of rules, all of them certain.
#[track_caller]
fn actions(folder: &Folder, options: &str, tuples: &[&str]) -> Vec<String> {
    let input = tuples.join("\n") + "\n";
    let ran = folder.run_with(&format!("classify lookup --json {options}"), input.as_bytes()).ok();
    let certain = |line: serde_json::Value| {
        assert!(line["uncertain_because"].as_array().unwrap().is_empty(), "{line}");
        line["action"].as_str().unwrap_or_default().to_owned()
    };
    ran.json().into_iter().map(certain).collect()
}

/// A chain of one line and a policy of DROP.
fn saved(line: &str) -> String {
    format!("*filter\n:INPUT DROP [0:0]\n{line}\nCOMMIT\n")
}

#[test]
fn matches_after_the_target_count() {
    let folder = Folder::new();
    for (line, options, accepted, dropped) in [
        (
            "-A INPUT -j ACCEPT -s10.1.1.1",
            "",
            "src=10.1.1.1 tcp sport=1 dport=22",
            "src=6.6.6.6 tcp sport=1 dport=22",
        ),
        ("-A INPUT -j ACCEPT --protocol=gre", "", "proto=gre", "proto=tcp sport=1"),
        (
            "-A INPUT -p tcp -j ACCEPT --syn",
            "--assume tcp-flags=syn --assume fragment=no",
            "tcp sport=1",
            "udp sport=1",
        ),
        (
            "-A INPUT -j ACCEPT -p udp -m multiport --ports 53",
            "",
            "udp sport=9 dport=53",
            "udp sport=9 dport=54",
        ),
    ] {
        folder.write("k", saved(line));
        assert_eq!(
            actions(&folder, &format!("--rules k {options}"), &[accepted, dropped]),
            ["ACCEPT", "DROP"],
            "{line}"
        );
    }
    for line in [
        "-A INPUT -p tcp -j ACCEPT --syn",
        "-A INPUT -p tcp -j DROP --tcp-flags ALL NONE",
        "-A INPUT -p tcp --dport 22 -j ACCEPT -m tcp --tcp-option 5",
        "-A INPUT -j ACCEPT --no-such-option",
    ] {
        folder.write("k", saved(&format!("{line}\n-A INPUT -p tcp --dport 1 -j ACCEPT")));
        let ran = folder.run("classify lookup --rules k tcp sport=1 dport=22").status(2);
        assert!(ran.stdout.is_empty() && ran.stderr.contains('3'), "{line}: {ran:?}");
    }
}

#[test]
fn a_file_cut_before_commit_is_refused() {
    let folder = Folder::new();
    folder.write("cut", "*filter\n:INPUT DROP [0:0]\n-A INPUT -p tcp -j ACCEPT\n");
    for verb in ["lookup tcp --rules", "verify --rules", "build -o x.img --rules"] {
        folder.run(&format!("classify {verb} cut")).refused(&["cut", "COMMIT"]);
    }
}

#[test]
fn names_of_icmpv6_types_have_its_numbers() {
    let folder = Folder::new();
    for kind in ["-p icmpv6", "-p ipv6-icmp", "-p ipv6-icmp -m icmp6"] {
        for (name, own, other) in [("destination-unreachable", 1, 3), ("echo-request", 128, 8)] {
            folder.write("v6", saved(&format!("-A INPUT {kind} --icmpv6-type {name} -j ACCEPT")));
            let tuples = [format!("proto=icmpv6 sport={own}"), format!("proto=icmpv6 sport={other}")];
            let found = actions(&folder, "--tuple ipv6 --rules v6", &[&tuples[0], &tuples[1]]);
            assert_eq!(found, ["ACCEPT", "DROP"], "{kind} {name}");
        }
    }
    folder.write("v6", saved("-A INPUT -p ipv6-icmp -j ACCEPT"));
    assert_eq!(
        actions(&folder, "--tuple ipv6 --rules v6", &["proto=icmpv6 sport=3", "tcp"]),
        ["ACCEPT", "DROP"]
    );
    folder.run("classify info v6 --tuple ipv6 --engine linear").ok();
}

/// A list of nft's elements.
fn nft(elements: &[&str]) -> String {
    format!("{{\"nftables\":[{}]}}", elements.join(","))
}

fn accept(family: &str, chain: &str, left: &str, right: &str) -> String {
    format!(
        r#"{{"rule":{{"family":"{family}","table":"filter","chain":"{chain}","expr":[{{"match":{{"op":"==","left":{{"payload":{left}}},"right":{right}}}}},{{"accept":null}}]}}}}"#
    )
}

const CHAIN_4: &str = r#"{"chain":{"family":"ip","table":"filter","name":"input","hook":"input","type":"filter","prio":0,"policy":"drop"}}"#;
const CHAIN_6: &str = r#"{"chain":{"family":"ip6","table":"filter","name":"input","hook":"input","type":"filter","prio":0,"policy":"accept"}}"#;
const NAT: &str = r#"{"chain":{"family":"ip","table":"nat","name":"prerouting","hook":"prerouting","type":"nat","prio":-100,"policy":"accept"}}"#;

#[test]
fn files_of_both_families_want_a_choice() {
    let folder = Folder::new();
    folder.write(
        "groups",
        r#"{"SecurityGroups": [{"GroupId": "sg-1", "GroupName": "web", "IpPermissionsEgress": [], "IpPermissions": [
            {"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443,
             "IpRanges": [{"CidrIp": "10.0.0.0/8"}], "Ipv6Ranges": [{"CidrIpv6": "2001:db8::/32"}]}]}]}"#,
    );
    folder.write(
        "policies",
        "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: web}\nspec:\n  ingress:\n  \
         - ports: [{port: 443}]\n    from: [{ipBlock: {cidr: 10.0.0.0/8}}, {ipBlock: {cidr: 2001:db8::/32}}]\n",
    );
    let payload = |family| format!(r#"{{"protocol": "{family}", "field": "saddr"}}"#);
    folder.write(
        "nft",
        nft(&[
            r#"{"set": {"family": "inet", "table": "filter", "name": "four", "type": "ipv4_addr", "elem": ["10.0.0.1"]}}"#,
            r#"{"set": {"family": "inet", "table": "filter", "name": "six", "type": "ipv6_addr", "elem": ["2001:db8::1"]}}"#,
            r#"{"chain": {"family": "inet", "table": "filter", "name": "in", "type": "filter", "hook": "input", "policy": "drop"}}"#,
            &accept("inet", "in", &payload("ip"), "\"@four\""),
            &accept("inet", "in", &payload("ip6"), "\"@six\""),
        ]),
    );
    let (four, six) = (["src=10.0.0.1 tcp dport=443"], ["src=2001:db8::1 tcp dport=443"]);
    for (name, allow) in [("groups", "allow"), ("policies", "allow"), ("nft", "accept")] {
        let read = format!("--rules {name}");
        let read = if name == "nft" { read } else { read + " --assume ct=new" };
        for verb in ["lookup tcp", "verify", "replay", "build -o x.img"] {
            folder.run(&format!("classify {verb} {read}")).refused(&[
                &format!("{name}: the file is of IPv4 and of IPv6, and 1 entry is of the other family"),
                "choose one with --tuple ipv4 or --tuple ipv6",
            ]);
        }
        let records =
            b"src,dst,proto,sport,dport\n10.0.0.1,10.0.0.2,6,1,443\n2001:db8::1,2001:db8::2,6,1,443\n";
        let enrich = format!("enrich {}", read.replace("--rules ", "--rules r="));
        folder.run_with(&enrich, records).refused(&[name, "--tuple ipv4 or --tuple ipv6"]);
        // Each family by itself, and what was passed over is told.
        for (tuple, asked) in [("ipv4", &four), ("ipv6", &six)] {
            let read = format!("{read} --tuple {tuple}");
            assert_eq!(actions(&folder, &read, asked), [allow], "{name} {tuple}");
            let info = format!("classify info {name} --tuple {tuple}");
            let told = folder.run(&info).ok().stdout;
            assert!(told.contains("  1 entry of the other family of addresses passed over\n"), "{told}");
            assert_eq!(folder.run(&format!("{info} --json")).ok().json()[0]["other_family"], 1);
            let ran = folder.run_with(&format!("{enrich} --tuple {tuple}"), records).ok();
            assert!(ran.stderr.contains("of the other family of addresses passed over"), "{}", ran.stderr);
            let answers: Vec<_> = ran.stdout.lines().skip(1).map(|line| line.contains(allow)).collect();
            assert_eq!(answers, [tuple == "ipv4", tuple == "ipv6"], "{}", ran.stdout);
        }
        let ran = folder.run(&format!("classify lookup {read} --lenient src=10.0.0.1 dport=443 tcp")).ok();
        assert!(ran.stderr.contains("of the other family of addresses passed over"), "{}", ran.stderr);
    }
}

#[test]
fn chains_of_nft_are_those_of_the_family() {
    let folder = Folder::new();
    let port = |port: &str, family| accept(family, "input", r#"{"protocol":"tcp","field":"dport"}"#, port);
    folder.write("n.json", nft(&[CHAIN_6, CHAIN_4, &port("23", "ip6"), &port("22", "ip")]));
    let tuples = ["proto=tcp sport=9 dport=23", "proto=udp sport=9 dport=1", "proto=tcp sport=9 dport=22"];
    assert_eq!(actions(&folder, "--tuple ipv4 --rules n.json", &tuples), ["drop", "drop", "accept"]);
    assert_eq!(actions(&folder, "--tuple ipv6 --rules n.json", &tuples[..2]), ["accept", "accept"]);
    folder.write("nat.json", nft(&[NAT, CHAIN_4, &port("22", "ip")]));
    assert_eq!(actions(&folder, "--tuple ipv4 --rules nat.json", &tuples[..1]), ["drop"]);
}

#[test]
fn headers_within_tunnels_are_not_the_packets_own() {
    let folder = Folder::new();
    let inner =
        accept("ip", "input", r#"{"tunnel":"vxlan","protocol":"ip","field":"saddr"}"#, "\"10.9.0.0\"");
    folder.write("n.json", nft(&[CHAIN_4, &inner]));
    folder.run("classify lookup --tuple ipv4 --rules n.json src=10.9.0.0 tcp").refused(&["n.json: 1 rule "]);
    let ran = folder
        .run("classify lookup --tuple ipv4 --lenient --rules n.json src=10.9.0.0 udp sport=1 --json")
        .ok();
    let line = &ran.json()[0];
    assert_eq!(
        (&line["action"], &line["uncertain_because"][0]["action"]),
        (&"drop".into(), &"accept".into())
    );
}

#[test]
fn flows_that_a_tuple_can_not_hold_are_no_other_flows() {
    let folder = Folder::new();
    for flow in ["priority=50,tcp6,tp_dst=22 actions=drop", "priority=50,udp6 actions=drop"] {
        folder.write("flows", format!("{flow}\npriority=1 actions=NORMAL\n"));
        folder
            .run("classify lookup --rules flows dl_type=0x0800 nw_proto=6")
            .refused(&["flows: 1 rule ", "line 1"]);
    }
    folder.write("flows", "priority=50,tcp6,tp_dst=22 actions=drop\npriority=1 actions=NORMAL\n");
    let ran = folder.run_with(
        "classify lookup --rules flows --lenient --json",
        b"dl_type=0x86dd\ndl_type=0x0800 nw_proto=6 tp_dst=22\n",
    );
    let lines = ran.ok().json();
    let told =
        |at: usize| (lines[at]["action"].clone(), lines[at]["uncertain_because"].as_array().unwrap().len());
    assert_eq!((told(0), told(1)), (("NORMAL".into(), 1), ("NORMAL".into(), 0)), "{lines:?}");
    // One choice of a conjunction alone decides nothing.
    folder.write(
        "choice",
        "priority=90,ip,nw_src=10.0.0.0/8 actions=conjunction(1,1/2)\npriority=1 actions=NORMAL\n",
    );
    assert_eq!(actions(&folder, "--rules choice", &["dl_type=0x0800 nw_src=10.0.0.1"]), ["NORMAL"]);
    // A priority of VLAN 0 is for tagged frames.
    folder.write("pcp", "priority=50,dl_vlan_pcp=0 actions=drop\npriority=1 actions=NORMAL\n");
    let found = actions(
        &folder,
        "--rules pcp",
        &["dl_vlan=0xffff dl_type=0x0800 nw_proto=17", "dl_vlan=5 dl_type=0x0800"],
    );
    assert_eq!(found, ["NORMAL", "drop"]);
    // Without table= a flow is of table 0.
    folder.write("tables", "priority=1 actions=output:1\ntable=1,priority=1 actions=output:2\n");
    assert_eq!(actions(&folder, "--rules tables --flow-table 1", &["dl_type=0x0800"]), ["output:2"]);
    assert_eq!(actions(&folder, "--rules tables", &["dl_type=0x0800"]), ["output:1"]);
}
