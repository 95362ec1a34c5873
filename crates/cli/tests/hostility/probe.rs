//! The query of an innocent client: it must be answered, and rightly, whatever happened
//! before.

use std::time::Duration;

use crate::case::Scale;
use crate::client::{Reply, ask, percent_encode};
use crate::target::Target;

/// Text of a node.
pub fn text(node: u64) -> String {
    format!(
        "the text of node {node}, which is somewhat longer than the sixty-four bytes that a short literal has in it"
    )
}

/// Asks for a node's neighbour and text, and for the number of nodes.
pub fn probe(target: &Target, scale: &Scale, patience: Duration) -> Result<(), String> {
    let node = 42 % scale.nodes;
    let next = (node + 1) % scale.nodes;
    let query = format!(
        "SELECT ?o ?t ?n {{ <urn:n{node}> <urn:next> ?o ; <urn:text> ?t {{ SELECT (COUNT(*) AS ?n) {{ ?a <urn:next> ?b }} }} }}"
    );
    let request = format!(
        "GET /sparql?query={} HTTP/1.1\r\nHost: {}\r\nAccept: text/csv\r\n\r\n",
        percent_encode(&query),
        target.address
    );
    let reply = ask(target.address, patience, true, &|out| out.write_all(request.as_bytes()));
    let expected = format!("o,t,n\r\nurn:n{next},\"{}\",{}\r\n", text(node), scale.nodes);
    match &reply {
        Reply::Answer(answer) if answer.status == 200 && answer.body == expected => Ok(()),
        _ => Err(format!("the next query got {}", reply.tell())),
    }
}
