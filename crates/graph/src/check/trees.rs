//! The nodes of the trees: each tree is walked from its root, and the pages it uses are
//! compared with the extent map.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use snowmelt_database::layer_of;
use snowmelt_store::{PageId, PageUse, Reader, StoreError, TreeId};

use crate::check::{CheckProgress, CheckReport, Progress};
use crate::database::generation::NEXT;
use crate::dict::Tree;
use crate::error::Result;
use crate::index::Index;
use crate::index::triple::TripleIndex;
use crate::interrupt::go_on;
use crate::session::Session;

/// Pages between two reports of progress.
const REPORT_PAGES: u64 = 4096;

/// A walk over a whole tree that reports each page.
type Walk<'a> = dyn FnMut(&mut Reader, &mut dyn FnMut(PageId)) -> Result<(), StoreError> + 'a;

/// Walks every tree and compares the pages reached with the pages in use in the extent map.
pub(crate) fn check_trees(
    session: &mut Session,
    pages: PageUse,
    report: &mut CheckReport,
    progress: Progress<'_>,
) -> Result<()> {
    let state = session.state.clone();
    let mut check = Check { pages, walked: BTreeSet::new(), unread: BTreeSet::new(), report, progress };
    let hashes = Tree::ALL.into_iter().map(|tree| (tree.hash_name(), state.hashes(tree)));
    let indexes = Index::ALL.into_iter().map(|index| (index.name(), state.index(index)));
    let triples = TripleIndex::ALL.into_iter().map(|index| (index.name(), state.triple(index)));
    for (name, tree) in hashes.chain(indexes).chain(triples) {
        if let Some(tree) = tree {
            check.tree(session, name, tree.id(), &mut |r, on_page| tree.check_pages(r, on_page))?;
        }
    }
    for tree in Tree::ALL {
        if let Some(strings) = state.strings(tree) {
            let walk: &mut Walk<'_> = &mut |r, on_page| strings.check_pages(r, on_page);
            check.tree(session, tree.name(), strings.id(), walk)?;
        }
    }
    check.end(session);
    Ok(())
}

struct Check<'a> {
    pages: PageUse,
    walked: BTreeSet<TreeId>,
    /// trees of which not all pages were reached
    unread: BTreeSet<TreeId>,
    report: &'a mut CheckReport,
    progress: Progress<'a>,
}

impl Check<'_> {
    fn tree(
        &mut self,
        session: &mut Session,
        name: &'static str,
        id: TreeId,
        walk: &mut Walk<'_>,
    ) -> Result<()> {
        let (pages, report, progress) = (&mut self.pages, &mut *self.report, &mut *self.progress);
        let (mut done, total, mut said) = (0, pages.of_tree(id), ControlFlow::Continue(()));
        let walked = walk(&mut session.reader, &mut |page| {
            done += 1;
            if done % REPORT_PAGES == 0 && said.is_continue() {
                said = progress(CheckProgress { step: name, done, total });
            }
            if let Some(wrong) = pages.reach(id, page) {
                report.problem(format!("tree {name}: {wrong}"));
            }
        });
        go_on(said)?;
        self.walked.insert(id);
        let walked = walked.map_err(|error| error.into());
        if self.report.unless_damaged(walked)?.is_none() {
            self.unread.insert(id);
        }
        Ok(())
    }

    /// Reports pages that no tree uses.
    fn end(mut self, session: &Session) {
        let report = self.report;
        for (id, name) in &session.reader.snapshot().catalog().trees {
            if name.ends_with(NEXT) || layer_of(name).is_some() {
                // A tree of an unfinished compaction, or of another layer, which checks it.
                self.unread.insert(*id);
            } else if !self.walked.contains(id) {
                report.problem(format!("tree {} ({name}) is in the catalog, but no part of the graph", id.0));
            }
        }
        let trees = session.reader.snapshot().catalog().trees.keys().copied().collect();
        self.pages.unreached(&trees, &self.unread, |wrong| report.problem(wrong));
    }
}
