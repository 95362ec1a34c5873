//! A PostgreSQL server of our own: started, stopped, made cold, and asked by psql.

use std::cell::Cell;
use std::path::{Path, PathBuf};

use snowmelt_engines::cold::make_cold;
use snowmelt_engines::{Engine, Server};
use snowmelt_lab::LabError;
use snowmelt_lab::watch::observe::Watcher;

use crate::error::TpchError;

/// Name of the database in the server.
pub const NAME: &str = "tpch";

/// The server and the watch that sees it.
pub struct Database<'a> {
    engine: &'a Engine,
    server: Option<Server<'a>>,
    watcher: &'a Watcher,
    asked: Cell<u32>,
}

/// An answer of psql.
pub struct Answered {
    /// Its lines.
    pub lines: Vec<String>,
    /// Seconds of the last statement, by psql's clock.
    pub seconds: f64,
}

impl<'a> Database<'a> {
    /// Of an engine whose server does not run yet.
    pub fn new(engine: &'a Engine, watcher: &'a Watcher) -> Database<'a> {
        Database { engine, server: None, watcher, asked: Cell::new(0) }
    }

    /// The watch.
    pub fn watcher(&self) -> &'a Watcher {
        self.watcher
    }

    /// Starts the server; its processes are watched.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(&mut self) -> Result<(), TpchError> {
        let server = self.engine.start()?;
        self.watcher.add_root(server.pid());
        self.server = Some(server);
        Ok(())
    }

    /// Stops it, if it runs.
    ///
    /// # Errors
    /// It did not end.
    pub fn stop(&mut self) -> Result<(), TpchError> {
        self.server.take().map(Server::stop).transpose()?;
        Ok(())
    }

    /// Starts it again with none of its files in the page cache. Returns the number of pages that
    /// stayed.
    ///
    /// # Errors
    /// It cannot be stopped or started, or the kernel cannot tell what is cached.
    pub fn restart_cold(&mut self) -> Result<u64, TpchError> {
        self.stop()?;
        let proof = make_cold(&self.engine.data())?;
        self.start()?;
        Ok(proof.cached_after)
    }

    /// Runs statements, the last with a clock.
    ///
    /// # Errors
    /// One fails, or psql does.
    pub fn ask(&self, before: &str, statement: &str) -> Result<Answered, TpchError> {
        self.ask_in(NAME, &format!("{before}\n\\timing on\n{statement};\n"))
    }

    /// Runs a script in a database.
    ///
    /// # Errors
    /// A statement fails.
    pub fn ask_in(&self, database: &str, script: &str) -> Result<Answered, TpchError> {
        self.asked.set(self.asked.get() + 1);
        let path = self.beside(&format!("statement-{}.sql", self.asked.get()));
        std::fs::write(&path, script).map_err(|e| LabError::file("write", &path, e))?;
        let file = path.display().to_string();
        let output = self.engine.command("sql-file", &[("file", &file), ("database", database)]);
        let _ = std::fs::remove_file(&path); // it is in the folder that is removed at the end
        Ok(answered(&output?))
    }

    /// A number.
    ///
    /// # Errors
    /// The statement fails, or answers something else.
    pub fn number(&self, statement: &str) -> Result<u64, TpchError> {
        let answered = self.ask("", statement)?;
        let first = answered.lines.first().map_or("", String::as_str);
        first.parse().map_err(|_| TpchError::Answer {
            wanted: statement.to_owned(),
            got: first.chars().take(80).collect(),
        })
    }

    /// The path of a table's first file.
    ///
    /// # Errors
    /// There is no such table.
    pub fn file_of(&self, table: &str) -> Result<PathBuf, TpchError> {
        let answered = self.ask("", &format!("SELECT pg_relation_filepath('{table}')"))?;
        Ok(self.engine.data().join(answered.lines.first().map_or("", String::as_str)))
    }

    /// A path that the server's account can read.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.engine.folder().parent().unwrap_or(Path::new(".")).join(name)
    }
}

/// Takes the lines of psql's clock out of its output.
fn answered(output: &str) -> Answered {
    let mut seconds = 0.0;
    let lines = output.lines().filter(|line| {
        let ms = line.strip_prefix("Time: ").and_then(|rest| rest.split(' ').next()?.parse::<f64>().ok());
        if let Some(ms) = ms {
            seconds = ms / 1e3;
        }
        ms.is_none()
    });
    let lines = lines.map(str::to_owned).collect();
    Answered { lines, seconds }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_of_psql_is_no_row() {
        let answered = answered("1|a\n2|b\nTime: 1234.500 ms (00:01.235)\n");
        assert_eq!((answered.lines.len(), answered.seconds), (2, 1.2345));
    }
}
