//! Tables of files, and tables that are replaced.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{ArrayRef, UInt32Array};
use datafusion::common::config::ExtensionOptions;
use datafusion::physical_plan::collect;
use datafusion::prelude::{SessionConfig, SessionContext};
use wirespeed::prelude::*;
use wirespeed_datafusion::{AddressTable, Error, Opener, Table, Tables, WirespeedOptions, register_all};

use super::{answer, as_texts, error, register, session};

fn built(label: &'static str) -> (IpTable, Labels<&'static str>) {
    let labels = Labels::new();
    let routes = [("10.0.0.0/8".parse::<IpNet>().unwrap(), label), ("10.1.0.0/16".parse().unwrap(), "inner")];
    (IpTable::builder().labelled_routes(&labels, routes).prefix_lookups().build().unwrap(), labels)
}

fn table(label: &'static str) -> Table {
    let (table, labels) = built(label);
    Table::Addresses(AddressTable::new(table, &labels))
}

fn save(path: &Path, label: &'static str) {
    let (table, labels) = built(label);
    let next = path.with_extension("next");
    table.save_labelled(&next, &labels).unwrap();
    std::fs::rename(next, path).unwrap();
}

#[tokio::test]
async fn files_of_each_kind_by_option() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    save(&at("ris.img"), "outer");
    let labels = Labels::new();
    let names = [(NameBuf::from_domain(b"parc.com").unwrap(), "parc")];
    let names = wirespeed::NameTable::builder().labelled_names(&labels, names).build().unwrap();
    names.save_labelled(at("names.img"), &labels).unwrap();
    // Both families start with index 1 for labels of their own.
    let labels = Labels::new();
    let rules = [("dport=443".parse::<Rule<Ipv4Tuple>>().unwrap(), "four")];
    Classifier::builder()
        .labelled_rules(&labels, rules)
        .build()
        .unwrap()
        .save_labelled(at("4.img"), &labels)
        .unwrap();
    let labels = Labels::new();
    let rules = [("dport=443".parse::<Rule<Ipv6Tuple>>().unwrap(), "six")];
    Classifier::builder()
        .labelled_rules(&labels, rules)
        .build()
        .unwrap()
        .save_labelled(at("6.img"), &labels)
        .unwrap();
    std::fs::write(at("vrps.csv"), "ASN,IP Prefix,Max Length,Trust Anchor\nAS64496,10.0.0.0/8,16,ripe\n")
        .unwrap();

    let context = session(&Tables::new());
    let none = error(&context, "SELECT lpm('ris', '10.0.0.1')").await;
    assert!(none.contains("there is no table \"ris\"; there are none: set wirespeed.tables"), "{none}");
    let path = |name| at(name).display().to_string();
    let listed = format!(
        "ris={}, names={}, acl={}, acl={}, rpki={}",
        path("ris.img"),
        path("names.img"),
        path("4.img"),
        path("6.img"),
        path("vrps.csv")
    );
    context.sql(&format!("SET wirespeed.tables = '{listed}'")).await.unwrap();
    for (call, found) in [
        ("lpm_label('ris', '10.0.0.1')", "outer"),
        ("lpm_prefix('10.1.0.1')", "10.1.0.0/16"),
        ("lpm_all('10.1.0.1')", "[1, 2]"),
        ("name_label('www.parc.com')", "parc"),
        ("classify_action('10.0.0.1', '10.0.0.2', 6, 1, 443)", "four"),
        ("classify_action('2001:db8::1', '2001:db8::2', 6, 1, 443)", "six"),
        ("rov('10.0.0.0/8', 64496)", "valid"),
        ("rov('rpki', '10.0.0.0/24', 64496)", "invalid"),
    ] {
        assert_eq!(
            answer(&context, &format!("SELECT {call}")).await.unwrap(),
            [Some(found.to_owned())],
            "{call}"
        );
    }
    context.sql(&format!("SET wirespeed.tables = 'ris={}'", path("gone.img"))).await.unwrap();
    let gone = error(&context, "SELECT lpm('10.0.0.1')").await;
    assert!(gone.contains("the table \"ris\"") && gone.contains("gone.img"), "{gone}");
    std::fs::write(at("bad.img"), "nothing of the kind\n").unwrap();
    context.sql(&format!("SET wirespeed.tables = 'ris={}'", path("bad.img"))).await.unwrap();
    let bad = error(&context, "SELECT lpm('10.0.0.1')").await;
    assert!(bad.contains("bad.img"), "{bad}");
}

#[tokio::test]
async fn two_images_are_one_table_if_they_fit() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).display().to_string();
    let v4 = Ipv4Table::builder().routes([("10.0.0.0/8".parse::<Ipv4Net>().unwrap(), NextHop(1))]);
    v4.build().unwrap().save(at("4.img")).unwrap();
    let v6 = Ipv6Table::builder().routes([("2001:db8::/32".parse::<Ipv6Net>().unwrap(), NextHop(2))]);
    v6.build().unwrap().save(at("6.img")).unwrap();
    save(Path::new(&at("both.img")), "outer");
    // One set of labels for both families, and a set of its own.
    let labels = Labels::new();
    let routes = [("10.0.0.0/8".parse::<Ipv4Net>().unwrap(), "four")];
    let v4 = Ipv4Table::builder().labelled_routes(&labels, routes).build().unwrap();
    let routes = [("2001:db8::/32".parse::<Ipv6Net>().unwrap(), "six")];
    let v6 = Ipv6Table::builder().labelled_routes(&labels, routes).build().unwrap();
    v4.save_labelled(at("4-shared.img"), &labels).unwrap();
    v6.save_labelled(at("6-shared.img"), &labels).unwrap();
    let labels = Labels::new();
    let v6 = Ipv6Table::builder().labelled_routes(&labels, routes).build().unwrap();
    v6.save_labelled(at("6-own.img"), &labels).unwrap();
    let context = session(&Tables::new());
    let set = async |list: String| context.sql(&format!("SET wirespeed.tables = '{list}'")).await.unwrap();
    for (one, other) in [("4.img", "6.img"), ("6.img", "4.img")] {
        set(format!("t={},t={}", at(one), at(other))).await;
        for (address, found) in [("10.0.0.1", "1"), ("2001:db8::1", "2")] {
            let sql = format!("SELECT lpm('{address}')");
            assert_eq!(answer(&context, &sql).await.unwrap(), [Some(found.to_owned())], "{sql}");
        }
        assert_eq!(
            answer(&context, "SELECT lpm_all('2001:db8::1')").await.unwrap(),
            [Some("[2]".to_owned())]
        );
    }
    for (one, other, reason) in
        [("4.img", "4.img", "4.img"), ("both.img", "4.img", "the file before it has this family already")]
    {
        set(format!("t={},t={}", at(one), at(other))).await;
        let error = error(&context, "SELECT lpm('10.0.0.1')").await;
        assert!(error.contains(reason), "{error}");
    }
}

#[tokio::test]
async fn a_query_sees_the_table_of_its_planning() {
    let tables = Tables::new();
    tables.insert("t", table("old"));
    let context = session(&tables);
    let addresses: ArrayRef = Arc::new(UInt32Array::from(vec![0x0a00_0001; 1000]));
    register(&context, "flows", &[("a", addresses)]);
    let sql = "SELECT lpm_label(a) AS one, lpm_label('t', a) AS other FROM flows";
    let plan = context.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
    tables.insert("t", table("new"));
    let mut seen = 0;
    for batch in collect(plan, context.task_ctx()).await.unwrap() {
        for column in batch.columns() {
            seen += batch.num_rows();
            assert!(as_texts(column).iter().all(|label| label.as_deref() == Some("old")));
        }
    }
    assert_eq!(seen, 2000);
    let plan = context.sql(sql).await.unwrap().into_optimized_plan().unwrap();
    // A plan in a log has the names of tables, not the tables.
    assert!(format!("{plan:?}").contains("state: Some({\"t\"})"), "{plan:?}");
    let after = answer(&context, sql).await.unwrap();
    assert!(after.len() == 1000 && after.iter().all(|label| label.as_deref() == Some("new")));
    // A prepared statement is planned again each time.
    tables.insert("t", table("old"));
    context.sql("PREPARE prepared AS SELECT lpm_label(a) FROM flows LIMIT 1").await.unwrap();
    for label in ["newer", "newest"] {
        tables.insert("t", table(label));
        assert_eq!(answer(&context, "EXECUTE prepared").await.unwrap(), [Some(label.to_owned())]);
    }
    tables.remove("t");
    assert!(error(&context, sql).await.contains("name a table of addresses"));
}

#[tokio::test]
async fn a_file_that_was_replaced_is_that_of_the_next_query() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.img");
    save(&path, "old");
    let context = session(&Tables::new());
    context.sql(&format!("SET wirespeed.tables = 't={}'", path.display())).await.unwrap();
    let addresses: ArrayRef = Arc::new(UInt32Array::from(vec![0x0a00_0001; 500]));
    register(&context, "flows", &[("a", addresses)]);
    let sql = "SELECT DISTINCT lpm_label(a) FROM flows";
    assert_eq!(answer(&context, sql).await.unwrap(), [Some("old".to_owned())]);
    let plan = context.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
    save(&path, "new");
    assert_eq!(answer(&context, sql).await.unwrap(), [Some("new".to_owned())]);
    let running = collect(plan, context.task_ctx()).await.unwrap();
    let running: Vec<_> = running.iter().flat_map(|batch| as_texts(batch.column(0))).collect();
    assert_eq!(running, [Some("old".to_owned())]);
}

#[tokio::test]
async fn options_travel_by_key_and_value() {
    let options = WirespeedOptions::default().with_tables("t=/t/a.img").unwrap();
    let mut arrived = SessionConfig::new().with_option_extension(WirespeedOptions::default());
    for entry in SessionConfig::new().with_option_extension(options).options().entries() {
        if let (Some(value), true) = (entry.value, entry.key.starts_with("wirespeed.")) {
            arrived = arrived.set_str(&entry.key, &value);
        }
    }
    let arrived = arrived.options().extensions.get::<WirespeedOptions>().unwrap().entries();
    let arrived: Vec<_> = arrived.into_iter().map(|entry| (entry.key, entry.value.unwrap())).collect();
    let wanted = [("wirespeed.tables", "t=/t/a.img"), ("wirespeed.invalid", "error")];
    assert_eq!(arrived, wanted.map(|(key, value)| (key.to_owned(), value.to_owned())));

    let context = session(&Tables::new());
    for (sql, reason) in [
        ("SET wirespeed.tables = 't'", "tables are listed as name=file"),
        ("SET wirespeed.invalid = 'maybe'", "is error or null"),
        ("SET wirespeed.table = 't'", "there is no option wirespeed.table"),
    ] {
        let error = error(&context, sql).await;
        assert!(error.contains(reason), "{error}");
    }
}

#[tokio::test]
async fn sessions_without_the_options_have_the_registered_tables() {
    let tables = Tables::new();
    tables.insert("t", table("here"));
    let mut context = SessionContext::new();
    register_all(&mut context, &tables).unwrap();
    assert_eq!(answer(&context, "SELECT lpm_label('10.0.0.1')").await.unwrap(), [Some("here".to_owned())]);
}

/// Opens one table for all places, and refuses one of them.
struct OneTable(Arc<Table>);

impl Opener for OneTable {
    fn open(&self, places: &[PathBuf]) -> Result<Arc<Table>, Error> {
        match places {
            [place] if place == Path::new("store://ris") => Ok(Arc::clone(&self.0)),
            places => Err(Error::Place { place: format!("{places:?}"), source: "is elsewhere".into() }),
        }
    }
}

#[tokio::test]
async fn an_opener_opens_what_the_option_lists() {
    for (tables, of_label) in [
        (Tables::with_opener(OneTable(Arc::new(table("outer")))), "Dictionary(UInt32, Utf8)"),
        (Tables::with_labels_as_text(OneTable(Arc::new(table("outer")))), "Utf8"),
    ] {
        let context = session(&tables);
        context.sql("SET wirespeed.tables = 'ris=store://ris'").await.unwrap();
        let dst: ArrayRef = Arc::new(UInt32Array::from(vec![Some(0x0a00_0001), None, Some(1)]));
        register(&context, "flows", &[("dst", dst)]);
        let labels = answer(&context, "SELECT lpm_label(dst) FROM flows ORDER BY n").await.unwrap();
        assert_eq!(labels, [Some("outer".to_owned()), None, None]);
        for call in ["lpm_label(dst)", "lpm_label('10.0.0.1')"] {
            let types = answer(&context, &format!("SELECT arrow_typeof({call}) FROM flows LIMIT 1")).await;
            assert_eq!(types.unwrap(), [Some(of_label.to_owned())], "{call}");
        }
        context.sql("SET wirespeed.tables = 'geo=store://geo'").await.unwrap();
        let elsewhere = error(&context, "SELECT lpm('geo', dst) FROM flows").await;
        assert!(elsewhere.contains("the table \"geo\": [\"store://geo\"]: is elsewhere"), "{elsewhere}");
    }
}
