//! `name_lookup`, `name_label` and `name_registrable`.

use std::sync::Arc;

use arrow::array::{ArrayRef, DictionaryArray, LargeStringArray, StringArray, StringViewArray};
use arrow::datatypes::Int32Type;
use wirespeed::prelude::*;
use wirespeed_datafusion::{NameTable, Table, Tables};

use super::{Random, answer, error, register, session};

const DOMAINS: [&str; 6] =
    ["com", "parc.com", "www.parc.com", "tracker.example", "a.b.tracker.example", "b.parc.com"];

fn table() -> Table {
    let labels = Labels::new();
    let names =
        DOMAINS.map(|domain| (NameBuf::from_domain(domain.as_bytes()).unwrap(), domain.to_uppercase()));
    let table = wirespeed::NameTable::builder().labelled_names(&labels, names).build().unwrap();
    Table::Names(NameTable::new(table, &labels))
}

/// The longest domain in the table that a domain is or ends with.
fn expected(domain: &str) -> Option<usize> {
    let covers = |known: &str| domain == known || domain.ends_with(&format!(".{known}"));
    (0..DOMAINS.len()).filter(|&at| covers(DOMAINS[at])).max_by_key(|&at| DOMAINS[at].len())
}

#[tokio::test]
async fn domains_in_every_type_of_text() {
    let mut random = Random(5);
    let words = ["a", "b", "www", "parc", "com", "tracker", "example", "parcel"];
    let mut domains: Vec<Option<String>> = (0..200)
        .map(|n| {
            let mut word = || words[usize::try_from(random.below(8)).unwrap()];
            let domain = match n % 4 {
                0 => format!("{}.{}.com", word(), word()),
                1 => format!("{}.{}.tracker.example", word(), word()),
                2 => format!("{}.parc.com", word()),
                _ => format!("{}.{}", word(), word()),
            };
            (n % 11 != 5).then_some(domain)
        })
        .collect();
    domains.push(Some("com".to_owned()));
    let found: Vec<_> = domains.iter().map(|domain| domain.as_deref().and_then(expected)).collect();
    assert!(found.iter().any(Option::is_none) && found.iter().flatten().count() > 100);

    let tables = Tables::new();
    tables.insert("names", table());
    let context = session(&tables);
    let texts = || domains.iter().map(Option::as_deref);
    let columns: [(&str, ArrayRef); 4] = [
        ("utf8", Arc::new(texts().collect::<StringArray>())),
        ("large_utf8", Arc::new(texts().collect::<LargeStringArray>())),
        ("utf8_view", Arc::new(texts().collect::<StringViewArray>())),
        ("dictionary", Arc::new(texts().collect::<DictionaryArray<Int32Type>>())),
    ];
    register(&context, "asked", &columns);
    for (column, _) in &columns {
        let sql = format!("SELECT name_lookup({column}) FROM asked ORDER BY n");
        let numbers: Vec<_> = found.iter().map(|found| found.map(|at| (at + 1).to_string())).collect();
        assert_eq!(answer(&context, &sql).await.unwrap(), numbers, "{sql}");
        let sql = format!("SELECT name_label('names', {column}) FROM asked ORDER BY n");
        let labels: Vec<_> = found.iter().map(|found| found.map(|at| DOMAINS[at].to_uppercase())).collect();
        assert_eq!(answer(&context, &sql).await.unwrap(), labels, "{sql}");
    }
}

#[tokio::test]
async fn other_forms_and_what_is_none() {
    let tables = Tables::new();
    tables.insert("names", table());
    let context = session(&tables);
    for (call, found) in [
        ("name_label('names', 'https://x.tracker.example/p?id=1', 'urls')", Some("TRACKER.EXAMPLE")),
        ("name_label('names', '/com/parc/www/a', 'names')", Some("WWW.PARC.COM")),
        ("name_label('names', 'ndn:/com/parc', 'ndn')", Some("PARC.COM")),
        ("name_label('names', 'www.parc.com', 'domains')", Some("WWW.PARC.COM")),
        ("name_lookup('names', 'org')", None),
        ("name_lookup(NULL)", None),
    ] {
        let found = [found.map(str::to_owned)];
        assert_eq!(answer(&context, &format!("SELECT {call}")).await.unwrap(), found, "{call}");
    }
    let form = error(&context, "SELECT name_lookup('names', 'a.com', 'dns')").await;
    assert!(form.contains("\"dns\" is no form of names; there are: names, domains, urls, ndn"), "{form}");
    let name = error(&context, "SELECT name_lookup('a/b c')").await;
    assert!(name.contains("\"a/b c\" is no name"), "{name}");
    context.sql("SET wirespeed.invalid = 'null'").await.unwrap();
    assert_eq!(answer(&context, "SELECT name_lookup('a/b c')").await.unwrap(), [None]);
}

#[tokio::test]
async fn registrable_domains() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("public_suffix_list.dat");
    let text = "// ===BEGIN ICANN DOMAINS===\nuk\nco.uk\n*.ck\n!www.ck\n// ===END ICANN DOMAINS===\n";
    std::fs::write(&path, text).unwrap();
    let tables = Tables::new();
    tables.insert("psl", Table::open(&[&path]).unwrap());
    tables.insert("names", table());
    let context = session(&tables);
    let asked = [
        (Some("www.example.co.uk"), Some("example.co.uk")),
        (Some("WWW.Example.CO.UK"), Some("example.co.uk")),
        (Some("co.uk"), None),
        (None, None),
        (Some("a.b.shop.ck"), Some("b.shop.ck")),
        (Some("shop.ck"), None),
        (Some("a.www.ck"), Some("www.ck")),
        (Some("a.b.org"), Some("b.org")),
        (Some("192.0.2.1"), None),
    ];
    let texts = || asked.iter().map(|(domain, _)| *domain);
    let columns: [(&str, ArrayRef); 3] = [
        ("utf8", Arc::new(texts().collect::<StringArray>())),
        ("utf8_view", Arc::new(texts().collect::<StringViewArray>())),
        ("dictionary", Arc::new(texts().collect::<DictionaryArray<Int32Type>>())),
    ];
    register(&context, "asked", &columns);
    let right = asked.map(|(_, right)| right.map(str::to_owned));
    for (column, _) in &columns {
        let sql = format!("SELECT name_registrable('psl', {column}) FROM asked ORDER BY n");
        assert_eq!(answer(&context, &sql).await.unwrap(), right, "{sql}");
    }
    let other = error(&context, "SELECT name_registrable('names', 'www.parc.com')").await;
    assert!(other.contains("\"names\"") && other.contains("no list of public suffixes"), "{other}");
    let wrong = error(&context, "SELECT name_registrable('psl', 'a..uk')").await;
    assert!(wrong.contains("\"a..uk\" is no domain"), "{wrong}");
    context.sql("SET wirespeed.invalid = 'null'").await.unwrap();
    assert_eq!(answer(&context, "SELECT name_registrable('psl', 'a..uk')").await.unwrap(), [None]);
}
