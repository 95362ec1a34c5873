//! `snowmelt-lab device check`: a model, or a device that was made, against the published
//! figures.
//!
//! The model is measured in virtual time, which is exact and takes a second. A device that
//! stands is measured through its block device as well, in real time; there the figures include
//! this machine.

use std::path::PathBuf;

use serde::Serialize;
use snowmelt_io::DeviceModel;

use super::control::{self, Ask};
use super::expected::{self, Expected, Scope, number};
use super::measure::{DeviceLoad, DeviceTarget};
use super::spec;
use super::state::{self, Record};
use crate::device::read_ahead::ReadAhead;
use crate::machine::BlockDevice;
use crate::report::{Axis, Column, Figure, Plot, Report, Scale, Section, Series, Table};
use crate::run::arguments::Given;
use crate::target::held::Busy;
use crate::target::in_use::Claim;
use crate::undo::{Undo, signals};
use crate::{LabError, Run, size};

/// Check a model or device against the published figures.
#[derive(Debug, clap::Args)]
pub struct CheckArgs {
    #[command(flatten)]
    pub given: Given,
    /// Name of a device that was made: measures its block device too
    #[arg(required_unless_present = "model")]
    pub name: Option<String>,
    /// Measure this model in virtual time only; needs no rights
    #[arg(long, conflicts_with = "name")]
    pub model: Option<String>,
    /// Also what can only be measured by writing to the device: its contents are lost
    #[arg(long)]
    pub destroy: bool,
    #[command(flatten)]
    pub busy: Busy,
    /// Folder for the report (default snowmelt-lab/device-check-TIME)
    #[arg(long)]
    pub out: Option<PathBuf>,
}

/// A published figure, measured.
#[derive(Debug, Serialize)]
struct Checked {
    model: String,
    what: &'static str,
    unit: &'static str,
    published: String,
    source: &'static str,
    /// In virtual time.
    in_model: f64,
    /// Through the block device.
    on_device: Option<f64>,
    agrees: bool,
}

/// Runs the command; an error when something is further from its source than it may be.
pub fn run(args: &CheckArgs) -> Result<(), LabError> {
    let is_model = args.name.is_none();
    args.given.refuse_idle(&[("destroy", is_model, "a model has no contents; leave it out")])?;
    let record = args.name.as_deref().map(state::load).transpose()?;
    let undo = Undo::open(state::CHECKER)?;
    let _claim = match &record {
        Some(record) => take(args, record, &undo)?,
        None => None,
    };
    let name = match (&record, &args.model) {
        (Some(record), _) => record.spec.model_name.clone(),
        (None, Some(model)) => model.clone(),
        (None, None) => unreachable!("one of them is required"),
    };
    let model = match &record {
        Some(record) => record.spec.model.clone(),
        None => spec::model(&name, 1)?,
    };
    let figures = expected::published(&name);
    let small = too_small(&model, record.as_ref());
    let measured = record.as_ref().filter(|_| small.device.is_none());
    let mut run = Run::create("device-check", args.out.as_deref())?;
    run.show_by("figures", &["what"], &["in_model", "on_device"]);
    if record.is_none() {
        run.untimed(); // virtual time
    }
    let mut lines = run.lines("figures")?;
    let mut checked = Vec::new();
    crate::say!("{:<58} {:>14} {:>10} {:>10}", "", "published", "model", "device");
    for figure in &figures {
        let one = check(figure, &name, &model, measured, args.destroy)?;
        print(&one);
        lines.write(&one)?;
        checked.push(one);
    }
    if figures.is_empty() {
        crate::say!("nothing is published about {name}; its curves are in the report");
    }
    small.words().for_each(|why| crate::say!("{why}"));
    if let Some(record) = &record {
        run.device(block_device(record)?);
        let status = control::status_of(record)?;
        status.doubt().into_iter().for_each(|doubt| run.doubt(doubt));
        let l = status.lateness;
        crate::say!("lateness p50 {} µs, p99 {} µs", l.p50_ns / 1000, l.p99_ns / 1000);
    }
    let wrong: Vec<&Checked> = checked.iter().filter(|one| !one.agrees).collect();
    undo.undo()?;
    let page = run.finish(report(&name, &model, &checked, &small)?)?;
    crate::say!("{}", page.display());
    match wrong.first() {
        None => Ok(()),
        Some(first) => Err(LabError::Argument(format!(
            "{} of {} figures do not agree with their source, for example: {}",
            wrong.len(),
            checked.len(),
            first.what
        ))),
    }
}

/// Parts of a check that are left out: the device or the model has too few bytes for them.
struct TooSmall {
    /// The published figures on the block device.
    device: Option<String>,
    /// The curves of the model.
    curves: Option<String>,
}

impl TooSmall {
    fn words(&self) -> impl Iterator<Item = &String> {
        self.device.iter().chain(&self.curves)
    }
}

/// So many times what a disk holds in its buffers must be there, so that random places are not in
/// them.
const LEAST_BUFFERS: u64 = 16;

/// The arm of a disk that is not there whole has shorter ways than its figures were published for;
/// and a disk that its own buffers hold has no ways at all.
fn too_small(model: &DeviceModel, record: Option<&Record>) -> TooSmall {
    let whole = model.capacity_bytes().unwrap_or(0);
    let device = record.filter(|record| model.has_arm() && record.spec.size_bytes < whole / 4096 * 4096);
    let buffers = match model {
        DeviceModel::Disk(disk) => disk.segments as u64 * disk.segment_bytes + disk.write_cache_bytes,
        _ => 0,
    };
    let least = LEAST_BUFFERS * buffers;
    TooSmall {
        device: device.map(|record| {
            format!(
                "The device is {} of a disk of {}: its arm goes shorter ways than the published figures are for, so \
                 only the model was measured. `device create` without --size makes the whole disk.",
                size::about(record.spec.size_bytes as f64),
                size::about(whole as f64)
            )
        }),
        curves: (model.has_arm() && whole < least).then(|| {
            format!(
                "The model has {}, and buffers of {}: random reads would be answered from these, so there are no \
                 curves. They need a capacity_bytes of at least {}.",
                size::about(whole as f64),
                size::about(buffers as f64),
                size::about(least as f64)
            )
        }),
    }
}

/// Holds the device's disks; takes it for itself where it is written to.
fn take(args: &CheckArgs, record: &Record, undo: &Undo) -> Result<Option<Claim>, LabError> {
    let stop = signals::stop_on_signal();
    match args.destroy {
        true => args.busy.take(&record.device, true, &[], undo, stop.flag()).map(Some),
        false => args.busy.hold(&[block_device(record)?], undo, stop.flag()).map(|()| None),
    }
}

fn block_device(record: &Record) -> Result<BlockDevice, LabError> {
    BlockDevice::find(&record.device)?
        .ok_or_else(|| LabError::Argument(format!("{} is no block device any more", record.device.display())))
}

fn check(
    figure: &Expected,
    name: &str,
    model: &DeviceModel,
    record: Option<&Record>,
    destroy: bool,
) -> Result<Checked, LabError> {
    let target = DeviceTarget::model(model, capacity(model));
    if figure.scope == Scope::Spent {
        target.spend_credits();
    }
    let in_model = (figure.measure)(&target)?;
    let measurable = match figure.scope {
        Scope::Model => false,
        Scope::Read | Scope::Spent => true,
        Scope::Write => destroy,
    };
    let on_device = record.filter(|_| measurable).map(|record| on_device(figure, record)).transpose()?;
    let agrees = figure.published.agrees(in_model) && on_device.is_none_or(|v| figure.published.agrees(v));
    Ok(Checked {
        model: name.to_string(),
        what: figure.what,
        unit: figure.unit,
        published: figure.published.show(),
        source: figure.source,
        in_model,
        on_device,
        agrees,
    })
}

fn on_device(figure: &Expected, record: &Record) -> Result<f64, LabError> {
    control::ask(record, Ask::Reset)?;
    if figure.scope == Scope::Spent {
        control::ask(record, Ask::SpendCredits)?;
    }
    let undo = Undo::open(state::CHECKER)?;
    if let Some(read_ahead) = ReadAhead::read(&block_device(record)?) {
        read_ahead.hold(&undo)?;
    }
    let target = DeviceTarget::block_device(&record.device, figure.scope == Scope::Write)?;
    Ok((figure.measure)(&target)?)
}

fn capacity(model: &DeviceModel) -> u64 {
    model.capacity_bytes().map_or(1 << 40, |bytes| bytes / 4096 * 4096)
}

fn print(one: &Checked) {
    let device = one.on_device.map_or("-".to_string(), number);
    let verdict = if one.agrees { "" } else { "  DISAGREES" };
    let what = format!("{} [{}]", one.what, one.unit);
    crate::say!("{what:<58} {:>14} {:>10} {device:>10}{verdict}", one.published, number(one.in_model));
}

fn report(
    name: &str,
    model: &DeviceModel,
    checked: &[Checked],
    small: &TooSmall,
) -> Result<Report, LabError> {
    let mut report = Report::new(format!("The emulated device {name} against published figures"));
    let agreeing = checked.iter().filter(|one| one.agrees).count();
    report.summary.push(match checked.len() {
        0 => format!("Nothing is published about {name}."),
        all => format!("{agreeing} of {all} figures agree with their sources."),
    });
    report.summary.extend(small.words().cloned());
    let mut section = Section { title: "Figures".into(), ..Section::default() };
    section.figures.push(Figure::Table(table(checked)));
    report.sections.push(section);
    if small.curves.is_some() {
        return Ok(report);
    }
    let mut curves = Section { title: "The model's curves, in virtual time".into(), ..Section::default() };
    curves.figures.push(Figure::Lines(depth_curve(model)?));
    if let DeviceModel::Disk(d) = model {
        curves.figures.push(Figure::Lines(seek_curve(model, d.capacity_bytes)?));
    }
    report.sections.push(curves);
    Ok(report)
}

fn table(checked: &[Checked]) -> Table {
    let column = |name: &str, numeric| Column { name: name.into(), numeric, ..Column::default() };
    let row = |one: &Checked| {
        vec![
            format!("{} ({})", one.what, one.unit),
            one.published.clone(),
            number(one.in_model),
            one.on_device.map_or("–".into(), number),
            if one.agrees { "yes".into() } else { "NO".into() },
            one.source.to_string(),
        ]
    };
    Table {
        title: "Measured and published".into(),
        note: "Agreement is 10 % of a value, or inside a range.".into(),
        columns: vec![
            column("figure", false),
            column("published", true),
            column("model", true),
            column("block device", true),
            column("agrees", false),
            column("source", false),
        ],
        rows: checked.iter().map(row).collect(),
    }
}

fn depth_curve(model: &DeviceModel) -> Result<Plot, LabError> {
    let mut points = Vec::new();
    for depth in [1, 2, 4, 8, 16, 32, 64, 128] {
        let target = DeviceTarget::model(model, capacity(model));
        let load = DeviceLoad { depth, requests: 2000 + 50 * depth, block: 4096, write: false };
        points.push((depth as f64, target.random(load, 3)?.per_s()));
    }
    Ok(Plot {
        title: "Random reads of 4 KiB against depth".into(),
        note: "What more requests at once are worth.".into(),
        x: Axis { label: "requests outstanding".into(), scale: Scale::Ordinal, ..Axis::default() },
        y: Axis { label: "reads per second".into(), ..Axis::default() },
        series: vec![Series { name: "model".into(), points, ..Series::default() }],
    })
}

fn seek_curve(model: &DeviceModel, capacity_bytes: u64) -> Result<Plot, LabError> {
    let mut points = Vec::new();
    for way in [0.0002, 0.001, 0.005, 0.02, 0.06, 0.12, 0.2, 0.3, 0.41, 0.5, 0.61, 0.75, 0.9, 0.998] {
        let target = DeviceTarget::model(model, capacity(model));
        points.extend(target.seek_ms(way, capacity_bytes)?.map(|ms| (way * 100.0, ms)));
    }
    Ok(Plot {
        title: "Seek time against distance".into(),
        note: "As measured from outside: the shortest of many reads.".into(),
        x: Axis { label: "way, % of the full stroke".into(), ..Axis::default() },
        y: Axis { label: "ms".into(), ..Axis::default() },
        series: vec![Series { name: "model".into(), points, ..Series::default() }],
    })
}

#[cfg(test)]
mod tests {
    use snowmelt_io::MODEL_NAMES;

    use super::*;

    /// In virtual time the models are exact: every published figure of every named model.
    #[test]
    fn every_model_agrees_with_what_is_published() {
        let mut wrong = Vec::new();
        for name in MODEL_NAMES.into_iter().filter(|name| *name != "hdd") {
            let model = spec::model(name, 1).expect(name);
            let figures = expected::published(name);
            assert!(figures.len() >= 3, "{name}");
            for figure in &figures {
                let one = check(figure, name, &model, None, false).expect("measured");
                crate::tell!(
                    "{name}: {} [{}]: published {}, model {}",
                    one.what,
                    one.unit,
                    one.published,
                    number(one.in_model)
                );
                if !one.agrees {
                    wrong.push(one);
                }
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    #[test]
    fn what_has_too_few_bytes_for_a_check_is_told() {
        let DeviceModel::Disk(disk) = spec::model("hdd-10k", 1).expect("a model") else { panic!("a disk") };
        let of =
            |capacity_bytes| DeviceModel::Disk(snowmelt_io::DiskModel { capacity_bytes, ..disk.clone() });
        for (bytes, has_curves) in [(1 << 20, false), (16 << 20, false), (disk.capacity_bytes, true)] {
            let small = too_small(&of(bytes), None);
            assert_eq!((small.curves.is_none(), small.device.is_none()), (has_curves, true), "{bytes}");
            let report = report("x", &of(bytes), &[], &small).expect("measured");
            let told = report.summary.iter().any(|line| line.contains("capacity_bytes of at least"));
            let curves = report.sections.iter().flat_map(|section| &section.figures);
            let points = curves.filter_map(|figure| match figure {
                Figure::Lines(plot) => plot.series.first(),
                _ => None,
            });
            let mut points = points.flat_map(|series| &series.points).peekable();
            assert_eq!((told, points.peek().is_some()), (!has_curves, has_curves));
            assert!(points.all(|(_, ms)| *ms < 1e6), "no time that is none");
        }
        let volume = too_small(&spec::model("gp3", 1).expect("a model"), None);
        assert!(volume.words().next().is_none());
    }

    #[test]
    fn a_model_that_is_off_is_found_out() {
        let DeviceModel::Disk(d) = spec::model("hdd-10k", 1).expect("a model") else { panic!("a disk") };
        let slow = DeviceModel::Disk(snowmelt_io::DiskModel { rpm: 7200, seek_points: Vec::new(), ..d });
        let wrong = expected::published("hdd-10k")
            .iter()
            .filter(|figure| !check(figure, "hdd-10k", &slow, None, false).expect("measured").agrees)
            .count();
        assert!(wrong >= 2, "{wrong} figures noticed");
    }

    /// Volumes that lack one thing each: the figures about it disagree.
    #[test]
    fn a_volume_without_credits_tail_or_write_caps_is_found_out() {
        type Change = fn(&mut snowmelt_io::VolumeModel);
        let changes: [(&str, Change, &str); 6] = [
            ("gp2-100", |v| v.io_credits /= 2.0, "full credits last"),
            ("gp2-100", |v| v.tail_us *= 3.0, "99 of 100"),
            ("st1-500", |v| v.streams = 0, "merged"),
            ("azure-p10", |v| v.byte_credits = 0.0, "credits of bytes"),
            ("e3", |v| v.write_iops = None, "128 at once"),
            ("e3", |v| v.write_bytes_per_s = Some(20e6), "a copy"),
        ];
        for (name, change, part) in changes {
            let DeviceModel::Volume(mut v) = spec::model(name, 1).expect("a model") else {
                panic!("a volume")
            };
            change(&mut v);
            let model = DeviceModel::Volume(v);
            let figures = expected::published(name);
            let figure = figures.iter().find(|figure| figure.what.contains(part)).expect(part);
            let one = check(figure, name, &model, None, false).expect("measured");
            assert!(!one.agrees, "{name}: {} was {}", one.what, one.in_model);
        }
    }
}
