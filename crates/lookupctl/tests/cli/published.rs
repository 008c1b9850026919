//! Tables that providers and registries publish: ranges of clouds, delegations, and bad files of them.

use crate::common::Folder;

const AWS: &str = "{\"syncToken\":\"1\",\"prefixes\":[\
{\"ip_prefix\":\"192.0.2.0/24\",\"region\":\"eu-west-1\",\"service\":\"AMAZON\",\"network_border_group\":\"eu-west-1\"},\n\
{\"ip_prefix\":\"192.0.2.0/24\",\"region\":\"eu-west-1\",\"service\":\"EC2\",\"network_border_group\":\"eu-west-1\"}]}\n";

const DELEGATED: &str = "2|apnic|20260101|2|20000101|20260101|+1000\napnic|*|ipv4|*|2|summary\n\
apnic|AU|ipv4|198.51.100.0|256|20110101|allocated|A1\napnic|JP|ipv4|203.0.113.0|192|20110102|assigned|A2\n";

#[test]
fn ranges_of_clouds() {
    let folder = Folder::new();
    folder.write("ip-ranges.json", AWS);
    let ran = folder.run("lookup --fib ip-ranges.json --value-columns service,region 192.0.2.7").ok();
    assert_eq!(ran.stdout, "192.0.2.7  192.0.2.0/24  service=EC2,region=eu-west-1\n");
    folder
        .run("info ip-ranges.json --value-columns colour")
        .refused(&["ip-ranges.json:1: no field colour; there are provider, service, region"]);
    folder.write("new.json", AWS.replace("\"service\":\"EC2\"", "\"kind\":\"EC2\""));
    folder.run("info new.json").refused(&["new.json:2, entry 3: a member of the object that is not known"]);
    folder.run("lookup --fib new.json --lenient --value-columns service 192.0.2.7").ok();
    folder.run("info ip-ranges.json --format gcp").refused(&["ip-ranges.json:1"]);
}

#[test]
fn delegations() {
    let folder = Folder::new();
    folder.write("delegated-apnic-extended-latest", DELEGATED);
    let ran = folder
        .run(
            "lookup --fib delegated-apnic-extended-latest --value-columns country 203.0.113.130 198.51.100.1",
        )
        .ok();
    assert_eq!(ran.stdout, "203.0.113.130  203.0.113.128/26  JP\n198.51.100.1  198.51.100.0/24  AU\n");
    folder.write("cut", &DELEGATED[..DELEGATED.rfind("apnic|JP").unwrap()]);
    folder.run("info cut").refused(&["cut:3: 1 records of ipv4, and the summary tells 2"]);
}

#[test]
fn bogons_are_built_in() {
    let folder = Folder::new();
    let ran =
        folder.run("lookup --fib builtin:bogons --value-columns rfc 192.168.7.7 192.0.0.8 2001:db8::1").ok();
    assert_eq!(
        ran.stdout,
        "192.168.7.7  192.168.0.0/16  RFC%201918\n192.0.0.8  192.0.0.8/32  RFC%207600\n\
         2001:db8::1  2001:db8::/32  RFC%203849\n"
    );
    assert!(ran.stderr.contains("builtin:bogons of 20"), "{}", ran.stderr);
    let none = "builtin:martians: no such table is built in; there is builtin:bogons";
    folder.run("info builtin:martians").refused(&[none]);

    let records = b"src\n192.168.7.7\n9.9.9.9\n";
    let ran = folder.run_with("enrich --table b=builtin:bogons --fields b=rfc --prefix", records).ok();
    assert_eq!(ran.stdout, "src,src_b_rfc,src_b_prefix\n192.168.7.7,RFC 1918,192.168.0.0/16\n9.9.9.9,,\n");
    folder.run_with("enrich --table b=builtin:bogons --fields b=x", records).refused(&["no column x"]);
    folder.run_with("enrich --table b=builtin:martians", records).refused(&[none]);
    // A path names a file.
    folder.write("builtin:bogons", "9.9.9.0/24 x\n");
    let ran = folder.run_with("enrich --table b=./builtin:bogons", records).ok();
    assert_eq!(ran.stdout, "src,src_b\n192.168.7.7,\n9.9.9.9,x\n");
    folder.run_with("enrich --names b=builtin:martians --name-column src", records).refused(&["martians"]);
}

#[test]
fn sets_of_ipset() {
    let folder = Folder::new();
    let saved = "create a hash:net family inet\nadd a 10.0.0.0/30\nadd a 10.0.0.1 nomatch\n";
    folder.write("a.ipset", saved);
    let ran = folder.run("lookup --fib a.ipset 10.0.0.2").ok();
    assert_eq!(ran.stdout, "10.0.0.2  10.0.0.2/31  member\n");
    folder.write("two.ipset", format!("{saved}create b hash:ip\nadd b 192.0.2.9\n"));
    folder.run("info two.ipset").refused(&["several sets: choose one with --set: a, b"]);
    let ran = folder.run("lookup --fib two.ipset --set b 192.0.2.9").ok();
    assert_eq!(ran.stdout, "192.0.2.9  192.0.2.9/32  member\n");
    folder.write(
        "nft.json",
        r#"{"nftables":[{"set":{"family":"inet","table":"f","name":"a","type":"ipv4_addr","elem":["192.0.2.9"]}}]}"#,
    );
    let ran = folder.run("lookup --fib nft.json --set a 192.0.2.9").ok();
    assert_eq!(ran.stdout, "192.0.2.9  192.0.2.9/32  member\n");
    folder.run("info v4 --set b").refused(&["--set b: no input names sets"]);
    folder.write("bad.ipset", saved.replace("nomatch", "timeout 60"));
    folder.run("info bad.ipset").refused(&["bad.ipset:3: an element with a timeout"]);
}

#[test]
fn several_sources_are_one_table_of_records() {
    let folder = Folder::new();
    folder.write("own.csv", "network,site,country\n10.1.0.0/16,Berlin,DE\n10.0.0.0/8,,ZZ\n");
    folder.write("asn.csv", "network,asn,org\n10.0.0.0/8,64500,Red\n10.1.2.0/24,64501,Blue\n");
    folder.write("blocked", "10.1.2.0/25\n");
    let ran = folder
        .run("build --merge own=own.csv --merge asn:asn=asn.csv --merge blocked=blocked --merge bogon:rfc=builtin:bogons -o t.img")
        .ok();
    assert!(ran.stderr.contains("merged 4 sources"), "{}", ran.stderr);
    let ran = folder.run("lookup --image t.img 10.1.2.3 10.1.2.200 10.1.9.9 10.9.9.9 192.168.0.1").ok();
    assert_eq!(
        ran.stdout,
        "10.1.2.3  10.1.2.0/25  country=DE,site=Berlin,asn=64501,blocked=true,bogon=RFC%201918\n\
         10.1.2.200  10.1.2.0/24  country=DE,site=Berlin,asn=64501,bogon=RFC%201918\n\
         10.1.9.9  10.1.0.0/16  country=DE,site=Berlin,asn=64500,bogon=RFC%201918\n\
         10.9.9.9  10.0.0.0/8  country=ZZ,asn=64500,bogon=RFC%201918\n\
         192.168.0.1  192.168.0.0/16  bogon=RFC%201918\n"
    );
    for (command, said) in [
        ("build --merge own.csv -o t.img", "a source is NAME=FILE"),
        ("build --merge a:=own.csv -o t.img", "columns with names"),
        ("build --merge a:x=blocked -o t.img", "blocked"),
        ("build --merge a=own.csv --fib own.csv -o t.img", "cannot be used with"),
        ("build -o t.img", "--fib"),
    ] {
        folder.run(command).refused(&[said]);
    }
}

#[test]
fn rules_of_clouds() {
    let folder = Folder::new();
    folder.write(
        "groups.json",
        r#"{"SecurityGroups":[{"GroupId":"sg-1","GroupName":"web","IpPermissions":[
        {"IpProtocol":"tcp","FromPort":443,"ToPort":443,"IpRanges":[{"CidrIp":"10.0.0.0/8"}],
         "UserIdGroupPairs":[{"GroupId":"sg-2"}]}],"IpPermissionsEgress":[]}]}"#,
    );
    let asked = "classify lookup --rules groups.json --assume ct=new src=10.1.2.3 dport=443 tcp";
    folder.run(asked).refused(&["line 2, entry 1: members of the group sg-2", "--lenient"]);
    let ran = folder.run(&asked.replace("--assume", "--lenient --assume")).ok();
    assert!(ran.stdout.contains("allow"), "{ran:#?}");
    folder
        .run("classify info groups.json --table both")
        .refused(&["no table both; there are: ingress, egress"]);
    folder
        .run("classify info groups.json --chain sg-2")
        .refused(&["no security group sg-2; there are: sg-1 (web)"]);
    folder.write(
        "policy.json",
        r#"{"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy","metadata":{"name":"web"},"spec":
        {"podSelector":{},"ingress":[{"from":[{"ipBlock":{"cidr":"10.0.0.0/8"}}],"ports":[{"port":443}]}]}}"#,
    );
    let ran =
        folder.run("classify lookup --rules policy.json --assume ct=new src=10.1.2.3 dport=443 tcp").ok();
    assert!(ran.stdout.contains("allow"), "{ran:#?}");
}
