//! Lists the places of the grammars, or writes the document of one: what a failed test names.
//!
//!     cargo run -p snowmelt-grammar --example documents                     # all languages
//!     cargo run -p snowmelt-grammar --example documents -- query            # places of one
//!     cargo run -p snowmelt-grammar --example documents -- query "many DescribeQuery: e:p" 2000

#![forbid(unsafe_code)]

use std::process::ExitCode;

use snowmelt_grammar::languages;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some(wanted) = args.first() else {
        languages()
            .iter()
            .for_each(|language| println!("{}: {} places", language.name, language.grammar.sites().len()));
        return ExitCode::SUCCESS;
    };
    let Some(language) = languages().into_iter().find(|language| language.name == wanted) else {
        eprintln!("there is no language {wanted}");
        return ExitCode::FAILURE;
    };
    let sites = language.grammar.sites();
    let (Some(name), n) = (args.get(1), args.get(2).and_then(|n| n.parse().ok()).unwrap_or(1)) else {
        sites.iter().for_each(|site| println!("{}", site.name()));
        return ExitCode::SUCCESS;
    };
    match sites.iter().find(|site| site.name() == name) {
        Some(site) => println!("{}", site.document(n)),
        None => {
            eprintln!("{wanted} has no place {name}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
