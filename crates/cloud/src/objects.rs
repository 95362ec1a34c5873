//! A store of a cloud as [`Objects`]: each request is a task of the runtime.
//!
//! `Done` lies in a cell that three may empty, each of them once for all: the task with its answer,
//! the handle when it is dropped, and the end of a task that broke off without an answer.

use std::sync::Arc;

use parking_lot::Mutex;
use snowmelt_io::{Answer, Ask, Done, ObjectError, ObjectErrorKind, Objects, Ongoing};
use tokio::runtime::Handle;

use crate::address::{self, Address};
use crate::options::CloudOptions;
use crate::service::{self, Built};
use crate::{requests, runtime};

/// Opens the store, or a part of one, at an address:
///
/// | address                                              | store                          |
/// |------------------------------------------------------|--------------------------------|
/// | `s3://bucket/prefix`                                 | S3, or a server that speaks it |
/// | `gs://bucket/prefix`                                 | Google Cloud Storage           |
/// | `az://container/prefix`                              | Azure Blob, account by options |
/// | `abfss://container@account.dfs.core.windows.net/prefix` | the same                    |
///
/// Nothing is asked of it yet. Requests run on two threads of the process, which answers come from;
/// a handle that is dropped gives its request up without waiting for an answer that is being heard.
/// Requests are not repeated. A key has parts between slashes, none empty, `.` or `..`. Lists of an
/// Azure account with a hierarchical namespace may fail, since their order is another one.
///
/// # Errors
/// [`ObjectErrorKind::Invalid`] for addresses, settings and files that cannot be used,
/// `Unsupported` for buckets of a kind that cannot, `Unavailable` if there can be no threads.
pub fn open(address: &str, options: &CloudOptions) -> Result<Arc<dyn Objects>, ObjectError> {
    let failed = |kind| ObjectError {
        store: address::shown(address).into(),
        ask: "open",
        key: "the objects".into(),
        kind,
    };
    let address = address::parse(address).map_err(|error| failed(ObjectErrorKind::Invalid(error)))?;
    let runtime = runtime::handle().map_err(|error| failed(ObjectErrorKind::Unavailable(error)))?;
    let built = service::build(&address, options).map_err(failed)?;
    Ok(Arc::new(CloudObjects { runtime, part: Arc::new(Part { built, address }) }))
}

struct CloudObjects {
    runtime: Handle,
    part: Arc<Part>,
}

/// The objects below a prefix.
struct Part {
    built: Built,
    address: Address,
}

impl Objects for CloudObjects {
    fn name(&self) -> &Arc<str> {
        &self.part.address.name
    }

    fn begin(&self, ask: Ask, done: Done) -> Ongoing {
        if let Ask::Get { range: Some(range), .. } = &ask {
            assert!(range.start < range.end, "a range of bytes is not empty");
        }
        let mut teller = Teller {
            done: Arc::new(Mutex::new(Some(done))),
            part: self.part.clone(),
            ask: ask.name(),
            key: ask.key().clone(),
        };
        let cell = teller.done.clone();
        let task = self.runtime.spawn(async move {
            let part = teller.part.clone();
            let answer = requests::answer(&part.built, &part.address.prefix, ask).await;
            teller.tell(answer);
        });
        Ongoing::new(move || {
            let unheard = cell.lock().take();
            task.abort();
            drop(unheard);
        })
    }
}

/// The duty to answer once.
struct Teller {
    done: Arc<Mutex<Option<Done>>>,
    part: Arc<Part>,
    ask: &'static str,
    key: Arc<str>,
}

impl Teller {
    fn tell(&mut self, answer: Result<Answer, ObjectErrorKind>) {
        let done = self.done.lock().take();
        if let Some(done) = done {
            let (store, key) = (self.part.address.name.clone(), self.key.clone());
            done(answer.map_err(|kind| ObjectError { store, ask: self.ask, key, kind }));
        }
    }
}

impl Drop for Teller {
    fn drop(&mut self) {
        self.tell(Err(ObjectErrorKind::Unavailable("the request broke off".to_owned())));
    }
}
