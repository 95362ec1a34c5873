//! `snowmelt prefix`: the prefixes of IRIs that are kept with a database.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, bail};
use snowmelt_base::output::Stdout;
use snowmelt_switches::open::OpenArgs;

/// List, add and remove the prefixes that are kept with a database.
#[derive(clap::Args)]
pub struct PrefixArgs {
    /// The database directory
    db: PathBuf,
    /// The name of a prefix, without colon, and its IRI: it is added, or gets that IRI. A name
    /// alone shows its IRI; without a name all are listed
    #[arg(num_args = 0..=2, value_names = ["NAME", "IRI"])]
    prefix: Vec<String>,
    /// Remove this prefix (repeatable)
    #[arg(long, value_name = "NAME", conflicts_with = "prefix")]
    remove: Vec<String>,
    #[command(flatten)]
    open: OpenArgs,
}

/// Runs the command.
pub fn run(args: PrefixArgs) -> anyhow::Result<()> {
    match (&args.prefix[..], args.remove.is_empty()) {
        ([], true) => list(&args, None),
        ([name], true) => list(&args, Some(bare(name))),
        ([name, iri], true) => add(&args, bare(name), bare_iri(iri)),
        _ => remove(&args),
    }
}

/// A name as people write it, with its colon or without.
fn bare(name: &str) -> &str {
    name.strip_suffix(':').unwrap_or(name)
}

fn bare_iri(iri: &str) -> &str {
    iri.strip_prefix('<').and_then(|iri| iri.strip_suffix('>')).unwrap_or(iri)
}

fn list(args: &PrefixArgs, name: Option<&str>) -> anyhow::Result<()> {
    let kept = args.open.open_to_read(&args.db)?.namespaces();
    let Some(name) = name else {
        let lines = kept.iter().map(|(name, iri)| format!("{name}: <{iri}>\n"));
        return Ok(Stdout.write_all(lines.collect::<String>().as_bytes())?);
    };
    match kept.get(name) {
        Some(iri) => Ok(writeln!(Stdout, "{name}: <{iri}>")?),
        None => bail!("{} keeps no prefix {name}:", args.db.display()),
    }
}

fn add(args: &PrefixArgs, name: &str, iri: &str) -> anyhow::Result<()> {
    let database = args.open.open(&args.db)?;
    database.change_namespaces(|all| {
        let set = all.set(name, iri);
        set.with_context(|| format!("the prefix {name}: <{iri}> cannot be kept"))
    })
}

fn remove(args: &PrefixArgs) -> anyhow::Result<()> {
    let database = args.open.open(&args.db)?;
    database.change_namespaces(|all| {
        for name in &args.remove {
            if !all.remove(bare(name)) {
                bail!("{} keeps no prefix {}:", args.db.display(), bare(name));
            }
        }
        Ok(())
    })
}
