//! The command as a user meets it: load, ask, look, and every kind of bad input answered by one
//! line, exit code 1 for errors and 2 for usage.

mod support;

use support::Server;
use support::bench::{Bench, has};

#[test]
fn load_then_ask_in_every_format() {
    let bench = Bench::loaded();
    let query = "PREFIX ex: <http://example.org/> SELECT ?n ?a { ?p ex:name ?n ; ex:age ?a } ORDER BY ?a";
    assert_eq!(
        bench.ok(&["query", "db", query, "--format", "csv"]).replace('\r', ""),
        "n,a\nBen,7\nAnna,31\n"
    );
    let json: serde_json::Value =
        serde_json::from_str(&bench.ok(&["query", "db", query, "--format", "json"])).unwrap();
    assert_eq!(json["results"]["bindings"][0]["n"]["xml:lang"], "en");
    has(&bench.ok(&["query", "db", query, "--format", "xml"]), &["<literal xml:lang=\"en\">Ben</literal>"]);
    has(&bench.ok(&["query", "db", query, "--format", "tsv"]), &["\"Ben\"@en\t7"]);
    has(&bench.ok(&["query", "db", query]), &["Anna", "(2 rows)"]);
    has(&bench.ok(&["query", "db", query, "--explain"]), &["PSOG"]);
    has(&bench.ok(&["query", "db", query, "--analyze"]), &["2 rows", "rnd"]);
    let plan = bench.ok(&["query", "db", query, "--analyze", "--format", "json"]);
    let plan: serde_json::Value = serde_json::from_str(&plan).unwrap();
    assert_eq!(plan["outcome"]["rows"], 2, "{plan:#}");
    assert!(bench.error(&["query", "db", query, "--explain", "--format", "csv"]).contains("--format json"));
    let construct = "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }";
    assert_eq!(bench.ok(&["query", "db", construct, "--format", "nt"]).lines().count(), 5);
    has(&bench.ok(&["query", "db", "ASK { ?s ?p 7 }"]), &["yes"]);
}

#[test]
fn prefixes_are_kept_listed_changed_and_used() {
    let bench = Bench::loaded();
    assert_eq!(bench.ok(&["prefix", "db"]), "ex: <http://example.org/>\n");
    assert_eq!(bench.ok(&["prefix", "db", "p:", "<urn:p:>"]), "");
    bench.ok(&["prefix", "db", "", "urn:none:"]);
    assert_eq!(bench.ok(&["prefix", "db", "p"]), "p: <urn:p:>\n");
    assert_eq!(bench.ok(&["prefix", "db"]).lines().count(), 3);
    // a query has them without declaring them, and errors keep their places
    let query = "SELECT ?a { ex:anna ex:age ?a }";
    assert_eq!(bench.ok(&["query", "db", query, "--format", "csv"]).replace('\r', ""), "a\n31\n");
    has(&bench.error(&["query", "db", "SELECT ?a { ex:anna none:age ?a }"]), &["line 1, column 21"]);
    has(&bench.ok(&["query", "db", "SELECT ?s { ?s ex:age 7 }"]), &["ex:ben"]);
    let turtle = ["query", "db", "CONSTRUCT { ?s ex:n ?n } WHERE { ?s ex:name ?n }", "--format", "ttl"];
    has(&bench.ok(&turtle), &["@prefix ex: <http://example.org/> .", "ex:anna ex:n \"Anna\""]);
    has(&bench.ok(&["dump", "db", "--format", "ttl"]), &["ex:anna ex:name \"Anna\""]);
    bench.ok(&["prefix", "db", "--remove", "p", "--remove", ""]);
    assert_eq!(bench.ok(&["prefix", "db"]).lines().count(), 1);
    has(&bench.error(&["prefix", "db", "--remove", "p"]), &["keeps no prefix p:"]);
    has(&bench.error(&["prefix", "db", "p"]), &["keeps no prefix p:"]);
    has(&bench.error(&["prefix", "db", "a b", "urn:x"]), &["cannot be kept", "no name of a prefix"]);
    has(&bench.error(&["prefix", "db", "a", "x"]), &["no absolute IRI"]);
}

#[test]
fn things_are_described_in_the_form_that_is_asked_for() {
    let bench = Bench::loaded();
    let lines =
        |form: &str| bench.ok(&["query", "db", "DESCRIBE ex:ben", "--describe", form]).lines().count();
    assert_eq!((lines("cbd"), lines("symmetric"), lines("labelled")), (2, 3, 2));
    assert_eq!(bench.run(&["query", "db", "ASK {}", "--describe", "all"]).status.code(), Some(2));
}

#[test]
fn a_function_that_is_not_there_is_told_on_standard_error() {
    let bench = Bench::loaded();
    let [out, told] = bench.both(&["query", "db", "ASK { FILTER(<urn:f>(1)) }", "--format", "csv"]);
    assert_eq!(out.trim(), "false");
    assert_eq!(told, "warning: there is no function <urn:f> of one argument: each call of it is an error\n");
    let update = "DELETE { ?s ?p ?o } WHERE { ?s ?p ?o FILTER(<urn:f>(?o)) }";
    has(&bench.both(&["update", "db", update])[1], &["warning: there is no function <urn:f>", "0 deleted"]);
}

#[test]
fn the_doctor_looks_at_a_database_and_at_a_server() {
    let bench = Bench::loaded();
    let looked = |name: &str, switches: &[&str]| -> (Option<i32>, serde_json::Value) {
        let run = bench.run(&[&["doctor", name, "--format", "json"], switches].concat());
        let error = String::from_utf8_lossy(&run.stderr).into_owned();
        (run.status.code(), serde_json::from_slice(&run.stdout).unwrap_or_else(|_| panic!("{error}")))
    };
    let abouts = |looked: &serde_json::Value| -> Vec<String> {
        let findings = looked["findings"].as_array().unwrap();
        findings.iter().map(|finding| finding["about"].as_str().unwrap().to_owned()).collect()
    };
    let files = || std::fs::read_dir(bench.path("db")).unwrap().count();
    let before = files();
    let (_, free) = looked("db", &["--memory", "64MiB"]);
    assert_eq!(files(), before, "nothing is left");
    for about in ["memory", "io_uring", "pool", "room in db", "stripe 0: profile", "syncs"] {
        assert!(abouts(&free).iter().any(|a| a == about), "{about}: {free:#}");
    }
    // More memory than any machine has is a problem, and the first finding.
    let (code, problem) = looked("db", &["--memory", "9000t"]);
    assert_eq!((code, &problem["findings"][0]["level"]), (Some(1), &"problem".into()));
    assert_eq!(problem["findings"][0]["about"], "memory");
    has(&bench.error(&["doctor", "nowhere"]), &["nowhere", "no such directory"]);
    has(&bench.error(&["doctor", "."]), &["name one of them", "db"]);
    has(&bench.error(&["doctor", "localhost:7878"]), &["http://"]);
    has(&bench.error(&["doctor", "https://localhost:7878"]), &["--cacert"]);
    has(&bench.error(&["doctor", "ftp://localhost:7878"]), &["only http://"]);
    assert_eq!(bench.run(&["doctor"]).status.code(), Some(2));

    let server = Server::start(&bench.path("db"), &[]);
    let (_, beside) = looked("db", &[]);
    assert!(abouts(&beside).iter().any(|about| about == "server: checkpoints"), "{beside:#}");
    let (code, served) = looked(&format!("HTTP://{}/ready", server.address), &[]);
    assert_eq!(code, Some(0), "{served:#}");
    assert!(abouts(&served).iter().any(|about| about == "server: requests"), "{served:#}");
    let mut beside_a_proxy = bench.command(&["doctor", &format!("http://{}", server.address)]);
    for variable in ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"] {
        beside_a_proxy.env(variable, "http://127.0.0.1:1");
    }
    assert!(beside_a_proxy.output().unwrap().status.success(), "a proxy of the environment was asked");
}

#[test]
fn every_engine_and_rule_gives_the_same() {
    let bench = Bench::loaded();
    let query = "SELECT (COUNT(*) AS ?n) (SUM(?a) AS ?s) { ?x <http://example.org/age> ?a }";
    for switches in [
        &["--engine", "threads"][..],
        &["--engine", "inline"],
        &["--fairness", "0", "--depth", "1"],
        &["--direct", "off", "--read-ahead", "none"],
        &["--read-ahead", "planned,scan", "--device", "sim:nvme"],
        &["--memory", "1MiB"],
    ] {
        let args = [&["query", "db", query, "--format", "csv"], switches].concat();
        assert_eq!(bench.ok(&args).replace('\r', ""), "n,s\n2,38\n", "{switches:?}");
    }
}

#[test]
fn what_is_stored_comes_out_again() {
    let bench = Bench::loaded();
    let stats: serde_json::Value =
        serde_json::from_str(&bench.ok(&["stats", "db", "--format", "json"])).unwrap();
    assert_eq!(stats["quads"], 5);
    has(&bench.ok(&["stats", "db"]), &["quads", "psog"]);
    let statistics: serde_json::Value =
        serde_json::from_str(&bench.ok(&["stats", "db", "--statistics", "--format", "json"])).unwrap();
    let rows = |of: &serde_json::Value| of["rows"].as_u64().unwrap();
    assert_eq!(statistics["predicates"].as_array().unwrap().iter().map(rows).sum::<u64>(), 5);
    let subjects = |of: &serde_json::Value| of["subjects"].as_u64().unwrap();
    assert_eq!(statistics["sets"].as_array().unwrap().iter().map(subjects).sum::<u64>(), stats["subjects"]);
    has(&bench.ok(&["stats", "db", "--statistics"]), &["5 quads; 0 added", "predicates that they have"]);
    has(&bench.ok(&["check", "db"]), &["sound"]);
    let first = bench.ok(&["dump", "db", "--format", "nt"]);
    assert_eq!(first.lines().count(), 5);
    bench.write("again.nt", &first);
    bench.ok(&["load", "db2", "again.nt"]);
    let sorted = |text: &str| {
        let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&first), sorted(&bench.ok(&["dump", "db2", "--format", "nt"])));
}

#[test]
fn a_backup_is_a_database_like_any_other() {
    let bench = Bench::loaded();
    let dump = |db: &str| bench.ok(&["dump", db, "--format", "nt"]);
    has(&bench.ok(&["backup", "db", "copy"]), &["copy", "pages", "transaction"]);
    has(&bench.ok(&["check", "copy"]), &["sound"]);
    assert_eq!(dump("copy"), dump("db"));
    has(&bench.error(&["backup", "db", "copy"]), &["copy", "already a database"]);
    bench.ok(&["restore", "copy", "restored", "--stripe", "data-file"]);
    assert!(bench.path("data-file").is_file());
    assert_eq!(dump("restored"), dump("db"));
    has(&bench.ok(&["compact", "restored"]), &["bytes"]);
    has(&bench.ok(&["check", "restored", "--salvage"]), &["sound"]);
    assert_eq!(dump("restored"), dump("db"));
}

#[test]
fn a_set_of_backups_has_every_state() {
    let bench = Bench::loaded();
    let dump = |db: &str| bench.ok(&["dump", db, "--format", "nt"]);
    let add = || bench.ok(&["backup", "db", "set", "--incremental"]);
    has(&add(), &["0001-whole", "pages", "transaction"]);
    has(&add(), &["nothing has changed"]);
    let before = dump("db");
    bench.ok(&["update", "db", "INSERT DATA { <urn:late> <urn:p> 1 }"]);
    has(&add(), &["0002-changes"]);
    let listed = bench.ok(&["restore", "set", "--list"]);
    has(&listed, &["0001-whole", "all pages", "0002-changes", "Z  transaction"]);
    bench.ok(&["restore", "set", "newest"]);
    assert_eq!(dump("newest"), dump("db"));
    has(&bench.ok(&["check", "newest"]), &["sound"]);
    let first = listed.split("transaction ").nth(1).unwrap().split_whitespace().next().unwrap().to_owned();
    bench.ok(&["restore", "set", "first", "--at", &first, "--stripe", "elsewhere"]);
    assert!(bench.path("elsewhere").is_file());
    assert_eq!(dump("first"), before);
    has(&bench.error(&["restore", "set", "early", "--at", "2001-01-01"]), &["no state as old"]);
    assert!(!bench.path("early").exists());
    has(&bench.error(&["restore", "set", "newest"]), &["already a database"]);
    has(&bench.error(&["restore", "db", "x", "--at", "3"]), &["not a set"]);
    has(&bench.error(&["restore", "nowhere", "x"]), &["nowhere"]);
    has(&bench.error(&["restore", "nowhere", "--list"]), &["no set of backups"]);
    has(&bench.error(&["backup", "newest", "set", "--incremental"]), &["another database"]);
}

#[test]
fn malformed_rdf_loads_nothing_unless_lenient() {
    let bench = Bench::new();
    let (good, bad) = ("<urn:a> <urn:b> <urn:c> .\n", "<urn:a> <urn:b> nonsense .\n");
    bench.write("bad.nt", &format!("{good}{bad}<urn:d> <urn:e> \"f\" .\n{bad}"));
    bench.write("one.nt", &format!("{good}{bad}"));
    has(&bench.error(&["load", "db", "bad.nt"]), &["bad.nt:2:"]);
    assert!(!bench.path("db").exists(), "a failed load leaves a database behind");
    let much = bench.command(&["load", "db", "bad.nt", "--lenient"]).output().unwrap();
    assert_eq!(much.status.code(), Some(1));
    has(&String::from_utf8(much.stderr).unwrap(), &["bad.nt:2:17", "2 of 4", "--lenient-most"]);
    assert!(!bench.path("db").exists(), "a failed load leaves a database behind");
    bench.ok(&["load", "db", "bad.nt", "--lenient", "--lenient-most", "50"]);
    assert_eq!(bench.ok(&["dump", "db"]).lines().count(), 2);
    bench.ok(&["load", "one", "one.nt", "--lenient"]);
}

#[test]
fn errors_say_what_where_and_what_next() {
    let bench = Bench::loaded();
    has(&bench.error(&["load", "new", "missing.nt"]), &["missing.nt"]);
    has(&bench.error(&["query", "nowhere", "ASK {}"]), &["nowhere", "snowmelt load"]);
    has(&bench.error(&["query", "db", "SELECT * {\n ?s ?p"]), &["line 2"]);
    let service = "SELECT * { SERVICE <urn:x> { ?s ?p ?o } }";
    has(&bench.error(&["query", "db", service]), &["SERVICE", "<urn:x>", "--allow-service"]);
    has(&bench.error(&["query", "db", "ASK {}", "--memory", "1KiB"]), &["pool"]);
    has(&bench.error(&["serve", "db", "--listen", "0.0.0.0:7878"]), &["loopback"]);
    std::fs::create_dir(bench.path("empty")).unwrap();
    has(&bench.error(&["check", "empty"]), &["empty", "not a Snowmelt database"]);
}

#[test]
fn usage_errors_have_code_2() {
    let bench = Bench::loaded();
    for args in [
        &["nonsense"][..],
        &["query"],
        &["query", "db", "ASK {}", "--engine", "steam"],
        &["query", "db", "ASK {}", "--memory", "much"],
        &["query", "db", "ASK {}", "--read-ahead", "sideways"],
        &["dump", "db", "--format", "docx"],
    ] {
        assert_eq!(bench.run(args).status.code(), Some(2), "{args:?}");
    }
}

#[test]
fn damage_is_named_and_never_a_panic() {
    let bench = Bench::loaded();
    let stripe = bench.path("db").join("stripe-0");
    let whole = std::fs::read(&stripe).unwrap();
    let mut seen = 0;
    // Each tree's first pages, at the start of its extent of 2 MiB, and one in the middle.
    let places = (0..whole.len()).step_by(2 << 20).flat_map(|extent| [extent + 100, extent + 8192 + 5000]);
    for at in places {
        let mut damaged = whole.clone();
        damaged[at] ^= 0xFF;
        std::fs::write(&stripe, &damaged).unwrap();
        let output = bench.run(&["check", "db"]);
        match output.status.code() {
            Some(0) => {} // an unused page
            Some(1) => {
                seen += 1;
                has(
                    &String::from_utf8_lossy(&[output.stdout, output.stderr].concat()),
                    &["stripe-0", "page"],
                );
            }
            other => panic!("byte {at}: exit code {other:?}"),
        }
    }
    assert!(seen > 0, "no damaged page was in use");
    std::fs::write(&stripe, &whole[..whole.len() / 2]).unwrap();
    has(&bench.error(&["query", "db", "ASK { ?s ?p ?o }"]), &["stripe-0", "truncated"]);
}

#[test]
fn a_held_lock_is_refused() {
    let bench = Bench::loaded();
    let _server = Server::start(&bench.path("db"), &[]);
    has(&bench.error(&["query", "db", "ASK {}"]), &["db"]);
    // Statistics come from the server that holds the lock.
    has(&bench.ok(&["stats", "db"]), &["quads"]);
}

#[test]
fn updates_are_all_or_nothing_and_stay() {
    let bench = Bench::loaded();
    let count =
        |bench: &Bench| bench.ok(&["query", "db", "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }", "--format", "csv"]);
    has(&count(&bench), &["5"]);
    bench.ok(&[
        "update",
        "db",
        "PREFIX ex: <http://example.org/> INSERT DATA { ex:cara ex:knows ex:anna, ex:dan }",
    ]);
    has(&count(&bench), &["7"]);
    has(&bench.ok(&["check", "db"]), &["sound"]);
    let refused = bench.error(&["update", "db", "DELETE WHERE { ?s ?p ?o } ; LOAD <file:///etc/hostname>"]);
    has(&refused, &["file:///etc/hostname", "--allow-load"]);
    has(&count(&bench), &["7"]);
    let wrong = bench.error(&["update", "db", "INSERT DATA { ?s <urn:p> 1 }"]);
    has(&wrong, &["line 1", "INSERT DATA can have no variables"]);
    let folder = bench.path("").canonicalize().unwrap();
    let load = format!("LOAD <file://{}/data.ttl> INTO GRAPH <urn:g>", folder.display());
    bench.ok(&["update", "db", &load, "--allow-load", "."]);
    let named = "SELECT (COUNT(*) AS ?n) { GRAPH <urn:g> { ?s ?p ?o } }";
    has(&bench.ok(&["query", "db", named, "--format", "csv"]), &["5"]);
    bench.write("more.nt", "<urn:x> <urn:y> <urn:z> .\n");
    bench.ok(&["load", "db", "more.nt"]);
    has(&count(&bench), &["8"]);
    has(&bench.ok(&["check", "db"]), &["sound"]);
}
