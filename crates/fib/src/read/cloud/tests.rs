use super::*;
use crate::prefix::PrefixError;
use crate::read::tests::{lenient, read_strict, read_with, strict, text_of};
use crate::read::{Place, ReadError, ReadOptions};

const AWS: &str = r#"{
  "syncToken": "1700000000", "createDate": "2023-11-14-22-13-20",
  "prefixes": [
    {"ip_prefix": "192.0.2.0/24", "region": "eu-west-1", "service": "AMAZON", "network_border_group": "eu-west-1"},
    {"ip_prefix": "192.0.2.0/24", "region": "eu-west-1", "service": "S3", "network_border_group": "eu-west-1"},
    {"ip_prefix": "198.51.100.0/24", "region": "GLOBAL", "service": "AMAZON", "network_border_group": "GLOBAL"},
    {"ip_prefix": "192.0.2.0/24", "region": "eu-west-1", "service": "EC2", "network_border_group": "eu-west-1-lo"}
  ],
  "ipv6_prefixes": [
    {"ipv6_prefix": "2001:db8::/40", "region": "us-east-1", "service": "EC2", "network_border_group": "us-east-1"}
  ]
}"#;

const AZURE: &str = r#"{"changeNumber": 1, "cloud": "Public", "values": [
  {"name": "AzureCloud.eastus", "id": "AzureCloud.eastus", "properties": {"changeNumber": 2, "region": "eastus",
   "regionId": 32, "platform": "Azure", "systemService": "", "addressPrefixes": ["192.0.2.0/24", "203.0.113.0/24"],
   "networkFeatures": ["API", "NSG"]}},
  {"name": "Storage", "id": "Storage", "properties": {"changeNumber": 2, "region": "", "regionId": 0,
   "platform": "Azure", "systemService": "AzureStorage", "addressPrefixes": ["192.0.2.0/24", "2001:db8::/48"],
   "networkFeatures": null}}]}"#;

fn of_fields(text: &str, values: &[&str]) -> Result<String, String> {
    let columns = Columns { values: values.iter().map(ToString::to_string).collect(), ..Columns::default() };
    let options = ReadOptions { columns, ..ReadOptions::default() };
    read_with(text.as_bytes(), &options).map(|(fib, _)| text_of(&fib)).map_err(|error| error.to_string())
}

#[test]
fn amazon_gives_way_and_other_services_are_joined() {
    let (fib, report) = strict(Format::Aws, AWS);
    assert_eq!(
        text_of(&fib),
        "192.0.2.0/24 provider=aws,service=EC2+S3,region=eu-west-1,network_border_group=eu-west-1+eu-west-1-lo\n\
         198.51.100.0/24 provider=aws,service=AMAZON,region=GLOBAL,network_border_group=GLOBAL\n\
         2001:db8::/40 provider=aws,service=EC2,region=us-east-1,network_border_group=us-east-1\n"
    );
    assert_eq!((report.routes, report.repeated, report.skipped_for(SkipReason::OtherRecord)), (5, 2, 2));
    assert_eq!(
        of_fields(AWS, &["service", "region"]).unwrap(),
        "192.0.2.0/24 service=EC2+S3,region=eu-west-1\n198.51.100.0/24 service=AMAZON,region=GLOBAL\n\
         2001:db8::/40 service=EC2,region=us-east-1\n"
    );
    assert_eq!(
        of_fields(AWS, &["colour"]).unwrap_err(),
        "test:1: no field colour; there are provider, service, region, network_border_group"
    );
}

#[test]
fn google_with_services_or_without() {
    let text = r#"{"syncToken":"1","creationTime":"2023-11-14T22:13:20","prefixes":[
        {"ipv4Prefix":"192.0.2.0/24","service":"Google Cloud","scope":"africa-south1"},
        {"ipv6Prefix":"2001:db8::/32"}]}"#;
    assert_eq!(
        text_of(&strict(Format::Gcp, text).0),
        "192.0.2.0/24 provider=gcp,service=Google%20Cloud,region=africa-south1\n2001:db8::/32 provider=gcp\n"
    );
    let columns = Columns { values: vec!["region".into()], ..Columns::default() };
    let (fib, report) =
        read_with(text.as_bytes(), &ReadOptions { columns, ..ReadOptions::default() }).unwrap();
    assert_eq!(text_of(&fib), "192.0.2.0/24 africa-south1\n");
    assert_eq!((report.routes, report.skipped_for(SkipReason::NoField)), (1, 1));
    assert_eq!(report.skipped[1].first, Place::Entry(3, 4));
}

#[test]
fn azure_of_regions_gives_way_to_services() {
    assert_eq!(
        text_of(&strict(Format::Azure, AZURE).0),
        "192.0.2.0/24 provider=azure,service=AzureStorage,region=eastus,tag=Storage,platform=Azure,\
         network_features=API+NSG\n\
         203.0.113.0/24 provider=azure,service=AzureCloud,region=eastus,tag=AzureCloud.eastus,platform=Azure,\
         network_features=API+NSG\n\
         2001:db8::/48 provider=azure,service=AzureStorage,tag=Storage,platform=Azure\n"
    );
}

#[test]
fn oracle_and_cloudflare() {
    let text = r#"{"last_updated_timestamp":"2023-11-14T22:13:20.0","regions":[{"region":"us-phoenix-1","cidrs":[
        {"cidr":"192.0.2.0/24","tags":["OSN","OBJECT_STORAGE"]},{"cidr":"198.51.100.0/24","tags":["OCI"]}]}]}"#;
    assert_eq!(
        text_of(&strict(Format::Oracle, text).0),
        "192.0.2.0/24 provider=oracle,service=OBJECT_STORAGE+OSN,region=us-phoenix-1\n\
         198.51.100.0/24 provider=oracle,service=OCI,region=us-phoenix-1\n"
    );
    let text = r#"{"result":{"ipv4_cidrs":["192.0.2.0/24"],"ipv6_cidrs":["2001:db8::/32"],
        "jdcloud_cidrs":["198.51.100.0/24","2001:db8:1::/48"],"etag":"x"},
        "success":true,"errors":[],"messages":[]}"#;
    assert_eq!(
        text_of(&strict(Format::Cloudflare, text).0),
        "192.0.2.0/24 provider=cloudflare\n198.51.100.0/24 provider=cloudflare,service=jdcloud\n\
         2001:db8::/32 provider=cloudflare\n2001:db8:1::/48 provider=cloudflare,service=jdcloud\n"
    );
    let failed = text.replace("true", "false");
    let message = read_strict(Format::Cloudflare, failed.as_bytes()).unwrap_err().to_string();
    assert_eq!(message, "test:3, entry 2: an answer that tells of an error: \"success\"");
}

#[test]
fn the_order_of_entries_does_not_matter() {
    let lines: Vec<&str> = AWS.lines().collect();
    let mut turned = lines.clone();
    (turned[3], turned[4]) = (lines[4], lines[3]);
    assert_eq!(text_of(&strict(Format::Aws, &turned.join("\n")).0), text_of(&strict(Format::Aws, AWS).0));
}

#[test]
fn what_is_not_known_or_wrong_is_refused_with_its_place() {
    let wrong_family = PrefixError::WrongFamily { found: Family::V6, wanted: Family::V4 };
    let aws = |entry: &str| format!("{{\"prefixes\":[{{\"ip_prefix\":\"192.0.2.0/24\"}},\n{entry}]}}");
    for (format, text, reason) in [
        (Format::Aws, aws(r#"{"ip_prefix":"1.0.0.0/8","since":1}"#), SkipReason::Member),
        (Format::Aws, aws(r#"{"ip_prefix":"1.0.0.1/8"}"#), PrefixError::HostBits.into()),
        (Format::Aws, aws(r#"{"ip_prefix":"2001:db8::/32"}"#), wrong_family.into()),
        (Format::Aws, aws(r#"{"ip_prefix":"1.0.0.0/8","service":7}"#), SkipReason::Shape),
        (Format::Aws, aws("7"), SkipReason::Shape),
        (
            Format::Aws,
            aws("{}").replace("{}]", "{\"ip_prefix\":\"1.0.0.0/8\"}],\"more\":1"),
            SkipReason::Member,
        ),
        (
            Format::Gcp,
            aws(r#"{"ipv4Prefix":"1.0.0.0/8","ipv6Prefix":"::/8"}"#).replace("ip_", "ipv4"),
            SkipReason::Shape,
        ),
    ] {
        let text = if format == Format::Gcp { text.replace("ipv4prefix", "ipv4Prefix") } else { text };
        match read_strict(format, text.as_bytes()) {
            Err(ReadError::Bad { place: Place::Entry(2, _), reason: found, .. }) => assert_eq!(found, reason),
            other => panic!("{text}: {other:?}"),
        }
        let (_, report) = lenient(format, &text);
        assert_eq!((report.faults(), report.skipped_for(reason)), (1, 1), "{text}");
    }
    // One wrong prefix of many leaves the others.
    for (format, text) in [
        (Format::Azure, AZURE.replace("203.0.113.0/24", "203.0.113.1/24")),
        (
            Format::Oracle,
            r#"{"regions":[{"region":"x","cidrs":[{"cidr":"1.0.0.0/8"},{"cidr":"x"},{"cidr":"::/8"}]}]}"#
                .into(),
        ),
        (
            Format::Cloudflare,
            r#"{"result":{"ipv4_cidrs":["1.0.0.0/8","2.0.0.0/33"],"ipv6_cidrs":["::/8"]}}"#.into(),
        ),
    ] {
        assert!(matches!(read_strict(format, text.as_bytes()), Err(ReadError::Bad { .. })));
        let (fib, report) = lenient(format, &text);
        assert_eq!((fib.v4.len(), fib.v6.len(), report.faults()), (1, 1, 1), "{text}");
    }
}

#[test]
fn a_file_that_is_cut_off_is_refused_or_noted() {
    let cut = &AWS[..AWS.find("\"EC2\"").unwrap()];
    let message = read_strict(Format::Aws, cut.as_bytes()).unwrap_err().to_string();
    assert!(message.contains("the JSON ends too soon; 5 whole records before it"), "{message}");
    let (fib, report) = lenient(Format::Aws, cut);
    assert_eq!(
        (text_of(&fib).as_str(), report.truncated.is_some()),
        (
            "192.0.2.0/24 provider=aws,service=S3,region=eu-west-1,network_border_group=eu-west-1\n\
             198.51.100.0/24 provider=aws,service=AMAZON,region=GLOBAL,network_border_group=GLOBAL\n",
            true
        )
    );
}
