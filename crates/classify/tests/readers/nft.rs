use std::io::Write as _;

use wirespeed_classify::oracle::{Oracle, Right};
use wirespeed_classify::read::{
    Assumptions, ReadError, ReadOptions, RuleFile, RuleFormat, RuleReport, read_rules_from,
};
use wirespeed_classify::{Ipv4Tuple, Ipv6Tuple, OpenFlowTuple, Tuple};

/// The most bytes of an element.
const LONGEST_ELEMENT: usize = 16 << 20;

/// A rule set of elements.
fn list(elements: &[String]) -> String {
    format!(r#"{{"nftables":[{{"metainfo":{{"json_schema_version":1}}}},{}]}}"#, elements.join(","))
}

fn chain(family: &str, name: &str, policy: Option<&str>) -> String {
    let base = policy.map_or_else(String::new, |policy| {
        format!(r#","type":"filter","hook":"input","prio":0,"policy":"{policy}""#)
    });
    format!(r#"{{"chain":{{"family":"{family}","table":"t","name":"{name}"{base}}}}}"#)
}

fn rule(family: &str, chain: &str, expr: &str) -> String {
    format!(
        r#"{{"rule":{{"family":"{family}","table":"t","chain":"{chain}","expr":[{}]}}}}"#,
        expr.replace('\'', "\"")
    )
}

/// A match of a field of a header, both of it and of what is wanted by their JSON with single quotes.
fn of(protocol: &str, field: &str, op: &str, right: &str) -> String {
    format!(
        "{{'match':{{'op':'{op}','left':{{'payload':{{'protocol':'{protocol}','field':'{field}'}}}},'right':{right}}}}}"
    )
}

fn meta(key: &str, right: &str) -> String {
    format!("{{'match':{{'op':'==','left':{{'meta':{{'key':'{key}'}}}},'right':{right}}}}}")
}

fn read<T: Tuple>(text: &str, options: &ReadOptions) -> Result<(RuleFile<T>, RuleReport), ReadError> {
    let options = ReadOptions { format: Some(RuleFormat::Nft), ..options.clone() };
    read_rules_from(text.as_bytes(), "list", &options)
}

fn under(assume: &[&str]) -> ReadOptions {
    let assume = Assumptions::new(assume.iter().map(|text| text.parse().expect("an assumption")));
    ReadOptions { assume: assume.expect("no two of a key"), ..ReadOptions::default() }
}

/// The chain `in` of one rule before a policy of dropping, in a table of both families, with another chain
/// that it may jump to.
fn one<T: Tuple>(expr: &str, options: &ReadOptions) -> RuleFile<T> {
    let elements = [
        chain("inet", "other", None),
        chain("inet", "in", Some("drop")),
        rule("inet", "other", &format!("{},{{'accept':null}}", of("udp", "dport", "==", "53"))),
        rule("inet", "in", expr),
    ];
    read(&list(&elements), options).unwrap_or_else(|error| panic!("{expr}: {error}")).0
}

/// The verdict on a tuple, with a question mark where it is in doubt.
fn verdict<T: Tuple>(file: &RuleFile<T>, tuple: &str) -> String {
    let tuple = tuple.parse::<T>().expect(tuple);
    let rule = Oracle::of(&file.rules).right(&tuple);
    let doubts = if file.doubts(&tuple, rule).next().is_some() { "?" } else { "" };
    format!("{}{doubts}", file.action(rule).unwrap_or("-"))
}

#[test]
fn rules_of_the_other_family_are_counted() {
    let set = |name: &str, kind: &str, of: &str| {
        format!(r#"{{"set":{{"family":"inet","table":"t","name":"{name}","type":"{kind}","elem":[{of}]}}}}"#)
    };
    let six = [
        of("ip6", "saddr", "==", "'@six'"),
        of("icmpv6", "type", "!=", "1"),
        "{'match':{'op':'==','left':{'meta':{'key':'nfproto'}},'right':'ipv6'}}".to_owned(),
        "{'vmap':{'key':{'concat':[{'payload':{'protocol':'ip6','field':'daddr'}}]},'data':{'set':[]}}}"
            .to_owned(),
    ];
    let both = [of("ip", "saddr", "==", "'@none'"), of("tcp", "dport", "==", "22")];
    let mut elements = vec![
        chain("inet", "in", Some("drop")),
        set("six", "ipv6_addr", r#""2001:db8::1""#),
        set("none", "ipv4_addr", ""),
    ];
    elements
        .extend(six.iter().chain(&both).map(|one| rule("inet", "in", &format!("{one},{{'accept':null}}"))));
    let v4 = read::<Ipv4Tuple>(&list(&elements), &ReadOptions::default()).expect("a chain").1;
    let v6 = read::<Ipv6Tuple>(&list(&elements), &ReadOptions::default()).expect("a chain").1;
    // An empty set is of its family.
    assert_eq!((v4.other_family, v6.other_family, v4.elsewhere), (4, 1, 0));
}

#[test]
fn the_chain_is_of_the_tuples_family() {
    let elements = [
        r#"{"chain":{"family":"ip","table":"nat","name":"pre","type":"nat","hook":"prerouting","prio":-100,"policy":"accept"}}"#.to_owned(),
        chain("ip6", "in", Some("accept")),
        chain("ip", "in", Some("drop")),
        rule("ip6", "in", &format!("{},{{'accept':null}}", of("tcp", "dport", "==", "23"))),
        rule("ip", "in", &format!("{},{{'accept':null}}", of("tcp", "dport", "==", "22"))),
    ];
    let (v4, report) = read::<Ipv4Tuple>(&list(&elements), &ReadOptions::default()).expect("a chain");
    assert_eq!(["tcp dport=22", "tcp dport=23", "udp"].map(|t| verdict(&v4, t)), ["accept", "drop", "drop"]);
    assert_eq!((report.elsewhere, report.other_family, report.records), (0, 1, 2));
    let v6 = read::<Ipv6Tuple>(&list(&elements), &ReadOptions::default()).expect("a chain").0;
    assert_eq!(["tcp dport=23", "tcp dport=22"].map(|t| verdict(&v6, t)), ["accept", "accept"]);
    // As frames: only those of the family.
    let frames = read::<OpenFlowTuple>(&list(&elements), &ReadOptions::default()).expect("a chain").0;
    assert_eq!(verdict(&frames, "dl_type=0x0800 nw_proto=6 tp_dst=22"), "accept");
    assert_eq!(verdict(&frames, "dl_type=0x0806 nw_proto=6"), "-");
}

#[test]
fn ports_by_the_names_of_services() {
    let set = "{'set':['ssh',{'range':['ftp-data','ftp']}]}";
    for (expr, tuples, wanted) in [
        (of("tcp", "dport", "==", "'http'"), ["tcp dport=80", "tcp dport=81"], ["accept", "drop"]),
        (of("tcp", "dport", "==", set), ["tcp dport=20", "tcp dport=22"], ["accept", "accept"]),
        // nft takes a name for its port in any protocol.
        (of("udp", "dport", "==", "'shell'"), ["udp dport=514", "udp dport=22"], ["accept", "drop"]),
        (of("th", "sport", "!=", "'ntp'"), ["udp sport=123", "udp sport=124"], ["drop", "accept"]),
        (of("tcp", "dport", "==", "'ours'"), ["tcp dport=1", "udp dport=1"], ["drop?", "drop"]),
    ] {
        let file = one::<Ipv4Tuple>(&format!("{expr},{{'accept':null}}"), &ReadOptions::default());
        assert_eq!(tuples.map(|tuple| verdict(&file, tuple)), wanted, "{expr}");
    }
}

#[test]
fn a_chain_is_chosen_by_name_table_family_or_hook() {
    let elements = [
        chain("ip", "in", Some("drop")),
        chain("inet", "in", Some("accept")),
        chain("inet", "user", None),
        chain("ip6", "six", Some("accept")),
    ];
    let asked = |chain: Option<&str>, table: Option<&str>| {
        let options = ReadOptions {
            chain: chain.map(str::to_owned),
            table_name: table.map(str::to_owned),
            ..ReadOptions::default()
        };
        match read::<Ipv4Tuple>(&list(&elements), &options) {
            Ok((file, _)) => verdict(&file, "tcp"),
            Err(ReadError::Choice { why, .. }) => why,
            Err(error) => panic!("{error}"),
        }
    };
    let several = "several chains could be meant: ip t in, inet t in";
    for (chain, table, wanted) in [
        (None, None, several),
        (Some("in"), None, several),
        (Some("INPUT"), None, several),
        (Some("t in"), None, several),
        (Some("ip t in"), None, "drop"),
        (Some("in"), Some("inet t"), "accept"),
        (Some("Input"), Some("ip t"), "drop"),
        (Some("user"), None, "return"),
        (Some("six"), None, "no such chain: there are ip t in, inet t in, inet t user"),
        (Some("t in"), Some("t"), "the chain and the table both name a table"),
    ] {
        assert_eq!(asked(chain, table), wanted, "{chain:?} {table:?}");
    }
}

#[test]
fn matches() {
    let accept = |left: String| format!("{left},{{'accept':null}}");
    let set = |key: &str| {
        format!(
            "{{'match':{{'op':'==','left':{key},'right':{{'set':[{{'concat':['10.0.0.1',80]}},{{'concat':[{{'prefix':{{'addr':'10.1.0.0','len':16}}}},{{'range':[1,9]}}]}}]}}}}}}"
        )
    };
    let pair = "{'concat':[{'payload':{'protocol':'ip','field':'saddr'}},{'payload':{'protocol':'tcp','field':'dport'}}]}";
    let masked = |op: &str, right: &str| {
        format!(
            "{{'match':{{'op':'{op}','left':{{'&':[{{'payload':{{'protocol':'ip','field':'saddr'}}}},'255.0.0.255']}},'right':'{right}'}}}}"
        )
    };
    for (expr, yes, no) in [
        (of("tcp", "dport", "==", "22"), "tcp dport=22", "udp dport=22"),
        (of("tcp", "dport", "!=", "22"), "tcp dport=23", "tcp dport=22"),
        (of("tcp", "dport", "!=", "22"), "tcp dport=23", "udp dport=23"),
        (of("tcp", "dport", "<", "22"), "tcp dport=21", "tcp dport=22"),
        (of("tcp", "dport", "<=", "22"), "tcp dport=22", "tcp dport=23"),
        (of("tcp", "dport", ">", "22"), "tcp dport=23", "tcp dport=22"),
        (of("tcp", "dport", ">=", "22"), "tcp dport=22", "tcp dport=21"),
        (of("tcp", "dport", "==", "{'set':[22,{'range':[80,90]}]}"), "tcp dport=85", "tcp dport=23"),
        (of("tcp", "dport", "!=", "{'set':[22,{'range':[80,90]}]}"), "tcp dport=23", "tcp dport=85"),
        (of("ip", "saddr", "!=", "{'prefix':{'addr':'10.0.0.0','len':8}}"), "src=11.0.0.1", "src=10.9.9.9"),
        (of("ip", "daddr", "==", "{'range':['10.0.0.5','10.0.0.9']}"), "dst=10.0.0.7", "dst=10.0.0.4"),
        (of("ip", "protocol", "==", "'esp'"), "proto=50", "proto=51"),
        (meta("l4proto", "{'set':['tcp','ipv6-icmp']}"), "proto=58", "proto=17"),
        (of("icmp", "type", "==", "'destination-unreachable'"), "icmp sport=3", "icmp sport=1"),
        (of("icmp", "code", "==", "'frag-needed'"), "icmp dport=4", "icmp dport=5"),
        (masked("==", "10.0.0.1"), "src=10.7.7.1", "src=10.7.7.2"),
        (masked("!=", "10.0.0.1"), "src=10.7.7.2", "src=10.7.7.1"),
        (masked("!=", "10.1.0.1"), "src=10.1.0.1", "ipv6"),
        (set(pair), "tcp src=10.0.0.1 dport=80", "tcp src=10.0.0.1 dport=5"),
        (set(pair), "tcp src=10.1.7.7 dport=5", "udp src=10.1.7.7 dport=5"),
        (set(pair).replace("'=='", "'!='"), "tcp src=10.0.0.1 dport=5", "tcp src=10.0.0.1 dport=80"),
        (set(pair).replace("'=='", "'!='"), "tcp src=10.0.0.1 dport=5", "udp src=10.0.0.1 dport=5"),
        (meta("nfproto", "'ipv4'"), "tcp", "ipv6"),
        (meta("protocol", "{'set':['ip','arp']}"), "tcp", "ipv6"),
        (of("th", "dport", "==", "53"), "sctp dport=53", "udp dport=54"),
    ] {
        let file = one::<Ipv4Tuple>(&accept(expr.clone()), &ReadOptions::default());
        assert_eq!(verdict(&file, yes), "accept", "{expr}");
        if no != "ipv6" {
            assert_eq!(verdict(&file, no), "drop", "{expr}");
        }
    }
    // A header of the other family.
    let v6 = |expr: String| one::<Ipv6Tuple>(&accept(expr), &ReadOptions::default());
    for expr in [
        of("ip", "saddr", "!=", "'10.0.0.1'"),
        of("ip", "protocol", "==", "'tcp'"),
        of("icmp", "type", "==", "'echo-request'"),
        meta("nfproto", "'ipv4'"),
        "{'reject':{'type':'icmp','expr':'host-unreachable'}}".to_owned(),
    ] {
        assert_eq!(verdict(&v6(expr.clone()), "tcp src=::1"), "drop", "{expr}");
        assert_eq!(verdict(&v6(expr.clone()), "icmp sport=8"), "drop", "{expr}");
    }
    let types = v6(of("icmpv6", "type", "==", "'destination-unreachable'"));
    assert_eq!(["sport=1", "sport=3"].map(|t| verdict(&types, &format!("icmpv6 {t}"))), ["accept", "drop"]);
    let address = v6(of("ip6", "saddr", "==", "{'prefix':{'addr':'fe80::','len':10}}"));
    assert_eq!(["src=fe80::1", "src=fec0::1"].map(|t| verdict(&address, t)), ["accept", "drop"]);
}

#[test]
fn facts_are_decided_by_assumptions() {
    let state = "{'match':{'op':'in','left':{'ct':{'key':'state'}},'right':['established','related']}},{'accept':null}";
    let states = "{'vmap':{'key':{'ct':{'key':'state'}},'data':{'set':[['established',{'accept':null}],['invalid',{'drop':null}],['new',{'jump':{'target':'other'}}]]}}}";
    let default = "{'vmap':{'key':{'meta':{'key':'iifname'}},'data':{'set':[['lo',{'accept':null}],['*',{'jump':{'target':'other'}}]]}}}";
    let wild = format!("{},{{'accept':null}}", meta("iifname", "{'set':['lo','eth*']}"));
    let mark = "{'match':{'op':'==','left':{'&':[{'meta':{'key':'mark'}},255]},'right':5}},{'accept':null}";
    let changed = format!("{{'mangle':{{'key':{{'meta':{{'key':'mark'}}}},'value':7}}}},{mark}");
    let flags = "{'match':{'op':'==','left':{'&':[{'payload':{'protocol':'tcp','field':'flags'}},['syn','ack']]},'right':'syn'}},{'accept':null}";
    let limit = "{'limit':{'rate':5,'burst':5,'per':'second'}},{'accept':null}";
    let zone = "{'match':{'op':'==','left':{'ct':{'key':'zone'}},'right':5}},{'accept':null}";
    let zones = "{'match':{'op':'==','left':{'ct':{'key':'zone'}},'right':{'set':[1,{'range':[4,6]}]}}},{'accept':null}";
    let not_zone = zone.replace("==", "!=");
    let of_reply = zone.replace("'zone'", "'zone','dir':'reply'");
    let into_zone = format!("{{'mangle':{{'key':{{'ct':{{'key':'zone'}}}},'value':5}}}},{zone}");
    let not_mark = not_zone.replace("zone", "mark");
    let status = "{'match':{'op':'in','left':{'ct':{'key':'status'}},'right':'dnat'}},{'accept':null}";
    let not_status = status.replace("'in'", "'!'");
    let either = status.replace("'dnat'", "['snat','dnat']");
    let seen = status.replace("dnat", "seen-reply");
    let whole = status.replace("'in'", "'=='");
    let untracked_zone = format!("{{'notrack':null}},{zone}");
    for (expr, assumed, tuple, wanted) in [
        (state, "ct=established", "tcp", "accept"),
        (state, "ct=new", "tcp", "drop"),
        (state, "in=lo", "tcp", "drop?"),
        (states, "ct=established", "tcp", "accept"),
        (states, "ct=new", "udp dport=53", "accept"),
        (states, "ct=new", "udp dport=54", "drop"),
        (states, "ct=related", "tcp", "drop"),
        (states, "in=lo", "tcp", "drop?"),
        (default, "in=lo", "tcp", "accept"),
        (default, "in=eth0", "udp dport=53", "accept"),
        (default, "in=eth0", "tcp", "drop"),
        (&wild, "in=eth7", "tcp", "accept"),
        (&wild, "in=wlan0", "tcp", "drop"),
        (mark, "mark=0x105", "tcp", "accept"),
        (mark, "mark=6", "tcp", "drop"),
        (&changed, "mark=5", "tcp", "drop?"),
        (flags, "tcp-flags=syn", "tcp sport=5", "accept"),
        (flags, "tcp-flags=syn+ack", "tcp sport=5", "drop"),
        (flags, "tcp-flags=syn", "udp sport=5", "drop"),
        (limit, "limit=under", "tcp", "accept"),
        (limit, "limit=over", "tcp", "drop"),
        (zone, "ct-zone=5", "tcp", "accept"),
        (zone, "ct-zone=6", "tcp", "drop"),
        (zone, "in=lo", "tcp", "drop?"),
        (zones, "ct-zone=6", "tcp", "accept"),
        (zones, "ct-zone=3", "tcp", "drop"),
        (&not_zone, "ct-zone=5", "tcp", "drop"),
        (&not_zone, "ct-zone=0", "tcp", "accept"),
        (&of_reply, "ct-zone=5", "tcp", "drop?"),
        (&into_zone, "ct-zone=5", "tcp", "drop?"),
        (&untracked_zone, "ct-zone=5", "tcp", "drop?"),
        (status, "ct=new+dnat", "tcp", "accept"),
        (status, "ct=new+snat", "tcp", "drop"),
        (status, "ct=new", "tcp", "drop"),
        (status, "ct=untracked", "tcp", "drop"),
        (status, "in=lo", "tcp", "drop?"),
        (&not_status, "ct=new", "tcp", "accept"),
        (&not_status, "ct=new+dnat", "tcp", "drop"),
        (&not_status, "ct=invalid", "tcp", "drop"),
        (&either, "ct=established+snat", "tcp", "accept"),
        (&either, "ct=established", "tcp", "drop"),
        (&seen, "ct=established", "tcp", "drop?"),
        (&whole, "ct=established+dnat", "tcp", "drop?"),
        // What has no connection has no zone, nor another one, nor a mark.
        (zone, "ct=untracked", "tcp", "drop"),
        (&not_zone, "ct=invalid ct-zone=0", "tcp", "drop"),
        (&not_mark, "ct=untracked ct-mark=0", "tcp", "drop"),
        (&not_mark, "ct=new ct-mark=0", "tcp", "accept"),
    ] {
        let file = one::<Ipv4Tuple>(expr, &under(&assumed.split(' ').collect::<Vec<_>>()));
        assert_eq!(verdict(&file, tuple), wanted, "{expr} under {assumed}");
    }
}

#[test]
fn what_is_not_understood_is_in_doubt() {
    let accept = "{'accept':null}";
    for expr in [
        // An inner header.
        "{'match':{'op':'==','left':{'payload':{'tunnel':'vxlan','protocol':'ip','field':'saddr'}},'right':'10.9.0.0'}},{'accept':null}",
        "{'match':{'op':'==','left':{'payload':{'base':'nh','offset':0,'len':8}},'right':5}},{'accept':null}",
        "{'match':{'op':'==','left':{'payload':{'protocol':'ip','field':'ttl'}},'right':5}},{'accept':null}",
        "{'match':{'op':'~','left':{'payload':{'protocol':'tcp','field':'dport'}},'right':5}},{'accept':null}",
        "{'match':{'op':'==','left':{'payload':{'protocol':'tcp','field':'dport'}},'right':5,'more':1}},{'accept':null}",
        "{'match':{'op':'==','left':{'payload':{'protocol':'tcp','field':'dport'}},'right':'ours'}},{'accept':null}",
        "{'match':{'op':'==','left':{'payload':{'protocol':'tcp','field':'dport'}},'right':65536}},{'accept':null}",
        "{'match':{'op':'==','left':{'payload':{'protocol':'tcp','field':'dport'}},'right':'@none'}},{'accept':null}",
        "{'match':{'op':'==','left':{'payload':{'protocol':'tcp','field':'dport'}},'right':{'set':[{'elem':{'val':5,'timeout':9}}]}}},{'accept':null}",
        "{'match':{'op':'==','left':{'meta':{'key':'skuid'}},'right':0}},{'accept':null}",
        "{'match':{'op':'==','left':{'ct':{'key':'state','dir':'original'}},'right':'new'}},{'accept':null}",
        "{'match':{'op':'==','left':{'fib':{'result':'oif','flags':['saddr','iif']}},'right':false}},{'accept':null}",
        "{'match':{'op':'==','left':{'socket':{'key':'transparent'}},'right':1}},{'accept':null}",
        "{'quota':{'val':5,'val_unit':'mbytes'}},{'accept':null}",
        "{'set':{'op':'add','elem':'10.0.0.1','set':'@x'}},{'accept':null}",
        "{'xt':{'type':'match','name':'recent'}},{'accept':null}",
        "{'xt':{'type':'target','name':'TPROXY'}}",
        "{'warp':null},{'accept':null}",
        "{'accept':null},{'drop':null}",
        "{'jump':{'target':'other','more':1}}",
        "{'mangle':{'key':{'payload':{'protocol':'ip','field':'saddr'}},'value':'10.0.0.1'}}",
        "{'vmap':{'key':{'payload':{'protocol':'tcp','field':'dport'}},'data':'@none'}}",
        "{'vmap':{'key':{'payload':{'protocol':'tcp','field':'dport'}},'data':{'set':[[5,{'maybe':null}]]}}}",
        "7",
    ] {
        let file = one::<Ipv4Tuple>(expr, &ReadOptions::default());
        assert_eq!(verdict(&file, "tcp sport=1 dport=5"), "drop?", "{expr}");
    }
    // What is known narrows it.
    let narrow = format!("{},{},{accept}", of("tcp", "dport", "==", "5"), of("ip", "ttl", "==", "5"));
    let file = one::<Ipv4Tuple>(&narrow, &ReadOptions::default());
    assert_eq!(["tcp sport=1 dport=5", "tcp sport=1 dport=6"].map(|t| verdict(&file, t)), ["drop?", "drop"]);
    // A fragment without ports isn't of a rule of ports.
    let zero =
        one::<Ipv4Tuple>(&format!("{},{accept}", of("tcp", "dport", "<", "5")), &ReadOptions::default());
    assert_eq!(["tcp", "tcp sport=1 dport=1"].map(|t| verdict(&zero, t)), ["drop?", "accept"]);
    // Extension headers come before what a tuple has.
    let next = format!("{},{accept}", of("ip6", "nexthdr", "==", "'tcp'"));
    assert_eq!(verdict(&one::<Ipv6Tuple>(&next, &ReadOptions::default()), "tcp"), "drop?");
}

#[test]
fn named_sets_and_maps_by_content() {
    let with = |set: &str, expr: &str| {
        let set = set.replace('\'', "\"");
        let elements = [
            set,
            chain("inet", "other", None),
            chain("inet", "in", Some("drop")),
            rule("inet", "other", "{'accept':null}"),
            rule("inet", "in", expr),
        ];
        read::<Ipv4Tuple>(&list(&elements), &ReadOptions::default()).expect("a chain").0
    };
    let set = |more: &str| {
        format!("{{'set':{{'family':'inet','table':'t','name':'s','type':'ipv4_addr','handle':3{more}}}}}")
    };
    let within = format!("{},{{'accept':null}}", of("ip", "saddr", "==", "'@s'"));
    for (more, wanted) in [
        (
            ",'flags':['interval'],'elem':[{'prefix':{'addr':'10.0.0.0','len':8}},{'range':['11.0.0.1','11.0.0.9']}]",
            "accept",
        ),
        (",'elem':['10.0.0.1']", "accept"),
        (",'elem':[{'elem':{'val':'10.0.0.1','comment':'x'}}]", "accept"),
        (",'elem':['10.0.0.2']", "drop"),
        ("", "drop"),
        (",'flags':['timeout'],'elem':['10.0.0.1']", "drop?"),
        (",'elem':[{'elem':{'val':'10.0.0.1','expires':5}}]", "drop?"),
        (",'size':5,'timeout':60", "drop?"),
        (",'later':1,'elem':['10.0.0.1']", "drop?"),
    ] {
        assert_eq!(verdict(&with(&set(more), &within), "src=10.0.0.1"), wanted, "{more}");
    }
    let changed = "{'set':{'op':'add','elem':{'payload':{'protocol':'ip','field':'saddr'}},'set':'@s'}},{'counter':null}";
    let text = [
        set(",'elem':['10.0.0.2']").replace('\'', "\""),
        chain("inet", "in", Some("drop")),
        rule("inet", "in", &within),
        rule("inet", "in", changed),
    ];
    let file = read::<Ipv4Tuple>(&list(&text), &ReadOptions::default()).expect("a chain").0;
    assert_eq!(verdict(&file, "src=10.0.0.1"), "drop?");
    let map = "{'map':{'family':'inet','table':'t','name':'s','type':'ipv4_addr','map':'verdict','handle':3,'elem':[['10.0.0.1',{'accept':null}],['10.0.0.2',{'jump':{'target':'other'}}],['10.0.0.3',{'continue':null}]]}}";
    let file = with(map, "{'vmap':{'key':{'payload':{'protocol':'ip','field':'saddr'}},'data':'@s'}}");
    let verdicts = ["1", "2", "3", "4"].map(|last| verdict(&file, &format!("src=10.0.0.{last}")));
    assert_eq!(verdicts, ["accept", "accept", "drop", "drop"]);
}

#[test]
fn elements_are_bounded_and_read_as_they_come() {
    let mut packed = zstd::Encoder::new(Vec::new(), 1).expect("an encoder");
    packed.write_all(b"{\"nftables\": [").expect("written");
    for _ in 0..LONGEST_ELEMENT / (1 << 20) + 1 {
        packed.write_all(&vec![b' '; 1 << 20]).expect("written");
    }
    packed.write_all(b"]}").expect("written");
    let packed = packed.finish().expect("written");
    let options = ReadOptions { format: Some(RuleFormat::Nft), ..ReadOptions::default() };
    let error =
        read_rules_from::<Ipv4Tuple>(&packed[..], "bomb", &options).expect_err("too long").to_string();
    assert!(error.contains(&format!("an element of over {LONGEST_ELEMENT} bytes")), "{error}");
    for wrong in [
        "",
        "{",
        "[]",
        "{}",
        "{\"nftables\": [}",
        "{\"nftables\": {}}",
        "{\"nftables\": []} x",
        "{\"nftables\": [], \"more\": 1}",
        "{\"nftables\": [5]}",
        "{\"nftables\": [{\"add\": {}}]}",
        "{\"nftables\": [{\"rule\": 1}]}",
    ] {
        assert!(
            matches!(read::<Ipv4Tuple>(wrong, &ReadOptions::default()), Err(ReadError::Bad { .. })),
            "{wrong}"
        );
    }
    assert!(matches!(
        read::<Ipv4Tuple>("{\"nftables\": []}", &ReadOptions::default()),
        Err(ReadError::Choice { .. })
    ));
    let deep = format!("{{\"nftables\": [{}", "[".repeat(100_000));
    assert!(read::<Ipv4Tuple>(&deep, &ReadOptions::default()).is_err());
    // Leniently, an element that isn't understood could have been any rule.
    let text = list(&["{\"warp\": 1}".to_owned(), chain("ip", "in", Some("drop"))]);
    assert!(read::<Ipv4Tuple>(&text, &ReadOptions::default()).is_err());
    let lenient = ReadOptions { lenient: true, ..ReadOptions::default() };
    assert_eq!(verdict(&read::<Ipv4Tuple>(&text, &lenient).expect("lenient").0, "tcp"), "drop?");
}

/// Each rule that nft 1.0.6 listed, of every kind of statement, alone in its chain.
#[test]
fn each_statement_of_nft_is_read() {
    let text = include_str!("../data/statements.nft.json");
    let all: serde_json::Value = serde_json::from_str(text).expect("JSON");
    let all = all["nftables"].as_array().expect("a list");
    let is_of_base = |element: &&serde_json::Value| element["rule"]["chain"] == "in";
    let (mut known, mut doubtful) = (0, 0);
    for rule in all.iter().filter(is_of_base) {
        let others = all.iter().filter(|element| !is_of_base(element));
        let elements: Vec<String> = others.chain([rule]).map(ToString::to_string).collect();
        let text = format!(r#"{{"nftables":[{}]}}"#, elements.join(","));
        for (file, report) in [
            read::<Ipv4Tuple>(&text, &ReadOptions::default())
                .map(|(file, report)| (file.doubts.is_empty(), report)),
            read::<Ipv6Tuple>(&text, &ReadOptions::default())
                .map(|(file, report)| (file.doubts.is_empty(), report)),
        ]
        .map(|read| read.expect("a chain"))
        {
            assert_eq!(file, report.left_out.is_empty(), "{rule}: {report}");
            let is_odd = ["isn't", "none", "unknown effect", "after a verdict"]
                .iter()
                .any(|odd| report.to_string().contains(odd));
            assert!(
                !is_odd || rule.to_string().contains("tmo") || rule.to_string().contains("dyn"),
                "{report}"
            );
            if file { known += 1 } else { doubtful += 1 }
        }
    }
    assert!(known > 100 && doubtful > 60, "{known} known, {doubtful} not");
}

#[test]
fn what_is_not_known_of_a_table_a_chain_or_a_rule_is_refused_and_leaves_doubts() {
    let accepts = "{'accept':null}".replace('\'', "\"");
    let plain = [
        r#"{"table":{"family":"inet","name":"t","handle":1,"flags":["owner"]}}"#.to_owned(),
        chain("inet", "in", Some("drop")),
        rule("inet", "in", &format!("{},{accepts}", of("tcp", "dport", "==", "22"))),
    ];
    let good = list(&plain);
    let (file, _) = read::<Ipv4Tuple>(&good, &ReadOptions::default()).unwrap();
    assert_eq!(verdict(&file, "proto=tcp dport=22") + &verdict(&file, "proto=udp dport=1"), "acceptdrop");
    for (from, to, says) in [
        ("\"owner\"", "\"dormant\"", "a table that is dormant: its chains see no packet"),
        ("[\"owner\"]", "\"dormant\"", "a table that is dormant"),
        ("\"owner\"", "\"odd\"", "a flag of a table that is not known (\"odd\")"),
        ("\"owner\"", "7", "a flag of a table that is not known (7)"),
        ("\"policy\":\"drop\"", "\"policy\":\"odd\"", "a policy that is neither accept nor drop"),
        ("\"policy\":\"drop\"", "\"policy\":7", "a policy that is neither"),
        ("\"expr\":", "\"odd\":1,\"expr\":", "a member of a rule that is not known (odd)"),
        ("\"expr\":", "\"comment\":\"\",\"index\":", "a rule without expressions"),
    ] {
        assert!(good.contains(from), "{from}");
        let odd = good.replacen(from, to, 1);
        let error = read::<Ipv4Tuple>(&odd, &ReadOptions::default()).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
        let lenient = ReadOptions { lenient: true, ..ReadOptions::default() };
        let (file, report) = read::<Ipv4Tuple>(&odd, &lenient).unwrap();
        assert_eq!(report.left_out.len(), 1, "{odd}");
        assert!(verdict(&file, "proto=udp dport=1").ends_with('?'), "{odd}");
    }
    // Of another table it matters to nobody.
    let other = r#"{"table":{"family":"ip","name":"t","flags":["dormant"]}}"#.to_owned();
    let file = read::<Ipv4Tuple>(&list(&[&plain[..], &[other]].concat()), &ReadOptions::default()).unwrap().0;
    assert_eq!(verdict(&file, "proto=udp dport=1"), "drop");
}
