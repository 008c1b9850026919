//! [`Rule`]: a pattern of packets, a priority, and an action of the user.
//!
//! A rule has one [`Pattern`], a value under a mask. A rule with ranges of ports (or of any field) makes
//! several patterns: one for each combination of the ranges' prefixes. All of them are one rule with one
//! number. The rule holds the ranges and makes the patterns on demand, as there may be many. See
//! [`FieldRange`].

use std::sync::Arc;

use wirespeed_image::{prefetch_all, prefetch_at};

use crate::error::RuleError;
use crate::expand::FieldRange;
use crate::pattern::Pattern;
use crate::patterns::{Patterns, count};
use crate::spans::Spans;
use crate::tuple::{Field, FieldMatch, Tuple, Wanted};

/// A rule: a pattern, ranges, a priority, and the user's action. Cheap to clone: the ranges are shared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule<T> {
    /// The pattern without the ranges.
    base: Pattern<T>,
    ranges: Option<Arc<Ranges<T>>>,
    priority: u32,
    action: u32,
}

/// The ranges of a rule. The fields that updates read come first.
#[derive(Clone, Debug, PartialEq, Eq)]
#[repr(C)]
struct Ranges<T> {
    /// The number of patterns that the rule makes.
    patterns: u32,
    /// The spans of the rule, which include its other fields.
    spans: Option<Spans<T>>,
    of: Box<[FieldRange]>,
}

impl<T: Tuple> Rule<T> {
    /// A rule of one pattern.
    pub const fn new(pattern: Pattern<T>, priority: u32, action: u32) -> Self {
        Self { base: pattern, ranges: None, priority, action }
    }

    /// A rule with ranges of fields. A range replaces the pattern's bits of its field, and of two ranges of a
    /// field the later range counts. An error if the ranges make over [`MOST_PATTERNS`](crate::MOST_PATTERNS)
    /// patterns.
    ///
    /// A range that is one prefix (one number, all numbers, 1024-2047) becomes a part of the pattern.
    ///
    /// ```
    /// use wirespeed_classify::{FieldRange, Ipv4Tuple, Pattern, Rule};
    ///
    /// let ranges = [FieldRange::new(Ipv4Tuple::DPORT, 1024, 65535)?, FieldRange::new(Ipv4Tuple::SPORT, 0, 65535)?];
    /// let rule: Rule<Ipv4Tuple> = Rule::with_ranges(Pattern::all(), ranges, 1, 7)?;
    /// // 1024/6 2048/5 4096/4 8192/3 16384/2 32768/1
    /// assert_eq!(rule.patterns_len(), 6);
    /// # Ok::<(), wirespeed_classify::RuleError>(())
    /// ```
    pub fn with_ranges(
        pattern: Pattern<T>,
        ranges: impl IntoIterator<Item = FieldRange>,
        priority: u32,
        action: u32,
    ) -> Result<Self, RuleError> {
        let mut rule = Self::new(pattern, priority, action);
        let mut of: Vec<FieldRange> = Vec::new();
        for range in ranges {
            of.retain(|other| other.field() != range.field());
            match range.as_prefix() {
                Some((value, mask)) => rule.base = rule.base.with(&range.field(), value, mask),
                None => {
                    rule.base = rule.base.with(&range.field(), 0, 0);
                    of.push(range);
                }
            }
        }
        if !of.is_empty() {
            let (patterns, spans) = (count(&of)?, Spans::of(&rule.base, &of));
            rule.ranges = Some(Arc::new(Ranges { patterns, spans, of: of.into() }));
        }
        Ok(rule)
    }

    /// A rule of conditions on fields.
    #[inline(never)] // one copy for all crates
    pub(crate) fn wanting(wanted: &Wanted, priority: u32, action: u32) -> Result<Self, RuleError> {
        let (mut pattern, mut ranges) = (Pattern::all(), Vec::new());
        for &(field, wanted) in wanted {
            match wanted {
                FieldMatch::Masked { value, mask } => pattern = pattern.with(field, value, mask),
                FieldMatch::Range(from, to) => ranges.push(FieldRange::new(*field, from, to)?),
            }
        }
        Self::with_ranges(pattern, ranges, priority, action)
    }

    /// The rule with another action.
    #[must_use]
    pub const fn with_action(mut self, action: u32) -> Self {
        self.action = action;
        self
    }

    /// The rule with another priority.
    #[must_use]
    pub const fn with_priority(mut self, priority: u32) -> Self {
        self.priority = priority;
        self
    }

    /// The patterns, one or more. No two match the same tuple. The iterator makes them one by one.
    pub fn patterns(&self) -> Patterns<T> {
        Patterns::new(self.base, self.ranges(), self.patterns_len())
    }

    /// The number of [`patterns`](Self::patterns).
    #[inline]
    pub fn patterns_len(&self) -> usize {
        self.ranges.as_ref().map_or(1, |ranges| ranges.patterns as usize)
    }

    /// The pattern at an index. Panics if the index is too large.
    pub fn pattern(&self, nth: usize) -> Pattern<T> {
        Patterns::nth_of(&self.base, self.ranges(), nth)
    }

    /// The pattern without the [`ranges`](Self::ranges), for an engine that matches ranges itself.
    pub const fn base(&self) -> &Pattern<T> {
        &self.base
    }

    /// The ranges that are not prefixes: one for each such field.
    pub fn ranges(&self) -> &[FieldRange] {
        self.ranges.as_ref().map_or(&[], |ranges| &ranges.of)
    }

    /// The condition of the rule on a field.
    pub fn field(&self, field: &Field) -> FieldMatch {
        match self.ranges().iter().find(|range| range.field() == *field) {
            Some(range) => FieldMatch::Range(range.from(), range.to()),
            None => FieldMatch::Masked {
                value: self.base.value().field(field),
                mask: self.base.mask().field(field),
            },
        }
    }

    /// Whether a tuple matches. It compares ranges, and makes no patterns.
    pub fn matches(&self, tuple: &T) -> bool {
        self.base.matches(tuple)
            && self
                .ranges()
                .iter()
                .all(|range| (range.from()..=range.to()).contains(&tuple.field(&range.field())))
    }

    /// The priority: the rule of higher priority wins.
    #[inline]
    pub const fn priority(&self) -> u32 {
        self.priority
    }

    /// The user's action.
    #[inline]
    pub const fn action(&self) -> u32 {
        self.action
    }

    /// Whether both rules have the same condition on every field; priorities and actions may differ.
    pub(crate) fn has_patterns_of(&self, other: &Self) -> bool {
        (&self.base, &self.ranges) == (&other.base, &other.ranges)
    }

    /// The ranges of each 16 bits, if all conditions are such ranges.
    #[inline(always)]
    pub(crate) fn spans(&self) -> Option<Spans<T>> {
        match &self.ranges {
            None => Spans::of_pattern(&self.base),
            Some(ranges) => ranges.spans,
        }
    }

    /// Prefetches the memory that it holds beside itself.
    #[inline]
    pub(crate) fn fetch(&self) {
        if let Some(ranges) = &self.ranges {
            // How often it is shared is counted before it.
            prefetch_at(Arc::as_ptr(ranges).cast::<[usize; 2]>().wrapping_sub(1).cast());
            prefetch_all(&**ranges);
        }
    }

    /// The bytes that it holds beside itself.
    pub(crate) fn heap(&self) -> usize {
        self.ranges.as_ref().map_or(0, |ranges| size_of::<Ranges<T>>() + size_of_val(&*ranges.of))
    }
}
