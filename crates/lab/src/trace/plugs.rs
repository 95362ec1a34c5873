//! Plugs: a thread that asks for much at once holds its requests back, and hands them over
//! together when it unplugs.
//!
//! The kernel's events of them name a thread and no device. A request is plugged right after
//! its bio was queued, so a plug is the device's when the thread has just asked it for
//! something:
//!
//! 1. Q and X are a request that waits for its plug; M and F are one fewer.
//! 2. P while one waits is the device's. One of another device becomes this one's, too, when a
//!    bio is queued below it.
//! 3. U hands over a number of requests, of all devices below the plug.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use super::event::{Action, BlockEvent, PlugEvent};

/// Plugs of one device.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct PlugCounts {
    /// Plugs that held back requests.
    pub plugs: u64,
    /// Unplugs that handed them over.
    pub unplugs: u64,
    /// Requests handed over.
    pub requests: u64,
    /// Unplugs by the number of requests that they handed over.
    pub by_requests: BTreeMap<u32, u64>,
}

impl PlugCounts {
    /// Mean number of requests of an unplug.
    pub fn mean(&self) -> f64 {
        self.requests as f64 / self.unplugs.max(1) as f64
    }

    /// Most requests of an unplug.
    pub fn most(&self) -> u32 {
        self.by_requests.last_key_value().map_or(0, |(requests, _)| *requests)
    }
}

#[derive(Debug, Default)]
struct PluggingThread {
    /// Requests to come, or below the plug.
    waiting: u32,
    plugged: bool,
    ours: bool,
}

/// The plugs of all threads.
#[derive(Debug, Default)]
pub struct Plugs {
    threads: HashMap<u32, PluggingThread>,
    /// Those of the device.
    pub counts: PlugCounts,
}

impl Plugs {
    /// An event of the device.
    pub fn block(&mut self, event: &BlockEvent) {
        match event.action {
            Action::Queue if event.sectors > 0 => self.queued(event.pid),
            Action::Split => self.threads.entry(event.pid).or_default().waiting += 1,
            Action::BackMerge | Action::FrontMerge => {
                let thread = self.threads.entry(event.pid).or_default();
                thread.waiting = thread.waiting.saturating_sub(1);
            }
            _ => {}
        }
    }

    fn queued(&mut self, pid: u32) {
        let thread = self.threads.entry(pid).or_default();
        // Below no plug, the one before was issued without.
        thread.waiting = if thread.plugged { thread.waiting + 1 } else { 1 };
        if thread.plugged && !thread.ours {
            thread.ours = true;
            self.counts.plugs += 1;
        }
    }

    /// A plug or an unplug, of any device. True when it is this one's.
    pub fn plug(&mut self, event: &PlugEvent) -> bool {
        let thread = self.threads.entry(event.pid).or_default();
        let is_ours = match event.requests {
            None => {
                (thread.plugged, thread.ours) = (true, thread.waiting > 0);
                self.counts.plugs += u64::from(thread.ours);
                thread.ours
            }
            Some(requests) => {
                // The plug may be from before the trace.
                let ours = thread.ours || (!thread.plugged && thread.waiting > 0);
                (thread.plugged, thread.ours) = (false, false);
                thread.waiting = thread.waiting.saturating_sub(requests);
                if ours {
                    self.counts.unplugs += 1;
                    self.counts.requests += u64::from(requests);
                    *self.counts.by_requests.entry(requests).or_default() += 1;
                }
                ours
            }
        };
        if thread.waiting == 0 && !thread.plugged {
            self.threads.remove(&event.pid);
        }
        is_ours
    }
}

#[cfg(test)]
mod tests {
    use super::super::event::Operation;
    use super::*;

    /// Q, X and M are the device's; P and U4 any device's. The pid is 7.
    fn counts(events: &str) -> (u64, u64, u64) {
        let mut plugs = Plugs::default();
        for word in events.split(' ') {
            let action = match word {
                "Q" => Action::Queue,
                "X" => Action::Split,
                "M" => Action::BackMerge,
                _ => {
                    let requests = word.strip_prefix('U').map(|n| n.parse().expect("a number"));
                    plugs.plug(&PlugEvent { time_ns: 0, cpu: 0, pid: 7, requests });
                    continue;
                }
            };
            plugs.block(&BlockEvent {
                time_ns: 0,
                cpu: 0,
                action,
                op: Operation::parse(b"R"),
                sector: 0,
                sectors: 8,
                split_at: 0,
                pid: 7,
                error: 0,
                comm: [0; 16],
            });
        }
        (plugs.counts.plugs, plugs.counts.unplugs, plugs.counts.requests)
    }

    #[test]
    fn plugs_are_of_the_device_that_was_just_asked() {
        assert_eq!(counts("P U1 P U3"), (0, 0, 0), "another device's");
        assert_eq!(counts("Q P Q M Q U2"), (1, 1, 2));
        assert_eq!(counts("Q P U1 P U1"), (1, 1, 1), "the second one is another device's");
        assert_eq!(counts("Q X P U1 X P U1 P U1"), (3, 3, 3), "each part of a bio has one");
        assert_eq!(counts("P Q U2"), (1, 1, 2), "below the plug of another device");
        assert_eq!(counts("Q M P U1"), (0, 0, 0), "merged: no request was to come");
        assert_eq!(counts("Q Q Q P U1 P U1"), (1, 1, 1), "issued without a plug");
        assert_eq!(counts("Q U1"), (0, 1, 1), "plugged before the trace");
    }
}
