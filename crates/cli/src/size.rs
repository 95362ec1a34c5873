//! Sizes and counts for people.

pub use snowmelt_lab::size::parse;

/// Bytes for people: four significant digits with a binary unit.
pub fn show(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{} {}", significant(value), UNITS[unit]) }
}

/// Four significant digits, no more than the value has.
fn significant(value: f64) -> String {
    let decimals = match value {
        v if v >= 1000.0 => 0,
        v if v >= 100.0 => 1,
        v if v >= 10.0 => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_significant_digits() {
        assert_eq!(show(999), "999 B");
        assert_eq!(show(1536), "1.500 KiB");
    }
}
