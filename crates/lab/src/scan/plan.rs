//! The setups of a sweep: every combination of the lists on the command line, at every degree
//! of parallelism, in an order that rotates from round to round, so that no setup is always
//! first.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};
use snowmelt_io::{IoEngine, JobEngine};
use snowmelt_io_experiments::TunedPolicy;

use crate::device::scheduler::Scheduler;
use crate::run::arguments::{EngineName, OnOff};
use crate::run::grid::grid;

macro_rules! named {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, clap::ValueEnum)]
        #[serde(rename_all = "kebab-case")]
        pub enum $name { $($(#[$doc])* #[value(name = $text)] #[serde(rename = $text)] $variant),+ }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $($name::$variant => $text),+ })
            }
        }
    };
}

named! {
    /// How workers share a table.
    Workers {
        /// Each reads a range of its own, chunk by chunk, knowing nothing of the others.
        Independent = "independent",
        /// All take the next piece of one shared scan, read ahead through Snowmelt's elevator.
        Coordinated = "coordinated",
    }
}
named! {
    /// How the table lies on its files.
    Layout {
        /// On the first file.
        Single = "single",
        /// A quarter (of four files) on each, one after the other.
        Jbod = "jbod4",
        /// Striped in units of 64 KiB.
        StripeFine = "stripe-fine",
        /// Striped in units of 1 MiB.
        StripeCoarse = "stripe-coarse",
    }
}
named! {
    /// Data that several users scan.
    Data {
        /// All the whole table.
        Same = "same",
        /// Each a part of its own.
        Different = "different",
    }
}
named! {
    /// Load beside the scan.
    Beside {
        /// Nothing.
        Nothing = "nothing",
        /// One reads single blocks of 8 KiB at random places.
        #[value(alias = "reader")]
        RandomRead = "random-read",
        /// One writes blocks of 8 KiB at random places of a scratch file.
        #[value(alias = "writer")]
        Write = "write",
        /// One sorts: writes runs of a scratch file in order, reads them block by block in the
        /// order of a merge, and writes the result.
        Sort = "sort",
    }
}

impl Beside {
    /// True when it writes, and so needs a scratch file.
    pub fn writes(self) -> bool {
        matches!(self, Beside::Write | Beside::Sort)
    }
}

/// Sizes of a worker's reads, taken in turn: `128k`, or `8k+1m` for large and small ones mixed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Chunks {
    /// As asked.
    pub name: String,
    /// In bytes.
    pub bytes: Vec<usize>,
}

impl Chunks {
    /// The largest, in bytes.
    pub fn largest(&self) -> usize {
        self.bytes.iter().copied().max().unwrap_or(4096)
    }

    /// Their mean, in bytes.
    pub fn mean(&self) -> f64 {
        self.bytes.iter().sum::<usize>() as f64 / self.bytes.len().max(1) as f64
    }
}

impl FromStr for Chunks {
    type Err = String;

    fn from_str(text: &str) -> Result<Chunks, String> {
        let bytes = text
            .split('+')
            .map(|part| {
                let bytes = crate::size::parse(part)?;
                match bytes.is_multiple_of(4096) && bytes <= 64 << 20 {
                    true => Ok(bytes as usize),
                    false => Err(format!("a read of {part} is not a multiple of 4k up to 64m")),
                }
            })
            .collect::<Result<Vec<usize>, String>>()?;
        Ok(Chunks { name: text.to_string(), bytes })
    }
}

/// An engine of independent workers, by its name on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScanEngine(pub IoEngine);

impl FromStr for ScanEngine {
    type Err = String;

    fn from_str(name: &str) -> Result<ScanEngine, String> {
        let engine = match name {
            "sync" => Some(IoEngine::Inline),
            _ => match name.parse::<EngineName>().map(|engine| engine.0) {
                Ok(JobEngine::Inline) => Some(IoEngine::Inline),
                Ok(JobEngine::Uring) => Some(IoEngine::Uring),
                Ok(JobEngine::Threads) => Some(IoEngine::Threads),
                Ok(JobEngine::Queue(engine)) => Some(engine),
                Ok(JobEngine::Mmap | JobEngine::Vectored) | Err(_) => None,
            },
        };
        engine.map(ScanEngine).ok_or_else(|| {
            format!("no engine of scans is called '{name}': there are sync, uring, threads and posix-aio")
        })
    }
}

/// The reads of an independent worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct WorkerReads {
    /// `inline` reads synchronously.
    pub engine: IoEngine,
    /// Reads in flight.
    pub depth: u32,
}

impl WorkerReads {
    /// One after the other.
    pub const SYNC: WorkerReads = WorkerReads { engine: IoEngine::Inline, depth: 1 };

    /// Every engine with every depth, the synchronous one once.
    pub fn all(engines: &[ScanEngine], depths: &[u32]) -> Vec<WorkerReads> {
        let mut all = Vec::new();
        for ScanEngine(engine) in engines {
            match engine {
                IoEngine::Inline => all.push(WorkerReads::SYNC),
                _ => all.extend(depths.iter().map(|depth| WorkerReads { engine: *engine, depth: *depth })),
            }
        }
        all
    }
}

impl fmt::Display for WorkerReads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.engine {
            IoEngine::Inline => f.write_str("sync"),
            engine => write!(f, "{} depth {}", engine.as_str(), self.depth),
        }
    }
}

/// The table of a sweep that is more than a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TableSource {
    /// A file of so many bytes, made and removed.
    Made(u64),
    /// An index of a Snowmelt database: its folder, and its name.
    Index(String, String),
}

impl FromStr for TableSource {
    type Err = String;

    fn from_str(text: &str) -> Result<TableSource, String> {
        match text.rsplit_once(':') {
            Some((db, index)) if !db.is_empty() && !index.is_empty() => {
                Ok(TableSource::Index(db.to_owned(), index.to_owned()))
            }
            Some(_) => Err("write DB:INDEX, the folder of a database and an index: db:psog".into()),
            None => crate::size::parse(text).map(TableSource::Made),
        }
    }
}

/// All that stays the same while the degree of parallelism goes up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Setup {
    /// The device's scheduler.
    pub scheduler: Scheduler,
    /// The device's read-ahead; nothing leaves it.
    pub read_ahead_kb: Option<u64>,
    /// Past the page cache or through it.
    pub direct: OnOff,
    /// Independent or coordinated.
    pub workers: Workers,
    /// Sizes of reads.
    pub chunks: Chunks,
    /// Reads of independent workers.
    pub reads: Option<WorkerReads>,
    /// How the table lies.
    pub layout: Layout,
    /// Scans at once.
    pub users: u32,
    /// Of what.
    pub data: Data,
    /// Load beside the scan.
    pub beside: Beside,
    /// The order of Snowmelt's own queue; nothing leaves the usual one.
    #[serde(serialize_with = "as_text")]
    pub queue: Option<TunedPolicy>,
}

fn as_text<S: Serializer>(queue: &Option<TunedPolicy>, to: S) -> Result<S::Ok, S::Error> {
    queue.map(|queue| queue.to_string()).serialize(to)
}

/// The lists that were asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Lists {
    /// See [`Setup`].
    pub schedulers: Vec<Scheduler>,
    /// See [`Setup`]; empty leaves it.
    pub read_ahead_kb: Vec<u64>,
    /// See [`Setup`].
    pub direct: Vec<OnOff>,
    /// See [`Setup`].
    pub workers: Vec<Workers>,
    /// See [`Setup`].
    pub chunks: Vec<Chunks>,
    /// See [`Setup`].
    pub reads: Vec<WorkerReads>,
    /// See [`Setup`].
    pub layouts: Vec<Layout>,
    /// See [`Setup`].
    pub users: Vec<u32>,
    /// See [`Setup`].
    pub data: Vec<Data>,
    /// See [`Setup`].
    pub beside: Vec<Beside>,
    /// See [`Setup`]; empty leaves the usual one.
    #[serde(skip)]
    pub queues: Vec<TunedPolicy>,
    /// A command scans: it may be told of the queue, and reads as it likes.
    #[serde(skip)]
    pub by_command: bool,
}

impl Lists {
    /// Every combination, the scheduler changing slowest.
    pub fn setups(&self) -> Vec<Setup> {
        let read_ahead: Vec<Option<u64>> = match self.read_ahead_kb.is_empty() {
            true => vec![None],
            false => self.read_ahead_kb.iter().copied().map(Some).collect(),
        };
        let queues: Vec<Option<TunedPolicy>> = match self.queues.is_empty() {
            true => vec![None],
            false => self.queues.iter().copied().map(Some).collect(),
        };
        let lens = [
            self.workers.len(),
            self.schedulers.len(),
            read_ahead.len(),
            self.direct.len(),
            self.chunks.len(),
            self.reads.len(),
            self.layouts.len(),
            self.users.len(),
            self.data.len(),
            self.beside.len(),
            queues.len(),
        ];
        let is_independent = |workers: usize| self.workers[workers] == Workers::Independent;
        let is_direct = |direct: usize| !self.by_command && self.direct[direct].is_on();
        let has_queue = |workers: usize| self.by_command || !is_independent(workers);
        // Of cells that would be the same, one.
        let differs = |places: &[usize; 11]| {
            let [workers, _, kb, direct, chunks, reads, _, users, data, _, queue] = *places;
            (self.users[users] != 1 || data == 0)
                && (is_independent(workers) || (reads == 0 && chunks == 0))
                && (has_queue(workers) || queue == 0)
                && (!is_direct(direct) || kb == 0)
        };
        let setup = |places: [usize; 11]| {
            let [workers, scheduler, kb, direct, chunks, reads, layout, users, data, beside, queue] = places;
            let reads = self.reads[reads];
            Setup {
                scheduler: self.schedulers[scheduler].clone(),
                read_ahead_kb: read_ahead[kb].filter(|_| !is_direct(direct)),
                direct: self.direct[direct],
                workers: self.workers[workers],
                chunks: self.chunks[chunks].clone(),
                reads: is_independent(workers).then_some(reads),
                layout: self.layouts[layout],
                users: self.users[users],
                data: self.data[data],
                beside: self.beside[beside],
                queue: queues[queue].filter(|_| has_queue(workers)),
            }
        };
        grid(lens).filter(differs).map(setup).collect()
    }

    /// The name of a setup among these: only what differs is said.
    pub fn name(&self, setup: &Setup) -> String {
        let mut words = Vec::new();
        let mut say = |differs: bool, word: String| {
            if differs {
                words.push(word);
            }
        };
        say(self.workers.len() > 1, setup.workers.to_string());
        say(self.schedulers.len() > 1, setup.scheduler.name.clone());
        if let Some(kb) = setup.read_ahead_kb {
            say(self.read_ahead_kb.len() > 1, format!("read-ahead {kb} KiB"));
        }
        say(self.direct.len() > 1, format!("direct {}", setup.direct));
        say(self.chunks.len() > 1 && setup.workers == Workers::Independent, setup.chunks.name.clone());
        if let Some(reads) = setup.reads {
            say(self.reads.len() > 1, reads.to_string());
        }
        say(self.layouts.len() > 1, setup.layout.to_string());
        say(
            self.users.len() > 1,
            match setup.users {
                1 => "1 user".to_string(),
                n => format!("{n} users"),
            },
        );
        say(self.data.len() > 1 && setup.users > 1, format!("{} data", setup.data));
        say(self.beside.len() > 1, format!("beside {}", setup.beside));
        if let Some(queue) = setup.queue {
            say(self.queues.len() > 1, format!("queue {queue}"));
        }
        match words.is_empty() {
            true => setup.scheduler.name.clone(),
            false => words.join(", "),
        }
    }
}

/// The order of `n` things in round `round`: rotated, and backwards every second time.
pub fn order(n: usize, round: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).map(|i| (i + round) % n.max(1)).collect();
    if round % 2 == 1 {
        order.reverse();
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lists() -> Lists {
        Lists {
            schedulers: ["none", "bfq-anticipatory"].iter().map(|s| s.parse().expect("known")).collect(),
            read_ahead_kb: vec![0, 128],
            direct: vec![OnOff::Off],
            workers: vec![Workers::Independent],
            chunks: vec!["128k".parse().expect("a size")],
            reads: vec![WorkerReads::SYNC],
            layouts: vec![Layout::Single],
            users: vec![1, 4],
            data: vec![Data::Same, Data::Different],
            beside: vec![Beside::Nothing],
            queues: Vec::new(),
            by_command: false,
        }
    }

    fn names(lists: &Lists) -> Vec<String> {
        lists.setups().iter().map(|setup| lists.name(setup)).collect()
    }

    #[test]
    fn cells_that_would_be_the_same_are_one() {
        let queues = ["fifo", "fair"].map(|name| name.parse().expect("known")).to_vec();
        let chunks = ["8k", "1m"].map(|text| text.parse().expect("a size")).to_vec();
        let schedulers = vec!["none".parse().expect("known")];
        let workers = vec![Workers::Independent, Workers::Coordinated];
        let read_ahead_kb = Vec::new();
        let mixed = Lists { queues, chunks, schedulers, workers, read_ahead_kb, users: vec![1], ..lists() };
        let want =
            ["independent, 8k", "independent, 1m", "coordinated, queue fifo", "coordinated, queue fair"];
        assert_eq!(names(&mixed), want);
        let command = Lists { workers: vec![Workers::Independent], by_command: true, ..mixed };
        let command = Lists { chunks: command.chunks[..1].to_vec(), ..command };
        assert_eq!(names(&command), ["queue fifo", "queue fair"]);
        let direct = vec![OnOff::On, OnOff::Off];
        let schedulers = vec!["none".parse().expect("known")];
        let cached = Lists { direct, schedulers, users: vec![1], ..lists() };
        let want = ["direct on", "read-ahead 0 KiB, direct off", "read-ahead 128 KiB, direct off"];
        let mut got = names(&cached);
        got.sort();
        assert_eq!(got, want);
    }

    #[test]
    fn every_combination_once_with_a_name_of_its_own() {
        let lists = lists();
        let setups = lists.setups();
        assert_eq!(setups.len(), 2 * 2 * 3, "one user alone has no data to differ in");
        let mut names: Vec<String> = setups.iter().map(|s| lists.name(s)).collect();
        assert_eq!(names[0], "none, read-ahead 0 KiB, 1 user");
        names.sort();
        names.dedup();
        assert_eq!(names.len(), setups.len());
    }

    #[test]
    fn a_worker_reads_by_every_engine_at_every_depth_and_a_shared_scan_in_its_own_way() {
        let engines = ["sync", "io_uring", "posix-aio"].map(|name| name.parse().expect("known"));
        let reads = WorkerReads::all(&engines, &[2, 8]);
        let workers = vec![Workers::Independent, Workers::Coordinated];
        let lists = Lists { reads, workers, users: vec![1], read_ahead_kb: Vec::new(), ..lists() };
        let setups = lists.setups();
        let of = |workers| {
            let names = setups.iter().filter(|s| s.workers == workers && s.scheduler.name == "none");
            names.map(|s| lists.name(s)).collect::<Vec<_>>()
        };
        let want = ["sync", "uring depth 2", "uring depth 8", "posix-aio depth 2", "posix-aio depth 8"];
        assert_eq!(of(Workers::Independent), want.map(|reads| format!("independent, none, {reads}")));
        assert_eq!(of(Workers::Coordinated), ["coordinated, none"]);
        for bad in ["mmap", "vectored", "libaio"] {
            let error = bad.parse::<ScanEngine>().expect_err(bad);
            assert!(error.contains(bad) && error.contains("uring"), "{error}");
        }
    }

    #[test]
    fn a_table_is_made_or_an_index() {
        assert_eq!("64m".parse(), Ok(TableSource::Made(64 << 20)));
        assert_eq!("a:b/db:psog".parse(), Ok(TableSource::Index("a:b/db".into(), "psog".into())));
        for bad in [":psog", "db:", "x"] {
            assert!(bad.parse::<TableSource>().is_err(), "{bad}");
        }
    }

    #[test]
    fn chunks_are_aligned_and_mixed() {
        assert_eq!("8k+1m".parse::<Chunks>().expect("sizes").bytes, [8192, 1 << 20]);
        assert!("1000".parse::<Chunks>().is_err());
    }

    #[test]
    fn rounds_begin_elsewhere() {
        assert_eq!(order(3, 0), [0, 1, 2]);
        assert_eq!(order(3, 1), [0, 2, 1]);
        assert_eq!(order(3, 2), [2, 0, 1]);
    }
}
