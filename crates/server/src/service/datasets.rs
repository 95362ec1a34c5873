//! The datasets of a server of several: listed, made, renamed, dropped, copied.

use std::io::Write;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use hyper::http::request::Parts;
use hyper::{Method, StatusCode};
use snowmelt_graph::{Account, CompactOptions, CompactStep, Database, GraphError, WaitFor};

use super::answers::{Answered, Failure, HttpResponse, Why, bad, empty, internal, json, lost, parameter};
use super::{Service, Source};
use crate::dataset::folder::{DatasetChange, DatasetError, Datasets};
use crate::durations::RequestKind;
use crate::refusal::Refusal;
use crate::tokens::{Denied, User};

/// The refusal that it is.
pub fn refusal(error: DatasetError) -> Refusal {
    let status = match &error {
        DatasetError::Unknown(_) => StatusCode::NOT_FOUND,
        DatasetError::Exists(_) | DatasetError::InUse(_) | DatasetError::Elsewhere { .. } => {
            StatusCode::CONFLICT
        }
        DatasetError::Name(_) => StatusCode::BAD_REQUEST,
        DatasetError::Memory(_) => StatusCode::SERVICE_UNAVAILABLE,
        DatasetError::NoBackups => StatusCode::FORBIDDEN,
        DatasetError::Failed(why) => {
            // It names files, which are the administrator's affair. Not eprintln!, which panics
            // when the reader is gone.
            drop(writeln!(std::io::stderr(), "snowmelt: a dataset cannot be had: {why}"));
            let message = "the dataset cannot be had; see the log of the server".to_owned();
            return (StatusCode::INTERNAL_SERVER_ERROR, message);
        }
    };
    (status, error.to_string())
}

/// Told what long work waits for, if it does, and says whether it goes on.
type GoOn<'a> = &'a (dyn Fn(Option<WaitFor>) -> ControlFlow<()> + Sync);

impl Service {
    /// Refuses users that are for another dataset.
    pub(super) fn check_dataset(&self, user: &User, name: &str) -> Result<(), Why> {
        match user.may_see(name) {
            true => Ok(()),
            false => Err(Why::Denied(Denied::Dataset)),
        }
    }

    /// Refuses users that are for some datasets, where all are shown.
    pub(super) fn check_all_datasets(&self, user: &User) -> Result<(), Why> {
        match user.token.as_ref().is_none_or(|token| token.datasets.is_none()) {
            true => Ok(()),
            false => Err(Why::Denied(Denied::Dataset)),
        }
    }

    fn many(&self) -> Result<&Arc<Datasets>, Refusal> {
        match &self.datasets {
            Source::Many(datasets) => Ok(datasets),
            Source::One(_) => {
                let message = "this server serves one database: start it with a folder of them";
                Err((StatusCode::NOT_FOUND, message.to_owned()))
            }
        }
    }

    /// Those that are there for the user.
    pub(super) fn list_datasets(&self, user: &User) -> Result<HttpResponse, Refusal> {
        let mut list = tokio::task::block_in_place(|| Ok::<_, Refusal>(self.many()?.list()))?;
        list.retain(|listed| user.may_see(&listed.name));
        Ok(json(&serde_json::json!({ "datasets": list })))
    }

    /// PUT makes one, DELETE drops it, POST renames or copies it.
    pub(super) async fn change_dataset(&self, head: &Parts, user: &User, peer: SocketAddr) -> Answered {
        let name = head.uri.path().trim_start_matches("/datasets/");
        self.check_dataset(user, name)?;
        let datasets = self.many()?;
        let asked = |name: &str| parameter(head.uri.query(), name);
        let (rename, backup, compact) = (asked("rename"), asked("backup"), asked("compact"));
        if self.read_only && (head.method != Method::POST || backup.is_none()) {
            let message = "this server is read-only (--read-only)".to_owned();
            return Err((StatusCode::FORBIDDEN, message).into());
        }
        let change = match (&head.method, rename, backup) {
            (&Method::POST, None, None) if compact.is_some() => return self.compact(datasets, name).await,
            (&Method::PUT, None, None) => DatasetChange::Create(name.to_owned()),
            (&Method::DELETE, None, None) => DatasetChange::Remove(name.to_owned()),
            (&Method::POST, Some(to), None) => {
                self.check_dataset(user, &to)?;
                DatasetChange::Rename { name: name.to_owned(), to }
            }
            (&Method::POST, None, Some(copy)) => {
                let is_incremental = asked("incremental").is_some();
                return self.back_up(datasets, name, (&copy, is_incremental)).await;
            }
            _ => {
                let ways = "PUT, DELETE, POST ?rename=TO, POST ?backup=COPY[&incremental] or POST ?compact";
                return Err(bad(ways).into());
            }
        };
        let is_new = matches!(change, DatasetChange::Create(_));
        let user = user.token.as_ref().map(|token| token.name.clone());
        let (logs, text) = (Arc::clone(&self.logs), format!("{} {}", head.method, head.uri));
        let note = move || {
            logs.change(peer, user.as_deref(), &serde_json::json!({ "kind": "dataset", "text": text }));
        };
        datasets.change(change, note).await.map_err(refusal)?;
        Ok(empty(if is_new { StatusCode::CREATED } else { StatusCode::NO_CONTENT }))
    }

    /// Copies one below the folder of backups; ends when the client leaves.
    async fn back_up(
        &self,
        datasets: &Arc<Datasets>,
        name: &str,
        (copy, is_incremental): (&str, bool),
    ) -> Answered {
        let target = datasets.backup_at(copy).map_err(refusal)?;
        let work = move |database: &Arc<Database>, go_on: GoOn<'_>| {
            if !is_incremental {
                let done = database.backup_until(&target, &[], |_| go_on(None))?;
                return Ok((None, done.pages, done.txn));
            }
            Ok(match database.backup_to_set(&target, |_| go_on(None))? {
                Some((part, done)) => (Some(part.name), done.pages, done.txn),
                None => (None, 0, database.newest()),
            })
        };
        let (part, pages, txn) = self.maintain(datasets, name, &format!("backup to {copy}"), work).await?;
        let mut about = serde_json::json!({ "backup": copy, "pages": pages, "transaction": txn });
        if is_incremental {
            about["part"] = part.into();
        }
        Ok(json(&about))
    }

    /// Gives space back; ends when the client leaves.
    async fn compact(&self, datasets: &Arc<Datasets>, name: &str) -> Answered {
        let work = |database: &Arc<Database>, go_on: GoOn<'_>| {
            database.compact(&CompactOptions::default(), |step| match step {
                CompactStep::Waiting(what) => go_on(Some(what)),
                _ => go_on(None),
            })
        };
        let done = self.maintain(datasets, name, "compact", work).await?;
        Ok(json(&serde_json::json!({
            "bytes_before": done.before_bytes, "bytes_after": done.after_bytes, "terms": done.terms.to_string(),
        })))
    }

    /// Long work on a dataset, on a thread of its own.
    async fn maintain<T: Send + 'static>(
        &self,
        datasets: &Arc<Datasets>,
        name: &str,
        what: &str,
        work: impl FnOnce(&Arc<Database>, GoOn<'_>) -> Result<T, GraphError> + Send + 'static,
    ) -> Result<T, Failure> {
        let dataset = datasets.get(name).await.map_err(refusal)?;
        let account = Account::alone();
        let running = self.running.enter(RequestKind::Command, name, what, &account);
        let cancel = Arc::clone(&running.task.cancel);
        let working = tokio::task::spawn_blocking(move || {
            work(dataset.engine.database(), &|waits_for| {
                account.sign().set(waits_for);
                match cancel.load(Ordering::Relaxed) {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                }
            })
        });
        let done = working.await.map_err(|_| lost())?.map_err(|error| match error.is_of_what_exists() {
            true => (StatusCode::CONFLICT, "there is something of this name: choose another one".to_owned()),
            false => internal(&error),
        })?;
        drop(running);
        Ok(done)
    }
}
