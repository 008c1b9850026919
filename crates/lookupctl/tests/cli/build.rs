//! `build`.

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
fn what_cannot_be_written_is_said() {
    let folder = Folder::new();
    folder.run("build --fib v4 -o no/such/folder.img").refused(&["no/such/folder.img"]);
    folder.run("build --fib v4 -o cap.img --memory-cap 1000").refused(&["cap of 1000"]);
    assert!(!folder.path("cap.img").exists());
    folder.run("build --fib v4").status(2);
}
