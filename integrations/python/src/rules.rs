//! [`Classifier`]: a live set of rules over 5-tuples, and packet classification by it.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};
use wirespeed::classify::ClassifierBuilder;
use wirespeed::classify::image_file::RuleImageFile;
use wirespeed::classify::read::{RuleFormat, UnknownFormat};
use wirespeed::engine::RuleTuple;
use wirespeed::prelude::*;

use crate::addresses::Addresses;
use crate::answers::{self, Coded};
use crate::column::{Column, Kind, Read, Wrong};
use crate::failure::{Failure, detached};
use crate::given::{self, OfFile, Origin, keywords, with};
use crate::live::{Held, Live};
use crate::lookup::{BLOCK, Part, look_up, threads};
use crate::numbers::field;
use crate::texts::{Texts, Value};

/// Set of rules, live. The matching rule of the highest priority wins, among equals the one that was there
/// first.
#[pyclass(frozen, module = "wirespeed")]
pub(crate) struct Classifier {
    reader: Reader,
    pub(crate) live: Live<Rules>,
}

pub(crate) enum Rules {
    Ipv4(wirespeed::Classifier<Ipv4Tuple>),
    Ipv6(wirespeed::Classifier<Ipv6Tuple>),
}

enum Reader {
    Ipv4(RuleReader<Ipv4Tuple>),
    Ipv6(RuleReader<Ipv6Tuple>),
}

/// Calls generic code for the rules or the reader of either family.
macro_rules! each {
    ($kind:ident, $any:expr, $one:ident => $code:expr) => {
        match $any {
            $kind::Ipv4($one) => $code,
            $kind::Ipv6($one) => $code,
        }
    };
}

/// Settings of a set that is built.
#[derive(Default)]
struct Settings {
    format: Option<RuleFormat>,
    assume: Vec<String>,
    chain: Option<String>,
    rule_table: Option<String>,
    engine: Option<String>,
    memory_cap: Option<u64>,
}

/// The header fields of a packet.
#[derive(Clone, Copy)]
struct Packet {
    src: IpAddr,
    dst: IpAddr,
    proto: u8,
    sport: u16,
    dport: u16,
}

#[pymethods]
impl Classifier {
    #[new]
    #[pyo3(signature = (rules=None, *, family=4, engine=None, memory_cap=None))]
    fn new(
        py: Python<'_>,
        rules: Option<&Bound<'_, PyAny>>,
        family: u8,
        engine: Option<String>,
        memory_cap: Option<u64>,
    ) -> Result<Self, Failure> {
        let rules = match rules {
            None => Vec::new(),
            Some(rules) => rules
                .try_iter()?
                .enumerate()
                .map(|(at, rule)| given::text(&rule?, "rule").map_err(|failure| failure.at(at)))
                .collect::<Result<Vec<_>, Failure>>()?,
        };
        let settings = Settings { engine, memory_cap, ..Settings::default() };
        detached(py, || {
            let rules = match checked_family(family)? {
                6 => Rules::Ipv6(of_rules(&rules, settings)?),
                _ => Rules::Ipv4(of_rules(&rules, settings)?),
            };
            Ok(Self::made(rules, Labels::new(), Origin::Changed))
        })
    }

    /// Opens an image that `save` or `lookupctl classify build` wrote.
    #[classmethod]
    fn open(_class: &Bound<'_, PyType>, py: Python<'_>, path: PathBuf) -> Result<Self, Failure> {
        detached(py, || {
            let file = OfFile::now(&path)?;
            let tuple = RuleImageFile::open(&path)?.tuple();
            let mut rules = match tuple.as_str() {
                name if name == Ipv4Tuple::NAME => Rules::Ipv4(wirespeed::Classifier::open(&path)?),
                name if name == Ipv6Tuple::NAME => Rules::Ipv6(wirespeed::Classifier::open(&path)?),
                other => {
                    let path = path.display();
                    return Err(Failure::File(format!(
                        "{path}: rules of tuple {other}, which Python has not"
                    )));
                }
            };
            each!(Rules, &rules, rules => if !rules.doubts().is_empty() {
                let path = path.display();
                return Err(Failure::File(format!(
                    "{path}: rules were left out of the image, and could change its answers"
                )));
            });
            let labels = Labels::open(&path)?;
            each!(Rules, &mut rules, rules => rules.attach_labels(&labels));
            Ok(Self::made(rules, labels, Origin::Image(file)))
        })
    }

    /// Builds a set of a file of rules in any format that `lookupctl classify` reads. Actions are labels.
    #[classmethod]
    #[pyo3(signature = (path, format=None, *, family=4, assume=None, chain=None, rule_table=None, engine=None,
        memory_cap=None))]
    #[allow(clippy::too_many_arguments)] // keywords of Python
    fn from_file(
        _class: &Bound<'_, PyType>,
        py: Python<'_>,
        path: PathBuf,
        format: Option<&str>,
        family: u8,
        assume: Option<Vec<String>>,
        chain: Option<String>,
        rule_table: Option<String>,
        engine: Option<String>,
        memory_cap: Option<u64>,
    ) -> Result<Self, Failure> {
        let again = keywords!(py, format, family, assume, chain, rule_table, engine, memory_cap);
        let format = format.map(str::parse).transpose();
        let format = format.map_err(|error: UnknownFormat| Failure::input(error.to_string()))?;
        let assume = assume.unwrap_or_default();
        let settings = Settings { format, assume, chain, rule_table, engine, memory_cap };
        detached(py, || {
            let (file, labels) = (OfFile::now(&path)?, Labels::new());
            let rules = match checked_family(family)? {
                6 => Rules::Ipv6(settings.builder().file(&path, &labels).build()?),
                _ => Rules::Ipv4(settings.builder().file(&path, &labels).build()?),
            };
            Ok(Self::made(rules, labels, Origin::File(file, again)))
        })
    }

    /// Classifies packets: the number of the best rule for each.
    #[pyo3(signature = (src, dst, proto, sport, dport, *, threads=1, errors="raise"))]
    #[allow(clippy::too_many_arguments)] // the fields of a packet
    fn lookup<'py>(
        &self,
        src: &Bound<'py, PyAny>,
        dst: &Bound<'py, PyAny>,
        proto: &Bound<'py, PyAny>,
        sport: &Bound<'py, PyAny>,
        dport: &Bound<'py, PyAny>,
        threads: usize,
        errors: &str,
    ) -> Result<Bound<'py, PyAny>, Failure> {
        let (of_threads, wrong) = (self::threads(threads)?, Wrong::of(errors)?);
        let packets = Packets::of([src, dst], [proto, sport, dport], wrong)?;
        let numbers = detached(src.py(), || Ok(self.classified(&packets, of_threads)?.0))?;
        Ok(answers::numbers(src.py(), packets.kind, numbers)?)
    }

    /// Classifies packets: the action of the best rule for each, as a number.
    #[pyo3(signature = (src, dst, proto, sport, dport, *, threads=1, errors="raise"))]
    #[allow(clippy::too_many_arguments)] // the fields of a packet
    fn lookup_actions<'py>(
        &self,
        src: &Bound<'py, PyAny>,
        dst: &Bound<'py, PyAny>,
        proto: &Bound<'py, PyAny>,
        sport: &Bound<'py, PyAny>,
        dport: &Bound<'py, PyAny>,
        threads: usize,
        errors: &str,
    ) -> Result<Bound<'py, PyAny>, Failure> {
        let (of_threads, wrong) = (self::threads(threads)?, Wrong::of(errors)?);
        let packets = Packets::of([src, dst], [proto, sport, dport], wrong)?;
        let actions = detached(src.py(), || Ok(self.classified(&packets, of_threads)?.1))?;
        Ok(answers::numbers(src.py(), packets.kind, actions)?)
    }

    /// Classifies packets: the action of the best rule for each, as a label.
    #[pyo3(signature = (src, dst, proto, sport, dport, *, threads=1, errors="raise"))]
    #[allow(clippy::too_many_arguments)] // the fields of a packet
    fn lookup_labels<'py>(
        &self,
        src: &Bound<'py, PyAny>,
        dst: &Bound<'py, PyAny>,
        proto: &Bound<'py, PyAny>,
        sport: &Bound<'py, PyAny>,
        dport: &Bound<'py, PyAny>,
        threads: usize,
        errors: &str,
    ) -> Result<Bound<'py, PyAny>, Failure> {
        let (of_threads, wrong) = (self::threads(threads)?, Wrong::of(errors)?);
        let packets = Packets::of([src, dst], [proto, sport, dport], wrong)?;
        let coded = detached(src.py(), || {
            // Entered before the lookup: then what it finds resolves.
            let known = self.live.labels().enter();
            Coded::labels(self.classified(&packets, of_threads)?.1, &known, None)
        })?;
        Ok(coded.answer(src.py(), packets.kind)?)
    }

    /// Inserts a rule after all others, and returns its number. A label may be its action.
    #[pyo3(signature = (rule, label=None))]
    fn insert(&self, rule: &Bound<'_, PyAny>, label: Option<String>) -> Result<u32, Failure> {
        let (py, rule) = (rule.py(), given::text(rule, "rule")?);
        let mut number = 0;
        self.live.changed(py, |rules, texts| {
            number = each!(Rules, rules, rules => insert(rules, texts, &rule, label)?);
            Ok(1)
        })?;
        Ok(number)
    }

    /// Removes a rule by its number. Says whether it was there.
    fn remove(&self, py: Python<'_>, number: u32) -> Result<bool, Failure> {
        let changes = self.live.changed(py, |rules, _| {
            Ok(each!(Rules, rules, rules => rules.apply(&[RuleUpdate::Remove(number)])?.changes))
        })?;
        Ok(changes > 0)
    }

    /// Makes many changes, in order, all or none: pairs of a number and a rule. Without a number the rule is
    /// new, without a rule the number is removed, with both the rule takes the number's place. Returns the
    /// number of changes that made a difference.
    fn apply(&self, changes: &Bound<'_, PyAny>) -> Result<usize, Failure> {
        let number = |number: &Bound<'_, PyAny>| Ok(number.extract::<Option<u32>>()?);
        let rule = |rule: &Bound<'_, PyAny>| {
            if rule.is_none() { Ok(None) } else { given::text(rule, "rule").map(Some) }
        };
        let wanted = given::pairs(changes, number, rule)?;
        self.live
            .changed(changes.py(), |rules, texts| each!(Rules, rules, rules => apply(rules, texts, &wanted)))
    }

    /// The rules as text, by number.
    #[getter]
    fn rules<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyDict>, Failure> {
        let all = self.live.in_state(py, |state| {
            Ok(each!(Rules, &state.table, rules => {
                let all = rules.rules().sorted().into_iter();
                all.map(|(number, rule)| (number.get(), rule.to_string())).collect::<Vec<_>>()
            }))
        })?;
        let by_number = PyDict::new(py);
        all.into_iter().try_for_each(|(number, rule)| by_number.set_item(number, rule))?;
        Ok(by_number)
    }

    /// The family of the packets: 4 or 6.
    #[getter]
    fn family(&self) -> u8 {
        match self.reader {
            Reader::Ipv4(_) => 4,
            Reader::Ipv6(_) => 6,
        }
    }

    /// The engine.
    #[getter]
    fn engine(&self) -> &'static str {
        each!(Reader, &self.reader, reader => reader.engine().as_str())
    }

    fn __repr__(&self, py: Python<'_>) -> Result<String, Failure> {
        let len = self.live.in_state(py, |state| Ok(state.table.len()))?;
        Ok(format!("<wirespeed.Classifier of {len} rules for IPv{}>", self.family()))
    }
}

impl Classifier {
    fn made(rules: Rules, labels: Labels<String>, origin: Origin) -> Self {
        let reader = match &rules {
            Rules::Ipv4(rules) => Reader::Ipv4(rules.reader()),
            Rules::Ipv6(rules) => Reader::Ipv6(rules.reader()),
        };
        Self { reader, live: Live::of(rules, labels, origin, Vec::new()) }
    }

    /// The numbers of rules and of their actions.
    fn classified(&self, packets: &Packets, threads: usize) -> Result<(Vec<u32>, Vec<u32>), Failure> {
        match &self.reader {
            Reader::Ipv4(reader) => {
                let columns = packets.tuples("IPv4", |packet| match (packet.src, packet.dst) {
                    (IpAddr::V4(src), IpAddr::V4(dst)) => {
                        Some(Ipv4Tuple::new(src, dst, packet.sport, packet.dport, packet.proto))
                    }
                    _ => None,
                })?;
                look_up(&columns, threads, true, || worker(reader))
            }
            Reader::Ipv6(reader) => {
                let columns = packets.tuples("IPv6", |packet| match (packet.src, packet.dst) {
                    (IpAddr::V6(src), IpAddr::V6(dst)) => {
                        Some(Ipv6Tuple::new(src, dst, packet.sport, packet.dport, packet.proto))
                    }
                    _ => None,
                })?;
                look_up(&columns, threads, true, || worker(reader))
            }
        }
    }
}

impl Held for Rules {
    type Live = Self;

    fn live(&mut self) -> Result<&mut Self, Failure> {
        Ok(self)
    }

    fn load(live: &mut Self, path: &Path, labels: &Labels<String>) -> Result<(), wirespeed::Error> {
        each!(Self, live, rules => rules.load(path, labels)).map(drop)
    }

    fn save(&self, path: &Path, labels: &Labels<String>) -> Result<(), wirespeed::Error> {
        each!(Self, self, rules => rules.save_labelled(path, labels))
    }

    fn len(&self) -> usize {
        each!(Self, self, rules => rules.len())
    }

    fn memory_usage(&self) -> u64 {
        each!(Self, self, rules => rules.memory_usage())
    }
}

/// What classifies parts of a batch on one thread, in one state of the rules.
fn worker<T: RuleTuple + Default>(
    reader: &RuleReader<T>,
) -> impl FnMut(Part<'_, T>) -> Result<(), (usize, String)> {
    let (state, mut found) = (reader.enter(), [None; BLOCK]);
    move |part| {
        part.each_block(T::default(), |tuples, numbers, actions| {
            let found = &mut found[..tuples.len()];
            state.match_batch(tuples, found);
            for ((found, number), action) in found.iter().zip(numbers).zip(actions) {
                *number = found.map_or(0, |found| found.number.get());
                *action = found.map_or(0, |found| found.action.0);
            }
        })
    }
}

/// Packets of a call: a column for each field.
struct Packets {
    kind: Kind,
    wrong: Wrong,
    packets: Vec<Option<Packet>>,
}

impl Packets {
    fn of(
        [src, dst]: [&Bound<'_, PyAny>; 2],
        [proto, sport, dport]: [&Bound<'_, PyAny>; 3],
        wrong: Wrong,
    ) -> Result<Self, Failure> {
        let (kind, src) = addresses(src, wrong).map_err(|failure| failure.of("src"))?;
        let (_, dst) = addresses(dst, wrong).map_err(|failure| failure.of("dst"))?;
        let proto = field(proto, u8::MAX.into(), wrong).map_err(|failure| failure.of("proto"))?;
        let sport = field(sport, u16::MAX.into(), wrong).map_err(|failure| failure.of("sport"))?;
        let dport = field(dport, u16::MAX.into(), wrong).map_err(|failure| failure.of("dport"))?;
        let lens = [src.len(), dst.len(), proto.len(), sport.len(), dport.len()];
        if lens.iter().any(|&len| len != lens[0]) {
            return Err(Failure::input(format!("src, dst, proto, sport and dport have {lens:?} elements")));
        }
        let packet = |at: usize| {
            let narrow = |number: i64| u16::try_from(number).ok();
            Some(Packet {
                src: src[at]?.to_canonical(),
                dst: dst[at]?.to_canonical(),
                proto: u8::try_from(proto[at]?).ok()?,
                sport: narrow(sport[at]?)?,
                dport: narrow(dport[at]?)?,
            })
        };
        Ok(Self { kind, wrong, packets: (0..lens[0]).map(packet).collect() })
    }

    /// The tuples of a family. Fails at a packet of the other one.
    fn tuples<T: Clone + Send + Sync + 'static>(
        &self,
        family: &str,
        tuple: impl Fn(&Packet) -> Option<T>,
    ) -> Result<Vec<Box<dyn Column<T>>>, Failure> {
        let mut tuples = Vec::with_capacity(self.packets.len());
        for (at, packet) in self.packets.iter().enumerate() {
            tuples.push(match packet {
                None => None,
                Some(packet) => {
                    let of_other = || format!("{} and {} are no {family} addresses", packet.src, packet.dst);
                    let tuple = tuple(packet).map(Some).ok_or_else(of_other);
                    self.wrong.or_null(tuple).map_err(|why| Failure::Input(why).at(at))?
                }
            });
        }
        Ok(vec![Box::new(Read(tuples))])
    }
}

fn addresses(object: &Bound<'_, PyAny>, wrong: Wrong) -> Result<(Kind, Vec<Option<IpAddr>>), Failure> {
    let addresses = Addresses::of(object, wrong)?;
    let columns = addresses.columns(wrong)?;
    let mut all = Vec::new();
    for column in &columns {
        let from = all.len();
        all.resize(from + column.len(), None);
        let read = column.read(0, &mut all[from..]);
        read.map_err(|(at, why)| Failure::Input(why).at(from + at))?;
    }
    Ok((addresses.kind(), all))
}

impl Settings {
    fn builder<T: RuleTuple>(self) -> ClassifierBuilder<T> {
        let builder =
            self.assume.into_iter().fold(wirespeed::Classifier::builder(), ClassifierBuilder::assume);
        let builder = with(builder, self.format, ClassifierBuilder::format);
        let builder = with(builder, self.chain, ClassifierBuilder::chain);
        let builder = with(builder, self.rule_table, ClassifierBuilder::rule_table);
        let builder = with(builder, self.engine, ClassifierBuilder::engine);
        with(builder, self.memory_cap, ClassifierBuilder::memory_cap)
    }
}

fn checked_family(family: u8) -> Result<u8, Failure> {
    match family {
        4 | 6 => Ok(family),
        other => Err(Failure::input(format!("family {other} is not 4 or 6"))),
    }
}

fn of_rules<T: RuleTuple>(rules: &[String], settings: Settings) -> Result<wirespeed::Classifier<T>, Failure> {
    let rules = rules.iter().enumerate().map(|(at, rule)| parse(rule).map_err(|failure| failure.at(at)));
    let rules = rules.collect::<Result<Vec<_>, _>>()?;
    Ok(settings.builder().rules(rules).build()?)
}

fn parse<T: RuleTuple>(rule: &str) -> Result<Rule<T>, Failure> {
    rule.parse().map_err(|why| Failure::input(format!("{rule:?}: {why}")))
}

/// The action of a rule as a value, if it has one.
fn action<T: RuleTuple>(rule: &Rule<T>) -> Option<Value> {
    (rule.action() != 0).then(|| Value::Number(rule.action()))
}

fn insert<T: RuleTuple>(
    rules: &mut wirespeed::Classifier<T>,
    texts: &mut Texts,
    rule: &str,
    label: Option<String>,
) -> Result<u32, Failure> {
    let rule = parse(rule)?;
    let value = match (label, action(&rule)) {
        (Some(_), Some(_)) => return Err(Failure::input("the rule has an action, and a label")),
        (Some(label), None) => Some(Value::Label(label)),
        (None, action) => action,
    };
    texts.with(value.into_iter().collect(), rules.is_empty(), |actions, labels| {
        if let Some(labels) = labels {
            rules.attach_labels(labels);
        }
        let action = actions.first().map_or(0, |action| action.0);
        Ok(rules.insert(rule.with_action(action))?.get())
    })
}

fn apply<T: RuleTuple>(
    rules: &mut wirespeed::Classifier<T>,
    texts: &mut Texts,
    changes: &[(Option<u32>, Option<String>)],
) -> Result<usize, Failure> {
    let update = |(at, change): (usize, &(Option<u32>, Option<String>))| match change {
        (None, None) => Err(Failure::input("a change without number and rule").at(at)),
        (Some(number), None) => Ok(RuleUpdate::Remove(*number)),
        (None, Some(rule)) => parse(rule).map(RuleUpdate::Insert).map_err(|failure| failure.at(at)),
        (Some(number), Some(rule)) => {
            parse(rule).map(|rule| RuleUpdate::Set(*number, rule)).map_err(|failure| failure.at(at))
        }
    };
    let updates = changes.iter().enumerate().map(update).collect::<Result<Vec<_>, _>>()?;
    let values = updates.iter().filter_map(|update| match update {
        RuleUpdate::Insert(rule) | RuleUpdate::Set(_, rule) => action(rule),
        RuleUpdate::Remove(_) => None,
    });
    texts.with(values.collect(), rules.is_empty(), |_, _| Ok(rules.apply(&updates)?.changes))
}
