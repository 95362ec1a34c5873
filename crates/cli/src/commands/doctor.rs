//! `snowmelt doctor`: looks at what makes a database slow or fragile, and says what to change.
//!
//! 1. Facts are collected: of the machine, of each stripe's disk, of the stored files, of a running
//!    server. Facts of the kernel are read below a root, so that tests have a tree of their own.
//! 2. Pure functions judge them: facts in, findings out.
//! 3. Findings are shown, the worst first. One that is a problem makes the exit status 1.
//!
//! Nothing is changed. A small file is written into the database's folder and taken away, to time
//! syncs. A database that a server has open is looked at from outside, and the server is asked.

mod disk;
mod finding;
mod kernel;
mod machine;
mod served;
mod stored;
mod sync_time;
mod trial;
mod visit;

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde_json::json;
use snowmelt_base::{say, size};
use snowmelt_store::StoreConfig;
use snowmelt_store::superblock::{FILE_NAME, SuperBlockFile};

use self::disk::KeptProfile;
use self::finding::{Finding, Level};
use self::kernel::KernelFiles;
use self::visit::Papers;

/// Look at what makes a database slow or fragile, and say what to change.
#[derive(clap::Args)]
pub struct DoctorArgs {
    /// The database directory, or the address of a running server: http://HOST:PORT
    #[arg(value_name = "DB|URL")]
    db: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value_t = DoctorFormat::Text)]
    format: DoctorFormat,
    /// The memory that the database is opened with: half of the machine's or cgroup's memory when
    /// not given
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    memory: Option<u64>,
    /// A file with the token that the server wants, for a URL
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// A file with the certificates, in PEM, that may sign that of an https:// server
    #[arg(long, value_name = "FILE")]
    cacert: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum DoctorFormat {
    Text,
    Json,
}

/// Runs the command.
pub fn run(args: DoctorArgs) -> anyhow::Result<()> {
    let named = args.db.to_string_lossy();
    let is_url = named.contains("://");
    let mut findings = match is_url {
        true => of_server(&named, &args)?,
        false => of_database(&args.db, args.memory)?,
    };
    // Stable: within a level they stay in their order.
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.level));
    show(&args, &findings, is_url);
    match finding::count(&findings, Level::Problem) {
        0 => Ok(()),
        1 => bail!("{named} has a problem"),
        n => bail!("{named} has {n} problems"),
    }
}

fn show(args: &DoctorArgs, findings: &[Finding], is_url: bool) {
    let text = match args.format {
        DoctorFormat::Text => finding::as_text(findings),
        DoctorFormat::Json => {
            let subject = if is_url { "server" } else { "database" };
            let findings: Vec<_> = findings.iter().map(Finding::json).collect();
            format!("{:#}\n", json!({ subject: args.db.to_string_lossy(), "findings": findings }))
        }
    };
    say!("{}", text.trim_end());
}

fn of_server(url: &str, args: &DoctorArgs) -> anyhow::Result<Vec<Finding>> {
    let token = args.token_file.as_ref().map(|path| {
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()));
        text.map(|text| text.trim().to_owned())
    });
    let token = token.transpose()?;
    let papers = Papers { token: token.as_deref(), cacert: args.cacert.as_deref() };
    Ok(served::judge(&served::ask(url, papers)?, &|_| true))
}

fn of_database(dir: &Path, memory: Option<u64>) -> anyhow::Result<Vec<Finding>> {
    // Reading the super-block needs no lock: a server may have the database open.
    if !dir.exists() && dir.to_string_lossy().contains(':') {
        bail!("{} is no folder, and the address of a server begins with http://", dir.display());
    }
    if let Some(one) = one_below(dir) {
        bail!("{} is a folder of databases: name one of them, as {}", dir.display(), one.display());
    }
    let block = SuperBlockFile::peek(dir).with_context(|| format!("cannot look at {}", dir.display()))?;
    let stripes: Vec<PathBuf> = block.stripes.iter().map(|stripe| dir.join(stripe)).collect();
    let server = served::of_database(dir);
    let kernel = KernelFiles::real();
    let holder = server.is_some().then(|| stored::holder(dir)).flatten();
    let trial = trial::open_ring(&stripes[0]);
    let machine = machine::collect(&kernel, holder.as_deref().unwrap_or("self"), trial);
    let of_server = server.as_ref().and_then(|server| served::budget(server.as_ref().ok()?));
    let budget = of_server.or(memory).unwrap_or_else(|| StoreConfig::default().memory_bytes);
    let stored = stored::collect(dir, &stripes);
    let disks: Vec<_> = (0..stripes.len()).map(|n| disk::collect(&kernel, dir, n, &stripes[n])).collect();
    let mut findings = machine::judge(&machine, budget, server.is_some());
    findings.extend(stored::judge(&stored, budget));
    findings.push(stored::privacy(dir, &stripes));
    let db = dir.display().to_string();
    findings.extend(disks.iter().flat_map(|facts| disk::judge(facts, &db)));
    let is_in_memory = disks.iter().any(disk::DiskFacts::is_in_memory);
    findings.extend(sync_time::judge(&sync_time::measure(dir), is_in_memory));
    match server {
        None => {}
        // It knows no times where there is no profile, which was said.
        Some(Ok(facts)) => {
            let is_probed = |n: usize| disks.get(n).is_none_or(|disk| disk.profile != KeptProfile::Absent);
            findings.extend(served::judge(&facts, &is_probed));
        }
        Some(Err(why)) => findings.push(served::silent(why)),
    }
    Ok(findings)
}

/// A database in a folder that is none itself.
fn one_below(dir: &Path) -> Option<PathBuf> {
    let is_database = |path: &Path| path.join(FILE_NAME).exists();
    let below = std::fs::read_dir(dir).ok().filter(|_| !is_database(dir))?;
    below.flatten().map(|entry| entry.path()).find(|path| is_database(path))
}
