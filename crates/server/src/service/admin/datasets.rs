//! The datasets of a server of several: listed, made, renamed, dropped, copied.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use hyper::http::request::Parts;
use hyper::{Method, StatusCode};
use snowmelt_database::{Account, WaitFor};
use snowmelt_graph::{CompactOptions, CompactStep, GraphDatabase, GraphError};

use crate::dataset::folder::{DatasetChange, Datasets};
use crate::durations::RequestKind;
use crate::refusal::Refusal;
use crate::service::answers::{Answered, Failure, HttpResponse, bad, empty, internal, json, lost, parameter};
use crate::service::context::{Client, Context, read_only};
use crate::tokens::User;

/// Called with what long work waits for, if it waits; returns whether the work goes on.
type GoOn<'a> = &'a (dyn Fn(Option<WaitFor>) -> ControlFlow<()> + Sync);

/// The folder of datasets, where there is one.
fn folder(context: &Context) -> Result<&Arc<Datasets>, Refusal> {
    context.catalog.folder().ok_or_else(|| {
        let message = "this server serves one database: start it with a folder of them";
        Refusal::new(StatusCode::NOT_FOUND, message)
    })
}

/// Lists the datasets that the user may see.
pub fn list(context: &Context, user: &User) -> Result<HttpResponse, Refusal> {
    let mut list = tokio::task::block_in_place(|| Ok::<_, Refusal>(folder(context)?.list()))?;
    list.retain(|listed| user.may_see(&listed.name));
    Ok(json(&serde_json::json!({ "datasets": list })))
}

/// PUT makes one, DELETE drops it, POST renames or copies it.
pub async fn change(context: &Context, head: &Parts, client: &Client<'_>) -> Answered {
    let name = head.uri.path().trim_start_matches("/datasets/");
    let user = &client.user;
    user.check_dataset(name)?;
    let datasets = folder(context)?;
    let asked = |name: &str| parameter(head.uri.query(), name);
    let (rename, backup, compact) = (asked("rename"), asked("backup"), asked("compact"));
    if context.is_read_only && (head.method != Method::POST || backup.is_none()) {
        return Err(read_only().into());
    }
    let change = match (&head.method, rename, backup) {
        (&Method::POST, None, None) if compact.is_some() => return compact_one(context, name).await,
        (&Method::PUT, None, None) => DatasetChange::Create(name.to_owned()),
        (&Method::DELETE, None, None) => DatasetChange::Remove(name.to_owned()),
        (&Method::POST, Some(to), None) => {
            user.check_dataset(&to)?;
            DatasetChange::Rename { name: name.to_owned(), to }
        }
        (&Method::POST, None, Some(copy)) => {
            let is_incremental = asked("incremental").is_some();
            return back_up(context, name, &copy, is_incremental).await;
        }
        _ => {
            let ways = "PUT, DELETE, POST ?rename=TO, POST ?backup=COPY[&incremental] or POST ?compact";
            return Err(bad(ways).into());
        }
    };
    let is_new = matches!(change, DatasetChange::Create(_));
    let (peer, user) = (client.peer, client.name().map(str::to_owned));
    let (logs, text) = (Arc::clone(&context.logs), format!("{} {}", head.method, head.uri));
    let note = move || {
        logs.change(peer, user.as_deref(), &serde_json::json!({ "kind": "dataset", "text": text }));
    };
    datasets.change(change, note).await?;
    Ok(empty(if is_new { StatusCode::CREATED } else { StatusCode::NO_CONTENT }))
}

/// Copies one below the folder of backups; ends when the client leaves.
async fn back_up(context: &Context, name: &str, copy: &str, is_incremental: bool) -> Answered {
    let target = folder(context)?.backup_at(copy)?;
    let work = move |database: &Arc<GraphDatabase>, go_on: GoOn<'_>| {
        if !is_incremental {
            let done = database.database().backup_until(&target, &[], |_| go_on(None))?;
            return Ok((None, done.pages, done.txn));
        }
        Ok(match database.database().backup_to_set(&target, |_| go_on(None))? {
            Some((part, done)) => (Some(part.name), done.pages, done.txn),
            None => (None, 0, database.database().newest()),
        })
    };
    let (part, pages, txn) = maintain(context, name, &format!("backup to {copy}"), work).await?;
    let mut about = serde_json::json!({ "backup": copy, "pages": pages, "transaction": txn });
    if is_incremental {
        about["part"] = part.into();
    }
    Ok(json(&about))
}

/// Gives space back; ends when the client leaves.
async fn compact_one(context: &Context, name: &str) -> Answered {
    let work = |database: &Arc<GraphDatabase>, go_on: GoOn<'_>| {
        database.compact(&CompactOptions::default(), |step| match step {
            CompactStep::Waiting(what) => go_on(Some(what)),
            _ => go_on(None),
        })
    };
    let done = maintain(context, name, "compact", work).await?;
    Ok(json(&serde_json::json!({
        "bytes_before": done.before_bytes, "bytes_after": done.after_bytes, "terms": done.terms.to_string(),
    })))
}

/// Long work on a dataset, on a thread of its own.
async fn maintain<T: Send + 'static>(
    context: &Context,
    name: &str,
    what: &str,
    work: impl FnOnce(&Arc<GraphDatabase>, GoOn<'_>) -> Result<T, GraphError> + Send + 'static,
) -> Result<T, Failure> {
    let dataset = folder(context)?.get(name).await?;
    let account = Account::alone();
    let running = context.running.enter(RequestKind::Command, name, what, &account);
    let cancel = Arc::clone(&running.task.cancel);
    let working = tokio::task::spawn_blocking(move || {
        work(dataset.engine.graph(), &|waits_for| {
            account.sign().set(waits_for);
            match cancel.load(Ordering::Relaxed) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        })
    });
    let done = working.await.map_err(|_| lost())?.map_err(|error| match error.is_of_what_exists() {
        true => Refusal::new(StatusCode::CONFLICT, "there is something of this name: choose another one"),
        false => internal(&error),
    })?;
    drop(running);
    Ok(done)
}
