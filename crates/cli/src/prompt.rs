//! The prompt of `snowmelt query DB`: queries and commands, one after the other.
//!
//! 1. The editor reads lines until an input is whole ([`input::is_whole`]): it begins with a
//!    backslash, its braces are closed, or it ends with a semicolon or an empty line.
//! 2. Prefixes that the input uses and does not declare are those of `\prefix`, then those kept
//!    with the database, then well-known ones.
//! 3. Ctrl-C ends a query under way, or drops the line; Ctrl-D ends the prompt.

mod complete;
mod input;

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{Config, Editor};
use snowmelt_base::output::Stdout;
use snowmelt_base::prefixes::known_namespace;
use snowmelt_base::printable;
use snowmelt_graph::Namespaces;
use snowmelt_sparql::{QueryEngine, QueryError, QueryOptions, Shortener, TableStyle, prefixes_for};
use snowmelt_switches::advice::faults;
use snowmelt_switches::program;

use crate::answer::AnswerFormat;
use complete::Completion;
use input::Entry;

const HELP: &str = "\
A query ends when its braces are closed, with a semicolon, or with an empty line.
  \\explain QUERY   the plan with its estimates; nothing is run
  \\analyze QUERY   runs the query and shows the plan with rows, time and reads
  \\format NAME     table, json, xml, csv, tsv; nt, ttl, xml for CONSTRUCT and DESCRIBE
  \\timing          shows the time of each query, or no more
  \\prefix P: <IRI> a prefix for the queries that follow; \\prefix alone lists them
  \\stats           what the database holds
  \\quit            or Ctrl-D
Ctrl-C ends a query under way. Tab completes keywords, prefixes, predicates and variables.";

/// A session at the prompt.
pub struct Prompt {
    engine: Arc<QueryEngine>,
    options: QueryOptions,
    format: Option<AnswerFormat>,
    is_timing: bool,
    prefixes: Vec<(String, String)>,
    width: Option<usize>,
    /// set by Ctrl-C
    stop: Arc<AtomicBool>,
}

/// Whether the prompt goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Then {
    GoOn,
    Quit,
}

impl Prompt {
    /// A session that runs queries with these options.
    pub fn new(engine: Arc<QueryEngine>, options: QueryOptions, stop: Arc<AtomicBool>) -> Self {
        let options = QueryOptions { cancel: Some(stop.clone()), ..options };
        Prompt { engine, options, format: None, is_timing: false, prefixes: Vec::new(), width: None, stop }
    }

    /// Reads and runs inputs until the end.
    ///
    /// # Errors
    /// Those of the terminal.
    pub fn run(mut self, db: &std::path::Path) -> anyhow::Result<()> {
        let config = Config::builder().auto_add_history(false).max_history_size(1000)?.build();
        let mut editor: Editor<Completion, FileHistory> = Editor::with_config(config)?;
        editor.set_helper(Some(Completion::new(self.engine.clone())));
        let history = history_file();
        if let Some(file) = &history {
            // there is none the first time
            let _ = editor.load_history(file);
        }
        let quads = self.engine.graph().state()?.quads();
        writeln!(Stdout, "{}: {} quads. \\help tells more.", db.display(), indicatif::HumanCount(quads))?;
        loop {
            let text = match editor.readline("snowmelt> ") {
                Ok(text) => text,
                Err(ReadlineError::Interrupted) => continue,
                Err(ReadlineError::Eof) => break,
                Err(error) => return Err(error.into()),
            };
            if text.trim().is_empty() {
                continue;
            }
            let _ = editor.add_history_entry(text.trim_end());
            self.width = terminal_width();
            if self.input(&text, &mut Stdout)? == Then::Quit {
                break;
            }
        }
        if let Some(file) = &history {
            let made = file.parent().map(std::fs::create_dir_all);
            if made.is_none_or(|made| made.is_ok()) {
                let _ = editor.save_history(file);
            }
        }
        Ok(())
    }

    /// Runs one input. What goes wrong in it is written like an answer.
    fn input(&mut self, text: &str, out: &mut dyn Write) -> std::io::Result<Then> {
        match Entry::parse(text) {
            Entry::Query(query) => self.query(query, out)?,
            Entry::Explain(query) => self.report(query, out, QueryEngine::explain)?,
            Entry::Analyze(query) => self.report(query, out, QueryEngine::analyze)?,
            Entry::Format(name) => match AnswerFormat::named(name) {
                Some(format) => self.format = Some(format),
                None => {
                    writeln!(out, "{name:?} is no format; there are table, json, xml, csv, tsv, nt and ttl")?
                }
            },
            Entry::Timing => {
                self.is_timing = !self.is_timing;
                writeln!(out, "Timing is {}.", if self.is_timing { "on" } else { "off" })?;
            }
            Entry::Prefixes => {
                let is_own = |name: &str| self.prefixes.iter().any(|(own, _)| own == name);
                let own = self.prefixes.iter().map(|(name, iri)| (name.as_str(), iri.as_str()));
                for (name, iri) in own.chain(self.options.prefixes.iter().filter(|(name, _)| !is_own(name))) {
                    writeln!(out, "{name}: <{iri}>")?;
                }
            }
            Entry::Prefix(name, iri) => {
                self.prefixes.retain(|(known, _)| known != name);
                self.prefixes.push((name.to_owned(), iri.to_owned()));
            }
            Entry::Stats => match self.engine.graph().stats() {
                Ok(stats) => write!(out, "{stats}")?,
                Err(error) => writeln!(out, "{error}")?,
            },
            Entry::Help => writeln!(out, "{HELP}")?,
            Entry::Quit => return Ok(Then::Quit),
            Entry::Unknown(word) => writeln!(out, "There is no {word}; \\help lists what there is.")?,
        }
        out.flush()?;
        Ok(Then::GoOn)
    }

    fn query(&mut self, query: &str, out: &mut dyn Write) -> std::io::Result<()> {
        let begun = Instant::now();
        self.stop.store(false, Ordering::Relaxed);
        let done = self.answer(query, out);
        self.stop.store(false, Ordering::Relaxed);
        if let Err(error) = done {
            writeln!(out, "{}", said(error))?;
        }
        if self.is_timing {
            let took = Duration::from_millis(begun.elapsed().as_millis() as u64);
            writeln!(out, "Time: {took:?}")?;
        }
        Ok(())
    }

    fn answer(&self, text: &str, out: &mut dyn Write) -> anyhow::Result<()> {
        let options = self.options_for(text);
        let result = self.engine.query(text, &options)?;
        for warning in result.warnings() {
            writeln!(out, "warning: {warning}")?;
        }
        let prefixes = prefixes_for(text, &options.prefixes);
        let shortener = Some(Shortener::of_namespaces(&prefixes));
        let style = TableStyle { width: self.width, prefixes: shortener };
        AnswerFormat::write(self.format, result, style, &prefixes, out)
    }

    fn report(
        &self,
        query: &str,
        out: &mut dyn Write,
        report: impl Fn(&QueryEngine, &str, &QueryOptions) -> Result<String, QueryError>,
    ) -> std::io::Result<()> {
        self.stop.store(false, Ordering::Relaxed);
        let report = report(&self.engine, query, &self.options_for(query));
        self.stop.store(false, Ordering::Relaxed);
        match report {
            Ok(report) => write!(out, "{report}"),
            Err(error) => writeln!(out, "{}", said(error.into())),
        }
    }

    /// The options of a query: it may use the prompt's prefixes, those that are kept with the
    /// database, and well-known ones.
    fn options_for(&self, query: &str) -> QueryOptions {
        let mut prefixes = Namespaces::default();
        self.prefixes.iter().for_each(|(name, iri)| prefixes.offer(name, iri));
        prefixes.join(&self.options.prefixes);
        for name in input::used_prefixes(query) {
            if let Some(iri) = known_namespace(name) {
                prefixes.offer(name, iri);
            }
        }
        QueryOptions { prefixes: Arc::new(prefixes), ..self.options.clone() }
    }
}

/// An error, with the lines of faults in a text.
fn said(error: anyhow::Error) -> String {
    match error.downcast::<QueryError>() {
        Ok(QueryError::Cancelled) => "Cancelled.".to_owned(),
        Ok(error) => {
            let error = error.into();
            match faults(&error) {
                Some(faults) => printable::lines(&faults).into_owned(),
                None => program::one_line(&error),
            }
        }
        Err(error) => program::one_line(&error),
    }
}

/// Where the history of inputs is kept: in the directory for state of the XDG specification.
fn history_file() -> Option<PathBuf> {
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from);
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".local/state"));
    Some(state.or_else(home)?.join("snowmelt/history"))
}

/// Characters in a line of the terminal that standard output is.
pub fn terminal_width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use snowmelt_database::OpenOptions;
    use snowmelt_graph::GraphDatabase;
    use snowmelt_sparql::UpdateOptions;

    fn prompt() -> (tempfile::TempDir, Prompt) {
        let dir = tempfile::tempdir().unwrap();
        let options = OpenOptions { memory_bytes: 64 << 20, ..OpenOptions::default() };
        let engine = QueryEngine::new(GraphDatabase::create(&dir.path().join("db"), &[], &options).unwrap());
        let data = "INSERT DATA { <urn:ann> <http://xmlns.com/foaf/0.1/name> 'Ann' ; <urn:age> 30 }";
        engine.update(data, &UpdateOptions::default()).unwrap();
        (dir, Prompt::new(Arc::new(engine), QueryOptions::default(), Arc::default()))
    }

    fn says(prompt: &mut Prompt, text: &str) -> String {
        let mut out = Vec::new();
        assert_eq!(prompt.input(text, &mut out).unwrap(), Then::GoOn);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn queries_have_well_known_prefixes_and_their_own() {
        let (_dir, mut prompt) = prompt();
        let known = says(&mut prompt, "SELECT ?n { ?s foaf:name ?n }");
        assert!(known.contains("Ann") && known.contains("(1 row)"), "{known}");
        assert!(
            says(&mut prompt, "SELECT ?n { ?s u:age ?n }")
                .contains("line 1, column 16: the prefix u: is not")
        );
        assert_eq!(says(&mut prompt, "\\prefix u: <urn:>"), "");
        assert!(says(&mut prompt, "SELECT ?n { ?s u:age ?n }").contains("30"));
        assert_eq!(says(&mut prompt, "\\prefix"), "u: <urn:>\n");
        // in text that declares it otherwise, that counts
        let own = says(&mut prompt, "PREFIX foaf: <urn:> SELECT ?n { ?s foaf:age ?n }");
        assert!(own.contains("30"), "{own}");
        let wrong = says(&mut prompt, "SELECT ?n {\n ?s foaf:name ?n . }} LIMIT");
        let [said, typed, mark] = wrong.lines().collect::<Vec<_>>()[..] else { panic!("{wrong}") };
        assert!(said.starts_with("line 2, column 21: "), "{wrong}");
        assert_eq!((typed, mark), ("   ?s foaf:name ?n . }} LIMIT", "                      ^"), "{wrong}");
        let explained = says(&mut prompt, "\\explain SELECT ?n { ?s foaf:name ?n . } LIMT 3");
        assert!(explained.contains("is LIMIT meant?") && explained.contains("^^^^"), "{explained}");
    }

    #[test]
    fn commands_change_how_answers_look() {
        let (_dir, mut prompt) = prompt();
        assert_eq!(says(&mut prompt, "\\format csv"), "");
        assert_eq!(says(&mut prompt, "SELECT ?o { ?s <urn:age> ?o }").replace('\r', ""), "o\n30\n");
        assert!(says(&mut prompt, "\\format excel").contains("there are table, json"));
        assert_eq!(says(&mut prompt, "\\timing"), "Timing is on.\n");
        assert!(says(&mut prompt, "ASK { }").contains("Time: "));
        assert!(says(&mut prompt, "\\explain SELECT * { ?s ?p ?o }").contains("scan"));
        assert!(says(&mut prompt, "\\analyze SELECT * { ?s ?p ?o }").contains("2 rows"));
        assert!(says(&mut prompt, "\\stats").contains("quads"));
        assert!(says(&mut prompt, "\\nonsense").contains("\\help"));
        assert!(says(&mut prompt, "\\help").contains("\\timing"));
        assert!(says(&mut prompt, "INSERT DATA { <urn:a> <urn:b> 1 }").contains("this is an update"));
        assert_eq!(prompt.input("\\q", &mut Vec::new()).unwrap(), Then::Quit);
    }
}
