//! The warm list at work (rule 5): its pages are read back, and the resident pages go on it.

use std::collections::HashMap;

use snowmelt_io::Class;

use crate::page::PageId;
use crate::page::geometry::ExtentId;
use crate::pool::Touched;
use crate::pool::rule::Rule;
use crate::read::activity::Activity;
use crate::read::fetch::Fetch;
use crate::read::warm::WarmEntry;
use crate::space::extent::words;

/// The used resident pages of the pool, by extent, hottest first: a page touched again since
/// the clock's hand passed counts three times.
pub(crate) fn collect(fetch: &Fetch) -> Vec<WarmEntry> {
    let mut found: HashMap<ExtentId, (u64, WarmEntry)> = HashMap::new();
    fetch.core.pages.pool.each_resident(|page, touched| {
        let heat = match touched {
            Touched::Never => return,
            Touched::Once => 1,
            Touched::Often => 3,
        };
        let extent = fetch.geometry.extent_of(page);
        let fresh = || (0, WarmEntry { extent, pages: vec![0; words(fetch.geometry.extent_pages)].into() });
        let (sum, entry) = found.entry(extent).or_insert_with(fresh);
        *sum += heat;
        let index = fetch.geometry.index_of(page);
        entry.pages[index as usize / 64] |= 1 << (index % 64);
    });
    let mut list: Vec<_> = found.into_values().collect();
    list.sort_unstable_by(|(ha, a), (hb, b)| hb.cmp(ha).then(a.extent.cmp(&b.extent)));
    list.into_iter().map(|(_, e)| e).collect()
}

/// Asks for the next extents of devices that have little to do; gives up when the pool is full.
/// True when there is more to do.
pub(crate) fn step(fetch: &Fetch, meters: &mut Activity) -> bool {
    /// Requests a device may have waiting when more are added: enough to keep it busy until the
    /// next step.
    const BACKLOG: usize = 512;
    let warm_up = &fetch.warm_up;
    let stripes = fetch.stripes.len();
    for stripe in 0..stripes {
        while fetch.stripes.backlog(stripe) < BACKLOG {
            if fetch.core.pages.pool.fresh_left() == 0 {
                warm_up.give_up();
            }
            let next = warm_up.take_next(stripe);
            let Some(entry) = next else { break };
            read(fetch, &entry, meters);
        }
    }
    !warm_up.is_done()
}

fn read(fetch: &Fetch, entry: &WarmEntry, meters: &mut Activity) {
    let Some(tree) = fetch.core.space.read().extent(entry.extent).and_then(|e| e.tree) else { return };
    let mut pages: Vec<PageId> = fetch.absent_in_extent(entry.extent);
    pages.retain(|p| entry.has(fetch.geometry.index_of(*p)));
    fetch.start(tree, &pages, Rule::Warm, Class::Speculative, meters);
}
