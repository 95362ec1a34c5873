//! Meters: what was counted, at one moment, and how it is shown.

pub use snowmelt_store::{
    AccountStats, Activity, JournalStats, MeterScope, NoSuchMeter, PageTimes, RecoveryTrace, Report, Sample,
    SampleKind, SampleValue, Samples, TREE_COLUMNS, as_json, as_prometheus, as_text, since, sort_trees,
};
