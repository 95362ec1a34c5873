//! LOAD of documents that another machine has.

use std::io::Cursor;
use std::sync::Arc;

use snowmelt_database::OpenOptions;
use snowmelt_graph::GraphDatabase;
use snowmelt_sparql::{
    QueryEngine, QueryOptions, RemoteAnswer, RemoteDocument, RemoteEndpoints, RemoteFault, RemoteQuestion,
    RemoteTotals, ResultFormat, UpdateOptions,
};

/// Has one document for each address.
#[derive(Debug)]
struct Documents {
    moved_to: Option<&'static str>,
    bytes: Vec<u8>,
}

impl RemoteEndpoints for Documents {
    fn select(&self, _: RemoteQuestion) -> Result<Box<dyn RemoteAnswer>, RemoteFault> {
        unreachable!("these tests ask no questions")
    }

    fn document(&self, _: &str, _: Box<dyn Fn() -> bool + Send>) -> Result<RemoteDocument, RemoteFault> {
        let moved_to = self.moved_to.map(str::to_owned);
        Ok(RemoteDocument { media_type: None, moved_to, read: Box::new(Cursor::new(self.bytes.clone())) })
    }

    fn narrowed(&self, _: &[String]) -> Arc<dyn RemoteEndpoints> {
        unreachable!("these tests narrow nothing")
    }

    fn totals(&self) -> Vec<RemoteTotals> {
        Vec::new()
    }
}

/// The quads of a database that has loaded a document, or the error of that.
fn loaded(address: &str, documents: Documents, options: UpdateOptions) -> Result<String, String> {
    let dir = tempfile::tempdir().unwrap();
    let open =
        OpenOptions { memory_bytes: 256 << 20, direct: false, extent_pages: 8, ..OpenOptions::default() };
    let db = GraphDatabase::create(&dir.path().join("db"), &[], &open).unwrap();
    let engine = QueryEngine::new(db);
    let options = UpdateOptions { remote: Some(Arc::new(documents)), ..options };
    engine.update(&format!("LOAD <{address}>"), &options).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    let result = engine.query("SELECT ?s ?o { ?s <urn:p> ?o }", &QueryOptions::default()).unwrap();
    result.write(ResultFormat::Tsv, &mut bytes).unwrap();
    Ok(String::from_utf8(bytes).unwrap().lines().skip(1).collect())
}

/// Format and base are those of the address that has answered at last (RFC 3986, 5.1.3).
#[test]
fn iris_are_relative_to_where_redirects_have_led() {
    let bytes = b"<a> <urn:p> <#b> .";
    for (moved_to, base) in
        [(None, "http://e/old/doc.ttl"), (Some("http://f/new/other.ttl?x"), "http://f/new/other.ttl?x")]
    {
        let folder = base.split("doc").next().unwrap().split("other").next().unwrap();
        let documents = Documents { moved_to, bytes: bytes.to_vec() };
        let quads = loaded("http://e/old/doc.ttl", documents, UpdateOptions::default());
        assert_eq!(quads.unwrap(), format!("<{folder}a>\t<{base}#b>"));
    }
    let xml = Documents { moved_to: Some("http://f/data.ttl"), bytes: bytes.to_vec() };
    let quads = loaded("http://e/data.rdf", xml, UpdateOptions::default()).unwrap();
    assert_eq!(quads, "<http://f/a>\t<http://f/data.ttl#b>", "its format is that of the last name");
}

/// A triple and mebibytes of line ends, as a frame of zstd (RFC 8878, 3.1.1): the window, a block
/// as it is, and blocks of one byte repeated.
fn expanding(mebibytes: usize) -> Vec<u8> {
    const BLOCK: u32 = 128 << 10;
    let block = |kind: u32, len: u32, is_last: bool| {
        (u32::from(is_last) | kind << 1 | len << 3).to_le_bytes()[..3].to_vec()
    };
    let triple = b"<a> <urn:p> <#b> .";
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 0x50];
    frame.extend(block(0, triple.len() as u32, false));
    frame.extend(triple);
    for n in (0..mebibytes * 8).rev() {
        frame.extend(block(1, BLOCK, n == 0));
        frame.push(b'\n');
    }
    frame
}

#[test]
fn a_document_is_bounded_after_decompression() {
    let moved_to = Some("http://f/data.ttl");
    let load = |mebibytes, most_document_bytes| {
        let options = UpdateOptions { most_document_bytes, ..UpdateOptions::default() };
        loaded("http://e/d", Documents { moved_to, bytes: expanding(mebibytes) }, options)
    };
    let quads = "<http://f/a>\t<http://f/data.ttl#b>";
    assert_eq!(load(1, Some(2 << 20)).unwrap(), quads);
    assert_eq!(load(4, None).unwrap(), quads);
    let error = load(4, Some(2 << 20)).unwrap_err();
    assert!(error.contains("more than 2097152 bytes when decompressed"), "{error}");
}
