//! CSV of tables (RFC 4180): a prefix, and the fields of its label.
//!
//! ```text
//! 10.0.0.0/8 asn=13335,org=A%20B     prefix,asn,country,org
//! 10.1.0.0/16 country=US         ──► 10.0.0.0/8,13335,,A B
//!                                    10.1.0.0/16,,US,
//! ```
//!
//! A table whose labels are not all records has the one column `value`, and one of members only the prefixes.
//! The reader makes the same labels of all of them, except where records have one field alone: a column alone
//! is read as its values, `13335` and not `asn=13335`. Columns come in an order that no label turns around,
//! if there is one.

use std::collections::{HashMap, HashSet};
use std::io::Write;

use super::{Routes, WriteError, refuse};
use crate::read::{
    Format, MEMBER, NO_VALUE, is_csv_value, label_fields, label_text, label_value, quoted_in_csv,
};

/// The column of labels that are no records.
const VALUE: &str = "value";

type Fields = Vec<(String, String)>;

/// Columns, and the fields of each label.
type Records = (Vec<String>, HashMap<String, Fields>);

pub(super) fn table(routes: &mut Routes<'_>, out: &mut dyn Write) -> Result<(), WriteError> {
    // What stands after the prefix, by label.
    let mut cells: HashMap<String, String> = HashMap::new();
    routes.each(|_, text| {
        if !cells.contains_key(text) {
            cells.insert(text.to_owned(), String::new());
        }
        Ok(())
    })?;
    let are_members = cells.keys().all(|text| text == MEMBER);
    let records = if are_members { None } else { records(routes, cells.len())? };
    let are_values = !are_members && records.is_none();
    let columns = match records {
        Some((columns, records)) => {
            for (text, fields) in records {
                cells.insert(text, row(&columns, &fields));
            }
            columns
        }
        None if are_members => Vec::new(),
        None => {
            for (text, row) in &mut cells {
                // A text that no value stands for is refused with its prefix, below.
                let value = label_value(text).unwrap_or_default();
                *row = format!(",{}", quoted_in_csv(&value));
            }
            vec![VALUE.to_owned()]
        }
    };
    write!(out, "prefix")?;
    columns.iter().try_for_each(|name| write!(out, ",{}", quoted_in_csv(name)))?;
    writeln!(out)?;
    routes.each(|prefix, text| {
        if are_values && !is_read_back(text) || has_lost_return(&cells[text]) {
            return Err(refuse(Format::Csv, prefix, text));
        }
        Ok(writeln!(out, "{prefix}{}", cells[text])?)
    })
}

/// The columns of a table of records, and the fields of each of its labels. `None` if a label is no record,
/// or none has a field.
fn records(routes: &mut Routes<'_>, count: usize) -> Result<Option<Records>, WriteError> {
    let mut records: HashMap<String, Fields> = HashMap::with_capacity(count);
    let mut columns = Columns::default();
    let mut are_records = true;
    routes.each(|_, text| {
        if are_records && !records.contains_key(text) {
            match label_fields(text).filter(|fields| are_distinct(fields)) {
                Some(fields) => {
                    columns.add(&fields);
                    records.insert(text.to_owned(), fields);
                }
                None => are_records = false,
            }
        }
        Ok(())
    })?;
    if !are_records || columns.names.is_empty() {
        return Ok(None);
    }
    if let Some(name) = columns.names.iter().find(|name| !is_csv_value(name)) {
        return Err(WriteError::Column { name: name.clone() });
    }
    Ok(Some((columns.in_order(), records)))
}

fn are_distinct(fields: &[(String, String)]) -> bool {
    let mut seen = HashSet::new();
    fields.iter().all(|(name, _)| seen.insert(name))
}

/// The cells of a record, a comma before each.
fn row(columns: &[String], fields: &[(String, String)]) -> String {
    let mut row = String::new();
    for column in columns {
        row.push(',');
        if let Some((_, value)) = fields.iter().find(|(name, _)| name == column) {
            row.push_str(&quoted_in_csv(value));
        }
    }
    row
}

/// Whether a reader makes this label of its value.
fn is_read_back(text: &str) -> bool {
    let again = label_value(text).map(|value| label_text(true, &[(VALUE.to_owned(), value)]));
    text == NO_VALUE || again.is_some_and(|again| again == text)
}

/// Whether a reader loses a carriage return: it ends lines.
fn has_lost_return(row: &str) -> bool {
    row.contains("\r\n")
}

/// The names of fields, numbered as they come, and which of them comes right before which.
#[derive(Default)]
struct Columns {
    names: Vec<String>,
    numbers: HashMap<String, usize>,
    after: HashSet<(usize, usize)>,
}

impl Columns {
    fn add(&mut self, fields: &[(String, String)]) {
        let mut before = None;
        for (name, _) in fields {
            let number = match self.numbers.get(name) {
                Some(&number) => number,
                None => {
                    self.names.push(name.clone());
                    self.numbers.insert(name.clone(), self.names.len() - 1);
                    self.names.len() - 1
                }
            };
            self.after.extend(before.map(|before| (before, number)));
            before = Some(number);
        }
    }

    /// The names, each after all that come before it in a label. Where labels contradict each other, the name
    /// that came first.
    fn in_order(mut self) -> Vec<String> {
        let mut left: Vec<usize> = (0..self.names.len()).collect();
        let mut ordered = Vec::with_capacity(left.len());
        while !left.is_empty() {
            let held: HashSet<usize> = self.after.iter().map(|&(_, later)| later).collect();
            let at = left.iter().position(|number| !held.contains(number)).unwrap_or(0);
            let number = left.remove(at);
            self.after.retain(|&(before, later)| before != number && later != number);
            ordered.push(std::mem::take(&mut self.names[number]));
        }
        ordered
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::fib::Fib;
    use crate::next_hop::NextHop;
    use crate::read::tests::{read_strict, text_of};
    use crate::read::{ReadOptions, read_fib_from};
    use crate::write::write_fib;

    fn csv(fib: &Fib) -> Result<String, WriteError> {
        let mut out = Vec::new();
        write_fib(fib, Format::Csv, &mut out).map(|()| String::from_utf8(out).unwrap())
    }

    fn of(text: &str) -> Fib {
        read_strict(Format::Plain, text.as_bytes()).unwrap().0
    }

    /// Reads without being told the format.
    fn read(text: &str) -> Fib {
        read_fib_from(text.as_bytes(), "test", &ReadOptions::default()).unwrap().0
    }

    #[test]
    fn records_values_and_members() {
        for (routes, written) in [
            (
                "10.0.0.0/8 asn=1,org=A%2C%20\"B\"\n10.1.0.0/16 asn=2,cc=US,org=%20x\n10.2.0.0/16 -\n\
                 2001:db8::/32 cc=a;b\n",
                "prefix,asn,cc,org\n10.0.0.0/8,1,,\"A, \"\"B\"\"\"\n10.1.0.0/16,2,US,\" x\"\n10.2.0.0/16,,,\n\
                 2001:db8::/32,,\"a;b\",\n",
            ),
            (
                "10.0.0.0/8 United%20States\n10.1.0.0/16 asn=1,cc=2\n11.0.0.0/8 -\n",
                "prefix,value\n10.0.0.0/8,United States\n10.1.0.0/16,\"asn=1,cc=2\"\n11.0.0.0/8,-\n",
            ),
            ("10.0.0.0/8 -\n", "prefix,value\n10.0.0.0/8,-\n"),
            ("10.0.0.0/8 a=1,a=2\n", "prefix,value\n10.0.0.0/8,\"a=1,a=2\"\n"),
            ("10.0.0.0/8 member\n::/0 member\n", "prefix\n10.0.0.0/8\n::/0\n"),
            ("10.0.0.0/8 a=1%0A%0A#\n".replace('#', "%23").as_str(), "prefix,a\n10.0.0.0/8,\"1\n\n#\"\n"),
        ] {
            let fib = of(routes);
            assert_eq!(csv(&fib).unwrap(), written);
            let again = text_of(&read(written));
            assert_eq!(again, routes.replace(" a=1%0A", " 1%0A"), "{written}");
        }
    }

    #[test]
    fn what_would_read_back_as_something_else_is_refused() {
        for name in ["prefix", "Network", "length", "net%20mask", "a%0Ab", "a%09b"] {
            let said = csv(&of(&format!("10.0.0.0/8 {name}=1,b=2\n"))).unwrap_err().to_string();
            assert!(said.contains("no column of CSV"), "{said}");
        }
        for label in ["%41", "a=1,b=x%0D%0Ay", "x%0D%0Ay"] {
            let said = csv(&of(&format!("10.0.0.0/8 {label}\n"))).unwrap_err();
            assert!(matches!(said, WriteError::NextHop { .. }), "{said}");
        }
        let mut hole = of("10.0.0.0/8 a\n");
        hole.v4.insert("10.1.0.0/16".parse().unwrap(), NextHop(7));
        assert!(matches!(csv(&hole), Err(WriteError::UnknownNextHop { .. })));
    }

    /// Texts with all that CSV and labels treat in a way of their own.
    fn text() -> impl Strategy<Value = String> {
        let symbols = prop::sample::select(vec![
            'a', 'B', '7', ' ', ',', ';', '"', '=', '%', '2', 'C', '#', '-', '/', '.', '\n', '\r', '\t',
            '\u{e9}', '\u{a0}', '\u{3000}',
        ]);
        prop::collection::vec(symbols, 1..6).prop_map(|symbols| symbols.into_iter().collect())
    }

    fn table_of(labels: &[String]) -> Fib {
        let mut fib = Fib::default();
        for (at, label) in (0_u32..).zip(labels) {
            let hop = fib.next_hops.intern(label).unwrap();
            fib.v4.insert(format!("10.{at}.0.0/16").parse().unwrap(), hop);
            fib.v6.insert(format!("2001:db8:{at}::/48").parse().unwrap(), hop);
        }
        fib
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back_equal(
            names in prop::collection::btree_set(text(), 1..5),
            rows in prop::collection::vec(prop::collection::vec(prop::option::of(text()), 5), 1..8),
            is_record in any::<bool>(),
        ) {
            let names: Vec<String> = names.into_iter().filter(|name| is_csv_value(name)).collect();
            prop_assume!(!names.is_empty());
            let of_row = |row: &Vec<Option<String>>| {
                let cells = names.iter().zip(row).filter_map(|(name, cell)| Some((name.clone(), cell.clone()?)));
                let fields: Vec<_> = if is_record { cells.collect() } else { cells.take(1).collect() };
                let text = label_text(!is_record, &fields);
                if text.is_empty() { NO_VALUE.to_owned() } else { text }
            };
            let labels: Vec<String> = rows.iter().map(of_row).collect();
            let fib = table_of(&labels);
            let record = |label: &String| label_fields(label).filter(|fields| are_distinct(fields));
            let fields: Vec<_> = labels.iter().filter_map(record).flatten().collect();
            let written = match csv(&fib) {
                Ok(written) => written,
                Err(WriteError::Column { name }) => {
                    // A value that looks like a record.
                    prop_assert!(!is_record && !is_csv_value(&name));
                    return Ok(());
                }
                Err(_) => {
                    prop_assert!(rows.iter().flatten().flatten().any(|cell| cell.contains("\r\n")));
                    return Ok(());
                }
            };
            prop_assert_eq!(Format::recognise(written.as_bytes()), Some(Format::Csv), "{}", written);
            let again = read(&written);
            // A field alone is read as its values.
            let is_alone = labels.iter().all(|label| record(label).is_some())
                && fields.iter().all(|(name, _)| *name == fields[0].0);
            let alone = |label: &String| match record(label).as_deref() {
                Some([field]) if is_alone => label_text(true, std::slice::from_ref(field)),
                _ => label.clone(),
            };
            let expected = table_of(&labels.iter().map(alone).collect::<Vec<_>>());
            prop_assert_eq!(text_of(&again), text_of(&expected), "{}", written);
        }
    }
}
