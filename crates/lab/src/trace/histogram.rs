//! Histograms by powers of two on the screen, as bpftrace and biolatency draw them.

use super::event::RequestKind;
use super::tally::Tally;
use crate::size::exact;

/// Characters of the longest bar.
const WIDTH: usize = 40;

/// A class and how many are in it.
type Class = (String, u64);

/// Latency and size of the requests of each kind, in lines.
pub fn lines(tally: &Tally) -> Vec<String> {
    let mut lines = Vec::new();
    for kind in [RequestKind::Read, RequestKind::Write, RequestKind::Discard] {
        let (latencies, name) = match (tally.d2c.get(&kind), tally.q2c.get(&kind)) {
            (Some(latencies), _) => (latencies, "D2C"),
            (None, Some(latencies)) => (latencies, "Q2C"),
            (None, None) => continue,
        };
        let powers = latencies.powers_of_two();
        let classes = powers.into_iter().map(|(from, n)| (class_of_time(from), n)).collect();
        lines.extend(drawn(&format!("{}: {name}", kind.as_str()), classes));
        lines.extend(drawn(&format!("{}: size", kind.as_str()), sizes(tally, kind)));
    }
    lines
}

/// `[64, 128) µs`.
pub fn class_of_time(from_us: u64) -> String {
    match from_us {
        us if us < 1 << 10 => format!("[{us}, {}) µs", us * 2),
        us if us < 1 << 20 => format!("[{}, {}) ms", us >> 10, us >> 9),
        us => format!("[{}, {}) s", us >> 20, us >> 19),
    }
}

/// Requests, or bios where there are none, by size.
fn sizes(tally: &Tally, kind: RequestKind) -> Vec<Class> {
    let has_requests = tally.has_requests();
    let mut powers = std::collections::BTreeMap::new();
    for size in tally.at_sizes(kind) {
        *powers.entry(size.bytes.max(1).ilog2()).or_insert(0) +=
            if has_requests { size.requests } else { size.bios };
    }
    powers.retain(|_, n| *n > 0);
    let ends = powers.keys().next().zip(powers.keys().next_back());
    let all = ends.into_iter().flat_map(|(first, last)| *first..=*last);
    let class = |power: u32| format!("[{}, {})", exact(1 << power), exact(2 << power));
    all.map(|power| (class(power), powers.get(&power).copied().unwrap_or(0))).collect()
}

fn drawn(title: &str, classes: Vec<Class>) -> Vec<String> {
    let most = classes.iter().map(|(_, n)| *n).max().unwrap_or(0);
    if most == 0 {
        return Vec::new();
    }
    let bar = |n: u64| "@".repeat((n * WIDTH as u64).div_ceil(most) as usize);
    let row = |(class, n): Class| format!("  {class:<18} {n:>10} |{:<WIDTH$}|", bar(n));
    std::iter::once(String::new())
        .chain(std::iter::once(title.to_owned()))
        .chain(classes.into_iter().map(row))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Latencies;

    #[test]
    fn classes_are_powers_of_two_without_gaps() {
        let mut latencies = Latencies::default();
        for us in [70, 100, 127, 600, 3000] {
            latencies.add(us * 1000);
        }
        let classes: Vec<Class> =
            latencies.powers_of_two().into_iter().map(|(from, n)| (class_of_time(from), n)).collect();
        let names: Vec<&str> = classes.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            names,
            ["[64, 128) µs", "[128, 256) µs", "[256, 512) µs", "[512, 1024) µs", "[1, 2) ms", "[2, 4) ms"]
        );
        assert_eq!(classes.iter().map(|(_, n)| *n).collect::<Vec<_>>(), [3, 0, 0, 1, 0, 1]);
        let lines = drawn("read: D2C", classes);
        assert_eq!(lines[1], "read: D2C");
        let stars = |line: &str| line.matches('@').count();
        assert_eq!((stars(&lines[2]), stars(&lines[3]), stars(&lines[5])), (WIDTH, 0, WIDTH.div_ceil(3)));
        assert!(drawn("x", vec![("a".into(), 0)]).is_empty());
        assert!(Latencies::default().powers_of_two().is_empty());
    }
}
