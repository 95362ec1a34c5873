//! Costs of a disk's reads that were learned, in words and beside those of a probe.

use serde_json::Value;
use snowmelt_base::size;
use snowmelt_io::{CostModel, DiskIdentity, KeptModel};

/// Factor from which two costs count as different.
const APART: f64 = 1.5;

/// Requests and bytes per second as far as they were learned, and how sure they are.
pub fn told(model: &KeptModel) -> String {
    let requests = format!("{:.0} requests/s", 1e9 / model.cost.ns_per_request.max(1) as f64);
    let rate = format!("{}/s", size::about(model.cost.bytes_per_s as f64));
    let figures = [(requests, model.requests), (rate, model.bytes)];
    let learned = figures.into_iter().filter(|(_, sure)| *sure > 0.0);
    let told: Vec<String> =
        learned.map(|(figure, sure)| format!("{figure} ({:.0} % sure)", 100.0 * sure)).collect();
    told.join(", ")
}

/// Learned figures that differ from those of a probe, by the costs of single pages and of whole
/// extents.
pub fn differences(probed: &CostModel, model: &KeptModel) -> Vec<String> {
    const PAGE_BYTES: u64 = 8 << 10;
    const EXTENT_BYTES: u64 = 2 << 20;
    let figures = [("requests", PAGE_BYTES, model.requests), ("bytes", EXTENT_BYTES, model.bytes)];
    let learned = figures.into_iter().filter(|(.., sure)| *sure > 0.0);
    let times = learned.map(|(what, bytes, _)| {
        let of = |cost: &CostModel| cost.request_ns(bytes).max(1) as f64;
        (what, of(probed) / of(&model.cost))
    });
    let apart = times.filter(|(_, times)| !(1.0 / APART..=APART).contains(times));
    apart
        .map(|(what, times)| {
            let (times, word) = if times > 1.0 { (times, "dear") } else { (1.0 / times, "cheap") };
            format!("{what} {times:.1} times as {word}")
        })
        .collect()
}

/// Costs of a stripe as the meters of a server tell them, if it has learned them.
pub fn of_meters(costs: &Value) -> Option<KeptModel> {
    let number = |name: &str| costs[name].as_f64();
    let looks = costs["learned"].as_u64().filter(|looks| *looks > 0)?;
    let requests_per_s = 1e9 / number("request_ns")?.max(1.0);
    let cost = CostModel::capped(number("latency_ns")? as u64, requests_per_s, f64::INFINITY);
    // Of bytes it is not asked: a page costs requests.
    let sure = [number("request_confidence").unwrap_or(0.0), 0.0];
    Some(KeptModel::new(cost, sure, looks, DiskIdentity::default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(cost: CostModel, sure: [f64; 2]) -> KeptModel {
        KeptModel::new(cost, sure, 9, DiskIdentity::default())
    }

    #[test]
    fn a_probe_differs_in_what_was_learned() {
        let volume = CostModel::capped(1_000_000, 3_000.0, 131_072_000.0);
        assert!(differences(&CostModel::network(), &model(volume, [1.0; 2])).is_empty(), "the same volume");
        let cached = CostModel::nvme();
        let all = differences(&cached, &model(volume, [0.5, 0.5]));
        assert_eq!(all.len(), 2, "{all:?}");
        assert!(all[0].starts_with("requests") && all[0].contains("cheap"), "{all:?}");
        assert_eq!(
            differences(&cached, &model(volume, [0.0, 0.5])).len(),
            1,
            "what was not learned is no figure"
        );
        let slower = differences(&volume, &model(cached, [1.0, 0.0]));
        assert!(slower[0].contains("dear"), "{slower:?}");
    }

    #[test]
    fn meters_of_a_server_that_has_learned_nothing_say_nothing() {
        let costs = |looks: u64| {
            serde_json::json!({
                "learned": looks, "request_ns": 333_333, "latency_ns": 1_000_000, "request_confidence": 0.75,
            })
        };
        assert_eq!(of_meters(&costs(0)), None);
        assert_eq!(of_meters(&Value::Null), None);
        let model = of_meters(&costs(3)).unwrap();
        assert!(told(&model).starts_with("3000 requests/s (75 % sure)"), "{}", told(&model));
    }
}
