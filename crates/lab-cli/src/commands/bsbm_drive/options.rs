//! The switches of `bsbm drive`, and the names they have in the original driver.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use snowmelt_base::size;
use snowmelt_bsbm::{DEFAULT_SEED, UseCase};

use crate::warm_up::WarmUpArgs;

/// Drive any SPARQL endpoint, or a database, with the Berlin SPARQL Benchmark.
#[derive(Debug, clap::Args)]
pub struct BsbmDriveArgs {
    /// A SPARQL endpoint, http://HOST:PORT/PATH, or a database directory
    #[arg(value_name = "URL|DB")]
    pub(super) target: String,
    /// The queries: explore, bi or explore-and-update, or the path of the original's use case
    /// file, which is known by its folder (-ucf)
    #[arg(long, visible_alias = "ucf", default_value = "explore", value_parser = use_case)]
    pub(super) use_case: UseCase,
    /// Clients: each has one query at a time (-mt)
    #[arg(long, visible_alias = "mt", value_name = "C", default_value = "1")]
    pub(super) clients: NonZeroUsize,
    /// Mixes to measure (-runs)
    #[arg(long, visible_alias = "runs", value_name = "M", default_value = "500")]
    pub(super) mixes: u64,
    /// Times that the mixes are measured, one after the other: from three on, `compare` can judge
    /// two runs by them. The same queries each time; with updates, those that follow
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) repeats: u32,
    /// Mixes before that, not measured (-w)
    #[arg(long, visible_alias = "w", value_name = "W", default_value = "50")]
    pub(super) warmup: u64,
    /// Seed of the queries' parameters (-seed)
    #[arg(long, value_name = "S", default_value_t = DEFAULT_SEED)]
    pub(super) seed: i64,
    /// Time limit of a query in milliseconds, 0 for none (-t)
    #[arg(long, visible_alias = "t", value_name = "MS", default_value = "0")]
    pub(super) timeout_ms: u64,
    /// Products in the data set [default: counted by a query]
    #[arg(long, value_name = "N")]
    pub(super) products: Option<u32>,
    /// Open loop: so many queries are due in a second, and times count from then
    #[arg(long, value_name = "QUERIES/S", value_parser = rate)]
    pub(super) rate: Option<f64>,
    /// Open a connection for each query, as the original driver does
    #[arg(long)]
    pub(super) connection_per_query: bool,
    /// Count broken answers instead of ending at the first one
    #[arg(long)]
    pub(super) keep_going: bool,
    /// The update set that `bsbm generate --update-output` wrote, for explore-and-update
    /// (-udataset)
    #[arg(long, visible_alias = "udataset", value_name = "FILE")]
    pub(super) updates: Option<PathBuf>,
    /// Where updates are sent, if not to the same address (-u)
    #[arg(long, visible_alias = "u", value_name = "URL")]
    pub(super) update_url: Option<String>,
    /// Name of the form field that holds an update [default: update] (-uqp)
    #[arg(long, visible_alias = "uqp", value_name = "NAME")]
    pub(super) update_field: Option<String>,
    /// The default graph that queries ask for (-dg)
    #[arg(long, visible_alias = "dg", value_name = "IRI")]
    pub(super) default_graph: Option<String>,
    /// Compare the answers with those of a stored run, or ask another endpoint the same queries
    #[arg(long, value_name = "RUN|URL")]
    pub(super) verify: Option<String>,
    /// Answers that the run folder keeps as they came, for a later --verify to show what differs:
    /// the first of each query text, up to so many bytes; 0 keeps none
    #[arg(long, value_name = "SIZE", default_value = "16MiB", value_parser = size_or_none)]
    pub(super) keep_answers: u64,
    /// A published rate: the run's is told as its multiple, unless the driver's own cost is more
    /// than 10 % of a query's time
    #[arg(long, value_name = "QMPH", value_parser = rate)]
    pub(super) published: Option<f64>,
    /// Memory of a database in this process [default: half of the machine's]
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    pub(super) memory: Option<u64>,
    /// Printed result; the run folder has all of them
    #[arg(long, default_value = "table")]
    pub(super) format: Output,
    /// Another file for the result as XML (-o)
    #[arg(long, visible_alias = "o", value_name = "FILE")]
    pub(super) xml: Option<PathBuf>,
    /// Measure how the target warms, from now on: it must be cold. The warm-up ends when it is warm
    /// by the rules below, not after --warmup mixes. Counting products would warm it
    #[arg(long, requires = "products", conflicts_with_all = ["rate", "warmup", "verify", "repeats"], help_heading = "Warming")]
    pub(super) warm_up: bool,
    /// With --warm-up: the server's process [default: the one on this machine that listens on the
    /// port of the address]
    #[arg(long, value_name = "PID", requires = "warm_up", help_heading = "Warming")]
    pub(super) server_pid: Option<u32>,
    /// Rules of the warm-up
    #[command(flatten)]
    pub(super) warming: WarmUpArgs,
    /// Run folder, new or empty
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Output {
    Table,
    Json,
    Xml,
}

/// Options of the original driver, which have one dash.
const ORIGINAL: [&str; 11] = ["runs", "w", "mt", "seed", "t", "ucf", "dg", "u", "udataset", "uqp", "o"];

/// The original driver's options of `bsbm drive` with the two dashes of all others.
pub fn long_names(mut args: Vec<OsString>) -> Vec<OsString> {
    let is_ours = args.len() > 3 && args[1] == "bsbm" && args[2] == "drive";
    for arg in args.iter_mut().skip(3).filter(|_| is_ours) {
        let name = arg.to_str().and_then(|text| text.strip_prefix('-'));
        if let Some(name) = name.filter(|name| ORIGINAL.contains(name)) {
            *arg = format!("--{name}").into();
        }
    }
    args
}

/// A use case by its name, or by the folder of the original's file.
fn use_case(text: &str) -> Result<UseCase, String> {
    let folder = Path::new(text).parent().and_then(Path::file_name).and_then(|name| name.to_str());
    let name = match folder {
        Some("businessIntelligence") => "bi",
        Some("exploreAndUpdate") => "explore-and-update",
        Some(folder) => folder,
        None => text,
    };
    name.parse().map_err(|error: snowmelt_bsbm::Error| error.to_string())
}

fn size_or_none(text: &str) -> Result<u64, String> {
    if text == "0" { Ok(0) } else { size::parse(text) }
}

fn rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if rate.is_finite() && rate > 0.0 => Ok(rate),
        _ => Err("use a number above 0".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Alone {
        #[command(flatten)]
        args: BsbmDriveArgs,
    }

    fn parse(line: &str) -> Result<BsbmDriveArgs, String> {
        let words = ["snowmelt-lab", "bsbm", "drive"].into_iter().chain(line.split_whitespace());
        let words = long_names(words.map(OsString::from).collect());
        Alone::try_parse_from(&words[2..]).map(|alone| alone.args).map_err(|error| error.to_string())
    }

    #[test]
    fn the_original_s_options_and_ours_are_the_same() {
        let shared = "http://h/sparql -seed 7";
        let original = "-runs 9 -w 3 -mt 4 -t 500 -ucf usecases/exploreAndUpdate/sparql.txt -dg urn:g \
                        -u http://h/update -udataset u.nt -uqp request -o r.xml";
        let ours = "--mixes 9 --warmup 3 --clients 4 --timeout-ms 500 --use-case explore-and-update \
                    --default-graph urn:g --update-url http://h/update --updates u.nt \
                    --update-field request --xml r.xml";
        let [original, ours] = [original, ours].map(|line| parse(&format!("{shared} {line}")).unwrap());
        assert_eq!(format!("{original:?}"), format!("{ours:?}"));
        let BsbmDriveArgs { mixes, warmup, clients, seed, timeout_ms, .. } = original;
        assert_eq!((mixes, warmup, clients.get(), seed, timeout_ms), (9, 3, 4, 7, 500));
    }

    #[test]
    fn defaults_are_the_original_s() {
        let args = parse("db").unwrap();
        assert_eq!((args.mixes, args.warmup, args.seed, args.timeout_ms), (500, 50, 808_080, 0));
        assert_eq!((args.use_case, args.clients.get()), (UseCase::Explore, 1));
    }

    #[test]
    fn use_cases_are_known_by_the_original_s_folders() {
        for (text, expected) in [
            ("bi", UseCase::BusinessIntelligence),
            ("usecases/explore/sparql.txt", UseCase::Explore),
            ("/b/usecases/businessIntelligence/sparql.txt", UseCase::BusinessIntelligence),
        ] {
            assert_eq!(use_case(text), Ok(expected));
        }
        assert!(use_case("usecases/other/sparql.txt").is_err());
    }

    #[test]
    fn senseless_values_are_refused() {
        for line in ["", "db --rate 0", "db --rate inf", "db -mt 0", "db -runs x", "db --use-case tpch"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn other_commands_keep_their_dashes() {
        let words: Vec<OsString> = ["snowmelt-lab", "bsbm", "generate", "-o", "-"].map(OsString::from).into();
        assert_eq!(long_names(words.clone()), words);
    }
}
