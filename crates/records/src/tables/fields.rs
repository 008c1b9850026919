//! The fields of the texts that a table has for its indexes.

use wirespeed::fib::read::NO_VALUE;
use wirespeed::fib::read::record;

use super::error::TableError;
use super::file::TableFile;

impl TableFile {
    /// Calls `give` with each field of a text that this table's reading gave, or with the whole text if no
    /// fields are named. A field that the text lacks is empty.
    pub fn each_field(&self, text: &str, mut give: impl FnMut(&str)) {
        match &*self.fields {
            [] => give(text),
            // A record of CSV that is empty.
            [_] if text == NO_VALUE => give(""),
            [_] => give(&record::unescaped(text)),
            // The reader's text of several: asn=13335,country=US.
            fields => fields.iter().for_each(|field| {
                give(&record::field(text, field).unwrap_or_default());
            }),
        }
    }

    /// The text of a label of an image or of merged sources as a reader of these fields gives it. These were
    /// made without knowing the fields, so their labels are whole records.
    pub(super) fn text_of<'t>(&self, label: &'t str) -> &'t str {
        match &*self.fields {
            [field] => match record::escaped_field(label, field) {
                // The value, and not the sign that there is none.
                Some(NO_VALUE) => "%2D",
                value => value.unwrap_or(NO_VALUE),
            },
            _ => label,
        }
    }

    /// Refuses a field that no label has.
    pub(super) fn check_fields<'l, L>(&self, labels: impl Fn() -> L) -> Result<(), TableError>
    where
        L: Iterator<Item = &'l str>,
    {
        self.fields.iter().try_for_each(|field| {
            record::check_field(&labels, field)
                .map_err(|source| TableError::NoField { path: self.shown(), source })
        })
    }
}

#[cfg(test)]
mod tests {
    use wirespeed::fib::NextHops;

    use super::*;

    #[test]
    fn values_by_field() {
        let of = |text: &str, fields: &[&str]| {
            let fields = fields.iter().map(|&field| field.to_owned()).collect();
            let file = TableFile { name: "t".to_owned(), fields, ..TableFile::default() };
            let mut values = Vec::new();
            file.each_field(text, |value| values.push(value.to_owned()));
            values
        };
        assert_eq!(of("a=1,b=2", &[]), ["a=1,b=2"]);
        assert_eq!(of("United%20States%", &["country"]), ["United States%"]);
        assert_eq!(of("%C3%A9 %zz", &["x"]), ["%C3%A9 %zz"]);
        assert_eq!((of("-", &["x"]), of("-", &["x", "y"])), (vec![String::new()], vec![String::new(); 2]));
        assert_eq!(
            of("asn=1,org%20name=A%2C%20B%3D\u{e9}", &["Org name", "x", "asn"]),
            ["A, B=\u{e9}", "", "1"]
        );
        assert_eq!(of("asn=1,ASN=2", &["ASN", "asn", "Asn"]), ["2", "1", "1"]);
    }

    #[test]
    fn one_field_of_an_image_and_fields_that_it_lacks() {
        let named = |fields: &[&str]| TableFile {
            name: "t".into(),
            path: "x.img".into(),
            fields: fields.iter().map(|&field| field.to_owned()).collect(),
            ..TableFile::default()
        };
        let labels = ["country=DE,asn=2", "asn=3", "-", "country=-,org%20name=A%2CB"];
        let of = |field: &str| {
            let (file, mut values) = (named(&[field]), Vec::new());
            labels.iter().for_each(|label| {
                file.each_field(file.text_of(label), |value| values.push(value.to_owned()));
            });
            values
        };
        assert_eq!(of("country"), ["DE", "", "", "-"]);
        assert_eq!(of("org name"), ["", "", "", "A,B"]);
        assert_eq!(named(&[]).text_of(labels[0]), labels[0]);
        let check = |fields: &[&str], labels: &[&str]| {
            let mut texts = NextHops::new();
            for label in labels {
                texts.intern(label).unwrap();
            }
            let labels = || texts.iter().map(|(_, label)| label);
            named(fields).check_fields(labels).map_err(|error| error.to_string())
        };
        assert_eq!(check(&["org name", "asn"], &labels), Ok(()));
        assert_eq!(check(&[], &["192.0.2.1"]), Ok(()));
        let said = "x.img: no field nosuch; there are asn, country, org name";
        assert_eq!(check(&["asn", "nosuch"], &labels), Err(said.to_owned()));
        let said = "x.img: no field asn; the labels have no fields";
        assert_eq!(check(&["asn"], &["192.0.2.1", "x,asn=1", "-"]), Err(said.to_owned()));
    }
}
