//! Expected cost of an operator: work of a processor and time of a device.

use std::iter::Sum;
use std::ops::Add;

/// Microseconds of a warm core, and microseconds that a device reads for it.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Cost {
    pub cpu: f64,
    pub io: f64,
}

impl Cost {
    /// One figure to compare plans by.
    pub fn total(self) -> f64 {
        self.cpu + self.io
    }

    /// Applies an operation to both figures.
    pub fn map(self, f: impl Fn(f64) -> f64) -> Self {
        Self { cpu: f(self.cpu), io: f(self.io) }
    }
}

/// Work alone.
impl From<f64> for Cost {
    fn from(cpu: f64) -> Self {
        Self { cpu, io: 0.0 }
    }
}

impl<C: Into<Cost>> Add<C> for Cost {
    type Output = Cost;
    fn add(self, other: C) -> Cost {
        let other = other.into();
        Cost { cpu: self.cpu + other.cpu, io: self.io + other.io }
    }
}

impl Sum for Cost {
    fn sum<I: Iterator<Item = Cost>>(costs: I) -> Cost {
        costs.fold(Cost::default(), Add::add)
    }
}
