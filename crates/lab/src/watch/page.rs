//! A watch as a page: everything on the same axis of time.

use super::counted::Counted;
use super::layers::{self, Layers};
use super::observe::Observed;
use super::second::Second;
use super::{Total, phase};
use crate::group::GroupMemory;
use crate::report::{Axis, Column, Figure, Plot, Report, Section, Series, Table, Unit};
use crate::size::about;
use crate::trace::{self, session::Traced};

type Value<'a> = dyn Fn(&Second) -> f64 + 'a;

pub(super) fn report(
    title: &str,
    observed: &Observed,
    total: &Total,
    layers: &[Layers],
    counted: &[Counted],
    traced: Option<&Traced>,
) -> Report {
    let Observed { seconds, phases, .. } = observed;
    let mut report = Report::new(title);
    report.summary = words(total);
    report.sections = over_time(seconds, total.devices.keys());
    report.sections.push(Section::new("Memory", memory(seconds)));
    report.sections.extend(counted.iter().map(|counted| counted.section(phases)));
    if !phases.is_empty() {
        phase::draw_on(&mut report.sections, phases);
        report.sections.insert(0, Section::new("Phases", vec![phase::table("Phase by phase", phases)]));
    }
    report.sections.extend(layers::section(layers));
    report.sections.push(Section::new("In total", totals(total)));
    if let Some(traced) = traced {
        report.sections.extend(trace::sections(traced, None));
    }
    report
}

/// Pictures of processors, of the program's I/O and of these devices.
pub fn over_time<'a>(seconds: &[Second], devices: impl Iterator<Item = &'a String>) -> Vec<Section> {
    let mut sections = vec![
        Section::new("Processors", processors(seconds)),
        Section::new("The program's I/O", program_io(seconds)),
    ];
    let device = |name: &String| Section::new(format!("Device {name}"), device_figures(seconds, name));
    sections.extend(devices.map(device));
    sections
}

fn words(total: &Total) -> Vec<String> {
    let mut words = vec![format!(
        "{:.1} s, {:.1} s of processor time ({:.0} % of it in the kernel); {} of memory at most.",
        total.seconds,
        total.user_s + total.system_s,
        total.system_s / (total.user_s + total.system_s).max(1e-9) * 100.0,
        about(total.rss_max_bytes as f64)
    )];
    words.push(format!(
        "It asked for {} in {} read calls and got {} from storage; it gave {} to {} write calls and made {} to be written.",
        about(total.io.rchar as f64),
        total.io.syscr,
        about(total.io.read_bytes as f64),
        about(total.io.wchar as f64),
        total.io.syscw,
        about(total.io.write_bytes as f64)
    ));
    if let Some(group) = total.group {
        words.push(format!(
            "Its control group had {} of memory at most, page cache included; the limit was hit {} times, {} \
             processes were killed for it.",
            about(group.most_bytes as f64),
            group.limit_hits,
            group.killed
        ));
    }
    if let Some(caps) = &total.caps {
        words.push(format!("Its I/O was capped: {caps}."));
    }
    if let Some(code) = total.code {
        words.push(format!("It ended with code {code}."));
    }
    words
}

fn lines(title: &str, label: &str, unit: Unit, seconds: &[Second], series: &[(&str, &Value<'_>)]) -> Figure {
    let series = series.iter().map(|(name, value)| {
        Series::new(*name, seconds.iter().map(|second| (second.end_s, value(second))).collect())
    });
    Figure::Lines(Plot {
        title: title.into(),
        note: String::new(),
        x: Axis::new("time since the start", Unit::Seconds),
        y: Axis::new(label, unit),
        series: series.collect(),
    })
}

/// Busy share of each processor, where there are few enough to be told apart.
fn each_processor(seconds: &[Second]) -> Option<Figure> {
    const MOST: usize = 16;
    let cpus = seconds.iter().map(|second| second.cpus.len()).max().unwrap_or(0);
    let busy = |cpu: usize| {
        let of = |second: &Second| second.cpus.get(cpu).map_or(0.0, |c| c.user + c.system);
        Series::new(format!("CPU {cpu}"), seconds.iter().map(|s| (s.end_s, of(s))).collect())
    };
    (2..=MOST).contains(&cpus).then(|| {
        Figure::Lines(Plot {
            title: "Each processor".into(),
            note: String::new(),
            x: Axis::new("time since the start", Unit::Seconds),
            y: Axis::new("user and system", Unit::Percent),
            series: (0..cpus).map(busy).collect(),
        })
    })
}

fn processors(seconds: &[Second]) -> Vec<Figure> {
    let mut figures = vec![
        lines(
            "All processors",
            "share of their time",
            Unit::Percent,
            seconds,
            &[
                ("user", &|s| s.cpu.user),
                ("system", &|s| s.cpu.system),
                ("I/O wait", &|s| s.cpu.iowait),
                ("steal", &|s| s.cpu.steal),
            ],
        ),
        lines(
            "The program",
            "processors used",
            Unit::Plain,
            seconds,
            &[("user", &|s| s.program.user), ("system", &|s| s.program.system)],
        ),
    ];
    figures.extend(each_processor(seconds));
    figures
}

fn program_io(seconds: &[Second]) -> Vec<Figure> {
    vec![
        lines(
            "Bytes the program read",
            "per second",
            Unit::BytesPerSecond,
            seconds,
            &[
                ("asked of calls", &|s| s.program.read_asked_bytes_per_s),
                ("from storage", &|s| s.program.read_storage_bytes_per_s),
            ],
        ),
        lines(
            "Bytes the program wrote",
            "per second",
            Unit::BytesPerSecond,
            seconds,
            &[
                ("given to calls", &|s| s.program.write_asked_bytes_per_s),
                ("to storage", &|s| s.program.write_storage_bytes_per_s),
            ],
        ),
        lines(
            "Calls and faults",
            "per second",
            Unit::Plain,
            seconds,
            &[
                ("read calls", &|s| s.program.read_calls_per_s),
                ("write calls", &|s| s.program.write_calls_per_s),
                ("major faults", &|s| s.program.major_faults_per_s),
            ],
        ),
    ]
}

fn device_figures(seconds: &[Second], device: &str) -> Vec<Figure> {
    let of = |value: fn(&super::iostat::DeviceSecond) -> f64| {
        move |second: &Second| second.devices.get(device).map_or(0.0, value)
    };
    let (read, written) = (of(|d| d.rkb_s * 1024.0), of(|d| d.wkb_s * 1024.0));
    let (r_s, w_s) = (of(|d| d.r_s), of(|d| d.w_s));
    let (r_await, w_await) = (of(|d| d.r_await * 1e6), of(|d| d.w_await * 1e6));
    let (aqu, util) = (of(|d| d.aqu_sz), of(|d| d.util));
    let (rareq, wareq) = (of(|d| d.rareq_sz * 1024.0), of(|d| d.wareq_sz * 1024.0));
    vec![
        lines(
            &format!("{device}: throughput"),
            "rkB/s, wkB/s",
            Unit::BytesPerSecond,
            seconds,
            &[("read", &read), ("written", &written)],
        ),
        lines(
            &format!("{device}: requests"),
            "r/s, w/s",
            Unit::Plain,
            seconds,
            &[("r/s", &r_s), ("w/s", &w_s)],
        ),
        lines(
            &format!("{device}: size of requests"),
            "rareq-sz, wareq-sz",
            Unit::Bytes,
            seconds,
            &[("rareq-sz", &rareq), ("wareq-sz", &wareq)],
        ),
        lines(
            &format!("{device}: waiting"),
            "r_await, w_await",
            Unit::Nanoseconds,
            seconds,
            &[("r_await", &r_await), ("w_await", &w_await)],
        ),
        lines(&format!("{device}: queue"), "aqu-sz", Unit::Plain, seconds, &[("aqu-sz", &aqu)]),
        lines(
            &format!("{device}: time with any request under way"),
            "%util",
            Unit::Percent,
            seconds,
            &[("%util", &util)],
        ),
    ]
}

fn memory(seconds: &[Second]) -> Vec<Figure> {
    let mut figures = vec![
        lines(
            "Memory of the program",
            "resident",
            Unit::Bytes,
            seconds,
            &[("resident", &|s| s.program.rss_bytes as f64)],
        ),
        lines(
            "Memory of the machine",
            "bytes",
            Unit::Bytes,
            seconds,
            &[
                ("available", &|s| s.memory.available as f64),
                ("page cache", &|s| s.memory.cached as f64),
                ("dirty", &|s| s.memory.dirty as f64),
            ],
        ),
    ];
    if seconds.iter().any(|second| second.group.is_some()) {
        let of = |value: fn(&GroupMemory) -> u64| {
            move |second: &Second| second.group.as_ref().map_or(0.0, |group| value(group) as f64)
        };
        let (all, files, limit) = (of(|g| g.bytes), of(|g| g.file_bytes), of(|g| g.limit_bytes.unwrap_or(0)));
        let mut series: Vec<(&str, &Value<'_>)> = vec![("in use", &all), ("of these, of files", &files)];
        if seconds.iter().any(|second| second.group.is_some_and(|group| group.limit_bytes.is_some())) {
            series.push(("limit", &limit));
        }
        figures.push(lines(
            "Memory of the control group",
            "with its page cache",
            Unit::Bytes,
            seconds,
            &series,
        ));
    }
    figures
}

fn totals(total: &Total) -> Vec<Figure> {
    let names = [
        "r/s", "rkB/s", "rrqm/s", "r_await", "rareq-sz", "w/s", "wkB/s", "wrqm/s", "w_await", "wareq-sz",
        "f/s", "aqu-sz", "%util",
    ];
    let mut columns = vec![Column::text("device")];
    columns.extend(names.map(Column::number));
    let rows = total.devices.iter().map(|(name, d)| {
        let mut row = vec![name.clone()];
        let values = [
            d.r_s, d.rkb_s, d.rrqm_s, d.r_await, d.rareq_sz, d.w_s, d.wkb_s, d.wrqm_s, d.w_await, d.wareq_sz,
            d.f_s, d.aqu_sz, d.util,
        ];
        row.extend(values.map(|v| format!("{v:.2}")));
        row
    });
    let devices = Table {
        title: "Devices, over the whole time".into(),
        note: "Names and units are those of iostat -x: await in ms, sizes in KiB.".into(),
        columns,
        rows: rows.collect(),
    };
    let program = [
        ("processor time, user", format!("{:.2} s", total.user_s)),
        ("processor time, system", format!("{:.2} s", total.system_s)),
        ("minor faults", total.minor_faults.to_string()),
        ("major faults", total.major_faults.to_string()),
        ("read calls", total.io.syscr.to_string()),
        ("bytes asked", about(total.io.rchar as f64)),
        ("bytes from storage", about(total.io.read_bytes as f64)),
        ("write calls", total.io.syscw.to_string()),
        ("bytes given", about(total.io.wchar as f64)),
        ("bytes to storage", about(total.io.write_bytes as f64)),
        ("most memory", about(total.rss_max_bytes as f64)),
    ];
    let program = Table {
        title: "The program, in total".into(),
        note: String::new(),
        columns: vec![Column::text(""), Column::number("sum")],
        rows: program.into_iter().map(|(name, value)| vec![name.to_string(), value]).collect(),
    };
    vec![Figure::Table(devices), Figure::Table(program)]
}
