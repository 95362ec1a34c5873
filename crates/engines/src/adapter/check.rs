//! Reads an adapter and checks it: keys, placeholders, and that it says enough.

use std::path::PathBuf;

use super::{Adapter, Language, built_in};
use crate::error::EngineError;
use crate::values::{KNOWN, placeholders};

/// Placeholders that callers of a named command give.
const OF_COMMANDS: [&str; 7] = ["text", "file", "database", "mark", "scale", "clients", "seconds"];

/// An adapter from its text. `file` names it in errors.
pub fn parse(text: &str, file: &str, beside: Option<PathBuf>) -> Result<Adapter, EngineError> {
    let wrong = |line: usize, why: String| EngineError::Adapter { file: file.into(), line, why };
    let mut adapter: Adapter = toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(1, |span| line_of(text, span.start));
        wrong(line, error.message().replace('\n', " "))
    })?;
    adapter.beside = beside;
    if let Some((line, why)) = fault(&adapter, text) {
        return Err(wrong(line, why));
    }
    Ok(adapter)
}

/// The line of a byte, counted from 1.
fn line_of(text: &str, at: usize) -> usize {
    1 + text.as_bytes()[..at.min(text.len())].iter().filter(|byte| **byte == b'\n').count()
}

/// The line that has a key or placeholder.
fn line_with(text: &str, part: &str) -> usize {
    text.find(part).map_or(1, |at| line_of(text, at))
}

/// The first fault that is none of the syntax: its line and what is wrong.
fn fault(adapter: &Adapter, text: &str) -> Option<(usize, String)> {
    let known =
        |name: &str| KNOWN.iter().any(|(known, _)| *known == name) || adapter.numbers.contains_key(name);
    // Comments are no commands.
    let code = |line: &str| line.trim_start().starts_with('#');
    for (i, line) in text.lines().enumerate().filter(|(_, line)| !code(line)) {
        let begun = |part: &str| text.find(part).is_some_and(|at| line_of(text, at) <= i);
        let in_commands = begun("[commands]") || begun("[session]");
        let strange = |name: &&str| !(known(name) || in_commands && OF_COMMANDS.contains(name));
        if let Some(name) = placeholders(line).into_iter().find(strange) {
            let all: Vec<&str> = KNOWN.iter().map(|(name, _)| *name).collect();
            let why = format!(
                "{{{name}}} is no placeholder; there are {}, and the keys of [numbers]",
                all.join(", ")
            );
            return Some((i + 1, why));
        }
    }
    let empty = |key: &str| Some((line_with(text, key), format!("{key} is empty")));
    if adapter.start.is_empty() {
        return empty("start");
    }
    if adapter.name.is_empty() || !adapter.name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
        return Some((line_with(text, "name"), "name has letters, digits and hyphens only".into()));
    }
    let steps = adapter.load.iter().chain(&adapter.load_tables).flat_map(|load| &load.steps);
    if adapter.create.iter().chain(steps).any(|action| action.run.is_empty()) {
        return empty("run");
    }
    if let Some(why) = session_fault(adapter) {
        return Some((line_with(text, "[session]"), why));
    }
    let ready = &adapter.ready;
    if ready.tcp.is_none() && ready.http.is_none() && ready.command.is_empty() {
        return Some((line_with(text, "ready"), "ready needs tcp, http or command".into()));
    }
    if adapter.can(Language::Sparql) && (adapter.endpoint.is_none() || adapter.load.is_none()) {
        return Some((
            line_with(text, "answers"),
            "an engine that answers sparql needs endpoint and [load]".into(),
        ));
    }
    for (key, address) in [("endpoint", &adapter.endpoint), ("http", &ready.http)] {
        if let Some(url) = address.as_ref().filter(|url| !is_address(url)) {
            return Some((line_with(text, url), format!("{key}: {url} is no http://HOST:PORT/PATH")));
        }
    }
    written_file_fault(adapter, text)
}

fn session_fault(adapter: &Adapter) -> Option<String> {
    let session = adapter.session.as_ref()?;
    let missing = |part: &&&str| !session.ask.contains(**part);
    if session.run.is_empty() {
        return Some("run is empty".into());
    }
    if let Some(part) = ["{text}", "{mark}"].iter().find(missing) {
        return Some(format!("ask needs {part}: without it no end of an answer is seen"));
    }
    None
}

/// True of `http://HOST:PORT/…`, where the port is a placeholder or a number.
fn is_address(url: &str) -> bool {
    let Some(rest) = url.strip_prefix("http://") else { return false };
    let authority = rest.split('/').next().unwrap_or_default();
    let port = authority.rsplit_once(':').filter(|(host, _)| !host.is_empty()).map(|(_, port)| port);
    port.is_some_and(|port| port.starts_with('{') || port.parse::<u16>().is_ok())
}

fn written_file_fault(adapter: &Adapter, text: &str) -> Option<(usize, String)> {
    for file in &adapter.file {
        let line = line_with(text, &file.path);
        match (&file.text, &file.from) {
            (Some(_), None) => {}
            (None, Some(from)) => {
                let is_there = match &adapter.beside {
                    None => built_in::side_file(from).is_some(),
                    Some(folder) => folder.join(from).is_file(),
                };
                if !is_there {
                    return Some((line, format!("from: there is no file {from} beside the adapter")));
                }
            }
            _ => return Some((line, format!("the file {} needs either text or from", file.path))),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "name = \"x\"\ntitle = \"X\"\nanswers = [\"sparql\"]\ninstall = []\n\
        data = \"{folder}/db\"\nstart = [\"x\", \"{port}\"]\nendpoint = \"http://127.0.0.1:{port}/\"\n\
        ready = { tcp = \"127.0.0.1:{port}\", seconds = 5 }\n\
        [load]\nserver = \"stopped\"\nsteps = [{ run = [\"x-load\", \"{data}\", \"{buffers}\"] }]\n\
        [numbers]\nbuffers = { of = \"memory\", share = 0.5, unit = 8192 }\n";

    fn error(text: &str) -> String {
        parse(text, "x.toml", None).unwrap_err().to_string()
    }

    #[test]
    fn every_built_in_adapter_is_right() {
        let names: Vec<_> = built_in::names().collect();
        assert_eq!(names, ["snowmelt", "virtuoso", "oxigraph", "jena", "fluree", "postgresql", "duckdb"]);
        for name in names {
            let adapter = Adapter::named(name).unwrap();
            assert_eq!(adapter.name, name);
            assert!(!adapter.install.is_empty() && !adapter.find.version.is_empty(), "{name}");
        }
    }

    #[test]
    fn faults_are_told_with_line_and_key() {
        parse(GOOD, "x.toml", None).unwrap();
        for (from, to, expected) in [
            ("title", "titel", "x.toml, line 2: unknown field `titel`"),
            ("answers = [\"sparql\"]", "answers = [\"cypher\"]", "x.toml, line 3: unknown variant `cypher`"),
            ("\"{port}\"]", "\"{prot}\"]", "x.toml, line 6: {prot} is no placeholder; there are folder"),
            ("seconds = 5", "seconds = \"5\"", "x.toml, line 8: invalid type"),
            ("tcp = \"127.0.0.1:{port}\", ", "", "x.toml, line 8: ready needs tcp, http or command"),
            ("[\"x\", \"{port}\"]", "[]", "x.toml, line 6: start is empty"),
            ("[load]", "[find]\nleast = \"ten\"\n[load]", "x.toml, line 10: \"ten\" is no version"),
            (
                "endpoint = \"http://127.0.0.1:{port}/\"\n",
                "",
                "x.toml, line 3: an engine that answers sparql",
            ),
            ("title = \"X\"\n", "", "missing field `title`"),
            (
                "http://127.0.0.1:{port}/",
                "127.0.0.1:{port}/",
                "x.toml, line 7: endpoint: 127.0.0.1:{port}/ is no http://",
            ),
            (
                "http://127.0.0.1:{port}/",
                "http://127.0.0.1:port/",
                "line 7: endpoint: http://127.0.0.1:port/",
            ),
        ] {
            let text = GOOD.replacen(from, to, 1);
            assert_ne!(text, GOOD, "{from}");
            let error = error(&text);
            assert!(error.contains(expected), "{error} is not {expected}");
        }
    }

    #[test]
    fn files_have_one_source_that_is_there() {
        let with = |more: &str| {
            GOOD.replace("[load]", &format!("[[file]]\npath = \"{{folder}}/a\"\n{more}\n[load]"))
        };
        parse(&with("text = \"b {port}\""), "x.toml", None).unwrap();
        assert!(error(&with("")).contains("line 10: the file {folder}/a needs either text or from"));
        assert!(error(&with("from = \"nowhere.py\"")).contains("no file nowhere.py"));
    }

    #[test]
    fn commands_have_placeholders_of_their_own() {
        let text = format!("{GOOD}[commands]\nsql = [\"psql\", \"{{text}}\"]\n");
        parse(&text, "x.toml", None).unwrap();
        let session = |run, ask| format!("{GOOD}[session]\nrun = {run}\nask = {ask:?}\n");
        parse(&session("[\"psql\"]", "{text};\n{mark}\n"), "x.toml", None).unwrap();
        let error_of = |run, ask| error(&session(run, ask));
        assert!(error_of("[\"psql\"]", "{text}").contains("line 14: ask needs {mark}"));
        assert!(error_of("[]", "{text}{mark}").contains("line 14: run is empty"));
        assert!(error(&GOOD.replace("{data}", "{text}")).contains("{text} is no placeholder"));
    }
}
