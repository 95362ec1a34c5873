//! A query or update with its parameters and limits.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use oxrdf::Term;
use snowmelt_database::{Account, Priority};
use snowmelt_sparql::{CustomFunctions, DescribeForm, QueryKind, QueryOptions, QueryResult, UpdateOptions};

use crate::error::{Error, Result};
use crate::functions::custom;
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
    functions: CustomFunctions,
    has_prefixes: bool,
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
        Prepared {
            target,
            text,
            options: QueryOptions::default(),
            functions: CustomFunctions::default(),
            has_prefixes: false,
            priority: Priority::Normal,
        }
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

    /// Gives the text a function, which it calls by IRI. The closure gets the terms of the
    /// arguments; it gives a term, or `None`, which is an error of the expression. A call with an
    /// argument that is unbound or an error is an error, too, and the closure is not called.
    ///
    /// Equal arguments give equal results: calls may be left out, repeated, and made by several
    /// threads at once. A function cannot change a database: [`Error::InTransaction`].
    ///
    /// ```
    /// use snowmelt::{Literal, Term};
    /// # let db = snowmelt::Database::in_memory()?;
    /// # db.update("INSERT DATA { <urn:ann> <urn:name> 'Ann' }")?;
    /// let initial = |args: &[Term]| match args {
    ///     [Term::Literal(name)] => Some(Literal::from(&name.value()[..1]).into()),
    ///     _ => None,
    /// };
    /// let text = "SELECT ?i { ?s <urn:name> ?n BIND(<urn:initial>(?n) AS ?i) }";
    /// for row in db.prepare(text).function("urn:initial", initial).query()? {
    ///     assert_eq!(row?.get::<String>("i")?, "A");
    /// }
    /// # Ok::<(), snowmelt::Error>(())
    /// ```
    pub fn function(
        mut self,
        iri: &str,
        function: impl Fn(&[Term]) -> Option<Term> + Send + Sync + 'static,
    ) -> Self {
        self.functions.add(iri, custom(function, true));
        self
    }

    /// As [`Prepared::function`], for a function whose results may differ from call to call: it is
    /// called for each row.
    pub fn varying_function(
        mut self,
        iri: &str,
        function: impl Fn(&[Term]) -> Option<Term> + Send + Sync + 'static,
    ) -> Self {
        self.functions.add(iri, custom(function, false));
        self
    }

    /// The triples by which DESCRIBE describes a resource.
    ///
    /// ```
    /// use snowmelt::DescribeForm;
    /// # let db = snowmelt::Database::in_memory()?;
    /// # db.update("INSERT DATA { <urn:ann> <urn:knows> <urn:bob> }")?;
    /// let bob = db.prepare("DESCRIBE <urn:bob>");
    /// assert_eq!(bob.clone().construct()?.count(), 0);
    /// assert_eq!(bob.describe(DescribeForm::Symmetric).construct()?.count(), 1);
    /// # Ok::<(), snowmelt::Error>(())
    /// ```
    pub fn describe(mut self, form: DescribeForm) -> Self {
        self.options.describe = form;
        self
    }

    /// Lets a query use the prefixes that are kept with the database without declaring them: see
    /// [`Database::prefixes`](crate::Database::prefixes).
    pub fn assume_prefixes(mut self) -> Self {
        self.has_prefixes = true;
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
        let functions = self.whole_options().functions;
        let QueryOptions { base, timeout, memory, cancel, bindings, .. } = self.options;
        let (using_graphs, using_named_graphs) = (self.options.default_graphs, self.options.named_graphs);
        let options = UpdateOptions { base, timeout, memory, cancel, bindings, ..UpdateOptions::default() };
        let options = UpdateOptions { using_graphs, using_named_graphs, functions, ..options };
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
        let (text, options) = (self.text, self.whole_options());
        self.target.on(|open| Ok(open.engine.explain(text, &options)?))
    }

    /// Runs a query to its end, throws its rows away, and gives the plan with rows, time and
    /// reads of each operator, as text.
    ///
    /// # Errors
    /// Those of running it.
    pub fn analyze(self) -> Result<String> {
        let options = QueryOptions { account: Some(self.account("query")), ..self.whole_options() };
        self.target.on(|open| Ok(open.engine.analyze(self.text, &options)?))
    }

    /// An account of its own for its reads, below the one of that name.
    fn account(&self, name: &str) -> Arc<Account> {
        let named = self.target.on(|open| open.engine.graph().database().account(name));
        Account::prioritized(&named, &[], self.priority, None)
    }

    /// The options with what the database adds to them.
    fn whole_options(&self) -> QueryOptions {
        self.target.on(|open| {
            let functions = match self.functions.is_empty() {
                true => open.functions.clone(),
                false => Arc::new(open.functions.with(&self.functions)),
            };
            let prefixes = match self.has_prefixes {
                true => Arc::new(open.graph().namespaces()),
                false => Arc::default(),
            };
            QueryOptions { functions, prefixes, ..self.options.clone() }
        })
    }

    fn begin(self) -> Result<QueryResult> {
        let options = QueryOptions { account: Some(self.account("query")), ..self.whole_options() };
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
