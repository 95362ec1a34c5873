//! A SPARQL endpoint that answers every request with no solutions, to measure the limit of a
//! driver: `empty_endpoint [PORT]`, a free port of loopback unless given. It prints its address.
//!
//! A thread for each connection; a request with a body ends after its Content-Length.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

const SOLUTIONS: &str = "<?xml version=\"1.0\"?><sparql xmlns=\"http://www.w3.org/2005/sparql-results#\">\
                         <head/><results></results></sparql>";
const TRIPLES: &str = "<?xml version=\"1.0\"?><rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\">\
                       </rdf:RDF>";

fn main() -> io::Result<()> {
    let port = std::env::args().nth(1).map_or(Ok(0), |port| port.parse()).map_err(io::Error::other)?;
    let listener = TcpListener::bind(("127.0.0.1", port))?;
    println!("http://{}/sparql", listener.local_addr()?);
    for stream in listener.incoming() {
        let stream = stream?;
        thread::spawn(move || serve(stream));
    }
    Ok(())
}

/// Answers requests until the client leaves.
fn serve(stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut stream = BufReader::with_capacity(1 << 16, stream);
    let mut line = String::new();
    loop {
        let (mut length, mut wants_graph, mut closes) = (0, false, false);
        loop {
            line.clear();
            if stream.read_line(&mut line)? == 0 {
                return Ok(());
            }
            let head = line.trim_end();
            if head.is_empty() {
                break;
            } else if let Some(value) = head.strip_prefix("Content-Length: ") {
                length = value.parse().map_err(io::Error::other)?;
            } else if head.starts_with("Accept: ") {
                wants_graph = head.contains("rdf+xml");
            } else if head == "Connection: close" {
                closes = true;
            }
        }
        io::copy(&mut stream.by_ref().take(length), &mut io::sink())?;
        let body = if wants_graph { TRIPLES } else { SOLUTIONS };
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        stream.get_mut().write_all(answer.as_bytes())?;
        if closes {
            return Ok(());
        }
    }
}
