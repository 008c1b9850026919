use wirespeed_classify::oracle::{Oracle, Right};
use wirespeed_classify::read::{
    Assumptions, ReadError, ReadOptions, RuleFile, RuleFormat, RuleReport, read_rules_from,
};
use wirespeed_classify::write::write_rules;
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
            // A type and a code.
            ("proto=1 sport=8 src=10.1.1.1", "allow"),
            ("proto=1 sport=8 dport=3 src=10.1.1.1", "allow"),
            ("proto=1 sport=3 src=10.1.1.1", "deny"),
            ("proto=50 src=10.1.1.1", "allow"),
            ("udp dport=53", "deny"),
        ],
    );
    let why: Vec<_> = report.left_out.iter().map(|one| (one.place.to_string(), one.why.as_str())).collect();
    assert_eq!(why, [("line 7, entry 2".to_owned(), "members of the group sg-9")]);
    let message = "\"FromPort\":8,\"ToPort\":-1";
    for (to, tuple, right) in [
        ("\"FromPort\":8,\"ToPort\":0", "proto=1 sport=8 dport=3", "deny"),
        ("\"FromPort\":8,\"ToPort\":3", "proto=1 sport=8 dport=3", "allow"),
        ("\"FromPort\":-1,\"ToPort\":-1", "proto=1 sport=3", "allow"),
        // An echo reply.
        ("\"FromPort\":0,\"ToPort\":0", "proto=1", "allow"),
    ] {
        let text = GROUPS.replacen(message, to, 1);
        let (file, _) = read::<Ipv4Tuple>(&text, &new(Some("web"), None)).expect("groups");
        verdicts(&file, [(tuple, right)]);
    }
    for wrong in
        ["\"FromPort\":256,\"ToPort\":-1", "\"FromPort\":8,\"ToPort\":-2", "\"FromPort\":-1,\"ToPort\":3"]
    {
        let said = error(&GROUPS.replacen(message, wrong, 1), &new(Some("web"), None));
        assert!(said.starts_with("list:9, entry 3: not a type and a code of ICMP"), "{said}");
    }
    // The rule of the other group, and the range of IPv6.
    assert_eq!((report.elsewhere, report.other_family), (1, 1));
    assert!(
        report.to_string().contains("\n  1 entry of the other family of addresses passed over"),
        "{report}"
    );
    let refused = report.refuse_other_family("choose").expect_err("both families").to_string();
    assert_eq!(
        refused,
        "list: the file is of IPv4 and of IPv6, and 1 entry is of the other family of addresses: choose"
    );
    let both = read::<Ipv4Tuple>(GROUPS, &new(Some("sg-1,sg-2"), None)).expect("groups").0;
    verdicts(&both, [("udp dport=53", "allow"), ("tcp src=10.1.1.1 dport=443", "allow")]);
    let six = read::<Ipv6Tuple>(GROUPS, &new(Some("sg-1"), None)).expect("groups").0;
    verdicts(&six, [("tcp src=2001:db8::7 dport=443", "allow"), ("tcp src=2001:db9::7 dport=443", "deny")]);
    let out = read::<Ipv4Tuple>(GROUPS, &new(Some("sg-1"), Some("egress"))).expect("groups").0;
    verdicts(&out, [("udp dst=198.51.100.7", "allow"), ("udp src=198.51.100.7", "deny")]);
    let switch = read::<OpenFlowTuple>(GROUPS, &new(Some("sg-2"), None)).expect("groups").0;
    let one = read::<Ipv4Tuple>(GROUPS, &new(Some("db"), None)).expect("groups").1;
    assert!(one.other_family == 0 && one.refuse_other_family("choose").is_ok(), "{one}");
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
        "list: several security groups, choose by lookupctl classify build --chain, one or more: sg-1 (web), sg-2 (db)"
    );
    assert!(error(GROUPS, &new(Some("sg-3"), None)).starts_with("list: no security group sg-3; there are"));
    assert!(
        error(GROUPS, &new(Some("db"), Some("both"))).contains("no table both; there are: ingress, egress")
    );
    let options = new(Some("db"), None);
    for (from, to, why) in [
        ("\"udp\"", "\"upd\"", "list:13, entry 5: \"upd\" is no protocol"),
        ("\"FromPort\":53", "\"FromPort\":54", "list:13, entry 5: not a range of ports"),
        ("\"udp\",", "\"udp\",\"Since\":1,", "list:13, entry 5: a member that is not known (Since)"),
        ("\"db\",", "\"db\",\"Kind\":1,", "list:12, entry 5: a member that is not known (Kind)"),
        (
            "0.0.0.0/0\"}]}],\"IpPermissionsEgress\":[]",
            "0.0.0.0\"}]}],\"IpPermissionsEgress\":[]",
            "list:13, entry 5: \"0.0.0.0\" is no block",
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
        assert!(
            report.left_out.iter().any(|one| one.place.entry == std::num::NonZeroU64::new(5)),
            "{report}"
        );
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
    assert_eq!(report.other_family, 1);
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
        assert!(message.starts_with("list:2, entry 1: ") && message.contains(why), "{message}");
        let lenient = ReadOptions { lenient: true, ..new(None, None) };
        let file = read::<Ipv4Tuple>(&text, &lenient).expect("lenient").0;
        verdicts(&file, [("tcp src=10.2.0.1 dport=443", "deny?")]);
    }
    let message = error(&one.replace("RULE", "").replace("NetworkPolicy", "Pod"), &new(None, None));
    assert!(message.contains("no NetworkPolicy of networking.k8s.io/v1"), "{message}");
    assert!(
        error(POLICIES, &new(None, None))
            .contains("several policies, choose one by lookupctl classify build --chain: shop/web, shop/all")
    );
    assert!(
        error(POLICIES, &new(Some("lab/open"), Some("egress"))).contains("no policy lab/open for egress")
    );
}

/// A file as people keep it: all that an application has.
const APPLICATION: &str = "\
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {ratio: 0.5, mode: 0644}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: web}
spec:
  podSelector: {matchLabels: {app: web}}
  ingress:
  - from: [{ipBlock: {cidr: 10.0.0.0/8}}]
---
apiVersion: v1
kind: List
items:
- apiVersion: apps/v1
  kind: Deployment
  metadata: {name: web}
  spec: {template: {cpu: 1.5}}
- apiVersion: networking.k8s.io/v1
  kind: NetworkPolicy
  metadata: {name: db}
  spec: {podSelector: {matchLabels: {app: db}}}
";

#[test]
fn other_kinds_beside_policies_are_left_out_with_their_line() {
    let says = |kind: &str| format!("kind {kind} is no NetworkPolicy of networking.k8s.io/v1");
    let options = new(Some("web"), None);
    let message = error(APPLICATION, &options);
    assert!(message.starts_with(&format!("list:1: {}", says("ConfigMap of v1"))), "{message}");
    let lenient = ReadOptions { lenient: true, ..options.clone() };
    let (file, report) = read::<Ipv4Tuple>(APPLICATION, &lenient).expect("lenient");
    let left_out: Vec<_> = report.left_out.iter().map(|one| (one.place.line, one.why.clone())).collect();
    assert_eq!(left_out, [(1, says("ConfigMap of v1")), (17, says("Deployment of apps/v1"))]);
    // No policy is lost with them.
    verdicts(&file, [("tcp src=10.1.1.1 dport=9", "allow"), ("tcp src=11.1.1.1 dport=9", "deny")]);
    // What the policy implies has its line.
    let line =
        |rule: u32| file.lines.of(rule).map(|line| (line.place.map(|place| place.line), line.text.as_str()));
    assert_eq!(line(2), Some((Some(6), "what the policy does not allow")));
    let unknown = ReadOptions { lenient: true, chain: Some("web".into()), ..ReadOptions::default() };
    let (_, report) = read::<Ipv4Tuple>(APPLICATION, &unknown).expect("lenient");
    assert!(
        report.left_out.iter().any(|one| one.to_string().starts_with("line 6: the state of a connection")),
        "{report}"
    );
    // In a policy a number of another form is wrong, as is a policy of another kind.
    for (from, to, says, line) in [
        ("{name: web}\nspec", "{name: web, generation: 0x1}\nspec", "0x1 is a number in another form", 8),
        ("{name: db}", "{name: db, generation: 1.5}", "1.5 is a number in another form", 23),
        (
            "apps/v1\n  kind: Deployment\n  metadata: {name: web}\n  spec: {template: {cpu: 1.5}}",
            "cilium.io/v2\n  kind: CiliumNetworkPolicy",
            "kind CiliumNetworkPolicy of",
            17,
        ),
    ] {
        let text = APPLICATION.replacen(from, to, 1);
        assert_ne!(text, APPLICATION);
        let options =
            ReadOptions { chain: Some(if line == 8 { "db" } else { "web" }.into()), ..lenient.clone() };
        let (file, report) = read::<Ipv4Tuple>(&text, &options).expect("lenient");
        let is_there = report.left_out.iter().any(|one| one.place.line == line && one.why.starts_with(says));
        assert!(is_there, "{report}");
        verdicts(&file, [("tcp src=11.1.1.1 dport=9", "deny?")]);
    }
    let text = APPLICATION.replacen("kind: List\n", "kind: List\nmetadata: {x: 0x1}\n", 1);
    let message = read::<Ipv4Tuple>(&text, &lenient).expect_err("the list").to_string();
    assert!(message.starts_with("list:16: 0x1 is a number"), "{message}");
    // As JSON.
    let other = r#"{"apiVersion":"v1","kind":"Pod","metadata":{}},{"apiVersion":"networking"#;
    let json = POLICIES.replacen(r#"{"apiVersion":"networking"#, other, 1);
    assert!(error(&json, &options).starts_with(&format!("list:2, entry 1: {}", says("Pod of v1"))));
    let file = read::<Ipv4Tuple>(&json, &lenient).expect("lenient").0;
    verdicts(&file, [("tcp src=10.2.0.1 dport=443", "allow"), ("tcp src=10.2.0.1 dport=8011", "deny")]);
}

/// The first two policies of [`POLICIES`] as `kubectl -o yaml` writes them, and the others as manifests.
const MANIFESTS: &str = "\
apiVersion: v1
items:
- apiVersion: networking.k8s.io/v1
  kind: NetworkPolicy
  metadata:
    annotations:
      note: |
        {\"kind\": \"none\"}
    name: web
    namespace: shop
  spec:
    ingress:
    - from:
      - ipBlock:
          cidr: 10.0.0.0/8
          except:
          - 10.1.0.0/16
          - 10.1.2.0/24
      - ipBlock:
          cidr: 2001:db8::/32
      ports:
      - port: 443
        protocol: TCP
      - endPort: 8010
        port: 8000
    - from:
      - podSelector:
          matchLabels:
            app: x
      ports:
      - port: 53
        protocol: UDP
    - from: [{ipBlock: {cidr: 192.0.2.0/24}}]
      ports: [{port: metrics}]
    - ports: [{protocol: SCTP}]
    podSelector:
      matchLabels:
        app: web
    policyTypes:
    - Ingress
- apiVersion: networking.k8s.io/v1
  kind: NetworkPolicy
  metadata: {namespace: shop, name: all}
  spec:
    podSelector: {}
    policyTypes: [Ingress, Egress]
    ingress:
    - from: [{ipBlock: {cidr: 198.51.100.0/24}}]
kind: List
metadata:
  resourceVersion: \"\"
---
# A manifest.
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {namespace: shop, name: others}
spec:
  podSelector: {matchLabels: {app: db}}
  ingress: [{ports: [{port: 22}]}]
---
---
kind: NetworkPolicy
apiVersion: networking.k8s.io/v1
metadata: {namespace: lab, name: open}
spec: {podSelector: {}, ingress: [{}]}
";

#[test]
fn policies_in_yaml_are_those_in_json() {
    let texts = |file: &RuleFile<Ipv4Tuple>| {
        let mut text = Vec::new();
        write_rules(&file.rules, &mut text).expect("a Vec takes what is written");
        String::from_utf8(text).expect("text")
    };
    for (chain, table) in [("web", None), ("all", Some("egress")), ("lab/open", None), ("shop/others", None)]
    {
        let options = new(Some(chain), table);
        let (json, of_json) = read::<Ipv4Tuple>(POLICIES, &options).expect("policies");
        let dashed = format!("---\n{MANIFESTS}");
        let with_mark = format!("\u{feff}# a comment\r\n\r\n{}", MANIFESTS.replace('\n', "\r\n"));
        for text in [MANIFESTS, &dashed, &with_mark] {
            let (yaml, of_yaml) = read::<Ipv4Tuple>(text, &options).expect("policies");
            assert_eq!((of_yaml.format, of_yaml.records), (RuleFormat::NetworkPolicy, of_json.records));
            assert_eq!(texts(&yaml), texts(&json), "{chain}");
            let whys = |report: &RuleReport| -> Vec<_> {
                report.left_out.iter().map(|one| one.why.clone()).collect()
            };
            assert_eq!(whys(&of_yaml), whys(&of_json), "{chain}");
        }
    }
    // Each rule is named by its line.
    let (_, report) = read::<Ipv4Tuple>(MANIFESTS, &new(Some("web"), None)).expect("policies");
    let lines: Vec<_> = report.left_out.iter().map(|one| one.place.line).collect();
    assert_eq!(lines, [26, 33, 59], "{report}");
}

#[test]
fn wrong_yaml_has_its_line() {
    for (from, to, says) in [
        ("port: metrics", "port: 70000", "list:33: not a range of ports"),
        (
            "cidr: 198.51.100.0/24",
            "cidr: 198.51.100.0/33",
            "list:48: \"198.51.100.0/33\" is no block of addresses",
        ),
        ("metadata: {namespace: shop, name: all}", "metadata: {}", "list:41: a policy without a name"),
        (
            "kind: NetworkPolicy\napiVersion",
            "kind: Pod\napiVersion",
            "list:62: kind Pod of networking.k8s.io/v1 is no NetworkPolicy of networking",
        ),
        ("kind: NetworkPolicy\napiVersion", "\tkind: x\napiVersion", "list:63: "),
        ("port: 443", "port: 0443", "list:22: 0443 is a number in another form"),
        ("kind: List", "kind: List\nspec: {}", "list:1: \"spec\" beside \"items\""),
        ("kind: List", "kind: List\nextra: {}", "list:1: \"extra\" beside \"items\""),
    ] {
        assert!(MANIFESTS.contains(from), "{from}");
        let text = MANIFESTS.replacen(from, to, 1);
        let message = error(&text, &new(Some("all"), None));
        assert!(message.starts_with(says), "{message}");
    }
    // A policy that is not understood could be for the same pods.
    let text = MANIFESTS.replacen("metadata: {namespace: shop, name: all}", "metadata: {}", 1);
    let lenient = ReadOptions { lenient: true, ..new(Some("web"), None) };
    let (file, report) = read::<Ipv4Tuple>(&text, &lenient).expect("lenient");
    verdicts(&file, [("tcp src=10.2.0.1 dport=443", "allow"), ("tcp src=10.2.0.1 dport=1", "deny?")]);
    assert!(report.left_out.iter().any(|one| one.place.line == 41), "{report}");
}
