//! Takes an engine through its life: `engine NAME FOLDER FILE.nt [SQL]`. Checks that it is
//! installed; creates, loads, starts, stops and crashes it; prints the seconds and bytes of each
//! step.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use snowmelt_engines::{Adapter, Engine, EngineError, Language, Settings, Work};
use snowmelt_lab::undo::Undo;

fn main() -> Result<(), EngineError> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [name, folder, data, ..] = args.as_slice() else {
        println!("engine NAME FOLDER FILE.nt [SQL]");
        return Ok(());
    };
    let settings = Settings {
        folder: PathBuf::from(folder),
        memory: 4 << 30,
        threads: 2,
        port: None,
        engines: std::env::home_dir().unwrap_or_default().join(".local/share/snowmelt/engines"),
        snowmelt: "snowmelt".into(),
        data: data.into(),
        parts: PathBuf::from(data).parent().map(PathBuf::from).unwrap_or_default(),
    };
    let work = Work { undo: Undo::open("engine")?, stop: Arc::new(AtomicBool::new(false)) };
    let engine = Engine::new(Adapter::named(name)?, &settings, work)?;
    println!("{}", engine.find()?.version);
    engine.create()?;
    if engine.adapter().load.is_some() {
        println!("loaded in {:.2} s", engine.load(Language::Sparql)?);
    }
    println!("{} bytes", engine.bytes()?);
    let server = engine.start()?;
    println!("ready after {:.2} s at {:?}, process {}", server.ready_s(), engine.endpoint(), server.pid());
    if let Some(sql) = args.get(3) {
        print!("{}", engine.command("sql", &[("text", sql), ("database", "postgres")])?);
    }
    println!("stopped in {:.2} s", server.stop()?);
    engine.start()?.crash();
    let server = engine.start()?;
    println!("ready {:.2} s after a crash", server.ready_s());
    println!("stopped in {:.2} s", server.stop()?);
    Ok(())
}
