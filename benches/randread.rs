//! Random reads through the scheduler, to be compared with fio's at the same engine, depth and
//! block size.
//!
//!     randread FILE [block=8k] [depth=32] [engine=uring|threads|inline] [direct=on|off]
//!              [seconds=5] [from=sink|thread] [piece=BYTES] [sim=MODEL]
//!
//! Blocks are aligned to their size and not merged with others (gap 0). The buffers lie in huge
//! pages, as a pool's frames do. With `piece=8k` a block is asked for as requests of that size
//! in a batch, each with a buffer of its own, as a pool asks for an extent; the queue merges
//! them. With `from=sink` each completion submits the next request, with `from=thread` another
//! thread is woken to do it, as a query's thread would be. The JSON line it prints has iops,
//! bytes per second, latency and the processor time of the process per request.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use snowmelt_base::random::{GOLDEN, mix};
use snowmelt_base::size::parse;
use snowmelt_io::*;

struct Settings {
    path: String,
    block: u64,
    depth: u64,
    engine: IoEngine,
    direct: bool,
    seconds: f64,
    from_sink: bool,
    piece: u64,
    sim: Option<String>,
}

fn settings() -> Result<Settings, String> {
    let mut args = std::env::args().skip(1);
    let path = args.next().ok_or("which file?")?;
    let mut s = Settings {
        path,
        block: 8192,
        depth: 32,
        engine: IoEngine::Uring,
        direct: true,
        seconds: 5.0,
        from_sink: true,
        piece: 0,
        sim: None,
    };
    for arg in args {
        let (name, value) = arg.split_once('=').ok_or_else(|| format!("{arg}: name=value"))?;
        let number = || value.parse::<f64>().map_err(|e| format!("{arg}: {e}"));
        match name {
            "block" => s.block = parse(value)?,
            "depth" => s.depth = number()? as u64,
            "engine" => s.engine = value.parse()?,
            "direct" => s.direct = value == "on",
            "seconds" => s.seconds = number()?,
            "from" => s.from_sink = value == "sink",
            "piece" => s.piece = parse(value)?,
            "sim" => s.sim = Some(value.to_string()),
            _ => return Err(format!("{name} is not a setting")),
        }
    }
    if s.piece == 0 {
        s.piece = s.block;
    }
    Ok(s)
}

/// The tag of a request is the number of its block in flight.
struct RandomReads {
    queue: OnceLock<Weak<DeviceQueue>>,
    /// Addresses of the buffers: for each block in flight, one per piece.
    bufs: Vec<usize>,
    /// Pieces that each block in flight waits for.
    missing: Vec<AtomicU64>,
    piece: u64,
    block: u64,
    blocks: u64,
    random: AtomicU64,
    from_sink: bool,
    stopping: AtomicBool,
    idle: AtomicU64,
    back: std::sync::Mutex<Vec<u64>>,
    event: EventCount,
}

impl RandomReads {
    fn ask(&self, tag: u64, requests: &mut Vec<Request>) {
        let word = mix(self.random.fetch_add(GOLDEN, Ordering::Relaxed));
        let place = ((u128::from(word) * u128::from(self.blocks)) >> 64) as u64;
        let pieces = self.block / self.piece;
        self.missing[tag as usize].store(pieces, Ordering::Relaxed);
        for i in 0..pieces {
            let address = self.bufs[(tag * pieces + i) as usize];
            // SAFETY: the buffers live until the queue is closed, and belong to this tag alone,
            // of which one is in flight.
            let buf = unsafe { RawBuf::read_into(address as *mut u8, self.piece as usize) };
            let offset = place * self.block + i * self.piece;
            requests.push(Request { offset, buf, class: Class::Demand, tag });
        }
    }
}

impl Sink for RandomReads {
    fn complete(&self, tag: u64, result: Result<(), IoError>) {
        match result {
            Err(e) if e.kind != IoErrorKind::Closed => panic!("{e}"),
            _ => {}
        }
        if self.missing[tag as usize].fetch_sub(1, Ordering::Relaxed) > 1 {
            return;
        }
        if self.stopping.load(Ordering::Relaxed) {
            self.idle.fetch_add(1, Ordering::SeqCst);
            self.event.notify_all();
        } else if self.from_sink {
            let queue = self.queue.get().and_then(Weak::upgrade).expect("it is open");
            let mut requests = Vec::new();
            self.ask(tag, &mut requests);
            queue.submit(&mut requests);
        } else {
            self.back.lock().unwrap().push(tag);
            self.event.notify_all();
        }
    }
}

fn cpu_seconds() -> f64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    t.tv_sec as f64 + t.tv_nsec as f64 / 1e9
}

fn main() {
    let s = settings().unwrap_or_else(|why| {
        eprintln!("{why}");
        std::process::exit(2);
    });
    let clock = Clock::real();
    let file = FileDevice::open(s.path.as_ref(), Access::Read, s.direct).expect("the file opens");
    let mut device: Arc<dyn Device> = Arc::new(file);
    if let Some(model) = &s.sim {
        let model = DeviceModel::named(model).expect("a model");
        device = Arc::new(SimulatedDevice::new(model, device, &clock));
    }
    let pieces = s.block / s.piece;
    const HUGE_PAGE: u64 = 2 << 20;
    let mut memory = AlignedBuf::huge((s.depth * s.block).max(HUGE_PAGE) as usize);
    let load = Arc::new(RandomReads {
        queue: OnceLock::new(),
        bufs: memory.chunks_exact_mut(s.piece as usize).map(|piece| piece.as_mut_ptr() as usize).collect(),
        missing: (0..s.depth).map(|_| AtomicU64::new(0)).collect(),
        piece: s.piece,
        block: s.block,
        blocks: device.len().expect("a length") / s.block,
        random: AtomicU64::new(42),
        from_sink: s.from_sink && s.engine != IoEngine::Inline,
        stopping: AtomicBool::new(false),
        idle: AtomicU64::new(0),
        back: Default::default(),
        event: EventCount::new(&clock),
    });
    let config = QueueConfig {
        engine: s.engine,
        depth: Some(s.depth as u32),
        gap_bytes: Some(0),
        ..Default::default()
    };
    let config = QueueConfig { max_request_bytes: s.block, ..config };
    let queue = DeviceQueue::open(device, config, clock.clone(), load.clone()).expect("a queue");
    load.queue.set(Arc::downgrade(&queue)).expect("set once");

    let (began, cpu) = (clock.now_ns(), cpu_seconds());
    let until = began + (s.seconds * 1e9) as u64;
    let mut requests = Vec::new();
    (0..s.depth).for_each(|tag| load.ask(tag, &mut requests));
    queue.submit(&mut requests);
    if load.from_sink {
        std::thread::sleep(std::time::Duration::from_secs_f64(s.seconds));
    } else {
        let mut tags = Vec::new();
        while clock.now_ns() < until {
            load.event.wait_until(|| !load.back.lock().unwrap().is_empty());
            std::mem::swap(&mut tags, &mut load.back.lock().unwrap());
            tags.drain(..).for_each(|tag| load.ask(tag, &mut requests));
            queue.submit(&mut requests);
        }
    }
    let counters = queue.counters();
    let seconds = (clock.now_ns() - began) as f64 / 1e9;
    let cpu = cpu_seconds() - cpu;
    load.stopping.store(true, Ordering::SeqCst);
    queue.close();

    let demand = counters.class(Class::Demand);
    let n = demand.latency.count / pieces;
    println!(
        "{{\"engine\":\"{}\",\"depth\":{},\"block\":{},\"iops\":{:.0},\"mb_per_s\":{:.1},\"mean_depth\":{:.1},\
         \"p50_us\":{:.0},\"p99_us\":{:.0},\"cpu_us_per_request\":{:.2},\"merged\":{}}}",
        counters.engine,
        s.depth,
        s.block,
        n as f64 / seconds,
        (n * s.block) as f64 / seconds / 1e6,
        counters.mean_depth,
        demand.latency.p50_ns as f64 / 1e3,
        demand.latency.p99_ns as f64 / 1e3,
        cpu * 1e6 / n as f64,
        demand.merged,
    );
}
