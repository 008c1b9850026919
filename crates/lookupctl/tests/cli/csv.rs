//! Tables in CSV: recognised, with columns by name, and bad input.

use crate::common::Folder;

const RANGES: &str =
    "start_ip,end_ip,asn,name\n10.0.0.0,10.0.2.255,64500,\"Red, Ltd\"\n2001:db8::,2001:db8::ff,64501,Blue\n";

#[test]
fn lookups_and_images_of_csv() {
    let folder = Folder::new();
    folder.write("t.csv", RANGES);
    let ran = folder.run("lookup --fib t.csv 10.0.1.7 10.0.2.7 2001:db8::1").ok();
    assert_eq!(
        ran.stdout,
        "10.0.1.7  10.0.0.0/23  asn=64500,name=Red%2C%20Ltd\n10.0.2.7  10.0.2.0/24  asn=64500,name=Red%2C%20Ltd\n\
         2001:db8::1  2001:db8::/120  asn=64501,name=Blue\n"
    );
    let ran = folder.run("lookup --fib t.csv --value-columns asn 10.0.1.7").ok();
    assert_eq!(ran.stdout, "10.0.1.7  10.0.0.0/23  64500\n");
    folder.run("build --fib t.csv --value-columns name -o t.img").ok();
    let ran = folder.run("lookup --image t.img 2001:db8::1").ok();
    assert!(ran.stdout.contains("Blue"), "{}", ran.stdout);
    folder.write("odd.csv", "a,b,c\n10.0.0.0,8,x\n");
    let ran = folder.run("lookup --fib odd.csv --prefix-columns a,b --value-columns c 10.0.1.7").ok();
    assert_eq!(ran.stdout, "10.0.1.7  10.0.0.0/8  x\n");
}

#[test]
fn ranges_of_numbers() {
    let folder = Folder::new();
    folder.write("t.csv", "ip_from,ip_to,cc\n16777216,16777471,AU\n");
    let ran = folder.run("lookup --fib t.csv 1.0.0.9").ok();
    assert_eq!(ran.stdout, "1.0.0.9  1.0.0.0/24  AU\n");
    folder.write("t.csv", "network,len,cc\n16777216,24,AU\n");
    folder.run("lookup --fib t.csv 1.0.0.9").refused(&["t.csv:2: a number, whose family"]);
    let ran = folder.run("lookup --fib t.csv --address-numbers 4 1.0.0.9").ok();
    assert_eq!(ran.stdout, "1.0.0.9  1.0.0.0/24  AU\n");
    folder
        .run("lookup --fib v4 --format plain --address-numbers 4 1.0.0.9")
        .refused(&["--address-numbers: no input has fields by name: csv, "]);
}

#[test]
fn bad_csv_is_one_line() {
    let folder = Folder::new();
    folder.write("t.csv", RANGES.replace("10.0.2.255", "9.0.0.0"));
    folder.run("info t.csv").refused(&["t.csv:2: not a range"]);
    folder.write("t.csv", RANGES);
    folder
        .run("info t.csv --value-columns country")
        .refused(&["t.csv:1: no column country; the columns are start_ip, end_ip, asn, name"]);
    folder
        .run("info v4 --format plain --value-columns a")
        .refused(&["--value-columns: no input has fields by name"]);
    folder.run("info t.csv --range-columns start_ip").refused(&["two columns"]);
    folder.run("gen fib --to ipset").refused(&["ipset"]);
}
