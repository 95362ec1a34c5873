//! Activity: the counts of a query, of a client or of a whole store.
//!
//! Hot paths count in the reader, in plain integers. A reader adds what it did to its accounts
//! (`account`) when it is flushed or dropped. Invariant: `spec_disk <= disk`, because both are
//! counted at the one place where a read is started.

use std::fmt;

/// Counts of a query, a client or the whole store. All fields are since the start (or the
/// last reset).
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Activity {
    /// Index lookups, found or not.
    pub rnd: u64,
    /// Rows moved over, matching or not.
    pub seq: u64,
    /// Lookups that continued in the same restart block as the one before.
    pub same_seg: u64,
    /// Lookups that continued on the same leaf.
    pub same_pg: u64,
    /// Lookups that continued under the same parent.
    pub same_par: u64,
    /// Pages whose read from a device was started, read-ahead included.
    pub disk: u64,
    /// Those of `disk` that no reader was waiting for when they were started.
    pub spec_disk: u64,
    /// Threads started to work in parallel.
    pub fork: u64,
    /// Messages to other nodes of a cluster: none, there are no clusters yet.
    pub messages: u64,
    /// Bytes of these.
    pub message_bytes: u64,
    /// Pages pinned.
    pub pages: u64,
    /// Times a page was found in flight, started by another reader or ahead, and waited for.
    pub waits: u64,
    /// Nanoseconds spent waiting for pages, own reads and those of others.
    pub wait_ns: u64,
}

impl Activity {
    /// Number of fields.
    pub(crate) const FIELDS: usize = 13;
    /// Fields of the one line, the first ones.
    const OF_LINE: usize = 10;

    /// The fields with their names and units, in order.
    pub fn named(&self) -> [(&'static str, &'static str, u64); Activity::FIELDS] {
        [
            ("rnd", "lookups", self.rnd),
            ("seq", "rows", self.seq),
            ("same_seg", "lookups", self.same_seg),
            ("same_pg", "lookups", self.same_pg),
            ("same_par", "lookups", self.same_par),
            ("disk", "pages", self.disk),
            ("spec_disk", "pages", self.spec_disk),
            ("fork", "threads", self.fork),
            ("messages", "messages", self.messages),
            ("message_bytes", "bytes", self.message_bytes),
            ("pages", "pages", self.pages),
            ("waits", "times", self.waits),
            ("wait_ns", "ns", self.wait_ns),
        ]
    }

    /// The activity whose fields have these values, by name.
    pub(crate) fn of_named(value: impl Fn(&str) -> u64) -> Activity {
        let mut activity = Activity::default();
        let names = activity.named().map(|(name, _, _)| name);
        for (field, name) in activity.fields_mut().into_iter().zip(names) {
            *field = value(name);
        }
        activity
    }

    /// The difference to `earlier`.
    pub fn since(&self, earlier: &Activity) -> Activity {
        let mut a = *self;
        a.each(earlier, |x, y| *x -= y);
        a
    }

    /// The rest without `part`, field by field; 0 where that is more.
    pub(crate) fn without(mut self, part: &Activity) -> Activity {
        self.each(part, |x, y| *x = x.saturating_sub(y));
        self
    }

    fn each(&mut self, other: &Activity, f: impl Fn(&mut u64, u64)) {
        for (mine, (_, _, theirs)) in self.fields_mut().into_iter().zip(other.named()) {
            f(mine, theirs);
        }
    }

    /// In the order of [`Activity::named`].
    fn fields_mut(&mut self) -> [&mut u64; Activity::FIELDS] {
        [
            &mut self.rnd,
            &mut self.seq,
            &mut self.same_seg,
            &mut self.same_pg,
            &mut self.same_par,
            &mut self.disk,
            &mut self.spec_disk,
            &mut self.fork,
            &mut self.messages,
            &mut self.message_bytes,
            &mut self.pages,
            &mut self.waits,
            &mut self.wait_ns,
        ]
    }
}

impl std::ops::AddAssign for Activity {
    fn add_assign(&mut self, other: Activity) {
        self.each(&other, |x, y| *x += y);
    }
}

/// The one line: `1.674G rnd  3.223G seq …`.
impl fmt::Display for Activity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (name, _, value)) in self.named().into_iter().take(Self::OF_LINE).enumerate() {
            let gap = if i > 0 { "  " } else { "" };
            write!(f, "{gap}{} {}", Short(value), name.replace('_', " "))?;
        }
        Ok(())
    }
}

/// A count in four significant digits with K, M or G.
#[derive(Clone, Copy, Debug)]
pub struct Short(pub u64);

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (value, unit) = match self.0 {
            v if v < 10_000 => return write!(f, "{v}"),
            v if v < 999_950 => (v as f64 / 1e3, "K"),
            v if v < 999_950_000 => (v as f64 / 1e6, "M"),
            v => (v as f64 / 1e9, "G"),
        };
        let digits = if value < 9.9995 {
            3
        } else if value < 99.995 {
            2
        } else if value < 999.95 {
            1
        } else {
            0
        };
        write!(f, "{value:.digits$}{unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_significant_digits() {
        let cases = [
            (0, "0"),
            (9999, "9999"),
            (10_000, "10.00K"),
            (123_449, "123.4K"),
            (999_949, "999.9K"),
            (999_950, "1.000M"),
            (12_345_678, "12.35M"),
            (999_949_999, "999.9M"),
            (4_321_000_000, "4.321G"),
        ];
        for (n, text) in cases {
            assert_eq!(Short(n).to_string(), text);
        }
    }

    #[test]
    fn activity_adds_and_subtracts() {
        let mut a = Activity { rnd: 1, disk: 5, spec_disk: 2, ..Default::default() };
        let before = a;
        a += Activity { rnd: 10, wait_ns: 7, ..Default::default() };
        assert_eq!(a.since(&before), Activity { rnd: 10, wait_ns: 7, ..Default::default() });
        assert!(a.to_string().starts_with("11 rnd  0 seq"), "{a}");
    }

    #[test]
    fn fields_and_names_are_in_one_order() {
        let named = Activity::of_named(|name| name.len() as u64);
        for (name, _, value) in named.named() {
            assert_eq!(value, name.len() as u64, "{name}");
        }
        assert_eq!((named.rnd, named.spec_disk, named.wait_ns), (3, 9, 7));
    }
}
