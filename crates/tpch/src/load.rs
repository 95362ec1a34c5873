//! The load: rows go from the generator through a FIFO into COPY, table by table.
//!
//! 1. BEGIN, CREATE TABLE, COPY … FREEZE, COMMIT: rows are written frozen, once.
//! 2. Primary keys, then indexes.
//! 3. VACUUM ANALYZE, CHECKPOINT.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, OFlags, fcntl_setfl, mknodat};
use snowmelt_lab::LabError;

use crate::database::{Database, NAME};
use crate::error::TpchError;
use crate::rows::write_rows;
use crate::schema::{INDEXES, KEYS, TpchTable};

/// Loads everything into a database made anew; each step is a phase of the watch.
///
/// # Errors
/// A statement fails, or rows cannot be written.
pub fn load(database: &Database<'_>, scale: f64, told: &dyn Fn(&str)) -> Result<(), TpchError> {
    database.ask_in("postgres", &format!("CREATE DATABASE {NAME};\n"))?;
    for table in TpchTable::ALL {
        step(database, &format!("load {}", table.name()), told, || copy(database, table, scale))?;
    }
    let script = |statements: &[&str]| database.ask("", &statements.join(";\n")).map(drop);
    step(database, "primary keys", told, || script(&KEYS))?;
    step(database, "indexes", told, || script(&INDEXES))?;
    step(database, "vacuum analyze", told, || script(&["VACUUM ANALYZE"]))?;
    step(database, "checkpoint", told, || script(&["CHECKPOINT"]))
}

fn step(
    database: &Database<'_>,
    name: &str,
    told: &dyn Fn(&str),
    work: impl FnOnce() -> Result<(), TpchError>,
) -> Result<(), TpchError> {
    told(name);
    database.watcher().mark(name);
    let done = work();
    database.watcher().mark("");
    done
}

fn copy(database: &Database<'_>, table: TpchTable, scale: f64) -> Result<(), TpchError> {
    let fifo = database.beside("rows");
    let _ = std::fs::remove_file(&fifo);
    mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
        .map_err(|e| LabError::file("make the FIFO", &fifo, e))?;
    // The server, which runs as another user, reads it.
    std::fs::set_permissions(&fifo, Permissions::from_mode(0o644))
        .map_err(|e| LabError::file("open", &fifo, e))?;
    let over = AtomicBool::new(false);
    let (name, columns) = (table.name(), table.columns());
    let script = format!(
        "BEGIN;\nCREATE TABLE {name} ({columns});\nCOPY {name} FROM '{}' WITH (FORMAT csv, FREEZE);\nCOMMIT;\n",
        fifo.display()
    );
    let (copied, written) = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let Some(file) = open_when_read(&fifo, &over)? else { return Ok(0) };
            let mut to = BufWriter::with_capacity(1 << 18, file);
            let rows = write_rows(table, scale, &mut to)?;
            to.flush()?;
            Ok::<u64, io::Error>(rows)
        });
        let copied = database.ask_in(NAME, &script);
        over.store(true, Ordering::Release);
        (copied, writer.join().expect("the generator does not panic"))
    });
    let _ = std::fs::remove_file(&fifo); // it is in the folder that is removed at the end
    copied?;
    let rows = written.map_err(|e| LabError::file("write rows into", &fifo, e))?;
    let got = database.number(&format!("SELECT count(*) FROM {name}"))?;
    if got != rows {
        return Err(TpchError::Answer { wanted: format!("{rows} rows of {name}"), got: got.to_string() });
    }
    Ok(())
}

/// Opens a FIFO once it has a reader; nothing when that is over before.
fn open_when_read(fifo: &Path, over: &AtomicBool) -> io::Result<Option<File>> {
    loop {
        match OpenOptions::new().write(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(fifo) {
            Ok(file) => {
                fcntl_setfl(&file, OFlags::empty())?;
                return Ok(Some(file));
            }
            Err(e) if e.raw_os_error() != Some(rustix::io::Errno::NXIO.raw_os_error()) => return Err(e),
            Err(_) if over.load(Ordering::Acquire) => return Ok(None),
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}
