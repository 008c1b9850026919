//! Tables of addresses and of names that records are looked up in.

use crate::common::Folder;

/// A choice that a file leaves open is made for one table, or for all.
#[test]
fn options_for_reading_a_table() {
    let folder = Folder::new();
    folder.write("log.csv", "src\n10.1.1.1\n11.0.0.1\n");
    folder.write("sets", "create a hash:net\nadd a 10.0.0.0/8\ncreate b hash:net\nadd b 11.0.0.0/8\n");
    folder.write("odd.csv", "from,to,name\n167772160,184549375,x\n");
    folder.write("host-bits", "10.1.1.1/8 h\n");
    folder.write("words", "10.0.0.0,x\n");
    folder.write(
        "frr.json",
        r#"{"red":{"10.0.0.0/8":[{"selected":true,"installed":true,"nexthops":[{"ip":"192.0.2.1","fib":true,"active":true}]}]},
            "blue":{"11.0.0.0/8":[{"selected":true,"installed":true,"nexthops":[{"ip":"192.0.2.2","fib":true,"active":true}]}]}}"#,
    );
    for tables in ["--table s=sets", "--merge s=x=sets"] {
        folder
            .run(&format!("enrich log.csv {tables}"))
            .refused(&["several sets: choose one with --set: a, b"]);
    }
    let member = ["member", ""];
    for (arguments, right) in [
        ("--table s=sets --set a", member),
        ("--table s=sets --table t=sets --set s=a --set t=b", ["member,", ",member"]),
        ("--table s=sets --table t=sets --set s=a --set b", ["member,", ",member"]),
        ("--merge s=x=sets --set s=a", ["x=true", ""]),
        ("--table o=odd.csv --range-columns o=from,to --fields o=name", ["x", ""]),
        ("--table o=odd.csv --range-columns from,to --table-numbers o=4", ["x", ""]),
        ("--table h=host-bits --mask-host-bits=h", ["h", ""]),
        ("--table h=host-bits --mask-host-bits", ["h", ""]),
        ("--table f=frr.json --vrf blue", ["", "192.0.2.2"]),
        ("--table f=frr.json --vrf f=red --table-format f=frr-json", ["192.0.2.1", ""]),
    ] {
        let ran = folder.run(&format!("enrich log.csv {arguments}")).ok();
        let lines: Vec<_> = ran.stdout.lines().skip(1).collect();
        let all = [format!("10.1.1.1,{}", right[0]), format!("11.0.0.1,{}", right[1])];
        assert_eq!(lines, all, "{arguments}");
    }
    folder.run("build --fib sets --set a -o a.img").ok();
    for (arguments, said) in [
        ("--table s=a.img --set a", "s: a.img is an image"),
        ("--table s=sets --set c", "c"),
        ("--table s=sets --set a --set b", "s: set is stated twice"),
        (
            "--table s=sets --set a --table o=odd.csv --range-columns o=from,to",
            "o: set a: no input names sets",
        ),
        ("--table s=sets --set a --vrf s=red", "s: vrf red: no input names VRFs"),
        ("--table h=v4 --peer 7", "h: peer 7: no input names peers"),
        ("--table h=host-bits", "(--mask-host-bits clears them)"),
        ("--table h=host-bits --table-format nosuch", "unknown format \"nosuch\""),
        ("--table w=words --table-format csv", "words:1"),
        ("--names n=words --set a", "--set is for --table and --merge"),
    ] {
        folder.run(&format!("enrich log.csv {arguments}")).refused(&[said]);
    }
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
