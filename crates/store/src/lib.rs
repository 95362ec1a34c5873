//! Durable sorted trees: space, pool, pages, read-ahead, snapshots
