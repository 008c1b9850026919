use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::name::NameBuf;
use crate::read::{NameFib, ReadOptions, read_table_from};

fn written(names: &NameTable, labels: &Labels) -> Result<String, WriteError> {
    let mut text = Vec::new();
    write_table(names, labels, &mut text).map(|()| String::from_utf8(text).unwrap())
}

#[test]
fn lists_stay_lists_where_they_can() {
    for (text, expected) in [
        ("/b\n/a\n/\n", "/b\n/a\n/\n"),
        ("/b\n# note\n/a\n", "/b 1\n/a 3\n"),
        ("/b\n/a\n/b\n", "/a 2\n/b 3\n"),
        ("/b x\n/a y\n/a/c x\n", "/a/c x\n/b x\n/a y\n"),
    ] {
        let (fib, _) = read_table_from(text.as_bytes(), "test", &ReadOptions::default()).unwrap();
        let once = written(&fib.names, &fib.labels).unwrap();
        assert_eq!(once, expected);
        let (again, _) = read_table_from(once.as_bytes(), "test", &ReadOptions::default()).unwrap();
        assert_eq!(written(&again.names, &again.labels).unwrap(), once);
    }
}

#[test]
fn what_no_line_can_hold_is_an_error() {
    let NameFib { mut names, mut labels } = NameFib::default();
    let core = labels.intern("core").unwrap();
    for bad in ["/a b", "/a\nb", "/a\tb", "/\r"] {
        names.insert(&NameBuf::new(bad).unwrap(), core);
        assert!(matches!(written(&names, &labels), Err(WriteError::Name { .. })), "{bad}");
        names.remove(&NameBuf::new(bad).unwrap());
    }
    let long = NameBuf::new(&format!("/{}", "x".repeat(LONGEST_NAME))).unwrap();
    names.insert(&long, core);
    assert!(matches!(written(&names, &labels), Err(WriteError::TooLong { .. })));
    names.remove(&long);
    let two_words = labels.intern("two words").unwrap();
    for result in [two_words, 3] {
        names.insert(Name::ROOT, result);
        assert!(matches!(written(&names, &labels), Err(WriteError::Label { .. })));
    }
    names.insert(Name::ROOT, core);
    assert_eq!(written(&names, &labels).unwrap(), "/ core\n");
}

#[test]
fn a_line_is_written_whole_or_not_at_all() {
    let mut labels = Labels::new();
    let core = labels.intern("core").unwrap();
    let update = |name: &str, result| TimedUpdate {
        time: Some(Duration::from_secs(7)),
        update: NameUpdate::Insert(NameBuf::new(name).unwrap(), result),
    };
    for bad in [update("/b", 9), update("/b c", core)] {
        let mut text = Vec::new();
        assert!(write_updates(&[update("/a", core), bad], &labels, &mut text).is_err());
        assert_eq!(text, b"7 A /a core\n");
    }
    let names: NameTable =
        [(Name::new("/a").unwrap(), core), (Name::new("/b").unwrap(), 9)].into_iter().collect();
    let mut text = Vec::new();
    assert!(write_table(&names, &labels, &mut text).is_err());
    assert_eq!(text, b"/a core\n");
}

#[test]
fn times_are_as_short_as_they_can_be() {
    let update = |nanos| TimedUpdate {
        time: Some(Duration::new(7, nanos)),
        update: NameUpdate::Remove(NameBuf::root()),
    };
    let mut text = Vec::new();
    write_updates(&[update(0), update(250_000_000), update(1)], &Labels::new(), &mut text).unwrap();
    assert_eq!(text, b"7 W /\n7.25 W /\n7.000000001 W /\n");
}

fn entry() -> impl Strategy<Value = (NameBuf, String)> {
    let byte = any::<u8>().prop_filter("a byte of a component that a line can hold", |b| {
        !b.is_ascii_whitespace() && *b != b'/'
    });
    let component = prop_oneof![
        proptest::collection::vec(byte, 1..6),
        prop::sample::select(vec![b"com".to_vec(), b"#".to_vec(), b"A".to_vec(), b"%2F".to_vec()]),
    ];
    let name = proptest::collection::vec(component, 0..4)
        .prop_map(|components| NameBuf::from_components(components.iter().map(Vec::as_slice)).unwrap());
    (name, "[a-z0-9.:]{1,3}")
}

proptest! {
    #[test]
    fn what_is_written_reads_back(entries in proptest::collection::vec(entry(), 1..30), with_results in any::<bool>()) {
        let mut fib = NameFib::default();
        for (name, word) in &entries {
            let is_new = fib.names.result(name) == 0;
            let result = match with_results {
                true => fib.labels.intern(word).unwrap(),
                false if is_new => fib.labels.next_line().unwrap(),
                false => continue,
            };
            fib.names.insert(name, result);
        }
        let mut text = Vec::new();
        write_table(&fib.names, &fib.labels, &mut text).unwrap();
        let (again, report) = read_table_from(&text[..], "again", &ReadOptions::default()).unwrap();
        prop_assert_eq!((report.repeated, again.names.len()), (0, fib.names.len()));
        for (name, result) in fib.names.iter() {
            let label = |fib: &NameFib, result| fib.labels.label(result).map(|label| label.to_string());
            prop_assert_eq!(label(&again, again.names.result(&name)), label(&fib, result));
        }
        let mut twice = Vec::new();
        write_table(&again.names, &again.labels, &mut twice).unwrap();
        prop_assert_eq!(twice, text);
    }
}
