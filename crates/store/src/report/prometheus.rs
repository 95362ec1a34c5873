//! Samples in the text format of Prometheus, version 0.0.4.
//!
//! | name | line |
//! |---|---|
//! | `pool.frames` | `snowmelt_pool_frames 4096` |
//! | `trees[].reads` | `snowmelt_trees_reads_total{tree="psog"} 12` |
//! | `trees[].rules.*.used` | `snowmelt_trees_rules_used_total{tree="psog",rule="scan"} 7` |
//! | `journal.wait_ns` | `snowmelt_journal_wait_seconds_total 0.5` |
//! | `devices[].costs.bytes_per_s` | `snowmelt_devices_costs_bytes_per_second 1.3e8` |
//!
//! Counts are counters with `_total` at the end, levels are gauges. Times are in seconds. A text is
//! a gauge of 1 with the text as a label; a text that is absent now is left out. Derived samples
//! are left out, too: a query of Prometheus derives them for any interval.

use std::borrow::Cow;
use std::fmt::Write;

use super::sample::{Sample, SampleKind, SampleValue};

/// All lines of a metric stand together, below its type.
struct Family {
    name: String,
    kind: &'static str,
    unit: String,
    lines: String,
}

/// See the head of the file.
pub fn as_prometheus(samples: &[Sample]) -> String {
    let mut families: Vec<Family> = Vec::new();
    for sample in samples.iter().filter(|sample| sample.kind != SampleKind::Derived) {
        let (mut name, scale, unit) = name_of(sample);
        let mut labels = sample.labels.clone();
        let value = match &sample.value {
            SampleValue::Whole(n) if scale == 1.0 => n.to_string(),
            SampleValue::Whole(n) => (*n as f64 * scale).to_string(),
            SampleValue::Real(x) => (x * scale).to_string(),
            SampleValue::Text(text) => {
                labels.push((Cow::Borrowed("text"), text.clone()));
                "1".to_owned()
            }
            SampleValue::Absent => continue,
        };
        let kind = match sample.kind {
            SampleKind::Count => {
                name.push_str("_total");
                "counter"
            }
            _ => "gauge",
        };
        let at = families.iter().position(|family| family.name == name).unwrap_or_else(|| {
            families.push(Family { name, kind, unit, lines: String::new() });
            families.len() - 1
        });
        let family = &mut families[at];
        let line = format!("{}{} {value}\n", family.name, in_braces(&labels));
        family.lines.push_str(&line);
    }
    let mut out = String::new();
    for Family { name, kind, unit, lines } in families {
        write!(out, "# HELP {name} in {unit}\n# TYPE {name} {kind}\n{lines}").expect("a string takes all");
    }
    out
}

/// The name without its last part's unit, the factor to the unit that is told, and that.
fn name_of(sample: &Sample) -> (String, f64, String) {
    let plain = sample.name.replace("[]", "").replace(".*", "").replace('.', "_");
    let in_seconds = |suffix: &str| format!("{}_seconds", plain.strip_suffix(suffix).unwrap_or(&plain));
    let (name, scale, unit) = match &*sample.unit {
        "ns" => (in_seconds("_ns"), 1e-9, "seconds".to_owned()),
        "us" => (in_seconds("_us"), 1e-6, "seconds".to_owned()),
        "s" => {
            let plain = plain.strip_suffix("_s").or(plain.strip_suffix("_seconds")).unwrap_or(&plain);
            (format!("{plain}_seconds"), 1.0, "seconds".to_owned())
        }
        "bytes/s" => {
            let plain = plain.strip_suffix("_s").unwrap_or(&plain);
            (format!("{plain}_second"), 1.0, "bytes per second".to_owned())
        }
        unit => (plain, 1.0, unit.to_owned()),
    };
    (format!("snowmelt_{name}"), scale, unit)
}

/// `{name="value",…}`, or nothing.
fn in_braces(labels: &[(Cow<'static, str>, String)]) -> String {
    let quoted = |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let each: Vec<String> =
        labels.iter().map(|(key, value)| format!("{key}=\"{}\"", quoted(value))).collect();
    if each.is_empty() { String::new() } else { format!("{{{}}}", each.join(",")) }
}

#[cfg(test)]
mod tests {
    use super::super::sample::Samples;
    use super::*;

    #[test]
    fn metrics_have_their_type_unit_and_labels() {
        let mut samples = Samples::default();
        samples.labelled("device", "a \"b\"\\", |out| out.count("devices[].busy_ns", "ns", 1_500_000_000));
        samples.level("pool.frames", "frames", 7);
        samples.labelled("device", "c", |out| out.count("devices[].busy_ns", "ns", 0));
        samples.level("journal.stalled", "text", None::<String>);
        samples.level("journal.poisoned", "text", "no\nroom".to_owned());
        samples.derived("reads.used_share", "share");
        let text = as_prometheus(&samples.into_list());
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with("# HELP")).collect();
        assert_eq!(
            lines,
            [
                "# TYPE snowmelt_devices_busy_seconds_total counter",
                r#"snowmelt_devices_busy_seconds_total{device="a \"b\"\\"} 1.5"#,
                r#"snowmelt_devices_busy_seconds_total{device="c"} 0"#,
                "# TYPE snowmelt_pool_frames gauge",
                "snowmelt_pool_frames 7",
                "# TYPE snowmelt_journal_poisoned gauge",
                r#"snowmelt_journal_poisoned{text="no\nroom"} 1"#,
            ]
        );
        assert!(text.contains("# HELP snowmelt_devices_busy_seconds_total in seconds\n"));
    }
}
