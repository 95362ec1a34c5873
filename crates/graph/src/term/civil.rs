//! Days and dates of the proleptic Gregorian calendar, years 1 to 9999, without branches on
//! tables of months.
//!
//! The year is taken to begin in March, so that the leap day is its last. The months before month
//! m (March = 0) then have (153·m + 2) / 5 days.

/// Days since 0001-01-01. The date is valid (see [`is_valid`]).
pub(crate) fn days_of(year: u32, month: u32, day: u32) -> u32 {
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let before_year = y * 365 + y / 4 - y / 100 + y / 400;
    // 0001-01-01 is day 306 of the March year 0.
    before_year + (153 * m + 2) / 5 + day - 1 - 306
}

/// Year, month and day of a number of days since 0001-01-01.
pub(crate) fn date_of(days: u32) -> (u32, u32, u32) {
    let days = days + 306;
    let era = days / 146_097;
    let of_era = days % 146_097;
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let day_of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let m = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * m + 2) / 5 + 1;
    let year = era * 400 + year_of_era;
    if m < 10 { (year, m + 3, day) } else { (year + 1, m - 9, day) }
}

/// Whether the month and day exist in the year, which must be 1 to 9999.
pub(crate) fn is_valid(year: u32, month: u32, day: u32) -> bool {
    if !(1..=9999).contains(&year) || !(1..=12).contains(&month) || day == 0 {
        return false;
    }
    day <= 28 || day <= days_in_month(year, month)
}

fn days_in_month(year: u32, month: u32) -> u32 {
    match month {
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_of_ten_millennia() {
        let mut expected = 0;
        for year in 1..=9999 {
            for month in 1..=12 {
                for day in 1..=days_in_month(year, month) {
                    assert!(is_valid(year, month, day));
                    assert_eq!(days_of(year, month, day), expected);
                    assert_eq!(date_of(expected), (year, month, day));
                    expected += 1;
                }
                assert!(!is_valid(year, month, days_in_month(year, month) + 1));
            }
        }
        assert_eq!(expected, 3_652_059);
        assert_eq!(days_of(1970, 1, 1), 719_162);
    }
}
