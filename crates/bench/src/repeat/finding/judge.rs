//! The verdict on a figure, from figures alone.
//!
//! A published figure shows an effect: its distance from the figure of no effect (`neutral`: 1 for
//! a ratio, one request for one asked, 0 for an amount). Ours is judged by its own distance, in
//! the direction of the published one: a ratio of 1.1 is not near one of 1.6, although the two
//! differ by a third.

use super::Agreement;

/// The way in which ours is compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Claim {
    /// A figure was published: ours is as large, within the factor.
    Size(f64),
    /// A least figure was published.
    AtLeast(f64),
    /// A largest figure was published.
    AtMost(f64),
    /// Only the direction was published: above neutral.
    Above,
    /// Nothing was published.
    Open,
}

/// How ours is compared, and with what.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    pub claim: Claim,
    /// The figure of no effect.
    pub neutral: f64,
    /// The effect may differ by this factor, from 1.
    pub factor: f64,
    /// An effect that is no larger shows no direction.
    pub noise: f64,
}

impl Rule {
    /// The published figure.
    pub fn published(&self) -> Option<f64> {
        match self.claim {
            Claim::Size(figure) | Claim::AtLeast(figure) | Claim::AtMost(figure) => Some(figure),
            Claim::Above | Claim::Open => None,
        }
    }

    /// In words.
    pub fn words(&self) -> String {
        let factor =
            if self.factor == 1.0 { String::new() } else { format!(", within {} times", self.factor) };
        let from = match self.neutral {
            0.0 => String::new(),
            neutral => format!(" from {neutral}"),
        };
        match self.claim {
            Claim::Size(_) => format!("the distance{from}{factor}"),
            Claim::AtLeast(_) => format!("at least the distance{from}{factor}"),
            Claim::AtMost(_) => format!("at most the distance{from}{factor}"),
            Claim::Above => format!("the direction: above {} by more than {}", self.neutral, self.noise),
            Claim::Open => "nothing is compared".to_owned(),
        }
    }

    /// The verdict on our figure, and its reason.
    pub fn judge(&self, ours: f64) -> (Agreement, String) {
        if !ours.is_finite() {
            return (Agreement::NotMeasured, format!("the figure is {ours}"));
        }
        let Some(published) = self.published() else {
            return self.judge_without_figure(ours);
        };
        let effect = published - self.neutral;
        // In the direction of the published one, as a share of it.
        let size = (ours - self.neutral) / effect;
        let says = format!("{} the published effect", times(size));
        let shows = size * effect.abs() > self.noise;
        match self.claim {
            // As far on the other side of neutral is another effect, and not less of this one.
            Claim::AtMost(_) if size.abs() <= self.factor => {
                (Agreement::AsPublished, "within the published bound".into())
            }
            Claim::AtMost(_) => (Agreement::Otherwise, says),
            _ if !shows => (Agreement::Otherwise, "the published effect is not there".into()),
            _ if size < 1.0 / self.factor => (Agreement::Weaker, format!("the direction holds; {says}")),
            Claim::Size(_) if size > self.factor => {
                (Agreement::Otherwise, format!("the direction holds, but {says}"))
            }
            _ => (Agreement::AsPublished, says),
        }
    }

    fn judge_without_figure(&self, ours: f64) -> (Agreement, String) {
        if self.claim == Claim::Open {
            return (Agreement::NotPublished, "nothing was published to compare it with".into());
        }
        match ours - self.neutral > self.noise {
            true => (Agreement::AsPublished, "the direction holds; its size was not published".into()),
            false => (Agreement::Otherwise, "the published direction is not there".into()),
        }
    }
}

/// A factor with the digits that it needs.
fn times(size: f64) -> String {
    match size.abs() {
        s if s >= 10.0 => format!("{size:.0} times"),
        _ => format!("{size:.2} times"),
    }
}

#[cfg(test)]
mod tests {
    use snowmelt_base::random::lcg;

    use super::*;

    const ROUNDS: usize = 20_000;

    /// Numbers from 0 to 1 of a seed.
    struct Draw(u64);

    impl Draw {
        fn unit(&mut self) -> f64 {
            (lcg(&mut self.0) >> 11) as f64 / (1u64 << 53) as f64
        }

        /// A rule with a published figure away from neutral by more than its noise.
        fn rule(&mut self) -> Rule {
            let neutral = (self.unit() * 4.0).floor();
            let effect = 0.5 + 5.0 * self.unit();
            let figure = if self.unit() < 0.5 { neutral + effect } else { neutral - effect };
            let claim = match (self.unit() * 3.0) as u32 {
                0 => Claim::Size(figure),
                1 => Claim::AtLeast(figure),
                _ => Claim::AtMost(figure),
            };
            Rule { claim, neutral, factor: 1.0 + self.unit(), noise: 0.1 * self.unit() }
        }
    }

    fn verdict(rule: &Rule, ours: f64) -> Agreement {
        rule.judge(ours).0
    }

    #[test]
    fn the_published_figure_is_as_published() {
        let mut draw = Draw(1);
        for _ in 0..ROUNDS {
            let rule = draw.rule();
            let published = rule.published().unwrap();
            assert_eq!(verdict(&rule, published), Agreement::AsPublished, "{rule:?}");
        }
    }

    #[test]
    fn nothing_on_the_other_side_of_neutral_is_as_published_or_weaker() {
        let mut draw = Draw(2);
        for _ in 0..ROUNDS {
            let rule = draw.rule();
            if matches!(rule.claim, Claim::AtMost(_)) {
                continue;
            }
            let away = rule.published().unwrap() - rule.neutral;
            let ours = rule.neutral - away * 10.0 * draw.unit();
            assert_eq!(verdict(&rule, ours), Agreement::Otherwise, "{rule:?} {ours}");
        }
    }

    #[test]
    fn on_the_way_from_published_to_neutral_verdicts_only_get_worse() {
        let order = [Agreement::AsPublished, Agreement::Weaker, Agreement::Otherwise];
        let mut draw = Draw(3);
        let mut seen = std::collections::HashSet::new();
        for _ in 0..ROUNDS / 100 {
            let rule = draw.rule();
            if matches!(rule.claim, Claim::AtMost(_)) {
                continue;
            }
            let (from, to) = (rule.published().unwrap(), rule.neutral);
            let mut worst = 0;
            for step in 0..=1000 {
                let at = verdict(&rule, from + (to - from) * f64::from(step) / 1000.0);
                let rank = order.iter().position(|of| *of == at).expect("one of the three");
                assert!(rank >= worst, "{rule:?} at {step}");
                worst = rank;
                seen.insert(at);
            }
            assert_eq!(worst, 2, "no effect is no finding: {rule:?}");
        }
        assert_eq!(seen.len(), 3);
    }

    #[test]
    fn more_than_the_tolerance_allows_is_otherwise_only_where_a_size_was_published() {
        let mut draw = Draw(4);
        for _ in 0..ROUNDS {
            let rule = draw.rule();
            let away = rule.published().unwrap() - rule.neutral;
            let ours = rule.neutral + away * rule.factor * (1.01 + draw.unit());
            let want = match rule.claim {
                Claim::AtLeast(_) => Agreement::AsPublished,
                _ => Agreement::Otherwise,
            };
            assert_eq!(verdict(&rule, ours), want, "{rule:?} {ours}");
        }
    }

    #[test]
    fn units_do_not_matter() {
        let mut draw = Draw(5);
        for _ in 0..ROUNDS {
            let rule = draw.rule();
            let scale = 1000.0 * (0.001 + draw.unit());
            let ours = 12.0 * draw.unit() - 4.0;
            let claim = match rule.claim {
                Claim::Size(figure) => Claim::Size(figure * scale),
                Claim::AtLeast(figure) => Claim::AtLeast(figure * scale),
                Claim::AtMost(figure) => Claim::AtMost(figure * scale),
                other => other,
            };
            let scaled = Rule { claim, neutral: rule.neutral * scale, noise: rule.noise * scale, ..rule };
            assert_eq!(verdict(&rule, ours), verdict(&scaled, ours * scale), "{rule:?} {ours} {scale}");
        }
    }

    #[test]
    fn a_largest_figure_bounds_the_effect_on_both_sides() {
        let rule = Rule { claim: Claim::AtMost(1.07), neutral: 1.0, factor: 2.0, noise: 0.0 };
        for (ours, want) in [
            (1.0, Agreement::AsPublished),
            (1.13, Agreement::AsPublished),
            (0.88, Agreement::AsPublished),
            (1.2, Agreement::Otherwise),
            (0.1, Agreement::Otherwise),
        ] {
            assert_eq!(verdict(&rule, ours), want, "{ours}");
        }
    }

    #[test]
    fn a_direction_needs_no_figure_and_an_open_question_no_direction() {
        let above = Rule { claim: Claim::Above, neutral: 1.0, factor: 1.0, noise: 0.1 };
        assert_eq!(verdict(&above, 1.11), Agreement::AsPublished);
        assert_eq!(verdict(&above, 1.09), Agreement::Otherwise, "within the noise");
        let open = Rule { claim: Claim::Open, ..above };
        for ours in [-1e9, 0.0, 1.0, 1e9] {
            assert_eq!(verdict(&open, ours), Agreement::NotPublished);
        }
        for rule in [above, open] {
            assert_eq!(verdict(&rule, f64::NAN), Agreement::NotMeasured);
        }
    }
}
