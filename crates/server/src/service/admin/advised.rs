//! Advice of this server and of its datasets: a look each minute, new lines to standard error,
//! those that stand into the meters.

use std::sync::atomic::Ordering;
use std::sync::{Mutex, Weak};

use serde_json::{Value, json};
use snowmelt_base::tell;
use snowmelt_database::meters::{Sample, Samples, as_json};

use super::Admin;
use crate::advice::{self, Advisor, Signs};
use crate::dataset::Dataset;

impl Admin {
    /// Looks now; returns the lines that are new.
    pub fn look_for_advice(&self) -> Vec<String> {
        let at = self.started.elapsed();
        let look = |advisor: &Mutex<Advisor>, meters: &Value| {
            advisor.lock().expect("no holder panics").look(at, Signs::from_meters(meters))
        };
        let own = json!({
            "turns": self.context.admission.json(),
            "answered": self.answered.load(Ordering::Relaxed),
            "refused": self.refused.load(Ordering::Relaxed),
        });
        let mut told = look(&self.advisor, &own);
        for dataset in self.context.catalog.open_ones() {
            let meters = as_json(&dataset.engine.graph().database().report().samples());
            let of = if dataset.name.is_empty() { String::new() } else { format!("{}: ", dataset.name) };
            told.extend(look(&dataset.advisor, &meters).into_iter().map(|line| format!("{of}{line}")));
        }
        told
    }

    /// The lines that stand for a dataset and for the server, as meters.
    pub fn advice(&self, of: Option<&Dataset>) -> Vec<Sample> {
        let mut out = Samples::default();
        for advisor in of.map(|dataset| &dataset.advisor).into_iter().chain([&self.advisor]) {
            for (topic, line) in advisor.lock().expect("no holder panics").standing() {
                out.labelled("topic", topic, |out| out.level("advice[].text", "text", line.to_owned()));
            }
        }
        out.into_list()
    }
}

/// Looks each minute until the server is gone.
pub async fn advise(admin: Weak<Admin>) {
    loop {
        let admin = Weak::clone(&admin);
        // It looks through tables and takes counters under locks.
        let look = move || admin.upgrade().map(|admin| admin.look_for_advice());
        let Ok(Some(lines)) = tokio::task::spawn_blocking(look).await else { return };
        for line in lines {
            tell!("snowmelt: advice: {line}");
        }
        tokio::time::sleep(advice::EVERY).await;
    }
}
