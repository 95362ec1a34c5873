//! The smallest program: a database in memory, an update, a query.
//!
//!     cargo run --example hello

fn main() -> snowmelt::Result<()> {
    let db = snowmelt::Database::in_memory()?;
    db.update(
        "INSERT DATA { <urn:ann> <urn:name> 'Ann' ; <urn:knows> <urn:bob> . <urn:bob> <urn:name> 'Bob' }",
    )?;
    for row in db.query("SELECT ?a ?b { ?x <urn:knows> ?y . ?x <urn:name> ?a . ?y <urn:name> ?b }")? {
        let row = row?;
        println!("{} knows {}", row.get::<String>("a")?, row.get::<String>("b")?);
    }
    Ok(())
}
