//! [`conditions`]: what a match wants of packets.

use serde_json::Value;

use super::key::{Key, Packets, What, shown, single};
use super::names::{Names, flag};
use super::sets::Sets;
use crate::read::assume::{Assumption, AssumptionKey};
use crate::read::chains::{Fact, FieldSet, Region, TooMany, Wanted};
use crate::tuple::Field;

/// The most conditions that one match, or all of a rule, may come to.
pub(super) const MOST_CONDITIONS: usize = 1 << 12;

/// A condition: packets of a region of which all facts hold.
#[derive(Clone, Debug)]
pub(super) struct Condition {
    pub(super) region: Region,
    pub(super) facts: Vec<Fact>,
    /// Whether it looks at the transport header.
    pub(super) is_transport: bool,
}

impl Condition {
    pub(super) fn always() -> Self {
        Self { region: Region::all(), facts: Vec::new(), is_transport: false }
    }

    fn of(key: &Key, region: Region, facts: Vec<Fact>) -> Self {
        Self { region, facts, is_transport: key.is_transport }
    }

    /// Nobody knows whether it holds, but of no packets that don't have what it looks at.
    fn unknown(key: &Key, why: impl Into<String>) -> Self {
        let of = match &key.beside {
            Some(_) => Region::all(),
            None => key.of.clone(),
        };
        Self::of(key, of, vec![Fact::unknown(why)])
    }

    /// Both.
    pub(super) fn and(&self, other: &Self) -> Result<Self, TooMany> {
        Ok(Self {
            region: self.region.and(&other.region)?,
            facts: self.facts.iter().chain(&other.facts).cloned().collect(),
            is_transport: self.is_transport || other.is_transport,
        })
    }
}

/// Each of some conditions together with each of others.
pub(super) fn each_with_each(all: &[Condition], more: &[Condition]) -> Result<Vec<Condition>, TooMany> {
    let mut both = Vec::new();
    for (one, other) in all.iter().flat_map(|one| more.iter().map(move |other| (one, other))) {
        let one = one.and(other)?;
        if !one.region.is_empty() {
            both.push(one);
        }
        if both.len() > MOST_CONDITIONS {
            return Err(TooMany { what: "conditions", limit: MOST_CONDITIONS as u64 });
        }
    }
    Ok(both)
}

/// How the sides of a match compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compare {
    Equal,
    NotEqual,
    Less,
    Greater,
    AtMost,
    AtLeast,
    /// Some of the flags are set.
    Some,
    /// None of the flags is set.
    None,
}

/// What a match wants: any of some conditions.
pub(super) fn conditions(wanted: &Value, packets: Packets, sets: &Sets) -> Result<Vec<Condition>, TooMany> {
    let unknown = |why: String| Ok(vec![Condition::unknown(&Key::unknown(""), why)]);
    let is_match = wanted.as_object().is_some_and(|object| {
        object.len() == 3 && ["op", "left", "right"].iter().all(|key| object.contains_key(*key))
    });
    if !is_match {
        return unknown(format!("a match that isn't of a left and a right side ({})", shown(wanted)));
    }
    let compare = match wanted["op"].as_str() {
        Some("==") => Compare::Equal,
        Some("!=") => Compare::NotEqual,
        Some("<") => Compare::Less,
        Some(">") => Compare::Greater,
        Some("<=") => Compare::AtMost,
        Some(">=") => Compare::AtLeast,
        Some("in") => Compare::Some,
        Some("!") => Compare::None,
        _ => return unknown(format!("a comparison by {}", wanted["op"])),
    };
    let (left, right) = (&wanted["left"], &wanted["right"]);
    if let Some(("concat", parts)) = single(left) {
        return concatenated(parts, compare, right, packets, sets);
    }
    let (left, mask) = match single(left) {
        Some(("&", Value::Array(sides))) if sides.len() == 2 => (&sides[0], Some(&sides[1])),
        _ => (left, None),
    };
    let key = Key::parse(left, packets)?;
    let elements = match sets.elements(right) {
        Ok(elements) => elements,
        Err(why) => return Ok(vec![Condition::unknown(&key, why)]),
    };
    let is_set = elements.is_some();
    let values = elements.unwrap_or_else(|| vec![right]);
    let mut all = simple(&key, mask, compare, &values, is_set)?;
    if let (Some(beside), What::Field(field, _)) = (&key.beside, &key.what) {
        let why = format!("the first bytes of a header without ports ({})", field.name);
        all.push(Condition::of(&key, beside.clone(), vec![Fact::unknown(why)]));
    }
    Ok(all)
}

/// A match of one thing.
fn simple(
    key: &Key,
    mask: Option<&Value>,
    compare: Compare,
    values: &[&Value],
    is_set: bool,
) -> Result<Vec<Condition>, TooMany> {
    // A set has its elements whatever the comparison is called.
    let compare = if is_set && compare == Compare::Some { Compare::Equal } else { compare };
    let unknown = |why: String| Ok(vec![Condition::unknown(key, why)]);
    match &key.what {
        What::Unknown(why) => unknown(why.clone()),
        What::Field(field, names) => match field_set(field, *names, mask, compare, values)? {
            Some(set) => {
                let region = key.of.and(&Region::of(field, set))?;
                Ok(vec![Condition::of(key, region, Vec::new())])
            }
            None => unknown(format!("{} as {}", shown_all(values), field.name)),
        },
        What::Family { own, number } if mask.is_none() => {
            let is_own = |value: &&Value| match value {
                Value::String(text) => Some(own.contains(&text.as_str())),
                Value::Number(of) => Some(of.as_u64() == Some(*number)),
                _ => None,
            };
            let known: Option<Vec<bool>> = values.iter().map(is_own).collect();
            let holds = known.map(|known| known.contains(&true));
            let holds = match compare {
                Compare::Equal => holds,
                Compare::NotEqual => holds.map(|is_own| !is_own),
                _ => None,
            };
            match holds {
                Some(true) => Ok(vec![Condition::always()]),
                Some(false) => Ok(Vec::new()),
                None => unknown(format!("{} as a family", shown_all(values))),
            }
        }
        What::FragmentOffset => {
            let is_later = match (mask.and_then(Value::as_u64), compare, values) {
                (Some(0x1fff), Compare::NotEqual, [value]) if value.as_u64() == Some(0) => "yes",
                (Some(0x1fff), Compare::Equal, [value]) if value.as_u64() == Some(0) => "no",
                _ => return unknown("no field of a tuple (ip frag-off)".to_owned()),
            };
            let fact = Fact::one_of(AssumptionKey::Fragment, &[is_later], "a match of fragments");
            Ok(vec![Condition::of(key, key.of.clone(), vec![fact])])
        }
        What::Fact(of) => match facts(*of, mask, compare, values, is_set) {
            Some(any) => {
                let with = |facts| Condition::of(key, key.of.clone(), facts);
                Ok(any.into_iter().map(with).collect())
            }
            None => unknown(format!("{} of {}", shown_all(values), of.as_str())),
        },
        What::Status if mask.is_none() && !is_set => match status(compare, values) {
            Some(facts) => Ok(vec![Condition::of(key, key.of.clone(), facts)]),
            None => unknown(format!("{} of ct status", shown_all(values))),
        },
        What::Status => unknown("a match by ct status".to_owned()),
        What::Family { .. } => unknown("a family under a mask".to_owned()),
    }
}

/// The numbers of a field that are wanted.
fn field_set(
    field: &Field,
    names: Names,
    mask: Option<&Value>,
    compare: Compare,
    values: &[&Value],
) -> Result<Option<FieldSet>, TooMany> {
    if let Some(mask) = mask {
        let Some(mask) = number(field, names, mask) else { return Ok(None) };
        let mut set = FieldSet::none(field);
        for value in values {
            let Some(value) = number(field, names, value) else { return Ok(None) };
            // Nothing has bits beside the mask.
            if value & !mask == 0 {
                set = set.or(&FieldSet::masked(field, value, mask))?;
            }
        }
        return match compare {
            Compare::Equal => Ok(Some(set)),
            Compare::NotEqual => set.not().map(Some),
            _ => Ok(None),
        };
    }
    let intervals: Option<Vec<_>> = values.iter().map(|value| interval(field, names, value)).collect();
    let Some(intervals) = intervals else { return Ok(None) };
    let all = field.all();
    let set = match (compare, &intervals[..]) {
        (Compare::Equal, _) => FieldSet::ranges(field, intervals),
        (Compare::NotEqual, _) => FieldSet::ranges(field, intervals).not()?,
        (Compare::Less, &[(0, 0)]) => FieldSet::none(field),
        (Compare::Less, &[(value, last)]) if value == last => FieldSet::range(field, 0, value - 1),
        (Compare::Greater, &[(value, last)]) if value == last => match value.checked_add(1) {
            Some(next) => FieldSet::range(field, next, all),
            None => FieldSet::none(field),
        },
        (Compare::AtMost, &[(value, last)]) if value == last => FieldSet::range(field, 0, value),
        (Compare::AtLeast, &[(value, last)]) if value == last => FieldSet::range(field, value, all),
        _ => return Ok(None),
    };
    Ok(Some(set))
}

/// The numbers from one to another that a value says.
fn interval(field: &Field, names: Names, value: &Value) -> Option<(u128, u128)> {
    match single(value) {
        None => number(field, names, value).map(|number| (number, number)),
        Some(("range", Value::Array(ends))) if ends.len() == 2 => {
            let (from, to) = (number(field, names, &ends[0])?, number(field, names, &ends[1])?);
            (from <= to).then_some((from, to))
        }
        Some(("prefix", prefix)) if prefix.as_object()?.len() == 2 => {
            let address = number(field, names, prefix.get("addr")?)?;
            let length = u16::try_from(prefix.get("len")?.as_u64()?).ok()?;
            let mask = (length <= field.width).then(|| field.prefix(length))?;
            Some((address & mask, address & mask | field.all() & !mask))
        }
        Some(_) => None,
    }
}

/// The number that a value says.
fn number(field: &Field, names: Names, value: &Value) -> Option<u128> {
    match value {
        Value::Number(number) => number.as_u64().map(u128::from).filter(|number| *number <= field.all()),
        Value::String(text) => names.number(text).or_else(|| field.parse(text).ok()),
        _ => None,
    }
}

/// What has to hold of something that may be assumed: all facts of any of these lists.
fn facts(
    of: AssumptionKey,
    mask: Option<&Value>,
    compare: Compare,
    values: &[&Value],
    is_set: bool,
) -> Option<Vec<Vec<Fact>>> {
    let what = format!("a match of {}", of.as_str());
    match of {
        AssumptionKey::TcpFlags => tcp_flags(mask, compare, values, what).map(|fact| vec![vec![fact]]),
        AssumptionKey::Mark | AssumptionKey::CtMark | AssumptionKey::CtZone => {
            let one = |value: &&Value| mark(of, mask, compare, value, &what);
            any_or_all(values.iter().map(one).collect::<Option<_>>()?, compare)
        }
        AssumptionKey::In | AssumptionKey::Out if mask.is_none() => {
            let one = |value: &&Value| interface(value).map(|wanted| Fact::wanted(of, wanted, &*what));
            any_or_all(values.iter().map(one).collect::<Option<_>>()?, compare)
        }
        _ if mask.is_none() => words(of, compare, values, is_set, &what),
        _ => None,
    }
}

/// Any of some facts for a comparison with a set, or none of them.
fn any_or_all(facts: Vec<Fact>, compare: Compare) -> Option<Vec<Vec<Fact>>> {
    match compare {
        Compare::NotEqual => Some(vec![facts.into_iter().map(|fact| fact.negated_if(true)).collect()]),
        Compare::Some | Compare::None => None,
        // What isn't a comparison for equality has its own facts.
        _ => Some(facts.into_iter().map(|fact| vec![fact]).collect()),
    }
}

fn interface(value: &Value) -> Option<Wanted> {
    let name = value.as_str()?;
    // A star of its own is written with a backslash before it.
    let is_plain = |name: &str| !name.is_empty() && !name.contains(['*', '\\', '"']);
    match name.strip_suffix('*') {
        Some(prefix) => {
            (prefix.is_empty() || is_plain(prefix)).then(|| Wanted::InterfacePrefix(prefix.to_owned()))
        }
        None => is_plain(name).then(|| Wanted::Interface(name.to_owned())),
    }
}

/// A fact of a mark or a zone. Comparisons but for inequality are in what is wanted.
fn mark(
    of: AssumptionKey,
    mask: Option<&Value>,
    compare: Compare,
    value: &Value,
    what: &str,
) -> Option<Fact> {
    let number = |value: &Value| u32::try_from(value.as_u64()?).ok();
    let wanted = match (mask, compare, single(value)) {
        (Some(mask), Compare::Equal | Compare::NotEqual, None) => {
            Wanted::Masked { value: number(value)?, mask: number(mask)? }
        }
        (Some(_), _, _) => return None,
        (None, Compare::Equal | Compare::NotEqual, Some(("range", Value::Array(ends))))
            if ends.len() == 2 =>
        {
            Wanted::Range(number(&ends[0])?, number(&ends[1])?)
        }
        (None, Compare::Equal | Compare::NotEqual, None) => {
            Wanted::Masked { value: number(value)?, mask: u32::MAX }
        }
        (None, Compare::Less, None) => Wanted::Range(0, number(value)?.checked_sub(1)?),
        (None, Compare::Greater, None) => Wanted::Range(number(value)?.checked_add(1)?, u32::MAX),
        (None, Compare::AtMost, None) => Wanted::Range(0, number(value)?),
        (None, Compare::AtLeast, None) => Wanted::Range(number(value)?, u32::MAX),
        _ => return None,
    };
    Some(Fact::wanted(of, wanted, what))
}

fn tcp_flags(mask: Option<&Value>, compare: Compare, values: &[&Value], what: String) -> Option<Fact> {
    let [value] = values else { return None };
    let set = flags(value)?;
    let (mask, set, is_negated) = match (mask, compare) {
        (Some(mask), Compare::Equal) => (flags(mask)?, set, false),
        (Some(mask), Compare::NotEqual) => (flags(mask)?, set, true),
        (None, Compare::Equal) => (u8::MAX, set, false),
        (None, Compare::NotEqual) => (u8::MAX, set, true),
        // Some of them are set where not all of them are not.
        (None, Compare::Some) => (set, 0, true),
        (None, Compare::None) => (set, 0, false),
        _ => return None,
    };
    let wanted = Wanted::Flags { mask, set };
    (set & !mask == 0).then(|| Fact::wanted(AssumptionKey::TcpFlags, wanted, what).negated_if(is_negated))
}

/// The bits of TCP flags: one, a list of them, or a number.
fn flags(value: &Value) -> Option<u8> {
    let all = |list: &Vec<Value>| list.iter().try_fold(0, |all, one| Some(all | flags(one)?));
    match value {
        Value::String(name) => flag(name),
        Value::Number(number) => u8::try_from(number.as_u64()?).ok(),
        Value::Array(list) => all(list),
        Value::Object(_) => match single(value)? {
            ("|", Value::Array(list)) => all(list),
            _ => None,
        },
        _ => None,
    }
}

/// Facts of a connection's translations: some of them, or none of them. What has no connection has neither.
fn status(compare: Compare, values: &[&Value]) -> Option<Vec<Fact>> {
    let words: Vec<&str> = match values {
        [Value::String(word)] => vec![word],
        [Value::Array(list)] => list.iter().map(Value::as_str).collect::<Option<_>>()?,
        _ => return None,
    };
    if words.is_empty() || words.iter().any(|word| !matches!(*word, "snat" | "dnat")) {
        return None;
    }
    let what = "a match of ct status";
    let is_some = Fact::one_of(AssumptionKey::Ct, &words, what);
    let has_connection = Fact::one_of(AssumptionKey::Ct, &["untracked", "invalid"], what).negated_if(true);
    match compare {
        Compare::Some => Some(vec![is_some]),
        Compare::None => Some(vec![has_connection, is_some.negated_if(true)]),
        _ => None,
    }
}

/// Facts of what has few values, by their names.
fn words(
    of: AssumptionKey,
    compare: Compare,
    values: &[&Value],
    is_set: bool,
    what: &str,
) -> Option<Vec<Vec<Fact>>> {
    let mut words = Vec::new();
    let mut is_union = false;
    for value in values {
        match (value, single(value)) {
            (Value::String(word), _) => words.push(word.as_str()),
            (Value::Array(list), _) => {
                words.extend(list.iter().map(Value::as_str).collect::<Option<Vec<_>>>()?);
            }
            (_, Some(("|", Value::Array(list)))) if !is_set => {
                is_union = true;
                words.extend(list.iter().map(Value::as_str).collect::<Option<Vec<_>>>()?);
            }
            _ => return None,
        }
    }
    let word = |word: &&str| {
        let own = if (of, *word) == (AssumptionKey::PacketType, "host") { "unicast" } else { word };
        Assumption::new(of, own).ok().map(|assumption| assumption.value().to_owned())
    };
    let words: Vec<String> = words.iter().map(word).collect::<Option<_>>()?;
    let is_ct = of == AssumptionKey::Ct;
    let is_negated = match compare {
        // No packet has two states, which is what a match of both at once wants.
        Compare::Equal if is_union => return is_ct.then(Vec::new).filter(|_| is_many(&words)),
        Compare::NotEqual if is_union => return is_ct.then(|| vec![Vec::new()]).filter(|_| is_many(&words)),
        Compare::Equal => false,
        Compare::NotEqual => true,
        Compare::Some if is_ct => false,
        Compare::None if is_ct => true,
        _ => return None,
    };
    let is_list = values.iter().any(|value| value.is_array());
    if is_list && !matches!(compare, Compare::Some | Compare::None) {
        return None;
    }
    Some(vec![vec![Fact::wanted(of, Wanted::OneOf(words), what).negated_if(is_negated)]])
}

fn is_many(words: &[String]) -> bool {
    words.iter().any(|word| *word != words[0])
}

/// A match of several things at once.
fn concatenated(
    parts: &Value,
    compare: Compare,
    right: &Value,
    packets: Packets,
    sets: &Sets,
) -> Result<Vec<Condition>, TooMany> {
    let keys = keys(parts, packets)?;
    let within = all_of(&keys)?;
    let unknown = |why: String| {
        let mut one = within.clone();
        one.facts = vec![Fact::unknown(why)];
        Ok(vec![one])
    };
    let elements = match sets.elements(right) {
        Ok(elements) => elements.unwrap_or_else(|| vec![right]),
        Err(why) => return unknown(why),
    };
    let mut any = Vec::new();
    for element in elements {
        any.extend(element_of(&keys, element)?);
        if any.len() > MOST_CONDITIONS {
            return Err(TooMany { what: "conditions", limit: MOST_CONDITIONS as u64 });
        }
    }
    match compare {
        Compare::Equal | Compare::Some => Ok(any),
        Compare::NotEqual if any.iter().all(|one| one.facts.is_empty()) => {
            let mut rest = within;
            for one in any {
                rest.region = rest.region.minus(&one.region)?;
            }
            Ok(vec![rest])
        }
        Compare::NotEqual => unknown("a match of several things that are not to be".to_owned()),
        _ => unknown("a comparison of several things".to_owned()),
    }
}

/// The things that are looked at together.
pub(super) fn keys(parts: &Value, packets: Packets) -> Result<Vec<Key>, TooMany> {
    let parts = parts.as_array().map_or(&[][..], Vec::as_slice);
    let keys: Vec<Key> = parts.iter().map(|part| Key::parse(part, packets)).collect::<Result<_, _>>()?;
    Ok(if keys.is_empty() { vec![Key::unknown("a match of nothing")] } else { keys })
}

/// The packets that have all that is looked at.
pub(super) fn all_of(keys: &[Key]) -> Result<Condition, TooMany> {
    keys.iter().try_fold(Condition::always(), |all, key| {
        let of = if key.beside.is_some() { Region::all() } else { key.of.clone() };
        all.and(&Condition::of(key, of, Vec::new()))
    })
}

/// The conditions of an element of a set or a map.
pub(super) fn element_of(keys: &[Key], element: &Value) -> Result<Vec<Condition>, TooMany> {
    let values: Vec<&Value> = match single(element) {
        Some(("concat", Value::Array(values))) if keys.len() > 1 => values.iter().collect(),
        _ => vec![element],
    };
    let mut any = vec![Condition::always()];
    if values.len() != keys.len() {
        any = vec![all_of(keys)?];
        any[0].facts = vec![Fact::unknown(format!("{} for {} values", shown(element), keys.len()))];
        return Ok(any);
    }
    for (key, value) in keys.iter().zip(values) {
        let mut one = simple(key, None, Compare::Equal, &[value], true)?;
        if let (Some(beside), What::Field(field, _)) = (&key.beside, &key.what) {
            let why = format!("the first bytes of a header without ports ({})", field.name);
            one.push(Condition::of(key, beside.clone(), vec![Fact::unknown(why)]));
        }
        any = each_with_each(&any, &one)?;
    }
    Ok(any)
}

fn shown_all(values: &[&Value]) -> String {
    match values {
        [one] => shown(one),
        [first, ..] => format!("{} and others", shown(first)),
        [] => "nothing".to_owned(),
    }
}
