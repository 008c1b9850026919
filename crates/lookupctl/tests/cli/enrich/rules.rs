//! Rules that records are looked up in.

use super::Dice;
use crate::common::Folder;

#[test]
fn each_set_of_rules_has_its_own_options() {
    let folder = Folder::new();
    folder.write(
        "groups.json",
        r#"{"SecurityGroups": [
            {"GroupId": "sg-1", "IpPermissions": [{"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22,
                "IpRanges": [{"CidrIp": "10.0.0.0/8"}]}],
             "IpPermissionsEgress": [{"IpProtocol": "tcp", "FromPort": 53, "ToPort": 53,
                "IpRanges": [{"CidrIp": "10.0.0.0/8"}]}]},
            {"GroupId": "sg-2", "IpPermissions": [{"IpProtocol": "tcp", "FromPort": 80, "ToPort": 80,
                "IpRanges": [{"CidrIp": "10.0.0.0/8"}]}], "IpPermissionsEgress": []}]}"#,
    );
    let log = "src,dst,proto,sport,dport\n10.0.0.1,10.0.0.2,tcp,1,22\n10.0.0.1,10.0.0.2,tcp,1,53\n\
               10.0.0.1,10.0.0.2,tcp,1,80\n";
    let sets = "--rules a=groups.json --rules b=groups.json --rules c=groups.json --assume ct=new";
    let chosen = "--chain sg-1 --chain b=sg-2 --rule-table c=egress";
    let ran = folder.run_with(&format!("enrich {sets} {chosen}"), log.as_bytes()).ok();
    let verdicts: Vec<String> = ran
        .stdout
        .lines()
        .skip(1)
        .map(|line| {
            let cells: Vec<_> = line.split(',').collect();
            [5, 8, 11].map(|at| cells[at]).join(" ").to_lowercase()
        })
        .collect();
    let of = |allowed: usize| (0..3).map(|at| (at == allowed).to_string()).collect::<Vec<_>>().join(" ");
    let allow = ran.stdout.lines().nth(1).unwrap().split(',').nth(5).unwrap().to_lowercase();
    let are: Vec<String> = verdicts
        .iter()
        .map(|line| {
            line.split(' ').map(|verdict| (verdict == allow).to_string()).collect::<Vec<_>>().join(" ")
        })
        .collect();
    // Port 22 is let in by sg-1, 80 by sg-2, and 53 out by sg-1.
    assert_eq!(are, [of(0), of(2), of(1)], "{}", ran.stdout);
    let ran =
        folder.run_with(&format!("enrich {sets} --chain a=sg-1 --chain a=sg-2"), log.as_bytes()).status(2);
    assert!(ran.stderr.contains("--chain is given twice for a"), "{ran:?}");
    let ran = folder.run_with(&format!("enrich {sets} --chain a=sg-1"), log.as_bytes()).status(2);
    assert!(ran.stderr.contains("groups.json"), "{ran:?}");
}

pub(super) const UFW: &str = "*filter\n:INPUT DROP [0:0]\n\
    -A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT\n\
    -A INPUT -p tcp -m tcp --dport 443 -j ACCEPT\n\
    -A INPUT -p icmp -m icmp --icmp-type 8 -j ACCEPT\nCOMMIT\n";

#[test]
fn rules_of_every_format_of_records() {
    let folder = Folder::new();
    folder.write("fw", UFW);
    let left = "line 3 (a match of conntrack (--ctstate RELATED,ESTABLISHED)) could ACCEPT it";
    for (arguments, input, right) in [
        (
            "--assume ct=new",
            "src,dst,proto,sport,dport\n10.0.0.1,10.0.0.2,6,4000,443\n10.0.0.1,10.0.0.2,tcp,4000,22\n\
             10.0.0.1,10.0.0.2,UDP,1,443\n10.0.0.1,,tcp,1,443\n2001:db8::1,2001:db8::2,tcp,1,443\n",
            "src,dst,proto,sport,dport,fw,fw_rule,fw_uncertain_because\n\
             10.0.0.1,10.0.0.2,6,4000,443,ACCEPT,1,\n10.0.0.1,10.0.0.2,tcp,4000,22,DROP,3,\n\
             10.0.0.1,10.0.0.2,UDP,1,443,DROP,3,\n10.0.0.1,,tcp,1,443,,,\n2001:db8::1,2001:db8::2,tcp,1,443,,,\n",
        ),
        (
            "--lenient",
            "src,dst,proto,sport,dport\n10.0.0.1,10.0.0.2,tcp,4000,443\n10.0.0.1,10.0.0.2,tcp,4000,22\n\
             10.0.0.1,10.0.0.2,tcp,4000,http\n",
            &format!(
                "src,dst,proto,sport,dport,fw,fw_rule,fw_uncertain_because\n\
                 10.0.0.1,10.0.0.2,tcp,4000,443,ACCEPT,1,\n\
                 10.0.0.1,10.0.0.2,tcp,4000,22,DROP,3,\"{left}\"\n10.0.0.1,10.0.0.2,tcp,4000,http,,,\n"
            ),
        ),
        (
            "--assume ct=new --src a --dst b --proto c --dport d",
            "a,b,c,d\n10.0.0.1,10.0.0.2,tcp,\n10.0.0.1,10.0.0.2,icmp,\n10.0.0.1,10.0.0.2,gre,\n",
            "a,b,c,d,fw,fw_rule,fw_uncertain_because\n\
             10.0.0.1,10.0.0.2,tcp,,DROP,3,\"the record has no ports, which rule 1 tests\"\n\
             10.0.0.1,10.0.0.2,icmp,,DROP,3,\"the record has no ICMP type and code, which rule 2 tests\"\n\
             10.0.0.1,10.0.0.2,gre,,DROP,3,\n",
        ),
        (
            "--assume ct=new",
            "{\"src_ip\":\"10.0.0.1\",\"dest_ip\":\"10.0.0.2\",\"proto\":\"TCP\",\"src_port\":1,\"dest_port\":443}\n\
             {\"src_ip\":\"10.0.0.1\",\"dest_ip\":\"10.0.0.2\",\"proto\":\"ICMP\",\"icmp_type\":8,\"icmp_code\":0}\n",
            "{\"src_ip\":\"10.0.0.1\",\"dest_ip\":\"10.0.0.2\",\"proto\":\"TCP\",\"src_port\":1,\"dest_port\":443,\
             \"fw\":\"ACCEPT\",\"fw_rule\":\"1\",\"fw_uncertain_because\":null}\n\
             {\"src_ip\":\"10.0.0.1\",\"dest_ip\":\"10.0.0.2\",\"proto\":\"ICMP\",\"icmp_type\":8,\"icmp_code\":0,\
             \"fw\":\"ACCEPT\",\"fw_rule\":\"2\",\"fw_uncertain_because\":null}\n",
        ),
        (
            "--assume ct=new",
            "#separator \\x09\n#unset_field\t-\n#path\tconn\n\
             #fields\tid.orig_h\tid.orig_p\tid.resp_h\tid.resp_p\tproto\n\
             #types\taddr\tport\taddr\tport\tenum\n10.0.0.1\t1\t10.0.0.2\t443\ttcp\n10.0.0.1\t8\t10.0.0.2\t0\ticmp\n",
            "#separator \\x09\n#unset_field\t-\n#path\tconn\n\
             #fields\tid.orig_h\tid.orig_p\tid.resp_h\tid.resp_p\tproto\tfw\tfw_rule\tfw_uncertain_because\n\
             #types\taddr\tport\taddr\tport\tenum\tstring\tstring\tstring\n\
             10.0.0.1\t1\t10.0.0.2\t443\ttcp\tACCEPT\t1\t-\n\
             10.0.0.1\t8\t10.0.0.2\t0\ticmp\tDROP\t3\tthe record has no ICMP type and code, which rule 2 tests\n",
        ),
        (
            "--assume ct=new",
            "ts,te,td,sa,da,sp,dp,pr\n1,2,3,10.0.0.1,10.0.0.2,1,443,TCP\n",
            "ts,te,td,sa,da,sp,dp,pr,fw,fw_rule,fw_uncertain_because\n1,2,3,10.0.0.1,10.0.0.2,1,443,TCP,ACCEPT,1,\n",
        ),
    ] {
        let ran = folder.run_with(&format!("enrich --rules fw=fw {arguments}"), input.as_bytes()).ok();
        assert_eq!(ran.stdout, right);
    }
    let wrong = b"src,dst,proto,sport,dport\n10.0.0.1,10.0.0.2,tcp,1,http\n";
    let ran = folder.run_with("enrich --rules fw=fw --assume ct=new", wrong).status(2);
    assert!(ran.stderr.contains("line 2: dport \"http\" is no port"), "{ran:?}");
}

const NFT: &str = r#"{"nftables": [
    {"table": {"family": "ip", "name": "a", "handle": 1}}, {"table": {"family": "ip", "name": "b", "handle": 2}},
    {"chain": {"family": "ip", "table": "a", "name": "in", "type": "filter", "hook": "input", "prio": 0, "policy": "drop"}},
    {"chain": {"family": "ip", "table": "b", "name": "in", "type": "filter", "hook": "input", "prio": 0, "policy": "accept"}},
    {"rule": {"family": "ip", "table": "a", "chain": "in", "expr": [{"match": {"op": "==",
        "left": {"payload": {"protocol": "tcp", "field": "dport"}}, "right": 443}}, {"accept": null}]}},
    {"rule": {"family": "ip", "table": "b", "chain": "in", "expr": [{"match": {"op": "==",
        "left": {"payload": {"protocol": "tcp", "field": "dport"}}, "right": 443}}, {"drop": null}]}}]}"#;

#[test]
fn rules_of_every_format() {
    let folder = Folder::new();
    folder.write("nft", NFT);
    folder.write(
        "flows",
        "NXST_FLOW reply (xid=0x4):\n \
         cookie=0x0, duration=3s, table=0, n_packets=0, priority=100,tcp,nw_dst=10.0.0.0/8,tp_dst=443 actions=output:2\n \
         cookie=0x0, duration=3s, table=0, n_packets=0, priority=50,arp actions=NORMAL\n \
         cookie=0x0, duration=3s, table=0, n_packets=0, priority=10,ip actions=drop\n \
         cookie=0x0, duration=3s, table=1, n_packets=0, priority=10,udp actions=output:7\n",
    );
    folder.write("acl", "@10.0.0.0/8\t0.0.0.0/0\t0 : 65535\t443 : 443\t0x06/0xFF\n");
    folder.write("fw", UFW.replace("*filter", "*raw"));
    let records =
        b"src,dst,proto,sport,dport\n10.0.0.1,10.0.0.2,tcp,4000,443\n10.0.0.1,10.0.0.2,udp,4000,443\n";
    for (rules, right) in [
        ("nft --rule-table a", ["accept,1", "drop,2"]),
        ("nft --rule-table b", ["drop,1", "accept,2"]),
        ("flows", ["output:2,1", "drop,2"]),
        ("flows --tuple ipv4", ["output:2,1", "drop,2"]),
        ("flows --flow-table 1", [",", "output:7,1"]),
        ("acl", ["0,1", ","]),
        ("fw --assume ct=new --rule-table raw", ["ACCEPT,1", "DROP,3"]),
    ] {
        let ran = folder.run_with(&format!("enrich --rules r={rules}"), records).ok();
        let answers: Vec<_> =
            ran.stdout.lines().skip(1).map(|line| line.splitn(6, ',').last().unwrap()).collect();
        assert_eq!(answers, right.map(|answer| format!("{answer},")), "{rules}: {}", ran.stderr);
    }
    folder
        .run_with("enrich --rules r=nft", records)
        .refused(&["several chains could be meant: ip a in, ip b in"]);
}

#[test]
fn rules_answer_as_classify_does() {
    let folder = Folder::new();
    let mut dice = Dice(7);
    let mut rules = String::from("*filter\n:INPUT DROP [0:0]\n");
    for _ in 0..60 {
        let state = dice.pick(&["", "", "", " -m conntrack --ctstate NEW", " -m mark --mark 1"]);
        let (src, len) = (dice.below(4), 8 + dice.below(25));
        let (proto, dport) = (dice.pick(&["tcp", "udp"]), dice.below(6));
        let action = dice.pick(&["ACCEPT", "DROP"]);
        rules += &format!("-A INPUT -s 10.0.0.{src}/{len} -p {proto}{state} --dport {dport} -j {action}\n");
    }
    folder.write("fw", &(rules + "COMMIT\n"));
    let (mut records, mut tuples) = (String::from("src,dst,proto,sport,dport\n"), String::new());
    for _ in 0..500 {
        let (src, proto, dport) = (dice.below(6), dice.pick(&["tcp", "udp", "gre"]), dice.below(8));
        let dport = if proto == "gre" { 0 } else { dport };
        records += &format!("10.0.0.{src},192.0.2.1,{proto},0,{dport}\n");
        tuples += &format!("src=10.0.0.{src} dst=192.0.2.1 proto={proto} dport={dport}\n");
    }
    folder.run("classify build --rules fw --lenient -o fw.img").ok();
    let right = folder.run_with("classify lookup --rules fw --lenient --json", tuples.as_bytes()).ok().json();
    for rules in ["fw --lenient", "fw.img"] {
        let ran =
            folder.run_with(&format!("enrich --rules fw={rules} --block 1000"), records.as_bytes()).ok();
        let lines: Vec<_> = ran.stdout.lines().skip(1).collect();
        let mut uncertain = 0;
        assert_eq!(lines.len(), right.len());
        for (line, right) in lines.iter().zip(&right) {
            let cells: Vec<_> = line.splitn(8, ',').collect();
            let rule = right["rule"].as_u64().map(|rule| rule.to_string()).unwrap_or_default();
            assert_eq!(
                (cells[5], cells[6]),
                (right["action"].as_str().unwrap_or_default(), &*rule),
                "{line}"
            );
            let because = right["uncertain_because"].as_array().unwrap();
            assert_eq!(because.is_empty(), cells[7].is_empty(), "{line} {right}");
            for one in because.iter().take(3) {
                assert!(cells[7].contains(&format!("line {} (", one["line"])), "{line} {right}");
            }
            uncertain += usize::from(!because.is_empty());
        }
        assert!((20..450).contains(&uncertain), "{uncertain}");
    }
}
