//! The records of a block as bytes, with their new columns.

use wirespeed_commands::enrich::{Added, Found, Lookup, Part, Shape, Versions};
use wirespeed_fib::NextHop;
use wirespeed_records::{Content, Layout, Records};

use super::keys::Keys;
use super::pieces::{Output, Piece, Pieces};
use super::values::{Encoded, Values};

/// The number of records whose values are fetched together.
const TOGETHER: usize = 64;

/// Part of a block with all answers for its records.
#[derive(Clone, Copy)]
pub(super) struct Answered<'a> {
    pub(super) block: &'a [u8],
    pub(super) records: &'a Records,
    pub(super) layout: &'a Layout,
    pub(super) shape: &'a Shape,
    pub(super) versions: &'a Versions<Values>,
    pub(super) keys: &'a [Keys],
    /// The answers for each of the keys, by each of the tables.
    pub(super) answers: &'a [Found],
}

/// Memory for texts that are made for a record.
#[derive(Default)]
pub(super) struct Texts {
    text: String,
    encoded: Vec<u8>,
}

/// A column that is added.
struct Column<'a> {
    part: Part,
    /// The bytes before each value, if the values don't begin with them.
    lead: Option<Piece>,
    values: &'a Encoded,
    keys: &'a Keys,
    lookup: &'a Lookup,
    answers: &'a Found,
}

impl<'a> Answered<'a> {
    /// Writes the first `len` records.
    pub(super) fn write(self, len: usize, texts: &mut Texts, out: &mut Output) {
        let Self { block, layout, .. } = self;
        let (records, next) = self.records.records().split_at(len);
        let mut leads = Pieces::default();
        (0..self.shape.added.len()).for_each(|place| leads.push(layout.lead(place, false)));
        let columns: Vec<_> = self.columns(&leads).collect();
        // The values of some records, those of a record together. None is there for other parts of answers.
        let mut values = vec![Piece::ABSENT; TOGETHER * columns.len()];
        out.grow(block.len() + len * columns.len() * 12);
        let (mut copied, mut first) = (0, 0);
        for records in records.chunks(TOGETHER) {
            for (place, column) in columns.iter().enumerate() {
                let into = values[place..].iter_mut().step_by(columns.len());
                column.fetch(first, records.len(), into);
            }
            for (at, record) in records.iter().enumerate() {
                let Content::Whole { is_bare } = record.content else { continue };
                out.part(block, copied..record.insert);
                copied = record.insert;
                let values = &values[at * columns.len()..][..columns.len()];
                for (place, (column, value)) in columns.iter().zip(values).enumerate() {
                    match &column.lead {
                        Some(_) if is_bare && place == 0 => out.push(layout.lead(place, true)),
                        Some(lead) => _ = out.piece(lead, &leads),
                        None => {}
                    }
                    if !out.piece(value, column.values.pieces()) {
                        out.push(column.text(first + at, layout, texts));
                    }
                }
            }
            first += records.len();
        }
        let until = next.first().map_or(block.len(), |record| record.start);
        out.push(&block[copied..until]);
    }

    fn columns(self, leads: &Pieces) -> impl Iterator<Item = Column<'a>> {
        self.shape.added.iter().enumerate().map(move |(place, &Added { key, table, part })| {
            let version = &self.versions[table];
            Column {
                part,
                lead: self.layout.separator().is_none().then(|| leads.get(place)),
                values: version.values.encoded(self.layout),
                keys: &self.keys[key],
                lookup: &version.lookup,
                answers: &self.answers[key * self.versions.len() + table],
            }
        })
    }
}

impl Column<'_> {
    /// Fetches the values of records.
    fn fetch<'p>(&self, first: usize, len: usize, into: impl Iterator<Item = &'p mut Piece>) {
        let Part::Field(field) = self.part else { return };
        let indexes = &self.answers.indexes[first..][..len];
        for (&NextHop(index), into) in indexes.iter().zip(into) {
            *into = self.values.get(index, field);
        }
    }

    /// What a record gets that is none of the values.
    #[cold]
    fn text<'t>(&self, record: usize, layout: &Layout, texts: &'t mut Texts) -> &'t [u8] {
        let Texts { text, encoded } = texts;
        text.clear();
        encoded.clear();
        encoded.extend_from_slice(layout.separator().unwrap_or_default());
        let is_there = self.answers.write(self.part, record, self.keys, self.lookup, text);
        layout.encoder().write(is_there.then_some(&**text), encoded);
        encoded
    }
}
