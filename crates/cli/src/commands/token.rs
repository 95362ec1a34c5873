//! `snowmelt token`: who may ask a server, and for what.

use std::io::Write;
use std::path::PathBuf;

use anyhow::anyhow;
use snowmelt_base::output::Stdout;
use snowmelt_base::size;
use snowmelt_base::text_table::TextTable;
use snowmelt_server::tokens::{Rights, Token, TokenFile};
use snowmelt_switches::service;

/// Add, list and remove the tokens of a server (`serve --tokens FILE`). A running server sees the
/// change.
#[derive(clap::Args)]
pub struct TokenArgs {
    #[command(subcommand)]
    command: TokenCommand,
}

#[derive(clap::Subcommand)]
enum TokenCommand {
    /// Make a token and show it: the file has only its hash
    Add {
        /// The file of tokens; made if it is not there
        file: PathBuf,
        /// The user's name: letters, digits, -, _ and .
        name: String,
        /// Rights: read queries; write changes, too; admin also sees meters and running
        /// requests
        #[arg(long, value_name = "RIGHTS", default_value = "read")]
        rights: Rights,
        /// The longest a request of it may run, in seconds
        #[arg(long, value_name = "SECONDS")]
        timeout: Option<u64>,
        /// Most memory that a query of it may hold
        #[arg(long, value_name = "SIZE", value_parser = size::parse)]
        query_memory: Option<u64>,
        /// Most rows of an answer
        #[arg(long, value_name = "N")]
        rows: Option<u64>,
        /// A dataset that it is for (repeatable) [default: all]
        #[arg(long, value_name = "NAME")]
        dataset: Vec<String>,
        /// Graphs that are there for it, by the beginning of their names; default: the default
        /// graph (repeatable) [default: all]
        #[arg(long, value_name = "PREFIX")]
        graph: Vec<String>,
        /// Endpoints that it may ask, by the beginning of their addresses, of those that the server
        /// may (repeatable) [default: all of these]
        #[arg(long, value_name = "PREFIX", value_parser = service::prefix)]
        service: Vec<String>,
    },
    /// Show names, rights and limits
    List {
        /// The file of tokens
        file: PathBuf,
    },
    /// Remove a token: it is refused from then on
    Remove {
        /// The file of tokens
        file: PathBuf,
        /// The user's name
        name: String,
    },
}

/// Runs the command.
pub fn run(args: TokenArgs) -> anyhow::Result<()> {
    match args.command {
        TokenCommand::Add { file, name, rights, timeout, query_memory, rows, dataset, graph, service } => {
            let memory = query_memory.map(|bytes| bytes as usize);
            let some = |list: Vec<String>| (!list.is_empty()).then_some(list);
            let (datasets, graphs, services) = (some(dataset), some(graph), some(service));
            let limits = Token { timeout, memory, rows, ..Token::new(&name, rights) };
            let token = Token { datasets, graphs, services, ..limits };
            let secret = TokenFile::change(&file, |tokens| tokens.add(token))?;
            let shown = writeln!(Stdout, "{secret}").and_then(|()| Stdout.flush());
            // A reader that has gone is no excuse here: there is no other way to the token.
            shown.map_err(|error| {
                let file = file.display();
                anyhow!(
                    "{error}: the token of {name} was made and not shown; `snowmelt token remove {file} {name}`, \
                     then add it again"
                )
            })?;
        }
        TokenCommand::List { file } => write!(Stdout, "{}", table(&TokenFile::read(&file)?))?,
        TokenCommand::Remove { file, name } => {
            TokenFile::change(&file, |tokens| tokens.remove(&name))?;
        }
    }
    Ok(())
}

fn table(tokens: &TokenFile) -> String {
    let mut table = TextTable::new(&[
        "name",
        "rights",
        "timeout s",
        "memory bytes",
        "rows",
        "datasets",
        "graphs",
        "services",
    ]);
    let shown = |limit: Option<u64>| limit.map_or_else(|| "-".to_owned(), |limit| limit.to_string());
    let listed =
        |list: &Option<Vec<String>>| list.as_ref().map_or_else(|| "all".to_owned(), |list| list.join(" "));
    for Token { name, rights, timeout, memory, rows, datasets, graphs, services, .. } in &tokens.list {
        let rights = rights.name().to_owned();
        let memory = memory.map(|bytes| bytes as u64);
        table.row(vec![
            name.clone(),
            rights,
            shown(*timeout),
            shown(memory),
            shown(*rows),
            listed(datasets),
            listed(graphs),
            listed(services),
        ]);
    }
    table.render()
}
