//! Functions that a program brings along, called by IRI in SPARQL.

use std::cell::Cell;
use std::sync::Arc;

use oxrdf::Term;
use snowmelt_graph::Term as StoredTerm;
use snowmelt_sparql::CustomFunction;

use crate::value::{of_oxrdf, to_oxrdf};

thread_local! {
    static IS_CALLED: Cell<bool> = const { Cell::new(false) };
}

/// While it lives, this thread runs a function of the program for a query.
struct Call {
    before: bool,
}

impl Call {
    fn begin() -> Self {
        Call { before: IS_CALLED.replace(true) }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        IS_CALLED.set(self.before);
    }
}

/// Whether this thread runs a function of the program. It must not wait for a writer then: its own
/// query may be a part of that writer's update.
pub(crate) fn is_called() -> bool {
    IS_CALLED.get()
}

/// A closure on terms of the interface, for the engine.
pub(crate) fn custom(
    call: impl Fn(&[Term]) -> Option<Term> + Send + Sync + 'static,
    is_deterministic: bool,
) -> CustomFunction {
    let call = move |args: &[StoredTerm]| {
        let args: Vec<Term> = args.iter().cloned().map(to_oxrdf).collect();
        let _call = Call::begin();
        call(&args).map(|term| in_lower_case(of_oxrdf(term)))
    };
    CustomFunction { call: Arc::new(call), is_deterministic }
}

/// The engine has language tags in lower case.
fn in_lower_case(mut term: StoredTerm) -> StoredTerm {
    if let StoredTerm::Literal { lang: Some(lang), .. } = &mut term {
        lang.make_ascii_lowercase();
    }
    term
}
