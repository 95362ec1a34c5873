//! Processors that do not sleep.
//!
//! An idle processor sleeps. Waking it takes from one to hundreds of microseconds, in a virtual
//! machine by way of the hypervisor. A program that waits for one request at a time pays that
//! with each of them, more or less of it depending on the other programs.
//!
//! While a file of the kernel's power management is open with the bound 0 in it, idle
//! processors poll instead (Documentation/power/pm_qos_interface.rst). The kernel takes the
//! bound back when the file is closed, however its owner ends.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::LabError;

const LATENCY: &str = "/dev/cpu_dma_latency";

/// Processors are awake while it lives.
#[derive(Debug)]
pub struct Awake {
    _bound: File,
}

impl Awake {
    /// From now on, with proof: the bound in force is read back.
    pub fn hold() -> Result<Awake, LabError> {
        let path = Path::new(LATENCY);
        let refused = |why: String| {
            LabError::refused("keep the processors awake", why, "run it as root, or leave --awake out")
        };
        let bound = OpenOptions::new().read(true).write(true).open(path);
        let mut bound = bound.map_err(|e| refused(format!("{LATENCY}: {e}")))?;
        bound.write_all(&0i32.to_ne_bytes()).map_err(|e| LabError::file("write", path, e))?;
        let micros = in_force(&bound).map_err(|e| LabError::file("read", path, e))?;
        if micros != 0 {
            return Err(refused(format!("{LATENCY} says {micros} µs after 0 was written")));
        }
        Ok(Awake { _bound: bound })
    }
}

/// The least of all bounds held now, in µs.
fn in_force(file: &File) -> std::io::Result<i32> {
    let mut micros = [0; 4];
    file.read_exact_at(&mut micros, 0)?;
    Ok(i32::from_ne_bytes(micros))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_is_in_force_while_it_is_held() {
        let Ok(file) = File::open(LATENCY) else {
            let error = Awake::hold().unwrap_err().to_string();
            assert!(error.contains(LATENCY) && error.contains("leave --awake out"), "{error}");
            println!("skipped: {LATENCY} is not to be opened here");
            return;
        };
        let before = in_force(&file).unwrap(); // another program may hold a bound of its own
        let awake = Awake::hold().unwrap();
        assert_eq!(in_force(&file).unwrap(), 0);
        drop(awake);
        assert_eq!(in_force(&file).unwrap(), before);
        let _second = Awake::hold().unwrap();
        assert_eq!(in_force(&file).unwrap(), 0);
    }
}
