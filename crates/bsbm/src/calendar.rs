//! Days of the benchmark's calendar: milliseconds since 1970 in UTC, printed as `yyyy-mm-dd`.
//!
//! All dates lie between 2000 and 2009, so their text comes from a table built once.

use std::sync::LazyLock;

/// Milliseconds of one day.
pub(crate) const DAY_MS: i64 = 86_400_000;

/// The first moment of a day, in milliseconds since 1970 (H. Hinnant, chrono-compatible date
/// algorithms).
pub(crate) const fn day_ms(year: i64, month: i64, day: i64) -> i64 {
    let shifted = if month <= 2 { year - 1 } else { year };
    let era = shifted / 400;
    let year_of_era = shifted - era * 400;
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    (era * 146_097 + day_of_era - 719_468) * DAY_MS
}

/// "Today" of the benchmark.
pub(crate) const TODAY: i64 = day_ms(2008, 6, 20);

const FIRST_YEAR: i64 = 2000;
const LAST_YEAR: i64 = 2009;

static TEXTS: LazyLock<Vec<[u8; 10]>> = LazyLock::new(|| {
    let mut texts = Vec::new();
    for year in FIRST_YEAR..=LAST_YEAR {
        for month in 1..=12 {
            let next = if month == 12 { day_ms(year + 1, 1, 1) } else { day_ms(year, month + 1, 1) };
            for day in 1..=(next - day_ms(year, month, 1)) / DAY_MS {
                let text = format!("{year:04}-{month:02}-{day:02}");
                texts.push(text.as_bytes().try_into().expect("yyyy-mm-dd has ten bytes"));
            }
        }
    }
    texts
});

/// The day of a moment, as `yyyy-mm-dd`. Panics outside the years 2000 to 2009, which no rule
/// leaves.
#[inline]
pub(crate) fn day_text(ms: i64) -> &'static [u8; 10] {
    &TEXTS[((ms - day_ms(FIRST_YEAR, 1, 1)) / DAY_MS) as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_days() {
        assert_eq!(day_ms(1970, 1, 1), 0);
        assert_eq!(day_ms(2001, 9, 9) + 6_400_000, 1_000_000_000_000); // 01:46:40
        assert_eq!(TODAY, 1_213_920_000_000);
        assert_eq!(day_text(TODAY), b"2008-06-20");
        assert_eq!(day_text(TODAY - 1), b"2008-06-19");
        assert_eq!(day_text(day_ms(2008, 2, 29)), b"2008-02-29");
        assert_eq!(day_text(day_ms(2009, 12, 31) + DAY_MS - 1), b"2009-12-31");
    }
}
