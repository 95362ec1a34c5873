//! Figures for what no statistic tells. Each stands for "some" in a comparison of plans; none
//! was fitted to more than the queries of the benchmark and the test suites.

/// Share of rows that have (or have not) a match on the other side of EXISTS or MINUS.
pub(super) const HAS_MATCH: f64 = 0.5;

/// Share of rows for which an equality holds.
pub(super) const EQUAL: f64 = 0.05;

/// Share of rows for which a comparison by order holds.
pub(super) const ORDERED: f64 = 0.33;

/// Share of rows that have a value for an optional variable.
pub(super) const BOUND: f64 = 0.8;

/// Share of rows that a function lets pass.
pub(super) const FUNCTION: f64 = 0.3;

/// Different languages, and different datatypes.
pub(super) const LANGUAGES: f64 = 8.0;

/// Different years.
pub(super) const YEARS: f64 = 8.0;

/// Different lengths of texts.
pub(super) const LENGTHS: f64 = 200.0;

/// Share of rows that any other condition lets pass.
pub(super) const CONDITION: f64 = 0.5;

/// Least share that a counted comparison is taken to let pass: counts move, plans stay.
pub(super) const LEAST_SHARE: f64 = 1e-6;

/// Named graphs, where their names are read.
pub(super) const NAMED_GRAPHS: f64 = 10.0;

/// Named graphs, where they are joined with.
pub(super) const GRAPHS_JOINED: f64 = 100.0;

/// Predicates of a subject that are read for one of its values.
pub(super) const VALUES_OF_PAIR: u64 = 2;

/// Subjects with one object by one predicate.
pub(super) const SUBJECTS_OF_PAIR: u64 = 8;

/// Visits to indexes for a row of which only the predicate is unknown.
pub(super) const UNKNOWN_PREDICATE_VISITS: f64 = 2.0;

/// Visits to indexes for a row of a right side that tells none.
pub(super) const UNKNOWN_VISITS: f64 = 2.0;

/// Visits to indexes for a row that enters a path.
pub(super) const PATH_VISITS: f64 = 20.0;

/// Share of the nodes at which a path of several predicates ends that it starts at, too.
pub(super) const UNKNOWN_ONWARD: f64 = 0.5;

/// Pairs that a closure reaches whose levels do not become smaller, in those of its step.
pub(super) const CLOSURE: f64 = 64.0;

/// Cost of a node with a left and a right side, in costs of its left side.
pub(super) const TWO_SIDES: f64 = 3.0;

/// Rows of an endpoint elsewhere, of whose data nothing is known: more than most answers have, so
/// that it is rather asked for single values.
pub(super) const REMOTE_ROWS: f64 = 1e7;

/// Microseconds of a request to an endpoint.
pub(super) const REMOTE_TRIP_US: f64 = 20_000.0;

/// Microseconds of a row that it sends.
pub(super) const REMOTE_ROW_US: f64 = 5.0;

/// Microseconds of a value that is sent to it, and looked up there.
pub(super) const REMOTE_VALUE_US: f64 = 10.0;

/// Values sent in one request.
pub(super) const REMOTE_VALUES: f64 = 1000.0;

/// Most rows or cost that an estimate says. The square of it is still a number, so that products
/// of estimates are never infinite, and differences and quotients of them never NaN.
pub(super) const MOST: f64 = 1e150;

/// An estimate of rows or cost within bounds. A thousand joins without a shared variable expect
/// more rows than a float can say.
pub(super) fn bounded(estimate: f64) -> f64 {
    if estimate.is_nan() { MOST } else { estimate.clamp(0.0, MOST) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_stay_numbers() {
        assert_eq!(bounded(7.5), 7.5);
        assert_eq!(bounded(-1.0), 0.0);
        assert_eq!([bounded(f64::INFINITY), bounded(f64::NAN)], [MOST; 2]);
        assert!((MOST * MOST).is_finite());
    }
}
