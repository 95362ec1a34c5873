//! A line per request on the screen, with the columns of biosnoop and the file.

use snowmelt_base::printable;

use super::event::RequestKind;
use super::pairing::{Asker, RequestDone};
use super::users::trimmed;

/// The heading.
pub fn heading() -> String {
    format!(
        "{:<11} {:<16} {:<8} {:<8} {} {:>12} {:>8} {:>9} {:>9} {}",
        "TIME(s)", "COMM", "PID", "DISK", "T", "SECTOR", "BYTES", "QUE(ms)", "LAT(ms)", "FILE"
    )
}

/// A request that is over; `of` is who asked for it, and the file.
pub fn line(request: &RequestDone, of: Option<(Asker, String)>, disk: &str, start_ns: u64) -> String {
    let ms = |ns: Option<u64>| ns.map_or("-".into(), |ns| format!("{:.3}", ns as f64 / 1e6));
    let kind = match request.op.kind {
        RequestKind::Read => 'R',
        RequestKind::Write => 'W',
        RequestKind::Discard => 'D',
        RequestKind::Flush => 'F',
        RequestKind::Other => 'N',
    };
    // Names may hold anything, also what a terminal obeys.
    let comm = of.as_ref().map_or("?".into(), |(asker, _)| String::from_utf8_lossy(trimmed(&asker.comm)));
    let (comm, file) = (printable::line(&comm), of.as_ref().map_or("-", |(_, file)| file));
    let pid = of.as_ref().map_or("-".into(), |(asker, _)| asker.pid.to_string());
    format!(
        "{:<11.6} {:<16} {:<8} {:<8} {} {:>12} {:>8} {:>9} {:>9} {}",
        request.completed_ns.saturating_sub(start_ns) as f64 / 1e9,
        comm,
        pid,
        disk,
        kind,
        request.sector,
        u64::from(request.sectors) * 512,
        ms(request.queue_ns()),
        ms(request.device_ns()),
        printable::line(file),
    )
}

#[cfg(test)]
mod tests {
    use super::super::event::Operation;
    use super::*;

    #[test]
    fn columns_stand_below_their_names() {
        let mut comm = [0; 16];
        comm[..2].copy_from_slice(b"dd");
        let request = RequestDone {
            sector: 2048,
            sectors: 16,
            op: Operation::parse(b"R"),
            queued_ns: 1_000_000,
            issued_ns: 1_250_000,
            completed_ns: 3_500_000,
            asker: None,
            error: 0,
        };
        let asker = Asker { pid: 4711, ours: true, user: 0, comm };
        let line = line(&request, Some((asker, "/data/t".into())), "vda", 500_000);
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(
            words,
            ["0.003000", "dd", "4711", "vda", "R", "2048", "8192", "0.250", "2.250", "/data/t"]
        );
        let place = |text: &str, word: &str| text.find(word).map(|at| at + word.len());
        assert_eq!(place(&heading(), "LAT(ms)"), place(&line, "2.250"));
        let unknown = super::line(&RequestDone { queued_ns: 0, ..request }, None, "vda", 0);
        assert!(unknown.contains(" ?  ") && unknown.ends_with("     2.250 -"), "{unknown}");
        let mut comm = [0; 16];
        comm[..8].copy_from_slice(b"a\x1b[2J\nb\0");
        let hostile = Some((Asker { comm, ..asker }, "/data/\u{1b}]0;x\u{7}\u{202e}y".to_owned()));
        let hostile = super::line(&request, hostile, "vda", 0);
        assert!(!hostile.contains(char::is_control) && !hostile.contains('\u{202e}'), "{hostile:?}");
        assert!(hostile.contains(r"\u{1b}[2J\nb") && hostile.ends_with(r"\u{202e}y"), "{hostile}");
    }
}
