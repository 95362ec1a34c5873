//! The queries of a comparison: the Explore mix of the Berlin SPARQL Benchmark; or the queries of
//! TPC-H, or of files, run as one mix again and again.
//!
//! A workload has a language, and an engine is skipped unless its adapter answers it.

use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, Result, bail};
use snowmelt_bsbm::{Mix, Query, QueryKind, UseCase, Workload};
use snowmelt_engines::Language;
use snowmelt_tpch::answers as tpch;
use snowmelt_tpch::queries::{COUNT as TPCH_QUERIES, text as tpch_text};

use crate::content;
use crate::verify::AnswerLine;
use snowmelt_workload::digest::Reading;
use snowmelt_workload::drive::Stream;

/// Between two queries of one file.
pub const BETWEEN: &str = "====";

/// A workload by its name on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkloadName {
    /// The Explore mix, with generated data.
    Bsbm,
    /// The queries of TPC-H.
    Tpch,
    /// Queries of a file, or of all files of a folder.
    Files(PathBuf),
}

impl FromStr for WorkloadName {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            "bsbm" => Self::Bsbm,
            "tpch" => Self::Tpch,
            path => Self::Files(path.into()),
        })
    }
}

/// The queries, ready to be asked.
#[derive(Clone, Debug)]
pub struct Questions {
    /// In a few words.
    pub name: String,
    /// Queries of a mix.
    pub per_mix: usize,
    stream: Stream,
    names: Vec<String>,
    /// Numbers of queries whose answers the standard leaves to the engine.
    free: Vec<u32>,
    language: Language,
    /// Rows and digests of right answers, by the numbers of their queries.
    known: Vec<(u32, tpch::Digest)>,
}

impl Questions {
    /// The Explore mix for a data set of `products` products.
    ///
    /// # Errors
    /// There can be no such data set.
    pub fn bsbm(products: u32, seed: i64) -> Result<Self> {
        let workload = Workload::new(products, seed, UseCase::Explore)?;
        Ok(Self {
            name: format!("BSBM Explore, {products} products"),
            per_mix: UseCase::Explore.mix().len(),
            stream: Stream::Drawn(Box::new(workload)),
            names: Vec::new(),
            free: free(UseCase::Explore.queries()),
            language: Language::Sparql,
            known: Vec::new(),
        })
    }

    /// The 22 queries derived from TPC-H, for data of this scale.
    pub fn tpch(scale: f64) -> Self {
        let query = |number| Query { number, kind: QueryKind::Select, text: tpch_text(number, scale) };
        let queries: Vec<Query> = (1..=TPCH_QUERIES).map(query).collect();
        let known = |number| Some((number, tpch::known(scale, number)?));
        Self {
            name: format!("Derived from TPC-H, scale {scale}; not comparable to published results"),
            per_mix: queries.len(),
            names: Vec::new(),
            free: Vec::new(),
            language: Language::Sql,
            known: (1..=TPCH_QUERIES).filter_map(known).collect(),
            stream: Stream::Same(Mix { number: 1, queries }),
        }
    }

    /// Queries of a file, separated by lines of `====`, or one of each `.rq` and `.sparql` file
    /// of a folder, in the order of their names.
    ///
    /// # Errors
    /// A file cannot be read, has an empty query, or one that is none of SPARQL.
    pub fn of_files(path: &Path) -> Result<Self> {
        let texts = texts_of(path)?;
        let mut queries = Vec::new();
        for (number, (name, text)) in (1..).zip(&texts) {
            let kind = kind_of(text).with_context(|| {
                format!("{name} is no SPARQL query: SELECT, ASK, CONSTRUCT or DESCRIBE is wanted")
            })?;
            queries.push(Query { number, kind, text: text.clone() });
        }
        if queries.is_empty() {
            bail!("{} has no queries: .rq or .sparql files are wanted", path.display());
        }
        Ok(Self {
            name: format!("{} queries of {}", queries.len(), path.display()),
            per_mix: queries.len(),
            free: free(queries.iter().map(|query| (query.number, query.kind))),
            language: Language::Sparql,
            known: Vec::new(),
            stream: Stream::Same(Mix { number: 1, queries }),
            names: texts.into_iter().map(|(name, _)| name).collect(),
        })
    }

    /// The language they are in.
    pub fn language(&self) -> Language {
        self.language
    }

    /// How answers of several engines are read.
    pub fn reading(&self) -> Reading {
        match self.language {
            Language::Sparql => content::terms,
            Language::Sql => content::rows,
        }
    }

    /// The pieces that data is counted in.
    pub fn items(&self) -> &'static str {
        match self.language {
            Language::Sparql => "triples",
            Language::Sql => "rows",
        }
    }

    /// Number of queries whose right answer is known.
    pub fn known(&self) -> usize {
        self.known.len()
    }

    /// Numbers of queries that were answered otherwise than is known to be right.
    pub fn wrong(&self, answers: &[AnswerLine]) -> Vec<u32> {
        let is_wrong = |answer: &&AnswerLine| {
            let right = self.known.iter().find(|(number, _)| *number == answer.query);
            right.is_some_and(|(_, right)| {
                answer.is_unstable
                    || answer.rows != right.rows
                    || answer.digest != format!("{:016x}", right.hash)
            })
        };
        let mut numbers: Vec<u32> = answers.iter().filter(is_wrong).map(|answer| answer.query).collect();
        numbers.dedup();
        numbers
    }

    /// The stream after its first `mixes` mixes.
    pub fn after(&self, mixes: u64) -> Stream {
        let mut stream = self.stream.clone();
        (0..mixes).for_each(|_| drop(stream.next_mix()));
        stream
    }

    /// True of DESCRIBE: the standard leaves its answer to the engine.
    pub fn is_free(&self, number: u32) -> bool {
        self.free.contains(&number)
    }

    /// A query's name in tables.
    pub fn name_of(&self, number: u32) -> String {
        let name = self.names.get((number as usize).wrapping_sub(1));
        name.cloned().unwrap_or_else(|| format!("Q{number}"))
    }
}

fn free(queries: impl Iterator<Item = (u32, QueryKind)>) -> Vec<u32> {
    queries.filter(|(_, kind)| *kind == QueryKind::Describe).map(|(number, _)| number).collect()
}

/// Name and text of each query.
fn texts_of(path: &Path) -> Result<Vec<(String, String)>> {
    let read =
        |path: &Path| fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()));
    if path.is_dir() {
        let entries = fs::read_dir(path).with_context(|| format!("cannot read {}", path.display()))?;
        let is_query =
            |path: &PathBuf| path.extension().is_some_and(|ending| ending == "rq" || ending == "sparql");
        let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).filter(is_query).collect();
        paths.sort();
        let name = |path: &Path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        return paths.iter().map(|path| Ok((name(path), read(path)?))).collect();
    }
    let text = read(path).with_context(|| {
        format!("--workload {}: bsbm, tpch, or a file or folder of queries", path.display())
    })?;
    let mut parts = vec![String::new()];
    for line in text.lines() {
        match line.trim_end() {
            BETWEEN => parts.push(String::new()),
            line => *parts.last_mut().expect("there is one") += &format!("{line}\n"),
        }
    }
    Ok((1..).zip(parts).map(|(i, text)| (format!("{} {i}", path.display()), text)).collect())
}

/// The first keyword of a query's form, behind prologue and comments.
fn kind_of(text: &str) -> Option<QueryKind> {
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    let words = lines.flat_map(|line| line.split(|c: char| !c.is_ascii_alphanumeric()));
    words.into_iter().find_map(|word| match word.to_ascii_uppercase().as_str() {
        "SELECT" | "ASK" => Some(QueryKind::Select),
        "CONSTRUCT" => Some(QueryKind::Construct),
        "DESCRIBE" => Some(QueryKind::Describe),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_come_from_files_and_folders() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("all.txt");
        let text =
            "# SELECT in a comment\nPREFIX a: <urn:a>\nASK {}\n====\nselect * {}\n====\nDESCRIBE <urn:x>";
        fs::write(&file, text).unwrap();
        let questions = Questions::of_files(&file).unwrap();
        assert_eq!((questions.per_mix, questions.language()), (3, Language::Sparql));
        let mix = questions.after(7).next_mix();
        let kinds: Vec<_> = mix.queries.iter().map(|query| query.kind).collect();
        assert_eq!(kinds, [QueryKind::Select, QueryKind::Select, QueryKind::Describe]);
        for name in ["b.rq", "a.sparql", "c.txt"] {
            fs::write(dir.path().join(name), "SELECT * {}").unwrap();
        }
        let questions = Questions::of_files(dir.path()).unwrap();
        assert_eq!([1, 2].map(|n| questions.name_of(n)), ["a", "b"]);
        fs::write(dir.path().join("d.rq"), "DROP ALL").unwrap();
        let error = format!("{:#}", Questions::of_files(dir.path()).unwrap_err());
        assert!(error.contains("d is no SPARQL query"), "{error}");
        let error = format!("{:#}", Questions::of_files(Path::new("/no/such")).unwrap_err());
        assert!(error.contains("--workload /no/such") && error.contains("bsbm, tpch"), "{error}");
    }

    #[test]
    fn an_answer_that_is_not_the_known_one_is_wrong() {
        let questions = Questions::tpch(0.01);
        assert_eq!((questions.per_mix, questions.known(), questions.language()), (22, 22, Language::Sql));
        let right = tpch::known(0.01, 6).unwrap();
        let mut answer = AnswerLine {
            text: String::new(),
            query: 6,
            mix: 1,
            rows: right.rows,
            digest: format!("{:016x}", right.hash),
            is_unstable: false,
        };
        assert!(questions.wrong(&[answer.clone()]).is_empty());
        answer.rows += 1;
        assert_eq!(questions.wrong(&[answer.clone()]), [6]);
        answer.rows -= 1;
        answer.query = 1;
        assert_eq!(questions.wrong(&[answer]), [1]);
        assert_eq!(Questions::tpch(0.02).known(), 0);
    }

    #[test]
    fn the_stream_begins_where_it_is_told_to() {
        let questions = Questions::bsbm(100, 1).unwrap();
        let mut from_start = questions.after(0);
        from_start.next_mix();
        assert_eq!(from_start.next_mix(), questions.after(1).next_mix());
        assert_eq!(questions.name_of(12), "Q12");
        assert!(questions.is_free(9) && !questions.is_free(12));
    }
}
