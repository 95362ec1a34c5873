//! LOAD: a document of quads from where the server's operator allows it, and from nowhere else.
//!
//! A server that fetches whatever address a client names is a way into the network behind it. So
//! documents elsewhere are had as endpoints are asked: by their allowed prefixes, and not from
//! private addresses. A document is parsed before the turn of the writer, so that others change
//! the database meanwhile, however long it is. One of another machine has come whole before it is
//! parsed, because turns to parse are few; until then the update lends its slot. Not with the turn
//! of the writers, which all that hold slots may be waiting for: the slot would then never come.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use oxrdfio::RdfFormat;
use snowmelt_database::{Account, WaitFor};
use snowmelt_graph::load::{Source, format_of_media_type};
use snowmelt_graph::{ChangePhase, ChangeWatch, Changed, GraphDocument, StageInto, Staged};
use snowmelt_syntax::tree::{Operation, UpdateOperation};

use super::{UpdateOptions, UpdateRun};
use crate::bounds::{Limits, document_failed};
use crate::engine::QueryEngine;
use crate::error::{LoadRefusal, QueryError};
use crate::remote::{QuerySlot, RemoteFault};

/// A directory that LOAD may read from, or a single file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadPermission(PathBuf);

impl LoadPermission {
    /// Everything in a directory (links that lead out of it excepted), or one file: a path, or
    /// a `file:` IRI.
    ///
    /// # Errors
    /// A line for people: what is not there, or not a file's IRI.
    pub fn new(place: &str) -> Result<Self, String> {
        if is_elsewhere(place) {
            return Err(format!("{place}: this is for files; places elsewhere are allowed as endpoints are"));
        }
        let path = match place.strip_prefix("file:") {
            Some(_) => {
                path_of(place).ok_or_else(|| format!("{place} does not name a file of this machine"))?
            }
            None => PathBuf::from(place),
        };
        let path = path.canonicalize().map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(Self(path))
    }

    /// Whether a path without links is in it.
    fn covers(&self, path: &Path) -> bool {
        path.starts_with(&self.0)
    }
}

/// The documents of the LOADs of an update, in their order, parsed as far as they can be.
pub(super) type Loads = VecDeque<Result<Staged, QueryError>>;

impl QueryEngine {
    /// Parses the documents of an update before the turn of the writer. A faulty document is
    /// reported when its operation runs, a reached limit at once.
    pub(super) fn stage_loads(
        &self,
        operations: &[UpdateOperation],
        options: &UpdateOptions,
        limits: &Limits,
    ) -> Result<Loads, QueryError> {
        let mut loads = Loads::new();
        for operation in operations {
            if let Operation::Load { source, into, .. } = &operation.operation {
                loads.push_back(self.stage_load_of(source, into.as_deref(), options, limits)?);
            }
        }
        Ok(loads)
    }

    /// Parses the document of a LOAD before the turn of the writer.
    pub(super) fn stage_load_of(
        &self,
        source: &str,
        graph: Option<&str>,
        options: &UpdateOptions,
        limits: &Limits,
    ) -> Result<Result<Staged, QueryError>, QueryError> {
        let slot = options.slot.as_deref();
        match self.stage_load(source, graph, options, limits, slot) {
            Err(error) if !is_of_source(&error) => Err(error),
            staged => Ok(staged),
        }
    }

    /// Parses the document of a LOAD. The slot is lent until one of another machine has come.
    fn stage_load(
        &self,
        source: &str,
        graph: Option<&str>,
        options: &UpdateOptions,
        limits: &Limits,
        slot: Option<&dyn QuerySlot>,
    ) -> Result<Staged, QueryError> {
        let (document, format, moved_to) = match is_elsewhere(source) {
            true => {
                let document = lending(slot, options, limits, || {
                    let database = self.graph().database();
                    let _metered = database.endpoint_waits().wait(database.clock());
                    let sign = options.account.as_deref().map(Account::sign);
                    let _shown = sign.map(|sign| sign.show(WaitFor::Endpoint));
                    self.remote_document(source, options, limits)
                });
                document?
            }
            false => (Source::File(permitted_path(source, options)?), None, None),
        };
        // RFC 3986, 5.1.3: the address that has answered at last
        let base = moved_to.as_deref().unwrap_or(source);
        let most_bytes = options.most_document_bytes.filter(|_| is_elsewhere(source));
        let into = StageInto { graph, base: Some(base), is_one_graph: false, most_bytes };
        let contexts = options.contexts.clone();
        let document = GraphDocument { source: document, format, contexts };
        let watch = ChangeWatch { interrupt: limits, progress: &options.progress };
        let staged = self.graph().stage(vec![document], into, options.account.as_ref(), watch);
        staged.map_err(|error| document_failed(limits, error))
    }

    /// A document of another machine, which has come whole, its format, and where redirects have
    /// led to.
    fn remote_document(
        &self,
        source: &str,
        options: &UpdateOptions,
        limits: &Limits,
    ) -> Result<(Source, Option<RdfFormat>, Option<String>), QueryError> {
        let failed = |fault| QueryError::LoadFailed { source_iri: source.to_owned(), fault };
        if options.view.is_some() {
            // Its quads may be of any graph.
            return Err(QueryError::Forbidden { what: "LOAD".to_owned() });
        }
        let remote = options.remote.as_ref().ok_or_else(|| failed(RemoteFault::none_allowed()))?;
        let own = limits.clone();
        let document = remote.document(source, Box::new(move || own.check().is_ok()));
        limits.check()?;
        let document = document.map_err(failed)?;
        // many servers call whatever they do not know plain text
        let media_type = document.media_type.as_deref().filter(|of| *of != "text/plain");
        let by_type = media_type.and_then(format_of_media_type);
        let moved_to = document.moved_to;
        let format = by_type.or_else(|| format_by_name(moved_to.as_deref().unwrap_or(source)));
        let (most_bytes, name) = (options.most_document_bytes, source.to_owned());
        let watch = ChangeWatch { interrupt: limits, progress: &options.progress };
        let spooled = self.graph().spool(name, document.read, most_bytes, watch);
        Ok((spooled.map_err(|error| document_failed(limits, error))?, format, moved_to))
    }
}

/// Calls `wait` without the slot, which is taken again after it.
fn lending<T>(
    slot: Option<&dyn QuerySlot>,
    options: &UpdateOptions,
    limits: &Limits,
    wait: impl FnOnce() -> Result<T, QueryError>,
) -> Result<T, QueryError> {
    let Some(slot) = slot else { return wait() };
    slot.lend();
    let waited = wait();
    options.progress.enter(ChangePhase::Waiting);
    let _shown = options.account.as_deref().map(|account| account.sign().show(WaitFor::Slot));
    if !slot.take_again(&|| limits.check().is_ok()) {
        limits.check()?;
        return Err(QueryError::Cancelled);
    }
    waited
}

/// Whether a document, or its place, is at fault: SILENT passes over that.
pub(super) fn is_of_source(error: &QueryError) -> bool {
    match error {
        QueryError::LoadRefused { .. } | QueryError::LoadFailed { .. } | QueryError::Forbidden { .. } => true,
        QueryError::Load(error) => error.is_of_input(),
        _ => false,
    }
}

/// Whether a document is to be had from another machine.
fn is_elsewhere(place: &str) -> bool {
    let scheme = place.split(':').next().unwrap_or_default();
    scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")
}

/// The format by the end of an address.
fn format_by_name(address: &str) -> Option<RdfFormat> {
    let path = address.split(['?', '#']).next().unwrap_or_default();
    let (_, name) = path.rsplit_once('/')?;
    let name = name.strip_suffix(".gz").unwrap_or(name);
    RdfFormat::from_extension(name.rsplit_once('.')?.1)
}

/// The file that may be loaded under a name.
fn permitted_path(source: &str, options: &UpdateOptions) -> Result<PathBuf, QueryError> {
    let refused = |why| QueryError::LoadRefused { source_iri: source.to_owned(), why };
    if options.view.is_some() {
        // Its quads may be of any graph.
        return Err(QueryError::Forbidden { what: "LOAD".to_owned() });
    }
    if options.allow_load.is_empty() {
        return Err(refused(LoadRefusal::NoFolder));
    }
    let path = path_of(source).ok_or_else(|| refused(LoadRefusal::NotAFile))?;
    // The error does not tell whether a file elsewhere is there.
    let outside = || refused(LoadRefusal::OtherFolder);
    let path = path.canonicalize().map_err(|_| outside())?;
    if !options.allow_load.iter().any(|allowed| allowed.covers(&path)) {
        return Err(outside());
    }
    Ok(path)
}

impl UpdateRun<'_> {
    /// Inserts a document into a graph: one that was parsed before, or else parses it now.
    pub(super) fn load(&mut self, source: &str, into: Option<&str>) -> Result<Changed, QueryError> {
        let staged = match self.loads.pop_front() {
            Some(staged) => staged?,
            None => self.engine.stage_load(source, into, self.options, &self.limits, None)?,
        };
        let changed = self.txn.insert_staged(staged, &self.limits, &self.options.progress);
        changed.map_err(|error| document_failed(&self.limits, error))
    }
}

/// The path in a `file:` IRI of this machine.
fn path_of(iri: &str) -> Option<PathBuf> {
    let path = iri.strip_prefix("file:")?;
    let path = path.strip_prefix("//localhost").or_else(|| path.strip_prefix("//")).unwrap_or(path);
    if !path.starts_with('/') {
        return None;
    }
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.bytes();
    while let Some(byte) = rest.next() {
        let byte = match byte {
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            b'?' | b'#' => break,
            byte => byte,
        };
        bytes.push(byte);
    }
    Some(PathBuf::from(String::from_utf8(bytes).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_iris() {
        let path = |iri| path_of(iri).map(|p| p.to_string_lossy().into_owned());
        assert_eq!(path("file:///a/b%20c.ttl"), Some("/a/b c.ttl".into()));
        assert_eq!(path("file://localhost/a"), Some("/a".into()));
        assert_eq!(path("file:/a"), Some("/a".into()));
        for iri in ["http://a/b", "file://host/a", "file:a", "/a"] {
            assert_eq!(path(iri), None, "{iri}");
        }
    }

    #[test]
    fn a_permission_ends_at_its_folder() {
        let dir = tempfile::tempdir().unwrap();
        let inside = dir.path().join("in");
        std::fs::create_dir(&inside).unwrap();
        let allowed = LoadPermission::new(inside.to_str().unwrap()).unwrap();
        let real = inside.canonicalize().unwrap();
        assert!(allowed.covers(&real.join("x.ttl")));
        assert!(!allowed.covers(&real.with_file_name("in2").join("x.ttl")));
        assert!(LoadPermission::new("http://example.org/").is_err());
        assert!(LoadPermission::new(inside.join("nothing").to_str().unwrap()).is_err());
    }
}
