//! Rules by which a server is called warm, over the course of a run.
//!
//! | rule | holds at the end of the first |
//! |---|---|
//! | target CPU | stretch over which the server's mean processor use is a share of its plateau |
//! | mixes | so many query mixes |
//! | `iops:5%` | window in which no interval's queries/s differ from their mean by 5 % of it |
//! | `iops_slope:0.5%` | window whose least-squares line climbs or falls less than that a second |
//!
//! The first two are those of the warm-up of Virtuoso that was published in 2011: 0.889 of the
//! plateau over 20 s, or 2000 mixes. The others are the steady state of fio (its manual, options
//! `steadystate` and `steadystate_duration`), where an operation is a query.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use super::course::{Course, Interval};

/// A rule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WarmRule {
    /// The server's processors are busy.
    TargetCpu {
        /// Share of the plateau.
        share: f64,
        /// Length of the stretch.
        stretch_s: f64,
        /// Processors that the server keeps busy when it is warm.
        plateau_cpus: f64,
    },
    /// So many mixes are through.
    Mixes(u64),
    /// Throughput no longer changes.
    Steady {
        /// Length of the window.
        window_s: f64,
        /// How much it may still change.
        limit: SteadyLimit,
    },
}

/// Bounds on the change of throughput, as fio has them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SteadyLimit {
    /// The measure.
    pub by: SteadyBy,
    /// The bound: change must be below it, in percent of the mean.
    pub percent: f64,
}

/// Measures of change in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SteadyBy {
    /// The largest deviation from the mean.
    Deviation,
    /// The slope of the least-squares line, per second.
    Slope,
}

impl WarmRule {
    /// The moment at which it first holds.
    pub fn held_s(&self, course: &Course) -> Option<f64> {
        match *self {
            Self::TargetCpu { share, stretch_s, plateau_cpus } => {
                let is_busy = |stretch: &[Interval]| {
                    let busy_s: Option<f64> = stretch.iter().map(|interval| interval.cpu_s).sum();
                    busy_s.is_some_and(|busy_s| busy_s >= share * plateau_cpus * length(stretch))
                };
                (plateau_cpus > 0.0).then(|| first(&course.intervals, stretch_s, is_busy))?
            }
            Self::Mixes(mixes) => {
                let last = usize::try_from(mixes).ok()?.checked_sub(1)?;
                course.done.iter().filter(|done| done.ends_mix).nth(last).map(|done| done.at_s)
            }
            Self::Steady { window_s, limit } => {
                first(&course.intervals, window_s, |window| limit.is_kept(window))
            }
        }
    }
}

/// The end of the first stretch, at least so long, for which something is true.
fn first(intervals: &[Interval], seconds: f64, is_it: impl Fn(&[Interval]) -> bool) -> Option<f64> {
    // Intervals are some microseconds longer or shorter than they should be.
    const TOLERANCE: f64 = 0.99;
    let mut begin = 0;
    for end in 1..=intervals.len() {
        while begin + 1 < end && length(&intervals[begin + 1..end]) >= seconds * TOLERANCE {
            begin += 1;
        }
        let stretch = &intervals[begin..end];
        if length(stretch) >= seconds * TOLERANCE && is_it(stretch) {
            return Some(intervals[end - 1].end_s);
        }
    }
    None
}

fn length(stretch: &[Interval]) -> f64 {
    stretch.iter().map(Interval::seconds).sum()
}

impl SteadyLimit {
    fn is_kept(&self, window: &[Interval]) -> bool {
        let rates: Vec<f64> = window.iter().map(Interval::rate).collect();
        let n = rates.len() as f64;
        let mean = rates.iter().sum::<f64>() / n;
        if rates.len() < 2 || mean <= 0.0 {
            return false;
        }
        let change = match self.by {
            SteadyBy::Deviation => rates.iter().map(|rate| (rate - mean).abs()).fold(0.0, f64::max),
            SteadyBy::Slope => {
                let times: Vec<f64> = window.iter().map(|i| f64::midpoint(i.begin_s, i.end_s)).collect();
                let centre = times.iter().sum::<f64>() / n;
                let with = times.iter().zip(&rates).map(|(at, rate)| (at - centre) * (rate - mean));
                let alone = times.iter().map(|at| (at - centre).powi(2));
                (with.sum::<f64>() / alone.sum::<f64>()).abs()
            }
        };
        100.0 * change / mean < self.percent
    }
}

impl fmt::Display for WarmRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TargetCpu { share, stretch_s, plateau_cpus } => write!(
                f,
                "{:.2} processors, {share} of the plateau of {plateau_cpus:.2}, over {stretch_s} s",
                share * plateau_cpus
            ),
            Self::Mixes(mixes) => write!(f, "{mixes} mixes"),
            Self::Steady { window_s, limit } => write!(f, "{limit} over {window_s} s"),
        }
    }
}

impl Serialize for WarmRule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Display for SteadyLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.by {
            SteadyBy::Deviation => "iops",
            SteadyBy::Slope => "iops_slope",
        };
        write!(f, "{name}:{}%", self.percent)
    }
}

impl FromStr for SteadyLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let help =
            || format!("{text} is no steady state: use iops:PERCENT% or iops_slope:PERCENT%, as iops:5%");
        let (name, percent) = text.split_once(':').ok_or_else(help)?;
        let by = match name {
            "iops" => SteadyBy::Deviation,
            "iops_slope" => SteadyBy::Slope,
            _ => return Err(help()),
        };
        let percent = percent.strip_suffix('%').and_then(|number| number.parse::<f64>().ok());
        match percent {
            Some(percent) if percent > 0.0 && percent.is_finite() => Ok(Self { by, percent }),
            _ => Err(help()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::warm_up::course::Completion;

    /// Intervals of a second with these processors and queries.
    fn course(values: impl IntoIterator<Item = f64>) -> Course {
        let interval = |(i, value): (usize, f64)| Interval {
            begin_s: i as f64,
            end_s: (i + 1) as f64,
            cpu_s: Some(value),
            queries: value,
            ..Interval::default()
        };
        Course { intervals: values.into_iter().enumerate().map(interval).collect(), done: Vec::new() }
    }

    fn target_cpu(values: impl IntoIterator<Item = f64>) -> Option<f64> {
        let rule = WarmRule::TargetCpu { share: 0.9, stretch_s: 5.0, plateau_cpus: 10.0 };
        rule.held_s(&course(values))
    }

    fn steady(limit: &str, values: impl IntoIterator<Item = f64>) -> Option<f64> {
        WarmRule::Steady { window_s: 5.0, limit: limit.parse().unwrap() }.held_s(&course(values))
    }

    /// Values between -1 and 1, the same in each run.
    fn noise(n: usize) -> impl Iterator<Item = f64> {
        let mut state = 1u32;
        std::iter::repeat_with(move || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            f64::from(state >> 8) / f64::from(1 << 23) - 1.0
        })
        .take(n)
    }

    #[test]
    fn a_step_is_warm_a_stretch_later() {
        let step = [[1.0; 7], [10.0; 7]].concat();
        assert_eq!(target_cpu(step), Some(12.0), "five seconds, of which none is slow");
        assert_eq!(target_cpu([10.0; 5]), Some(5.0));
    }

    #[test]
    fn a_ramp_is_warm_when_the_mean_of_a_stretch_is() {
        // 1 to 10 processors, then 10: of 7, 8, 9, 10, 10 the mean is 8.8; of 8 to 10, 9.4.
        let ramp = (1..=10).map(f64::from).chain([10.0; 5]);
        assert_eq!(target_cpu(ramp), Some(12.0));
    }

    #[test]
    fn a_dip_counts_by_its_depth() {
        let with = |dip: f64| [[10.0; 3], [10.0, dip, 10.0], [10.0; 3]].concat();
        assert_eq!(target_cpu(with(6.0)), Some(5.0), "a mean of 9.2");
        assert_eq!(target_cpu(with(2.0)), None, "each stretch of five has it: a mean of 8.4");
        let later = [&with(2.0)[..], &[10.0]].concat();
        assert_eq!(target_cpu(later), Some(10.0), "the first without it");
    }

    #[test]
    fn a_series_that_is_short_or_low_is_never_warm() {
        assert_eq!(target_cpu([10.0; 4]), None, "shorter than the stretch");
        assert_eq!(target_cpu([8.9; 100]), None, "the plateau is never reached");
        assert_eq!(target_cpu([]), None);
        let absent = Course {
            intervals: course([10.0; 9])
                .intervals
                .into_iter()
                .map(|i| Interval { cpu_s: None, ..i })
                .collect(),
            done: Vec::new(),
        };
        let rule = WarmRule::TargetCpu { share: 0.9, stretch_s: 5.0, plateau_cpus: 10.0 };
        assert_eq!(rule.held_s(&absent), None, "processors of which nothing is known are not busy");
        let rule = WarmRule::TargetCpu { share: 0.9, stretch_s: 5.0, plateau_cpus: 0.0 };
        assert_eq!(rule.held_s(&course([0.0; 9])), None, "no plateau, no share of it");
    }

    #[test]
    fn mixes_are_counted_by_their_last_queries() {
        let done =
            |i: usize| Completion { at_s: i as f64, ends_mix: i.is_multiple_of(3), ..Completion::default() };
        let course = Course { intervals: Vec::new(), done: (1..=10).map(done).collect() };
        assert_eq!(WarmRule::Mixes(2).held_s(&course), Some(6.0));
        assert_eq!(WarmRule::Mixes(3).held_s(&course), Some(9.0));
        assert_eq!(WarmRule::Mixes(4).held_s(&course), None);
    }

    #[test]
    fn deviations_are_held_against_the_mean_of_the_window() {
        // In the window 90, 100 x 4 the mean is 98 and the deviation 8: 8.2 %.
        let step = || [[10.0, 10.0, 90.0, 100.0, 100.0], [100.0; 5]].concat();
        assert_eq!(steady("iops:8.2%", step()), Some(7.0));
        assert_eq!(steady("iops:8.1%", step()), Some(8.0), "the first window of equals");
        let noisy = || noise(60).map(|x| 100.0 + 4.0 * x);
        assert_eq!(steady("iops:9%", noisy()), Some(5.0), "4 either way is within 8 % of any mean");
        assert_eq!(steady("iops:1%", noisy()), None);
        assert_eq!(steady("iops:5%", [100.0; 4]), None, "shorter than the window");
        assert_eq!(steady("iops:5%", [0.0; 9]), None, "nothing happens at all");
    }

    #[test]
    fn slopes_are_those_of_the_least_squares_line() {
        // 100, 101, ...: one a second. The first window's mean is 102, so 0.980 %.
        let ramp = || (0..20).map(|i| 100.0 + f64::from(i));
        assert_eq!(steady("iops_slope:0.99%", ramp()), Some(5.0));
        assert_eq!(steady("iops_slope:0.97%", ramp()), Some(7.0), "1 of 103 is 0.9709, 1 of 104 0.962");
        let falling = || (0..9).map(|i| 100.0 - 5.0 * f64::from(i));
        assert_eq!(steady("iops_slope:5%", falling()), None, "a fall is a slope");
        // A dip in the middle moves no line, but it is a deviation.
        let dip = [100.0, 100.0, 50.0, 100.0, 100.0];
        assert_eq!((steady("iops_slope:0.5%", dip), steady("iops:20%", dip)), (Some(5.0), None));
    }

    #[test]
    fn intervals_that_are_a_little_short_fill_a_window() {
        let mut course = course([10.0; 5]);
        course.intervals.iter_mut().for_each(|interval| interval.end_s -= 0.001);
        let rule = WarmRule::TargetCpu { share: 0.9, stretch_s: 5.0, plateau_cpus: 10.0 };
        assert_eq!(rule.held_s(&course), Some(4.999));
    }

    #[test]
    fn limits_are_written_as_they_are_read() {
        for text in ["iops:5%", "iops_slope:0.5%"] {
            assert_eq!(text.parse::<SteadyLimit>().unwrap().to_string(), text);
        }
        for text in ["iops", "iops:5", "bw:5%", "iops:0%", "iops:-1%", "iops:x%", "iops:inf%"] {
            assert!(text.parse::<SteadyLimit>().is_err(), "{text}");
        }
    }
}
