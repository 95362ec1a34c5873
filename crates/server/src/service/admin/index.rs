//! The root: a page for people with browsers, a list of resources for the others.

use hyper::StatusCode;
use hyper::http::request::Parts;
use snowmelt_graph::Namespaces;

use crate::dataset::catalog::Catalog;
use crate::negotiate;
use crate::service::answers::{HttpResponse, accept, page_of, text};
use crate::service::context::{Client, Context};
use crate::tokens::Rights;

/// The answer at the root.
pub fn index(context: &Context, head: &Parts, client: &Client<'_>) -> HttpResponse {
    match &context.catalog {
        Catalog::One(one) if negotiate::wants_page(accept(&head.headers).as_deref()) => {
            // the page is for all, and what is kept for those who may read all
            let user = context.keeper.user(&head.headers, Rights::Read);
            let may_read = user.is_ok_and(|user| user.view().is_none() && user.check_dataset("").is_ok());
            let kept = if may_read { one.engine.graph().namespaces() } else { Namespaces::default() };
            page_of("", &client.address(""), &kept)
        }
        Catalog::One(_) => text(StatusCode::OK, INDEX),
        Catalog::Many(_) => text(StatusCode::OK, format!("{MANY}{INDEX}")),
    }
}

const MANY: &str = "\
Snowmelt serves the datasets that /datasets lists: /NAME/sparql, /NAME/update, /NAME/graphs and
/NAME/stats are of each. PUT, DELETE /datasets/NAME make and drop one; POST /datasets/NAME with
?rename=TO, ?backup=COPY or ?compact names it anew, copies it, gives its space back.

";

const INDEX: &str = "\
Snowmelt answers SPARQL queries and runs updates here.

  GET  /sparql?query=...          JSON, XML, CSV, TSV, HTML; graphs as N-Triples, Turtle, RDF/XML,
                                  JSON-LD, N-Quads, TriG, by Accept or &format=; &explain=plan|analyze
  POST /sparql                    a form with 'query', or the query itself as application/sparql-query
  POST /update                    a form with 'update', or the update itself as application/sparql-update
  GET, HEAD, PUT, POST, DELETE /graphs?default, /graphs?graph=IRI   a whole graph
  GET, PUT, POST /graphs          all graphs, as TriG, N-Quads or JSON-LD
  GET  /sparql                    what is here: service description and VoID
  GET  /requests                  what runs now; GET, DELETE /requests/N: its plan, its end
  GET  /stats                     what is stored, what was read
  GET  /metrics                   the same for Prometheus
  GET  /ready                     200 when queries and updates are worth sending
  POST /stats/reset               counts anew: all, ?tree=NAME, ?account=NAME
  GET  /health                    ok
";
