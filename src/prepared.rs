//! A query or update with its parameters and limits.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use snowmelt_database::{Account, Priority};
use snowmelt_sparql::{QueryKind, QueryOptions, QueryResult, UpdateOptions};

use crate::error::{Error, Result};
use crate::open::Open;
use crate::rows::{Answer, Rows, Triples};
use crate::transaction::{Changes, Transaction};
use crate::value::{IntoTerm, of_oxrdf};

/// The state that a text is run on.
#[derive(Clone)]
pub(crate) enum Target<'a> {
    Database(&'a Open),
    /// its state so far; an error dooms it
    Transaction(Arc<Mutex<&'a mut Transaction>>),
}

/// A text of SPARQL to be run, with parameters by name.
///
/// ```
/// use snowmelt::NamedNode;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let db = snowmelt::Database::in_memory()?;
/// # db.update("INSERT DATA { <urn:ann> <urn:age> 30 . <urn:bob> <urn:age> 17 }")?;
/// let adults = "SELECT ?s { ?s <urn:age> ?age FILTER(?age >= ?least) }";
/// for row in db.prepare(adults).bind("least", 18).query()? {
///     assert_eq!(row?["s"], NamedNode::new("urn:ann")?.into());
/// }
/// # Ok(())
/// # }
/// ```
///
/// It can be run again and again, with other values:
///
/// ```
/// # let db = snowmelt::Database::in_memory()?;
/// let is_there = db.prepare("ASK { ?s <urn:age> ?age }");
/// for age in [17, 30] {
///     assert!(!is_there.bind("age", age).ask()?);
/// }
/// # Ok::<(), snowmelt::Error>(())
/// ```
#[derive(Clone)]
#[must_use = "nothing runs before query, ask, construct, update or explain"]
pub struct Prepared<'a> {
    target: Target<'a>,
    text: &'a str,
    options: QueryOptions,
    priority: Priority,
}

impl Target<'_> {
    /// Does something with the open database.
    fn on<T>(&self, act: impl FnOnce(&Open) -> T) -> T {
        match self {
            Target::Database(open) => act(open),
            Target::Transaction(tx) => act(tx.lock().expect("no holder panics").open()),
        }
    }
}

impl<'a> Prepared<'a> {
    pub(crate) fn new(target: Target<'a>, text: &'a str) -> Self {
        Prepared { target, text, options: QueryOptions::default(), priority: Priority::Normal }
    }

    /// Gives a variable a value, as if it stood in the text in the variable's place. `name` is
    /// without question mark. IRIs are [`NamedNode`](crate::NamedNode)s; strings, numbers and
    /// booleans become literals; blank nodes are refused when the text is run. The statement
    /// itself stays as it was: it can be bound to other values afterwards. A variable that has a
    /// value gets another one.
    pub fn bind(&self, name: &str, value: impl IntoTerm) -> Self {
        let mut bound = self.clone();
        let value = of_oxrdf(value.into_term());
        match bound.options.bindings.iter_mut().find(|(known, _)| known == name) {
            Some((_, before)) => *before = value,
            None => bound.options.bindings.push((name.to_owned(), value)),
        }
        bound
    }

    /// Adds a graph to those that are, merged, the query's default graph. The graphs given here
    /// and by [`Prepared::named_graph`] replace the dataset of the text (FROM, USING).
    ///
    /// ```
    /// # let db = snowmelt::Database::in_memory()?;
    /// # db.update("INSERT DATA { GRAPH <urn:g> { <urn:ann> <urn:age> 30 } }")?;
    /// assert!(!db.ask("ASK { ?s ?p ?o }")?);
    /// assert!(db.prepare("ASK { ?s ?p ?o }").default_graph("urn:g").ask()?);
    /// # Ok::<(), snowmelt::Error>(())
    /// ```
    pub fn default_graph(mut self, iri: &str) -> Self {
        self.options.default_graphs.push(iri.to_owned());
        self
    }

    /// Adds a graph to those that GRAPH can name.
    pub fn named_graph(mut self, iri: &str) -> Self {
        self.options.named_graphs.push(iri.to_owned());
        self
    }

    /// The longest it may run; the error is then [`Error::Timeout`].
    pub fn timeout(mut self, longest: Duration) -> Self {
        self.options.timeout = Some(longest);
        self
    }

    /// The base of relative IRIs in the text.
    pub fn base(mut self, iri: &str) -> Self {
        self.options.base = Some(iri.to_owned());
        self
    }

    /// Most bytes it may hold; the default is a quarter of the memory budget.
    pub fn memory(mut self, bytes: usize) -> Self {
        self.options.memory = Some(bytes);
        self
    }

    /// How urgent its reads are, where a device has to choose between them and those of others.
    ///
    /// ```
    /// use snowmelt::Priority;
    /// # let db = snowmelt::Database::in_memory()?;
    /// // A report over everything, beside people who look at single pages:
    /// let report = "SELECT ?p (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?p";
    /// for row in db.prepare(report).priority(Priority::Low).query()? {
    ///     let row = row?;
    ///     println!("{} {}", row["p"], row["n"]);
    /// }
    /// # Ok::<(), snowmelt::Error>(())
    /// ```
    pub fn priority(mut self, priority: Priority) -> Self {
        self.priority = priority;
        self
    }

    /// Ends in [`Error::Cancelled`] once the flag is set, by another thread.
    pub fn cancel(mut self, flag: Arc<AtomicBool>) -> Self {
        self.options.cancel = Some(flag);
        self
    }

    /// Runs a query of any form: see [`Database::query`](crate::Database::query).
    ///
    /// # Errors
    /// Those of the text come here, those of the data with the rows.
    pub fn query(self) -> Result<Rows> {
        Ok(Rows::new(self.begin()?))
    }

    /// Runs a query of any form and gives the answer of that form, for programs that do not know
    /// what text they were given.
    ///
    /// ```
    /// use snowmelt::Answer;
    /// # let db = snowmelt::Database::in_memory()?;
    /// # db.update("INSERT DATA { <urn:ann> <urn:age> 30 }")?;
    /// match db.prepare("DESCRIBE <urn:ann>").answer()? {
    ///     Answer::Rows(rows) => println!("{} columns", rows.columns().len()),
    ///     Answer::Boolean(answer) => println!("{answer}"),
    ///     Answer::Triples(triples) => assert_eq!(triples.count(), 1),
    /// }
    /// # Ok::<(), snowmelt::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of the text come here, those of the data with the rows.
    pub fn answer(self) -> Result<Answer> {
        let mut result = self.begin()?;
        Ok(match result.kind() {
            QueryKind::Solutions => Answer::Rows(Rows::new(result)),
            QueryKind::Boolean => Answer::Boolean(result.answer()?),
            QueryKind::Graph => Answer::Triples(Triples::new(result)),
        })
    }

    /// Runs an ASK query.
    ///
    /// # Errors
    /// [`Error::Form`] if the text is another form of query; those of running it.
    pub fn ask(self) -> Result<bool> {
        let mut result = self.begin()?;
        match result.kind() {
            QueryKind::Boolean => Ok(result.answer()?),
            found => Err(Error::Form { expected: "ASK", found: form(found) }),
        }
    }

    /// Runs a CONSTRUCT or DESCRIBE query.
    ///
    /// # Errors
    /// [`Error::Form`] if the text is another form of query; those of the text.
    pub fn construct(self) -> Result<Triples> {
        let result = self.begin()?;
        match result.kind() {
            QueryKind::Graph => Ok(Triples::new(result)),
            found => Err(Error::Form { expected: "CONSTRUCT or DESCRIBE", found: form(found) }),
        }
    }

    /// Runs an update: one transaction, or a step of the one it was prepared on.
    ///
    /// # Errors
    /// Nothing has changed then.
    pub fn update(self) -> Result<Changes> {
        let account = self.account("update");
        let QueryOptions { base, timeout, memory, cancel, bindings, .. } = self.options;
        let (using_graphs, using_named_graphs) = (self.options.default_graphs, self.options.named_graphs);
        let options = UpdateOptions { base, timeout, memory, cancel, bindings, ..UpdateOptions::default() };
        let options = UpdateOptions { using_graphs, using_named_graphs, ..options };
        let changed = match self.target {
            Target::Database(open) => {
                open.may_wait()?;
                let options = UpdateOptions { account: Some(account), ..options };
                open.engine.update(self.text, &options)?.changed
            }
            Target::Transaction(tx) => tx.lock().expect("no holder panics").step(|open, txn| {
                let before = Arc::clone(txn.account());
                txn.charge_to(&account);
                let done = open.engine.update_in(txn, self.text, &options);
                txn.charge_to(&before);
                Ok(done?)
            })?,
        };
        Ok(changed.into())
    }

    /// The plan of a query with its estimates, as text. Nothing is executed.
    ///
    /// # Errors
    /// Those of the text.
    pub fn explain(self) -> Result<String> {
        let text = self.text;
        self.target.on(|open| Ok(open.engine.explain(text, &self.options)?))
    }

    /// Runs a query to its end, throws its rows away, and gives the plan with rows, time and
    /// reads of each operator, as text.
    ///
    /// # Errors
    /// Those of running it.
    pub fn analyze(self) -> Result<String> {
        let options = QueryOptions { account: Some(self.account("query")), ..self.options.clone() };
        self.target.on(|open| Ok(open.engine.analyze(self.text, &options)?))
    }

    /// An account of its own for its reads, below the one of that name.
    fn account(&self, name: &str) -> Arc<Account> {
        let named = self.target.on(|open| open.engine.graph().database().account(name));
        Account::prioritized(&named, &[], self.priority, None)
    }

    fn begin(self) -> Result<QueryResult> {
        let options = QueryOptions { account: Some(self.account("query")), ..self.options };
        Ok(match self.target {
            Target::Database(open) => open.engine.query(self.text, &options)?,
            Target::Transaction(tx) => {
                let tx = tx.lock().expect("no holder panics");
                let account = options.account.as_ref().expect("named above");
                tx.open().engine.query_on(tx.session()?.charged_to(account), self.text, &options)?
            }
        })
    }
}

fn form(kind: QueryKind) -> &'static str {
    match kind {
        QueryKind::Solutions => "SELECT",
        QueryKind::Boolean => "ASK",
        QueryKind::Graph => "CONSTRUCT or DESCRIBE",
    }
}
