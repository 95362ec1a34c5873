//! `snowmelt-lab device list`.

use super::control;
use super::state;
use crate::undo::mounts_of;
use crate::{LabError, size};

/// The devices there are.
#[derive(Debug, clap::Args)]
pub struct ListArgs {
    /// As JSON lines
    #[arg(long)]
    pub json: bool,
}

/// Runs the command.
pub fn run(args: &ListArgs) -> Result<(), LabError> {
    let records = state::all()?;
    if args.json {
        for record in &records {
            crate::say!("{}", serde_json::to_string(record).expect("plain data"));
        }
        return Ok(());
    }
    if records.is_empty() {
        crate::say!("no devices; `snowmelt-lab device create NAME --model hdd-10k` makes one");
        return Ok(());
    }
    crate::say!(
        "{:<16} {:<12} {:<10} {:>10} {:<12} {:>5}  state",
        "name",
        "device",
        "model",
        "size",
        "scheduler",
        "depth"
    );
    for record in &records {
        let mounts = mounts_of(&record.device);
        let mounted = mounts.iter().map(|m| format!(", mounted on {}", m.display())).collect::<String>();
        let state = match (record.is_alive(), control::status_of(record)) {
            (false, _) => "its server is gone: `snowmelt-lab restore`".to_string(),
            (true, Err(e)) => format!("its server does not answer ({e})"),
            (true, Ok(status)) => control::power(&status),
        };
        crate::say!(
            "{:<16} {:<12} {:<10} {:>10} {:<12} {:>5}  {state}{mounted}",
            record.spec.name,
            record.device.display(),
            record.spec.model_name,
            size::about(record.spec.size_bytes as f64),
            record.spec.scheduler,
            record.spec.depth
        );
    }
    Ok(())
}
