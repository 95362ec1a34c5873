//! How many values a question has, by how long answers take.

use std::time::Duration;

/// Values of the first question.
const FIRST: usize = 64;
/// Most values of a question.
const MOST: usize = 8192;
/// Fewest values that a slow endpoint is asked for.
const FEWEST: usize = 16;
/// Questions under way for one endpoint whose answers are known to come.
const AT_ONCE: usize = 4;
/// Answers after which a size that was too slow once is tried again.
const PATIENCE: u64 = 32;

/// The pace of an endpoint. Questions grow while more values bring more answers in the same time,
/// and not to a size that was too slow a short time ago.
#[derive(Debug)]
pub(super) struct ServicePace {
    values: usize,
    /// what the endpoint takes
    most: usize,
    /// half of a size that was too slow
    ceiling: usize,
    /// values per second of the best question since a size was too slow
    best: f64,
    answers: u64,
    /// answers since then
    steady: u64,
}

impl Default for ServicePace {
    fn default() -> Self {
        Self { values: FIRST, most: MOST, ceiling: MOST, best: 0.0, answers: 0, steady: 0 }
    }
}

impl ServicePace {
    /// Values of the next question.
    pub fn values(&self) -> usize {
        self.values
    }

    /// Questions under way: one, until one has been answered.
    pub fn at_once(&self) -> usize {
        if self.answers == 0 { 1 } else { AT_ONCE }
    }

    /// After an answer. One to fewer values than a question has now says nothing about that.
    pub fn answered(&mut self, values: usize, took: Duration) {
        self.answers += 1;
        if values < self.values {
            return;
        }
        let rate = values as f64 / took.as_secs_f64().max(1e-6);
        self.steady += 1;
        if rate > 1.2 * self.best {
            self.best = rate;
            self.values = (self.values * 4).min(self.ceiling).min(self.most);
        } else if rate < 0.6 * self.best {
            self.values = (self.values / 2).max(FEWEST).min(self.most);
            // the best of smaller questions is to be found anew; half of one takes as long at most
            (self.best, self.ceiling, self.steady) = (rate / 2.0, self.values, 0);
        } else if self.ceiling < MOST && self.steady >= PATIENCE {
            self.ceiling = (self.ceiling * 2).min(MOST);
            self.values = self.ceiling.min(self.most);
            self.steady = 0;
        }
    }

    /// After a refusal of so many values.
    pub fn too_many(&mut self, values: usize) {
        self.most = (values / 2).max(1);
        self.values = self.values.min(self.most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of questions to an endpoint that takes this long.
    fn paced(questions: usize, took: impl Fn(usize) -> Duration) -> Vec<usize> {
        let mut pace = ServicePace::default();
        let mut all = Vec::new();
        for _ in 0..questions {
            all.push(pace.values());
            pace.answered(pace.values(), took(pace.values()));
        }
        all
    }

    #[test]
    fn questions_grow_while_that_pays() {
        let far = |_: usize| Duration::from_millis(200);
        assert_eq!(paced(6, far), [64, 256, 1024, 4096, 8192, 8192]);
        let near = |values: usize| Duration::from_micros(10 * values as u64);
        assert_eq!(paced(4, near), [64, 256, 256, 256], "each value takes as long");
        let tires = |values: usize| Duration::from_micros((values * values) as u64);
        let tired = paced(100, tires);
        let largest = tired.iter().max().unwrap();
        assert!(*largest <= 256, "{largest} values, each of which takes the longer the more there are");
    }

    #[test]
    fn one_slow_answer_is_made_up_for() {
        let mut pace = ServicePace::default();
        let far = Duration::from_millis(200);
        (0..8).for_each(|_| pace.answered(pace.values(), far));
        pace.answered(8192, 5 * far);
        assert_eq!(pace.values(), 4096);
        (0..40).for_each(|_| pace.answered(pace.values(), far));
        assert_eq!(pace.values(), 8192);
    }

    #[test]
    fn a_refusal_halves_them_for_good() {
        let mut pace = ServicePace::default();
        pace.answered(64, Duration::from_millis(1));
        pace.too_many(256);
        assert_eq!(pace.values(), 128);
        pace.answered(128, Duration::from_nanos(1));
        assert_eq!(pace.values(), 128);
        pace.too_many(1);
        assert_eq!(pace.values(), 1);
    }
}
