//! A database inside a program: a directory, prepared queries with parameters, a transaction that
//! is undone, errors that a program acts on, threads that share a handle.
//!
//!     cargo run --example embed [DIRECTORY]

use std::error::Error as StdError;
use std::thread;
use std::time::Duration;

use snowmelt::{Database, Error, NamedNode};

fn main() -> Result<(), Box<dyn StdError>> {
    let temporary = tempfile::tempdir()?;
    let path = std::env::args().nth(1).map_or_else(|| temporary.path().join("shop.db"), Into::into);
    let db = Database::options().memory(256 << 20).open_or_create(&path)?;
    db.update(
        "PREFIX : <https://shop.example/>
         INSERT DATA { :tea :price 4.20 ; :stock 3 . :cup :price 7.50 ; :stock 1 }",
    )?;

    // Parameters are terms, not text: nothing can be injected, and the plan is kept.
    let cheap =
        "PREFIX : <https://shop.example/> SELECT ?what ?price { ?what :price ?price FILTER(?price < ?most) }";
    for most in [5.0, 10.0] {
        let found = db.prepare(cheap).bind("most", most).timeout(Duration::from_secs(1)).query()?;
        println!("below {most}: {} things", found.count());
    }

    // All steps or none.
    let sell = |what: &NamedNode| {
        db.transaction(|tx| {
            let take = "PREFIX : <https://shop.example/>
                DELETE { ?what :stock ?n } INSERT { ?what :stock ?less }
                WHERE { ?what :stock ?n BIND(?n - 1 AS ?less) }";
            tx.prepare(take).bind("what", what.clone()).update()?;
            let is_short = "PREFIX : <https://shop.example/> ASK { ?what :stock ?n FILTER(?n < 0) }";
            match tx.prepare(is_short).bind("what", what.clone()).ask()? {
                true => Err(format!("{what} is sold out").into()),
                false => Ok::<_, Box<dyn StdError>>(()),
            }
        })
    };
    let cup = NamedNode::new("https://shop.example/cup")?;
    println!("first cup: {:?}, second: {:?}", sell(&cup).is_ok(), sell(&cup).map_err(|e| e.to_string()));

    // A handle is shared by threads; each query sees one state.
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| db.query("SELECT * { ?s ?p ?o }").map(Iterator::count));
        }
    });

    match db.query("SELECT ?s { ?s ?p }") {
        Err(Error::Syntax { faults, .. }) => println!("{faults}"),
        other => println!("unexpected: {:?}", other.is_ok()),
    }
    Ok(())
}
