//! `build`.

use std::process::Command;

use wirespeed::{IpReader, Labels};

use crate::common::Folder;

#[test]
fn tells_what_was_written() {
    let folder = Folder::new();
    let report = &folder.run("build --fib v4 --engine sail-l -o table.img --json").ok().json()[0];
    assert_eq!((&report["engine"], &report["prefixes"]), (&"sail-l".into(), &6.into()));
    let length = std::fs::metadata(folder.path("table.img")).unwrap().len();
    assert_eq!(report["file_bytes"], length);
    assert!(report["sections"].as_array().unwrap().iter().any(|section| section["name"] == "bcn16"));
    let ran = folder.run("build --fib both --family 6 -o table.img").ok();
    assert!(ran.stdout.contains("IPv6, 4 prefixes"), "an image that is there is replaced: {ran:?}");
    assert_eq!(std::fs::read_dir(folder.path("")).unwrap().count(), 5, "nothing is left beside it");
}

/// Formats of other programs: each read again answers like the table that it was written of.
#[test]
fn a_table_is_written_for_other_programs() {
    let folder = Folder::new();
    folder.write("own.csv", "network,site,asn\n10.0.0.0/8,\"Bonn, B\",1\n10.1.0.0/16,,2\n2001:db8::/32,x,\n");
    folder.write("more.csv", "network,country\n10.0.0.0/8,DE\n");
    let addresses = "10.0.0.1 10.1.2.3 2001:db8::1";
    let labels = |table: &str| -> Vec<String> {
        let ran = folder.run(&format!("lookup --fib {table} {addresses}")).ok();
        ran.stdout.lines().map(|line| line.split_whitespace().next_back().unwrap().to_owned()).collect()
    };
    for (source, table, label) in [
        ("--fib own.csv", "own.csv", "site=Bonn%2C%20B,asn=1"),
        ("--merge own=own.csv --merge country=more.csv", "", "site=Bonn%2C%20B,asn=1,country=DE"),
    ] {
        for (format, file) in [("csv", "t.csv"), ("mmdb", "t.mmdb"), ("plain", "t.txt")] {
            let ran = folder.run(&format!("build {source} --to {format} -o {file}")).ok();
            let said = format!("{file}: {format}, 2 IPv4 and 1 IPv6 prefix, ");
            assert!(ran.stdout.starts_with(&said), "{ran:?}");
            assert_eq!(labels(file)[0], label, "{format}");
            assert!(table.is_empty() || labels(file) == labels(table), "{format}");
        }
        assert_eq!(labels("t.csv"), labels("t.txt"));
        assert_eq!(labels("t.mmdb"), labels("t.txt"));
    }
    let written = std::fs::read_to_string(folder.path("t.csv")).unwrap();
    assert_eq!(
        written,
        "prefix,site,asn,country\n10.0.0.0/8,\"Bonn, B\",1,DE\n10.1.0.0/16,\"Bonn, B\",2,DE\n2001:db8::/32,x,,\n"
    );
    let json = &folder.run("build --fib own.csv --family 6 --to mmdb -o six.mmdb --json").ok().json()[0];
    assert_eq!((&json["format"], &json["ipv4_prefixes"]), (&"mmdb".into(), &0.into()));
    assert_eq!(json["file_bytes"], std::fs::metadata(folder.path("six.mmdb")).unwrap().len());
    folder.run("build --fib own.csv --to image -o own.img --engine fold").ok();
    for (options, said) in [
        ("--to mmdb --engine fold", "--engine is for images, and --to mmdb writes none"),
        ("--to csv --prefix-lookups", "--prefix-lookups is for images"),
        ("--to csv --strides 16,8,8", "--strides is for images"),
        ("--to csv --memory-cap 1G", "--memory-cap is for images"),
        ("--to mrt", "mrt can't hold 10.0.0.0/8"),
        ("--to delegated", "invalid value 'delegated'"),
        ("--to csv -o own.csv", "the output is the input"),
    ] {
        let output = if options.contains("-o") { "" } else { "-o none" };
        folder.run(&format!("build --fib own.csv {options} {output}")).refused(&[said]);
        assert!(!folder.path("none").exists());
    }
    folder.run("build --fib v4 --family 6 --to csv -o none").refused(&["no prefix to write"]);
    folder.write("net.csv", "network,length_of,Mask\n10.0.0.0/8,1,2\n");
    let columns = "--prefix-columns network";
    folder
        .run(&format!("build --fib net.csv {columns} --to csv -o none"))
        .refused(&["no column of CSV can have the name \"Mask\""]);
}

#[test]
fn a_table_goes_to_standard_output_and_an_image_does_not() {
    let folder = Folder::new();
    folder.write("own.csv", "prefix,site\n10.0.0.0/8,Bonn\n");
    // A file of that name is another thing.
    folder.write("-", "x");
    for format in ["csv", "mmdb"] {
        folder.run(&format!("build --fib own.csv --to {format} -o own.{format}.out")).ok();
        let ran = folder.run(&format!("build --fib own.csv --to {format} -o -")).ok();
        let right = std::fs::read(folder.path(&format!("own.{format}.out"))).unwrap();
        assert_eq!(ran.stdout, String::from_utf8_lossy(&right));
        let told = format!("standard output: {format}, 1 IPv4 and 0 IPv6 prefixes\n");
        assert!(ran.stderr.ends_with(&told), "{ran:?}");
    }
    folder.write("names", "/com 1\n");
    folder.write("rules", "src=10.0.0.0/8 tcp\n");
    let image = "-o -: an image is opened as a file";
    for (arguments, said) in [
        ("build --fib own.csv -o -", image),
        ("names build --table names -o -", image),
        ("classify build --rules rules -o -", image),
        ("build --fib own.csv --to csv --json -o -", "--json is for a report on standard output"),
    ] {
        folder.run(arguments).refused(&[said]);
    }
    assert_eq!(std::fs::read(folder.path("-")).unwrap(), b"x");
}

/// A source of BGP routes has one meaning in all verbs: the next hop or, where it is asked for, the origin.
#[test]
fn routes_of_bgp_give_next_hops_or_origins_everywhere() {
    let folder = Folder::new();
    let line = |kind: &str, prefix: &str, path: &str| {
        format!("{kind}|1|B|192.0.2.7|3|{prefix}|{path}|IGP|192.0.2.1|0|0||NAG||\n")
    };
    folder.write(
        "dump",
        &(line("TABLE_DUMP2", "10.0.0.0/8", "3 1") + &line("TABLE_DUMP2", "10.1.0.0/16", "3 {1,2}")),
    );
    folder.write("changes", line("BGP4MP", "10.2.0.0/16", "3 9").replace("|B|", "|A|"));
    folder.write("log.csv", "src\n10.0.0.1\n10.1.0.1\n");
    for (option, of_enrich, [one, other]) in
        [("", "--next-hops", ["192.0.2.1"; 2]), ("--origins", "", ["1", "{1,2}"])]
    {
        let quoted = if other.contains(',') { format!("\"{other}\"") } else { other.to_owned() };
        let right = format!("src,src_n\n10.0.0.1,{one}\n10.1.0.1,{quoted}\n");
        folder.run(&format!("build --fib dump {option} -o fib.img")).ok();
        folder.run(&format!("build --merge asn=dump {option} -o merged.img")).ok();
        for table in [
            "--table n=fib.img",
            "--table n=merged.img --fields n=asn",
            &format!("--table n=dump {of_enrich}"),
            &format!("--merge n=asn=dump --fields n=asn {of_enrich}"),
        ] {
            let ran = folder.run(&format!("enrich log.csv {table}")).ok();
            assert_eq!(ran.stdout.replace("src_n_asn", "src_n"), right, "{table} {option}");
        }
        for table in ["--fib dump", "--merge asn=dump"] {
            let found = &folder.run(&format!("lookup {table} {option} 10.0.0.1 --json")).ok().json()[0];
            assert_eq!(found["next_hop"].as_str().unwrap().trim_start_matches("asn="), one, "{table}");
        }
    }
    folder.run("replay --fib dump --origins --updates changes --seconds 0.01 --device cpu").ok();
    for arguments in [
        "build --fib v4 -o none",
        "lookup --fib v4 10.0.0.1",
        "lookup --image fib.img 10.0.0.1",
        "replay --fib v4",
    ] {
        folder.run(&format!("{arguments} --origins")).refused(&["--origins: no input has AS paths"]);
    }
    folder
        .run("route --in gen:64 --out sink --fib dump --origins --count 10")
        .refused(&["--origins is for lookups"]);
}

/// One file holds both families, and every verb finds what it needs in it.
#[test]
fn a_table_of_both_families_is_one_file() {
    let folder = Folder::new();
    let reports = folder.run("build --fib both -o both.img --json").ok().json();
    let families: Vec<_> = reports.iter().map(|report| report["family"].as_u64().unwrap()).collect();
    assert_eq!(families, [4, 6]);
    let length = std::fs::metadata(folder.path("both.img")).unwrap().len();
    assert!(reports.iter().all(|report| report["file_bytes"] == length), "{reports:?}");

    let of_file = folder.run("lookup --fib both 192.0.2.1 10.9.9.9 2001:db8::1 ::1 --json");
    let of_image = folder.run("lookup --image both.img 192.0.2.1 10.9.9.9 2001:db8::1 ::1 --json");
    assert_eq!((of_image.status, &of_image.stdout), (of_file.status, &of_file.stdout));
    assert_eq!(of_image.stdout.lines().count(), 4, "{of_image:?}");

    let infos = folder.run("info both.img --json").ok().json();
    assert_eq!(infos.iter().map(|info| info["family"].as_u64().unwrap()).collect::<Vec<_>>(), [4, 6]);
    assert!(infos.iter().all(|info| info["file_bytes"] == length), "{infos:?}");
    for family in [4, 6] {
        let options = format!("--trace prefix --family {family} --count 1000 --seconds 0.01 --json");
        let of_image = &folder.run(&format!("replay --image both.img {options}")).ok().json()[0];
        let of_file = &folder.run(&format!("replay --fib both {options}")).ok().json()[0];
        assert_eq!(of_image["checksum"], of_file["checksum"], "family {family}");
    }
    let ran = folder.run("replay --image both.img --count 1000 --seconds 0.01 --json").ok();
    assert!(ran.stderr.contains("--family"), "{ran:?}");
    folder.run("build --fib v4 -o four.img").ok();
    folder.run("replay --image four.img --family 6").refused(&["four.img", "no IPv6 table"]);
    folder.run("build --fib both --engine rank -o rank.img").refused(&["\"rank\" for IPv6", "--family"]);
    assert!(!folder.path("rank.img").exists());
    folder.run("build --fib both --engine rank --family 4 -o rank.img").ok();
    folder.run("names info both.img").ok();
    folder.run("names lookup --table both.img a.b").status(2);
}

/// An image for prefix lookups gives the library the matched prefix, and every verb what other images give.
#[test]
fn an_image_is_for_prefix_lookups() {
    let folder = Folder::new();
    for (table, engine, count) in
        [("v4", "auto", 1), ("v6", "fold", 1), ("both", "auto", 2), ("both", "fold", 2)]
    {
        let options = format!("--fib {table} --engine {engine}");
        let reports =
            folder.run(&format!("build {options} --prefix-lookups -o prefixes.img --json")).ok().json();
        assert_eq!(reports.len(), count);
        assert!(reports.iter().all(|report| report["prefix_lookups"] == true), "{reports:?}");
        let plain = folder.run(&format!("build {options} -o plain.img --json")).ok().json();
        assert!(plain.iter().all(|report| report["prefix_lookups"] == false), "{plain:?}");
        for (report, plain) in reports.iter().zip(&plain) {
            assert_eq!((&report["prefixes"], &report["engine"]), (&plain["prefixes"], &plain["engine"]));
        }

        let path = folder.path("prefixes.img");
        let (reader, labels) = (IpReader::open(&path).unwrap(), Labels::<String>::open(&path).unwrap());
        let addresses = match table {
            "v4" => "10.1.2.3 10.1.200.9 198.51.100.9 9.9.9.9",
            "v6" => "2001:db8:1:2:3::9 2001:db8::1 ::1",
            _ => "10.1.2.3 10.1.200.9 9.9.9.9 2001:db8:1:2:3::9 2001:db8::1 ::1",
        };
        let of_file = folder.run(&format!("lookup --fib {table} {addresses} --json"));
        let of_image = folder.run(&format!("lookup --image prefixes.img {addresses} --json"));
        assert_eq!((of_image.status, &of_image.stdout), (of_file.status, &of_file.stdout), "{table}");
        let mut matched = 0;
        for line in of_file.json() {
            let address = line["address"].as_str().unwrap().parse().unwrap();
            let found = reader.lookup_prefix(address).unwrap();
            let right =
                line["prefix"].as_str().map(|prefix| (prefix.to_owned(), line["next_hop"].as_str().unwrap()));
            let label = found.and_then(|(_, next_hop)| labels.get(next_hop));
            let found = found.map(|(prefix, _)| prefix.to_string()).zip(label.as_deref().map(String::as_str));
            assert_eq!(found, right, "{table}: {address}");
            matched += usize::from(found.is_some());
        }
        assert!(matched >= 2 * count, "{table}: {matched}");

        let infos = folder.run("info prefixes.img --json").ok().json();
        assert_eq!(infos.len(), count, "{infos:?}");
        let replay = |from: &str| {
            let options = "--trace prefix --count 1000 --seconds 0.01 --json --family";
            let family = if table == "v6" { 6 } else { 4 };
            folder.run(&format!("replay {from} {options} {family}")).ok().json()[0]["checksum"].clone()
        };
        assert_eq!(replay("--image prefixes.img"), replay(&format!("--fib {table}")), "{table}");
    }
    let ran = folder.run("build --fib v4 --prefix-lookups -o prefixes.img").ok();
    assert!(ran.stdout.contains("IPv4, 6 prefixes, for prefix lookups"), "{ran:?}");
    let error = IpReader::open(folder.path("plain.img")).unwrap().lookup_prefix("10.1.2.3".parse().unwrap());
    assert!(error.is_err());
}

#[test]
fn an_image_tells_how_many_lines_were_left_out() {
    let folder = Folder::new();
    let text = std::fs::read_to_string(folder.path("both")).unwrap();
    folder.write(
        "holes",
        format!(
            "{text}what
10.0.0.0/99 x
"
        ),
    );
    let left_out = |objects: &[serde_json::Value]| -> Vec<_> {
        objects.iter().map(|object| object.get("left_out").and_then(serde_json::Value::as_u64)).collect()
    };
    for (options, tables) in [("--family 4", 1), ("", 2), ("--prefix-lookups", 2)] {
        let built = folder.run(&format!("build --fib holes --lenient {options} -o holes.img --json")).ok();
        assert_eq!(left_out(&built.json()), vec![Some(2); tables], "{built:?}");
        assert_eq!(left_out(&folder.run("info holes.img --json").ok().json()), vec![Some(2); tables]);
        let text = folder.run("info holes.img").ok().stdout;
        assert!(
            text.contains(
                "; without 2 lines that --lenient left out
"
            ),
            "{text}"
        );
        let of_image = folder.run("lookup --image holes.img --json 10.1.2.3");
        assert_eq!(left_out(&of_image.json()), [Some(2)]);
        assert_eq!(
            of_image.stderr,
            "holes.img: built without 2 lines that --lenient left out
"
        );
        let of_file = folder.run("lookup --fib holes --lenient --json 10.1.2.3");
        assert_eq!(of_image.stdout, of_file.stdout);
        let replayed =
            folder.run("replay --image holes.img --family 4 --count 1000 --seconds 0.01 --json").ok();
        assert!(replayed.json()[0]["lookups"].as_u64() > Some(0));
    }
    folder.run("build --merge a=holes --lenient -o holes.img").ok();
    assert_eq!(left_out(&folder.run("info holes.img --json").ok().json()), [Some(2); 2]);
    // A whole table says nothing of it, and its image is the same either way.
    folder.run("build --fib both -o strict.img").ok();
    folder.run("build --fib both --lenient -o lenient.img").ok();
    let [strict, lenient] =
        ["strict.img", "lenient.img"].map(|name| std::fs::read(folder.path(name)).unwrap());
    assert_eq!(strict, lenient);
    let of_image = folder.run("lookup --image strict.img --json 10.1.2.3");
    assert_eq!((left_out(&of_image.json()), &*of_image.stderr), (vec![None], ""));
}

#[test]
fn what_cannot_be_written_is_said() {
    let folder = Folder::new();
    folder.run("build --fib v4 -o no/such/folder.img").refused(&["no/such/folder.img"]);
    folder.run("build --fib v4 -o cap.img --memory-cap 1000").refused(&["cap of 1000"]);
    assert!(!folder.path("cap.img").exists());
    folder.run("build --fib v4").status(2);
}

/// The real nft checks the sets. Its kernel has to let this user make a network namespace.
#[test]
fn nft_takes_sets_of_prefixes_within_others() {
    let folder = Folder::new();
    folder.write(
        "list",
        "10.0.0.0/8\n10.1.0.0/16\n10.1.2.3/32\n192.0.2.0/25\n192.0.2.128/25\n255.255.255.255/32\n\
         2001:db8::/32\n2001:db8:1::/48\n2001:db8:ffff:ffff:ffff:ffff:ffff:ffff/128\n",
    );
    let checks = |file: &str| {
        let nft = ["-n", "nft", "-c", "-j", "-f"];
        Command::new("unshare").args(nft).arg(folder.path(file)).output().ok()
    };
    folder.write("no-set", "{\"nftables\":[]}");
    if !checks("no-set").is_some_and(|output| output.status.success()) {
        eprintln!("skipped: nft can't be run in a network namespace");
        return;
    }
    for family in [4, 6] {
        folder.run(&format!("build --fib list --family {family} --to nft-sets -o set")).ok();
        let output = checks("set").unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

/// Sets and payloads: each read again is what was written.
#[test]
fn sets_and_payloads_are_written_and_read_again() {
    let folder = Folder::new();
    folder.write("list", "10.0.0.0/8\n10.1.0.0/16\n2001:db8::/32\n");
    folder.write(
        "vrps.csv",
        "ASN,IP Prefix,Max Length,Trust Anchor\nAS1,10.0.0.0/8,24,ripe\nAS2,2001:db8::/32,48,apnic\n",
    );
    let ran = folder.run("build --fib list --family 4 --to ipset --set-name bad -o -").ok();
    assert_eq!(
        ran.stdout,
        "create bad hash:net family inet maxelem 65536\nadd bad 10.0.0.0/8\nadd bad 10.1.0.0/16\n"
    );
    for (family, format, address) in
        [(4, "ipset", "10.1.2.3"), (6, "nft-sets", "2001:db8::1"), (4, "nft-sets", "10.1.2.3")]
    {
        folder.run(&format!("build --fib list --family {family} --to {format} -o set")).ok();
        let found = folder.run(&format!("lookup --fib set {address} --json")).ok().json();
        assert_eq!(found[0]["next_hop"], "member", "{format}");
    }
    let nft =
        folder.run("build --fib list --family 4 --to nft-sets --set-table filter --set-name bad -o -").ok();
    let nft: serde_json::Value = serde_json::from_str(&nft.stdout).unwrap();
    assert_eq!(nft["nftables"][1]["set"]["table"], "filter");
    folder.run("build --fib vrps.csv --to vrp-json -o vrps.json").ok();
    let ran = folder.run("build --fib vrps.json --to vrp-csv -o -").ok();
    assert_eq!(
        ran.stdout,
        "ASN,IP Prefix,Max Length,Trust Anchor\nAS1,10.0.0.0/8,24,ripe\nAS2,2001:db8::/32,48,apnic\n"
    );
    assert!(!ran.stderr.contains("trust anchor"), "{ran:?}");
    folder.write("none.csv", "ASN,IP Prefix,Max Length\nAS1,10.0.0.0/8,24\n");
    let ran = folder.run("build --fib none.csv --to vrp-json -o -").ok();
    assert_eq!(ran.stdout, "{\"roas\": [\n{\"asn\":1,\"maxLength\":24,\"prefix\":\"10.0.0.0/8\"}\n]}\n");
    assert!(ran.stderr.contains("1 payload without a trust anchor: the input tells none"), "{ran:?}");
    for (arguments, said) in [
        ("--fib list --to ipset", "one family"),
        ("--fib v4 --to ipset", "ipset can't hold 10.0.0.0/8 with the next hop"),
        ("--fib list --family 4 --to ipset --set-name 1a", "\"1a\" is no name of a set"),
        ("--fib list --family 4 --to ipset --set-table a", "--set-table is for sets of nft"),
        ("--fib list --to csv --set-name a", "--set-name is for sets"),
        ("--fib list --to vrp-csv", "list: plain holds no VRPs"),
        ("--fib vrps.csv --to csv", "vrp-csv holds no routes"),
        ("--fib vrps.csv --to vrp-csv --peer 7", "--peer is for routes, and not for payloads"),
        ("--fib vrps.csv --fib vrps.csv --to vrp-csv", "payloads of one file"),
        ("--merge a=list --to vrp-csv", "payloads of one file"),
    ] {
        folder.run(&format!("build {arguments} -o out")).refused(&[said]);
    }
}
