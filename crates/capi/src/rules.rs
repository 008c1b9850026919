//! [`ws_rules`] and [`ws_rule_reader`]: a live set of rules over 5-tuples, and packet classification by it.
#![allow(unsafe_code)]

use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::Path;

use wirespeed::classify::{ClassifierBuilder, TupleName};
use wirespeed::content::{Content, How};
use wirespeed::engine::RuleTuple;
use wirespeed::prelude::*;

use crate::boundary::{
    Failure, addresses, batch, free, given, handle, input, output, place, status, text, ws_status,
};
use crate::labels::{Text, Texts, label_of};
use crate::live::{Held, Live, State};
use crate::options::{Options, is_image, with, ws_options};

/// Set of rules, live: it changes while its readers look up. The matching rule of the highest priority wins,
/// among equals the one with the lower number.
pub struct ws_rules(Live<Rules>);

enum Rules {
    Ipv4(Classifier<Ipv4Tuple>),
    Ipv6(Classifier<Ipv6Tuple>),
}

/// Classifies packets by a set of rules or an image.
pub struct ws_rule_reader {
    reader: Reader,
    labels: Labels<Text>,
}

enum Reader {
    Ipv4(RuleReader<Ipv4Tuple>),
    Ipv6(RuleReader<Ipv6Tuple>),
}

/// Kind of packets that rules are for.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ws_tuple {
    /// Packets of IPv4: ws_tuple4.
    Ipv4 = 4,
    /// Packets of IPv6: ws_tuple6.
    Ipv6 = 6,
}

/// Header fields of an IPv4 packet, in host order.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ws_tuple4 {
    /// Source address.
    pub src: u32,
    /// Destination address.
    pub dst: u32,
    /// Source port, type of ICMP, or 0.
    pub sport: u16,
    /// Destination port, code of ICMP, or 0.
    pub dport: u16,
    /// Protocol.
    pub proto: u8,
}

/// Header fields of an IPv6 packet.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ws_tuple6 {
    /// Source address in network order.
    pub src: [u8; 16],
    /// Destination address in network order.
    pub dst: [u8; 16],
    /// Source port in host order, type of ICMPv6, or 0.
    pub sport: u16,
    /// Destination port in host order, code of ICMPv6, or 0.
    pub dport: u16,
    /// Protocol.
    pub proto: u8,
}

/// Change of a rule: with a rule and number 0 a new rule, with a rule and a number the rule in that number's
/// place, and without a rule the removal of that number.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ws_rule_change {
    /// Rule as text, or NULL.
    pub rule: *const c_char,
    /// Number of the rule, or 0.
    pub number: u32,
}

/// Calls generic code for the rules or the reader of either kind.
macro_rules! each {
    ($kind:ident, $any:expr, $one:ident => $code:expr) => {
        match $any {
            $kind::Ipv4($one) => $code,
            $kind::Ipv6($one) => $code,
        }
    };
}

/// Makes a set without rules, for packets of a ws_tuple.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ws_rules_new(tuple: u32, options: *const ws_options) -> *mut ws_rules {
    // SAFETY: the caller keeps the rules of the header.
    handle(|| open(None, tuple, unsafe { Options::of(options) }?))
}

/// Makes a set of a file, for packets of a ws_tuple: an image that ws_rules_save or lookupctl classify build
/// wrote, or rules in any format that lookupctl reads, recognised by content. Actions are labels. A rule that
/// header fields don't decide makes the call fail, unless options.assume decides it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ws_rules_open(
    path: *const c_char,
    tuple: u32,
    options: *const ws_options,
) -> *mut ws_rules {
    // SAFETY: the caller keeps the rules of the header.
    handle(|| open(Some(Path::new(unsafe { text(path, "path") }?)), tuple, unsafe { Options::of(options) }?))
}

/// Frees a set, or does nothing with NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ws_rules_free(rules: *mut ws_rules) {
    // SAFETY: the caller keeps the rules of the header.
    unsafe { free(rules) }
}

/// Writes the number of rules to count.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ws_rules_len(rules: *const ws_rules, count: *mut usize) -> ws_status {
    // SAFETY: the caller keeps the rules of the header.
    status(|| unsafe { given(rules, "rules")?.0.len(count) })
}

/// Inserts a rule after all others, and writes its number, from 1, to number. The rule is written as text:
/// "src=10.0.0.0/8 dport=443 proto=tcp priority=10 action=3". In a set with labels its action is the number
/// of a label, or left out.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ws_rules_insert(
    rules: *const ws_rules,
    rule: *const c_char,
    number: *mut u32,
) -> ws_status {
    status(|| {
        // SAFETY: the caller keeps the rules of the header.
        let (rules, rule, number) =
            unsafe { (given(rules, "rules")?, text(rule, "rule")?, place(number, "number")?) };
        let State { table, texts } = &mut *rules.0.lock()?;
        each!(Rules, table, rules => {
            let rule = parse(rules, rule)?;
            let inserted = texts.claimed(&[NextHop(rule.action())], || Ok(rules.insert(rule)?))?;
            number.write(inserted.get());
        });
        Ok(())
    })
}

/// Inserts a rule without action like ws_rules_insert, with a label as action. Fails if the set has actions
/// with numbers of the caller's own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ws_rules_insert_label(
    rules: *const ws_rules,
    rule: *const c_char,
    label: *const c_char,
    number: *mut u32,
) -> ws_status {
    status(|| {
        // SAFETY: the caller keeps the rules of the header.
        let (rules, rule, label, number) = unsafe {
            (given(rules, "rules")?, text(rule, "rule")?, text(label, "label")?, place(number, "number")?)
        };
        rules.0.change_to(label, |rules, action| {
            each!(Rules, rules, rules => {
                let rule = parse(rules, rule)?;
                if rule.action() != 0 {
                    return Err(Failure::argument("the rule has an action, and a label"));
                }
                number.write(rules.insert(rule.with_action(action.0))?.get());
            });
            Ok(())
        })
    })
}

/// Removes a rule by its number. It is no error if there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ws_rules_remove(rules: *const ws_rules, number: u32) -> ws_status {
    status(|| {
        // SAFETY: the caller keeps the rules of the header.
        let rules = unsafe { given(rules, "rules") }?;
        rules.0.change(&[], |rules| each!(Rules, rules, rules => rules.apply(&[RuleUpdate::Remove(number)])))
    })
}

/// Makes count changes in order: all or, if it fails, none. Readers see them at once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ws_rules_apply(
    rules: *const ws_rules,
    changes: *const ws_rule_change,
    count: usize,
) -> ws_status {
    status(|| {
        // SAFETY: the caller keeps the rules of the header.
        let (rules, changes) = unsafe { (given(rules, "rules")?, input(changes, count, "changes")?) };
        let State { table, texts } = &mut *rules.0.lock()?;
        each!(Rules, table, rules => {
            let updates = changes.iter().enumerate().map(|(at, change)| {
                // SAFETY: the caller keeps the rules of the header, also for texts in arrays.
                unsafe { change.update(rules) }.map_err(|failure| failure.at(at))
            });
            let updates = updates.collect::<Result<Vec<_>, _>>()?;
            let actions: Vec<_> = updates.iter().filter_map(action).collect();
            texts.claimed(&actions, || Ok(rules.apply(&updates)?))?;
        });
        Ok(())
    })
}

/// Replaces all rules by those of a file, as ws_rules_open reads it, in one step. Numbers then belong to
/// other rules. Fails if the set has actions with numbers of the caller's own. Labels keep their numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ws_rules_load(rules: *const ws_rules, path: *const c_char) -> ws_status {
    // SAFETY: the caller keeps the rules of the header.
    status(|| unsafe { given(rules, "rules")?.0.load(path) })
}

/// Saves the rules as an image file, with their labels. An existing file is replaced as a whole or not at
/// all.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ws_rules_save(rules: *const ws_rules, path: *const c_char) -> ws_status {
    // SAFETY: the caller keeps the rules of the header.
    status(|| unsafe { given(rules, "rules")?.0.save(path) })
}

/// Lets labels end that no rule has as action: see ws_table_forget_labels.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ws_rules_forget_labels(rules: *const ws_rules) -> ws_status {
    // SAFETY: the caller keeps the rules of the header.
    status(|| unsafe { given(rules, "rules")?.0.forget_labels() })
}

/// Makes a reader of a set. It sees all later changes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ws_rules_reader(rules: *const ws_rules) -> *mut ws_rule_reader {
    handle(|| {
        // SAFETY: the caller keeps the rules of the header.
        let rules = unsafe { given(rules, "rules") }?;
        let state = rules.0.lock()?;
        let reader = match &state.table {
            Rules::Ipv4(rules) => Reader::Ipv4(rules.reader()),
            Rules::Ipv6(rules) => Reader::Ipv6(rules.reader()),
        };
        Ok(ws_rule_reader { reader, labels: state.texts.labels().clone() })
    })
}

/// Opens an image file of rules for packets of a ws_tuple, for lookups alone. Fails if rules that header
/// fields don't decide were left out of the image.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ws_rule_reader_open(path: *const c_char, tuple: u32) -> *mut ws_rule_reader {
    handle(|| {
        // SAFETY: the caller keeps the rules of the header.
        let path = Path::new(unsafe { text(path, "path") }?);
        let reader = match tuple_of(tuple)? {
            TupleName::Ipv6 => Reader::Ipv6(RuleReader::open(path)?),
            _ => Reader::Ipv4(RuleReader::open(path)?),
        };
        each!(Reader, &reader, reader => check_no_doubts(reader.doubts().is_empty(), path)?);
        Ok(ws_rule_reader { reader, labels: Labels::open(path)? })
    })
}

/// Frees a reader, or does nothing with NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ws_rule_reader_free(reader: *mut ws_rule_reader) {
    // SAFETY: the caller keeps the rules of the header.
    unsafe { free(reader) }
}

/// Classifies count IPv4 packets: writes the number of the best rule of each, 0 if none matches, to numbers,
/// and its action, 0 if it has none, to actions. The batch sees one state of the rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ws_classify_bulk(
    reader: *const ws_rule_reader,
    tuples: *const ws_tuple4,
    numbers: *mut u32,
    actions: *mut u32,
    count: usize,
) -> ws_status {
    status(|| {
        // SAFETY: the caller keeps the rules of the header.
        let (reader, (tuples, numbers, actions)) =
            unsafe { (given(reader, "reader")?, arrays(tuples, numbers, actions, count)?) };
        let Reader::Ipv4(reader) = &reader.reader else { return Err(other_kind("IPv6", "IPv4")) };
        classify(reader, tuples, numbers, actions, |tuple| {
            let [src, dst] = [tuple.src, tuple.dst].map(Ipv4Addr::from);
            Ipv4Tuple::new(src, dst, tuple.sport, tuple.dport, tuple.proto)
        });
        Ok(())
    })
}

/// Classifies count IPv6 packets like ws_classify_bulk.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ws_classify6_bulk(
    reader: *const ws_rule_reader,
    tuples: *const ws_tuple6,
    numbers: *mut u32,
    actions: *mut u32,
    count: usize,
) -> ws_status {
    status(|| {
        // SAFETY: the caller keeps the rules of the header.
        let (reader, (tuples, numbers, actions)) =
            unsafe { (given(reader, "reader")?, arrays(tuples, numbers, actions, count)?) };
        let Reader::Ipv6(reader) = &reader.reader else { return Err(other_kind("IPv4", "IPv6")) };
        classify(reader, tuples, numbers, actions, |tuple| {
            let [src, dst] = [tuple.src, tuple.dst].map(Ipv6Addr::from);
            Ipv6Tuple::new(src, dst, tuple.sport, tuple.dport, tuple.proto)
        });
        Ok(())
    })
}

/// Label of an action, or NULL if it has none: see ws_reader_label.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ws_rule_reader_label(reader: *const ws_rule_reader, action: u64) -> *const c_char {
    // SAFETY: the caller keeps the rules of the header.
    label_of(|| Ok(&unsafe { given(reader, "reader") }?.labels), action)
}

/// Packets of a block, whose results fit the first-level cache.
const BLOCK: usize = 512;

fn open(path: Option<&Path>, tuple: u32, options: Options<'_>) -> Result<ws_rules, Failure> {
    let labels = Labels::new();
    let (rules, labels) = match tuple_of(tuple)? {
        TupleName::Ipv6 => {
            let (rules, labels) = opened(path, options, labels)?;
            (Rules::Ipv6(rules), labels)
        }
        _ => {
            let (rules, labels) = opened(path, options, labels)?;
            (Rules::Ipv4(rules), labels)
        }
    };
    Ok(ws_rules(Live::of(rules, Texts::of(labels))))
}

fn opened<T: RuleTuple>(
    path: Option<&Path>,
    options: Options<'_>,
    labels: Labels<Text>,
) -> Result<(Classifier<T>, Labels<Text>), Failure> {
    let options = options.only_for("rules")?;
    let builder = with_settings(&options)?;
    match path {
        None => Ok((builder.build()?, labels)),
        Some(path) if is_image(path)? => {
            options.none_for_image(path)?;
            let (mut rules, labels) = (Classifier::open(path)?, Labels::open(path)?);
            check_no_doubts(rules.doubts().is_empty(), path)?;
            rules.attach_labels(&labels);
            Ok((rules, labels))
        }
        Some(path) => Ok((builder.file(path, &labels).build()?, labels)),
    }
}

fn with_settings<T: RuleTuple>(options: &Options<'_>) -> Result<ClassifierBuilder<T>, Failure> {
    let How { assume, chain, rule_table, .. } = &options.how;
    let format = options.format(|content| match content {
        Content::Rules(format) => Some(format),
        _ => None,
    })?;
    let builder = assume.iter().fold(Classifier::builder(), ClassifierBuilder::assume);
    let builder = with(builder, chain.as_deref(), ClassifierBuilder::chain);
    let builder = with(builder, rule_table.as_deref(), ClassifierBuilder::rule_table);
    let builder = with(builder, format, ClassifierBuilder::format);
    let builder = with(builder, options.engine, ClassifierBuilder::engine);
    Ok(with(builder, options.memory_cap, ClassifierBuilder::memory_cap))
}

/// Refuses answers that a rule which was left out could change.
fn check_no_doubts(is_certain: bool, path: &Path) -> Result<(), Failure> {
    if is_certain {
        return Ok(());
    }
    let path = path.display();
    Err(Failure::state(format!("{path}: rules were left out of the image, and could change its answers")))
}

impl Held for Rules {
    type Live = Self;

    fn live(&mut self) -> Result<&mut Self, Failure> {
        Ok(self)
    }

    fn attach_labels(live: &mut Self, labels: &Labels<Text>) {
        each!(Self, live, rules => rules.attach_labels(labels));
    }

    fn load(live: &mut Self, path: &Path, labels: &Labels<Text>) -> Result<(), Failure> {
        Ok(each!(Self, live, rules => rules.load(path, labels)).map(drop)?)
    }

    fn save(&self, path: &Path, labels: &Labels<Text>) -> Result<(), wirespeed::Error> {
        each!(Self, self, rules => rules.save_labelled(path, labels))
    }

    fn len(&self) -> usize {
        each!(Self, self, rules => rules.len())
    }
}

impl ws_rule_change {
    /// The change for a set.
    ///
    /// # Safety
    ///
    /// The text is NULL or ends with a zero byte.
    unsafe fn update<T: RuleTuple>(&self, rules: &Classifier<T>) -> Result<RuleUpdate<T>, Failure> {
        if self.rule.is_null() && self.number == 0 {
            return Err(Failure::argument("a change without rule and number"));
        }
        if self.rule.is_null() {
            return Ok(RuleUpdate::Remove(self.number));
        }
        // SAFETY: the caller vouches for the text.
        let rule = parse(rules, unsafe { text(self.rule, "rule") }?)?;
        Ok(if self.number == 0 { RuleUpdate::Insert(rule) } else { RuleUpdate::Set(self.number, rule) })
    }
}

fn action<T: RuleTuple>(update: &RuleUpdate<T>) -> Option<NextHop> {
    match update {
        RuleUpdate::Insert(rule) | RuleUpdate::Set(_, rule) => Some(NextHop(rule.action())),
        RuleUpdate::Remove(_) => None,
    }
}

/// A rule for a set, which gives the type.
fn parse<T: RuleTuple>(_: &Classifier<T>, rule: &str) -> Result<Rule<T>, Failure> {
    rule.parse().map_err(|why| Failure::argument(format!("{rule:?}: {why}")))
}

fn tuple_of(tuple: u32) -> Result<TupleName, Failure> {
    match tuple {
        4 => Ok(TupleName::Ipv4),
        6 => Ok(TupleName::Ipv6),
        other => Err(Failure::argument(format!("{other} is no ws_tuple"))),
    }
}

fn other_kind(found: &str, wanted: &str) -> Failure {
    Failure::argument(format!("the rules are for {found}, the packets of {wanted}"))
}

type Arrays<'c, T> = (&'c [T], &'c mut [MaybeUninit<u32>], &'c mut [MaybeUninit<u32>]);

/// The arrays of a call that classifies.
///
/// # Safety
///
/// The pointers keep the rules of the header.
unsafe fn arrays<'c, T>(
    tuples: *const T,
    numbers: *mut u32,
    actions: *mut u32,
    count: usize,
) -> Result<Arrays<'c, T>, Failure> {
    // SAFETY: the caller vouches for them.
    let (tuples, numbers) = unsafe { batch((tuples, numbers), count, ("tuples", "numbers")) }?;
    let beside = [(addresses(tuples), "tuples"), (addresses(numbers), "numbers")];
    // SAFETY: the caller vouches for it.
    let actions = unsafe { output(actions, count, "actions", &beside) }?;
    Ok((tuples, numbers, actions))
}

/// Classifies packets in one state of the rules.
fn classify<T: RuleTuple, K>(
    reader: &RuleReader<T>,
    tuples: &[K],
    numbers: &mut [MaybeUninit<u32>],
    actions: &mut [MaybeUninit<u32>],
    tuple: impl Fn(&K) -> T,
) {
    let (state, mut block, mut found) = (reader.enter(), Vec::with_capacity(BLOCK), [None; BLOCK]);
    let results = numbers.chunks_mut(BLOCK).zip(actions.chunks_mut(BLOCK));
    for (tuples, (numbers, actions)) in tuples.chunks(BLOCK).zip(results) {
        block.clear();
        block.extend(tuples.iter().map(&tuple));
        let found = &mut found[..tuples.len()];
        state.match_batch(&block, found);
        for ((found, number), action) in found.iter().zip(numbers).zip(actions) {
            number.write(found.map_or(0, |found| found.number.get()));
            action.write(found.map_or(0, |found| found.action.0));
        }
    }
}
