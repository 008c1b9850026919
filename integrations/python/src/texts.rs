//! [`Texts`]: the labels of a table. Numbers that Python holds keep their texts until the caller says that it
//! holds none.

use pyo3::IntoPyObject;
use wirespeed::{Labels, NextHop};

use crate::failure::Failure;

/// The value of a route, a name or a rule as Python gives it.
#[derive(Clone, Debug, PartialEq, Eq, IntoPyObject)]
pub(crate) enum Value {
    /// A number of the caller's own, or of a label.
    Number(u32),
    /// A label.
    Label(String),
}

/// The labels of a table. Labels of the façade end with their last use; these are claimed once more each, so
/// that a number and its text stay while Python may hold the number.
pub(crate) struct Texts {
    labels: Labels<String>,
    /// Whether the label of an index is claimed, from index 0.
    held: Vec<bool>,
}

impl Texts {
    /// Labels of a table that was made.
    pub(crate) fn of(labels: Labels<String>) -> Self {
        let mut texts = Self { labels, held: Vec::new() };
        texts.hold_all();
        texts
    }

    pub(crate) fn labels(&self) -> &Labels<String> {
        &self.labels
    }

    /// Whether there are no labels: results are the caller's numbers.
    pub(crate) fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// The value of a number: its label if it has one.
    pub(crate) fn value(&self, number: NextHop) -> Value {
        let text = self.labels.get(number).map(|text| text.clone());
        text.map_or(Value::Number(number.0), Value::Label)
    }

    /// Refuses labels in a table whose results are the caller's numbers.
    pub(crate) fn check_no_numbers(&self, is_empty: bool) -> Result<(), Failure> {
        if self.is_empty() && !is_empty {
            return Err(Failure::state("this table has numbers of the caller's own, and no labels"));
        }
        Ok(())
    }

    /// Claims every label that is new.
    pub(crate) fn hold_all(&mut self) {
        let all: Vec<_> = self.labels.enter().iter().map(|(index, text)| (index, text.clone())).collect();
        all.into_iter().for_each(|(index, text)| self.hold(index, text));
    }

    fn hold(&mut self, index: NextHop, text: String) {
        let at = index.0 as usize;
        if self.held.len() <= at {
            self.held.resize(at + 1, false);
        }
        if self.held[at] {
            return;
        }
        match self.labels.intern(text) {
            Ok(found) if found == index => self.held[at] = true,
            Ok(other) => self.labels.release(other),
            // There is an index already, so none is missing.
            Err(_) => {}
        }
    }

    /// Lets the labels end that nothing leads to.
    pub(crate) fn forget(&mut self) {
        for (index, held) in (0..).map(NextHop).zip(&mut self.held) {
            if std::mem::take(held) {
                self.labels.release(index);
            }
        }
        self.labels.reclaim();
        self.hold_all();
    }

    /// Makes a change that brings these values. The change gets an index for each, claims settled if it
    /// succeeds and given back if it fails. `is_empty` says whether the table is.
    pub(crate) fn with<R>(
        &mut self,
        values: Vec<Value>,
        is_empty: bool,
        change: impl FnOnce(&[NextHop], Option<&Labels<String>>) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        let has_labels = values.iter().any(|value| matches!(value, Value::Label(_)));
        if has_labels {
            self.check_no_numbers(is_empty)?;
        }
        if !has_labels && self.is_empty() {
            let numbers: Vec<_> = values.iter().map(|value| self.number(value)).collect::<Result<_, _>>()?;
            return change(&numbers, None);
        }
        let (mut indexes, mut new) = (Vec::with_capacity(values.len()), Vec::new());
        let mut claimed = Ok(());
        for value in values {
            match self.claim(value, &mut new) {
                Ok(index) => indexes.push(index),
                Err(failure) => {
                    claimed = Err(failure);
                    break;
                }
            }
        }
        let changed = claimed.and_then(|()| change(&indexes, Some(&self.labels)));
        if changed.is_err() {
            indexes.into_iter().for_each(|index| self.labels.release(index));
        } else {
            new.into_iter().for_each(|(index, text)| self.hold(index, text));
        }
        changed
    }

    fn number(&self, value: &Value) -> Result<NextHop, Failure> {
        match value {
            Value::Number(0) => Err(Failure::input("0 is no value: numbers start at 1")),
            Value::Number(number) => Ok(NextHop(*number)),
            Value::Label(_) => Err(Failure::state("labels and numbers of the caller's own in one table")),
        }
    }

    /// Claims a label for one use.
    fn claim(&self, value: Value, new: &mut Vec<(NextHop, String)>) -> Result<NextHop, Failure> {
        match value {
            Value::Label(text) => {
                let index = self.labels.intern(text.clone()).map_err(wirespeed::Error::from)?;
                if !self.held.get(index.0 as usize).copied().unwrap_or(false) {
                    new.push((index, text));
                }
                Ok(index)
            }
            Value::Number(_) => {
                let index = self.number(&value)?;
                let no_label = || {
                    Failure::state(format!("{index} is the number of no label, and this table has labels"))
                };
                let text = self.labels.get(index).map(|text| text.clone()).ok_or_else(no_label)?;
                match self.labels.intern(text) {
                    Ok(found) if found == index => Ok(index),
                    Ok(other) => {
                        self.labels.release(other);
                        Err(no_label())
                    }
                    Err(_) => Err(no_label()),
                }
            }
        }
    }
}

/// Values of entries that make a table: all numbers, or all labels.
pub(crate) enum Values<K> {
    Numbers(Vec<(K, NextHop)>),
    Labels(Vec<(K, String)>),
}

impl<K> Values<K> {
    /// Sorts entries out. Fails if there are numbers and labels.
    pub(crate) fn of(entries: Vec<(K, Value)>) -> Result<Self, Failure> {
        let has_labels = matches!(entries.first(), Some((_, Value::Label(_))));
        let (mut numbers, mut labels) = (Vec::new(), Vec::new());
        for (at, (key, value)) in entries.into_iter().enumerate() {
            match value {
                Value::Label(text) if has_labels => labels.push((key, text)),
                Value::Number(number) if !has_labels => numbers.push((key, NextHop(number))),
                _ => return Err(Failure::input("values are all numbers or all labels").at(at)),
            }
        }
        Ok(if has_labels { Self::Labels(labels) } else { Self::Numbers(numbers) })
    }
}
