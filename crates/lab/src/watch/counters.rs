//! Counters beside a watch: numbers that a command or a server tells once per interval.
//!
//! A source is any command whose output is JSON, or lines of a name and a number. Presets are
//! such commands for servers, and `snowmelt:URL`, which is asked over HTTP.

use std::collections::BTreeMap;
use std::io::Read;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::{LabError, http};

/// Numbers by name.
pub type Counters = BTreeMap<String, f64>;

/// Where counters come from.
#[derive(Debug, Clone, PartialEq)]
pub enum CounterSource {
    /// The output of a shell command.
    Command(String),
    /// `/stats` of a Snowmelt server: host, port and path.
    Snowmelt {
        /// `host:port`.
        address: String,
        /// Of the request.
        path: String,
    },
    /// A PostgreSQL server, by psql.
    PostgreSql(String),
    /// A Virtuoso server, by isql-vt: port, user and password.
    Virtuoso(String, String, String),
}

/// An answer must come within this.
const PATIENCE: Duration = Duration::from_secs(5);

impl std::str::FromStr for CounterSource {
    type Err = String;
    fn from_str(text: &str) -> Result<CounterSource, String> {
        match text.split_once(':') {
            Some(("snowmelt", url)) => {
                let rest = url
                    .strip_prefix("http://")
                    .ok_or("snowmelt:URL needs one such as http://localhost:7878")?;
                let (address, path) = rest.split_once('/').unwrap_or((rest, ""));
                let address =
                    if address.contains(':') { address.to_owned() } else { format!("{address}:80") };
                let path = path.trim_end_matches('/').trim_end_matches("stats").trim_end_matches('/');
                let path = if path.is_empty() { "/stats".to_owned() } else { format!("/{path}/stats") };
                Ok(CounterSource::Snowmelt { address, path })
            }
            Some(("postgresql", conninfo)) => Ok(CounterSource::PostgreSql(conninfo.to_owned())),
            Some(("virtuoso", rest)) => {
                let mut words = rest.split(',');
                let port = words
                    .next()
                    .filter(|port| port.rsplit(':').next().is_some_and(|p| p.parse::<u16>().is_ok()));
                let port = port.ok_or("virtuoso:PORT[,USER,PASSWORD] needs the port of SQL, as 1111")?;
                let word = |word: Option<&str>| word.unwrap_or("dba").to_owned();
                Ok(CounterSource::Virtuoso(port.to_owned(), word(words.next()), word(words.next())))
            }
            _ if text.trim().is_empty() => Err("a command is missing".into()),
            _ => Ok(CounterSource::Command(text.to_owned())),
        }
    }
}

impl std::fmt::Display for CounterSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CounterSource::Command(command) => write!(f, "{command}"),
            CounterSource::Snowmelt { address, path } => write!(f, "snowmelt:http://{address}{path}"),
            CounterSource::PostgreSql(conninfo) => write!(f, "postgresql:{conninfo}"),
            CounterSource::Virtuoso(port, ..) => write!(f, "virtuoso:{port}"),
        }
    }
}

impl CounterSource {
    /// Asks once.
    ///
    /// # Errors
    /// The command fails or takes more than 5 s, the server does not answer, or the answer has no
    /// numbers.
    pub fn ask(&self) -> Result<Counters, LabError> {
        let text = match self {
            CounterSource::Command(command) => output(&["sh", "-c", command]),
            CounterSource::Snowmelt { address, path } => get(address, path),
            CounterSource::PostgreSql(conninfo) => ask_postgresql(conninfo),
            CounterSource::Virtuoso(port, user, password) => {
                let statement = format!("exec={SYS_D_STAT}");
                output(&[
                    "isql-vt",
                    port,
                    user,
                    password,
                    "VERBOSE=OFF",
                    "BANNER=OFF",
                    "PROMPT=OFF",
                    &statement,
                ])
            }
        };
        let counters = text.map(|text| parse(&text));
        match counters {
            Ok(counters) if !counters.is_empty() => Ok(counters),
            Ok(_) => Err(self.refused("its answer has no numbers")),
            Err(why) => Err(self.refused(&why)),
        }
    }

    fn refused(&self, why: &str) -> LabError {
        let instead = match self {
            CounterSource::Command(_) => "its output must be JSON, or lines of a name and a number",
            CounterSource::Snowmelt { .. } => "is that the address of a Snowmelt server?",
            CounterSource::PostgreSql(_) => "does psql with the same connection string work as this user?",
            CounterSource::Virtuoso(..) => "does isql-vt with this port, user and password work?",
        };
        LabError::refused(format!("counters of {self}"), why, instead)
    }
}

/// Touches and reads of each index; one line a row.
/// Without `%` and `+`: isql takes `exec=` for a part of a URL.
const SYS_D_STAT: &str = "SELECT concat(key_table, '.', index_name, '.touches ', cast(touches as varchar)), \
     concat(key_table, '.', index_name, '.reads ', cast(reads as varchar)) FROM sys_d_stat";

/// Numbers of the database, of its tables by name, and (from version 16 on) of its I/O by kind.
const PG_STAT: &str = "SELECT 'database.' || key, value FROM pg_stat_database d, LATERAL jsonb_each_text(to_jsonb(d)) \
     WHERE datname = current_database() AND jsonb_typeof(to_jsonb(d) -> key) = 'number' AND key NOT IN ('datid') \
     UNION ALL SELECT 'table.' || relname || '.' || key, value FROM pg_statio_user_tables t, \
     LATERAL jsonb_each_text(to_jsonb(t)) WHERE jsonb_typeof(to_jsonb(t) -> key) = 'number' AND key NOT IN ('relid')";
const PG_STAT_IO: &str = " UNION ALL SELECT 'io.' || replace(backend_type, ' ', '-') || '.' || object || '.' || context \
     || '.' || key, value FROM pg_stat_io i, LATERAL jsonb_each_text(to_jsonb(i)) \
     WHERE jsonb_typeof(to_jsonb(i) -> key) = 'number'";

fn ask_postgresql(conninfo: &str) -> Result<String, String> {
    let psql = |query: &str| {
        output(&["psql", "-XAtq", "-F", " ", "-v", "ON_ERROR_STOP=1", "-d", conninfo, "-c", query])
    };
    let version = psql("SELECT current_setting('server_version_num')")?;
    let has_stat_io = version.trim().parse::<u32>().is_ok_and(|version| version >= 160_000);
    psql(&format!("{PG_STAT}{}", if has_stat_io { PG_STAT_IO } else { "" }))
}

/// The output of a command that succeeds in time.
fn output(command: &[&str]) -> Result<String, String> {
    let mut child = Command::new(command[0])
        .args(&command[1..])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| format!("{}: {e}", command[0]))?;
    let (mut out, mut err) = (child.stdout.take().expect("piped"), child.stderr.take().expect("piped"));
    let errors = std::thread::spawn(move || {
        let mut text = String::new();
        err.read_to_string(&mut text).map(|_| text)
    });
    let texts = std::thread::spawn(move || {
        let mut text = Vec::new();
        out.read_to_end(&mut text).map(|_| String::from_utf8_lossy(&text).into_owned())
    });
    let begun = std::time::Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if begun.elapsed() < PATIENCE => std::thread::sleep(Duration::from_millis(5)),
            Ok(None) => {
                let _ = child.kill().and_then(|()| child.wait());
                return Err(format!("no answer within {} s", PATIENCE.as_secs()));
            }
            Err(e) => return Err(e.to_string()),
        }
    };
    if !status.success() {
        let said = errors.join().ok().and_then(Result::ok).unwrap_or_default();
        return Err(format!("{status}: {}", said.lines().next().unwrap_or("it said nothing")));
    }
    texts.join().expect("the reader does not panic").map_err(|e| e.to_string())
}

/// The document of a server at a path.
fn get(address: &str, path: &str) -> Result<String, String> {
    let failed = |e| format!("{address}: {e}");
    let answer =
        http::get(&format!("http://{address}{path}"), "application/json", PATIENCE).map_err(failed)?;
    match answer.status() {
        200 => answer.text().map_err(failed),
        status => Err(format!("{address}{path} answered with status {status}")),
    }
}

/// Numbers of JSON by their way, else of lines of a name and a number.
fn parse(text: &str) -> Counters {
    let mut counters = Counters::new();
    match serde_json::from_str::<Value>(text) {
        Ok(value @ (Value::Object(_) | Value::Array(_))) => flatten("", &value, &mut counters),
        _ => {
            let fields = text.split(['\n', '\t', '\r']).flat_map(|line| named_numbers(line.trim()));
            counters.extend(fields);
        }
    }
    counters
}

/// `name value`, `name=value`, `name: value`, of a line; more of them where a row has several
/// columns.
fn named_numbers(line: &str) -> Vec<(String, f64)> {
    let words: Vec<&str> = line.split([' ', '=', ':', ',']).filter(|word| !word.is_empty()).collect();
    let mut found = Vec::new();
    let mut name: Vec<&str> = Vec::new();
    for word in words {
        match word.parse::<f64>() {
            Ok(value) if value.is_finite() && !name.is_empty() => {
                found.push((name.join(" "), value));
                name.clear();
            }
            Ok(_) => {}
            Err(_) => name.push(word),
        }
    }
    found
}

fn flatten(name: &str, value: &Value, counters: &mut Counters) {
    let join = |part: &str| if name.is_empty() { part.to_owned() } else { format!("{name}.{part}") };
    match value {
        Value::Number(number) => {
            if let Some(number) = number.as_f64().filter(|number| number.is_finite()) {
                counters.insert(name.to_owned(), number);
            }
        }
        Value::Object(members) => {
            members.iter().for_each(|(key, value)| flatten(&join(key), value, counters))
        }
        Value::Array(elements) => {
            for (i, element) in elements.iter().enumerate() {
                // The name of an element is its first text, as in `{"tree": "psog", "reads": 5}`.
                let label = element.as_object().and_then(|members| members.values().find_map(Value::as_str));
                flatten(&join(label.unwrap_or(&i.to_string())), element, counters);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn counters(pairs: &[(&str, f64)]) -> Counters {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
    }

    #[test]
    fn json_and_lines_are_numbers_by_name() {
        let json =
            r#"{"pool": {"reads": 5, "name": "x"}, "trees": [{"tree": "psog", "reads": 7}], "list": [1, 2]}"#;
        let want = [("pool.reads", 5.0), ("trees.psog.reads", 7.0), ("list.0", 1.0), ("list.1", 2.0)];
        assert_eq!(parse(json), counters(&want));
        let lines = "blks_read 12\nhit ratio: 0.5\n\nnot a number\nx=3\n";
        assert_eq!(parse(lines), counters(&[("blks_read", 12.0), ("hit ratio", 0.5), ("x", 3.0)]));
        assert_eq!(parse("a.touches 4  a.reads 5\n"), counters(&[("a.touches", 4.0), ("a.reads", 5.0)]));
    }

    #[test]
    fn sources_are_commands_and_presets() {
        let of = |text: &str| text.parse::<CounterSource>();
        assert_eq!(of("cat /x").unwrap(), CounterSource::Command("cat /x".into()));
        let server = |path: &str| CounterSource::Snowmelt { address: "h:1".into(), path: path.into() };
        assert_eq!(of("snowmelt:http://h:1").unwrap(), server("/stats"));
        assert_eq!(of("snowmelt:http://h:1/stats").unwrap(), server("/stats"));
        assert_eq!(of("snowmelt:http://h:1/db/").unwrap(), server("/db/stats"));
        assert!(of("snowmelt:h").unwrap_err().contains("http://"));
        assert!(of("virtuoso:x").unwrap_err().contains("1111"));
        assert!(of(" ").is_err());
    }

    #[test]
    fn what_isql_takes_for_a_url_has_no_escapes() {
        assert!(!SYS_D_STAT.contains(['%', '+']), "isql would decode them");
    }

    #[test]
    fn a_command_is_asked_and_its_failure_told() {
        let ask = |command: &str| CounterSource::Command(command.into()).ask();
        assert_eq!(ask("echo reads 5").unwrap(), counters(&[("reads", 5.0)]));
        let error = ask("echo broken >&2; exit 3").unwrap_err().to_string();
        assert!(error.contains("broken") && error.contains('3'), "{error}");
        assert!(ask("echo none").unwrap_err().to_string().contains("no numbers"));
    }

    #[test]
    fn a_server_is_asked_over_http() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let serve = std::thread::spawn(move || {
            for answer in ["HTTP/1.1 200 OK\r\n\r\n{\"reads\": 9}", "HTTP/1.1 404 Not Found\r\n\r\n"] {
                let (mut stream, _) = listener.accept().unwrap();
                let mut request = [0; 512];
                let n = stream.read(&mut request).unwrap();
                assert!(request[..n].starts_with(b"GET /stats HTTP/1.1"));
                stream.write_all(answer.as_bytes()).unwrap();
            }
        });
        let source: CounterSource = format!("snowmelt:http://{address}").parse().unwrap();
        assert_eq!(source.ask().unwrap(), counters(&[("reads", 9.0)]));
        assert!(source.ask().unwrap_err().to_string().contains("404"));
        serve.join().unwrap();
    }
}
