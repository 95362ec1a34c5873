//! Where io_uring or O_DIRECT is refused, the fallback is taken, one line says so, and the
//! bytes are the same.
#![allow(unsafe_code)]

mod support;

use std::path::Path;
use std::sync::{Arc, Mutex};

use snowmelt_io::*;
use support::*;

/// Notices of this process; tests take the lock, since there is one hook.
static NOTICES: Mutex<Vec<String>> = Mutex::new(Vec::new());
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn notices_of(act: impl FnOnce()) -> Vec<String> {
    let _one = ONE_AT_A_TIME.lock().unwrap();
    NOTICES.lock().unwrap().clear();
    set_notice(|line| NOTICES.lock().unwrap().push(line.to_string()));
    act();
    NOTICES.lock().unwrap().clone()
}

/// Has the kernel refuse io_uring_setup to this thread and those it starts, as container
/// runtimes do.
fn refuse_io_uring() {
    let instruction = |code: u32, jt, jf, k| libc::sock_filter { code: code as u16, jt, jf, k };
    let refuse = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
    let mut program = [
        instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0), // the number of the call
        instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, libc::SYS_io_uring_setup as u32),
        instruction(libc::BPF_RET | libc::BPF_K, 0, 0, refuse),
        instruction(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: both calls concern this thread; the program is read during the call.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter), 0);
    }
}

/// The engine that served, after reading ten pages through it.
fn read_with_uring(path: &Path, bytes: &[u8]) -> &'static str {
    let clock = Clock::real();
    let device: Arc<dyn Device> = Arc::new(FileDevice::open(path, Access::Read, false).unwrap());
    let sink = Remember::new(&clock);
    let queue = DeviceQueue::open(device, QueueConfig::default(), clock, sink.clone()).unwrap();
    let places: Vec<_> = (0..10).map(|i| (i * 24576, 8192)).collect();
    let mut batch = Batch::reads(&places, Class::Demand, 0);
    queue.submit(&mut batch.requests);
    sink.wait_for(10);
    for (place, buf) in places.iter().zip(&batch.bufs) {
        assert!(buf[..] == bytes[place.0 as usize..][..8192]);
    }
    queue.engine()
}

#[test]
fn without_io_uring_threads_read() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let bytes = pattern(256 << 10);
    std::fs::write(file.path(), &bytes).unwrap();
    let said = notices_of(|| {
        if read_with_uring(file.path(), &bytes) != "uring" {
            eprintln!("skipped: io_uring is not permitted here, so that its absence makes no difference");
        }
    });
    assert!(said.len() <= 1, "{said:?}");
    let said = notices_of(|| {
        std::thread::scope(|scope| {
            let refused = scope.spawn(|| {
                refuse_io_uring();
                read_with_uring(file.path(), &bytes)
            });
            assert_eq!(refused.join().unwrap(), "threads");
        });
    });
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("io_uring is refused") && said[0].contains("threads"), "{said:?}");
}

#[test]
fn without_o_direct_the_page_cache_is_used() {
    let path = Path::new("/proc/self/limits"); // procfs has no O_DIRECT
    let said = notices_of(|| {
        let device = FileDevice::open(path, Access::Read, true).unwrap();
        assert!(!device.is_direct());
        let mut start = [0; 5];
        device.read_at(&mut [std::io::IoSliceMut::new(&mut start)], 0).unwrap();
        assert_eq!(&start, b"Limit");
    });
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("O_DIRECT is refused"), "{said:?}");
}

#[test]
fn what_cannot_be_opened_is_said() {
    let missing = FileDevice::open(Path::new("/nowhere/at/all"), Access::Read, true).err().unwrap();
    assert_eq!(missing.to_string(), "/nowhere/at/all: open: No such file or directory (os error 2)");
}
