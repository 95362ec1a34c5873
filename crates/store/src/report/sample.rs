//! A meter's value at one moment, with its name, unit and labels.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// See the head of the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// The names on the way to it, parted by dots: `pool.frames`. `trees[].reads` is a meter of
    /// each entry of the list `trees`, `trees[].rules.*.used` one of each member of `rules`.
    pub name: Cow<'static, str>,
    /// Which entry it is of: a key and a value for each `[]` and `*` of the name.
    pub labels: Vec<(Cow<'static, str>, String)>,
    /// The value.
    pub value: SampleValue,
    /// Its unit.
    pub unit: Cow<'static, str>,
    /// How it moves.
    pub kind: SampleKind,
}

/// A value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum SampleValue {
    /// A count.
    Whole(u64),
    /// A measure.
    Real(f64),
    /// A word, or a sentence.
    Text(String),
    /// There is none now.
    Absent,
}

/// How a value moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SampleKind {
    /// It grows until it is reset: the difference of two is what happened between them.
    Count,
    /// It is as of now.
    Level,
    /// It is made of other samples, and of differences in the same way.
    Derived,
}

impl SampleValue {
    /// The value as a number; 0 where it is none.
    pub fn number(&self) -> f64 {
        match self {
            SampleValue::Whole(n) => *n as f64,
            SampleValue::Real(x) => *x,
            SampleValue::Text(_) | SampleValue::Absent => 0.0,
        }
    }

    /// The value as a count; 0 where it is none.
    pub fn count(&self) -> u64 {
        match self {
            SampleValue::Whole(n) => *n,
            _ => 0,
        }
    }
}

impl From<u64> for SampleValue {
    fn from(n: u64) -> Self {
        SampleValue::Whole(n)
    }
}

impl From<f64> for SampleValue {
    fn from(x: f64) -> Self {
        SampleValue::Real(x)
    }
}

impl<T: Into<SampleValue>> From<Option<T>> for SampleValue {
    fn from(value: Option<T>) -> Self {
        value.map_or(SampleValue::Absent, Into::into)
    }
}

impl From<String> for SampleValue {
    fn from(text: String) -> Self {
        SampleValue::Text(text)
    }
}

/// A list of samples that is being made.
#[derive(Default)]
pub struct Samples {
    list: Vec<Sample>,
    labels: Vec<(Cow<'static, str>, String)>,
}

impl Samples {
    /// The samples that `f` adds have this label, too.
    pub fn labelled(&mut self, key: &'static str, value: &str, f: impl FnOnce(&mut Self)) {
        self.labels.push((key.into(), value.to_owned()));
        f(self);
        self.labels.pop();
    }

    /// One that grows until it is reset.
    pub fn count(
        &mut self,
        name: impl Into<Cow<'static, str>>,
        unit: &'static str,
        value: impl Into<SampleValue>,
    ) {
        self.add(name.into(), unit, value.into(), SampleKind::Count);
    }

    /// One that is as of now.
    pub fn level(
        &mut self,
        name: impl Into<Cow<'static, str>>,
        unit: &'static str,
        value: impl Into<SampleValue>,
    ) {
        self.add(name.into(), unit, value.into(), SampleKind::Level);
    }

    /// One whose value is filled in by [`derive`](super::interval::derive).
    pub(crate) fn derived(&mut self, name: &'static str, unit: &'static str) {
        self.add(name.into(), unit, SampleValue::Absent, SampleKind::Derived);
    }

    fn add(&mut self, name: Cow<'static, str>, unit: &'static str, value: SampleValue, kind: SampleKind) {
        debug_assert_eq!(
            name.matches("[]").count() + name.matches('*').count(),
            self.labels.len(),
            "{name} has a label for each list"
        );
        self.list.push(Sample { name, labels: self.labels.clone(), value, unit: unit.into(), kind });
    }

    /// All of them.
    pub fn into_list(self) -> Vec<Sample> {
        self.list
    }
}

/// A value of a list by its name, for those with exactly these labels; 0 without it.
pub(crate) fn number_of(samples: &[Sample], name: &str, labels: &[(Cow<'static, str>, String)]) -> f64 {
    let found = samples.iter().find(|sample| sample.name == name && sample.labels == labels);
    found.map_or(0.0, |sample| sample.value.number())
}
