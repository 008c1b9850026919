//! Labels of formats whose records all have the same fields: the fields that the caller names, or all.

use super::csv::{Columns, label};
use super::error::{End, Fault, Place, ReadError, SkipReason};
use super::report::Ledger;
use super::table::Table;
use crate::next_hop::NextHop;

/// The fields of a format that make a label.
#[derive(Debug)]
pub(super) struct Labels {
    names: &'static [&'static str],
    /// The chosen ones, by their position.
    chosen: Vec<usize>,
    /// Whether one field was named, so that its value alone is the label.
    is_one: bool,
    text: String,
}

impl Labels {
    /// Finds the fields that are wanted. Refuses the name of a field that the format does not have.
    pub(super) fn new(
        names: &'static [&'static str],
        wanted: &Columns,
        ledger: &mut Ledger,
    ) -> Result<Self, End> {
        if wanted.is_of_prefixes() {
            return Err(refused(ledger, "columns of prefixes are for CSV: this file has its own prefixes"));
        }
        let position = |wanted: &String| {
            names
                .iter()
                .position(|name| name == wanted)
                .ok_or_else(|| refused(ledger, &format!("no field {wanted}; there are {}", names.join(", "))))
        };
        let chosen = match wanted.values.is_empty() {
            true => (0..names.len()).collect(),
            false => wanted.values.iter().map(position).collect::<Result<_, _>>()?,
        };
        ledger.report.names_fields = wanted.values.len() != 1;
        Ok(Self { names, chosen, is_one: wanted.values.len() == 1, text: String::new() })
    }

    /// The next hop of a record, whose values come in the order of the names. Empty values are left out.
    /// Fails with [`SkipReason::NoField`] if all chosen ones are empty.
    pub(super) fn hop(&mut self, values: &[impl AsRef<str>], table: &mut Table) -> Result<NextHop, Fault> {
        let chosen = self.chosen.iter().map(|&at| (self.names[at], values[at].as_ref()));
        label::write(&mut self.text, self.is_one, chosen);
        match self.text.is_empty() {
            true => Err(SkipReason::NoField.into()),
            false => table.hop(self.text.as_bytes()),
        }
    }
}

fn refused(ledger: &Ledger, what: &str) -> End {
    let name = ledger.report.name.clone();
    ReadError::Columns { name, place: Place::Line(1), what: what.into() }.into()
}
