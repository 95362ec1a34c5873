//! Sizes as people write them: `64KiB`, `4GiB`, `512M`, `1.5g`, `8192`. K, M, G, T are powers of 1024.

/// Parses a size into bytes.
pub fn parse(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let shift = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        other => return Err(format!("unknown unit '{other}': write for example 512MiB or 4GiB")),
    };
    let number: f64 =
        number.parse().map_err(|_| format!("'{text}' is not a size: write for example 512MiB or 4GiB"))?;
    let bytes = number * (1u64 << shift) as f64;
    if bytes < 1.0 || bytes >= u64::MAX as f64 {
        return Err(format!("'{text}' is out of range"));
    }
    Ok(bytes as u64)
}

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

/// A count with four significant digits and K, M or G.
pub fn count(n: u64) -> String {
    const UNITS: [&str; 4] = ["", "K", "M", "G"];
    let mut value = n as f64;
    let mut unit = 0;
    while value >= 1000.0 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    if unit == 0 { n.to_string() } else { format!("{}{}", significant(value), UNITS[unit]) }
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
    fn sizes() {
        assert_eq!(parse("4GiB"), Ok(4 << 30));
        assert_eq!(parse("256m"), Ok(256 << 20));
        assert_eq!(parse("1.5k"), Ok(1536));
        assert_eq!(parse("8192"), Ok(8192));
        assert!(parse("4 apples").unwrap_err().contains("apples"));
        assert!(parse("").is_err());
        assert!(parse("0").is_err());
    }

    #[test]
    fn four_significant_digits() {
        assert_eq!(count(999), "999");
        assert_eq!(count(1_674_000_000), "1.674G");
        assert_eq!(count(808_900), "808.9K");
        assert_eq!(show(1536), "1.500 KiB");
    }
}
