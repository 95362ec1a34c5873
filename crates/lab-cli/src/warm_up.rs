//! The switches of every command that measures a warm-up: its rules, and the storage's bandwidth.

use snowmelt_base::size;
use snowmelt_bench::warm_up::rule::SteadyLimit;
use snowmelt_bench::warm_up::{Bandwidth, WarmRules};

/// Rules of a warm-up.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct WarmUpArgs {
    /// Warm is the first stretch in which the server's processor use is this share of the use it
    /// has in the measured mixes [default: 0.889]
    #[arg(long, value_name = "SHARE", value_parser = share, help_heading = "Warming")]
    target_cpu: Option<f64>,
    /// Length of that stretch, and of the window of --steady [default: 20]
    #[arg(long, value_name = "SECONDS", value_parser = seconds, help_heading = "Warming")]
    stretch: Option<f64>,
    /// Or so many mixes, if they are through before [default: 2000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Warming")]
    warm_mixes: Option<u64>,
    /// Warm is, instead, the first window of steady throughput, as fio has it: iops:5% (no second
    /// is that far from the mean) or iops_slope:0.5% (the straight line through it is as flat)
    #[arg(long, value_name = "RULE", conflicts_with = "target_cpu", help_heading = "Warming")]
    steady: Option<SteadyLimit>,
    /// Bytes per second that the storage can deliver, for the ideal time [default: as the profile
    /// or the model of a database's devices says]
    #[arg(long, value_name = "SIZE", value_parser = size::parse, help_heading = "Warming")]
    bandwidth: Option<u64>,
}

impl WarmUpArgs {
    /// The rules: the published ones where nothing is given.
    pub fn rules(&self) -> WarmRules {
        let published = WarmRules::PUBLISHED;
        WarmRules {
            target_cpu: self.target_cpu.unwrap_or(published.target_cpu),
            stretch_s: self.stretch.unwrap_or(published.stretch_s),
            mixes: self.warm_mixes.unwrap_or(published.mixes),
            steady: self.steady,
        }
    }

    /// The rate of the storage.
    pub fn bandwidth(&self) -> Option<Bandwidth> {
        self.bandwidth.filter(|bytes| *bytes > 0).map(|bytes| Bandwidth::given(bytes as f64))
    }

    /// The first switch that was given.
    pub fn given(&self) -> Option<&'static str> {
        let Self { target_cpu, stretch, warm_mixes, steady, bandwidth } = self;
        let given = [
            (target_cpu.is_some(), "--target-cpu"),
            (stretch.is_some(), "--stretch"),
            (warm_mixes.is_some(), "--warm-mixes"),
            (steady.is_some(), "--steady"),
            (bandwidth.is_some(), "--bandwidth"),
        ];
        given.into_iter().find(|(is_given, _)| *is_given).map(|(_, name)| name)
    }
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if share > 0.0 && share <= 1.0 => Ok(share),
        _ => Err("use a share above 0 and up to 1, as 0.889".into()),
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds >= 1.0 && seconds.is_finite() => Ok(seconds),
        _ => Err("use a number of seconds from 1: samples are a second long".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory, Parser};

    #[derive(Parser)]
    struct Alone {
        #[command(flatten)]
        args: WarmUpArgs,
    }

    fn parse(line: &str) -> Result<WarmUpArgs, String> {
        let words = ["x"].into_iter().chain(line.split_whitespace());
        Alone::try_parse_from(words).map(|alone| alone.args).map_err(|error| error.to_string())
    }

    #[test]
    fn rules_are_the_published_ones_unless_given() {
        let none = parse("").unwrap();
        assert_eq!((none.rules(), none.given()), (WarmRules::PUBLISHED, None));
        let help = Alone::command().render_long_help().to_string();
        let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
        let WarmRules { target_cpu, stretch_s, mixes, .. } = WarmRules::PUBLISHED;
        for default in [target_cpu.to_string(), stretch_s.to_string(), mixes.to_string()] {
            assert!(help.contains(&format!("[default: {default}]")), "{default} is told: {help}");
        }
        let some = parse("--target-cpu 0.5 --stretch 3 --warm-mixes 7").unwrap();
        assert_eq!(some.rules(), WarmRules { target_cpu: 0.5, stretch_s: 3.0, mixes: 7, steady: None });
        assert_eq!(some.given(), Some("--target-cpu"));
        let steady = parse("--steady iops_slope:0.5% --bandwidth 1MiB").unwrap();
        assert_eq!(steady.rules().steady.unwrap().to_string(), "iops_slope:0.5%");
        assert_eq!(steady.bandwidth().unwrap().bytes_per_s, 1_048_576.0);
    }

    #[test]
    fn senseless_rules_are_refused() {
        for line in [
            "--target-cpu 0",
            "--target-cpu 1.1",
            "--target-cpu nan",
            "--stretch 0.5",
            "--stretch inf",
            "--warm-mixes 0",
            "--steady iops:5",
            "--steady iops:5% --target-cpu 0.5",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
