//! Labels that are records: texts of several fields, as CSV of several columns, a MaxMind DB, ranges of
//! clouds and [merged](crate::merge) tables have them.
//!
//! ```text
//! asn=13335,country=US,org=A%2C%20B        the fields asn, country and org
//! ```
//!
//! A text of another form has no fields. Readers of tables with one value column write the value alone.

use std::borrow::Cow;
use std::collections::BTreeSet;

/// A field that none of a table's labels has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no field {field}; {}", there_are(.known))]
pub struct NoField {
    /// The field that was named.
    pub field: String,
    /// The fields of the labels, not more than 40.
    pub known: BTreeSet<String>,
}

/// The value of a field of a label. `None` if the label has no such field. A field of this very name comes
/// before one that differs in case.
///
/// ```
/// use wirespeed_fib::read::record::field;
///
/// let label = "asn=13335,org%20name=A%2C%20B";
/// assert_eq!(field(label, "asn").as_deref(), Some("13335"));
/// assert_eq!(field(label, "Org name").as_deref(), Some("A, B"));
/// assert_eq!(field(label, "country"), None);
/// assert_eq!(field("192.0.2.1", "asn"), None);
/// ```
pub fn field<'t>(label: &'t str, name: &str) -> Option<Cow<'t, str>> {
    escaped_field(label, name).map(unescaped)
}

/// The value of a field as it stands in a label, with its `%HH`: see [`field`].
pub fn escaped_field<'t>(label: &'t str, name: &str) -> Option<&'t str> {
    let same = pairs(label).find(|(known, _)| unescaped(known) == name);
    let alike = || pairs(label).find(|(known, _)| unescaped(known).eq_ignore_ascii_case(name));
    same.or_else(alike).map(|(_, value)| value)
}

/// Refuses a field that no label has. `labels` gives all labels, and is called a second time for the error.
pub fn check_field<'t, L>(labels: impl Fn() -> L, name: &str) -> Result<(), NoField>
where
    L: Iterator<Item = &'t str>,
{
    const SHOWN: usize = 40;
    if labels().any(|label| escaped_field(label, name).is_some()) {
        return Ok(());
    }
    let mut known = BTreeSet::new();
    for (found, _) in labels().flat_map(pairs) {
        if known.len() < SHOWN {
            known.insert(unescaped(found).into_owned());
        }
    }
    Err(NoField { field: name.to_owned(), known })
}

/// A text of a reader without its `%HH`.
pub fn unescaped(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return text.into();
    }
    let (mut plain, mut rest) = (String::new(), text);
    while let Some(at) = rest.find('%') {
        plain.push_str(&rest[..at]);
        let digits = rest.get(at + 1..at + 3).filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
        // The reader escapes ASCII alone.
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()).filter(u8::is_ascii) {
            Some(byte) => {
                plain.push(char::from(byte));
                rest = &rest[at + 3..];
            }
            None => {
                plain.push('%');
                rest = &rest[at + 1..];
            }
        }
    }
    (plain + rest).into()
}

/// The names and values of a record, as they stand there. None of any other text.
fn pairs(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let pairs = text.split(',').map(|part| part.split_once('='));
    let is_record = pairs.clone().all(|pair| pair.is_some());
    pairs.flatten().filter(move |_| is_record)
}

fn there_are(names: &BTreeSet<String>) -> String {
    match names.is_empty() {
        true => "the labels have no fields".to_owned(),
        false => format!("there are {}", names.iter().map(String::as_str).collect::<Vec<_>>().join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_by_name() {
        let of = |label: &str, name: &str| field(label, name).map(Cow::into_owned);
        assert_eq!(of("asn=1,org%20name=A%2C%20B%3D\u{e9}", "org name").unwrap(), "A, B=\u{e9}");
        assert_eq!(
            (of("asn=1,ASN=2", "ASN").unwrap(), of("asn=1,ASN=2", "Asn").unwrap()),
            ("2".into(), "1".into())
        );
        for none in ["-", "192.0.2.1", "x,asn=1", ""] {
            assert_eq!(of(none, "asn"), None, "{none}");
        }
        assert_eq!(unescaped("United%20States%"), "United States%");
        assert_eq!(unescaped("%C3%A9 %zz"), "%C3%A9 %zz");
    }

    #[test]
    fn a_field_that_no_label_has_is_refused_with_those_that_are_there() {
        let labels = ["country=DE,asn=2", "asn=3", "-", "org%20name=A%2CB"];
        assert_eq!(check_field(|| labels.into_iter(), "org name"), Ok(()));
        let said = |labels: &[&str]| check_field(|| labels.iter().copied(), "x").unwrap_err().to_string();
        assert_eq!(said(&labels), "no field x; there are asn, country, org name");
        assert_eq!(said(&["192.0.2.1", "x,asn=1", "-"]), "no field x; the labels have no fields");
        assert_eq!(said(&[]), "no field x; the labels have no fields");
    }
}
