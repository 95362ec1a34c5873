//! Meters of a Snowmelt server, by its `/stats`. The kernel tells none of them: its I/O wait is
//! that of the whole machine, and zero of a server whose other threads keep the processors busy.

use std::time::Duration;

use serde_json::Value;
use snowmelt_lab::http;
use snowmelt_store::PAGE_BYTES;

use super::WorkingSet;
use snowmelt_workload::sampler::Counts;

/// An answer must come within this: a sample is a second long.
const PATIENCE: Duration = Duration::from_millis(800);

/// A Snowmelt server that tells its meters.
#[derive(Debug)]
pub struct ServerMeters {
    url: String,
}

/// Sums at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct MetersNow {
    requests: u64,
    pages: u64,
    bytes: u64,
    used_bytes: u64,
    ahead_issued: u64,
    ahead_used: u64,
    left: u64,
    wait_ns: u64,
}

impl ServerMeters {
    /// The meters of the server whose endpoint this is; nothing if it is none of Snowmelt, or does
    /// not show them to us.
    pub fn of_endpoint(url: &str) -> Option<Self> {
        addresses(url).into_iter().find(|url| ask(url).is_some()).map(|url| Self { url })
    }

    /// Its sums now.
    pub fn counts(&self) -> Option<Counts> {
        ask(&self.url).map(MetersNow::counts)
    }

    /// Pages that queries used since it counts, which is since it was started, and the pages that
    /// were read ahead, with those of them that were used. The pages that it reads while it starts
    /// are a part of its warming.
    pub fn used(&self) -> Option<(WorkingSet, (u64, u64))> {
        let now = ask(&self.url)?;
        let working_set = WorkingSet {
            pages: now.used_bytes / PAGE_BYTES as u64,
            bytes: now.used_bytes,
            is_exact: now.left == 0,
            missing_at_most: 0,
        };
        Some((working_set, (now.ahead_issued, now.ahead_used)))
    }

    /// Its address.
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl MetersNow {
    /// Of the JSON of `/stats`; nothing if it is another server's.
    fn parse(text: &str) -> Option<Self> {
        let all: Value = serde_json::from_str(text).ok()?;
        let reads = |name: &str| all["reads"][name].as_u64();
        let classes = all["devices"].as_array()?.iter().flat_map(|device| device["classes"].as_array());
        let of_devices = classes.flatten().filter_map(|class| class["wait_ns"].as_u64()).sum::<u64>();
        Some(Self {
            requests: reads("requests")?,
            pages: reads("pages")?,
            bytes: reads("bytes")?,
            used_bytes: reads("used_bytes")?,
            ahead_issued: reads("ahead_issued")?,
            ahead_used: reads("ahead_used")?,
            left: all["pool"]["left"].as_u64()?,
            wait_ns: of_devices + all["journal"]["wait_ns"].as_u64()?,
        })
    }

    fn counts(self) -> Counts {
        Counts {
            cpu_s: None,
            requests: Some(self.requests),
            pages: Some(self.pages),
            bytes: Some(self.bytes),
            wait_s: Some(self.wait_ns as f64 / 1e9),
        }
    }
}

fn ask(url: &str) -> Option<MetersNow> {
    let answer = http::get(url, "application/json", PATIENCE).ok()?;
    if answer.status() != 200 {
        return None;
    }
    MetersNow::parse(&answer.text().ok()?)
}

/// Where the meters may be: beside the endpoint, as those of one dataset of several are, or at the
/// root.
fn addresses(url: &str) -> Vec<String> {
    let Some((scheme, rest)) = url.split_once("://") else { return Vec::new() };
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let beside = path.rsplit_once('/').map(|(above, _)| format!("{scheme}://{host}/{above}/stats"));
    beside.into_iter().chain([format!("{scheme}://{host}/stats")]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use snowmelt_graph::GraphDatabase;
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;

    #[test]
    fn meters_are_beside_the_endpoint_or_at_the_root() {
        assert_eq!(addresses("http://h:7878/sparql"), ["http://h:7878/stats"]);
        assert_eq!(addresses("http://h/shop/query?x"), ["http://h/shop/stats", "http://h/stats"]);
        assert!(addresses("db").is_empty());
    }

    /// Serves `bodies` one after the other, whatever is asked.
    fn serve(bodies: Vec<String>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/sparql", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            for body in bodies {
                let (mut stream, _) = listener.accept().unwrap();
                let lines = BufReader::new(stream.try_clone().unwrap()).lines();
                lines.map(Result::unwrap).take_while(|line| !line.is_empty()).for_each(drop);
                let head =
                    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n", body.len());
                stream.write_all(format!("{head}\r\n{body}").as_bytes()).unwrap();
            }
        });
        url
    }

    #[test]
    fn a_server_s_meters_are_those_of_its_store() {
        let dir = tempfile::tempdir().unwrap();
        let db = dir.path().join("db");
        let database = GraphDatabase::create(&db, &[], &Default::default()).unwrap();
        let store = database.database().store().clone();
        let json = database.database().report().json().to_string();
        let counts = Counts::of_store(&store);
        let found = MetersNow::parse(&json).expect("a report of ours").counts();
        assert_eq!(
            (found.requests, found.pages, found.bytes, found.wait_s),
            (counts.requests, counts.pages, counts.bytes, counts.wait_s)
        );
        assert_eq!(MetersNow::parse("{\"reads\": 1}"), None);
    }

    #[test]
    fn waits_of_all_classes_and_of_the_journal_count() {
        let stats = |wait: u64, used: u64| {
            format!(
                "{{\"reads\":{{\"requests\":3,\"pages\":4,\"bytes\":5,\"used_bytes\":{used},\"ahead_issued\":7,\
                 \"ahead_used\":6}},\"devices\":[{{\"classes\":[{{\"wait_ns\":{wait}}},{{\"wait_ns\":500000000}}]}}],\
                 \"journal\":{{\"wait_ns\":1000000000}},\"pool\":{{\"left\":0}}}}"
            )
        };
        let url = serve(vec![stats(0, 8192), stats(2_000_000_000, 8192), stats(0, 8192 * 3)]);
        let meters = ServerMeters::of_endpoint(&url).unwrap();
        assert_eq!(meters.counts().unwrap().wait_s, Some(3.5));
        let (working_set, ahead) = meters.used().unwrap();
        assert_eq!((working_set.pages, working_set.is_exact, ahead), (3, true, (7, 6)));
        assert!(ServerMeters::of_endpoint(&serve(vec!["{}".into()])).is_none());
    }
}
