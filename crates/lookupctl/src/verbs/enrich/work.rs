//! A worker: scans a block, looks its keys up in batches, and writes the records with their new columns.

use wirespeed::names::read::Former;
use wirespeed_commands::enrich::{Column, Found, Part, Shape, Versions};
use wirespeed_fib::NextHop;
use wirespeed_records::{Block, Content, Flaw, Layout, Records};

use super::keys::{self, Cells, Keys, WrongCell};
use super::pieces::Output;
use super::values::Values;
use super::write::{Answered, Texts};

/// The bytes of a block that are worked on at a time, so that all that is known of them is in the nearest
/// caches.
const PART: usize = 32 << 10;

/// What a worker made of a block.
#[derive(Default)]
pub(super) struct Done {
    /// The bytes to write. After a fault they end before it.
    pub(super) bytes: Output,
    /// The lines of the block.
    pub(super) lines: u64,
    pub(super) records: u64,
    /// The counts of each key.
    pub(super) counts: Vec<Count>,
    /// The wrong records that passed, by reason.
    pub(super) passed: Vec<(String, u64)>,
    /// The record that is refused: its line in the block from 0, and the reason.
    pub(super) fault: Option<(u64, String)>,
    /// The versions that answered.
    pub(super) versions: Option<Versions<Values>>,
}

/// The keys of a column.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Count {
    pub(super) looked_up: u64,
    /// Keys that some table has an answer for.
    pub(super) matched: u64,
    /// Keys of IPv4 and of IPv6 that no table has the family of. They are not among those looked up.
    pub(super) others: [u64; 2],
}

/// The memory of a worker, which it uses for all its blocks.
pub(super) struct Worker {
    lenient: bool,
    records: Records,
    /// The keys of each column that is looked up.
    keys: Vec<Keys>,
    /// The answers for each column, those of each table.
    answers: Vec<Found>,
    former: Former,
    wrong: Vec<WrongCell>,
    texts: Texts,
}

impl Worker {
    pub(super) fn new(lenient: bool) -> Self {
        Self {
            lenient,
            records: Records::default(),
            keys: Vec::new(),
            answers: Vec::new(),
            former: Former::default(),
            wrong: Vec::new(),
            texts: Texts::default(),
        }
    }

    /// Enriches the records of a block. `bytes` is memory for the result.
    pub(super) fn run(
        &mut self,
        block: &Block,
        layout: &Layout,
        shape: &Shape,
        versions: Versions<Values>,
        mut bytes: Output,
    ) -> Done {
        bytes.clear();
        let counts = vec![Count::default(); shape.keys.len()];
        let mut done = Done { bytes, counts, ..Done::default() };
        let mut rest = &*block.bytes;
        while !rest.is_empty() && done.fault.is_none() {
            let (part, after) = rest.split_at(layout.scan_part(rest, PART, &mut self.records));
            let len = self.parse(part, shape, &mut done);
            self.look_up(shape, &versions, &mut done);
            let Self { records, keys, answers, texts, .. } = self;
            let answered =
                Answered { block: part, records, layout, shape, versions: &versions, keys, answers };
            answered.write(len, texts, &mut done.bytes);
            done.lines += records.lines();
            rest = after;
        }
        done.versions = Some(versions);
        done
    }

    /// Takes the keys out of the cells of a part. Returns the number of records up to the one that is
    /// refused.
    fn parse(&mut self, block: &[u8], shape: &Shape, done: &mut Done) -> usize {
        let Self { records, keys, former, wrong, .. } = self;
        let cells = Cells { block, records };
        if keys.is_empty() {
            keys.extend(shape.keys.iter().map(|key| keys::new(key.kind)));
        }
        wrong.clear();
        for ((keys, of), count) in keys.iter_mut().zip(&shape.keys).zip(&mut done.counts) {
            count.looked_up += keys::parse(keys, of, cells, former, wrong) as u64;
        }
        if wrong.is_empty() && records.are_whole() {
            let len = records.records().len();
            done.records += len as u64;
            return len;
        }
        // Of each record the first wrong cell in the order of keys.
        wrong.sort_by_key(|wrong| wrong.record);
        wrong.dedup_by_key(|wrong| wrong.record);
        let records = records.records();
        let mut cells_wrong = wrong.iter().peekable();
        for (at, record) in records.iter().enumerate() {
            let of_cell =
                cells_wrong.next_if(|wrong| wrong.record == at).map(|wrong| Wrong::Cell(wrong.column));
            done.records += u64::from(record.content != Content::Blank);
            let wrong = match record.content {
                Content::Flawed(flaw) => Wrong::Record(flaw),
                Content::Blank | Content::Whole { .. } => match of_cell {
                    Some(wrong) => wrong,
                    None => continue,
                },
            };
            if !self.lenient {
                let line = done.lines + lines(&block[..record.start]);
                done.fault = Some((line, wrong.told(shape, |column| cells.cell(at, column))));
                done.records -= 1;
                // The records that follow are not written.
                return at;
            }
            let reason = wrong.reason(shape);
            match done.passed.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, count)) => *count += 1,
                None => done.passed.push((reason.into_owned(), 1)),
            }
        }
        records.len()
    }

    /// Looks the keys up in all tables.
    fn look_up(&mut self, shape: &Shape, versions: &Versions<Values>, done: &mut Done) {
        let Self { keys, answers, .. } = self;
        answers.resize_with(keys.len() * versions.len(), Found::default);
        for (key, (keys, answers)) in keys.iter().zip(answers.chunks_mut(versions.len().max(1))).enumerate() {
            let mut matched: Vec<&[NextHop]> = Vec::new();
            let mut others = keys::by_family(keys);
            for (table, (answers, version)) in answers.iter_mut().zip(&**versions).enumerate() {
                let parts = || shape.added.iter().filter(|added| (added.key, added.table) == (key, table));
                if parts().next().is_some() {
                    let prefix = parts().any(|added| added.part == Part::Prefix);
                    answers.look_up(keys, &version.lookup, prefix);
                    matched.push(&answers.indexes);
                    let has = version.lookup.families();
                    others.iter_mut().zip(has).filter(|(_, has)| *has).for_each(|(others, _)| *others = 0);
                }
            }
            let count = &mut done.counts[key];
            count.looked_up -= others.iter().sum::<u64>();
            count.matched += count_matched(&matched);
            count.others.iter_mut().zip(others).for_each(|(all, others)| *all += others);
        }
    }
}

/// The number of records that some table has an answer for.
fn count_matched(tables: &[&[NextHop]]) -> u64 {
    let is_match = |next_hop: &NextHop| *next_hop != NextHop::NONE;
    let count = match tables {
        [] => 0,
        [one] => one.iter().filter(|next_hop| is_match(next_hop)).count(),
        [first, rest @ ..] => {
            let any =
                |record: usize| is_match(&first[record]) || rest.iter().any(|table| is_match(&table[record]));
            (0..first.len()).filter(|&record| any(record)).count()
        }
    };
    count as u64
}

/// The reason why a record is refused.
enum Wrong {
    Record(Flaw),
    /// The cell of a column that is not what the column has to hold.
    Cell(usize),
}

impl Wrong {
    /// The reason with its details.
    fn told<'c>(&self, shape: &Shape, cell: impl Fn(usize) -> &'c [u8]) -> String {
        let column = |at| shape.columns().nth(at).map_or("", |column| &*column.name);
        match *self {
            Self::Record(Flaw::Taken(added)) => format!("there is a member {:?} already", shape.names[added]),
            Self::Record(Flaw::Twice(at)) => format!("member {:?} is there twice", column(at)),
            Self::Record(Flaw::NotText(at)) => {
                format!("member {:?} is not text{}", column(at), hint(shape, at, cell(at)))
            }
            Self::Record(flaw) => flaw.to_string(),
            Self::Cell(at) => {
                let cell = cell(at);
                let shown = String::from_utf8_lossy(&cell[..cell.len().min(60)]);
                format!("{} {shown:?} is {}{}", column(at), not_a(shape, at), hint(shape, at, cell))
            }
        }
    }

    /// The reason for counting.
    fn reason(&self, shape: &Shape) -> std::borrow::Cow<'static, str> {
        match *self {
            Self::Record(flaw) => flaw.reason().into(),
            Self::Cell(at) => {
                let column = shape.columns().nth(at).map_or("", |column| &*column.name);
                format!("{column} is {}", not_a(shape, at)).into()
            }
        }
    }
}

/// The option that would take a cell as an address.
fn hint(shape: &Shape, column: usize, cell: &[u8]) -> &'static str {
    let numbers = shape.keys.iter().find_map(|key| key.numbers);
    shape.columns().nth(column).map_or("", |column| column.hint(numbers, cell))
}

fn not_a(shape: &Shape, column: usize) -> &'static str {
    shape.columns().nth(column).map_or("no address", Column::refusal)
}

/// The ends of lines.
fn lines(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}
