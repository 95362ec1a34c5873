//! A running server from outside: its own advice, whether it is ready, and what its meters say
//! since it began. Over HTTP, or over the socket in the database's folder.

use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use anyhow::bail;
use serde_json::Value;
use snowmelt_base::{printable, size};
use snowmelt_database::meters::as_json;
use snowmelt_server::RESOURCES;
use snowmelt_server::advice::{Signs, Topic, judged};
use snowmelt_server::control::{Command, Reply};

use super::disk;
use super::finding::Finding;
use super::visit::{Answer, Papers, Visit};
use crate::control::{self, Client};
use crate::foreign;

/// Time that the server of a database may take over its socket.
const PATIENCE: Duration = Duration::from_secs(10);

/// Answers of a server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServedFacts {
    /// Of `/stats`.
    pub meters: Value,
    /// The reason why it is not ready; `None` when it is, or was not asked.
    pub not_ready: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// Time since it began, where that is known.
    pub uptime: Option<Duration>,
}

/// Asks a server.
///
/// # Errors
/// It does not answer, or is none of ours, or wants a token.
pub fn ask(url: &str, papers: Papers<'_>) -> anyhow::Result<ServedFacts> {
    let (base, dataset) = parts(url)?;
    let visit = Visit::new(&base, papers)?;
    let Answer { status, body } = visit.get(&format!("{dataset}/stats"))?;
    let meters: Value = match status {
        200 => foreign::tamed(serde_json::from_slice(&body).unwrap_or_default()),
        401 | 403 => bail!("{base} wants a token with the rights admin: --token-file FILE"),
        404 if !dataset.is_empty() => bail!("{base} has no dataset {}", &dataset[1..]),
        _ => Value::Null,
    };
    if let Some(name) = list(&meters, "datasets").find_map(|dataset| dataset["name"].as_str()) {
        bail!("{base} serves several datasets: name one of them, as {base}/{name}");
    }
    if meters["journal"].is_null() {
        bail!("{base} answers, but is no server of Snowmelt (/stats: {status})");
    }
    let ready = visit.get("/ready")?;
    let metrics = text(&visit.get("/metrics")?.body);
    Ok(ServedFacts {
        not_ready: (ready.status != 200).then(|| printable::line(text(&ready.body).trim()).into_owned()),
        version: metrics
            .split_once("snowmelt_build_info{version=\"")
            .and_then(|(_, rest)| Some(printable::line(rest.split_once('"')?.0).into_owned())),
        uptime: meters["uptime_s"].as_f64().and_then(|s| Duration::try_from_secs_f64(s).ok()),
        meters,
    })
}

fn text(body: &[u8]) -> String {
    String::from_utf8_lossy(body).into_owned()
}

/// Scheme and authority of an address, and the path of a dataset, which is empty for the only one.
fn parts(url: &str) -> anyhow::Result<(String, String)> {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let scheme = scheme.to_ascii_lowercase();
    if !["http", "https"].contains(&scheme.as_str()) {
        bail!("{url}: only http:// and https:// addresses can be asked");
    }
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let first = path.split(['/', '?', '#']).next().unwrap_or_default();
    let is_of_server = first.is_empty() || RESOURCES.contains(&first);
    let dataset = if is_of_server { String::new() } else { format!("/{first}") };
    Ok((format!("{scheme}://{authority}"), dataset))
}

/// Asks the server that has a database open over its socket; `None` when there is no server.
///
/// # Errors
/// It does not answer this user, as text.
pub fn of_database(dir: &Path) -> Option<Result<ServedFacts, String>> {
    match Client::connect(dir) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Some(Err(error.to_string())),
        // One that was killed has left its socket.
        Err(_) => None,
        Ok(server) => Some(match server.within(PATIENCE).and_then(|server| server.ask(Command::Meters)) {
            Ok(Reply::Meters(samples)) => {
                Ok(ServedFacts { meters: foreign::tamed(as_json(&samples)), ..ServedFacts::default() })
            }
            Ok(other) => Err(control::unexpected(&other).to_string()),
            Err(error) => Err(format!("{error:#}")),
        }),
    }
}

/// The memory that a server has, in bytes.
pub fn budget(facts: &ServedFacts) -> Option<u64> {
    Some(Signs::from_meters(&facts.meters).memory_bytes).filter(|bytes| *bytes > 0)
}

/// A server that does not answer.
pub fn silent(why: String) -> Finding {
    let change = "run the doctor as the server's user, or with the server's address";
    Finding::advice("server", format!("not asked: {why}"), "its meters say how it is doing", change)
}

/// Judges a server's answers. Assumed times of reads are reported for stripes of which `is_probed`
/// says that they have a profile, or may have one.
pub fn judge(facts: &ServedFacts, is_probed: &dyn Fn(usize) -> bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    let signs = Signs::from_meters(&facts.meters);
    findings.extend(facts.not_ready.as_ref().filter(|_| signs.poisoned.is_none()).map(|why| {
        Finding::problem("server: ready", why, "updates fail", "mend the cause, then start the server again")
    }));
    findings.extend(advice(facts, &signs));
    findings.push(recovery(&facts.meters));
    let is_small = facts.meters["database"]["bytes"].as_u64().is_some_and(|bytes| bytes < disk::PROBED_BYTES);
    let is_probed = |n: usize| !is_small && is_probed(n);
    let devices = list(&facts.meters, "devices").enumerate();
    findings.extend(devices.flat_map(|(n, device)| stripe(n, device, is_probed(n))));
    findings.push(trees(&facts.meters));
    findings.extend(facts.version.as_deref().and_then(version));
    findings.extend(facts.uptime.map(|time| {
        let (answered, refused) = (size::count(signs.answered), size::count(signs.refused));
        let measured = format!("{answered} answered, {refused} refused in {} s", time.as_secs());
        Finding::ok("server: requests", measured)
    }));
    findings
}

fn list<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    value[name].as_array().into_iter().flatten()
}

/// The server's own advice, and what its counts say since it began.
fn advice(facts: &ServedFacts, signs: &Signs) -> Vec<Finding> {
    let standing: Vec<(&str, &str)> = list(&facts.meters, "advice")
        .filter_map(|of| Some((of["topic"].as_str()?, of["text"].as_str()?)))
        .collect();
    let verdicts = judged(signs, facts.uptime.unwrap_or_default());
    let of_verdicts =
        verdicts.iter().filter(|v| v.weight >= 1.0 && !standing.iter().any(|s| s.0 == v.topic.name()));
    let since = of_verdicts.map(|v| (v.topic.name(), v.line.as_str(), "since it began"));
    let now = standing.iter().map(|(topic, line)| (*topic, *line, "in the last minute"));
    let finding = |(topic, line, when): (&str, &str, &str)| {
        // A line is the value and, after it, what to change.
        let (measured, change) =
            line.rsplit_once("; ").or_else(|| line.rsplit_once(": ")).unwrap_or((line, ""));
        let make = if Topic::is_problem_named(topic) { Finding::problem } else { Finding::advice };
        make(format!("server: {topic}"), measured.to_owned(), format!("seen {when}"), change.to_owned())
    };
    now.chain(since).map(finding).collect()
}

/// The bytes of journal that a restart would read.
fn recovery(meters: &Value) -> Finding {
    let number = |path: &str| meters.pointer(path).and_then(Value::as_f64).unwrap_or(0.0);
    let (backlog, bound) =
        (number("/journal/checkpoints/backlog_bytes"), number("/journal/recovery_bound_bytes"));
    let measured = format!(
        "{} of journal to read, {:.2} s; {} may be",
        size::about(backlog),
        number("/journal/estimated_recovery_seconds"),
        size::about(bound)
    );
    if bound > 0.0 && backlog > 0.9 * bound {
        let why = "writing back does not keep up: writers are slowed so that a restart stays quick";
        let change = "a faster disk, or a larger --recovery-seconds";
        return Finding::advice("server: checkpoints", measured, why, change);
    }
    Finding::ok("server: checkpoints", measured)
}

fn stripe(number: usize, device: &Value, is_probed: bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    if device["engine"] == "threads" {
        findings.push(Finding::advice(
            format!("server: stripe {number}"),
            "is read by a pool of threads",
            "io_uring was refused when the server began, or --engine threads was given",
            "snowmelt doctor DB on the server's machine says why",
        ));
    }
    // Learned costs are better than those of a probe.
    let costs = &device["costs"];
    let has_learned = costs["learned"].as_u64().is_some_and(|looks| looks > 0);
    if let (true, Some(request_ns)) = (has_learned, costs["request_ns"].as_f64()) {
        let sure = 100.0 * costs["request_confidence"].as_f64().unwrap_or(0.0);
        findings.push(Finding::ok(
            format!("server: stripe {number}"),
            format!("learned {:.0} requests/s ({sure:.0} % sure)", 1e9 / request_ns.max(1.0)),
        ));
    }
    if is_probed && !has_learned && device["read_times"]["single"]["source"] == "assumed" {
        findings.push(Finding::advice(
            format!("server: stripe {number}"),
            "the times of its reads are assumed",
            "which pages are read together and ahead follows from the costs of the disk",
            "snowmelt probe DB, then start the server again",
        ));
    }
    findings
}

/// Trees that are read from the disk for most lookups.
fn trees(meters: &Value) -> Finding {
    const READS: u64 = 10_000;
    const PERCENT: u64 = 50;
    let of = |tree: &Value, name: &str| tree[name].as_u64().unwrap_or(0);
    let is_cold = |tree: &&Value| of(tree, "reads") >= READS && of(tree, "read_percent") >= PERCENT;
    let cold: Vec<String> = list(meters, "trees")
        .filter(is_cold)
        .map(|tree| {
            let name = tree["tree"].as_str().unwrap_or("?");
            format!(
                "{name} {} reads, {} per 100 rows",
                size::count(of(tree, "reads")),
                of(tree, "read_percent")
            )
        })
        .collect();
    if cold.is_empty() {
        return Finding::ok("server: trees", "none is read from the disk for most of its rows");
    }
    let why = "these trees do not fit into the pool: each row found costs about a read";
    Finding::advice(
        "server: trees",
        cold.join("; "),
        why,
        "raise --memory, or put them on a faster stripe with --place",
    )
}

/// This program is of another version than the server.
fn version(of_server: &str) -> Option<Finding> {
    const OWN: &str = env!("CARGO_PKG_VERSION");
    (of_server != OWN).then(|| {
        let measured = format!("{of_server}, this command is {OWN}");
        Finding::advice(
            "server: version",
            measured,
            "meters may have other names",
            "use the server's own command",
        )
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::finding::Level;
    use super::*;

    fn meters() -> Value {
        json!({
            "answered": 10_000, "refused": 3, "advice": [],
            "memory": { "total_bytes": 1u64 << 30 },
            "journal": { "poisoned": null, "recovery_bound_bytes": 1000, "checkpoints": { "backlog_bytes": 10, "stalled": null } },
            "pool": { "left": 5000, "wanted_again": 10 },
            "devices": [{ "engine": "uring", "read_times": { "single": { "source": "measured" } } }],
            "trees": [{ "tree": "psog", "reads": 20_000, "read_percent": 2 }],
        })
    }

    fn bad(meters: Value) -> Vec<Finding> {
        let facts = ServedFacts { meters, uptime: Some(Duration::from_secs(600)), ..ServedFacts::default() };
        judge(&facts, &|_| true).into_iter().filter(|finding| finding.level != Level::Ok).collect()
    }

    #[test]
    fn an_address_may_name_a_dataset() {
        let of = |url: &str| parts(url).expect("an address");
        let only = ("http://h:1".to_owned(), String::new());
        for path in ["", "/", "/stats?sort=reads", "/sparql#here"] {
            assert_eq!(of(&format!("http://h:1{path}")), only, "{path}");
        }
        for resource in RESOURCES {
            assert_eq!(of(&format!("HTTP://h:1/{resource}")), only, "{resource} is no dataset");
        }
        let named = ("https://h".to_owned(), "/people".to_owned());
        assert_eq!([of("https://h/people"), of("Https://h/people/sparql")], [named.clone(), named]);
        for other in ["ftp://h", "://h", "h:1"] {
            assert!(parts(other).is_err(), "{other}");
        }
    }

    /// Calls `spoil` with each place of a value that is a number or a text.
    fn leaves(value: &mut Value, spoil: &mut dyn FnMut(&mut Value)) {
        match value {
            Value::Array(of) => of.iter_mut().for_each(|value| leaves(value, spoil)),
            Value::Object(of) => of.values_mut().for_each(|value| leaves(value, spoil)),
            leaf => spoil(leaf),
        }
    }

    #[test]
    fn whatever_a_server_sends_is_judged_and_shown_without_control_characters() {
        let mut whole = meters();
        whole["uptime_s"] = json!(9.5);
        whole["advice"] = json!([{ "topic": "a", "text": "b; c" }]);
        whole["devices"][0]["costs"] =
            json!({ "learned": 3, "request_ns": 5, "latency_ns": 7, "request_confidence": 0.5 });
        whole["devices"][0]["classes"] = json!([{ "class": "spill-write", "bytes": 5, "errors": 0 }]);
        whole["trees"][0]["rules"] = json!({ "scan": { "issued": 5000, "evicted_unused": 4000 } });
        let mut count = 0;
        leaves(&mut whole, &mut |_| count += 1);
        let odd =
            [json!(-1), json!(1e300), json!(-1e300), json!(u64::MAX), json!("\u{1b}[2J\n"), json!([[]])];
        for (at, odd) in (0..count).flat_map(|at| odd.iter().map(move |odd| (at, odd))) {
            let (mut spoiled, mut seen) = (whole.clone(), 0);
            leaves(&mut spoiled, &mut |leaf| {
                if seen == at {
                    *leaf = odd.clone();
                }
                seen += 1;
            });
            let meters = foreign::tamed(spoiled);
            let _ = crate::costs::of_meters(&meters["devices"][0]["costs"])
                .map(|model| crate::costs::told(&model));
            let facts =
                ServedFacts { uptime: Some(Duration::from_secs(60)), meters, ..ServedFacts::default() };
            let shown = super::super::finding::as_text(&judge(&facts, &|_| true));
            assert!(!shown.replace('\n', "").contains(char::is_control), "{shown:?}");
            assert!(shown.lines().all(|line| !line.starts_with('\u{1b}')), "{shown:?}");
        }
    }

    #[test]
    fn assumed_times_are_told_once() {
        let mut meters = meters();
        meters["devices"][0]["read_times"]["single"]["source"] = "assumed".into();
        let facts = ServedFacts { meters, ..ServedFacts::default() };
        let told = |is_probed| judge(&facts, &|_| is_probed).iter().any(|f| f.level != Level::Ok);
        assert!(told(true) && !told(false));
        let small = json!({ "database": { "bytes": 9 }, "devices": facts.meters["devices"], "journal": {} });
        assert_eq!(bad(small), [], "a probe would refuse it");
    }

    #[test]
    fn a_server_that_is_well_has_no_findings() {
        assert_eq!(bad(meters()), []);
    }

    #[test]
    fn each_fault_of_a_server_is_one_finding() {
        type Spoil = fn(&mut Value);
        let faults: [(&str, Level, Spoil); 8] = [
            ("poisoned", Level::Problem, |m| m["journal"]["poisoned"] = "EIO".into()),
            ("room", Level::Problem, |m| m["journal"]["checkpoints"]["stalled"] = "full".into()),
            ("pool", Level::Advice, |m| m["pool"]["wanted_again"] = 4000.into()),
            ("spills", Level::Advice, |m| {
                m["advice"] = json!([{ "topic": "spills", "text": "many; raise it" }])
            }),
            ("checkpoints", Level::Advice, |m| m["journal"]["checkpoints"]["backlog_bytes"] = 990.into()),
            ("stripe 0", Level::Advice, |m| m["devices"][0]["engine"] = "threads".into()),
            ("stripe 0", Level::Advice, |m| {
                m["devices"][0]["read_times"]["single"]["source"] = "assumed".into()
            }),
            ("trees", Level::Advice, |m| m["trees"][0]["read_percent"] = 70.into()),
        ];
        for (about, level, spoil) in faults {
            let mut meters = meters();
            spoil(&mut meters);
            let found = bad(meters);
            assert_eq!(found.len(), 1, "{about}: {found:?}");
            assert_eq!((found[0].about.as_str(), found[0].level), (&*format!("server: {about}"), level));
            assert!(!found[0].change.is_empty() && !found[0].measured.is_empty(), "{found:?}");
        }
        let not_ready =
            ServedFacts { meters: meters(), not_ready: Some("why".into()), ..ServedFacts::default() };
        assert_eq!(judge(&not_ready, &|_| true)[0].level, Level::Problem);
        let other = ServedFacts { meters: meters(), version: Some("9".into()), ..ServedFacts::default() };
        assert!(judge(&other, &|_| true).iter().any(|finding| finding.about == "server: version"));
    }
}
