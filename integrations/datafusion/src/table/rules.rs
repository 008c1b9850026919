//! [`RuleTable`]: packet classification over columns of the 5-tuple.

use std::fmt::Display;
use std::net::IpAddr;

use arrow::array::{Array, ArrayRef, AsArray, UInt32Array};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{UInt8Type, UInt16Type};
use wirespeed::classify::RuleVerdict;
use wirespeed::classify::image_file::RuleImageFile;
use wirespeed::content::FileTable;
use wirespeed::engine::RuleTuple;
use wirespeed::prelude::*;
use wirespeed_columns::{self as column, Invalid, Refused, addresses};

use super::Placed;
use crate::error::Error;
use crate::labels::{LabelColumn, Texts};

/// Packet rules of IPv4, of IPv6, or of both. A packet of a family without rules matches none.
#[derive(Debug)]
pub struct RuleTable {
    v4: Option<Rules<Ipv4Tuple>>,
    v6: Option<Rules<Ipv6Tuple>>,
    actions: LabelColumn,
}

#[derive(Debug)]
struct Rules<T: RuleTuple> {
    reader: RuleReader<T>,
    /// What the indexes of its actions are greater by in the column of labels.
    before: u32,
}

/// Rules of a file.
enum OfFile {
    V4(RuleReader<Ipv4Tuple>, Labels<String>),
    V6(RuleReader<Ipv6Tuple>, Labels<String>),
    Other,
}

impl OfFile {
    fn open(placed: &Placed) -> Result<Self, Error> {
        let Placed { file: path, how, .. } = placed;
        if !super::is_image(path)? {
            return Ok(match wirespeed::content::read(path, how)? {
                FileTable::Ipv4Rules(rules, labels) => OfFile::V4(rules.reader(), labels),
                FileTable::Ipv6Rules(rules, labels) => OfFile::V6(rules.reader(), labels),
                _ => OfFile::Other,
            });
        }
        super::has_own_settings(placed)?;
        Ok(match RuleImageFile::open(path)?.tuple().as_str() {
            Ipv4Tuple::NAME => OfFile::V4(RuleReader::open(path)?, Labels::open(path)?),
            Ipv6Tuple::NAME => OfFile::V6(RuleReader::open(path)?, Labels::open(path)?),
            _ => OfFile::Other,
        })
    }
}

/// The 5-tuples of a batch.
#[derive(Debug)]
pub(crate) struct Packets<'a> {
    pub(crate) src: &'a ArrayRef,
    pub(crate) dst: &'a ArrayRef,
    /// `UInt8`.
    pub(crate) proto: &'a ArrayRef,
    /// `UInt16`.
    pub(crate) sport: &'a ArrayRef,
    /// `UInt16`.
    pub(crate) dport: &'a ArrayRef,
}

/// What a function tells of the rule that a packet matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tell {
    Number,
    Action,
}

impl RuleTable {
    /// Takes rules of one family or of both, with the labels of their actions as they are now. Nobody changes
    /// the rules any more.
    pub fn new<T: Display>(
        v4: Option<Classifier<Ipv4Tuple>>,
        v6: Option<Classifier<Ipv6Tuple>>,
        actions: &Labels<T>,
    ) -> Self {
        Self {
            v4: v4.map(|v4| Rules { reader: v4.reader(), before: 0 }),
            v6: v6.map(|v6| Rules { reader: v6.reader(), before: 0 }),
            actions: LabelColumn::new(actions),
        }
    }

    /// Opens a file, or a file of each family: images, or rules.
    pub(super) fn open(places: &[Placed]) -> Result<Self, Error> {
        let (mut v4, mut v6, mut actions) = (None, None, Texts::default());
        for placed in places {
            let join = |reason| Error::Join { path: placed.file.clone(), reason };
            let mut number =
                |labels| u32::try_from(actions.push::<String>(labels)).map_err(|_| join("too many labels"));
            let is_first = match OfFile::open(placed)? {
                OfFile::V4(reader, labels) => {
                    let before = number(&labels)?;
                    v4.replace(Rules { reader, before }).is_none()
                }
                OfFile::V6(reader, labels) => {
                    let before = number(&labels)?;
                    v6.replace(Rules { reader, before }).is_none()
                }
                OfFile::Other => {
                    return Err(join("no rules of the 5-tuple of IPv4 or IPv6, as the file before it has"));
                }
            };
            if !is_first {
                return Err(join("a file before it has rules of this family already"));
            }
        }
        Ok(Self { v4, v6, actions: actions.finish() })
    }

    /// The number of the rule that each packet matches, from 1.
    pub(crate) fn numbers(&self, packets: &Packets<'_>, invalid: Invalid) -> Result<UInt32Array, Error> {
        self.matched(packets, Tell::Number, invalid)
    }

    /// The label of the action of the rule that each packet matches.
    pub(crate) fn actions(&self, packets: &Packets<'_>, invalid: Invalid) -> Result<ArrayRef, Error> {
        self.actions.of(self.matched(packets, Tell::Action, invalid)?)
    }

    fn matched(&self, packets: &Packets<'_>, tell: Tell, invalid: Invalid) -> Result<UInt32Array, Error> {
        let (src, dst) = (addresses(packets.src, invalid)?, addresses(packets.dst, invalid)?);
        let proto = packets.proto.as_primitive::<UInt8Type>();
        let sport = packets.sport.as_primitive::<UInt16Type>();
        let dport = packets.dport.as_primitive::<UInt16Type>();
        let nulls = [src.nulls.as_ref(), dst.nulls.as_ref(), proto.nulls(), sport.nulls(), dport.nulls()];
        let nulls = nulls.into_iter().fold(None, |all, nulls| NullBuffer::union(all.as_ref(), nulls));

        let mut refused = Refused::new(invalid);
        let (mut v4, mut v6) = (Batch::default(), Batch::default());
        for row in 0..proto.len() {
            if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                continue;
            }
            let (sport, dport, proto) = (sport.value(row), dport.value(row), proto.value(row));
            match (src.keys.get(row), dst.keys.get(row)) {
                (IpAddr::V4(src), IpAddr::V4(dst)) => {
                    v4.push(row, Ipv4Tuple::new(src, dst, sport, dport, proto));
                }
                (IpAddr::V6(src), IpAddr::V6(dst)) => {
                    v6.push(row, Ipv6Tuple::new(src, dst, sport, dport, proto));
                }
                (src, dst) => refused.note(row, format_args!("{src} and {dst} are of different families"))?,
            }
        }
        let mut found = vec![0; proto.len()];
        if let Some(rules) = &self.v4 {
            v4.answer(rules, tell, &mut found, &mut refused)?;
        }
        if let Some(rules) = &self.v6 {
            v6.answer(rules, tell, &mut found, &mut refused)?;
        }
        Ok(column::found(found, refused.nulls(proto.len(), nulls)))
    }
}

/// The packets of one family, and their rows.
struct Batch<T> {
    rows: Vec<usize>,
    tuples: Vec<T>,
}

impl<T> Default for Batch<T> {
    fn default() -> Self {
        Self { rows: Vec::new(), tuples: Vec::new() }
    }
}

impl<T: RuleTuple> Batch<T> {
    fn push(&mut self, row: usize, tuple: T) {
        self.rows.push(row);
        self.tuples.push(tuple);
    }

    fn answer(
        &self,
        rules: &Rules<T>,
        tell: Tell,
        found: &mut [u32],
        refused: &mut Refused,
    ) -> Result<(), Error> {
        let mut verdicts = vec![RuleVerdict::default(); self.tuples.len()];
        rules.reader.verdict_batch(&self.tuples, &mut verdicts);
        for (&row, verdict) in self.rows.iter().zip(verdicts) {
            if !verdict.is_certain() {
                refused.note(row, "a rule that was left out of the table could change the answer")?;
                continue;
            }
            found[row] = match (verdict.found(), tell) {
                (None, _) => 0,
                (Some(rule), Tell::Number) => rule.number.get(),
                (Some(RuleMatch { action: NextHop::NONE, .. }), Tell::Action) => 0,
                (Some(rule), Tell::Action) => rule.action.0 + rules.before,
            };
        }
        Ok(())
    }
}
