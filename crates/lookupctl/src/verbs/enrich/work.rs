//! A worker: scans a block, looks its keys up in batches, and writes the records with their new columns.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use wirespeed::names::lists::{Answer, Verdict};
use wirespeed::names::read::Former;
use wirespeed::names::{Match, NameBatch};
use wirespeed::prelude::IpNet;
use wirespeed_fib::NextHop;
use wirespeed_records::{Block, Content, Flaw, Layout, Records, Role};

use super::cell::{address, domain, host, is_unset, name};
use super::columns::{Added, Key, Part, Shape};
use super::flow;
use super::table::{Kind, Lookup, Version};
use crate::verbs::classify::judge::{Flow, Judged};

/// The tables of a block, in the order of the command line.
pub(super) type Versions = Arc<Vec<Arc<Version>>>;

/// What a worker made of a block.
#[derive(Default)]
pub(super) struct Done {
    /// The bytes to write. After a fault they end before it.
    pub(super) bytes: Vec<u8>,
    /// The lines of the block.
    pub(super) lines: u64,
    pub(super) records: u64,
    /// The keys that were looked up, and those that matched in some table.
    pub(super) looked_up: Vec<[u64; 2]>,
    /// The wrong records that passed, by reason.
    pub(super) passed: Vec<(String, u64)>,
    /// The record that is refused: its line in the block from 0, and the reason.
    pub(super) fault: Option<(u64, String)>,
    /// The versions that answered.
    pub(super) versions: Option<Versions>,
}

/// The memory of a worker, which it uses for all its blocks.
pub(super) struct Worker {
    lenient: bool,
    records: Records,
    /// The cells of each column that is looked up.
    keys: Vec<Cells>,
    answers: Vec<Answers>,
    former: Former,
    text: String,
}

/// The keys of a column, one for each record.
#[derive(Default)]
struct Cells {
    /// The addresses; of a record that has none, any.
    addresses: Vec<IpAddr>,
    /// The names of those records that have one.
    names: NameBatch,
    /// The flows of those records that have one.
    flows: Vec<Flow>,
    /// Whether a record has a key. Of names and flows, also its place among them.
    has: Vec<Option<u32>>,
}

/// The answers of a table for a column.
#[derive(Default)]
struct Answers {
    next_hops: Vec<NextHop>,
    lengths: Vec<u8>,
    matches: Vec<Match>,
    listed: Vec<Option<Answer>>,
    judged: Vec<Judged>,
}

impl Answers {
    /// The index of the answer for a key. 0 if nothing matches; of a list, also for an exception.
    #[inline]
    fn index(&self, kind: Kind, record: usize, key: u32) -> u32 {
        match kind {
            Kind::Addresses => self.next_hops[record].0,
            Kind::Names => self.matches[key as usize].result,
            Kind::Domains => match self.listed[key as usize] {
                Some(Answer { verdict: Verdict::Exception, .. }) | None => 0,
                Some(answer) => answer.verdict.result(),
            },
            Kind::Rules => self.judged[key as usize].number,
        }
    }
}

impl Worker {
    pub(super) fn new(lenient: bool) -> Self {
        Self {
            lenient,
            records: Records::default(),
            keys: Vec::new(),
            answers: Vec::new(),
            former: Former::default(),
            text: String::new(),
        }
    }

    /// Enriches the records of a block.
    pub(super) fn run(&mut self, block: &Block, layout: &Layout, shape: &Shape, versions: Versions) -> Done {
        let bytes = &*block.bytes;
        let mut done = Done { lines: lines(bytes), ..Done::default() };
        layout.scan(bytes, &mut self.records);
        let len = self.parse(bytes, shape, &mut done);
        self.look_up(shape, &versions);
        self.write(bytes, layout, shape, &versions, len, &mut done);
        done.versions = Some(versions);
        done
    }

    /// Takes the keys out of the cells. Returns the number of records up to the one that is refused.
    fn parse(&mut self, block: &[u8], shape: &Shape, done: &mut Done) -> usize {
        let Self { records, keys, former, lenient, .. } = self;
        keys.resize_with(shape.keys.len(), Cells::default);
        for cells in &mut *keys {
            cells.addresses.clear();
            cells.names.clear();
            cells.flows.clear();
            cells.has.clear();
        }
        done.looked_up = vec![[0; 2]; shape.keys.len()];
        for (at, record) in records.records().iter().enumerate() {
            let mut wrong = match record.content {
                Content::Flawed(flaw) => Some(Wrong::Record(flaw)),
                Content::Blank | Content::Whole { .. } => None,
            };
            done.records += u64::from(record.content != Content::Blank);
            for (key, (cells, of)) in keys.iter_mut().zip(&shape.keys).enumerate() {
                let cell = |column: usize| records.cell(block, at, of.first + column).trim_ascii();
                let parsed = match of.kind {
                    // The cells of a wrong record are empty.
                    Kind::Rules => cells.parse_flow(of, cell),
                    _ if is_unset(cell(0)) => Ok(None),
                    kind => cells.parse(kind, cell(0), former).map_err(|()| of.first),
                };
                // An address for each record, so that answers are at the records' places.
                if of.kind == Kind::Addresses && !matches!(parsed, Ok(Some(_))) {
                    cells.addresses.push(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
                }
                done.looked_up[key][0] += u64::from(matches!(parsed, Ok(Some(_))));
                cells.has.push(parsed.unwrap_or_else(|column| {
                    wrong = wrong.take().or(Some(Wrong::Cell(column)));
                    None
                }));
            }
            let Some(wrong) = wrong else { continue };
            if !*lenient {
                let line = lines(&block[..record.start]);
                done.fault = Some((line, wrong.told(shape, |column| records.cell(block, at, column))));
                done.records -= 1;
                // The keys of this record are dropped with those that follow.
                return at;
            }
            let reason = wrong.reason(shape);
            match done.passed.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, count)) => *count += 1,
                None => done.passed.push((reason.into_owned(), 1)),
            }
        }
        records.records().len()
    }

    /// Looks the keys up in all tables.
    fn look_up(&mut self, shape: &Shape, versions: &Versions) {
        self.answers.resize_with(shape.keys.len() * versions.len(), Answers::default);
        let mut asked = vec![None; self.answers.len()];
        for &Added { key, table, part } in &shape.added {
            let prefix = asked[key * versions.len() + table].get_or_insert(false);
            *prefix |= part == Part::Prefix;
        }
        for (at, prefix) in asked.into_iter().enumerate() {
            let Some(prefix) = prefix else { continue };
            let (cells, version) = (&self.keys[at / versions.len()], &versions[at % versions.len()]);
            let answers = &mut self.answers[at];
            match &version.lookup {
                Lookup::Addresses(reader) => {
                    let keys = &cells.addresses;
                    answers.next_hops.resize(keys.len(), NextHop::NONE);
                    answers.lengths.resize(keys.len(), 0);
                    if prefix {
                        let found =
                            reader.lookup_prefixes(keys, &mut answers.next_hops, &mut answers.lengths);
                        found.expect("the tables are built for lookups of prefixes if these are asked for");
                    } else {
                        reader.lookup_batch(keys, &mut answers.next_hops);
                    }
                }
                Lookup::Names(reader) => {
                    answers.matches.resize(cells.names.len(), Match::NONE);
                    reader.match_batch(&cells.names, &mut answers.matches);
                }
                Lookup::Domains(list) => {
                    answers.listed.resize(cells.names.len(), None);
                    list.lookup_batch(&cells.names, &mut answers.listed);
                }
                Lookup::Rules(rules) => rules.judge(&cells.flows, &mut answers.judged),
            }
        }
    }

    /// Writes the first `len` records.
    fn write(
        &mut self,
        block: &[u8],
        layout: &Layout,
        shape: &Shape,
        versions: &Versions,
        len: usize,
        done: &mut Done,
    ) {
        let Self { records, keys, answers, text, .. } = self;
        let values: Vec<_> = versions.iter().map(|version| version.encoded(layout.encoder())).collect();
        let mut none = Vec::new();
        layout.encoder().write(None, &mut none);
        let out = &mut done.bytes;
        out.reserve(block.len() + len * shape.added.len() * 12);
        let mut copied = 0;
        for (at, record) in records.records()[..len].iter().enumerate() {
            let Content::Whole { is_bare } = record.content else { continue };
            out.extend_from_slice(&block[copied..record.insert]);
            copied = record.insert;
            let mut matched = None;
            for (place, &Added { key, table, part }) in shape.added.iter().enumerate() {
                out.extend_from_slice(layout.lead(place, is_bare && place == 0));
                let (cells, answers) = (&keys[key], &answers[key * versions.len() + table]);
                let kind = shape.keys[key].kind;
                let index = cells.has[at].map_or(0, |of_key| answers.index(kind, at, of_key));
                if index != 0 && matched != Some(key) {
                    done.looked_up[key][1] += 1;
                    matched = Some(key);
                }
                if let Part::Field(field) = part
                    && index != 0
                    && let Some(value) = values[table].get(index, field)
                {
                    out.extend_from_slice(value);
                    continue;
                }
                text.clear();
                let is_there = match part {
                    Part::Because => cells.because(at, answers, text),
                    Part::Suffix | Part::Registrable => cells.suffix(part, at, &versions[table].lookup, text),
                    _ if index == 0 => false,
                    Part::Prefix => {
                        cells.prefix(kind, at, answers, text);
                        true
                    }
                    // An index without a text is shown as a number.
                    Part::Field(_) | Part::Rule => write!(text, "{index}").is_ok(),
                };
                match is_there {
                    true => layout.encoder().write(Some(text), out),
                    false => out.extend_from_slice(&none),
                }
            }
        }
        let until = records.records().get(len).map_or(block.len(), |record| record.start);
        out.extend_from_slice(&block[copied..until]);
    }
}

impl Cells {
    /// Adds a key. Returns its place. `None` if a table of this kind has no such keys.
    fn parse(&mut self, kind: Kind, cell: &[u8], former: &mut Former) -> Result<Option<u32>, ()> {
        let place = u32::try_from(self.names.len()).map_err(drop)?;
        match kind {
            Kind::Addresses => {
                self.addresses.push(address(cell).ok_or(())?);
                return Ok(Some(0));
            }
            Kind::Domains => {
                let host = host(cell);
                if address(host).is_some() {
                    return Ok(None);
                }
                self.names.push(name(host, former).ok_or(())?).map_err(drop)?;
            }
            Kind::Names | Kind::Rules => {
                self.names.push(name(cell, former).ok_or(())?).map_err(drop)?;
            }
        }
        Ok(Some(place))
    }

    /// Adds the flow of a record, if it has one. Returns its place, or the column with a wrong cell.
    fn parse_flow<'c>(&mut self, key: &Key, cell: impl Fn(usize) -> &'c [u8]) -> Result<Option<u32>, usize> {
        let Some(flow) = flow::parse(key, cell)? else { return Ok(None) };
        let place = u32::try_from(self.flows.len()).map_err(|_| key.first)?;
        self.flows.push(flow);
        Ok(Some(place))
    }

    /// Writes the reasons why the answer for a record's flow is uncertain, if it is.
    fn because(&self, record: usize, answers: &Answers, into: &mut String) -> bool {
        let because = self.has[record].and_then(|place| answers.judged[place as usize].because.as_deref());
        because.inspect(|because| into.push_str(because)).is_some()
    }

    /// Writes the public suffix or the registrable domain of a record's domain, if it has one.
    fn suffix(&self, part: Part, record: usize, of: &Lookup, into: &mut String) -> bool {
        let (Some(place), Lookup::Domains(list)) = (self.has[record], of) else { return false };
        let found = list.suffix(self.names.names().name(place as usize));
        let name = found.and_then(|found| match part {
            Part::Suffix => Some(found.suffix),
            _ => found.registrable,
        });
        name.inspect(|name| domain(name, into)).is_some()
    }

    /// Writes the prefix that matched a record's key.
    fn prefix(&self, kind: Kind, record: usize, answers: &Answers, into: &mut String) {
        // Writing to a string does not fail.
        let _ = match (kind, self.has[record]) {
            (Kind::Addresses, _) => {
                let address = self.addresses[record].to_canonical();
                let net = IpNet::new(address, answers.lengths[record]).map(|net| net.trunc());
                net.map_or(Ok(()), |net| write!(into, "{net}"))
            }
            (Kind::Names, Some(place)) => {
                let name = self.names.names().name(place as usize);
                answers.matches[place as usize].prefix(name).map_or(Ok(()), |prefix| write!(into, "{prefix}"))
            }
            (Kind::Domains, Some(place)) => {
                let name = self.names.names().name(place as usize);
                let entry = answers.listed[place as usize].map(|answer| answer.entry(name));
                entry.map_or(Ok(()), |entry| write!(into, "{entry}"))
            }
            (Kind::Names | Kind::Domains, None) | (Kind::Rules, _) => Ok(()),
        };
    }
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
        let column = |at| shape.column(at).map_or("", |column| &*column.name);
        match *self {
            Self::Record(Flaw::Taken(added)) => format!("there is a member {:?} already", shape.names[added]),
            Self::Record(Flaw::Twice(at)) => format!("member {:?} is there twice", column(at)),
            Self::Record(Flaw::NotText(at)) => format!("member {:?} is not text", column(at)),
            Self::Record(flaw) => flaw.to_string(),
            Self::Cell(at) => {
                let cell = cell(at);
                let shown = String::from_utf8_lossy(&cell[..cell.len().min(60)]);
                format!("{} {shown:?} is {}", column(at), not_a(shape, at))
            }
        }
    }

    /// The reason for counting.
    fn reason(&self, shape: &Shape) -> std::borrow::Cow<'static, str> {
        match *self {
            Self::Record(flaw) => flaw.reason().into(),
            Self::Cell(at) => {
                let column = shape.column(at).map_or("", |column| &*column.name);
                format!("{column} is {}", not_a(shape, at)).into()
            }
        }
    }
}

fn not_a(shape: &Shape, column: usize) -> &'static str {
    match shape.column(column).map(|column| column.role) {
        Some(Role::Name) => "no name",
        Some(Role::Protocol) => "no protocol",
        Some(Role::SourcePort | Role::DestinationPort) => "no port",
        Some(Role::IcmpType | Role::IcmpCode) => "no number of a byte",
        _ => "no address",
    }
}

/// The ends of lines.
fn lines(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}
