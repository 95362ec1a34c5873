//! SERVICE of endpoints of others: each answers as a server of ours does. They are started from
//! programs that are named by `SNOWMELT_OXIGRAPH` (the command) and `SNOWMELT_FUSEKI` (the jar).

mod support;

use std::fmt::Write as _;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use support::Server;
use support::bench::Bench;

/// Graph patterns to be asked of `SERVICE <E>`: batches of bindings, blank nodes of the endpoint,
/// OPTIONAL, an aggregate, a sub-query per batch, no row, and NOT EXISTS.
const QUERIES: [&str; 7] = [
    "SELECT ?h ?v ?l { ?h <urn:knows> ?s \
     SERVICE <E> { ?s <urn:value> ?v ; <urn:label> ?l FILTER(?v > 10) } }",
    "SELECT ?h ?n { ?h <urn:knows> ?s SERVICE <E> { ?s <urn:by> ?b . ?b <urn:name> ?n } }",
    "SELECT ?h ?m { ?h <urn:knows> ?s \
     OPTIONAL { SERVICE <E> { ?s <urn:value> ?v FILTER(?v < 100) BIND(?v * 2 AS ?m) } } }",
    "SELECT (COUNT(*) AS ?n) { SERVICE <E> { ?s ?p ?o } }",
    "SELECT ?h ?n { ?h <urn:knows> ?s \
     SERVICE <E> { SELECT ?s (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?s } }",
    "SELECT * { SERVICE <E> { <urn:s1> <urn:nothing> ?o } }",
    "SELECT ?h { ?h <urn:knows> ?s \
     FILTER NOT EXISTS { SERVICE <E> { ?s <urn:value> ?v FILTER(?v < 4900) } } }",
];

/// A server of another database, ended when it is dropped.
struct Other {
    child: Child,
    url: String,
}

impl Other {
    fn start(mut command: Command, address: SocketAddr, path: &str) -> Other {
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let other = Other { child, url: format!("http://{address}{path}") };
        let begun = Instant::now();
        while TcpStream::connect(address).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(120), "{} does not start", other.url);
            std::thread::sleep(Duration::from_millis(50));
        }
        other
    }

    fn oxigraph(bench: &Bench, program: &PathBuf) -> Other {
        let place = bench.path("oxigraph");
        let mut load = Command::new(program);
        load.arg("load").arg("--location").arg(&place).arg("--file").arg(bench.path("there.nt"));
        assert!(load.stderr(Stdio::null()).status().unwrap().success());
        let address = free();
        let mut serve = Command::new(program);
        serve.arg("serve-read-only").arg("--location").arg(&place).args(["--bind", &address.to_string()]);
        Other::start(serve, address, "/query")
    }

    fn fuseki(bench: &Bench, jar: &PathBuf) -> Other {
        let address = free();
        let mut serve = Command::new("java");
        serve.current_dir(bench.dir()).arg("-jar").arg(jar).args(["--localhost", "--file=there.nt"]);
        serve.args(["--port", &address.port().to_string(), "/ds"]);
        Other::start(serve, address, "/ds/query")
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os(name).map(PathBuf::from);
    if path.is_none() {
        println!("skipped: {name} names no program");
    }
    path
}

/// 5,000 subjects, some with a blank node, and 1,000 that know one of them.
fn data() -> Bench {
    let bench = Bench::new();
    let mut there = String::new();
    for n in 0..5000 {
        writeln!(there, "<urn:s{n}> <urn:value> \"{n}\"^^<http://www.w3.org/2001/XMLSchema#integer> .")
            .unwrap();
        writeln!(there, "<urn:s{n}> <urn:label> \"label {n} é\"@en .").unwrap();
        if n % 7 == 0 {
            writeln!(there, "<urn:s{n}> <urn:by> _:b{n} .\n_:b{n} <urn:name> \"n{n}\" .").unwrap();
        }
    }
    let here: String = (0..1000).map(|n| format!("<urn:here{n}> <urn:knows> <urn:s{}> .\n", 5 * n)).collect();
    bench.write("there.nt", &there);
    bench.write("here.nt", &here);
    bench.ok(&["load", "there", "there.nt"]);
    bench.ok(&["load", "here", "here.nt"]);
    bench
}

fn rows(bench: &Bench, query: &str, endpoint: &str) -> Vec<String> {
    let query = query.replace("<E>", &format!("<{endpoint}>"));
    let answer = bench.ok(&["query", "here", &query, "--allow-service", endpoint, "--format", "csv"]);
    let mut rows: Vec<String> = answer.lines().map(str::to_owned).collect();
    rows.sort_unstable();
    rows
}

#[test]
fn oxigraph_and_fuseki_answer_as_a_server_of_ours() {
    let (oxigraph, fuseki) = (program("SNOWMELT_OXIGRAPH"), program("SNOWMELT_FUSEKI"));
    if oxigraph.is_none() && fuseki.is_none() {
        return;
    }
    let bench = data();
    let ours = Server::start(&bench.path("there"), &[]);
    let others = [
        oxigraph.map(|program| Other::oxigraph(&bench, &program)),
        fuseki.map(|jar| Other::fuseki(&bench, &jar)),
    ];
    let counts: Vec<usize> = QUERIES
        .iter()
        .map(|query| {
            let expected = rows(&bench, query, &format!("http://{}/sparql", ours.address));
            for other in others.iter().flatten() {
                let differs = rows(&bench, query, &other.url) != expected;
                assert!(!differs, "{} answers otherwise: {query}", other.url);
            }
            expected.len() - 1
        })
        .collect();
    assert_eq!(counts, [997, 143, 1000, 1, 1000, 0, 20]);
}
