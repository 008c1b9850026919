//! Files by hand, and files that are anything.

use proptest::prelude::*;

use wirespeed_classify::oracle::{Oracle, Right};
use wirespeed_classify::read::*;
use wirespeed_classify::{Ipv4Tuple, Ipv6Tuple, OpenFlowTuple, Rule, RuleNumber, Tuple, VLAN_NONE, write};

fn read_text<T: Tuple>(text: &str) -> Result<(RuleFile<T>, RuleReport), ReadError> {
    read_rules_from(text.as_bytes(), "text", &ReadOptions::default())
}

/// The rules in words with what their actions are called.
fn words<T: Tuple>(file: &RuleFile<T>) -> Vec<String> {
    let word = |(number, rule): (RuleNumber, &Rule<T>)| {
        let text = rule.to_string();
        let (rest, _) = text.rsplit_once("action=").expect("all rules have one");
        format!("{rest}{}", file.action(number.get()).unwrap_or_default())
    };
    file.rules.sorted().into_iter().map(word).collect()
}

fn left_out(report: &RuleReport) -> Vec<(u64, &str)> {
    report.left_out.iter().map(|one| (one.place.line, one.why.as_str())).collect()
}

#[test]
fn plain() {
    let text = "# rules\n\nsrc=10.0.0.0/8 action=1\nnumber=7 udp priority=4 # of seven\ntcp\n";
    let (file, report) = read_text::<Ipv4Tuple>(text).expect("rules");
    let rules: Vec<_> = file.rules.sorted().into_iter().map(|(n, rule)| format!("{n} {rule}")).collect();
    assert_eq!(
        rules,
        [
            "1 src=10.0.0.0/8 priority=0 action=1",
            "7 proto=udp priority=4 action=0",
            "8 proto=tcp priority=0 action=0"
        ]
    );
    assert_eq!((report.format, report.records), (RuleFormat::Plain, 3));
    let mut written = Vec::new();
    write::write_rules(&file.rules, &mut written).expect("written");
    let again =
        read_rules_from::<Ipv4Tuple>(&written[..], "again", &ReadOptions::default()).expect("read again").0;
    assert_eq!(again.rules.sorted(), file.rules.sorted());
    let error = read_text::<Ipv4Tuple>("tcp action=1\nsrc=10.0.0.300\n").expect_err("no address");
    assert_eq!(error.to_string(), "text:2: \"10.0.0.300\" is not a value of src: \"src=10.0.0.300\"");
    let lenient = ReadOptions { lenient: true, ..ReadOptions::default() };
    let (file, report) =
        read_rules_from::<Ipv4Tuple>(&b"action=1\nsrc=x\nnumber=1 udp\n"[..], "text", &lenient)
            .expect("lenient");
    assert_eq!((file.rules.len(), report.left_out.len()), (1, 2));
}

#[test]
fn classbench_filters_and_traces() {
    let text = "@10.0.0.0/8\t192.0.2.7/32\t0 : 65535\t1024 : 65535\t0x06/0xFF\t0x1000/0x1000\t\n@0.0.0.0/0 0.0.0.0/0 0 : 65535 0 : 65535 0x00/0x00\n";
    let (file, report) = read_text::<Ipv4Tuple>(text).expect("filters");
    assert_eq!(
        words(&file),
        ["src=10.0.0.0/8 dst=192.0.2.7 dport=1024-65535 proto=tcp priority=0 ", "priority=0 "]
    );
    assert_eq!((report.format, report.rules, report.entries), (RuleFormat::ClassBench, 2, 7));
    assert_eq!(report.widened, 1);
    assert!(report.to_string().contains("1 filter is wider than said"), "{report}");
    let said: Vec<_> = file.doubts.widened().iter().map(|one| (one.before, one.why.to_string())).collect();
    let why = "line 1: TCP flags (0x1000/0x1000) are no field of a tuple: @10.0.0.0/8\t";
    assert!(matches!(&said[..], [(1, text)] if text.starts_with(why)), "{said:?}");
    let in_doubt = |tuple: &str, answer| file.doubts(&tuple.parse().expect("a tuple"), answer).count();
    assert_eq!(in_doubt("src=10.0.0.1 dst=192.0.2.7 dport=5000 proto=tcp", 1), 1);
    assert_eq!(in_doubt("src=10.0.0.1 dst=192.0.2.7 dport=5000 proto=udp", 2), 0);
    let mut written = Vec::new();
    write::write_classbench(&file.rules, &mut written).expect("filters");
    let again =
        read_rules_from::<Ipv4Tuple>(&written[..], "again", &ReadOptions::default()).expect("read again").0;
    assert_eq!(again.rules.sorted(), file.rules.sorted());
    for wrong in [
        "@10.0.0.0/8",
        "@a/8 0.0.0.0/0 0 : 1 0 : 1 0x00/0x00",
        "@10.0.0.0/8 0.0.0.0/0 5 : 1 0 : 1 0x00/0x00",
        "@10.0.0.0/8 0.0.0.0/0 0 : 1 0 : 1 0x00/0x00 0x0000/0x0000 more",
        "@10.0.0.0/8 0.0.0.0/0 0 : 1 0 : 1 0x00/0x00 syn",
        "@10.0.0.0/8 0.0.0.0/0 0 : 1 0 : 1 6-17",
        "@10.0.0.0/255.0.0.0 0.0.0.0/0 0 : 1 0 : 1 0x00/0x00",
        "@10.0.0.1 0.0.0.0/0 0 : 1 0 : 1 0x00/0x00",
    ] {
        assert!(
            matches!(read_text::<Ipv4Tuple>(wrong), Err(ReadError::Bad { place: Place { line: 1, .. }, .. })),
            "{wrong}"
        );
    }
}

#[test]
fn flows() {
    let text = "NXST_FLOW reply (xid=0x4):\n \
        cookie=0x0, duration=3.1s, table=0, n_packets=0, n_bytes=0, idle_age=3, priority=100,tcp,in_port=1,vlan_tci=0x0000,nw_dst=10.0.0.0/8,tp_dst=0x50/0xfff0 actions=output:2\n \
        cookie=0x0, table=1, priority=5 actions=drop\n \
        cookie=0x0, table=0, arp,dl_src=02:00:00:00:00:00/02:00:00:00:00:00 actions=NORMAL\n \
        table=0, ct_state=+est actions=drop\n";
    let (file, report) = read_text::<OpenFlowTuple>(text).expect("flows");
    let vlan = format!("in_port=1 dl_vlan={VLAN_NONE} dl_type=0x0800 nw_proto=tcp nw_dst=10.0.0.0/8");
    assert_eq!(
        words(&file),
        [
            format!("{vlan} tp_dst=0x50/0xfff0 priority=100 output:2"),
            "dl_src=0x20000000000/0x20000000000 dl_type=0x0806 priority=32768 NORMAL".to_owned(),
        ]
    );
    assert_eq!((report.format, report.records, report.elsewhere), (RuleFormat::Ovs, 4, 1));
    assert_eq!(left_out(&report), [(5, "no field of a tuple (ct_state)")]);
}

/// The right answers that came with real sets, by the oracle. The shortest sets: it looks at every rule.
#[test]
fn real_filters_and_their_right_answers() {
    let Some(dir) = wirespeed_image::real_data("rules") else { return };
    for name in ["acl1_1k", "acl3_1k", "fw1_1k", "fw2_1k", "ipc1_1k"] {
        let source = |what: &str| Source::Path(dir.join(format!("{name}.{what}.zst")));
        let (file, report) =
            read_rules::<Ipv4Tuple>(&source("rules"), &ReadOptions::default()).expect("filters");
        assert_eq!((report.left_out.len(), report.format), (0, RuleFormat::ClassBench));
        let (tuples, _) =
            read_trace::<Ipv4Tuple>(&source("trace"), &ReadOptions::default()).expect("a trace");
        let truth = std::fs::read(dir.join(format!("{name}.truth-u32le.zst"))).expect("right answers");
        let truth = zstd::decode_all(&truth[..]).expect("right answers");
        let oracle = Oracle::of(&file.rules);
        assert_eq!(truth.len(), 4 * tuples.len());
        for (tuple, truth) in tuples.iter().zip(truth.chunks_exact(4)).step_by(3) {
            let truth = u32::from_le_bytes(truth.try_into().expect("4 bytes"));
            assert_eq!(oracle.right(tuple), truth + 1, "{name}: {tuple}");
        }
    }
}

proptest! {
    /// Whatever is in a file, it is read or refused.
    #[test]
    fn anything_is_read_or_refused(lines in proptest::collection::vec(proptest::sample::select(vec![
        "@10.0.0.0/8 0.0.0.0/0 0 : 5 9 : 7 0x06/0xFF", "-A INPUT -p tcp --dport 1:", "*filter", ":INPUT", "[", "-A", "\"", "-A INPUT -s",
        "priority=1,tcp,tp_dst=99999", "number=", "number=0 tcp", "=", "src=/ dst=-", "sport=5-", "{", "{\"nftables\":[{\"rule\":1}]}", "@", ":", "tcp,,,=", "\u{feff}tcp action=1", "é=é",
    ]), 0..6), format in 0..6usize, lenient in any::<bool>()) {
        let options = ReadOptions { format: RuleFormat::ALL.get(format).copied(), lenient, ..ReadOptions::default() };
        let text = lines.join("\n");
        let _ = read_rules_from::<Ipv4Tuple>(text.as_bytes(), "any", &options);
        let _ = read_rules_from::<OpenFlowTuple>(text.as_bytes(), "any", &options);
        let _ = read_trace_from::<Ipv6Tuple>(text.as_bytes(), "any", &options);
    }
}

/// A file that is written anew is empty for a moment: it must not take the place of a list of what is denied.
#[test]
fn a_file_without_a_rule_is_refused() {
    for text in ["", "\n\n", "# nothing yet\n"] {
        for lenient in [false, true] {
            let options = ReadOptions { lenient, ..ReadOptions::default() };
            let error = read_rules_from::<Ipv4Tuple>(text.as_bytes(), "fw.rules", &options).unwrap_err();
            assert_eq!(error.to_string(), "no rules in fw.rules", "{text:?}");
        }
    }
}
