//! Origin validation by the RPKI: counts, lists, JSON, and bad input.

use crate::common::Folder;

const VRPS: &str = "ASN,IP Prefix,Max Length,Trust Anchor\nAS1,10.0.0.0/8,16,ripe\nAS0,192.0.2.0/24,32,ripe\n\
                    AS7,2001:db8::/32,48,ripe\n";
const ROUTES: &str = "10.0.0.0\t8\t1\n10.1.0.0\t24\t1\n10.2.0.0\t16\t2\n192.0.2.0\t24\t1\n11.0.0.0\t8\t1\n\
                      2001:db8:1::\t48\t7\n";

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("vrps.csv", VRPS);
    folder.write(
        "vrps.json",
        r#"{"metadata":{},"roas":[{"asn":"AS1","prefix":"10.0.0.0/8","maxLength":16,"ta":"ripe"},
            {"asn":0,"prefix":"192.0.2.0/24","maxLength":32},{"asn":7,"prefix":"2001:db8::/32","maxLength":48}]}"#,
    );
    folder.write("routes", ROUTES);
    folder
}

#[test]
fn counts_and_lists() {
    let folder = folder();
    let counts = "routes: 6 routes: 2 valid, 3 invalid (2 by origin, 1 by length), 1 not found\n";
    for vrps in ["vrps.csv", "vrps.json"] {
        assert_eq!(folder.run(&format!("rov --vrps {vrps} routes")).ok().stdout, counts);
    }
    let listed = folder.run("rov --vrps vrps.csv routes --list invalid").ok().stdout;
    assert_eq!(
        listed,
        "10.1.0.0/24  1  invalid  length\n10.2.0.0/16  2  invalid  origin\n192.0.2.0/24  1  invalid  origin\n"
            .to_owned() + counts
    );
    let objects = folder.run("rov --vrps vrps.csv routes --list not-found,invalid --json").ok().json();
    assert_eq!(objects.len(), 5);
    assert_eq!((&objects[2]["prefix"], &objects[2]["state"]), (&"11.0.0.0/8".into(), &"not-found".into()));
    assert_eq!((&objects[4]["valid"], &objects[4]["invalid_length"]), (&2.into(), &1.into()));
}

#[test]
fn origins_of_paths_and_of_csv() {
    let folder = folder();
    folder.write(
        "dump",
        "TABLE_DUMP2|1|B|192.0.2.7|3|10.0.0.0/8|3 1|IGP|192.0.2.1|0|0||NAG||\n\
         TABLE_DUMP2|1|B|192.0.2.7|3|10.3.0.0/16|3 {1,2}|IGP|192.0.2.1|0|0||NAG||\n",
    );
    folder.write("routes.csv", "network,name,origin\n10.0.0.0/8,\"a, b\",AS1\n10.3.0.0/16,c,2\n");
    let says = "2 routes: 1 valid, 1 invalid (1 by origin, 0 by length), 0 not found\n";
    assert_eq!(folder.run("rov --vrps vrps.csv dump").ok().stdout, format!("dump: {says}"));
    let ran = folder.run("rov --vrps vrps.csv routes.csv --value-columns origin").ok();
    assert_eq!(ran.stdout, format!("routes.csv: {says}"));
}

#[test]
fn each_of_several_origins_is_a_route() {
    let folder = folder();
    folder.write("moas", "10.0.0.0\t8\t2_1\n10.3.0.0\t16\t1_2_3,4\n11.0.0.0\t8\t1,2\n");
    let ran = folder.run("rov --vrps vrps.csv moas --list valid,invalid,not-found").ok();
    assert_eq!(
        ran.stdout,
        "10.0.0.0/8  2  invalid  origin\n10.0.0.0/8  1  valid\n10.3.0.0/16  1  valid\n\
         10.3.0.0/16  2  invalid  origin\n10.3.0.0/16  3,4  invalid  origin\n11.0.0.0/8  1,2  not-found\n\
         moas: 6 routes: 2 valid, 3 invalid (3 by origin, 0 by length), 1 not found\n"
    );
}

#[test]
fn bad_input() {
    let folder = folder();
    folder.run("rov --vrps vrps.csv v4").refused(&["v4: 10.0.0.0/8 has \"192.0.2.1\""]);
    let ran = folder.run("rov --vrps vrps.csv v4 --lenient").ok();
    assert!(ran.stdout.contains("0 not found; 6 without an origin passed over"), "{}", ran.stdout);
    folder.run("rov --vrps v4 routes").refused(&["v4: plain holds no VRPs"]);
    folder.run("rov --vrps vrps.csv vrps.json").refused(&["vrps.json: vrp-json holds no routes"]);
    folder.run("rov --vrps - -").refused(&["standard input"]);
    folder.write("odd.csv", format!("{VRPS}AS1,10.0.0.0/8,7,ripe\n"));
    folder.run("rov --vrps odd.csv routes").refused(&["odd.csv:5: not a longest length"]);
}
