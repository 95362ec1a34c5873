//! Finds the resource of a request by its head. Checks that it is for this server, that there is
//! such a resource, that it takes the method, and that the user has the right; opens the dataset.

use std::net::SocketAddr;
use std::sync::Arc;

use hyper::http::request::Parts;
use hyper::{HeaderMap, Method, StatusCode};

use super::answers::{Failure, Why};
use super::context::{Client, Context, DatasetRequest, depth_of};
use crate::ServerConfig;
use crate::audience::Audience;
use crate::connections::Connection;
use crate::dataset::Dataset;
use crate::dataset::catalog::Catalog;
use crate::refusal::Refusal;
use crate::request::check_form;
use crate::resource::Resource;
use crate::tokens::{Rights, User};
use crate::users::Users;

/// Finds the resource of a request.
pub struct Router {
    context: Arc<Context>,
    audience: Audience,
    users: Arc<Users>,
}

/// The resource that a request is for.
pub enum Route<'a> {
    /// the methods of a resource are asked for
    Options(Resource),
    /// one of the server
    Server(Resource, Client<'a>),
    /// one of a dataset
    Dataset(Resource, DatasetRequest<'a>),
}

impl Router {
    pub fn new(context: Arc<Context>, users: Arc<Users>, config: &ServerConfig) -> Self {
        // Where all may do everything, no name of another site may lead here.
        let any_host = !config.keeper.is_open_to_all();
        Self { context, audience: Audience::new(&config.allow_hosts, any_host), users }
    }

    /// The route of a request; `user_name` becomes its user's, once that is known.
    pub async fn route<'a>(
        &self,
        head: &Parts,
        connection: &'a Connection,
        peer: SocketAddr,
        user_name: &mut Option<String>,
    ) -> Result<Route<'a>, Failure> {
        let host = self.audience.host_of(head)?;
        check_form(head.uri.query().unwrap_or_default().as_bytes())?;
        let path = head.uri.path();
        let split = self.context.catalog.split(path);
        let found = Resource::at(split.rest);
        let found = found.filter(|found| split.dataset.is_none() || found.is_of_dataset());
        let Some(resource) = found else {
            let message = format!("no such resource: {path}; queries and updates go to /sparql");
            return Err(Refusal::new(StatusCode::NOT_FOUND, message).into());
        };
        if head.method == Method::OPTIONS {
            return Ok(Route::Options(resource));
        }
        if !resource.methods().contains(&head.method) {
            return Err(Why::Method(resource).into());
        }
        let user = match resource.needs(&head.method) {
            Some(rights) => self.context.keeper.user(&head.headers, rights)?,
            None => User { token: None, rights: Rights::Read },
        };
        let scheme = scheme(&head.headers, connection);
        let client = Client { connection, peer, user, host, scheme };
        *user_name = client.name().map(str::to_owned);
        let is_of_all =
            resource == Resource::Stats && split.dataset.is_none() && self.context.catalog.folder().is_some();
        if !resource.is_of_dataset() || is_of_all {
            return Ok(Route::Server(resource, client));
        }
        let depth = depth_of(&head.headers)?;
        let dataset = self.dataset(split.dataset, &client.user).await?;
        let account = client.name().map(|name| self.users.account(name));
        let view = client.user.view();
        Ok(Route::Dataset(resource, DatasetRequest { client, dataset, account, view, depth }))
    }

    /// The dataset of a request, opened if it is not.
    async fn dataset(&self, name: Option<&str>, user: &User) -> Result<Arc<Dataset>, Failure> {
        match (&self.context.catalog, name) {
            (Catalog::One(one), _) => {
                user.check_dataset("")?;
                Ok(Arc::clone(one))
            }
            (Catalog::Many(datasets), Some(name)) => {
                user.check_dataset(name)?;
                Ok(datasets.get(name).await?)
            }
            (Catalog::Many(_), None) => {
                let message = "which dataset? /NAME/sparql; /datasets lists them".to_owned();
                Err(Refusal::new(StatusCode::NOT_FOUND, message).into())
            }
        }
    }
}

/// How the client reached the server: a proxy in front of it says so.
fn scheme(headers: &HeaderMap, connection: &Connection) -> &'static str {
    let by_proxy = headers.get("x-forwarded-proto").is_some_and(|proto| proto == "https");
    if by_proxy || connection.is_encrypted { "https" } else { "http" }
}
