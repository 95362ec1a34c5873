//! The original driver's result file, digit for digit in its form.
//!
//! `nrthreads` and `actualtotalruntime` are there with several clients only. The results of a
//! query that does not select are bytes, as there. Numbers that the mix leaves out are queries that
//! were not run.

use std::fmt::Write;

use snowmelt_bsbm::QueryKind;

use super::Summary;
use crate::report::QueryReport;

impl Summary {
    /// The result file.
    pub fn xml(&self) -> String {
        let mut text = String::from("<?xml version=\"1.0\"?><bsbm>\n  <querymix>\n");
        for (name, value) in self.mix_elements() {
            writeln!(text, "     <{name}>{value}</{name}>").expect("memory takes all");
        }
        text.push_str("  </querymix>\n  <queries>\n");
        let last = self.queries.iter().map(|query| query.query).max().unwrap_or(0);
        for number in 1..=last {
            writeln!(text, "    <query nr=\"{number}\">").expect("memory takes all");
            let query = self.queries.iter().find(|query| query.query == number);
            for (name, value) in self.query_elements(query) {
                writeln!(text, "      <{name}>{value}</{name}>").expect("memory takes all");
            }
            text.push_str("    </query>\n");
        }
        text + "  </queries>\n</bsbm>\n"
    }

    fn mix_elements(&self) -> Vec<(&'static str, String)> {
        let (setup, mix) = (&self.setup, &self.mix);
        let several = setup.clients > 1;
        let mut elements =
            vec![("scalefactor", setup.products.to_string()), ("warmups", setup.warmup.to_string())];
        elements.extend(several.then(|| ("nrthreads", setup.clients.to_string())));
        elements.extend([
            ("seed", setup.seed.to_string()),
            ("querymixruns", mix.mixes.to_string()),
            ("minquerymixruntime", format!("{:.4}", mix.min)),
            ("maxquerymixruntime", format!("{:.4}", mix.max)),
            ("totalruntime", format!("{:.3}", mix.total)),
        ]);
        elements.extend(several.then(|| ("actualtotalruntime", format!("{:.3}", self.seconds))));
        elements.extend([
            ("qmph", format!("{:.2}", self.qmph)),
            ("cqet", format!("{:.5}", mix.cqet)),
            ("cqetg", format!("{:.5}", mix.cqet_geometric)),
        ]);
        elements
    }

    fn query_elements(&self, query: Option<&QueryReport>) -> Vec<(&'static str, String)> {
        let Some(query) = query else {
            return vec![("executecount", "0".into()), ("aqet", "0.0".into())];
        };
        let (mean, least, most) = match self.kind(query.query) {
            Some(QueryKind::Select) | None => (query.rows, query.min_rows, query.max_rows),
            Some(_) => (query.bytes, query.min_bytes, query.max_bytes),
        };
        vec![
            ("executecount", query.count.to_string()),
            ("aqet", format!("{:.6}", query.aqet)),
            ("aqetg", format!("{:.6}", query.aqet_geometric)),
            ("qps", format!("{:.2}", self.qps(query))),
            ("minqet", format!("{:.8}", query.min)),
            ("maxqet", format!("{:.8}", query.max)),
            ("avgresults", format!("{mean:.2}")),
            ("minresults", least.to_string()),
            ("maxresults", most.to_string()),
            ("timeoutcount", query.timeouts.to_string()),
        ]
    }
}
