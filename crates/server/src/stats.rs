//! The part of `/stats` about commits, journal, checkpoints and the last recovery.

use serde_json::{Value, json};
use snowmelt_graph::Database;

/// Commits and their groups, journal, version table, readers, checkpoints, and the last
/// recovery.
pub fn journal(database: &Database) -> Value {
    let (stats, recovery) = (database.journal_stats(), database.recovery());
    let per = |of: u64, by: u64| if by == 0 { 0.0 } else { of as f64 / by as f64 };
    json!({
        "commits": stats.commits,
        "group_size": per(stats.synced_records, stats.syncs),
        "appended_bytes": stats.appended_bytes,
        "bytes_per_commit": per(stats.appended_bytes, stats.commits),
        "written_bytes": stats.written_bytes,
        "syncs": stats.syncs,
        "sync_latency": stats.sync_latency,
        "files_recycled": stats.recycled,
        "version_table": {
            "pages": stats.versioned_pages, "versions": stats.versions, "in_memory": stats.versions_in_memory, "bytes": stats.versions_bytes,
        },
        "newest_transaction": stats.newest,
        "oldest_reader": stats.oldest_reader,
        "cancelled_readers": stats.cancelled_readers,
        "checkpoints": {
            "ended": stats.checkpoints,
            "pages_written_back": stats.written_back,
            "up_to_transaction": stats.checkpointed,
            "backlog_bytes": stats.bytes_to_recover,
            "stalled": stats.stalled,
        },
        "recovery_seconds_estimated": stats.recovery_s,
        "recovery_bound_bytes": stats.bound_bytes,
        "slowed_near_the_bound": {
            "transactions": stats.slowed,
            "seconds": stats.slowed_ns as f64 / 1e9,
            "longest_seconds": stats.longest_slowed_ns as f64 / 1e9,
        },
        "poisoned": stats.poisoned,
        "last_recovery": {
            "journal_files": recovery.files,
            "read_bytes": recovery.read_bytes,
            "requests": recovery.requests,
            "request_bytes": per(recovery.read_bytes, recovery.requests),
            "concurrency": recovery.concurrency,
            "records": recovery.records,
            "commits": recovery.commits,
            "pages": recovery.pages,
            "pages_in_memory": recovery.pages_in_memory,
            "newest_commits_in_memory": recovery.newest_commits_in_memory,
            "seconds": recovery.seconds,
        },
    })
}
