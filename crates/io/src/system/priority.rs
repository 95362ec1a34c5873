//! Priorities of I/O: ioprio_set(2).
//!
//! The kernel keeps one per thread; a new thread begins with that of the one that started it, and
//! a request on a ring without a priority of its own has that of the thread that submits it. So one
//! call before a load begins reaches all of its requests.

#![allow(unsafe_code)]

use std::fmt;
use std::str::FromStr;

/// A priority of I/O: class and level (ionice(1): `-c`, `-n`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IoPriority {
    /// 1 realtime, 2 best effort, 3 idle (fio: `prioclass`).
    class: u8,
    /// 0, served first, to 7 (fio: `prio`); 0 for idle.
    level: u8,
}

/// Level of a class that has levels when none is said; ionice's.
const USUAL_LEVEL: u8 = 4;

impl IoPriority {
    /// 1 realtime, 2 best effort, 3 idle.
    pub fn class(self) -> u8 {
        self.class
    }

    /// 0 to 7.
    pub fn level(self) -> u8 {
        self.level
    }

    fn value(self) -> u16 {
        (u16::from(self.class) << 13) | u16::from(self.level)
    }

    /// Gives it to the calling thread, and to those it starts from now on.
    ///
    /// # Errors
    /// The kernel refuses: realtime needs CAP_SYS_ADMIN or CAP_SYS_NICE.
    pub fn apply(self) -> std::io::Result<()> {
        const IOPRIO_WHO_PROCESS: libc::c_int = 1;
        let value = libc::c_int::from(self.value());
        // SAFETY: numbers only; 0 is the calling thread.
        let set = unsafe { libc::syscall(libc::SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, value) };
        if set == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
    }
}

impl FromStr for IoPriority {
    type Err = String;

    fn from_str(text: &str) -> Result<IoPriority, String> {
        let (class, level) = match text.split_once(':') {
            Some((class, level)) => (class, Some(level)),
            None => (text, None),
        };
        let class = match class {
            "1" | "rt" | "realtime" => 1,
            "2" | "be" | "best-effort" => 2,
            "3" | "idle" => 3,
            other => {
                return Err(format!(
                    "no class is called '{other}': there are realtime (rt, 1), best-effort (be, 2) and idle (3); \
                     a level may follow: best-effort:7"
                ));
            }
        };
        let level = match (class, level) {
            (3, Some(level)) => return Err(format!("idle has no levels: leave :{level} out")),
            (3, None) => 0,
            (_, None) => USUAL_LEVEL,
            (_, Some(level)) => level
                .parse()
                .ok()
                .filter(|level| *level <= 7)
                .ok_or_else(|| format!("the level is '{level}': use 0 (served first) to 7"))?,
        };
        Ok(IoPriority { class, level })
    }
}

impl fmt::Display for IoPriority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.class {
            1 => write!(f, "realtime:{}", self.level),
            2 => write!(f, "best-effort:{}", self.level),
            _ => f.write_str("idle"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_and_levels_are_those_of_ionice() {
        for (text, value, shown) in [
            ("rt", (1 << 13) | 4, "realtime:4"),
            ("1:0", 1 << 13, "realtime:0"),
            ("best-effort:7", (2 << 13) | 7, "best-effort:7"),
            ("be", (2 << 13) | 4, "best-effort:4"),
            ("idle", 3 << 13, "idle"),
        ] {
            let parsed: IoPriority = text.parse().unwrap();
            assert_eq!((parsed.value(), parsed.to_string().as_str()), (value, shown), "{text}");
            assert_eq!(shown.parse(), Ok(parsed));
        }
        for (text, says) in
            [("batch", "best-effort"), ("be:8", "0 (served first) to 7"), ("idle:3", "no levels")]
        {
            let error = text.parse::<IoPriority>().unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
    }

    impl IoPriority {
        /// That of the calling thread.
        fn of_this_thread() -> IoPriority {
            // SAFETY: numbers only; 1 is IOPRIO_WHO_PROCESS, 0 the calling thread.
            let value = unsafe { libc::syscall(libc::SYS_ioprio_get, 1, 0) };
            assert!(value >= 0, "the kernel knows priorities");
            IoPriority { class: (value >> 13) as u8 & 7, level: value as u8 & 7 }
        }
    }

    #[test]
    fn a_priority_is_the_threads_and_those_it_starts() {
        let wanted: IoPriority = "best-effort:6".parse().unwrap();
        let seen = std::thread::spawn(move || {
            wanted.apply().unwrap();
            let child = std::thread::spawn(IoPriority::of_this_thread).join().unwrap();
            (IoPriority::of_this_thread(), child)
        });
        assert_eq!(seen.join().unwrap(), (wanted, wanted));
        assert_ne!(IoPriority::of_this_thread(), wanted, "other threads keep theirs");
    }
}
