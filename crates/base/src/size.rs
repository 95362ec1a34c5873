//! Bytes and counts as text, and bytes from text.
//!
//! | function    | 1536        | use                                          |
//! |-------------|-------------|----------------------------------------------|
//! | [`parse`]   | from `1.5k` | arguments                                    |
//! | [`exact`]   | `1536`      | names of things, read back by [`parse`]      |
//! | [`about`]   | `1.50 KiB`  | reports: three significant digits            |
//! | [`precise`] | `1.500 KiB` | progress and results: four of them           |
//! | [`count`]   | `1.536K`    | numbers of things: four, in powers of 1000   |
//!
//! K, M, G and T are powers of 1024 where bytes are meant.

/// Parses a size as fio and people write it into bytes: `4k`, `64KiB`, `1.5g`, `512`.
///
/// # Errors
/// The text is not a size, or one below 1 or beyond `u64`; the message says so.
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

/// The shortest exact text of a size: `8k`, `2m`, `512`, `1536`.
pub fn exact(bytes: u64) -> String {
    match bytes {
        0 => "0".into(),
        b if b.is_multiple_of(1 << 30) => format!("{}g", b >> 30),
        b if b.is_multiple_of(1 << 20) => format!("{}m", b >> 20),
        b if b.is_multiple_of(1 << 10) => format!("{}k", b >> 10),
        b => b.to_string(),
    }
}

/// An approximate number of bytes, for people: three significant digits with a binary unit.
pub fn about(bytes: f64) -> String {
    in_units(bytes, 1024.0, &["B", "KiB", "MiB", "GiB", "TiB"], " ", 3)
}

/// A number of bytes, for people: four significant digits with a binary unit.
pub fn precise(bytes: u64) -> String {
    in_units(bytes as f64, 1024.0, &["B", "KiB", "MiB", "GiB", "TiB"], " ", 4)
}

/// A count with four significant digits and K, M or G for powers of 1000.
pub fn count(n: u64) -> String {
    in_units(n as f64, 1000.0, &["", "K", "M", "G"], "", 4)
}

/// A value in the largest of `units` that it reaches, with this many significant digits. Each unit
/// is `step` times the one before; the first has no decimals.
fn in_units(mut value: f64, step: f64, units: &[&str], blank: &str, digits: usize) -> String {
    // A value that would be rounded to more digits goes into the next unit.
    let limit = step.min(10f64.powi(digits as i32) - 0.5);
    let mut unit = 0;
    while value >= limit && unit + 1 < units.len() {
        value /= step;
        unit += 1;
    }
    let decimals = if unit == 0 { 0 } else { decimals(value, digits) };
    format!("{value:.decimals$}{blank}{}", units[unit])
}

/// Decimals that make `digits` significant digits of a value from 1 on.
fn decimals(value: f64, digits: usize) -> usize {
    (1..digits)
        .rev()
        .find(|&d| {
            let (rounds_up_at, half) = (10f64.powi((digits - d) as i32), 0.5 * 10f64.powi(-(d as i32)));
            value < rounds_up_at - half
        })
        .unwrap_or(0)
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
            assert_eq!(exact(parse(text).unwrap()), text);
        }
    }

    #[test]
    fn significant_digits() {
        assert_eq!(about(1536.0), "1.50 KiB");
        assert_eq!(about(125.0 * 1048576.0), "125 MiB");
        assert_eq!(about(17.0), "17 B");
        assert_eq!(about(999.4), "999 B");
        assert_eq!(about(1000.0), "0.98 KiB");
        assert_eq!(about(10239.0), "10.0 KiB");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_674_000_000), "1.674G");
        assert_eq!(count(808_900), "808.9K");
        assert_eq!(precise(1536), "1.500 KiB");
        assert_eq!(precise(1023), "1023 B");
        assert_eq!(precise(1023 << 20), "1023 MiB");
        assert_eq!(precise(u64::MAX), "16777216 TiB");
    }

    /// `about` once had code of its own; three digits must give the same texts.
    #[test]
    fn three_digits_are_as_ever() {
        let old = |bytes: f64| {
            let (mut value, mut unit) = (bytes, 0);
            while value >= 999.5 && unit < 4 {
                (value, unit) = (value / 1024.0, unit + 1);
            }
            let decimals = if unit == 0 || value >= 99.95 { 0 } else { 1 + usize::from(value < 9.995) };
            format!("{value:.decimals$} {}", ["B", "KiB", "MiB", "GiB", "TiB"][unit])
        };
        let mut state = 1;
        for _ in 0..100_000 {
            let bytes = (crate::random::lcg(&mut state) >> (state % 60)) as f64 / 8.0;
            assert_eq!(about(bytes), old(bytes));
        }
    }
}
