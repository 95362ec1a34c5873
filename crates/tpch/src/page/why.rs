//! The reason: what was asked of the kernel beside what the device got, for Q1 and for random
//! reads of the same file.

use snowmelt_lab::read::CellResult;
use snowmelt_lab::report::{Bar, Bars, Column, Figure, Section, Table, Unit};
use snowmelt_lab::size::{about, exact};

use super::q1::intervals;
use crate::result::{QueryRun, State, TpchResult, Way};

/// Two ratios within this are the same.
const SAME: f64 = 0.1;

/// A line of the table of amplification.
struct Amplified {
    name: String,
    /// Read calls, and bytes asked by them.
    asked: (f64, f64),
    /// Requests of the device, and their bytes.
    got: (f64, f64),
    mb_per_s: f64,
    /// Standard deviation over mean of the throughput from second to second.
    variation: Option<f64>,
}

impl Amplified {
    fn per_call(&self) -> f64 {
        self.got.0 / self.asked.0.max(1.0)
    }
}

fn of_query(result: &TpchResult, run: &QueryRun) -> Option<Amplified> {
    let phase = run.phase.as_ref()?;
    let bytes = run.blocks_read as f64 * 8192.0;
    let rates: Vec<f64> = intervals(result, run)
        .iter()
        .filter_map(|(_, second)| second.devices.get(&result.device))
        .map(|device| device.rkb_s)
        .collect();
    Some(Amplified {
        name: format!("Q1 {}, read-ahead {} KiB, {}", run.way.words(), run.read_ahead_kb, run.state.words()),
        asked: (run.blocks_read as f64, bytes),
        got: (phase.device_reads(), phase.device_read_bytes()),
        mb_per_s: phase.device_read_bytes() / 1e6 / phase.seconds.max(1e-9),
        variation: variation(&rates),
    })
}

/// Of at least four intervals, the first and last of which are left out: they are cut by the
/// query's begin and end.
fn variation(rates: &[f64]) -> Option<f64> {
    let inner = rates.get(1..rates.len().checked_sub(1)?).filter(|inner| inner.len() >= 2)?;
    let mean = inner.iter().sum::<f64>() / inner.len() as f64;
    let squares = inner.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / (inner.len() - 1) as f64;
    (mean > 0.0).then(|| squares.sqrt() / mean)
}

fn of_cell(cell: &CellResult) -> Amplified {
    let read_ahead = cell.cell.read_ahead_kb.map_or(String::new(), |kb| format!(", read-ahead {kb} KiB"));
    let align = if cell.cell.align == cell.cell.bs {
        "aligned".into()
    } else {
        format!("at multiples of {}", exact(cell.cell.align))
    };
    let requests = cell.requests_per_io.unwrap_or(0.0) * cell.total_ios as f64;
    Amplified {
        name: format!(
            "random {}, {align}, {}{read_ahead}",
            exact(cell.cell.bs),
            if cell.cell.direct { "direct" } else { "buffered" }
        ),
        asked: (cell.total_ios as f64, cell.io_bytes as f64),
        got: (requests, cell.amplification.unwrap_or(0.0) * cell.io_bytes as f64),
        mb_per_s: cell.bw_bytes / 1e6,
        variation: Some(cell.steadiness.variation),
    }
}

fn all(result: &TpchResult) -> Vec<Amplified> {
    let q1 = result.queries.iter().filter(|run| run.way != Way::Planned && run.state == State::Cold);
    let mut all: Vec<Amplified> = q1.filter_map(|run| of_query(result, run)).collect();
    all.extend(result.random.iter().map(of_cell));
    all
}

/// The index scan without read-ahead, aligned random reads of 8 KiB buffered, and direct.
fn compared(result: &TpchResult) -> Option<[Amplified; 3]> {
    let scan = result
        .queries
        .iter()
        .find(|run| run.way == Way::IndexScan && run.state == State::Cold && run.read_ahead_kb == 0)?;
    let cell = |direct: bool| {
        let wanted = |cell: &&CellResult| {
            let c = &cell.cell;
            c.bs == 8192 && c.align == 8192 && c.direct == direct && (direct || c.read_ahead_kb == Some(0))
        };
        result.random.iter().find(wanted).map(of_cell)
    };
    Some([of_query(result, scan)?, cell(false)?, cell(true)?])
}

pub(super) fn words(result: &TpchResult) -> Vec<String> {
    let Some([scan, buffered, direct]) = compared(result) else { return Vec::new() };
    let given = scan.got.1 / 8192.0;
    let mut words = vec![format!(
        "Q1's index scan, cold and with read-ahead 0, asked the kernel for {:.0} blocks of 8 KiB that were not in \
         PostgreSQL's buffers. The page cache answered {:.1} % of them; for each of the others the device got {:.2} \
         requests, of {}.",
        scan.asked.0,
        (1.0 - given / scan.asked.0.max(1.0)).max(0.0) * 100.0,
        scan.got.0 / given.max(1.0),
        about(scan.got.1 / scan.got.0.max(1.0))
    )];
    words.push(cause(&scan, &buffered, &direct));
    if let Some(variation) = scan.variation {
        words.push(format!(
            "From second to second the index scan's throughput varies by {:.0} % of its mean, that of random reads by \
             {:.0} % buffered and {:.0} % direct. Where the page cache holds the whole table the former is mostly the \
             way down as it fills.",
            variation * 100.0,
            buffered.variation.unwrap_or(0.0) * 100.0,
            direct.variation.unwrap_or(0.0) * 100.0
        ));
    }
    words
}

/// Whether the pieces come from buffered access.
fn cause(scan: &Amplified, buffered: &Amplified, direct: &Amplified) -> String {
    let size = |of: &Amplified| of.got.1 / of.got.0.max(1.0);
    let (of_scan, of_buffered, of_direct) = (size(scan), size(buffered), size(direct));
    let ratios = format!(
        "random reads of the same file became {:.2} requests of {} each when buffered with read-ahead 0, and {:.2} of \
         {} when direct",
        buffered.per_call(),
        about(of_buffered),
        direct.per_call(),
        about(of_direct)
    );
    let same = (of_scan / of_buffered.max(1.0) - 1.0).abs() <= SAME;
    let splits = buffered.per_call() > direct.per_call() * (1.0 + SAME);
    match (same, splits) {
        (true, true) => format!(
            "As in E4, the pieces come from access through the page cache, not from the query: {ratios}."
        ),
        (true, false) => {
            format!("Unlike in E4, buffered access does not split reads on this kernel and device: {ratios}.")
        }
        (false, _) => format!(
            "The requests of the index scan are of another size than those of random reads, so buffered access alone \
             does not explain them: {ratios}."
        ),
    }
}

pub(super) fn section(result: &TpchResult) -> Option<Section> {
    let all = all(result);
    if all.is_empty() {
        return None;
    }
    let columns =
        ["asked", "of", "device requests", "of", "requests ÷ asked", "bytes ÷ asked", "MB/s", "varies by"];
    let row = |of: &Amplified| {
        let mean = |(count, bytes): (f64, f64)| if count < 0.5 { "-".into() } else { about(bytes / count) };
        vec![
            of.name.clone(),
            format!("{:.0}", of.asked.0),
            mean(of.asked),
            format!("{:.0}", of.got.0),
            mean(of.got),
            format!("{:.3}", of.per_call()),
            format!("{:.3}", of.got.1 / of.asked.1.max(1.0)),
            format!("{:.1}", of.mb_per_s),
            of.variation.map_or("-".into(), |v| format!("{:.0} %", v * 100.0)),
        ]
    };
    let table = Table {
        title: "Amplification: what was asked, what the device got".into(),
        note: "Of Q1: blocks that PostgreSQL read from its files; many of them came from the page cache, where the \
               index scan finds a block again. Of random reads: the benchmark's own. Requests by /proc/diskstats."
            .into(),
        columns: [Column::text("reads")].into_iter().chain(columns.map(Column::number)).collect(),
        rows: all.iter().map(row).collect(),
    };
    let bars = Bars {
        title: "Mean size of a request to the device".into(),
        note: String::new(),
        label: "bytes".into(),
        unit: Unit::Bytes,
        bars: all
            .iter()
            .map(|of| Bar {
                name: of.name.clone(),
                value: of.got.1 / of.got.0.max(1.0),
                range: None,
                group: usize::from(of.name.starts_with("random")),
            })
            .collect(),
    };
    let text = "E4 (2012) asked for 8 KiB at multiples of 512 bytes and saw 4 KiB pieces at the device wherever the page \
                cache was between: 2.86 requests for each read, 4.83 for 16 KiB, and one for each (1.17 on a RAID) with \
                O_DIRECT. PostgreSQL reads whole blocks of 8 KiB, aligned. Version 15 has no direct I/O for its files: \
                the direct rows are those of the benchmark.";
    Some(
        Section::new("Why the index scan gets what it gets", vec![Figure::Table(table), Figure::Bars(bars)])
            .with_text(text),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amplified(calls: f64, requests: f64, bytes: f64) -> Amplified {
        Amplified {
            name: String::new(),
            asked: (calls, calls * 8192.0),
            got: (requests, bytes),
            mb_per_s: 1.0,
            variation: None,
        }
    }

    #[test]
    fn the_cause_is_told_only_where_the_figures_bear_it() {
        let pieces = |calls: f64| amplified(calls, calls * 2.0, calls * 8192.0);
        let whole = |calls: f64| amplified(calls, calls, calls * 8192.0);
        assert!(cause(&pieces(500.0), &pieces(100.0), &whole(100.0)).starts_with("As in E4"));
        assert!(cause(&whole(500.0), &whole(100.0), &whole(100.0)).starts_with("Unlike in E4"));
        assert!(cause(&whole(500.0), &pieces(100.0), &whole(100.0)).contains("another size"));
    }

    #[test]
    fn throughput_varies_between_whole_seconds() {
        assert_eq!(variation(&[1.0, 10.0, 10.0, 10.0, 3.0]), Some(0.0));
        assert!((variation(&[0.0, 5.0, 15.0, 0.0]).unwrap() - 0.5_f64.sqrt()).abs() < 1e-3);
        assert_eq!(variation(&[1.0, 2.0, 3.0]), None);
        assert_eq!(variation(&[]), None);
    }
}
