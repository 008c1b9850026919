//! `enrich`: columns for records of every format, in order, beside a slow enricher; and what is refused.

mod rules;
mod running;
mod tables;

use std::io::Write;
use std::net::IpAddr;

use serde_json::Value;
use wirespeed::prelude::IpNet;

use crate::common::{Folder, V4, V6};
use rules::UFW;

const ZEEK: &str = "#separator \\x09\n#unset_field\t-\n#path\tconn\n#fields\tts\tid.orig_h\tid.resp_h\n\
                    #types\ttime\taddr\taddr\n1\t10.1.2.3\t-\n2\t2001:db8::1\t192.0.2.1\n#close\tnow\n";

#[test]
fn every_format() {
    let folder = Folder::new();
    for (arguments, input, right) in [
        (
            "",
            "ts,src_ip,dst_ip\r\n1,10.1.2.3,\"2001:db8::1\"\r\n2,192.0.2.1,\r\n",
            "ts,src_ip,dst_ip,src_a,dst_a\r\n1,10.1.2.3,\"2001:db8::1\",core-7,fe80::2\r\n2,192.0.2.1,,,\r\n",
        ),
        (
            "",
            ZEEK,
            "#separator \\x09\n#unset_field\t-\n#path\tconn\n#fields\tts\tid.orig_h\tid.resp_h\tsrc_a\tdst_a\n\
          #types\ttime\taddr\taddr\tstring\tstring\n1\t10.1.2.3\t-\tcore-7\t-\n\
          2\t2001:db8::1\t192.0.2.1\tfe80::2\t-\n#close\tnow\n",
        ),
        (
            "",
            "{\"id.orig_h\":\"::ffff:10.1.2.3\", \"x\":[1,{\"y\":null}] }\n{\"id.resp_h\":\"2001:db8::1\"}\n",
            "{\"id.orig_h\":\"::ffff:10.1.2.3\", \"x\":[1,{\"y\":null}],\"src_a\":\"core-7\" }\n\
          {\"id.resp_h\":\"2001:db8::1\",\"src_a\":null}\n",
        ),
        ("--src a.b", "{\"a\":{\"b\":\"10.1.2.3\"}}", "{\"a\":{\"b\":\"10.1.2.3\"},\"src_a\":\"core-7\"}"),
        (
            "",
            "ts,te,td,sa,da\n1,2,3,     10.1.2.3,10.9.9.9\nSummary\nflows,bytes\n1,2\n",
            "ts,te,td,sa,da,src_a,dst_a\n1,2,3,     10.1.2.3,10.9.9.9,core-7,192.0.2.1\nSummary\nflows,bytes\n1,2\n",
        ),
        (
            "--address host --prefix",
            "host\tn\n10.1.200.1\t1\n\n",
            "host\tn\thost_a\thost_a_prefix\n10.1.200.1\t1\t192.0.2.2\t10.1.0.0/16\n\n",
        ),
        (
            "--prefix",
            "{\"ip\":\"2001:db8:1::7\"}\n",
            "{\"ip\":\"2001:db8:1::7\",\"ip_a\":\"fe80::2\",\"ip_a_prefix\":\"2001:db8:1::/48\"}\n",
        ),
        ("", "", ""),
    ] {
        let ran = folder.run_with(&format!("enrich --table a=both {arguments}"), input.as_bytes()).ok();
        assert_eq!(ran.stdout, right);
    }
}

#[test]
fn addresses_that_are_numbers() {
    let folder = Folder::new();
    folder.write("geo.csv", "ip_from,ip_to,country\n167772160,184549375,DE\n3221225984,3221226239,FR\n");
    folder.write(
        "geo6.csv",
        "ip_from,ip_to,country\n281470849515520,281470866292735,DE\n\
         42540766411282592856903984951653826560,42540766490510755371168322545197776895,FR\n",
    );
    let csv = "src,dst\n167772161,\n0,10.0.0.1\n";
    let ran = folder.run_with("enrich --table geo=geo.csv --address-numbers 4", csv.as_bytes()).ok();
    assert_eq!(ran.stdout, "src,dst,src_geo,dst_geo\n167772161,,DE,\n0,10.0.0.1,,DE\n");
    let json =
        "{\"src\":42540766411282592856903984951653826561,\"dst\":\"281470849515521\"}\n{\"src\":167772161}\n";
    let ran = folder.run_with("enrich --table geo=geo6.csv --address-numbers 6", json.as_bytes()).ok();
    assert_eq!(
        ran.stdout,
        "{\"src\":42540766411282592856903984951653826561,\"dst\":\"281470849515521\",\"src_geo\":\"FR\",\"dst_geo\":\"DE\"}\n\
         {\"src\":167772161,\"src_geo\":null,\"dst_geo\":null}\n"
    );
    for (arguments, input, said) in [
        (
            "",
            "src\n167772161\n",
            "2: src \"167772161\" is no address (--address-numbers takes numbers as addresses)",
        ),
        ("", "{\"src\":167772161}\n", "1: member \"src\" is not text (--address-numbers"),
        ("--address-numbers 4", "src\n4294967296\n", "2: src \"4294967296\" is no address"),
        ("--address-numbers 4", "src\n01\n", "2: src \"01\" is no address"),
        ("--address-numbers 4", "src\n0x0a000001\n", "is no address"),
        ("--address-numbers 4", "{\"src\":-1}\n", "is no address"),
        ("--address-numbers 4", "{\"src\":1.0}\n", "is no address"),
        ("--address-numbers 6", "src\n340282366920938463463374607431768211456\n", "is no address"),
        ("--address-numbers 5", "src\n1\n", "a family is 4 or 6"),
    ] {
        let enrich = format!("enrich --table geo=geo.csv {arguments}");
        let ran = folder.run_with(&enrich, input.as_bytes()).status(2);
        assert!(ran.stderr.contains(said), "{arguments} {input}: {ran:?}");
    }
}

/// A generator of numbers that is the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[usize::try_from(self.below(from.len() as u64)).unwrap()]
    }

    fn address(&mut self) -> String {
        match self.below(8) {
            0 => String::new(),
            1 => self.pick(&["2001:db8::1", "2001:db8:1:2:3::9", "2001:DB8:0:0::7", "fe80::1"]).into(),
            2 => format!("::ffff:10.1.2.{}", self.below(256)),
            3 => format!("203.0.{}.{}", self.below(256), self.below(256)),
            _ => format!("10.{}.{}.{}", self.below(3), self.below(4), self.below(256)),
        }
    }

    fn text(&mut self) -> String {
        (0..self.below(9))
            .map(|_| self.pick(&['a', ',', '"', '\n', ' ', 'é', '\r', ';', '\\', '\t']))
            .collect()
    }
}

/// The slow enricher: goes through all routes for each address.
fn slow(address: &str) -> Option<&'static str> {
    let address = address.parse::<IpAddr>().ok()?.to_canonical();
    let routes = V4.lines().chain(V6.lines()).filter_map(|line| line.split_once(' '));
    let routes = routes.filter_map(|(net, to)| Some((net.parse::<IpNet>().ok()?, to)));
    let matching = routes.filter(|(net, _)| net.contains(&address));
    matching.max_by_key(|(net, _)| net.prefix_len()).map(|(_, to)| to)
}

#[test]
fn order_and_answers_are_those_of_a_slow_enricher() {
    let folder = Folder::new();
    let (mut dice, mut csv, mut right_csv, mut json) = (Dice(7), String::new(), String::new(), String::new());
    let mut right_json = Vec::new();
    csv.push_str("n,src,note,dst\n");
    right_csv.push_str("n,src,note,dst,src_a,dst_a\n");
    for n in 0..3_000 {
        let (src, dst, text) = (dice.address(), dice.address(), dice.text());
        let mut quoted = |cell: &str| {
            let needs = cell.contains([',', '"', '\n', '\r']);
            if needs || dice.below(4) == 0 {
                format!("\"{}\"", cell.replace('"', "\"\""))
            } else {
                cell.to_owned()
            }
        };
        let record = format!("{n},{},{},{}", quoted(&src), quoted(&text), quoted(&dst));
        let end = dice.pick(&["\n", "\r\n"]);
        let [of_src, of_dst] = [&src, &dst].map(|address| slow(address));
        csv.push_str(&format!("{record}{end}"));
        let cell = |value: Option<&'static str>| value.unwrap_or_default();
        right_csv.push_str(&format!("{record},{},{}{end}", cell(of_src), cell(of_dst)));
        let object = serde_json::json!({"n": n, "src": src, "note": [text, {"src": 1}], "dst": dst});
        json.push_str(&format!("{object}{end}"));
        let mut object = object;
        object["src_a"] = of_src.into();
        object["dst_a"] = of_dst.into();
        right_json.push(object);
    }
    for tuning in ["--block 61 --threads 5", "--block 4096 --threads 3", ""] {
        let ran = folder.run_with(&format!("enrich --table a=both {tuning}"), csv.as_bytes()).ok();
        assert!(ran.stdout == right_csv, "{tuning}");
        let ran = folder.run_with(&format!("enrich --table a=both {tuning}"), json.as_bytes()).ok();
        let objects: Vec<Value> =
            ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(objects == right_json, "{tuning}");
        // What was there is untouched.
        for (line, before) in ran.stdout.lines().zip(json.lines()) {
            assert!(line.starts_with(before.trim_end_matches(['\r', '}'])), "{line}");
        }
    }
    // Nothing is changed by no table.
    for input in [&csv, &json] {
        assert!(folder.run_with("enrich --copy --block 100", input.as_bytes()).ok().stdout == *input);
    }
}

#[test]
fn wrong_records() {
    let folder = Folder::new();
    let refused = |input: &str, before: &str, says: &str| {
        let ran = folder.run_with("enrich --table a=both --block 8", input.as_bytes()).status(2);
        assert_eq!(ran.stdout, before, "all before the wrong record");
        assert!(
            ran.stderr.lines().any(|line| line.starts_with("lookupctl: ") && line.contains(says)),
            "{ran:?}"
        );
    };
    let (csv, head) =
        ("n,src\n1,10.1.2.3\n2,x.y\n3\n4,\"a\"b\n5,10.1.2.3\n", "n,src,src_a\n1,10.1.2.3,core-7\n");
    refused(csv, head, "standard input: line 3: src \"x.y\" is no address");
    refused(
        "n,src\n\"1\n\",10.1.2.3\n3\n",
        "n,src,src_a\n\"1\n\",10.1.2.3,core-7\n",
        "line 4: 1 columns, the header has 2",
    );
    refused("n,src\n4,\"a\"b\n", "n,src,src_a\n", "line 2: text after the closing quote of a cell");
    refused("n,src\n4,\"a\n", "n,src,src_a\n", "line 2: a quote that is not closed");
    let json = "{\"src\":\"10.1.2.3\"}\n{\"src\":7}\n{\"src\":\n{\"src_a\":1}\n{\"src\":\"10.1.2.3\"}\n";
    let first = "{\"src\":\"10.1.2.3\",\"src_a\":\"core-7\"}\n";
    refused(json, first, "line 2: member \"src\" is not text");
    refused("{\"src\":\"\"}\n[1]\n", "{\"src\":\"\",\"src_a\":null}\n", "line 2: no JSON object");
    let (none, taken) = ("{\"src\":\"\",\"src_a\":null}\n", "{\"src\":\"\"}\n{\"src_a\":1}\n");
    refused(taken, none, "line 2: there is a member \"src_a\" already");
    // A file stays as it was, and what is wrong is not in it.
    folder.write("out", "before");
    let ran = folder.run_with("enrich --table a=both -o out", csv.as_bytes()).status(2);
    assert!(ran.stderr.contains("lookupctl: standard input: line 3: "), "{ran:?}");
    assert_eq!(std::fs::read_to_string(folder.path("out")).unwrap(), "before");
    let ran = folder.run_with("enrich --table a=both -o none/out", head.as_bytes()).status(2);
    assert!(ran.stderr.contains("lookupctl: none/out: "), "{ran:?}");
    let long = format!("src,n\n1.1.1.1,\"{}", "x".repeat(3 << 20));
    let ran = folder.run_with("enrich --table a=both --lenient", long.as_bytes()).status(2);
    assert_eq!(ran.stdout, "src,n,src_a\n");
    assert!(ran.stderr.contains("line 2: no end of a record within 1048576 bytes"), "{ran:?}");

    let ran = folder.run_with("enrich --table a=both --lenient --block 8", csv.as_bytes()).ok();
    let right = "n,src,src_a\n1,10.1.2.3,core-7\n2,x.y,\n3\n4,\"a\"b\n5,10.1.2.3,core-7\n";
    assert_eq!(ran.stdout, right);
    for reason in ["src is no address", "another number of columns", "text after the closing quote"] {
        assert!(ran.stderr.contains(&format!("1 wrong record passed through: {reason}")), "{}", ran.stderr);
    }
    let ran = folder.run_with("enrich --table a=both --lenient --block 8", json.as_bytes()).ok();
    assert_eq!(ran.stdout, format!("{first}{{\"src\":7}}\n{{\"src\":\n{{\"src_a\":1}}\n{first}"));

    // A file that was there stays.
    folder.write("out", "old");
    folder.run_with("enrich --table a=both -o out", csv.as_bytes()).refused(&["line 3"]);
    assert_eq!(std::fs::read_to_string(folder.path("out")).unwrap(), "old");
}

#[test]
fn wrong_command_lines() {
    let folder = Folder::new();
    folder.run("gen fib --count 20 --to mrt -o t.mrt").ok();
    folder.write("fw", "proto=tcp action=1\n");
    folder.write("flows", "priority=1,ip,in_port=1 actions=output:2\n");
    folder.write("ufw", UFW);
    folder.write("wrong.csv", "prefix,c\n10.0.0.0/99,x\n");
    let csv = b"a,src,src_ip,src_x\n1,2,3,4\n";
    for (arguments, says) in [
        ("", "no table: name one with --table NAME=FILE, --merge TABLE=NAME=FILE"),
        ("--table v4", "a table is named NAME=FILE"),
        ("--table a=v4 --table a=v6", "two tables have the name \"a\""),
        ("--table a=v4 --fields b=c", "there is no --table b=FILE"),
        (
            "--table a=v4 --fields a=c",
            "--fields a=... is for tables whose records have fields (CSV, MaxMind DB, clouds, delegations, \
             images): v4:2: no column is named like a prefix",
        ),
        ("--table a=t.mrt --fields a=c", "--fields a=... is for tables whose records have fields"),
        ("--table a=absent --fields a=c", "lookupctl: absent: No such file"),
        ("--table a=wrong.csv --fields a=c", "lookupctl: a: wrong.csv:2: "),
        ("--table a=wrong.csv --fields a=d", "lookupctl: a: wrong.csv:1: no column d"),
        ("--table a=v4 --name-column q", "--name-column is for --names"),
        ("--table a=v4 --dport src", "--dport is for --rules"),
        ("--table a=v4 --chain x", "--chain is for --rules"),
        ("--rules a=fw --src src", "no column is known to hold destination addresses; name one with --dst"),
        ("--rules a=fw --src src --dst src_ip --proto a --chain x", "--chain does not apply"),
        ("--rules a=flows --src src", "no field of a tuple (in_port)"),
        ("--rules a=flows --src src --tuple openflow", "rules of 5-tuples are needed"),
        ("--rules a=fw --src src --rule-table x", "--rule-table does not apply to rules in the format plain"),
        ("--rules a=ufw --src src --flow-table 1 --lenient", "--flow-table does not apply"),
        ("--table a=v4 --flow-table 1", "--flow-table is for --rules"),
        ("--table a=ufw --src src", "rules are named with --rules NAME=FILE"),
        ("--rules a=ufw --src src", "state what they ask for, as by --assume ct=new"),
        ("--table a=v4", "more than one column could be meant: src, src_ip; name one with --src"),
        ("--table a=v4 --src b", "there is no column \"b\"; the columns are a, src, src_ip, src_x"),
        ("--table x=v4 --src src", "there is a column \"src_x\" already"),
        ("--table a=v4 --names b=-", "a table and the records can't both come from standard input"),
        ("--table a=nowhere", "nowhere"),
        ("--names b=v4 --name-column a", "v4"),
    ] {
        folder.run_with(&format!("enrich {arguments}"), csv).refused(&[says]);
    }
    folder.write("x.parquet", "PAR1\u{15}");
    folder.run("enrich --table a=v4 x.parquet").refused(&["x.parquet: the output of Parquet is a file"]);
    folder
        .run_with("enrich --table a=v4", b"x,y\n1,2\n")
        .refused(&["no column is known to hold addresses", "are x, y"]);
}

#[test]
fn a_byte_order_mark_before_json_and_logs() {
    let folder = Folder::new();
    let mark = "\u{feff}";
    let json =
        folder.run_with("enrich --table a=v4", format!("{mark}{{\"src\":\"10.1.2.3\"}}\n").as_bytes()).ok();
    assert_eq!(json.stdout, "{\"src\":\"10.1.2.3\",\"src_a\":\"core-7\"}\n");
    let log = format!("{mark}#separator \\x09\n#fields\tsrc\n#types\taddr\n10.1.2.3\n");
    for format in ["", "--format zeek"] {
        let ran = folder.run_with(&format!("enrich --table a=v4 {format}"), log.as_bytes()).ok();
        assert_eq!(
            ran.stdout,
            "#separator \\x09\n#fields\tsrc\tsrc_a\n#types\taddr\tstring\n10.1.2.3\tcore-7\n"
        );
    }
}

#[test]
fn escapes_in_names_of_logs() {
    let folder = Folder::new();
    folder.write("names", "bücher.example 7\n");
    let log = "#separator \\x09\n#fields\tquery\nwww.b\\xc3\\xbccher.example\n";
    let ran = folder.run_with("enrich --names a=names", log.as_bytes()).ok();
    assert!(ran.stdout.ends_with("www.b\\xc3\\xbccher.example\t7\n"), "{}", ran.stdout);
}

#[test]
fn compressed_input() {
    let folder = Folder::new();
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(b"src\n10.1.2.3\n").unwrap();
    let packed = packed.finish().unwrap();
    let right = "src,src_a\n10.1.2.3,core-7\n";
    assert_eq!(folder.run_with("enrich --table a=v4", &packed).ok().stdout, right);
    // What comes before the damage is written.
    let text =
        (0..200_000).map(|n: u32| format!("10.{}.{}.{}\n", n % 7, n % 251, n % 199)).collect::<String>();
    let mut long = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    long.write_all(format!("src\n{text}").as_bytes()).unwrap();
    let long = long.finish().unwrap();
    let ran = folder.run_with("enrich --table a=v4", &long[..long.len() / 2]).status(2);
    let lines = ran.stdout.lines().count();
    assert!(lines > 1000 && lines < 200_000, "{lines}");
    assert!(
        ran.stderr.contains(&format!("lookupctl: standard input: line {}: ", lines + 1)),
        "{}",
        ran.stderr
    );
}
