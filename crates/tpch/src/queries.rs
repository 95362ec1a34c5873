//! The 22 queries, with the specification's validation parameters.

/// Their number.
pub const COUNT: u32 = 22;

/// The text of query `number`, from 1, for data of this scale: Q11's fraction depends on it.
///
/// # Panics
/// There is no such query.
pub fn text(number: u32, scale: f64) -> String {
    let text = TEXTS[number.checked_sub(1).expect("queries count from 1") as usize];
    text.trim_end().replace("{fraction}", &format!("{:.10}", 0.0001 / scale))
}

const TEXTS: [&str; COUNT as usize] = [
    include_str!("queries/q01.sql"),
    include_str!("queries/q02.sql"),
    include_str!("queries/q03.sql"),
    include_str!("queries/q04.sql"),
    include_str!("queries/q05.sql"),
    include_str!("queries/q06.sql"),
    include_str!("queries/q07.sql"),
    include_str!("queries/q08.sql"),
    include_str!("queries/q09.sql"),
    include_str!("queries/q10.sql"),
    include_str!("queries/q11.sql"),
    include_str!("queries/q12.sql"),
    include_str!("queries/q13.sql"),
    include_str!("queries/q14.sql"),
    include_str!("queries/q15.sql"),
    include_str!("queries/q16.sql"),
    include_str!("queries/q17.sql"),
    include_str!("queries/q18.sql"),
    include_str!("queries/q19.sql"),
    include_str!("queries/q20.sql"),
    include_str!("queries/q21.sql"),
    include_str!("queries/q22.sql"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fraction_follows_the_scale() {
        assert!(text(11, 1.0).contains("* 0.0001000000\n"));
        assert!(text(11, 0.01).contains("* 0.0100000000\n"));
        for number in 1..=COUNT {
            let text = text(number, 1.0);
            assert!(!text.contains('{') && !text.contains(';'), "Q{number}");
        }
    }
}
