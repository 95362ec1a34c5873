//! Engines through their life, played by this test program itself: started, ready, loaded,
//! stopped, crashed; and each way that goes wrong.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use snowmelt_engines::{Adapter, Asked, Engine, EngineError, Language, Settings, Work};
use snowmelt_lab::undo::Undo;

/// The engine's server, when it is started by an adapter: STUB says how it behaves.
#[test]
#[ignore = "it is the stub that the other tests start"]
fn stub_server() {
    let Ok(mode) = std::env::var("STUB") else { return };
    println!("the stub is {mode}");
    if mode == "ends" {
        println!("it has no licence");
        std::process::exit(7);
    }
    if mode == "silent" {
        std::thread::sleep(Duration::from_secs(600));
    }
    let stop = (mode == "deaf").then(|| snowmelt_base::signals::stop_flag().unwrap());
    let port: u16 = std::env::var("STUB_PORT").unwrap().parse().unwrap();
    let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
    for stream in listener.incoming() {
        let mut stream = stream.unwrap();
        let _ = stream.read(&mut [0; 1000]);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        assert!(stop.is_some() || mode == "good");
    }
}

const ADAPTER: &str = r#"
name = "stub"
title = "The stub"
answers = ["sparql"]
install = ["cargo test"]
data = "{folder}/db"
endpoint = "http://127.0.0.1:{port}/sparql"
start = ["PROGRAM", "stub_server", "--exact", "--ignored", "--nocapture"]
ready = { tcp = "127.0.0.1:{port}", http = "http://127.0.0.1:{port}/ready", seconds = 2 }
stop = { seconds = 1 }
[find]
version = ["sh", "-c", "echo stub 1.2"]
[environment]
STUB = "MODE"
STUB_PORT = "{port}"
[[file]]
path = "{folder}/stub.ini"
text = "buffers = {buffers}\n"
[numbers]
buffers = { of = "memory", share = 0.5, unit = 8192 }
[[create]]
run = ["mkdir", "{folder}/db"]
[load]
server = "running"
steps = [
    { run = ["cp", "{data}", "{folder}/db/data"] },
    { run = ["sh", "-c", "echo $$ > {folder}/db/$$.session"], sessions = "{threads}" },
]
[commands]
sql = ["sh", "-c", "echo asked {text}"]
wrong = ["sh", "-c", "echo first; echo no such table >&2; exit 3"]
[session]
run = ["sh", "{folder}/session.sh", "{mark}"]
ask = "{text} of {mark}\n"
[[file]]
path = "{folder}/session.sh"
text = """
while read text rest; do
  case $text in
    slow) sleep 600 & wait;;
    bye) echo it leaves >&2; exit 3;;
    wrong) echo "$1 true no such table";;
    *) echo "$text|1"; echo "$text|2"; echo "$1 false";;
  esac
done
"""
"#;

struct Stage {
    dir: tempfile::TempDir,
    work: Work,
}

impl Stage {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("data.nt"), "<urn:a> <urn:b> <urn:c> .\n").unwrap();
        let undo = Undo::open_in(&dir.path().join("journals"), "test").unwrap();
        Self { dir, work: Work { undo, stop: Arc::new(AtomicBool::new(false)) } }
    }

    fn adapter(mode: &str) -> String {
        let program = std::env::current_exe().unwrap();
        ADAPTER.replace("PROGRAM", program.to_str().unwrap()).replace("MODE", mode)
    }

    fn settings(&self, port: Option<u16>) -> Settings {
        Settings {
            folder: self.dir.path().join("engines"),
            memory: 1 << 20,
            threads: 3,
            port,
            engines: "/nowhere".into(),
            snowmelt: "/nowhere".into(),
            data: self.dir.path().join("data.nt"),
            parts: "/nowhere".into(),
        }
    }

    fn engine(&self, text: &str, port: Option<u16>) -> Engine {
        let path = self.dir.path().join("stub.toml");
        fs::write(&path, text).unwrap();
        let settings = self.settings(port);
        Engine::new(Adapter::read(&path).unwrap(), &settings, self.work.clone()).unwrap()
    }

    fn mode(&self, mode: &str) -> Engine {
        self.engine(&Self::adapter(mode), None)
    }
}

fn is_alive(pid: u32) -> bool {
    snowmelt_lab::undo::process_start(pid).is_some()
}

#[test]
fn an_engine_is_created_loaded_started_stopped_and_crashed() {
    let stage = Stage::new();
    let engine = stage.mode("good");
    assert_eq!(engine.find().unwrap().version, "stub 1.2");
    engine.create().unwrap();
    assert_eq!(fs::read_to_string(engine.folder().join("stub.ini")).unwrap(), "buffers = 64\n");
    assert!(engine.load(Language::Sparql).unwrap() > 0.0);
    let stored: Vec<_> = fs::read_dir(engine.data()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(stored.len(), 1 + 3, "the data, and one file of each session: {stored:?}");
    assert_eq!(engine.bytes().unwrap(), 4 * 4096);
    let server = engine.start().unwrap();
    assert!(is_alive(server.pid()) && server.ready_s() > 0.0);
    assert_eq!(engine.command("sql", &[("text", "17")]).unwrap(), "asked 17\n");
    let pid = server.pid();
    server.stop().unwrap();
    assert!(!is_alive(pid));
    let server = engine.start().unwrap();
    let pid = server.pid();
    server.crash();
    assert!(!is_alive(pid));
    let server = engine.start().unwrap();
    let pid = server.pid();
    drop(server);
    assert!(!is_alive(pid), "a server that is forgotten is stopped");
}

#[test]
fn a_folder_may_be_relative() {
    let stage = Stage::new();
    let below = tempfile::tempdir_in(".").unwrap();
    let relative = std::path::PathBuf::from(below.path().file_name().unwrap());
    fs::copy(stage.dir.path().join("data.nt"), relative.join("data.nt")).unwrap();
    let settings =
        Settings { folder: relative.join("engines"), data: relative.join("data.nt"), ..stage.settings(None) };
    let path = stage.dir.path().join("stub.toml");
    fs::write(&path, Stage::adapter("good")).unwrap();
    let engine = Engine::new(Adapter::read(&path).unwrap(), &settings, stage.work.clone()).unwrap();
    engine.create().unwrap();
    engine.load(Language::Sparql).unwrap();
    assert!(engine.bytes().unwrap() > 0);
}

#[test]
fn a_failed_command_is_told_with_its_messages() {
    let stage = Stage::new();
    let engine = stage.mode("good");
    engine.create().unwrap();
    let error = engine.command("wrong", &[]).unwrap_err().to_string();
    assert!(error.contains("exit status: 3") && error.contains("no such table"), "{error}");
    assert!(engine.command("other", &[]).unwrap_err().to_string().contains("no command other"));
}

#[test]
fn a_server_that_ends_is_told_with_its_log() {
    let stage = Stage::new();
    let engine = stage.mode("ends");
    engine.create().unwrap();
    let error = engine.start().err().unwrap();
    assert!(matches!(error, EngineError::Ended { .. }), "{error}");
    assert!(
        error.to_string().contains("exit status: 7") && error.to_string().contains("no licence"),
        "{error}"
    );
}

#[test]
fn a_server_that_is_never_ready_is_stopped_and_told_with_its_log() {
    let stage = Stage::new();
    let engine = stage.mode("silent");
    engine.create().unwrap();
    let begun = Instant::now();
    let error = engine.start().err().unwrap();
    assert!(matches!(error, EngineError::NotReady { seconds: 2, .. }), "{error}");
    assert!(error.to_string().contains("the stub is silent") && error.to_string().contains("GET http://"));
    assert!(begun.elapsed() < Duration::from_secs(20));
    assert!(no_process_in(engine.folder()), "it was stopped");
}

/// True if nothing runs in that folder.
fn no_process_in(folder: &Path) -> bool {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes.filter_map(|entry| fs::read_link(entry.path().join("cwd")).ok()).all(|cwd| cwd != folder)
}

#[test]
fn a_stop_that_hangs_ends_in_a_kill_that_is_told() {
    let stage = Stage::new();
    let engine = stage.mode("deaf");
    engine.create().unwrap();
    let server = engine.start().unwrap();
    let pid = server.pid();
    let error = server.stop().err().unwrap();
    assert!(matches!(error, EngineError::StopHung { seconds: 1, .. }), "{error}");
    assert!(!is_alive(pid));
}

#[test]
fn a_port_in_use_is_told_before_anything_is_started() {
    let stage = Stage::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let engine = stage.engine(&Stage::adapter("good"), Some(port));
    engine.create().unwrap();
    let error = engine.start().err().unwrap();
    assert!(matches!(error, EngineError::PortInUse { .. }), "{error}");
    assert!(
        error.to_string().contains(&port.to_string()) && error.to_string().contains("ss -ltnp"),
        "{error}"
    );
    TcpStream::connect(("127.0.0.1", port)).unwrap();
}

#[test]
fn a_missing_engine_is_told_with_its_install_line() {
    let stage = Stage::new();
    for (from, to) in [
        ("\"sh\", \"-c\", \"echo stub 1.2\"", "\"no-such-program\""),
        ("echo stub 1.2", "echo no module >&2; exit 1"),
        ("[find]", "[find]\nneeds = [\"{engines}/stub.jar\"]"),
    ] {
        let engine = stage.engine(&Stage::adapter("good").replace(from, to), None);
        let error = engine.find().unwrap_err();
        assert!(matches!(error, EngineError::Missing { .. }), "{error}");
        assert!(error.to_string().ends_with("install it: cargo test"), "{error}");
    }
}

#[test]
fn another_version_and_a_program_that_fails_are_not_called_missing() {
    let stage = Stage::new();
    let find = |find: &str, version: &str| {
        let text = Stage::adapter("good").replace("[find]", &format!("[find]\n{find}"));
        stage.engine(&text.replace("echo stub 1.2", version), None).find().map(|found| found.version)
    };
    assert_eq!(find("least = \"1.2\"\nbelow = \"1.3\"", "echo stub 1.2").unwrap(), "stub 1.2");
    // The version is told although a part of later ones is missing.
    for (bounds, wanted) in [
        ("least = \"1.10\"\nneeds = [\"no-such-part\"]", "1.10 or later"),
        ("below = \"1.2\"", "a version before 1.2"),
    ] {
        let error = find(bounds, "echo stub 1.2").unwrap_err();
        assert!(matches!(error, EngineError::Version { .. }), "{error}");
        let error = error.to_string();
        assert!(error.contains("The stub 1.2 is installed") && error.contains(wanted), "{error}");
        assert!(error.ends_with("install it: cargo test"), "{error}");
    }
    let error = find("needs = [\"sh\"]", "echo Java is too old >&2; exit 1").unwrap_err();
    assert!(matches!(error, EngineError::Unusable { .. }), "{error}");
    assert!(error.to_string().contains("cannot be used") && error.to_string().contains("too old"), "{error}");
}

#[test]
fn programs_are_those_of_the_latest_version_that_has_all() {
    let stage = Stage::new();
    let place = stage.dir.path().join("versions");
    for (version, programs) in [("9.2", vec!["old"]), ("9.10", vec!["old", "new"]), ("10", vec!["old"])] {
        let folder = place.join(version).join("bin");
        fs::create_dir_all(&folder).unwrap();
        for program in programs {
            let path = folder.join(program);
            fs::write(&path, format!("#!/bin/sh\necho version {version}\n")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
    }
    let version = |needs: &str| {
        let folders = format!("[find]\nneeds = [{needs}]\nfolders = [\"{}/*/bin\"]", place.display());
        let text = Stage::adapter("good").replace("[find]", &folders);
        stage.engine(&text.replace("[\"sh\", \"-c\", \"echo stub 1.2\"]", "[\"old\"]"), None).find()
    };
    assert_eq!(version("\"old\"").unwrap().version, "version 10");
    assert_eq!(version("\"old\", \"new\"").unwrap().version, "version 9.10");
}

#[test]
fn an_interrupted_start_stops_what_it_started() {
    let stage = Stage::new();
    let engine = stage.mode("silent");
    engine.create().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(300));
            stage.work.stop.store(true, Ordering::Relaxed);
        });
        let error = engine.start().err().unwrap();
        assert!(matches!(error, EngineError::Interrupted), "{error}");
    });
    assert!(no_process_in(engine.folder()));
}

#[test]
fn undo_stops_a_running_server() {
    let stage = Stage::new();
    let engine = stage.mode("good");
    engine.create().unwrap();
    let server = engine.start().unwrap();
    let pid = server.pid();
    // As `lab restore` would after a kill -9.
    stage.work.undo.undo().unwrap();
    assert!(!is_alive(pid));
}

#[test]
fn a_session_answers_one_statement_after_the_other() {
    let stage = Stage::new();
    let engine = stage.mode("good");
    engine.create().unwrap();
    let mut session = engine.session().unwrap();
    let mut ask = |text: &str| session.ask(text, Some(Duration::from_secs(20)));
    assert_eq!(ask("one").unwrap(), Asked::Rows("one|1\none|2\n".into()));
    assert_eq!(ask("wrong").unwrap(), Asked::Failed("no such table".into()));
    assert_eq!(ask("two").unwrap(), Asked::Rows("two|1\ntwo|2\n".into()));
    let error = ask("bye").unwrap_err().to_string();
    assert!(error.contains("exit status: 3") && error.ends_with("it leaves"), "{error}");
    let mut session = engine.session().unwrap();
    assert_eq!(session.ask("slow", Some(Duration::from_millis(50))).unwrap(), Asked::Late);
    stage.work.stop.store(true, Ordering::Relaxed);
    let mut session = engine.session().unwrap();
    assert!(matches!(session.ask("slow", None), Err(EngineError::Interrupted)));
}
