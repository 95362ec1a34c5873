//! A closed load on queues of a simulated device, in virtual time.
//!
//! 1. Each [`Stream`] keeps so many requests submitted: when one is over, the next one goes out.
//! 2. [`World::run`] lets time pass, and says what was moved meanwhile.
//! 3. [`World::end`] closes the queues. Every request must have been answered once, and none may
//!    have waited for too long.

#![allow(dead_code, unsafe_code)]

use std::sync::{Arc, Mutex, OnceLock, Weak};

use snowmelt_base::random::Random;
use snowmelt_io::*;

pub const MS: u64 = 1_000_000;
pub const S: u64 = 1_000_000_000;
pub const PAGE: usize = 8192;
pub const SPAN: u64 = 16 << 30;

/// Requests of one kind, and how many are kept outstanding.
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    pub class: Class,
    pub width: usize,
    pub bytes: usize,
    pub writes: bool,
}

impl Stream {
    pub const fn reads(class: Class, width: usize, bytes: usize) -> Stream {
        Stream { class, width, bytes, writes: false }
    }
}

/// The load of a test.
#[derive(Clone, Copy, Debug)]
pub struct TestLoad(pub &'static [Stream]);

impl TestLoad {
    pub const READERS: TestLoad = TestLoad(&[Stream::reads(Class::Demand, 16, PAGE)]);
    pub const MANY: TestLoad = TestLoad(&[Stream::reads(Class::Planned, 256, PAGE)]);
    pub const LONG: TestLoad =
        TestLoad(&[Stream::reads(Class::Demand, 1, PAGE), Stream::reads(Class::Speculative, 64, 256 << 10)]);
    pub const BOTH: TestLoad =
        TestLoad(&[Stream::reads(Class::Demand, 16, PAGE), Stream::reads(Class::Speculative, 16, 256 << 10)]);
    /// Every class that reads.
    pub const CLASSES: TestLoad = TestLoad(&[
        Stream::reads(Class::Demand, 8, PAGE),
        Stream::reads(Class::Planned, 128, PAGE),
        Stream::reads(Class::SpillRead, 4, 64 << 10),
        Stream::reads(Class::Speculative, 16, 256 << 10),
    ]);
    pub const ALL: [TestLoad; 5] =
        [TestLoad::READERS, TestLoad::MANY, TestLoad::LONG, TestLoad::BOTH, TestLoad::CLASSES];

    /// Its streams, in a few words.
    pub fn name(&self) -> String {
        let streams =
            self.0.iter().map(|s| format!("{} × {} of {}k", s.width, s.class.name(), s.bytes >> 10));
        streams.collect::<Vec<_>>().join(" + ")
    }

    fn slots(&self) -> usize {
        self.0.iter().map(|stream| stream.width).sum()
    }
}

/// Requests and bytes answered in some time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Moved {
    pub requests: f64,
    pub bytes: f64,
    pub ns: f64,
}

impl Moved {
    /// The share of what the fixed setting moves that is nearest to having more of both.
    pub fn share_of(&self, fixed: &[Moved]) -> f64 {
        let share = |fixed: &Moved| {
            let times = fixed.ns / self.ns;
            (self.requests / fixed.requests).max(self.bytes / fixed.bytes) * times
        };
        fixed.iter().map(share).fold(f64::INFINITY, f64::min)
    }
}

struct Slot {
    stream: Stream,
    buf: AlignedBuf,
    began_ns: Option<u64>,
}

struct ClientState {
    random: Random,
    slots: Vec<Slot>,
    moved: Moved,
    submitted: u64,
    answered: u64,
    failed: u64,
    written: u64,
    is_over: bool,
    /// Longest wait of each class.
    waited_ns: [u64; Class::COUNT],
}

/// One queue and its load.
pub struct Client {
    clock: Clock,
    state: Mutex<ClientState>,
    queue: OnceLock<Weak<DeviceQueue>>,
}

impl Client {
    fn new(clock: &Clock, load: TestLoad, seed: u64) -> Arc<Client> {
        let slot = |stream: Stream| Slot { stream, buf: AlignedBuf::new(stream.bytes), began_ns: None };
        let slots = load.0.iter().flat_map(|stream| (0..stream.width).map(move |_| slot(*stream)));
        Arc::new(Client {
            clock: clock.clone(),
            state: Mutex::new(ClientState {
                random: Random(seed),
                slots: slots.collect(),
                moved: Moved::default(),
                submitted: 0,
                answered: 0,
                failed: 0,
                written: 0,
                is_over: false,
                waited_ns: [0; Class::COUNT],
            }),
            queue: OnceLock::new(),
        })
    }

    fn submit(&self, slots: impl Iterator<Item = usize>) {
        let Some(queue) = self.queue.get().and_then(Weak::upgrade) else { return };
        let mut requests: Vec<Request> = {
            let mut state = self.state.lock().unwrap();
            let now = self.clock.now_ns();
            let state = &mut *state;
            let requests = slots.map(|tag| request(&mut state.random, &mut state.slots[tag], tag, now));
            requests.collect()
        };
        self.state.lock().unwrap().submitted += requests.len() as u64;
        // No lock is held: the queue may answer at once.
        queue.submit(&mut requests);
    }
}

fn request(random: &mut Random, slot: &mut Slot, tag: usize, now: u64) -> Request {
    assert!(slot.began_ns.replace(now).is_none(), "a slot has one request");
    let len = slot.stream.bytes;
    let offset = random.below(SPAN / len as u64) * len as u64;
    // SAFETY: the buffer is the slot's, which has no other request; it lives until the queue is
    // closed.
    let buf = unsafe {
        match slot.stream.writes {
            true => RawBuf::write_from(slot.buf.as_ptr(), len),
            false => RawBuf::read_into(slot.buf.as_mut_ptr(), len),
        }
    };
    Request { offset, buf, class: slot.stream.class, tag: tag as u64 }
}

impl Sink for Client {
    fn complete(&self, tag: u64, result: Result<(), IoError>) {
        let mut state = self.state.lock().unwrap();
        let now = self.clock.now_ns();
        let slot = &mut state.slots[tag as usize];
        let began = slot.began_ns.take().expect("a request is answered once");
        let Stream { class, bytes, writes, .. } = slot.stream;
        state.answered += 1;
        state.written += u64::from(writes);
        let waited_ns = &mut state.waited_ns[class as usize];
        *waited_ns = (*waited_ns).max(now - began);
        match result {
            Ok(()) => {
                state.moved.requests += 1.0;
                state.moved.bytes += bytes as f64;
            }
            Err(_) => state.failed += 1,
        }
        let is_over = state.is_over;
        drop(state);
        if !is_over {
            self.submit(std::iter::once(tag as usize));
        }
    }
}

/// A device with the queues on it.
pub struct World {
    pub clock: Clock,
    pub queues: Vec<Arc<DeviceQueue>>,
    clients: Vec<Arc<Client>>,
}

impl World {
    /// `count` queues that know nothing of each other, and begin with `config`.
    pub fn new(
        model: DeviceModel,
        troubles: Troubles,
        config: QueueConfig,
        load: TestLoad,
        count: u64,
    ) -> World {
        let clock = Clock::virtual_time(1);
        let seed = troubles.seed;
        let bytes = Arc::new(SparseMemoryDevice::new("bytes", SPAN, 1 << 30));
        let device = SimulatedDevice::with_troubles(model, troubles, bytes, &clock).expect("it is in bounds");
        let device: Arc<dyn Device> = Arc::new(device);
        let mut world = World { clock: clock.clone(), queues: Vec::new(), clients: Vec::new() };
        for i in 0..count {
            let client = Client::new(&clock, load, seed ^ i);
            let queue = DeviceQueue::open(device.clone(), config.clone(), clock.clone(), client.clone());
            let queue = queue.expect("simulated queues open");
            client.queue.set(Arc::downgrade(&queue)).expect("set once");
            world.queues.push(queue);
            world.clients.push(client);
        }
        world.clients.iter().for_each(|client| client.submit(0..load.slots()));
        world
    }

    /// Lets time pass; returns what each queue moved meanwhile.
    pub fn run_each(&self, ns: u64) -> Vec<Moved> {
        for client in &self.clients {
            client.state.lock().unwrap().moved = Moved::default();
        }
        // In small steps, so that what is believed is looked at between them.
        let until = self.clock.now_ns() + ns;
        while self.clock.now_ns() < until {
            self.clock.sleep_ns((until - self.clock.now_ns()).min(20 * MS));
            self.queues.iter().for_each(|queue| is_sane(&queue.cost()));
        }
        let moved = |client: &Arc<Client>| Moved { ns: ns as f64, ..client.state.lock().unwrap().moved };
        self.clients.iter().map(moved).collect()
    }

    /// Lets time pass; returns what the first queue moved meanwhile.
    pub fn run(&self, ns: u64) -> Moved {
        self.run_each(ns)[0]
    }

    /// Requests of the first queue that failed.
    pub fn failed(&self) -> u64 {
        self.clients[0].state.lock().unwrap().failed
    }

    /// Writes to the first queue that are over.
    pub fn written(&self) -> u64 {
        self.clients[0].state.lock().unwrap().written
    }

    /// Closes the queues. No request waited longer than `most_ns`, and each was answered.
    pub fn end(self, most_ns: u64) {
        for (queue, client) in self.queues.iter().zip(&self.clients) {
            let now = self.clock.now_ns();
            {
                let mut state = client.state.lock().unwrap();
                state.is_over = true;
                let ClientState { slots, waited_ns, .. } = &mut *state;
                for slot in slots.iter() {
                    let waits = &mut waited_ns[slot.stream.class as usize];
                    *waits = (*waits).max(slot.began_ns.map_or(0, |began| now - began));
                }
                for class in Class::ALL {
                    let ms = waited_ns[class as usize] / MS;
                    assert!(ms <= most_ns / MS, "a {} request waited for {ms} ms", class.name());
                }
            }
            queue.close();
            let state = client.state.lock().unwrap();
            assert_eq!(state.submitted, state.answered, "each request is answered");
            assert!(state.slots.iter().all(|slot| slot.began_ns.is_none()));
        }
    }
}

/// Asserts that all costs are positive and finite.
fn is_sane(cost: &CostModel) {
    let CostModel { latency_ns, ns_per_request, bytes_per_s, depth, .. } = *cost;
    let is_sane = (2..60 * S).contains(&latency_ns)
        && (2..60 * S).contains(&ns_per_request)
        && (1000..1_000_000_000_000).contains(&bytes_per_s)
        && (1..=256).contains(&depth)
        && (0.0..=1.0).contains(&cost.request_share());
    assert!(is_sane, "this is believed: {cost:?}");
}

/// Moved in so much time under a load at each of some fixed depths, with the costs known.
pub fn fixed(model: &DeviceModel, troubles: &Troubles, load: TestLoad, ns: u64) -> Vec<Moved> {
    let at = |depth| {
        let cost = Some(model.cost(SPAN));
        let config = QueueConfig { learns: false, depth: Some(depth), cost, ..QueueConfig::default() };
        let world = World::new(model.clone(), troubles.clone(), config, load, 1);
        world.run(S / 2);
        let moved = world.run(ns);
        world.end(u64::MAX);
        moved
    };
    [8, 24, 64, 256].map(at).into()
}
