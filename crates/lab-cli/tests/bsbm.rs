//! The benchmark's commands as a user meets them: repeats that are judged, runs that are verified,
//! figures without perf.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::AtomicBool;

use serde_json::Value;
use snowmelt_bsbm::WordLists;
use snowmelt_graph::load::LoadOptions;
use snowmelt_store::StoreConfig;
use snowmelt_workload::dataset::generate_and_load;

fn lab(dir: &Path, line: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_snowmelt-lab"));
    command.current_dir(dir).args(line.split(' ')).output().unwrap()
}

fn told(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat()
}

fn ok(dir: &Path, line: &str) -> String {
    let output = lab(dir, line);
    assert!(output.status.success(), "{line}: {}", told(&output));
    told(&output)
}

fn refused(dir: &Path, line: &str) -> String {
    let output = lab(dir, line);
    assert_eq!(output.status.code(), Some(1), "{line}: {}", told(&output));
    told(&output)
}

/// A folder with databases of some numbers of products, each named after its own.
fn databases(products: &[u32]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for n in products {
        let store = StoreConfig { memory_bytes: 128 << 20, ..StoreConfig::default() };
        let load = LoadOptions { store, threads: 1, ..LoadOptions::default() };
        let db = dir.path().join(format!("{n}.db"));
        generate_and_load(*n, WordLists::synthetic(), &db, &load, &(), &AtomicBool::new(false)).unwrap();
    }
    dir
}

fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

const DRIVE: &str = "bsbm drive 70.db --memory 128MiB --mixes 4 --warmup 1";

#[test]
fn each_repeat_is_kept_and_three_are_judged() {
    let dir = databases(&[70]);
    let path = dir.path();
    for (run, repeats) in [("one", 3), ("two", 3), ("few", 2)] {
        ok(path, &format!("{DRIVE} --repeats {repeats} --out {run}"));
    }
    let of = |name: &str, query: &Value| {
        let all = lines(&path.join(name).join("queries.jsonl"));
        all.into_iter().filter(|line| line["query"] == *query).collect::<Vec<_>>()
    };
    let mixes = of("one", &"mix".into());
    assert_eq!(mixes.iter().map(|line| line["repeat"].as_u64().unwrap()).collect::<Vec<_>>(), [1, 2, 3]);
    assert!(mixes.iter().all(|line| line["count"] == 4 && line["qmph"].as_f64().unwrap() > 0.0), "{mixes:?}");
    let digests: Vec<Value> = of("one", &5.into()).iter().map(|line| line["digest"].clone()).collect();
    assert!(digests.len() == 3 && digests.iter().all(|digest| *digest == digests[0]), "{digests:?}");
    let result = json(&path.join("one/result.json"));
    assert_eq!((&result["repeats"][2]["repeat"], &result["mix"]["mixes"]), (&3.into(), &12.into()));
    let compared = ok(path, "compare one two --out both");
    let mix = compared.lines().find(|line| line.starts_with("mix ") && line.contains("qmph"));
    assert!(mix.is_some_and(|line| !line.contains("too few")), "{compared}");
    assert!(!compared.contains("without a verdict"), "{compared}");
    assert!(ok(path, "compare one few --out fewer").contains("too few repeats"));
}

#[test]
fn a_run_of_another_size_is_no_one_to_verify_with() {
    let dir = databases(&[70, 90]);
    let path = dir.path();
    ok(path, &format!("{DRIVE} --out stored"));
    ok(path, &format!("{DRIVE} --verify stored --repeats 2"));
    for (line, says) in [
        (format!("{DRIVE} --mixes 5"), "mixes 5 here and 4 there"),
        (format!("{DRIVE} --seed 7"), "seed 7 here and 808080 there"),
        (DRIVE.replace("--warmup 1", "--warmup 2"), "warmup 2 here and 1 there"),
        (DRIVE.replace("70.db", "90.db"), "products 90 here and 70 there"),
        (format!("{DRIVE} --use-case bi"), "use case \"bi\" here and \"explore\" there"),
    ] {
        let line = line.replace("--mixes 4 --warmup 1 --mixes 5", "--warmup 1 --mixes 5");
        let said = refused(path, &format!("{line} --verify stored --out never"));
        assert!(said.contains(says), "{line}: {said}");
        assert!(!path.join("never").exists(), "nothing is measured");
    }
    let said = refused(path, &format!("{DRIVE} --verify {} --out never", endpoint_with(50)));
    assert!(said.contains("products 70 here and 50 there"), "{said}");
}

/// An endpoint that counts the offers of so many products, whatever it is asked.
fn endpoint_with(products: u32) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/sparql", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let lines = BufReader::new(stream.try_clone().unwrap()).lines();
            lines.map_while(Result::ok).take_while(|line| !line.is_empty()).for_each(drop);
            let body = format!(
                "<sparql xmlns=\"http://www.w3.org/2005/sparql-results#\"><head><variable name=\"offers\"/></head>\
                 <results><result><binding name=\"offers\"><literal>{}</literal></binding></result></results>\
                 </sparql>",
                products * 20
            );
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n", body.len());
            let _ = stream.write_all(format!("{head}\r\n{body}").as_bytes());
        }
    });
    url
}

#[test]
fn differing_answers_are_kept_and_shown() {
    let dir = databases(&[70]);
    let path = dir.path();
    ok(path, &format!("{DRIVE} --out stored"));
    // The stored run has a row more in one of its answers.
    let mut kept = lines(&path.join("stored/kept.jsonl"));
    let has_rows = |line: &&mut Value| line["answer"].as_str().unwrap().contains("</result>");
    let planted = kept.iter_mut().find(has_rows).unwrap();
    let answer = planted["answer"].as_str().unwrap().to_owned();
    let row = &answer[answer.find("<result>").unwrap()..answer.find("</result>").unwrap()];
    planted["answer"] = answer.replacen(row, &format!("{row}</result>{row}"), 1).into();
    let text = planted["text"].clone();
    let write = |name: &str, lines: &[Value]| {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        fs::write(path.join("stored").join(name), text).unwrap();
    };
    write("kept.jsonl", &kept);
    let mut answers = lines(&path.join("stored/answers.jsonl"));
    let answer = answers.iter_mut().find(|line| line["text"] == text).unwrap();
    answer["rows"] = (answer["rows"].as_u64().unwrap() + 1).into();
    write("answers.jsonl", &answers);

    let said = refused(path, &format!("{DRIVE} --verify stored --out run"));
    assert!(said.contains("0 rows only here, the first: none; 1 only there: ?"), "{said}");
    let difference = json(&path.join("run/result.json"))["verification"]["differences"][0].take();
    let shown = &difference["shown"];
    let found = (&shown["only_here"], &shown["only_there"], &shown["why_not"]);
    assert_eq!(found, (&0.into(), &1.into(), &Value::Null));
    let first = shown["first_there"].as_str().unwrap();
    let is_of_the_row = |part: &str| row.contains(part.split(" = ").next().unwrap().trim_start_matches('?'));
    assert!(first.split(", ?").all(is_of_the_row), "{first} is {row}");
    assert!(difference["text"].as_str().unwrap().contains("SELECT"), "{difference}");
    let rows = |file: &Value| {
        let answer = fs::read_to_string(path.join("run").join(file.as_str().unwrap())).unwrap();
        answer.matches("<result>").count()
    };
    let files = shown["files"].as_array().unwrap();
    assert_eq!((files.len(), rows(&files[1])), (2, rows(&files[0]) + 1));
    let page = fs::read_to_string(path.join("run/report.html")).unwrap();
    assert!(page.contains("Different answers") && page.contains("differences/Q"), "on the page");
    let said = refused(path, &format!("{DRIVE} --verify stored --keep-answers 0 --out none"));
    assert!(said.contains("of this run was not kept") && !path.join("none/kept.jsonl").exists(), "{said}");
}

#[test]
fn queries_for_another_size_of_data_are_doubted() {
    let dir = databases(&[70]);
    let said = ok(dir.path(), &format!("{DRIVE} --products 500 --out run"));
    assert!(said.contains("doubt: queries were drawn for 500 products, and 70.db has 70"), "{said}");
    let doubts = json(&dir.path().join("run/settings.json"))["doubts"].to_string();
    assert!(doubts.contains("drawn for 500 products"), "{doubts}");
    assert!(!ok(dir.path(), &format!("{DRIVE} --products 70")).contains("were drawn for"));
}

#[test]
fn a_ratio_to_a_published_rate_needs_a_cheap_driver() {
    let dir = databases(&[70]);
    let path = dir.path();
    let said = ok(path, &format!("{DRIVE} --published 1000 --out run"));
    let result = json(&path.join("run/result.json"));
    let (own, published) = (&result["driver"]["own"], &result["published"]);
    let share = own["share"].as_f64().unwrap();
    assert!(share > 0.0 && own["query_us"].as_f64().unwrap() > 0.0, "{own}");
    assert!(said.contains("the driver's own cost: "), "{said}");
    assert!(fs::read_to_string(path.join("run/report.html")).unwrap().contains("own cost: "));
    match published["ratio"].as_f64() {
        Some(ratio) => {
            assert!(share <= 0.1 && (ratio - result["qmph"].as_f64().unwrap() / 1000.0).abs() < 1e-9);
            assert!(said.contains("× the published 1000 QMpH"), "{said}");
        }
        None => assert!(share > 0.1 && said.contains("no ratio to the published 1000 QMpH"), "{said}"),
    }
}

#[test]
fn a_run_in_this_process_tells_its_driver_s_cost() {
    let dir = databases(&[70]);
    let line = "bsbm run 70.db --memory 128MiB --mixes 4 --warmup 1";
    assert!(ok(dir.path(), line).contains("the driver's own cost: "));
    let output = lab(dir.path(), &format!("{line} --format json"));
    let all: Value = serde_json::from_slice(&output.stdout).unwrap();
    let own = &all["meters"]["own"];
    assert!(own["query_us"].as_f64().unwrap() > 0.0 && own["asking_us"].is_null(), "{own}");
}

#[test]
fn figures_come_without_perf_and_say_why() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path();
    let perf = path.join("perf");
    let script = "#!/bin/sh\n[ \"$1\" = --version ] && exit 0\necho 'No permission to enable cycles event.' >&2\nexit 1\n";
    fs::write(&perf, script).unwrap();
    fs::set_permissions(&perf, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_snowmelt-lab"));
    let line = "bsbm scale --products 70,90 --mixes 3 --warmup 2 --memory 128MiB --flame f.svg --out run --format json";
    let output = command.current_dir(path).args(line.split(' ')).env("PATH", path).output().unwrap();
    assert!(output.status.success(), "{}", told(&output));
    let all: Value = serde_json::from_slice(&output.stdout).unwrap();
    let why = all["scales"][0]["profile"]["missing"].as_str().unwrap();
    assert!(why.contains("No permission to enable cycles event."), "{why}");
    assert!(String::from_utf8_lossy(&output.stderr).contains(why), "told on the terminal, too");
    assert!(all["scales"][0]["steady"]["mixes"] == 3 && !all["growth"].as_array().unwrap().is_empty());
    assert!(!path.join("f.svg").exists() && !path.join("f-70.svg").exists());
    assert!(fs::read_to_string(path.join("run/report.html")).unwrap().contains("No permission to enable"));
    ok(path, "compare run run --out same");
}

#[test]
fn functions_of_two_runs_are_compared() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path();
    ok(path, "bsbm scale --products 70 --mixes 3 --warmup 2 --memory 128MiB --out before");
    ok(path, "bsbm scale --products 70 --mixes 3 --warmup 2 --memory 128MiB --out after");
    for (run, own) in [("before", 0.1), ("after", 0.31)] {
        let line = serde_json::json!({
            "profile": "70 products", "samples": 1000, "function": "exec::compare", "own": own, "with_callees": 0.5,
        });
        fs::write(path.join(run).join("functions.jsonl"), format!("{line}\n")).unwrap();
    }
    let said = ok(path, "compare before after --out both");
    let line = said.lines().find(|line| line.contains("exec::compare")).unwrap_or_else(|| panic!("{said}"));
    assert_eq!(
        line.split_whitespace().collect::<Vec<_>>(),
        ["10.0", "%", "31.0", "%", "+21.0", "exec::compare"]
    );
    let page = fs::read_to_string(path.join("both/report.html")).unwrap();
    assert!(page.contains("Functions in both profiles") && page.contains("+21.0"));
}
