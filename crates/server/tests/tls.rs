//! Encrypted connections, and a certificate that is renewed.

mod support;

use std::io::{BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use snowmelt_server::tls::Tls;
use snowmelt_server::{ServerConfig, ServerLimits};
use support::{Running, config};
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned, crypto::ring};

/// Writes a certificate for localhost and its key.
fn write(dir: &Path) -> CertificateDer<'static> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(dir.join("cert.pem"), made.cert.pem()).unwrap();
    std::fs::write(dir.join("key.pem"), made.signing_key.serialize_pem()).unwrap();
    made.cert.der().clone()
}

fn ask(server: &Running, trusted: &CertificateDer<'static>) -> std::io::Result<(String, Vec<u8>)> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let client = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = "localhost".try_into().unwrap();
    let connection = ClientConnection::new(Arc::new(client), name).unwrap();
    let mut stream = StreamOwned::new(connection, server.connect());
    let body = "<urn:a> <urn:p> 1 .";
    write!(
        stream,
        "POST /graphs HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/turtle\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )?;
    Ok(support::read_bytes(&mut BufReader::new(stream)))
}

#[test]
fn connections_are_encrypted_and_the_certificate_is_renewed() {
    let dir = tempfile::tempdir().unwrap();
    let first = write(dir.path());
    let tls = Arc::new(Tls::of_files(&dir.path().join("cert.pem"), &dir.path().join("key.pem")).unwrap());
    let limits = ServerLimits { head: Duration::from_secs(1), ..config().limits };
    let server = Running::start("", ServerConfig { tls: Some(tls.clone()), limits, ..config() });
    let (head, _) = ask(&server, &first).unwrap();
    assert!(head.starts_with("HTTP/1.1 201"), "{head}");
    assert!(head.contains("location: https://localhost/graphs/"), "{head}");
    // Files that do not belong together change nothing.
    let second = write(dir.path());
    let key = std::fs::read(dir.path().join("key.pem")).unwrap();
    std::fs::write(dir.path().join("key.pem"), "no key").unwrap();
    assert!(tls.reload().unwrap_err().to_string().contains("key.pem"));
    assert!(ask(&server, &first).is_ok() && ask(&server, &second).is_err());
    std::fs::write(dir.path().join("key.pem"), key).unwrap();
    tls.reload().unwrap();
    assert!(ask(&server, &second).is_ok() && ask(&server, &first).is_err());
    // A client without TLS, and one that is silent, are closed.
    for said in ["GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n", ""] {
        let begun = Instant::now();
        let mut stream: TcpStream = server.connect();
        stream.write_all(said.as_bytes()).unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert!(!String::from_utf8_lossy(&answer).contains("HTTP/1.1"), "{answer:?}");
        assert!(begun.elapsed() < Duration::from_secs(15));
    }
}
