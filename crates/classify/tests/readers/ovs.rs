use wirespeed_classify::oracle::{Oracle, Right};

use wirespeed_classify::read::{
    Assumption, Assumptions, Effect, Place, ReadError, ReadOptions, RuleFile, RuleFormat, RuleReport,
    Uncertain, read_rules_from,
};
use wirespeed_classify::{Ipv4Tuple, Ipv6Tuple, OpenFlowTuple, Rule, RuleNumber, Tuple};

fn read<T: Tuple>(text: &str, options: &ReadOptions) -> Result<(RuleFile<T>, RuleReport), ReadError> {
    let options = ReadOptions { format: Some(RuleFormat::Ovs), ..options.clone() };
    read_rules_from(text.as_bytes(), "flows", &options)
}

fn flows<T: Tuple>(text: &str) -> (RuleFile<T>, RuleReport) {
    read(text, &ReadOptions::default()).expect("flows")
}

/// The rules in words with what their actions are called.
fn words<T: Tuple>(file: &RuleFile<T>) -> Vec<String> {
    let word = |(number, rule): (RuleNumber, &Rule<T>)| {
        let text = rule.to_string();
        let (rest, _) = text.rsplit_once(" action=").expect("all rules have one");
        format!("{rest} {}", file.action(number.get()).unwrap_or_default())
    };
    file.rules.sorted().into_iter().map(word).collect()
}

/// The uncertain rules in words.
fn doubts<T: Tuple>(file: &RuleFile<T>) -> Vec<String> {
    let word = |one: &Uncertain<T>| {
        let text = one.rule.to_string();
        let (rest, _) = text.rsplit_once(" action=").expect("all rules have one");
        let action = one.action().and_then(|action| file.actions.get(usize::try_from(action).ok()?));
        let action = action.map_or_else(|| format!("{:?}", one.effect), Clone::clone);
        format!("{}: {rest} {action}: {}", one.why.place.line, one.why.why)
    };
    file.doubts.uncertain.iter().map(word).collect()
}

fn answer<T: Tuple>(file: &RuleFile<T>, tuple: &str) -> String {
    let tuple = tuple.parse::<T>().expect(tuple);
    let rule = Oracle::of(&file.rules).right(&tuple);
    let doubts = if file.doubts(&tuple, rule).next().is_some() { "?" } else { "" };
    format!("{}{doubts}", file.action(rule).unwrap_or("-"))
}

#[test]
fn only_the_type_of_ipv6_is_in_an_openflow_tuple() {
    let (file, report) = flows::<OpenFlowTuple>(
        "priority=9,tcp6,tp_dst=22 actions=drop\npriority=8,ipv6 actions=output:1\npriority=7,rarp,arp_op=3 actions=output:2\npriority=1,actions=NORMAL\n",
    );
    assert_eq!(words(&file), ["dl_type=0x86dd priority=8 output:1", "priority=1 NORMAL"]);
    assert_eq!(
        doubts(&file),
        [
            "1: dl_type=0x86dd priority=9 drop: no field of a tuple (nw_proto), no field of a tuple (tp_dst)",
            "3: dl_type=0x8035 priority=7 output:2: no field of a tuple (nw_proto)"
        ]
    );
    assert_eq!(report.left_out.len(), 2);
    assert_eq!(answer(&file, "dl_type=0x86dd"), "output:1?");
    assert_eq!(answer(&file, "dl_type=0x0800"), "NORMAL");
}

#[test]
fn five_tuples_take_what_is_of_their_protocol() {
    let text = "priority=5,tcp,nw_src=10.0.0.1,tp_dst=80 actions=a\n\
        priority=5,tcp6,ipv6_src=2001:db8::/32,tp_dst=80 actions=b\n\
        priority=4,arp,arp_spa=10.0.0.1 actions=c\n\
        priority=4,udp,in_port=1 actions=d\n\
        priority=4,ip,nw_tos=8 actions=e\n\
        priority=3,icmp6,icmp_type=128,icmpv6_code=0 actions=f\n\
        priority=3,dl_vlan=5 actions=g\n\
        priority=0 actions=h\n";
    let (file, report) = flows::<Ipv4Tuple>(text);
    assert_eq!(words(&file), ["src=10.0.0.1 dport=80 proto=tcp priority=5 a", "priority=0 h"]);
    assert_eq!(
        doubts(&file),
        [
            "4: proto=udp priority=4 d: no field of a tuple (in_port)",
            "5: priority=4 e: no field of a tuple (nw_tos)",
            "7: priority=3 g: no field of a tuple (dl_vlan)",
        ]
    );
    assert_eq!((report.elsewhere, report.left_out.len()), (3, 3));
    let (file, report) = flows::<Ipv6Tuple>(text);
    assert_eq!(
        words(&file),
        [
            "src=2001:db8::/32 dport=80 proto=tcp priority=5 b",
            "sport=128 dport=0 proto=icmpv6 priority=3 f",
            "priority=0 h"
        ]
    );
    assert_eq!((report.elsewhere, report.left_out.len()), (4, 1));
}

#[test]
fn tags() {
    let (file, _) = flows::<OpenFlowTuple>(
        "priority=9,dl_vlan_pcp=0 actions=a\npriority=8,vlan_tci=0x0000/0x0fff actions=b\npriority=7,dl_vlan=0xffff actions=c\n\
         priority=6,vlan_tci=0x1000/0x1000 actions=d\n",
    );
    for (tuple, wanted) in [
        ("dl_vlan=65535", "b"),
        ("dl_vlan=0 dl_vlan_pcp=0", "a"),
        ("dl_vlan=0 dl_vlan_pcp=1", "b"),
        ("dl_vlan=9 dl_vlan_pcp=0", "a"),
        ("dl_vlan=9 dl_vlan_pcp=1", "d"),
    ] {
        assert_eq!(answer(&file, tuple), wanted, "{tuple}");
    }
    let (file, report) = flows::<OpenFlowTuple>("dl_type=0x8100 actions=a\n");
    assert_eq!((file.rules.len(), report.left_out.len()), (0, 1));
}

#[test]
fn tables() {
    let text = "NXST_FLOW reply (xid=0x4): flags=[more]\n priority=1 actions=zero\n table=1, priority=2,ip actions=one\n table=main, tcp actions=named\n";
    let (file, report) = flows::<OpenFlowTuple>(text);
    assert_eq!((words(&file), report.elsewhere), (vec!["priority=1 zero".to_owned()], 1));
    assert_eq!(answer(&file, "dl_type=0x0800 tcp"), "zero?");
    let (file, report) =
        read::<OpenFlowTuple>(text, &ReadOptions { table: 1, ..ReadOptions::default() }).expect("flows");
    assert_eq!((words(&file), report.elsewhere), (vec!["dl_type=0x0800 priority=2 one".to_owned()], 1));
}

#[test]
fn a_conjunction_is_its_choices() {
    let text = "priority=9,ip,nw_src=10.0.0.1 actions=conjunction(7,1/2)\n\
        priority=9,ip,nw_src=10.0.0.4 actions=conjunction(7,1/2),conjunction(8,1/2)\n\
        priority=9,tcp,tp_dst=80 actions=conjunction(7,2/2)\n\
        priority=9,udp,tp_dst=53 actions=conjunction(7,2/2)\n\
        priority=9,icmp actions=conjunction(8,2/2)\n\
        priority=9,conj_id=7,ip actions=met\npriority=20,conj_id=8 actions=pinged\n\
        priority=10,tcp,nw_src=10.0.0.4 actions=before\npriority=1,ip actions=NORMAL\n";
    let (file, report) = flows::<OpenFlowTuple>(text);
    assert!(report.left_out.is_empty(), "{report}");
    for (tuple, wanted) in [
        ("tcp nw_src=10.0.0.1 tp_dst=80", "met"),
        ("udp nw_src=10.0.0.1 tp_dst=53", "met"),
        ("udp nw_src=10.0.0.4 tp_dst=53", "met"),
        ("tcp nw_src=10.0.0.4 tp_dst=80", "before"),
        ("tcp nw_src=10.0.0.1 tp_dst=81", "NORMAL"),
        ("tcp nw_src=10.0.0.2 tp_dst=80", "NORMAL"),
        ("icmp nw_src=10.0.0.1", "NORMAL"),
        ("icmp nw_src=10.0.0.4", "pinged"),
    ] {
        assert_eq!(answer(&file, &format!("dl_type=0x0800 {tuple}")), wanted, "{tuple}");
    }
}

#[test]
fn a_conjunction_that_cant_be_expressed_is_left_out_whole() {
    let text = |more: &str| {
        format!(
            "priority=9,ip,nw_src=10.0.0.1 actions=conjunction(7,1/2)\npriority=9,tcp actions=conjunction(7,2/2)\n\
             priority=9,conj_id=7 actions=met\npriority=1,ip actions=NORMAL\n{more}\n"
        )
    };
    let both = "dl_type=0x0800 tcp nw_src=10.0.0.1";
    assert_eq!(answer(&flows::<OpenFlowTuple>(&text("")).0, both), "met");
    for more in [
        "priority=9,ct_state=+est,ip actions=conjunction(7,1/2)",
        "priority=8,udp actions=conjunction(7,2/2)",
        "priority=9,udp actions=conjunction(7,2/3)",
        "priority=8,conj_id=7 actions=drop",
        "priority=8,conj_id=9 actions=drop",
        "priority=9,reg0=1,conj_id=7 actions=drop",
    ] {
        let (file, report) = flows::<OpenFlowTuple>(&text(more));
        assert_eq!(report.left_out.len(), 4, "{more}: {report}");
        assert_eq!(answer(&file, both), "NORMAL?", "{more}");
        assert_eq!(
            answer(&file, "dl_type=0x0800 icmp"),
            if more.contains("conj_id=9") || more.contains("ct_state") { "NORMAL?" } else { "NORMAL" }
        );
    }
    // A conjunction that some packets meet in vain hides those of lower priorities.
    let hides = "priority=5,ip actions=conjunction(1,1/2)\npriority=5,tcp actions=conjunction(1,2/2)\npriority=5,conj_id=1 actions=low";
    assert!(flows::<OpenFlowTuple>(&text(hides)).1.left_out.is_empty());
    let vain = text(hides).replace("conj_id=7", "conj_id=7,udp");
    assert_eq!(flows::<OpenFlowTuple>(&vain).1.left_out.len(), 6);
    // Too many choices.
    let many = |dimension: usize| {
        (0..300)
            .map(|n| {
                format!(
                    "priority=9,ip,nw_src=10.{dimension}.{}.{} actions=conjunction(7,{dimension}/2)\n",
                    n / 256,
                    n % 256
                )
            })
            .collect::<String>()
    };
    let (_, report) =
        flows::<OpenFlowTuple>(&format!("{}{}priority=9,conj_id=7 actions=met\n", many(1), many(2)));
    assert_eq!(report.left_out.len(), 601);
    assert!(report.left_out[0].why.contains("over 90000 rules, where 65536 are allowed"), "{report}");
}

#[test]
fn what_is_not_understood_is_left_out_or_refused() {
    for (flow, wanted) in [
        ("priority=5,tp_dst=80 actions=drop", "tp_dst without the protocol that has it"),
        ("nw_src=10.0.0.1 actions=drop", "nw_src without the protocol that has it"),
        ("ip,tp_src=80 actions=drop", "tp_src without the protocol that has it"),
        ("udp,tcp_src=80 actions=drop", "tcp_src without the protocol that has it"),
        ("ip,nw_frag=later actions=drop", "no field of a tuple (nw_frag)"),
        ("tcp,tcp_flags=+syn actions=drop", "no field of a tuple (tcp_flags)"),
        ("tcp_flags=+syn actions=drop", "tcp_flags without the protocol that has it"),
        ("ip_frag=no actions=drop", "ip_frag without the protocol that has it"),
        (
            "reg0=1,metadata=5 actions=drop",
            "no field of a tuple but what other flows write (reg0), no field of a tuple but what other flows write (metadata)",
        ),
        ("ip,nw_src!=10.0.0.1 actions=drop", "no field of a tuple (nw_src!)"),
        ("quic actions=drop", "no field of a tuple (quic)"),
        ("in_port=eth0 actions=drop", "a port by its name (eth0)"),
        ("ip actions=conjunction(1,1/2),drop", "a conjunction among other actions"),
        ("conj_id=0 actions=drop", "a conj_id that isn't of a conjunction"),
        ("conj_id=5 actions=drop", "a conj_id without a conjunction (5)"),
    ] {
        let (file, report) = flows::<OpenFlowTuple>(flow);
        assert_eq!((file.rules.len(), report.left_out.len()), (0, 1), "{flow}: {report}");
        assert_eq!(report.left_out[0].why, wanted, "{flow}");
        assert_eq!(file.doubts.uncertain.len(), 1, "{flow}");
    }
    for flow in [
        "tcp,tp_src=1,tp_src=2 actions=drop",
        "tcp,udp actions=drop",
        "priority=1,priority=2 actions=drop",
        "table=0,table=1 actions=drop",
        "priority=65536 actions=drop",
        "priority=010 actions=drop",
        "tcp,tp_dst=010 actions=drop",
        "tcp,tp_dst=80-90 actions=drop",
        "ip,nw_proto=tcp actions=drop",
        "ip,nw_tos=7 actions=drop",
        "dl_vlan=4096 actions=drop",
        "ip actionsdrop",
        "ct_state=+foo actions=drop",
        "ct_state=+trk,ct_state=+est actions=drop",
        "ip,ip_frag=no,nw_frag=yes actions=drop",
        "ct_zone=70000 actions=drop",
    ] {
        let error = read::<OpenFlowTuple>(flow, &ReadOptions::default());
        assert!(
            matches!(error, Err(ReadError::Bad { place: Place { line: 1, .. }, .. })),
            "{flow}: {error:?}"
        );
        let lenient = ReadOptions { lenient: true, ..ReadOptions::default() };
        let (file, report) = read::<OpenFlowTuple>(flow, &lenient).expect("lenient");
        assert_eq!((file.rules.len(), report.left_out.len()), (0, 1), "{flow}");
        assert_eq!(file.doubts.uncertain[0].effect, Effect::Any, "{flow}");
    }
    let mixed = "ip actions=drop\nip,nw_src=10.0.0.1\n";
    assert!(read::<OpenFlowTuple>(mixed, &ReadOptions::default()).is_err());
}

/// Flows of a table behind a `ct` action, and the states that decide them.
const STATEFUL: &str = "cookie=0x0, table=0, priority=9,ct_state=+est+trk,tcp actions=output:1\n\
    # the next line is 3\n\
    priority=8,ct_state=+new+trk,tcp,tp_dst=22,ct_mark=0x1/0x1 actions=ct(commit),output:2\n\
    priority=7,ct_state=-new+trk,ct_zone=5 actions=drop\n\
    priority=6,in_port=eth0,udp actions=output:3\n\
    priority=1 actions=NORMAL\n";

#[test]
fn assumptions_decide_flows() {
    let under = |assume: &str| {
        let assume = assume.split_whitespace().map(|one| one.parse().expect("an assumption"));
        let assume = Assumptions::new(assume).expect("assumptions");
        let options = ReadOptions { assume, ..ReadOptions::default() };
        read::<Ipv4Tuple>(STATEFUL, &options).expect("flows")
    };
    for (assume, wanted, used) in [
        (
            "ct=established ct-zone=5 in=eth1 mark=3",
            &["proto=tcp priority=9 output:1", "priority=7 drop", "priority=1 NORMAL"][..],
            "ct-zone=5 ct=established in=eth1",
        ),
        (
            "ct=new ct-mark=3 in=eth0",
            &[
                "dport=22 proto=tcp priority=8 ct(commit),output:2",
                "proto=udp priority=6 output:3",
                "priority=1 NORMAL",
            ],
            "ct-mark=3 ct=new in=eth0",
        ),
        ("ct=new ct-mark=2 in=eth1", &["priority=1 NORMAL"], "ct-mark=2 ct=new in=eth1"),
    ] {
        let (file, report) = under(assume);
        assert_eq!(words(&file), wanted, "{assume}");
        assert!(file.doubts.is_empty() && report.left_out.is_empty(), "{assume}: {report}");
        let assumed = |all: &[Assumption]| {
            let mut all: Vec<_> = all.iter().map(ToString::to_string).collect();
            all.sort();
            all.join(" ")
        };
        assert_eq!((assumed(&report.assumed), assumed(&file.doubts.assumed)), (used.into(), used.into()));
        assert!(report.would_help.is_empty() && report.elsewhere == 0, "{assume}: {report}");
    }
    // What isn't assumed stays in doubt, and is said to help.
    let (file, report) = under("ct=established in=eth1");
    assert_eq!(doubts(&file), ["4: priority=7 drop: no field of a tuple (ct_zone)"]);
    assert_eq!(report.would_help.iter().map(|key| key.as_str()).collect::<Vec<_>>(), ["ct-zone"]);
    let (file, report) = under("");
    assert_eq!((file.rules.len(), report.left_out.len()), (1, 4));
    assert_eq!(
        report.would_help.iter().map(|key| key.as_str()).collect::<Vec<_>>(),
        ["ct", "in", "ct-mark", "ct-zone"]
    );
    // Neither flow is of such tuples, whatever is assumed.
    let options = ReadOptions {
        assume: Assumptions::new(["ct=new".parse().expect("one")]).expect("one"),
        ..ReadOptions::default()
    };
    let (file, report) =
        read::<Ipv4Tuple>("ipv6,ct_state=+new actions=drop\nip actions=drop\n", &options).expect("flows");
    assert_eq!((report.elsewhere, file.doubts.assumed.len()), (1, 0));
}

#[test]
fn assumptions_decide_flows_of_conjunctions() {
    let text = "priority=9,ct_state=+est,ip actions=conjunction(7,1/2)\n\
        priority=9,ip,nw_src=10.0.0.0/8 actions=conjunction(7,2/2)\n\
        priority=9,conj_id=7,ip actions=output:5\n\
        priority=1 actions=NORMAL\n";
    let under = |assume: &str| {
        let assume = Assumptions::new([assume.parse().expect("one")]).expect("one");
        read::<Ipv4Tuple>(text, &ReadOptions { assume, ..ReadOptions::default() }).expect("flows")
    };
    let (file, report) = under("ct=established");
    assert_eq!(words(&file), ["priority=1 NORMAL", "src=10.0.0.0/8 priority=9 output:5"]);
    assert!(report.left_out.is_empty(), "{report}");
    // The rule comes after that of line 4, which no conjunction is of.
    let lines: Vec<_> = (1..=2)
        .map(|number| file.lines.of(number).and_then(|line| line.place.map(|place| place.line)))
        .collect();
    assert_eq!(lines, [Some(4), Some(3)]);
    let (file, report) = under("ct=new");
    assert_eq!(words(&file), ["priority=1 NORMAL"]);
    assert!(report.left_out.is_empty() && file.doubts.is_empty(), "{report}");
    assert_eq!(under("mark=1").1.left_out.len(), 3);
}

#[test]
fn rules_tell_the_lines_of_their_flows() {
    let (file, _) = flows::<OpenFlowTuple>(
        "NXST_FLOW reply (xid=0x4):\n cookie=0x0, table=0, ip,vlan_tci=0x0000/0x0fff actions=drop\n\n arp actions=NORMAL # all\n",
    );
    let of = |number| file.lines.of(number).map(|line| (line.place.map(|place| place.line), &*line.text));
    // Frames with a tag and without meet the first.
    assert_eq!(of(1), Some((Some(2), "cookie=0x0, table=0, ip,vlan_tci=0x0000/0x0fff actions=drop")));
    assert_eq!(of(2), of(1));
    assert_eq!(of(3), Some((Some(4), "arp actions=NORMAL")));
}

#[test]
fn many_actions_take_no_long_time() {
    let text: String = (0..50_000)
        .map(|n| format!("ip,nw_src=10.1.{}.{} actions=output:{n}\n", n / 256 % 256, n % 256))
        .collect();
    let (file, _) = flows::<Ipv4Tuple>(&text);
    assert_eq!((file.rules.len(), file.actions.len()), (50_000, 50_000));
}
