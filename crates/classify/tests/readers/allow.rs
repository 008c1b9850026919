use wirespeed_classify::oracle::{Oracle, Right};
use wirespeed_classify::read::{
    Assumptions, ReadError, ReadOptions, RuleFile, RuleFormat, RuleReport, read_rules_from,
};
use wirespeed_classify::{Ipv4Tuple, Ipv6Tuple, OpenFlowTuple, Tuple};

fn read<T: Tuple>(text: &str, options: &ReadOptions) -> Result<(RuleFile<T>, RuleReport), ReadError> {
    // The format is recognised.
    read_rules_from(text.as_bytes(), "list", options)
}

fn new(chain: Option<&str>, table: Option<&str>) -> ReadOptions {
    ReadOptions {
        chain: chain.map(str::to_owned),
        table_name: table.map(str::to_owned),
        assume: Assumptions::new(["ct=new".parse().expect("one")]).expect("one"),
        ..ReadOptions::default()
    }
}

/// The verdict on a tuple, with a question mark where it is in doubt.
fn verdict<T: Tuple>(file: &RuleFile<T>, tuple: &str) -> String {
    let tuple = tuple.parse::<T>().expect(tuple);
    let rule = Oracle::of(&file.rules).right(&tuple);
    let doubts = if file.doubts(&tuple, rule).next().is_some() { "?" } else { "" };
    format!("{}{doubts}", file.action(rule).unwrap_or("-"))
}

fn verdicts<T: Tuple, const N: usize>(file: &RuleFile<T>, tuples: [(&str, &str); N]) {
    for (tuple, right) in tuples {
        assert_eq!(verdict(file, tuple), right, "{tuple}");
    }
}

const GROUPS: &str = r#"{"SecurityGroups":[
 {"GroupId":"sg-1","GroupName":"web","Description":"front","OwnerId":"1","VpcId":"vpc-1","Tags":[],
  "IpPermissions":[
   {"IpProtocol":"tcp","FromPort":443,"ToPort":443,
    "IpRanges":[{"CidrIp":"10.0.0.0/8","Description":"us"},{"CidrIp":"192.0.2.0/24"}],
    "Ipv6Ranges":[{"CidrIpv6":"2001:db8::/32"}],"PrefixListIds":[],"UserIdGroupPairs":[]},
   {"IpProtocol":"tcp","FromPort":8000,"ToPort":8010,"IpRanges":[],"Ipv6Ranges":[],
    "PrefixListIds":[{"PrefixListId":"pl-1"}],"UserIdGroupPairs":[{"GroupId":"sg-9","UserId":"1"}]},
   {"IpProtocol":"icmp","FromPort":8,"ToPort":-1,"IpRanges":[{"CidrIp":"0.0.0.0/0"}]},
   {"IpProtocol":"50","IpRanges":[{"CidrIp":"0.0.0.0/0"}]}],
  "IpPermissionsEgress":[{"IpProtocol":"-1","IpRanges":[{"CidrIp":"198.51.100.0/24"}]}]},
 {"GroupId":"sg-2","GroupName":"db","IpPermissions":[
   {"IpProtocol":"udp","FromPort":53,"ToPort":53,"IpRanges":[{"CidrIp":"0.0.0.0/0"}]}],"IpPermissionsEgress":[]}]}"#;

#[test]
fn groups_allow_what_they_say_and_doubt_what_they_refer_to() {
    let (file, report) = read::<Ipv4Tuple>(GROUPS, &new(Some("web"), None)).expect("groups");
    assert_eq!((report.format, report.records), (RuleFormat::SecurityGroups, 5));
    verdicts(
        &file,
        [
            ("tcp src=10.1.1.1 dport=443", "allow"),
            ("tcp src=192.0.2.9 dport=443", "allow"),
            ("tcp src=192.0.3.9 dport=443", "deny"),
            ("tcp src=10.1.1.1 dport=444", "deny"),
            ("udp src=10.1.1.1 dport=443", "deny"),
            ("tcp src=10.1.1.1 dport=8005", "deny?"),
            ("tcp src=10.1.1.1 dport=8011", "deny"),
            ("proto=1 src=10.1.1.1", "deny?"),
            ("proto=50 src=10.1.1.1", "allow"),
            ("udp dport=53", "deny"),
        ],
    );
    let why: Vec<_> = report.left_out.iter().map(|one| (one.line, one.why.as_str())).collect();
    assert_eq!(why, [(2, "members of the group sg-9"), (3, "a type of ICMP")]);
    // The range of IPv6, and the rule of the other group.
    assert_eq!(report.elsewhere, 2);
    let both = read::<Ipv4Tuple>(GROUPS, &new(Some("sg-1,sg-2"), None)).expect("groups").0;
    verdicts(&both, [("udp dport=53", "allow"), ("tcp src=10.1.1.1 dport=443", "allow")]);
    let six = read::<Ipv6Tuple>(GROUPS, &new(Some("sg-1"), None)).expect("groups").0;
    verdicts(&six, [("tcp src=2001:db8::7 dport=443", "allow"), ("tcp src=2001:db9::7 dport=443", "deny")]);
    let out = read::<Ipv4Tuple>(GROUPS, &new(Some("sg-1"), Some("egress"))).expect("groups").0;
    verdicts(&out, [("udp dst=198.51.100.7", "allow"), ("udp src=198.51.100.7", "deny")]);
    let switch = read::<OpenFlowTuple>(GROUPS, &new(Some("sg-2"), None)).expect("groups").0;
    verdicts(&switch, [("dl_type=0x800 nw_proto=17 tp_dst=53", "allow"), ("dl_type=0x806", "-")]);
}

#[test]
fn replies_are_in_doubt_unless_the_connection_is_known() {
    let options = ReadOptions { chain: Some("sg-2".into()), ..ReadOptions::default() };
    let file = read::<Ipv4Tuple>(GROUPS, &options).expect("groups").0;
    verdicts(&file, [("tcp dport=443", "deny?"), ("udp dport=53", "allow")]);
    let assume = Assumptions::new(["ct=established".parse().expect("one")]).expect("one");
    let file = read::<Ipv4Tuple>(GROUPS, &ReadOptions { assume, ..options }).expect("groups").0;
    verdicts(&file, [("tcp dport=443", "allow"), ("udp dport=53", "allow")]);
}

fn error(text: &str, options: &ReadOptions) -> String {
    read::<Ipv4Tuple>(text, options).map(|(_, report)| report).expect_err("an error").to_string()
}

#[test]
fn groups_are_chosen_and_what_is_not_known_is_refused() {
    assert_eq!(
        error(GROUPS, &new(None, None)),
        "list: several security groups, choose by --chain, one or more: sg-1 (web), sg-2 (db)"
    );
    assert!(error(GROUPS, &new(Some("sg-3"), None)).starts_with("list: no security group sg-3; there are"));
    assert!(
        error(GROUPS, &new(Some("db"), Some("both"))).contains("no table both; there are: ingress, egress")
    );
    let options = new(Some("db"), None);
    for (from, to, why) in [
        ("\"udp\"", "\"upd\"", "list:5: \"upd\" is no protocol"),
        ("\"FromPort\":53", "\"FromPort\":54", "list:5: not a range of ports"),
        ("\"udp\",", "\"udp\",\"Since\":1,", "list:5: a member that is not known (Since)"),
        ("\"db\",", "\"db\",\"Kind\":1,", "list:5: a member that is not known (Kind)"),
        (
            "0.0.0.0/0\"}]}],\"IpPermissionsEgress\":[]",
            "0.0.0.0\"}]}],\"IpPermissionsEgress\":[]",
            "list:5: \"0.0.0.0\" is no block",
        ),
        ("]}]}", "]}],\"NextToken\":\"x\"}", "\"NextToken\" beside \"SecurityGroups\""),
    ] {
        let last = GROUPS.rfind(from).expect(from);
        let text = format!("{}{to}{}", &GROUPS[..last], &GROUPS[last + from.len()..]);
        let message = error(&text, &options);
        assert!(message.contains(why), "{message}");
        if to.contains("NextToken") {
            continue;
        }
        // Left out, it may allow anything.
        let lenient = ReadOptions { lenient: true, chain: Some("sg-1".into()), ..options.clone() };
        let lenient = if to.contains("Kind") {
            lenient
        } else {
            ReadOptions { chain: options.chain.clone(), ..lenient }
        };
        let (file, report) = read::<Ipv4Tuple>(&text, &lenient).expect("lenient");
        verdicts(&file, [("tcp dport=1", "deny?")]);
        assert!(report.left_out.iter().any(|one| one.line == 5), "{report}");
    }
    let cut = &GROUPS[..GROUPS.len() - 40];
    assert!(error(cut, &options).contains("EOF"), "{}", error(cut, &options));
}

const POLICIES: &str = r#"{"apiVersion":"v1","kind":"List","metadata":{"resourceVersion":""},"items":[
 {"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy","metadata":{"namespace":"shop","name":"web"},
  "spec":{"podSelector":{"matchLabels":{"app":"web"}},"policyTypes":["Ingress"],"ingress":[
   {"from":[{"ipBlock":{"cidr":"10.0.0.0/8","except":["10.1.0.0/16","10.1.2.0/24"]}},{"ipBlock":{"cidr":"2001:db8::/32"}}],
    "ports":[{"protocol":"TCP","port":443},{"port":8000,"endPort":8010}]},
   {"from":[{"podSelector":{"matchLabels":{"app":"x"}}}],"ports":[{"protocol":"UDP","port":53}]},
   {"from":[{"ipBlock":{"cidr":"192.0.2.0/24"}}],"ports":[{"port":"metrics"}]},
   {"ports":[{"protocol":"SCTP"}]}]}},
 {"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy","metadata":{"namespace":"shop","name":"all"},
  "spec":{"podSelector":{},"policyTypes":["Ingress","Egress"],"ingress":[
   {"from":[{"ipBlock":{"cidr":"198.51.100.0/24"}}]}]}},
 {"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy","metadata":{"namespace":"shop","name":"others"},
  "spec":{"podSelector":{"matchLabels":{"app":"db"}},"ingress":[{"ports":[{"port":22}]}]}},
 {"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy","metadata":{"namespace":"lab","name":"open"},
  "spec":{"podSelector":{},"ingress":[{}]}}]}"#;

#[test]
fn policies_of_a_pod() {
    let (file, report) = read::<Ipv4Tuple>(POLICIES, &new(Some("web"), None)).expect("policies");
    assert_eq!((report.format, report.records), (RuleFormat::NetworkPolicy, 7));
    verdicts(
        &file,
        [
            ("tcp src=10.2.0.1 dport=443", "allow"),
            ("tcp src=10.2.0.1 dport=8010", "allow"),
            ("tcp src=10.2.0.1 dport=8011", "deny"),
            ("tcp src=10.1.2.1 dport=443", "deny"),
            ("udp src=10.2.0.1 dport=443", "deny"),
            ("udp src=10.2.0.1 dport=53", "deny?"),
            ("tcp src=192.0.2.1 dport=9", "deny?"),
            ("proto=132 src=10.1.0.1", "allow"),
            ("udp src=198.51.100.1 dport=9", "allow"),
            // Another policy may select the pod.
            ("tcp src=203.0.113.1 dport=22", "deny?"),
        ],
    );
    assert!(report.left_out.iter().any(|one| one.why == "pods that others selects"), "{report}");
    // The pods of all have nothing else for egress, so that nothing is allowed.
    let out = read::<Ipv4Tuple>(POLICIES, &new(None, Some("egress"))).expect("policies").0;
    verdicts(&out, [("tcp dst=10.2.0.1 dport=443", "deny")]);
    let lab = read::<Ipv4Tuple>(POLICIES, &new(Some("lab/open"), None)).expect("policies").0;
    verdicts(&lab, [("udp src=10.0.0.1", "allow")]);
    let six = read::<Ipv6Tuple>(POLICIES, &new(Some("shop/web"), None)).expect("policies").0;
    verdicts(&six, [("tcp src=2001:db8::1 dport=443", "allow"), ("tcp src=2001:db9::1 dport=443", "deny")]);
}

#[test]
fn one_policy_alone_and_wrong_ones() {
    let one = r#"{"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy","metadata":{"name":"deny"},
        "spec":{"podSelector":{},"ingress":[RULE]}}"#;
    let denied = read::<Ipv4Tuple>(&one.replace("RULE", ""), &new(None, None)).expect("a policy").0;
    verdicts(&denied, [("tcp src=10.2.0.1 dport=443", "deny")]);
    for (rule, why) in [
        (
            r#"{"from":[{"ipBlock":{"cidr":"10.0.0.0/8","except":["11.0.0.0/16"]}}]}"#,
            "the exception 11.0.0.0/16 is not within",
        ),
        (r#"{"from":[{"ipBlock":{"cidr":"10.0.0.0/33"}}]}"#, "is no block of addresses"),
        (r#"{"from":[{"ipBlock":{"cidr":"10.0.0.0/8"},"podSelector":{}}]}"#, "beside a selector"),
        (r#"{"from":[{}]}"#, "a peer that is none"),
        (r#"{"from":[{"fqdn":"x"}]}"#, "a member that is not known (fqdn)"),
        (r#"{"ports":[{"protocol":"ICMP"}]}"#, "\"ICMP\" is no protocol"),
        (r#"{"ports":[{"port":90,"endPort":80}]}"#, "not a range of ports"),
        (r#"{"ports":[{"port":"web","endPort":80}]}"#, "an endPort without a number"),
        (r#"{"to":[]}"#, "a member that is not known (to)"),
        ("7", "not an object"),
    ] {
        let text = one.replace("RULE", rule);
        let message = error(&text, &new(None, None));
        assert!(message.starts_with("list:1: ") && message.contains(why), "{message}");
        let lenient = ReadOptions { lenient: true, ..new(None, None) };
        let file = read::<Ipv4Tuple>(&text, &lenient).expect("lenient").0;
        verdicts(&file, [("tcp src=10.2.0.1 dport=443", "deny?")]);
    }
    let message = error(&one.replace("RULE", "").replace("NetworkPolicy", "Pod"), &new(None, None));
    assert!(message.contains("no NetworkPolicy of networking.k8s.io/v1"), "{message}");
    assert!(
        error(POLICIES, &new(None, None))
            .contains("several policies, choose one by --chain: shop/web, shop/all")
    );
    assert!(
        error(POLICIES, &new(Some("lab/open"), Some("egress"))).contains("no policy lab/open for egress")
    );
}
