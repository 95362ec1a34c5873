//! A phase of a watch: the time between two marks, in sums.

use std::collections::BTreeMap;
use std::time::Instant;

use serde::Serialize;

use super::iostat::DeviceSecond;
use super::second::Reading;
use crate::machine::cpu::Cpu;
use crate::machine::program::ProcessIo;
use crate::report::{Band, Column, Figure, Section, Table};
use crate::size::about;

/// One phase.
#[derive(Debug, Clone, Serialize)]
pub struct Phase {
    /// The text of its mark; empty before the first and after one that only ended a phase.
    pub name: String,
    /// Its begin, seconds since the watch began.
    pub begin_s: f64,
    /// Its end.
    pub end_s: f64,
    /// Its length.
    pub seconds: f64,
    /// Processor time of the program in user mode.
    pub user_s: f64,
    /// And in the kernel.
    pub system_s: f64,
    /// Page faults of the program that waited for storage.
    pub major_faults: u64,
    /// Calls and bytes of the program.
    pub io: ProcessIo,
    /// Shares of all processors, in percent.
    pub cpu: Cpu,
    /// Shares of each processor, in percent.
    pub cpus: Vec<Cpu>,
    /// Means over the phase, by device.
    pub devices: BTreeMap<String, DeviceSecond>,
}

impl Phase {
    pub(super) fn between(name: &str, begin: &Reading, end: &Reading, begun: Instant) -> Phase {
        let whole = end.since(begin, begun);
        let (then, now) = (begin.tree(), end.tree());
        Phase {
            name: name.to_owned(),
            begin_s: whole.end_s - whole.length_s,
            end_s: whole.end_s,
            seconds: whole.length_s,
            user_s: (now.user_s - then.user_s).max(0.0),
            system_s: (now.system_s - then.system_s).max(0.0),
            major_faults: now.major_faults.saturating_sub(then.major_faults),
            io: now.io.since(then.io),
            cpu: whole.cpu,
            cpus: whole.cpus,
            devices: whole.devices,
        }
    }

    /// Bytes the devices read, all together.
    pub fn device_read_bytes(&self) -> f64 {
        self.devices.values().map(|d| d.rkb_s * 1024.0 * self.seconds).sum()
    }

    /// Bytes the devices wrote.
    pub fn device_written_bytes(&self) -> f64 {
        self.devices.values().map(|d| d.wkb_s * 1024.0 * self.seconds).sum()
    }

    /// Read requests of the devices.
    pub fn device_reads(&self) -> f64 {
        self.devices.values().map(|d| d.r_s * self.seconds).sum()
    }

    /// Mean size of a read request, bytes; 0 without any.
    pub fn read_request_bytes(&self) -> f64 {
        if self.device_reads() < 0.5 { 0.0 } else { self.device_read_bytes() / self.device_reads() }
    }
}

/// A row per phase.
pub fn table(title: &str, phases: &[Phase]) -> Figure {
    let mut columns = vec![Column::text("phase")];
    columns.extend(
        [
            "from",
            "wall",
            "CPU user",
            "CPU system",
            "I/O wait",
            "read calls",
            "bytes asked",
            "from storage",
            "to storage",
            "device read",
            "device written",
            "r/s",
            "rareq-sz",
            "aqu-sz",
        ]
        .map(Column::number),
    );
    Figure::Table(Table {
        title: title.into(),
        note: "Calls and bytes of the program, then of the devices together; aqu-sz is their sum.".into(),
        columns,
        rows: phases.iter().map(row).collect(),
    })
}

fn row(phase: &Phase) -> Vec<String> {
    let name = if phase.name.is_empty() { "(between)".to_owned() } else { phase.name.clone() };
    vec![
        name,
        format!("{:.2} s", phase.begin_s),
        format!("{:.3} s", phase.seconds),
        format!("{:.2} s", phase.user_s),
        format!("{:.2} s", phase.system_s),
        format!("{:.0} %", phase.cpu.iowait),
        phase.io.syscr.to_string(),
        about(phase.io.rchar as f64),
        about(phase.io.read_bytes as f64),
        about(phase.io.write_bytes as f64),
        about(phase.device_read_bytes()),
        about(phase.device_written_bytes()),
        format!("{:.0}", phase.device_reads() / phase.seconds.max(1e-9)),
        about(phase.read_request_bytes()),
        format!("{:.2}", phase.devices.values().map(|d| d.aqu_sz).sum::<f64>()),
    ]
}

/// Draws the phases on the axis of time of every picture of these sections.
pub fn draw_on(sections: &mut [Section], phases: &[Phase]) {
    let bands: Vec<Band> = phases
        .iter()
        .map(|phase| Band { name: phase.name.clone(), from: phase.begin_s, to: phase.end_s })
        .collect();
    let figures = sections.iter_mut().flat_map(|section| &mut section.figures);
    for figure in figures {
        if let Figure::Lines(plot) | Figure::Scatter(plot) = figure {
            plot.x.bands.clone_from(&bands);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_sizes_are_sums_over_the_devices() {
        let device = |r_s, rkb_s| DeviceSecond { r_s, rkb_s, ..DeviceSecond::default() };
        let phase = Phase {
            name: "q".into(),
            begin_s: 1.0,
            end_s: 3.0,
            seconds: 2.0,
            user_s: 0.5,
            system_s: 0.0,
            major_faults: 0,
            io: ProcessIo::default(),
            cpu: Cpu::default(),
            cpus: Vec::new(),
            devices: [("a".to_owned(), device(10.0, 80.0)), ("b".to_owned(), device(30.0, 240.0))].into(),
        };
        assert_eq!((phase.device_read_bytes(), phase.device_reads()), (640.0 * 1024.0, 80.0));
        assert_eq!(phase.read_request_bytes(), 8192.0);
        let Figure::Table(table) = table("Phases", &[phase]) else { panic!("a table") };
        assert_eq!(table.rows[0].len(), table.columns.len());
        assert!(table.rows[0].contains(&"8.00 KiB".to_string()), "{:?}", table.rows[0]);
    }
}
