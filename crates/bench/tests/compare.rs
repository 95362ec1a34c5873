//! A comparison of engines that this test program plays itself: one that is right, one whose
//! answers differ, one that fails on its second start, one that is missing.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use snowmelt_bench::compare::data::DataSet;
use snowmelt_bench::compare::field::{self, Entrant, Skipped};
use snowmelt_bench::compare::outcome::Standings;
use snowmelt_bench::compare::workload::Questions;
use snowmelt_bench::compare::{ComparePlan, Comparison};
use snowmelt_engines::{Adapter, Language, Settings, Work};
use snowmelt_lab::Run;
use snowmelt_lab::undo::Undo;

const HEAD: &str =
    "<sparql xmlns=\"http://www.w3.org/2005/sparql-results#\"><head><variable name=\"n\"/></head><results>";
const TRIPLES: &str = "<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\"/>";

/// The engine's server: STUB_WORD is its answer to all but a count of the lines in STUB_DATA.
#[test]
#[ignore = "it is the stub that the other tests start"]
fn stub_engine() {
    let Ok(port) = std::env::var("STUB_PORT") else { return };
    let (word, data) = (std::env::var("STUB_WORD").unwrap(), std::env::var("STUB_DATA").unwrap());
    let starts = format!("{data}.starts");
    let before = fs::read_to_string(&starts).unwrap_or_default();
    fs::write(&starts, format!("{before}x")).unwrap();
    if word == "frail" && before.len() == 1 {
        println!("the database is damaged");
        std::process::exit(3);
    }
    let count = fs::read_to_string(&data).unwrap().lines().count();
    let listener = TcpListener::bind(("127.0.0.1", port.parse().unwrap())).unwrap();
    for stream in listener.incoming() {
        let word = word.clone();
        std::thread::spawn(move || serve(stream.unwrap(), &word, count));
    }
}

fn serve(stream: TcpStream, word: &str, count: usize) {
    let mut stream = BufReader::new(stream);
    loop {
        let (mut head, mut line) = (String::new(), String::new());
        while stream.read_line(&mut line).unwrap_or(0) > 2 {
            head += &line;
            line.clear();
        }
        if head.is_empty() {
            return;
        }
        let word = if head.contains("COUNT") { count.to_string() } else { word.to_owned() };
        let solutions = format!(
            "{HEAD}<result><binding name=\"n\"><literal>{word}</literal></binding></result></results></sparql>"
        );
        let body = if head.contains("rdf+xml") { TRIPLES } else { &solutions };
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        if stream.get_mut().write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

/// A session, which knows the number of rows at scale 0.01.
const SESSION: &str = r#"
[session]
run = ["sh", "-c", 'while read -r text; do case $text in "$0") echo "$0 false";; *count*region*) echo 86805;; S*) echo WORD;; esac; done', "{mark}"]
ask = "S {text}\n{mark}\n"
"#;

fn adapter(dir: &Path, name: &str, word: &str) -> Adapter {
    read(dir, name, &text_of(name, word))
}

fn read(dir: &Path, name: &str, text: &str) -> Adapter {
    let path = dir.join(format!("{name}.toml"));
    fs::write(&path, text).unwrap();
    Adapter::read(&path).unwrap()
}

fn text_of(name: &str, word: &str) -> String {
    let program = std::env::current_exe().unwrap();
    format!(
        r#"
name = "{name}"
title = "Engine {name}"
answers = ["sparql"]
install = ["get {name}"]
data = "{{folder}}/db"
endpoint = "http://127.0.0.1:{{port}}/sparql"
start = ["{}", "stub_engine", "--exact", "--ignored", "--nocapture"]
ready = {{ tcp = "127.0.0.1:{{port}}", seconds = 20 }}
[find]
version = ["{}", "--list"]
[environment]
STUB_PORT = "{{port}}"
STUB_WORD = "{word}"
STUB_DATA = "{{folder}}/db"
[load]
server = "stopped"
steps = [{{ run = ["cp", "{{data}}", "{{folder}}/db"] }}]
"#,
        program.display(),
        if word == "missing" { "/no/such/program".into() } else { program.display().to_string() },
    )
}

struct Stage {
    dir: tempfile::TempDir,
    work: Work,
}

impl Stage {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let undo = Undo::open_in(&dir.path().join("journals"), "test").unwrap();
        Self { dir, work: Work { undo, stop: Arc::new(AtomicBool::new(false)) } }
    }

    fn settings(&self) -> Settings {
        let path = self.dir.path();
        Settings {
            folder: path.join("engines"),
            memory: 1 << 20,
            threads: 1,
            port: None,
            engines: "/nowhere".into(),
            snowmelt: "/nowhere".into(),
            data: path.join("data.nt"),
            parts: path.join("parts"),
        }
    }

    fn find(
        &self,
        words: &[(&str, &str)],
        required: &[String],
    ) -> anyhow::Result<(Vec<Entrant>, Vec<Skipped>)> {
        let adapters = words.iter().map(|(name, word)| adapter(self.dir.path(), name, word)).collect();
        field::find(adapters, Language::Sparql, required, &self.settings(), &self.work)
    }

    /// Engines whose sessions answer each statement with one row of a word.
    fn find_sql(&self, words: &[(&str, &str)]) -> (Vec<Entrant>, Vec<Skipped>) {
        let of = |(name, word): &(&str, &str)| {
            let mut text = text_of(name, word).replace("[\"sparql\"]", "[\"sql\"]");
            if *word != "tableless" {
                text = text.replace("[load]", "[load-tables]") + &SESSION.replace("WORD", word);
            }
            let text = text.replace("\"{data}\", \"{folder}/db\"", "\"{data}/nation.csv\", \"{folder}/db\"");
            read(self.dir.path(), name, &text)
        };
        let settings = Settings { data: self.dir.path().join("tables"), ..self.settings() };
        let adapters = words.iter().map(of).collect();
        field::find(adapters, Language::Sql, &[], &settings, &self.work).unwrap()
    }

    fn compare(&self, field: &mut [Entrant], repeats: u32) -> Standings {
        let plan = ComparePlan {
            memory: 1 << 20,
            threads: 1,
            clients: 2,
            repeats,
            cold_mixes: 2,
            warmup: 1,
            mixes: 3,
            most_seconds: 60,
            timeout_ms: 10_000,
            seed: 7,
        };
        let (data, questions) = match field[0].language {
            Language::Sparql => {
                let data = DataSet::generate(self.dir.path(), 30, None, 0).unwrap();
                (data, Questions::bsbm(100, plan.seed).unwrap())
            }
            Language::Sql => (DataSet::tables(self.dir.path(), 0.01, 0).unwrap(), Questions::tpch(0.01)),
        };
        let (stop, say) = (self.work.stop.clone(), |_: &str| ());
        let comparison = Comparison { plan: &plan, questions: &questions, stop: &stop, say: &say };
        comparison.load(field, &data).unwrap();
        let run = Run::create("compare-engines", Some(&self.dir.path().join("run"))).unwrap();
        let mut lines = run.lines("turns").unwrap();
        let outcome = comparison.run(field, &mut lines).unwrap();
        assert_eq!(outcome.entries[0].loaded.unwrap().items, data.items);
        let doubts = outcome.doubts(&questions, data.items).join("\n");
        fs::write(self.dir.path().join("doubts"), doubts).unwrap();
        outcome
    }
}

#[test]
fn a_missing_engine_is_skipped_visibly_unless_it_is_required() {
    let stage = Stage::new();
    let engines = [("one", "a"), ("two", "missing")];
    let (field, skipped) = stage.find(&engines, &[]).unwrap();
    assert_eq!(field.len(), 1);
    let line = field::skip_line(&skipped[0]);
    assert!(line.starts_with("SKIPPED two: ") && line.ends_with("install it: get two"), "{line}");
    let error = stage.find(&engines, &["two".into()]).err().unwrap().to_string();
    assert!(error.starts_with("--require two: ") && error.contains("get two"), "{error}");
    let error = stage.find(&engines, &["six".into()]).err().unwrap().to_string();
    assert!(error.contains("--require six"), "{error}");
    let error = stage.find(&[("two", "missing")], &[]).err().unwrap().to_string();
    assert!(error.contains("none of the engines") && error.contains("get two"), "{error}");
    assert!(stage.find(&[("one", "a"), ("one", "a")], &[]).is_err());
}

#[test]
fn engines_are_measured_in_turns_and_their_answers_compared() {
    let stage = Stage::new();
    let (mut field, _) = stage.find(&[("one", "same"), ("two", "same"), ("three", "other")], &[]).unwrap();
    let mut outcome = stage.compare(&mut field, 3);
    let order: Vec<_> = outcome.turns.iter().map(|turn| (turn.engine.as_str(), turn.repeat)).collect();
    let expected = [
        ("one", 1),
        ("two", 1),
        ("three", 1),
        ("two", 2),
        ("three", 2),
        ("one", 2),
        ("three", 3),
        ("one", 3),
        ("two", 3),
    ];
    assert_eq!(order, expected);
    for turn in &outcome.turns {
        assert_eq!((turn.cold_mixes, turn.warm_mixes, turn.failed), (2, 3, 0));
        assert!(turn.first_answer_s >= turn.ready_s && turn.cold_s >= turn.first_answer_s, "{turn:?}");
        assert_eq!(turn.cold_course.len(), 2);
        assert!(turn.cold_files.is_some() || turn.not_cold.is_some());
    }
    let [one, two, three] = outcome.entries.as_slice() else { panic!("three entries") };
    assert!(one.verification.is_none() && one.ratios.is_empty());
    let two = two.verification.as_ref().unwrap();
    assert!(two.compared > 50 && two.differences.is_empty() && two.alone == 0, "{two:?}");
    let three = three.verification.as_ref().unwrap();
    // DESCRIBE and CONSTRUCT have the same empty graph.
    assert!(three.differences.len() > 50 && three.differences.iter().all(|d| d.query != 9 && d.query != 12));
    let doubts = fs::read_to_string(stage.dir.path().join("doubts")).unwrap();
    assert!(doubts.contains("answers of Engine three differ") && !doubts.contains("Engine two"), "{doubts}");
    let run = stage.dir.path().join("run");
    let stored = fs::read_to_string(run.join("turns.jsonl")).unwrap();
    assert_eq!(stored.lines().count(), 9);
    outcome.show_answers(&run).unwrap();
    let three = outcome.entries[2].verification.as_ref().unwrap();
    let shown = three.differences[0].shown.as_ref().unwrap();
    assert!(shown.why_not.is_none() && shown.only_here > 0 && shown.first_there.is_some(), "{shown:?}");
    let [here, there] = [0, 1].map(|side| fs::read_to_string(run.join(&shown.files[side])).unwrap());
    assert!(shown.files[0].starts_with("differences/three-Q"), "{shown:?}");
    assert!(here.contains("other") && there.contains("same"), "{here} {there}");
}

#[test]
fn an_engine_that_fails_is_told_and_the_others_go_on() {
    let stage = Stage::new();
    let (mut field, _) = stage.find(&[("one", "same"), ("two", "frail")], &[]).unwrap();
    let outcome = stage.compare(&mut field, 2);
    assert_eq!(outcome.turns.iter().filter(|turn| turn.engine == "one").count(), 2);
    let why = outcome.entries[1].failed.as_ref().unwrap();
    assert!(why.contains("repetition 1") && why.contains("the database is damaged"), "{why}");
    let doubts = fs::read_to_string(stage.dir.path().join("doubts")).unwrap();
    assert!(doubts.contains("Engine two failed"), "{doubts}");
}

#[test]
fn engines_in_sql_are_asked_in_sessions() {
    let stage = Stage::new();
    let (mut field, skipped) = stage.find_sql(&[("one", "same"), ("two", "other"), ("three", "tableless")]);
    assert!(skipped[0].engine == "three" && skipped[0].why.contains("[load-tables]"), "{skipped:?}");
    let outcome = stage.compare(&mut field, 1);
    for turn in &outcome.turns {
        assert_eq!((turn.cold_mixes, turn.warm_mixes, turn.failed), (2, 3, 0), "{turn:?}");
        assert_eq!(turn.warm_queries.len(), 22);
    }
    let two = outcome.entries[1].verification.as_ref().unwrap();
    assert_eq!((two.compared, two.differences.len()), (22, 22));
    let doubts = fs::read_to_string(stage.dir.path().join("doubts")).unwrap();
    assert!(doubts.contains("Q6 of Engine one has another answer than the known one"), "{doubts}");
    assert!(!doubts.contains("holds"), "{doubts}");
}
