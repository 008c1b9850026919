//! `enrich`: columns for records of every format, in order, beside a slow enricher; and what is refused.

use std::io::{BufRead, BufReader, Write};
use std::net::IpAddr;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use wirespeed::prelude::IpNet;

use crate::common::{Folder, V4, V6};

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

/// A choice that a file leaves open is told with the verb that has an option for it: `enrich` has none.
#[test]
fn a_file_of_several_sets_or_vrfs_names_the_verb_that_chooses() {
    let folder = Folder::new();
    folder.write("log.csv", "src\n10.1.1.1\n");
    folder.write("sets", "create a hash:net\nadd a 10.0.0.0/8\ncreate b hash:net\nadd b 11.0.0.0/8\n");
    for tables in ["--table s=sets", "--merge s=x=sets"] {
        let said = "several sets: choose one with lookupctl build --set: a, b";
        folder.run(&format!("enrich log.csv {tables}")).refused(&[said]);
    }
    folder.run("build --fib sets --set a -o a.img").ok();
    let ran = folder.run("enrich log.csv --table s=a.img").ok();
    assert_eq!(ran.stdout, "src,src_s\n10.1.1.1,member\n");
    folder.run("lookup --fib sets 10.1.1.1").refused(&["several sets: choose one with --set: a, b"]);
}

/// Wrong records pass beside tables that are right, and never beside one of which nothing is.
#[test]
fn a_table_of_which_nothing_is_right_is_refused() {
    let folder = Folder::new();
    folder.write("log.csv", "src,query\n10.1.1.1,a.example\nx,a.example\n");
    folder.write("odd.csv", "from;to;v\n10.0.0.0;10.0.0.255;1\n");
    folder.write("bad", "10.0.0.0/33 a\n10.0.0.0/8 b\n");
    folder.write("all-bad", "10.0.0.0/33 a\n10.0.0.0/x b\n");
    folder.write("names.csv", "a..example;1\nb..example;2\n");
    folder.write("empty", "# none\n");
    folder.write("rules", "src=10.0.0.0/33\n");
    let nothing = "nothing of it was taken: ";
    for (tables, said) in [
        ("--table a=odd.csv", "odd.csv"),
        ("--table a=all-bad", "all-bad: nothing of it was taken: "),
        ("--table a=all-bad", "(first at all-bad:1)"),
        ("--table a=empty", "empty: nothing of it was taken: it is empty"),
        ("--merge m=a=both --merge m=b=all-bad", nothing),
        ("--names a=names.csv", nothing),
        ("--rules a=rules", "no rules that can be expressed"),
        ("--table a=bad --strict-tables", "bad:1"),
    ] {
        folder.run(&format!("enrich log.csv {tables} --lenient")).refused(&[said]);
    }
    let ran = folder.run("enrich log.csv --table a=bad --lenient").ok();
    assert_eq!(ran.stdout, "src,query,src_a\n10.1.1.1,a.example,b\nx,a.example,\n");
    let ran = folder.run("enrich log.csv --table a=both --lenient --strict-tables").ok();
    assert_eq!(ran.stdout, "src,query,src_a\n10.1.1.1,a.example,192.0.2.2\nx,a.example,\n");
    folder.run("enrich log.csv --table a=both --strict-tables").refused(&["--lenient"]);
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

#[test]
fn merged_tables_and_their_fields_and_a_source_that_changes() {
    let folder = Folder::new();
    folder.write("own.csv", "prefix,site\n10.1.0.0/16,Kiel\n");
    folder.write("log.csv", "src\n10.1.1.1\n10.2.0.1\n2001:db8::1\n");
    let merge = "--merge net=own:site=own.csv --merge net=hop=both";
    let ran = folder.run(&format!("enrich {merge} --fields net=hop,own log.csv")).ok();
    let right = "src,src_net_hop,src_net_own\n10.1.1.1,192.0.2.2,Kiel\n10.2.0.1,192.0.2.1,\n\
                 2001:db8::1,fe80::2,\n";
    assert_eq!(ran.stdout, right);
    let whole = folder.run(&format!("enrich {merge} log.csv")).ok().stdout;
    assert!(whole.contains("10.1.1.1,\"own=Kiel,hop=192.0.2.2\""), "{whole}");
    for (arguments, said) in [
        ("--merge net=own=own.csv --table net=both", "has a file, and sources"),
        ("--merge own.csv", "TABLE=NAME=FILE"),
        ("--merge net=own=own.csv --fields net=rack", "no field rack; there are own"),
        ("--merge net=own=nosuch", "nosuch"),
        ("--merge net=a=- -", "standard input"),
    ] {
        let ran = folder.run(&format!("enrich {arguments} log.csv").replace(" - log.csv", " -")).status(2);
        assert!(ran.stderr.contains(said) && ran.stdout.is_empty(), "{said}: {ran:?}");
    }
}

#[test]
fn tables_with_fields_and_names() {
    let folder = Folder::new();
    folder.write("geo.csv", "network,country,city\n10.0.0.0/8,FR,\"Lyon, \"\"3e\"\"\"\n2001:db8::/32,DE,\n");
    folder.write("list", "*.example.com\nbad.org\n");
    folder.write("routes", "10.0.0.0\t8\t64496\n");
    folder.write("log.csv", "src,query\n10.1.1.1,www.example.com\n2001:db8::1,-\n,BAD.org.\n");
    let tables = "--table geo=geo.csv --fields geo=city,country --table asn=routes --names list=list log.csv";
    let ran = folder.run(&format!("enrich {tables}")).ok();
    assert_eq!(
        ran.stdout,
        "src,query,src_geo_city,src_geo_country,src_asn,query_list\n\
         10.1.1.1,www.example.com,\"Lyon, \"\"3e\"\"\",FR,64496,member\n\
         2001:db8::1,-,,DE,,\n,BAD.org.,,,,member\n"
    );
    assert!(ran.stderr.contains("\n  query: 2 looked up, 2 of them matched"), "{}", ran.stderr);
    let ran = folder.run(&format!("enrich {tables} --prefix -o out.csv")).ok();
    assert_eq!(ran.stdout, "");
    let written = std::fs::read_to_string(folder.path("out.csv")).unwrap();
    assert!(written.contains("\n10.1.1.1,www.example.com,\"Lyon, \"\"3e\"\"\",FR,10.0.0.0/8,64496,10.0.0.0/8,member,/com/example\n"), "{written}");
    // Images answer as the files that they were built from.
    folder.run("build --fib both -o both.img").ok();
    folder.run("names build --table list -o list.img").ok();
    let of = |tables: &str| folder.run(&format!("enrich {tables} log.csv")).ok().stdout;
    assert_eq!(of("--table a=both.img --names l=list.img"), of("--table a=both --names l=list"));
}

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

#[test]
fn fields_of_names() {
    let folder = Folder::new();
    folder.write("list", "ads.example category=ads,risk=3\nnews.example category=news\n");
    folder.run("names build --table list -o list.img").ok();
    let log = "query\nwww.ads.example\nnews.example\nx.org\n";
    for file in ["list", "list.img"] {
        let ran = folder
            .run_with(&format!("enrich --names l={file} --fields l=risk,category"), log.as_bytes())
            .ok();
        assert_eq!(
            ran.stdout,
            "query,query_l_risk,query_l_category\nwww.ads.example,3,ads\nnews.example,,news\nx.org,,\n"
        );
        let ran = folder.run_with(&format!("enrich --names l={file} --fields l=x"), log.as_bytes()).status(2);
        assert!(ran.stderr.contains("no field x; there are category, risk"), "{ran:?}");
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
fn fields_of_an_image_are_those_of_its_table() {
    let folder = Folder::new();
    folder.write("own.csv", "network,country,asn\n10.0.0.0/8,DE,2\n10.1.0.0/16,,3\n2001:db8::/32,A B,\n");
    folder.run("build --fib own.csv -o own.img").ok();
    let records = b"src\n10.0.0.1\n10.1.0.1\n2001:db8::1\n9.9.9.9\n";
    let enriched = |file: &str, fields: &str| {
        folder.run_with(&format!("enrich --table a={file} --fields a={fields}"), records)
    };
    let one = "src,src_a_country\n10.0.0.1,DE\n10.1.0.1,\n2001:db8::1,A B\n9.9.9.9,\n";
    let two = "src,src_a_asn,src_a_country\n10.0.0.1,2,DE\n10.1.0.1,3,\n2001:db8::1,,A B\n9.9.9.9,,\n";
    for file in ["own.csv", "own.img"] {
        assert_eq!(enriched(file, "country").ok().stdout, one, "{file}");
        assert_eq!(enriched(file, "asn,country").ok().stdout, two, "{file}");
        for fields in ["nosuch", "asn,nosuch", "nosuch,none"] {
            enriched(file, fields).refused(&["own", "nosuch", "country", "asn"]);
        }
    }
    folder.run("build --fib both -o plain.img").ok();
    enriched("plain.img", "country").refused(&["plain.img: no field country; the labels have no fields"]);
}

const UFW: &str = "*filter\n:INPUT DROP [0:0]\n\
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
fn addresses_of_a_family_that_no_table_has() {
    let folder = Folder::new();
    folder.write("fw", "proto=tcp action=1\n");
    folder.write("fw6", "src=2001:db8::/32 action=1\n");
    let records = b"src,dst,proto\n10.1.2.3,10.0.0.1,6\n192.0.2.1,10.0.0.1,17\n2001:db8::1,fe80::1,6\n\
        fe80::1,fe80::1,17\nfe80::2,,6\n::ffff:10.1.2.3,10.0.0.1,6\n-,-,6\n";
    for (family, table) in [("v4", "v4.img"), ("v6", "v6.img"), ("both", "both.img")] {
        folder.run(&format!("build --fib {family} -o {table}")).ok();
    }
    for (tables, says) in [
        ("--table a=v4", "src: 3 looked up, 2 of them matched; 3 of IPv6, which no table has\n"),
        ("--table a=v6", "src: 3 looked up, 1 of them matched; 3 of IPv4, which no table has\n"),
        ("--table a=v4.img", "src: 3 looked up, 2 of them matched; 3 of IPv6, which no table has\n"),
        ("--table a=v6.img", "src: 3 looked up, 1 of them matched; 3 of IPv4, which no table has\n"),
        ("--table a=both.img", "src: 6 looked up, 3 of them matched\n"),
        ("--table a=v4 --table b=v6", "src: 6 looked up, 3 of them matched\n"),
        ("--rules f=fw", "5-tuples: 3 looked up, 2 of them matched; 2 of IPv6, which no table has"),
        ("--rules f=fw6", "5-tuples: 2 looked up, 1 of them matched; 3 of IPv4, which no table has"),
        ("--rules f=fw --rules g=fw6", "5-tuples: 5 looked up, 3 of them matched"),
    ] {
        let ran = folder.run_with(&format!("enrich {tables} --block 90"), records).ok();
        assert!(
            format!("{}\n", ran.stderr.trim_end()).contains(&format!("\n  {says}")),
            "{tables}: {}",
            ran.stderr
        );
    }
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

#[test]
fn lists_of_domains() {
    let folder = Folder::new();
    folder.write("hosts", "0.0.0.0 tracker.example\n");
    folder.write("filter", "||ads.example^\n@@||good.ads.example^\n");
    folder.write("psl", "// ===BEGIN ICANN DOMAINS===\nuk\nco.uk\n// ===END ICANN DOMAINS===\n");
    folder.write("table", "*.ads.example 7\n");
    folder.write(
        "log.csv",
        "query\ntracker.example\nwww.tracker.example\nads.example\nhttps://a.ads.example:8443/x?y\n\
         x.good.ads.example\nwww.example.co.uk\nco.uk\n192.0.2.1\n-\n",
    );
    folder.run("names build --table filter -o filter.img").ok();
    for filter in ["filter", "filter.img"] {
        let ran =
            folder.run(&format!("enrich log.csv --names h=hosts --names f={filter} --names t=table")).ok();
        assert_eq!(
            ran.stdout,
            "query,query_t,query_h,query_f\ntracker.example,,blocked,\nwww.tracker.example,,,\n\
             ads.example,7,,blocked\nhttps://a.ads.example:8443/x?y,7,,blocked\nx.good.ads.example,7,,\n\
             www.example.co.uk,,,\nco.uk,,,\n192.0.2.1,,,\n-,,,\n"
        );
    }
    let ran = folder.run("enrich log.csv --names f=filter --prefix").ok();
    assert!(ran.stdout.contains("\nhttps://a.ads.example:8443/x?y,blocked,/example/ads\n"), "{}", ran.stdout);
    assert!(ran.stdout.contains("\nx.good.ads.example,,\n"), "{}", ran.stdout);
    let ran = folder.run("enrich log.csv --names psl=psl").ok();
    let lines: Vec<_> = ran.stdout.lines().collect();
    assert_eq!(lines[0], "query,query_psl,query_psl_suffix,query_psl_registrable");
    assert_eq!(lines[1], "tracker.example,,example,tracker.example");
    assert_eq!(
        lines[6..],
        ["www.example.co.uk,icann,co.uk,example.co.uk", "co.uk,icann,co.uk,", "192.0.2.1,,,", "-,,,"]
    );
}

/// Runs `enrich` on a pipe that stays open.
#[test]
fn a_live_pipe_and_a_table_that_changes() {
    let folder = Folder::new();
    folder.write("routes", "10.0.0.0/8 old\n");
    let mut child = Command::new(env!("CARGO_BIN_EXE_lookupctl"))
        .args(["enrich", "--table", "a=routes", "--threads", "2"])
        .current_dir(folder.path("."))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut ask = |input: &str| {
        stdin.write_all(input.as_bytes()).unwrap();
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        line
    };
    assert_eq!(ask("src\n"), "src,src_a\n");
    // The record's last byte has not come, so it has to wait.
    assert_eq!(ask("10.0.0.1\n10.0."), "10.0.0.1,old\n");
    assert_eq!(ask("0.2\n"), "10.0.0.2,old\n");
    let replace = |text: &str| {
        folder.write("new", text);
        std::fs::rename(folder.path("new"), folder.path("routes")).unwrap();
    };
    replace("10.0.0.0/8 new way\n10.0.0.0/33 x\n");
    std::thread::sleep(Duration::from_millis(1500));
    assert_eq!(ask("10.0.0.3\n"), "10.0.0.3,old\n", "a file that does not read changes nothing");
    replace("10.0.0.0/8 new\n");
    let (began, mut asked) = (Instant::now(), 3);
    loop {
        asked += 1;
        match &*ask("10.0.0.4\n") {
            "10.0.0.4,new\n" => break,
            other => assert_eq!(other, "10.0.0.4,old\n"),
        }
        assert!(began.elapsed() < Duration::from_secs(60), "the new version answers");
        std::thread::sleep(Duration::from_millis(50));
    }
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{stderr}");
    let last = asked - 1;
    assert!(stderr.contains("a: version 1 stays: "), "{stderr}");
    let says =
        format!("a: version 1 answered records 1 to {last}, version 2 answered records {asked} to {asked}");
    assert!(stderr.contains(&says), "{stderr}");
}

#[test]
fn signals_end_it_after_whole_records() {
    for (signal, status) in [("-INT", 130), ("-TERM", 143)] {
        let folder = Folder::new();
        let mut child = Command::new(env!("CARGO_BIN_EXE_lookupctl"))
            .args(["enrich", "--table", "a=v4", "-o", "out"])
            .current_dir(folder.path("."))
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(b"src\n10.1.2.3\n10.1.").unwrap();
        let part = folder.path(&format!("out.part-{}", child.id()));
        let right = "src,src_a\n10.1.2.3,core-7\n";
        let began = Instant::now();
        while std::fs::read_to_string(&part).ok().as_deref() != Some(right) {
            assert!(began.elapsed() < Duration::from_secs(60), "the records leave");
            std::thread::sleep(Duration::from_millis(20));
        }
        Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(status), "{output:?}");
        assert_eq!(std::fs::read_to_string(folder.path("out")).unwrap(), right);
        assert!(!part.exists());
        drop(stdin);
    }
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

#[cfg(unix)]
#[test]
fn parquet_goes_to_another_program() {
    use std::os::unix::fs::PermissionsExt;

    let folder = Folder::new();
    // By content, whatever the name.
    folder.write("flows", "PAR1\u{15}");
    folder.write("flows.parquet", "src\n10.1.1.1\n");
    folder.write("v4", "10.0.0.0/8 a\n");
    let run = |arguments: &str, path: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lookupctl"));
        command.args(arguments.split_whitespace()).env("PATH", folder.path(path));
        folder.run_command(command, b"given")
    };
    let says = "flows: Parquet is for another program, wirespeed-parquet enrich";
    run("enrich --table a=v4 flows -o out", "nowhere").refused(&[says, "nor on the PATH"]);
    // A stand-in, which says what it got.
    std::fs::create_dir(folder.path("bin")).unwrap();
    let stand_in = folder.write(
        "bin/wirespeed-parquet",
        "#!/bin/sh\nread -r line\necho \"out: $line\"\nfor word; do echo \"[$word]\"; done >&2\nexit 7\n",
    );
    std::fs::set_permissions(&stand_in, PermissionsExt::from_mode(0o755)).unwrap();
    let ran = run("enrich flows --table a=v4 --domain x --lenient -o out", "bin");
    assert_eq!(ran.status, Some(7), "{ran:?}");
    assert_eq!(ran.stdout, "out: given\n");
    assert_eq!(
        ran.stderr,
        "[enrich]\n[flows]\n[--table]\n[a=v4]\n[--domain]\n[x]\n[--lenient]\n[-o]\n[out]\n"
    );
    for option in [
        "--rules a=v4",
        "--format csv",
        "--proto p",
        "--sport p",
        "--dport p",
        "--icmp-type p",
        "--icmp-code p",
        "--assume ct=new",
        "--chain a",
        "--ipset v4",
        "--copy",
        "--block 7",
    ] {
        let name = option.split(' ').next().unwrap();
        let says = format!("{name} is not for Parquet: flows is a file of Parquet");
        run(&format!("enrich flows -o out {option}"), "bin").refused(&[&says]);
    }
    run("enrich flows --table a=v4", "bin").refused(&["flows: the output of Parquet is a file"]);
    // What only has the name is no Parquet.
    let ran = run("enrich flows.parquet --table a=v4", "bin").ok();
    assert_eq!(ran.stdout, "src,src_a\n10.1.1.1,a\n");
    // A program that can't be run is told.
    std::fs::set_permissions(&stand_in, PermissionsExt::from_mode(0o644)).unwrap();
    let ran = run("enrich flows --table a=v4 -o out", "bin");
    assert!(ran.status == Some(2) && ran.stderr.contains("wirespeed-parquet: "), "{ran:?}");
}

#[test]
fn the_output_is_no_table() {
    let folder = Folder::new();
    folder.write("records", "src_ip\n10.1.2.3\n");
    folder.write("rules", "src=10.0.0.0/8 action=1\n");
    folder.write("names", "a.example 1\n");
    for (tables, file) in [
        ("--table a=v4", "v4"),
        ("--merge a=own=v4 --merge a=other=v6", "v6"),
        ("--table a=v4 --names n=names", "names"),
        ("--table a=v4 --rules r=rules", "./rules"),
    ] {
        let before = std::fs::read(folder.path(file)).unwrap();
        folder.run(&format!("enrich records {tables} -o {file}")).refused(&["the output is the input"]);
        assert_eq!(std::fs::read(folder.path(file)).unwrap(), before, "{file}");
    }
    folder.run("enrich records --table a=v4 -o records").ok();
    let records = std::fs::read_to_string(folder.path("records")).unwrap();
    assert!(records.starts_with("src_ip,src_a\n10.1.2.3,"), "{records}");
}
