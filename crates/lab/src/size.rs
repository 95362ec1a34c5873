//! Sizes as fio and people write them: `4k`, `64KiB`, `1.5g`, `512`. K, M, G, T are powers of 1024.

/// Parses a size into bytes.
pub fn parse(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let no_size = || format!("'{text}' is not a size: write for example 4k, 512MiB or 4g");
    let shift = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return Err(no_size()),
    };
    let number: f64 = number.parse().map_err(|_| no_size())?;
    let bytes = number * (1u64 << shift) as f64;
    if bytes < 1.0 || bytes >= u64::MAX as f64 {
        return Err(format!("'{text}' is out of range"));
    }
    Ok(bytes as u64)
}

/// A size as short as it can be said exactly: `8k`, `2m`, `512`, `1536`.
pub fn show(bytes: u64) -> String {
    match bytes {
        0 => "0".into(),
        b if b.is_multiple_of(1 << 30) => format!("{}g", b >> 30),
        b if b.is_multiple_of(1 << 20) => format!("{}m", b >> 20),
        b if b.is_multiple_of(1 << 10) => format!("{}k", b >> 10),
        b => b.to_string(),
    }
}

/// About how much, for people: three significant digits with a binary unit.
pub fn about(bytes: f64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let decimals = if unit == 0 || value >= 99.95 { 0 } else { 1 + usize::from(value < 9.995) };
    format!("{value:.decimals$} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_said() {
        assert_eq!(parse("8k"), Ok(8192));
        assert_eq!(parse("2MiB"), Ok(2 << 20));
        assert_eq!(parse("1.5k"), Ok(1536));
        assert_eq!(parse("256 m"), Ok(256 << 20));
        assert_eq!(parse("4GiB"), Ok(4 << 30));
        assert!(parse("4 apples").unwrap_err().contains("4 apples"));
        assert!(parse("").is_err() && parse("0").is_err() && parse("-1").is_err());
        for text in ["4k", "2m", "512", "1g", "1537"] {
            assert_eq!(show(parse(text).unwrap()), text);
        }
        assert_eq!(about(1536.0), "1.50 KiB");
        assert_eq!(about(125.0 * 1048576.0), "125 MiB");
        assert_eq!(about(17.0), "17 B");
    }
}
