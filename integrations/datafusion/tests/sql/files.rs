//! Files that are no images: read by their content, merged, and the fields of their labels.

use std::path::{Path, PathBuf};

use wirespeed::names::image_file::{NameImageFile, save};
use wirespeed::names::read::{ReadOptions, read_table_from};
use wirespeed_datafusion::{How, MergeSource, Table, Tables};

use super::{answer, error, session};

fn write(dir: &Path, name: &str, text: &str) -> PathBuf {
    let path = dir.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

fn some(texts: &[&str]) -> Vec<Option<String>> {
    texts.iter().map(|&text| (text != "-").then(|| text.to_owned())).collect()
}

const GEO: &str =
    "prefix,country,asn\n10.0.0.0/8,DE,64496\n10.1.0.0/16,DE,\n10.2.0.0/16,,\n2001:db8::/32,FR,64497\n";
const ADDRESSES: &str = "(VALUES (1, '10.9.0.1'), (2, '10.1.0.1'), (3, '10.2.0.1'), (4, '2001:db8::1'), (5, '192.0.2.1'), \
                         (6, NULL)) AS asked(n, ip)";

#[tokio::test]
async fn a_field_of_labels_that_are_records() {
    let dir = tempfile::tempdir().unwrap();
    let tables = Tables::new();
    tables.insert("geo", Table::open(&[write(dir.path(), "geo.csv", GEO)]).unwrap());
    tables.insert("plain", Table::open(&[write(dir.path(), "plain.txt", "10.0.0.0/8 64496\n")]).unwrap());
    let names = write(dir.path(), "names.txt", "example.com list=shop,rank=7\nexample.org list=news\n");
    tables.insert("names", Table::open(&[names]).unwrap());
    let context = session(&tables);
    let ask = |call: &str| format!("SELECT {call} FROM {ADDRESSES} ORDER BY n");
    for (field, right) in [
        ("country", ["DE", "DE", "-", "FR", "-", "-"]),
        ("asn", ["64496", "-", "-", "64497", "-", "-"]),
        ("ASN", ["64496", "-", "-", "64497", "-", "-"]),
    ] {
        let sql = ask(&format!("lpm_label('geo', ip, '{field}')"));
        assert_eq!(answer(&context, &sql).await.unwrap(), some(&right), "{sql}");
    }
    // Equal values of several labels are one group.
    let groups = format!(
        "SELECT concat(country, ' ', n) FROM (SELECT lpm_label('geo', ip, 'country') AS country, count(*) AS n FROM \
         {ADDRESSES} GROUP BY 1) ORDER BY country NULLS LAST"
    );
    assert_eq!(answer(&context, &groups).await.unwrap(), some(&["DE 2", "FR 1", " 3"]));
    let said = error(&context, &ask("lpm_label('geo', ip, 'colour')")).await;
    assert!(said.contains("the table \"geo\": no field colour; there are asn, country"), "{said}");
    let said = error(&context, &ask("lpm_label('plain', ip, 'asn')")).await;
    assert!(said.contains("no field asn; the labels have no fields"), "{said}");
    let said = error(&context, &ask("lpm_label('geo', ip, ip)")).await;
    assert!(said.contains("argument 3 has to be a text in quotes"), "{said}");

    for (call, right) in [
        ("name_label('names', 'a.example.com', 'list')", "shop"),
        ("name_label('names', 'a.example.com', 'rank')", "7"),
        ("name_label('names', 'example.org', 'rank')", "-"),
        ("name_label('names', 'https://example.org/a', 'urls', 'list')", "news"),
        ("name_label('names', 'example.org', 'domains')", "list=news"),
    ] {
        assert_eq!(answer(&context, &format!("SELECT {call}")).await.unwrap(), some(&[right]), "{call}");
    }
    for (call, said) in [
        ("name_label('names', 'example.org', 'dns')", "no field dns; there are list, rank"),
        ("name_label('names', 'example.org', 'dns', 'list')", "\"dns\" is no form of names"),
    ] {
        let found = error(&context, &format!("SELECT {call}")).await;
        assert!(found.contains(said), "{found}");
    }
}

#[tokio::test]
async fn lists_of_domains_of_every_format() {
    let dir = tempfile::tempdir().unwrap();
    let asked = "(VALUES (1, 'ads.example'), (2, 'x.ads.example'), (3, 'good.ads.example'), (4, 'example.org')) AS asked(n, name)";
    for (text, right) in [
        ("0.0.0.0 ads.example\n", ["blocked", "-", "-", "-"]),
        ("||ads.example^\n@@||good.ads.example^\n", ["blocked", "blocked", "-", "-"]),
        ("address=/ads.example/0.0.0.0\nserver=/good.ads.example/#\n", ["blocked", "blocked", "-", "-"]),
        (
            "$TTL 60\n@ SOA a. b. 1 2 3 4 5\nads.example CNAME .\n*.ads.example CNAME .\ngood.ads.example CNAME rpz-passthru.\n",
            ["nxdomain", "nxdomain", "-", "-"],
        ),
        (
            "// ===BEGIN ICANN DOMAINS===\nads.example\n!good.ads.example\n// ===END ICANN DOMAINS===\n",
            ["icann", "icann", "-", "-"],
        ),
        ("ads.example yes\n", ["yes", "yes", "yes", "-"]),
    ] {
        let path = write(dir.path(), "list", text);
        let context = session(&Tables::new());
        context.sql(&format!("SET wirespeed.tables = 'list={}'", path.display())).await.unwrap();
        let sql = format!("SELECT name_label('list', name) FROM {asked} ORDER BY n");
        assert_eq!(answer(&context, &sql).await.unwrap(), some(&right), "{text}");
        let numbers = right.map(|label| if label == "-" { "-" } else { "1" });
        let sql = format!("SELECT name_lookup('list', name) FROM {asked} ORDER BY n");
        assert_eq!(answer(&context, &sql).await.unwrap(), some(&numbers), "{text}");
    }
}

#[tokio::test]
async fn sources_are_merged_by_the_option_and_by_programs() {
    let dir = tempfile::tempdir().unwrap();
    let geo = write(dir.path(), "geo.csv", GEO);
    let own = write(dir.path(), "own.txt", "10.1.0.0/16 Kiel\n");
    let context = session(&Tables::new());
    let listed = format!("net=site={},net=geo:country+asn={}", own.display(), geo.display());
    context.sql(&format!("SET wirespeed.tables = '{listed}'")).await.unwrap();
    let ask = |field: &str| format!("SELECT lpm_label('net', ip, '{field}') FROM {ADDRESSES} ORDER BY n");
    let right = [
        ("site", ["-", "Kiel", "-", "-", "-", "-"]),
        ("country", ["DE", "DE", "DE", "FR", "-", "-"]),
        ("asn", ["64496", "64496", "64496", "64497", "-", "-"]),
    ];
    for (field, right) in right {
        assert_eq!(answer(&context, &ask(field)).await.unwrap(), some(&right), "{field}");
    }
    // A source that is replaced is another state for the next query.
    std::fs::write(dir.path().join("next"), "10.1.0.0/16 Bonn and more\n".replace(" and more", "-3"))
        .unwrap();
    std::fs::rename(dir.path().join("next"), &own).unwrap();
    let site = answer(&context, &ask("site")).await.unwrap();
    assert_eq!(site, some(&["-", "Bonn-3", "-", "-", "-", "-"]));

    let source =
        |name: &str, file: &PathBuf| MergeSource { name: name.into(), columns: vec![], file: file.into() };
    let tables = Tables::new();
    tables
        .insert("net", Table::merged(&[source("site", &own), source("geo", &geo)], &How::default()).unwrap());
    let context = session(&tables);
    assert_eq!(answer(&context, &ask("site")).await.unwrap(), site);
}

#[tokio::test]
async fn files_that_are_no_table_are_refused_with_their_line() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) =
        (write(dir.path(), "a.txt", "10.0.0.0/8 1\n"), write(dir.path(), "b.txt", "10.1.0.0/16 1\n"));
    let list = write(dir.path(), "list.txt", "||ads.example^\n");
    let wrong = write(dir.path(), "wrong.txt", "10.0.0.0/8 1\n10.0.0.0/33 1\n");
    let fox = write(dir.path(), "fox.txt", "the quick brown fox\n");
    let open = |paths: &[&str]| Table::open(paths).unwrap_err().to_string();
    let text = |path: &PathBuf| path.display().to_string();
    let of = |name: &str, path: &PathBuf| format!("{name}={}", path.display());
    for (paths, said) in [
        (vec![text(&wrong)], "wrong.txt:2"),
        (vec![text(&fox)], "fox.txt: neither an image, nor routes"),
        (vec![text(&a), text(&b)], "b.txt: routes are one file: name fields to merge several"),
        (vec![text(&list), text(&b)], "b.txt: names are one file"),
        (vec![of("x", &a), text(&b)], "b.txt: the table is merged of sources, and this one has no field"),
        (vec![of("x", &a), of("y", &wrong)], "wrong.txt:2"),
        (vec![of("x:col", &a)], "a.txt:1: no column is named like a prefix"),
        (vec![of("x", &list)], "list.txt"),
        (vec![dir.path().join("nosuch").display().to_string()], "nosuch"),
    ] {
        let paths: Vec<_> = paths.iter().map(String::as_str).collect();
        let found = open(&paths);
        assert!(found.contains(said), "{paths:?}: {found}");
    }
    // Rules of both families in two files are one table.
    let v4 = write(dir.path(), "v4.rules", "dport=443 proto=tcp action=4\n");
    let v6 = write(dir.path(), "v6.rules", "src=2001:db8::/32 dport=443 proto=tcp action=6\n");
    let tables = Tables::new();
    tables.insert("acl", Table::open(&[&v4, &v6]).unwrap());
    let context = session(&tables);
    for (src, dst, right) in [("10.0.0.1", "10.0.0.2", "4"), ("2001:db8::1", "2001:db8::2", "6")] {
        let sql = format!("SELECT classify_action('acl', '{src}', '{dst}', 6, 1, 443)");
        assert_eq!(answer(&context, &sql).await.unwrap(), some(&[right]), "{sql}");
    }
    let found = open(&[&text(&v4), &text(&v4)]);
    assert!(found.contains("rules of this family already"), "{found}");
    let found = open(&[&text(&v4), &text(&a)]);
    assert!(found.contains("no rules of the 5-tuple"), "{found}");
}

#[tokio::test]
async fn options_for_reading_follow_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| write(dir.path(), name, text).display().to_string();
    let groups = write(
        "groups.json",
        r#"{"SecurityGroups": [
            {"GroupId": "sg-1", "IpPermissions": [{"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22,
                "IpRanges": [{"CidrIp": "10.0.0.0/8"}]}], "IpPermissionsEgress": []},
            {"GroupId": "sg-2", "IpPermissions": [], "IpPermissionsEgress": [{"IpProtocol": "tcp",
                "FromPort": 443, "ToPort": 443, "IpRanges": [{"CidrIp": "10.0.0.0/8"}]}]}]}"#,
    );
    let sets = write("sets", "create a hash:net\nadd a 10.0.0.0/8\ncreate b hash:net\nadd b 192.0.2.0/24\n");
    let ranges = write("ranges.csv", "from,to,asn\n10.0.0.0,10.0.0.255,64496\n");
    let dump =
        write("rib.txt", "TABLE_DUMP2|1|B|192.0.2.1|64500|10.0.0.0/8|64500 64496|IGP|192.0.2.1|0|0||NAG||\n");
    let names = write("names.txt", "ads.example\nmore.example\n");
    let packet = |dst: &str, port: u16| format!("'10.0.0.1', '{dst}', 6, 1, {port}");
    let context = session(&Tables::new());
    let set = |text: String| {
        let context = context.clone();
        async move { context.sql(&format!("SET wirespeed.tables = '{text}'")).await }
    };
    for (table, sql, right) in [
        (
            format!("{groups}?chain=sg-1&assume=ct=new"),
            format!("classify_action({})", packet("10.0.0.2", 22)),
            "allow",
        ),
        (
            format!("{groups}?chain=sg-1&assume=ct=new"),
            format!("classify_action({})", packet("10.0.0.2", 443)),
            "deny",
        ),
        (
            format!("{groups}?chain=sg-1+sg-2&rule-table=egress&assume=ct=new"),
            format!("classify_action({})", packet("10.0.0.2", 443)),
            "allow",
        ),
        (format!("{sets}?set=b"), "lpm_label('192.0.2.1')".to_owned(), "member"),
        (
            format!("{ranges}?range-columns=from+to&value-columns=asn"),
            "lpm_label('10.0.0.1')".to_owned(),
            "64496",
        ),
        (format!("{dump}?origins"), "lpm_asn('10.1.2.3')".to_owned(), "64496"),
        (dump.clone(), "lpm_label('10.1.2.3')".to_owned(), "192.0.2.1"),
        (
            format!("asn={dump}?origins,t=list={sets}?set=b"),
            "lpm_label('t', '10.1.2.3', 'asn')".to_owned(),
            "64496",
        ),
        (names.clone(), "name_label('www.more.example')".to_owned(), "member"),
    ] {
        set(format!("t={table}")).await.unwrap();
        assert_eq!(answer(&context, &format!("SELECT {sql}")).await.unwrap(), some(&[right]), "{table}");
    }
    // An image of a list without values, which has the numbers of its lines.
    let image = dir.path().join("names.img");
    let read = |text: &[u8]| read_table_from(text, "list", &ReadOptions::default()).unwrap().0;
    let list = read(b"ads.example\nmore.example\n");
    let table = wirespeed::NameTable::builder().rib(list.names.clone()).build().unwrap();
    table.save(&image).unwrap();
    let (_, bare) = NameImageFile::open(&image).unwrap().into_bare().unwrap();
    save(table.engine(), &bare, &list.names, &list.labels, false, &image).unwrap();
    set(format!("t={}", image.display())).await.unwrap();
    assert_eq!(answer(&context, "SELECT name_label('more.example')").await.unwrap(), some(&["member"]));
    for (table, said) in [
        (format!("{}?chain=x", image.display()), "names.img: chain is for iptables-save"),
        (format!("{dump}?vrf=red"), "rib.txt: vrf is for FRR's JSON"),
        (format!("{ranges}?columns=asn"), "no option for reading is called \"columns\""),
        (
            format!("asn={dump}?set=b,t=x={ranges}?range-columns=from+to"),
            "rib.txt: set is for sets of ipset and nft",
        ),
    ] {
        set(format!("t={table}")).await.unwrap();
        let found = error(&context, "SELECT lpm('10.0.0.1')").await;
        assert!(found.contains(said), "{table}: {found}");
    }
}
