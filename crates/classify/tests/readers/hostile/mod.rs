//! Hostile files of rules, made by their meaning: words in any order, values joined to them, negations, and
//! words that nobody knows.
//!
//! The second reading is none: a file is written from what its rules mean, so that nothing has to be
//! understood to know the answers. A rule with an unknown word has to be left out or refused: it may decide
//! nothing, and what it could decide has to be in doubt.

use wirespeed_classify::oracle::{Oracle, Right};
use wirespeed_classify::read::{
    Assumptions, ReadOptions, RuleFormat, read_rules_from, read_trace_from, read_updates_from,
};
use wirespeed_classify::{Ipv4Tuple, Ipv6Tuple, OpenFlowTuple};

/// Where choices come from: numbers below a bound.
pub(crate) type Choices<'c> = &'c mut dyn FnMut(usize) -> usize;

/// What a rule means.
struct Meaning {
    /// An address and the length of its prefix, and whether it is not to be that.
    src: Option<(u32, u32, bool)>,
    proto: Option<u8>,
    /// The first and the last port, and whether it is not to be one of these. Only with a protocol.
    dport: Option<(u16, u16, bool)>,
    is_accepted: bool,
    /// Whether it has a word that nobody knows.
    is_spoilt: bool,
}

impl Meaning {
    fn of(choose: Choices<'_>, format: RuleFormat) -> Self {
        let can_negate = matches!(format, RuleFormat::Iptables | RuleFormat::Nft);
        let is_not = |choose: Choices<'_>| can_negate && choose(3) == 0;
        let src = (choose(3) > 0).then(|| {
            let length = [8, 16, 24, 30, 32][choose(5)];
            let address = 0x0a00_0000 + [0, 1, 5, 0x0001_0000][choose(4)];
            (address & (u32::MAX << (32 - length)), length, is_not(choose))
        });
        let proto = (choose(3) > 0).then(|| [6, 17][choose(2)]);
        let dport = proto.filter(|_| choose(2) == 0).map(|_| {
            let from = [22, 80, 1024][choose(3)];
            let to = if format == RuleFormat::Ovs { from } else { from + [0, 10, 1000][choose(3)] };
            (from, to, is_not(choose))
        });
        Self { src, proto, dport, is_accepted: choose(2) == 0, is_spoilt: choose(6) == 0 }
    }

    fn matches(&self, tuple: &Ipv4Tuple) -> bool {
        use wirespeed_classify::Tuple as _;
        let field = |field| u32::try_from(tuple.field(field)).expect("of 32 bits");
        let (src, port) = (field(&Ipv4Tuple::SRC), field(&Ipv4Tuple::DPORT));
        self.src
            .is_none_or(|(address, length, not)| (src >> (32 - length) == address >> (32 - length)) != not)
            && self.proto.is_none_or(|proto| field(&Ipv4Tuple::PROTO) == u32::from(proto))
            && self.dport.is_none_or(|(from, to, not)| (u32::from(from)..=to.into()).contains(&port) != not)
    }

    fn proto_name(&self) -> Option<&'static str> {
        self.proto.map(|proto| if proto == 6 { "tcp" } else { "udp" })
    }
}

/// The formats that files are made of.
const FORMATS: [RuleFormat; 5] =
    [RuleFormat::Plain, RuleFormat::ClassBench, RuleFormat::Ovs, RuleFormat::Iptables, RuleFormat::Nft];

/// Makes a file of a format and holds what is read of it against what it means; whether nothing was in doubt
/// or refused.
pub(crate) fn check(choose: Choices<'_>) -> bool {
    let format = FORMATS[choose(FORMATS.len())];
    let rules: Vec<Meaning> = (0..1 + choose(8)).map(|_| Meaning::of(choose, format)).collect();
    let is_policy_accepting = choose(2) == 0;
    let text = file(choose, format, &rules, is_policy_accepting);
    let is_sure = compare(&text, format, &rules, is_policy_accepting, choose);
    garble(choose, text);
    is_sure
}

fn compare(text: &str, format: RuleFormat, rules: &[Meaning], policy: bool, choose: Choices<'_>) -> bool {
    // A port of 0 might be a fragment's otherwise.
    let whole = || Assumptions::new(["fragment=no".parse().expect("an assumption")]).expect("one");
    let options =
        |lenient| ReadOptions { format: Some(format), lenient, assume: whole(), ..ReadOptions::default() };
    let strict = read_rules_from::<Ipv4Tuple>(text.as_bytes(), "hostile", &options(false));
    let is_spoilt = rules.iter().any(|rule| rule.is_spoilt);
    if let Ok((_, report)) = &strict {
        // Behind a rule of all packets it is none that could be left out.
        assert!(report.left_out.is_empty() || is_spoilt, "{format}: {report}\n{text}");
    }
    assert!(strict.is_ok() || is_spoilt, "{format}: {:?}\n{text}", strict.err());
    let (file, report) =
        read_rules_from::<Ipv4Tuple>(text.as_bytes(), "hostile", &options(true)).expect("lenient reading");
    let oracle = Oracle::of(&file.rules);
    let mut is_sure = strict.is_ok();
    for _ in 0..40 {
        let src = (0x0a00_0000u32 + [0, 1, 2, 5, 6, 0x100, 0x0001_0000, 0x0001_0005, 0x0100_0000][choose(9)])
            .into();
        let tuple = Ipv4Tuple::new(
            src,
            [10, 9, 9, 9].into(),
            7,
            [22, 32, 80, 90, 1024, 2024, 9][choose(7)],
            [6, 17, 50][choose(3)],
        );
        let first = rules.iter().find(|rule| !rule.is_spoilt && rule.matches(&tuple));
        let right = first.map_or(policy, |rule| rule.is_accepted);
        let ahead = rules.iter().take_while(|rule| first.is_none_or(|first| !std::ptr::eq(*rule, first)));
        let could_differ =
            ahead.filter(|rule| rule.is_spoilt && rule.matches(&tuple)).any(|rule| rule.is_accepted != right);
        let rule = oracle.right(&tuple);
        let own = match format {
            RuleFormat::Plain | RuleFormat::ClassBench => answer_by_number(rules, rule, &file.rules, policy),
            _ => file.action(rule).is_some_and(|action| action.eq_ignore_ascii_case("accept")),
        };
        let is_doubted = file.doubts(&tuple, rule).next().is_some();
        is_sure &= !is_doubted;
        assert_eq!(own, right, "{format}: {tuple}: rule {rule}\n{text}\n{report}");
        assert!(
            is_doubted || !could_differ,
            "{format}: {tuple}: rule {rule} isn't in doubt\n{text}\n{report}"
        );
    }
    is_sure
}

/// Filters have no actions, and those of plain rules are numbers: the rules that were taken are the unspoilt
/// ones in order.
fn answer_by_number(
    rules: &[Meaning],
    number: u32,
    taken: &wirespeed_classify::RuleSet<Ipv4Tuple>,
    policy: bool,
) -> bool {
    let good: Vec<&Meaning> = rules.iter().filter(|rule| !rule.is_spoilt).collect();
    assert_eq!(taken.len(), good.len(), "as many rules as there are good ones");
    usize::try_from(number)
        .ok()
        .and_then(|at| good.get(at.checked_sub(1)?))
        .map_or(policy, |rule| rule.is_accepted)
}

fn file(choose: Choices<'_>, format: RuleFormat, rules: &[Meaning], policy: bool) -> String {
    let mut lines: Vec<String> = Vec::new();
    for (at, rule) in rules.iter().enumerate() {
        lines.push(match format {
            RuleFormat::Iptables => iptables(choose, rule),
            RuleFormat::Nft => nft(choose, rule),
            RuleFormat::Ovs => ovs(choose, rule, 1000 - at),
            RuleFormat::ClassBench => classbench(choose, rule),
            _ => plain(choose, rule, 1000 - at),
        });
    }
    let accept = if policy { "accept" } else { "drop" };
    match format {
        RuleFormat::Iptables => {
            format!("*filter\n:INPUT {} [0:0]\n{}\nCOMMIT\n", accept.to_uppercase(), lines.join("\n"))
        }
        RuleFormat::Nft => {
            let chain = format!(
                r#"{{"chain":{{"family":"ip","table":"t","name":"in","type":"filter","hook":"input","prio":0,"policy":"{accept}"}}}}"#
            );
            format!(r#"{{"nftables":[{chain},{}]}}"#, lines.join(",\n"))
        }
        RuleFormat::Ovs => format!("{}\npriority=0 actions={accept}\n", lines.join("\n")),
        _ => lines.join("\n") + "\n",
    }
}

/// Words in any order.
fn shuffled(choose: Choices<'_>, mut words: Vec<String>) -> Vec<String> {
    for at in (1..words.len()).rev() {
        words.swap(at, choose(at + 1));
    }
    words
}

fn address((address, length, _): (u32, u32, bool)) -> String {
    format!("{}/{length}", std::net::Ipv4Addr::from_bits(address))
}

fn iptables(choose: Choices<'_>, rule: &Meaning) -> String {
    let mut option = |long: &str, short: Option<&str>, value: &str, not: bool| {
        let not = if not { "! " } else { "" };
        match (choose(4), short) {
            (0, Some(short)) => format!("{not}{short}{value}"),
            (1, Some(short)) => format!("{not}{short} {value}"),
            (2, _) => format!("{not}{long}={value}"),
            _ => format!("{not}{long} {value}"),
        }
    };
    let mut words = Vec::new();
    if let Some(src) = rule.src {
        words.push(option("--source", Some("-s"), &address(src), src.2));
    }
    // The protocol's own options come behind it.
    if let Some(proto) = rule.proto_name() {
        let mut of = option("--protocol", Some("-p"), proto, false);
        if let Some((from, to, not)) = rule.dport {
            of += &format!(" -m {proto} {}", option("--dport", None, &format!("{from}:{to}"), not));
        }
        words.push(of);
    }
    words.push(option("--jump", Some("-j"), if rule.is_accepted { "ACCEPT" } else { "DROP" }, false));
    if rule.is_spoilt {
        let odd = [
            "--frobnicate",
            "--frob 7",
            "-m owner --uid-owner 0",
            "-m nosuch",
            "-m string --string x --algo bm",
            "-Z",
        ];
        words.push(odd[choose(odd.len())].to_owned());
    }
    format!("-A INPUT {}", shuffled(choose, words).join(" "))
}

fn nft(choose: Choices<'_>, rule: &Meaning) -> String {
    let matched = |protocol: &str, field: &str, not: bool, right: &str| {
        let op = if not { "!=" } else { "==" };
        format!(
            r#"{{"match":{{"op":"{op}","left":{{"payload":{{"protocol":"{protocol}","field":"{field}"}}}},"right":{right}}}}}"#
        )
    };
    let mut words = Vec::new();
    if let Some(src) = rule.src {
        let of = std::net::Ipv4Addr::from_bits(src.0);
        let right = format!(r#"{{"prefix":{{"addr":"{of}","len":{}}}}}"#, src.1);
        words.push(matched("ip", "saddr", src.2, &right));
    }
    match (rule.proto_name(), rule.dport) {
        (Some(proto), Some((from, to, not))) => {
            words.push(matched(proto, "dport", not, &format!(r#"{{"range":[{from},{to}]}}"#)));
        }
        (Some(proto), None) => words.push(matched("ip", "protocol", false, &format!(r#""{proto}""#))),
        _ => {}
    }
    words.push(r#"{"counter":{"packets":0,"bytes":0}}"#.to_owned());
    if rule.is_spoilt {
        let odd = [
            r#"{"frobnicate":null}"#,
            r#"{"match":{"op":"~","left":{"meta":{"key":"mark"}},"right":1}}"#,
            r#"{"match":{"op":"==","left":{"payload":{"tunnel":"vxlan","protocol":"ip","field":"saddr"}},"right":"10.0.0.1"}}"#,
            r#"{"match":{"op":"==","left":{"payload":{"protocol":"ip","field":"saddr","more":1}},"right":"10.0.0.1"}}"#,
            r#"{"match":{"op":"==","left":{"payload":{"protocol":"ip","field":"saddr"}},"right":"@nowhere"}}"#,
            r#"{"xt":{"type":"match","name":"nosuch"}}"#,
        ];
        words.push(odd[choose(odd.len())].to_owned());
    }
    let mut words = shuffled(choose, words);
    words.push(if rule.is_accepted { r#"{"accept":null}"# } else { r#"{"drop":null}"# }.to_owned());
    format!(r#"{{"rule":{{"family":"ip","table":"t","chain":"in","expr":[{}]}}}}"#, words.join(","))
}

fn ovs(choose: Choices<'_>, rule: &Meaning, priority: usize) -> String {
    let mut words = vec![format!("priority={priority}")];
    // An address of IPv4 wants that to be said.
    match (rule.proto_name(), choose(2)) {
        (Some(proto), 0) => words.push(proto.to_owned()),
        (Some(_), _) => words.push(format!("ip,nw_proto={}", rule.proto.unwrap_or_default())),
        (None, _) => words.push("ip".to_owned()),
    }
    if let Some(src) = rule.src {
        words.push(format!("{}={}", ["nw_src", "ip_src"][choose(2)], address(src)));
    }
    if let Some((port, _, _)) = rule.dport {
        words.push([format!("tp_dst={port}"), format!("tp_dst={port:#x}/0xffff")][choose(2)].clone());
    }
    if rule.is_spoilt {
        let odd = [
            "frob=1",
            "frobnicate",
            "reg0=5",
            "tcp_flags=+syn",
            "nw_ttl=64",
            "ct_state=+trk",
            "tp_src=010",
            "dl_vlan=5",
            "priority=7",
        ];
        words.push(odd[choose(odd.len())].to_owned());
    }
    let separator = [",", ", ", " "][choose(3)];
    let action = if rule.is_accepted { "accept" } else { "drop" };
    format!("{} actions={action}", shuffled(choose, words).join(separator))
}

fn classbench(choose: Choices<'_>, rule: &Meaning) -> String {
    let src = rule.src.map_or_else(|| "0.0.0.0/0".to_owned(), address);
    let (from, to) = rule.dport.map_or((0, 65535), |(from, to, _)| (from, to));
    let proto = rule.proto.map_or_else(|| "0x00/0x00".to_owned(), |proto| format!("{proto:#04x}/0xFF"));
    let line = format!("@{src}\t0.0.0.0/0\t0 : 65535\t{from} : {to}\t{proto}");
    match (rule.is_spoilt, choose(4)) {
        (false, 0) => line,
        (false, _) => line + "\t0x0000/0x0000\t",
        (true, 0) => line + "\t0x0000/0x0000\tmore",
        (true, 1) => line + "\tsyn",
        (true, 2) => line.replace(" : ", " - "),
        (true, _) => line.replacen("\t0.0.0.0/0", "", 1),
    }
}

fn plain(choose: Choices<'_>, rule: &Meaning, priority: usize) -> String {
    let mut words = vec![format!("priority={priority}"), format!("action={}", u8::from(rule.is_accepted))];
    words.extend(rule.src.map(|src| format!("{}={}", ["src", "nw_src"][choose(2)], address(src))));
    words.extend(
        rule.proto_name().map(|proto| [proto.to_owned(), format!("proto={proto}")][choose(2)].clone()),
    );
    words.extend(rule.dport.map(|(from, to, _)| format!("dport={from}-{to}")));
    if rule.is_spoilt {
        let odd = [
            "frob=1",
            "frobnicate",
            "priority=1",
            "action=5",
            "sport=1 sport=1",
            "src!=10.0.0.1",
            "dst=10.0.0.0/33",
            "sport=",
        ];
        words.push(odd[choose(odd.len())].to_owned());
    }
    shuffled(choose, words).join([" ", ", ", "\t"][choose(3)])
}

/// Bytes of a file changed, and the file read in every format: it is read or refused.
fn garble(choose: Choices<'_>, text: String) {
    let mut bytes = text.into_bytes();
    for _ in 0..1 + choose(4) {
        if bytes.is_empty() {
            // All of them were taken out.
            break;
        }
        let at = choose(bytes.len());
        match choose(4) {
            0 => bytes[at] = b" \n\"!-=/,:{}[]@0x\0\xff"[choose(18)],
            1 => drop(bytes.drain(at..(at + 1 + choose(9)).min(bytes.len()))),
            2 => bytes.truncate(at.max(1)),
            _ => bytes.extend_from_within(at..(at + 1 + choose(99)).min(bytes.len())),
        }
    }
    let format = RuleFormat::ALL.get(choose(RuleFormat::ALL.len() + 1)).copied();
    for lenient in [false, true] {
        let options = ReadOptions { format, lenient, ..ReadOptions::default() };
        let _read = read_rules_from::<Ipv4Tuple>(&bytes[..], "garbled", &options);
        let _read = read_rules_from::<Ipv6Tuple>(&bytes[..], "garbled", &options);
        let _read = read_rules_from::<OpenFlowTuple>(&bytes[..], "garbled", &options);
        let _read = read_trace_from::<Ipv4Tuple>(&bytes[..], "garbled", &options);
        let _read = read_updates_from::<Ipv4Tuple>(&bytes[..], "garbled", &options);
    }
}
