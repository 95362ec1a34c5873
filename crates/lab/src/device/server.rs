//! The server of one device: a process of its own, in the order in which things are made and
//! (backwards) taken down.
//!
//! 1. mount point, FUSE mount; 2. loop device; 3. its queue; 4. proof of depth, depth lowered,
//!    scheduler; 5. socket, record.
//!
//! Everything is in the undo journal, so that any end of this process (an order to stop, a
//! signal, an error) takes all down, and after kill -9 `lab restore` does. It reports to the
//! command that started it, in lines of JSON: each step it begins, so that a command that waits
//! too long can name it, and the outcome.

use std::io::{BufRead, ErrorKind, Write};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use fuser::{Config, MountOption, Session};
use serde::{Deserialize, Serialize};
use snowmelt_io::{
    Access, Clock, Device, FileDevice, LoopOptions, ReadDevice, SimulatedDevice, SparseMemoryDevice,
};

use super::control::{self, Answer, Ask, Status};
use super::disk_file::{DiskFile, FILE_NAME};
use super::medium::Medium;
use super::spec::Spec;
use super::state::{self, Record};
use super::{queue, self_test};
use crate::LabError;
use crate::target::held::Busy;
use crate::target::in_use::Claim;
use crate::undo::{Step, Undo, abort, is_listened_to, process_start, turn};

/// Messages of the server to the command that started it; `Doing` any number of times, then one
/// of the others.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StartOutcome {
    /// It begins with this step.
    Doing(String),
    /// The device stands.
    Ready(Box<Record>),
    /// It does not, and nothing is left of it.
    Failed(String),
}

/// Threads that take requests from the kernel: bytes of a file are fetched by the thread that
/// takes the request.
const FILE_THREADS: usize = 4;

struct Server {
    spec: Spec,
    model: Arc<SimulatedDevice>,
    medium: Arc<Medium>,
    memory: Option<Arc<SparseMemoryDevice>>,
    gate: Arc<self_test::Gate>,
    /// Of what holds the bytes.
    _claim: Option<Claim>,
}

/// A device that stands, with all that takes it down.
struct Standing {
    server: Server,
    listener: UnixListener,
    record: Record,
    _undo: Undo,
}

/// `lab device serve`: the description comes as one line on standard input.
pub fn run() -> Result<(), LabError> {
    // Of its own session, so that Ctrl-C and the end of the terminal are not its business.
    let _ = rustix::process::setsid();
    // Memory it needs must not wait for writes to its own device.
    let _ = rustix::process::configure_io_flusher_behavior(true);
    snowmelt_io::run_urgently();
    let outcome = stand();
    let said = match &outcome {
        Ok(standing) => StartOutcome::Ready(Box::new(standing.record.clone())),
        Err(e) => StartOutcome::Failed(e.to_string()),
    };
    let heard = say(&said);
    let standing = outcome?;
    if heard.is_err() {
        return Ok(()); // the command is gone; dropping the journal takes everything down
    }
    standing.server.answer_for_ever(&standing.listener)
}

fn say(what: &StartOutcome) -> std::io::Result<()> {
    let line = serde_json::to_string(what).expect("plain data");
    writeln!(std::io::stdout(), "{line}").and_then(|()| std::io::stdout().flush())
}

fn doing(what: &str) {
    // A reader that is gone is noticed at the end.
    drop(say(&StartOutcome::Doing(what.to_string())));
}

fn stand() -> Result<Standing, LabError> {
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line);
    read.map_err(|e| LabError::system("read the description of the device", e))?;
    let spec: Spec = serde_json::from_str(&line)
        .map_err(|e| LabError::Argument(format!("`device serve` is started by `device create`: {e}")))?;
    let undo = Undo::open(&format!("device-{}", spec.name))?;
    std::fs::create_dir_all(state::folder()).map_err(|e| LabError::file("make", &state::folder(), e))?;
    // Before anything is touched: of two servers of one name one has it. It goes last: a server
    // that takes long to unmount still answers, and is not taken for one that hangs.
    let listener = listen(&state::socket_path(&spec.name), &undo)?;
    let claim = claim(&spec, &undo)?;
    let server = Server::new(spec, claim)?;
    let record = server.raise(&undo)?;
    Ok(Standing { server, listener, record, _undo: undo })
}

/// Takes what is to hold the bytes; `device create` has asked whether its content may be lost. A
/// file shares its disk with others.
fn claim(spec: &Spec, undo: &Undo) -> Result<Option<Claim>, LabError> {
    match &spec.backing {
        Some(path) if snowmelt_io::is_block_device(path) => {
            Busy::default().take(path, true, &[], undo, &AtomicBool::new(false)).map(Some)
        }
        Some(path) => {
            let made = std::fs::OpenOptions::new().write(true).create(true).truncate(false).open(path);
            made.map_err(|e| LabError::file("open", path, e))?;
            Claim::of(path).map(Some)
        }
        None => Ok(None),
    }
}

/// The socket of a device, if no server has it; that of one that was killed is replaced.
fn listen(socket: &Path, undo: &Undo) -> Result<UnixListener, LabError> {
    // Held until it is ours: another server may look at the same moment.
    let folder = socket.parent().unwrap_or(Path::new("."));
    let taken = turn(folder, PATIENCE, || ()).map_err(|e| LabError::file("lock", folder, e))?;
    let _turn = taken.ok_or_else(|| {
        let why = "is locked by a server that makes its socket and does not end";
        LabError::refused(folder.display(), why, "end that process, then try again")
    })?;
    let is_left = match is_listened_to(socket) {
        Ok(true) => {
            let instead = "remove it first, or use another name";
            return Err(LabError::refused(socket.display(), "a device of that name is there", instead));
        }
        Ok(false) => true,
        Err(e) if e.kind() == ErrorKind::NotFound => false,
        Err(e) => return Err(LabError::file("look at", socket, e)), // its server may live
    };
    let bind = || {
        if is_left {
            std::fs::remove_file(socket)?;
        }
        UnixListener::bind(socket)
    };
    Ok(undo.make(Step::RemoveFile { path: socket.to_path_buf() }, bind)?.1)
}

/// For another server to have made its socket.
const PATIENCE: Duration = Duration::from_secs(10);

impl Server {
    fn new(spec: Spec, claim: Option<Claim>) -> Result<Server, LabError> {
        let mut memory = None;
        let backing: Arc<dyn Device> = match &spec.backing {
            Some(path) => {
                let file = FileDevice::open(path, Access::Create, false)?;
                if file.len()? < spec.size_bytes {
                    file.set_len(spec.size_bytes)?;
                }
                Arc::new(file)
            }
            None => {
                let sparse = SparseMemoryDevice::new(&spec.name, spec.size_bytes, spec.memory_bytes);
                memory.insert(Arc::new(sparse)).clone()
            }
        };
        let clock = Clock::real();
        let model = SimulatedDevice::with_priority(spec.model.clone(), backing.clone(), &clock, true)?;
        let medium = Arc::new(Medium::new(backing, spec.power_cut));
        Ok(Server { spec, model: Arc::new(model), medium, memory, gate: Arc::default(), _claim: claim })
    }

    fn raise(&self, undo: &Undo) -> Result<Record, LabError> {
        let name = &self.spec.name;
        let mount = state::mount_path(name);
        // It was made by the command that started us.
        undo.make(Step::RemoveFile { path: state::log_path(name) }, || Ok(()))?;
        undo.make_dir(&mount)?;
        doing("mounting its file system");
        undo.make(Step::Unmount { target: mount.clone() }, || self.mount(&mount))?;
        // Given up before what is set above it is set back, whatever has been made by then.
        let served = || undo.will(Step::Serve { target: mount.clone() });
        served()?;
        doing("attaching a loop device");
        let (_, device) = undo.attach_loop(&mount.join(FILE_NAME), &LoopOptions::default())?;
        doing("setting its queue");
        queue::describe(undo, &device, &self.spec)?;
        served()?;
        doing("the self-test");
        let (proven_depth, way_ns) = self.test(&device, &mount)?;
        self.model.set_way_ns(way_ns);
        doing("setting its queue");
        queue::limit(undo, &device, &self.spec)?;
        served()?;
        undo.will(Step::UnmountAll { device: device.clone() })?;
        self.model.reset_model();
        self.model.reset_counters();
        let pid = std::process::id();
        let record = Record {
            spec: self.spec.clone(),
            device,
            mount,
            pid,
            start: process_start(pid).unwrap_or(0),
            proven_depth,
            way_ns,
        };
        self.write_down(undo, &record)?;
        Ok(record)
    }

    /// The self-test, which ends: when its patience does, the connection is aborted, and with
    /// it whatever waits.
    fn test(&self, device: &Path, mount: &Path) -> Result<(u64, u64), LabError> {
        let patience = Duration::from_secs(self.spec.patience_s.into());
        let (over, is_over) = std::sync::mpsc::channel::<()>();
        std::thread::scope(|scope| {
            let watch = scope.spawn(move || {
                let late = is_over.recv_timeout(patience) == Err(RecvTimeoutError::Timeout);
                late.then(|| abort(mount))
            });
            let latency = Duration::from_nanos(self.spec.model.cost(0).latency_ns);
            let tested = self_test::prove_depth(device, &self.gate)
                .and_then(|depth| Ok((depth, self_test::measure_way(device, &self.gate, latency)?)));
            drop(over);
            match watch.join().expect("the watch does not panic") {
                None => tested,
                Some(_) => Err(LabError::refused(
                    format!("make device {}", self.spec.name),
                    format!("its self-test has not ended within {} s", patience.as_secs()),
                    "a model as slow as this one needs a longer --patience; else see what keeps the machine busy",
                )),
            }
        })
    }

    fn mount(&self, target: &Path) -> std::io::Result<()> {
        let file = DiskFile {
            medium: self.medium.clone(),
            model: self.model.clone(),
            len: self.spec.size_bytes,
            gate: self.gate.clone(),
            fetch_early: self.spec.backing.is_some(),
        };
        let mut config = Config::default();
        config.mount_options = vec![
            MountOption::FSName(format!("snowmelt-lab-{}", self.spec.name)),
            MountOption::Subtype("snowmelt-lab".into()),
            MountOption::NoSuid,
            MountOption::NoDev,
        ];
        config.n_threads = Some(if self.spec.backing.is_some() { FILE_THREADS } else { 1 });
        config.clone_fd = self.spec.backing.is_some();
        let session = Session::new(file, target, &config)?.spawn()?;
        // The journal unmounts it; its threads end with the mount.
        std::mem::forget(session);
        Ok(())
    }

    fn write_down(&self, undo: &Undo, record: &Record) -> Result<(), LabError> {
        let path = state::record_path(&self.spec.name);
        let text = serde_json::to_string_pretty(record).expect("plain data");
        // Written under another name first: a list of devices shows whole records only.
        let draft = path.with_extension("draft");
        let step = Step::RemoveFile { path: draft.clone() };
        let (_, mut file) = undo.make(step, || std::fs::File::create(&draft))?;
        file.write_all(text.as_bytes()).map_err(|e| LabError::file("write", &draft, e))?;
        undo.rename(&draft, &path)?;
        Ok(())
    }

    fn answer_for_ever(&self, listener: &UnixListener) -> Result<(), LabError> {
        for stream in listener.incoming() {
            // A client that goes away in the middle is no reason to end.
            drop(stream.and_then(|stream| control::serve(stream, |ask| self.answer(ask))));
        }
        Ok(())
    }

    fn answer(&self, ask: Ask) -> Answer {
        match ask {
            Ask::Status => Answer::Status(Box::new(Status {
                activity: self.model.activity(),
                lateness: self.model.lateness(),
                lateness_bound_ns: self.spec.lateness_bound_ns(),
                credits: self.model.credits(),
                on: self.medium.is_on(),
                unsynced: self.medium.unsynced(),
                held_bytes: self.memory.as_ref().map_or(0, |memory| memory.held_bytes()),
                refused: self.medium.refused(),
            })),
            Ask::Reset => {
                self.model.reset_model();
                self.model.reset_counters();
                self.medium.reset_counters();
                Answer::Done
            }
            Ask::SpendCredits => {
                self.model.spend_credits();
                Answer::Done
            }
            Ask::Cut { keep, seed } => match self.medium.cut(keep, seed) {
                Some(Ok(report)) => Answer::Cut(report),
                Some(Err(e)) => Answer::Failed(e.to_string()),
                None => Answer::Failed(format!(
                    "{} was made without --power-cut, so it does not keep what a cut would lose",
                    self.spec.name
                )),
            },
            Ask::PowerOn => {
                self.medium.power_on();
                self.model.reset_model();
                Answer::Done
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn of_servers_of_one_name_one_has_the_socket() {
        let dir = tempfile::tempdir().unwrap();
        let undo = Undo::open_in(&dir.path().join("state"), "test").unwrap();
        let socket = dir.path().join("disk.sock");
        crate::undo::left_at(&socket); // of a server that was killed
        let all: Vec<_> = std::thread::scope(|scope| {
            let begun: Vec<_> = (0..8).map(|_| scope.spawn(|| listen(&socket, &undo))).collect();
            begun.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let (one, others): (Vec<_>, Vec<_>) = all.into_iter().partition(Result::is_ok);
        assert_eq!((one.len(), others.len()), (1, 7));
        for other in others {
            let why = other.unwrap_err().to_string();
            assert!(why.contains("a device of that name is there"), "{why}");
        }
        UnixStream::connect(&socket).unwrap();
    }
}
