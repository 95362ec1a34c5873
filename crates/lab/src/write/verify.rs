//! Reading back what a rung has written: after the sync, with nothing of it left in the page cache.
//!
//! Each block says where it belongs and which rung wrote it ([`snowmelt_io::stamp`]), so that a
//! write that was lost, went astray or reached the disk in part is told from a changed byte.

use std::os::unix::fs::FileExt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use serde::{Deserialize, Serialize};
use snowmelt_io::{AlignedBuf, Job, JobFile, Places, StampFault, check_stamp};

use crate::LabError;
use crate::target::Target;
use crate::target::cold::make_cold;
use crate::write::rung::{Rung, name_of};

/// Most threads that read back.
const MOST_THREADS: u32 = 16;

/// Blocks that were read back and are right.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Verified {
    /// Different blocks.
    pub blocks: u64,
    /// Seconds that reading them took.
    pub seconds: f64,
    /// Pages that stayed in the page cache: blocks in them were not read from the device.
    pub cached_pages: u64,
}

/// Reads back the blocks of the first `written` requests of a job; nothing of one that is not
/// stamped, or when `stop` is set.
///
/// # Errors
/// A block is not what was written: how many, and the first of them by its offset.
pub fn verify(
    target: &Target,
    rung: &Rung,
    job: &Job,
    written: u64,
    stop: &AtomicBool,
) -> Result<Option<Verified>, LabError> {
    let Some(seed) = job.verify else { return Ok(None) };
    let blocks = WrittenBlocks::of(&job.places, written);
    let file = target.open(false, rung.direct)?;
    let cached_pages = make_cold(file.file(), &target.path)?;
    let began = Instant::now();
    let wrong = read_back(&file, target, &blocks, job, seed, stop)?;
    if stop.load(Ordering::Relaxed) {
        return Ok(None); // the rung is dropped
    }
    if let Some(first) = &wrong.first {
        return Err(LabError::refused(
            target.path.display(),
            format!("{} of {} blocks read back are wrong: {first}", wrong.count, blocks.count()),
            format!(
                "written by {}: the device, its driver or the file system lost or changed them",
                name_of(rung)
            ),
        ));
    }
    Ok(Some(Verified { blocks: blocks.count(), seconds: began.elapsed().as_secs_f64(), cached_pages }))
}

/// The different blocks that the first requests of a job wrote, by rising offsets; in whichever
/// form takes less memory.
enum WrittenBlocks {
    /// Their offsets.
    Few(Vec<u64>),
    /// A bit for each place of the job.
    Many(Vec<u64>, Places),
}

impl WrittenBlocks {
    fn of(places: &Places, written: u64) -> WrittenBlocks {
        let words = places.count().div_ceil(64);
        if written <= words {
            let mut offsets: Vec<u64> = (0..written).map(|i| places.at(i)).collect();
            offsets.sort_unstable();
            offsets.dedup();
            return WrittenBlocks::Few(offsets);
        }
        let mut bits = vec![0; words as usize];
        for place in (0..written).map(|i| places.place(i)) {
            bits[(place / 64) as usize] |= 1 << (place % 64);
        }
        WrittenBlocks::Many(bits, *places)
    }

    fn count(&self) -> u64 {
        match self {
            WrittenBlocks::Few(offsets) => offsets.len() as u64,
            WrittenBlocks::Many(bits, _) => bits.iter().map(|word: &u64| u64::from(word.count_ones())).sum(),
        }
    }

    /// The offsets of a portion; nothing behind the last one.
    fn portion(&self, number: usize) -> Option<Vec<u64>> {
        match self {
            WrittenBlocks::Few(offsets) => offsets.get(number).map(|offset| vec![*offset]),
            WrittenBlocks::Many(bits, places) => bits.get(number).map(|word| {
                let of_word = (0..64).filter(|bit| word >> bit & 1 == 1);
                of_word.map(|bit| places.offset(number as u64 * 64 + bit)).collect()
            }),
        }
    }
}

/// Blocks that are not what was written.
#[derive(Default)]
struct WrongBlocks {
    count: u64,
    /// That with the lowest offset.
    first: Option<StampFault>,
}

impl WrongBlocks {
    fn add(&mut self, fault: StampFault) {
        self.count += 1;
        if self.first.as_ref().is_none_or(|first| fault.at < first.at) {
            self.first = Some(fault);
        }
    }
}

fn read_back(
    file: &JobFile,
    target: &Target,
    blocks: &WrittenBlocks,
    job: &Job,
    seed: u64,
    stop: &AtomicBool,
) -> Result<WrongBlocks, LabError> {
    let next = AtomicUsize::new(0);
    let wrong = Mutex::new(WrongBlocks::default());
    let read = || -> Result<(), LabError> {
        let mut buf = AlignedBuf::new(job.bs as usize);
        while let Some(offsets) = blocks.portion(next.fetch_add(1, Ordering::Relaxed)) {
            for offset in offsets {
                if stop.load(Ordering::Relaxed) {
                    return Ok(());
                }
                let read = file.file().read_exact_at(&mut buf, offset);
                read.map_err(|e| LabError::file(&format!("read back offset {offset} of"), &target.path, e))?;
                if let Err(fault) = check_stamp(&buf, offset, seed) {
                    wrong.lock().expect("readers do not panic").add(fault);
                }
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..job.iodepth.clamp(1, MOST_THREADS)).map(|_| scope.spawn(read)).collect();
        readers.into_iter().try_for_each(|reader| reader.join().expect("readers do not panic"))
    })?;
    Ok(wrong.into_inner().expect("readers do not panic"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use snowmelt_io::{JobDirection, JobEngine, Pattern, Policy, run_job};

    use super::*;
    use crate::run::load::LoadFields;
    use crate::write::rung::SyncPolicy;

    fn job(seed: u64, len: u64) -> Job {
        Job {
            engine: JobEngine::Uring,
            policy: Policy::Elevator,
            rw: JobDirection::Write,
            bs: 4096,
            huge_pages: false,
            iodepth: 8,
            queue_depth: None,
            ioprio: None,
            verify: Some(seed),
            places: Places::new(Pattern::Random, 4096, 4096, 0, len, 1).unwrap(),
            first: 0,
            most: len / 4096 / 2,
            runtime: Duration::from_secs(60),
            interval: Duration::from_secs(1),
        }
    }

    fn rung(direct: bool) -> Rung {
        Rung {
            rw: "randwrite".into(),
            ioengine: "io_uring".into(),
            size: None,
            sparse: false,
            load: LoadFields::default(),
            verify: true,
            bs: 4096,
            iodepth: 8,
            direct,
            prefetch: false,
            sync: SyncPolicy::End,
            scheduler: None,
        }
    }

    #[test]
    fn blocks_take_no_more_memory_than_a_bit_for_each_place() {
        let places = Places::new(Pattern::Random, 4096, 4096, 8192, 1000 * 4096, 1).unwrap();
        for places in [places, places.by_zipf(1.1)] {
            for written in [0, 1, 15, 16, 17, 500, 1000, 100_000] {
                let blocks = WrittenBlocks::of(&places, written);
                let mut expected: Vec<u64> = (0..written).map(|i| places.at(i)).collect();
                expected.sort_unstable();
                expected.dedup();
                let offsets: Vec<u64> = (0..).map_while(|n| blocks.portion(n)).flatten().collect();
                assert_eq!((&offsets, blocks.count()), (&expected, expected.len() as u64), "{written}");
                let (WrittenBlocks::Few(words) | WrittenBlocks::Many(words, _)) = blocks;
                assert!(words.len() <= 16, "{written}: {} words", words.len());
            }
        }
    }

    #[test]
    fn a_planted_change_is_named_by_its_offset() {
        const LEN: u64 = 2 << 20;
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(LEN).unwrap();
        let Ok(target) = Target::look(file.path()) else {
            return println!("skipped: temporary files are on no block device here");
        };
        let stop = AtomicBool::new(false);
        for direct in [false, true] {
            let Ok(opened) = target.open(true, direct) else {
                println!("skipped: no O_DIRECT for temporary files here");
                continue;
            };
            let (job, rung) = (job(3 + u64::from(direct), LEN), rung(direct));
            run_job(&opened, &job, &stop).unwrap();
            let check = || verify(&target, &rung, &job, job.most, &stop);
            assert_eq!(check().unwrap().unwrap().blocks, job.most);
            // One byte, a lost write, one that went to another place, and a hole.
            let (one, other) = (job.places.at(5), job.places.at(6));
            let mut block = [0; 4096];
            file.as_file().read_exact_at(&mut block, one).unwrap();
            let mut older = block;
            snowmelt_io::stamp(&mut older, one, 1);
            let mut changed = block;
            changed[1234] ^= 1;
            let mut astray = block;
            snowmelt_io::stamp(&mut astray, other, job.verify.unwrap());
            for (planted, says) in [
                (changed, format!("block at offset {one} is not what was written: byte {}", one + 1234)),
                (older, "it is of an earlier run (seed 1)".into()),
                (astray, format!("it is the block of offset {other}")),
                ([0; 4096], "it has no header".into()),
            ] {
                file.as_file().write_all_at(&planted, one).unwrap();
                let error = check().unwrap_err().to_string();
                assert!(error.contains(&says), "{error}, not {says}");
                assert!(error.contains(&format!("1 of {} blocks", job.most)), "{error}");
                assert!(error.contains(&format!("offset {one} ")), "{error}");
            }
            let stopped = verify(&target, &rung, &job, job.most, &AtomicBool::new(true));
            assert_eq!(stopped.unwrap(), None, "what was not read back is neither right nor wrong");
            file.as_file().write_all_at(&block, one).unwrap();
            assert!(check().is_ok());
        }
    }
}
