//! The handle of an open database.

use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use oxrdf::Quad;
use snowmelt_graph::{CheckReport, CompactOptions, DumpFormat, NamespaceFault, Stats};

use crate::Meters;
use crate::error::{Error, Result};
use crate::load::{Format, Loaded, Loader};
use crate::open::Open;
use crate::options::Options;
use crate::prepared::{Prepared, Target};
use crate::quads::{QuadPattern, Quads};
use crate::rows::{Rows, Triples};
use crate::transaction::{Changes, Transaction};

/// An open database. Clones are handles to the same one; it is closed when the last is dropped.
///
/// ```
/// # fn main() -> snowmelt::Result<()> {
/// let db = snowmelt::Database::in_memory()?;
/// db.update("INSERT DATA { <urn:ann> <urn:age> 30 }")?;
/// let ages = db.query("SELECT ?age { ?s <urn:age> ?age }")?;
/// let ages = ages.map(|row| row?.get("age")).collect::<snowmelt::Result<Vec<i64>>>()?;
/// assert_eq!(ages, [30]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Database {
    open: Arc<Open>,
}

impl Database {
    /// Opens the database in a directory, with the default [`Options`].
    ///
    /// # Errors
    /// [`Error::NotADatabase`] if there is none, [`Error::Locked`] if another process has it open,
    /// [`Error::Damaged`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Options::new().open(path)
    }

    /// Makes an empty database in a directory, which is made if it is not there.
    ///
    /// # Errors
    /// [`Error::Exists`] if there is a database already.
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        Options::new().create(path)
    }

    /// Makes an empty database whose data lives in memory until the last handle is dropped. Sorts
    /// and loads too large for memory still spill to the system's temporary directory.
    ///
    /// # Errors
    /// Those of making the temporary directory that holds its lock.
    pub fn in_memory() -> Result<Self> {
        Options::new().in_memory()
    }

    /// Settings to open with, for those who need other ones.
    pub fn options() -> Options {
        Options::new()
    }

    pub(crate) fn from_open(open: Arc<Open>) -> Self {
        Database { open }
    }

    /// Runs a query. SELECT gives its rows; ASK one row with the column `answer`; CONSTRUCT and
    /// DESCRIBE rows with the columns `subject`, `predicate` and `object`.
    ///
    /// # Errors
    /// Those of the text come here, those of the data with the rows.
    pub fn query(&self, sparql: &str) -> Result<Rows> {
        self.prepare(sparql).query()
    }

    /// Runs an ASK query.
    ///
    /// ```
    /// # let db = snowmelt::Database::in_memory()?;
    /// assert!(!db.ask("ASK { ?s ?p ?o }")?);
    /// # Ok::<(), snowmelt::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Form`] if the text is another form of query; those of running it.
    pub fn ask(&self, sparql: &str) -> Result<bool> {
        self.prepare(sparql).ask()
    }

    /// Runs a CONSTRUCT or DESCRIBE query.
    ///
    /// ```
    /// # let db = snowmelt::Database::in_memory()?;
    /// # db.update("INSERT DATA { <urn:ann> <urn:knows> <urn:bob> }")?;
    /// for triple in db.construct("CONSTRUCT { ?b <urn:knownBy> ?a } { ?a <urn:knows> ?b }")? {
    ///     assert_eq!(triple?.to_string(), "<urn:bob> <urn:knownBy> <urn:ann>");
    /// }
    /// # Ok::<(), snowmelt::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Form`] if the text is another form of query; those of the text.
    pub fn construct(&self, sparql: &str) -> Result<Triples> {
        self.prepare(sparql).construct()
    }

    /// Runs an update request as one transaction. When this returns, it is durable.
    ///
    /// # Errors
    /// Nothing has changed then.
    pub fn update(&self, sparql: &str) -> Result<Changes> {
        self.prepare(sparql).update()
    }

    /// A query or update with parameters and limits, to be run when they are set. Nothing is looked
    /// at yet.
    pub fn prepare<'a>(&'a self, sparql: &'a str) -> Prepared<'a> {
        Prepared::new(Target::Database(&self.open), sparql)
    }

    /// Runs several steps as one transaction: committed if `f` succeeds, otherwise nothing has
    /// changed. Other writers wait meanwhile, readers do not.
    ///
    /// ```
    /// # let db = snowmelt::Database::in_memory()?;
    /// db.transaction(|tx| {
    ///     tx.update("INSERT DATA { <urn:stock> <urn:count> 1 }")?;
    ///     if tx.ask("ASK { <urn:stock> <urn:count> ?n FILTER(?n < 0) }")? {
    ///         return Err("out of stock".into());
    ///     }
    ///     Ok::<_, Box<dyn std::error::Error>>(())
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// That of `f`; [`Error::TransactionFailed`] if a step failed and `f` went on; those of the
    /// commit. Within `f`, whatever changes the database by another way than the transaction is
    /// refused with [`Error::InTransaction`].
    pub fn transaction<T, E: From<Error>>(
        &self,
        f: impl FnOnce(&mut Transaction) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut transaction = self.begin()?;
        transaction.is_for_a_call();
        let value = f(&mut transaction)?;
        transaction.commit()?;
        Ok(value)
    }

    /// Begins a transaction that lives as long as its handle: for programs whose steps do not fit
    /// into one function. Waits until the writer before it is done. It is the transaction of the
    /// thread that has used it last: until it ends, that thread can change the database only by it.
    ///
    /// ```
    /// # let db = snowmelt::Database::in_memory()?;
    /// let mut tx = db.begin()?;
    /// tx.update("INSERT DATA { <urn:ann> <urn:age> 30 }")?;
    /// assert!(!db.ask("ASK { ?s ?p ?o }")?); // no other session sees it
    /// tx.commit()?; // dropped instead, it would leave nothing
    /// assert!(db.ask("ASK { ?s ?p ?o }")?);
    /// # Ok::<(), snowmelt::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ReadOnly`], and when nothing can be written any more; [`Error::InTransaction`] if
    /// this thread has one already, and would wait for itself.
    pub fn begin(&self) -> Result<Transaction> {
        Ok(self.begin_while(&|| true)?.expect("it does not give up"))
    }

    /// Begins a transaction. Waits as long as `go_on` says so, which is asked some tens of times a
    /// second; `None` when it gave up.
    ///
    /// ```
    /// # let db = snowmelt::Database::in_memory()?;
    /// let first = db.begin()?;
    /// std::thread::scope(|s| {
    ///     s.spawn(|| assert!(matches!(db.begin_while(&|| false), Ok(None))));
    /// });
    /// # drop(first);
    /// # Ok::<(), snowmelt::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Database::begin`].
    pub fn begin_while(&self, go_on: &(dyn Fn() -> bool + Sync)) -> Result<Option<Transaction>> {
        Transaction::begin_while(&self.open, go_on)
    }

    /// The quads that match a pattern, over all graphs unless it names one.
    ///
    /// ```
    /// # use snowmelt::{NamedNode, QuadPattern};
    /// # let db = snowmelt::Database::in_memory()?;
    /// # db.update("INSERT DATA { <urn:ann> <urn:knows> <urn:bob> , <urn:cyd> }")?;
    /// let ann = NamedNode::new_unchecked("urn:ann");
    /// let about_ann = QuadPattern { subject: Some(ann.into()), ..QuadPattern::default() };
    /// assert_eq!(db.quads(&about_ann)?.count(), 2);
    /// # Ok::<(), snowmelt::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of looking its terms up; those of reading come with the quads.
    pub fn quads(&self, pattern: &QuadPattern) -> Result<Quads> {
        Quads::new(self.open.graph().session()?, pattern)
    }

    /// Whether a quad is there.
    ///
    /// ```
    /// # use snowmelt::{GraphName, Literal, NamedNode, Quad};
    /// # let db = snowmelt::Database::in_memory()?;
    /// # db.update("INSERT DATA { <urn:ann> <urn:age> 30 }")?;
    /// let iri = NamedNode::new_unchecked;
    /// let (ann, age) = (iri("urn:ann"), iri("urn:age"));
    /// let quad = Quad::new(ann, age, Literal::from(30), GraphName::DefaultGraph);
    /// assert!(db.contains(&quad)?);
    /// # Ok::<(), snowmelt::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of reading.
    pub fn contains(&self, quad: &Quad) -> Result<bool> {
        self.quads(&quad.clone().into())?.exists()
    }

    /// How many quads there are. Reads nothing.
    ///
    /// # Errors
    /// When the state cannot be made.
    pub fn quad_count(&self) -> Result<u64> {
        Ok(self.open.graph().state()?.quads())
    }

    /// Reclaims terms without quads if there are many, moves scattered pages into key order,
    /// writes everything back and gives free space at the end of the files back. Readers and
    /// writers go on.
    ///
    /// ```
    /// # let db = snowmelt::Database::in_memory()?;
    /// # db.update("INSERT DATA { <urn:ann> <urn:age> 30 }")?;
    /// db.compact()?;
    /// assert_eq!(db.quad_count()?, 1);
    /// # Ok::<(), snowmelt::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of reading and writing. On a full device pages stay where they are, without an error.
    pub fn compact(&self) -> Result<()> {
        self.open.may_wait()?;
        self.open.graph().compact(&CompactOptions::default(), |_| ControlFlow::Continue(()))?;
        Ok(())
    }

    /// Loads a file; its format is told by its name, or else by its first bytes. `.gz` and `.zst`
    /// files are decompressed.
    ///
    /// # Errors
    /// [`Error::Document`] with the place if the file is not what its format says; nothing has
    /// changed then.
    pub fn load(&self, path: impl AsRef<Path>) -> Result<Loaded> {
        self.loader().file(path).run()
    }

    /// A load with options: several inputs, readers, graph, format, progress.
    pub fn loader(&self) -> Loader<'_> {
        Loader::new(&self.open)
    }

    /// The prefixes that are kept with the database, by name, with their IRIs. Loads add those that
    /// their documents declare, where the names are free; dumps are written with them, and a query
    /// may use them after [`Prepared::assume_prefixes`].
    ///
    /// ```
    /// # let db = snowmelt::Database::in_memory()?;
    /// let text: &[u8] = b"@prefix p: <urn:people:> . p:ann p:age 30 .";
    /// db.loader().reader("text", text).format(snowmelt::Format::Turtle).run()?;
    /// assert_eq!(db.prefixes(), [("p".to_owned(), "urn:people:".to_owned())]);
    /// assert!(db.prepare("ASK { p:ann p:age 30 }").assume_prefixes().ask()?);
    /// db.set_prefix("q", "urn:people:")?;
    /// assert!(db.remove_prefix("p")? && !db.remove_prefix("p")?);
    /// # Ok::<(), snowmelt::Error>(())
    /// ```
    pub fn prefixes(&self) -> Vec<(String, String)> {
        let all = self.open.graph().namespaces();
        all.iter().map(|(name, iri)| (name.to_owned(), iri.to_owned())).collect()
    }

    /// Keeps a prefix with the database; `name` is without colon. One of that name gets the IRI.
    ///
    /// # Errors
    /// [`Error::Setting`] if it can be no prefix or there are too many; those of the commit.
    pub fn set_prefix(&self, name: &str, iri: &str) -> Result<()> {
        self.open.may_wait()?;
        self.open.graph().change_namespaces(|all| {
            let fault = |fault: NamespaceFault| Error::Setting { name: "prefix", message: fault.to_string() };
            all.set(name, iri).map_err(fault)
        })
    }

    /// Removes a prefix; whether it was there.
    ///
    /// # Errors
    /// Those of the commit.
    pub fn remove_prefix(&self, name: &str) -> Result<bool> {
        self.open.may_wait()?;
        let mut was_there = false;
        self.open.graph().change_namespaces(|all| {
            was_there = all.remove(name);
            Ok::<_, Error>(())
        })?;
        Ok(was_there)
    }

    /// Writes all quads. In a format without graphs (N-Triples, Turtle) a triple that is in several
    /// graphs is written once for each. Returns how many were written.
    ///
    /// ```
    /// # let db = snowmelt::Database::in_memory()?;
    /// # db.update("INSERT DATA { <urn:ann> <urn:age> 30 }")?;
    /// let mut out = Vec::new();
    /// assert_eq!(db.dump(snowmelt::Format::NQuads, &mut out)?, 1);
    /// # Ok::<(), snowmelt::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of writing; [`Error::Format`] for RDF/XML and JSON-LD, which dumps do not write.
    pub fn dump(&self, format: Format, out: &mut dyn Write) -> Result<u64> {
        let format = match format {
            Format::NQuads => DumpFormat::NQuads,
            Format::NTriples => DumpFormat::NTriples,
            Format::Turtle => DumpFormat::Turtle,
            Format::TriG => DumpFormat::TriG,
            other => return Err(Error::Format { name: other.to_string() }),
        };
        Ok(self.open.graph().dump(format, out)?)
    }

    /// Counts and sizes: quads, terms, bytes by tree. Reads a few pages.
    ///
    /// # Errors
    /// Those of reading them.
    pub fn stats(&self) -> Result<Stats> {
        Ok(self.open.graph().stats()?)
    }

    /// All meters since the database was opened: by account, tree and device, with the pool,
    /// the journal and the checkpoints.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("people.db");
    /// # let db = snowmelt::Database::create(&path)?;
    /// # db.update("INSERT DATA { <urn:ann> <urn:age> 30 }")?;
    /// # drop(db);
    /// let db = snowmelt::Database::open(path)?;
    /// db.query("SELECT * { ?s ?p ?o }")?.for_each(drop);
    /// let meters = db.meters();
    /// assert!(meters.activity.disk > 0 && meters.bytes() > 0);
    /// println!("{meters}"); // all as tables; `json` and `samples` are for programs
    /// for tree in &meters.trees {
    ///     let ahead = tree.ahead_total();
    ///     println!("{}: {} pages read ahead and not used", tree.name, ahead.issued - ahead.used);
    /// }
    /// # Ok::<(), snowmelt::Error>(())
    /// ```
    pub fn meters(&self) -> Meters {
        self.open.graph().database().report()
    }

    /// The plan of a query with its estimates, as text. Nothing is executed.
    ///
    /// # Errors
    /// Those of the text.
    pub fn explain(&self, sparql: &str) -> Result<String> {
        self.prepare(sparql).explain()
    }

    /// Reads every page and every tree and compares the indexes with each other. Problems are in
    /// the report.
    ///
    /// # Errors
    /// When the check cannot be finished.
    pub fn check(&self) -> Result<CheckReport> {
        Ok(self.open.graph().check(&mut |_| {})?)
    }

    /// Copies the newest durable state into a new database in `target`, verifying every page.
    /// Readers and writers go on.
    ///
    /// # Errors
    /// [`Error::Exists`], [`Error::Damaged`], those of writing; [`Error::InMemory`] if there are no
    /// files to copy.
    pub fn backup(&self, target: impl AsRef<Path>) -> Result<()> {
        if self.open.in_memory.is_some() {
            return Err(Error::InMemory);
        }
        self.open.graph().database().store().backup(target.as_ref(), &[], |_| {})?;
        Ok(())
    }
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Database").field(&self.open.graph().database().store().dir()).finish()
    }
}
