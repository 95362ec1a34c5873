//! Requests to a server over HTTP, all within one time.
//!
//! Only the given address is asked: the token goes neither to a proxy of the environment nor to the
//! target of a redirect.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use snowmelt_base::printable;
use tokio_rustls::rustls::crypto::ring;
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};

/// Time of all answers together.
const PATIENCE: Duration = Duration::from_secs(10);
/// Longest answer, in bytes: `/stats` of a server with many trees is some hundred KiB.
const MOST_BYTES: u64 = 64 << 20;

/// Secrets and certificates for a visit.
#[derive(Clone, Copy, Debug, Default)]
pub struct Papers<'a> {
    /// The token.
    pub token: Option<&'a str>,
    /// A file with the certificates that may sign the server's.
    pub cacert: Option<&'a Path>,
}

/// A server that is asked.
pub struct Visit {
    agent: ureq::Agent,
    server: String,
    token: Option<String>,
    patience: Duration,
    begun: Instant,
}

/// Status and body of an answer.
pub struct Answer {
    /// As HTTP numbers it.
    pub status: u16,
    /// The whole body.
    pub body: Vec<u8>,
}

impl Visit {
    /// A visit to a server, by its scheme and authority.
    ///
    /// # Errors
    /// The certificates cannot be read, or are missing for https.
    pub fn new(server: &str, papers: Papers<'_>) -> anyhow::Result<Self> {
        Self::within(PATIENCE, server, papers)
    }

    fn within(patience: Duration, server: &str, papers: Papers<'_>) -> anyhow::Result<Self> {
        let tls = match papers.cacert {
            Some(file) => TlsConfig::builder()
                .root_certs(roots(file)?)
                .unversioned_rustls_crypto_provider(Arc::new(ring::default_provider()))
                .build(),
            None if server.starts_with("https:") => bail!(
                "{server}: name the certificate that signs the server's, or its own when it signs itself: \
                 --cacert FILE"
            ),
            None => TlsConfig::default(),
        };
        let settings = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .proxy(None)
            .max_redirects(0)
            .tls_config(tls);
        Ok(Self {
            agent: settings.build().into(),
            server: server.to_owned(),
            token: papers.token.map(str::to_owned),
            patience,
            begun: Instant::now(),
        })
    }

    /// The answer to a GET of a path of the server.
    ///
    /// # Errors
    /// There is none in time, or it points elsewhere.
    pub fn get(&self, path: &str) -> anyhow::Result<Answer> {
        let url = format!("{}{path}", self.server);
        let left = self.patience.saturating_sub(self.begun.elapsed());
        if left.is_zero() {
            bail!(self.late());
        }
        let failed = |error: ureq::Error| match error {
            ureq::Error::Timeout(_) => anyhow::anyhow!(self.late()),
            error => anyhow::Error::new(error).context(url.clone()),
        };
        let mut request = self.agent.get(&url).config().timeout_global(Some(left)).build();
        if let Some(token) = &self.token {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        let mut answer = request.call().map_err(failed)?;
        let status = answer.status().as_u16();
        if (300..400).contains(&status) {
            let location = answer.headers().get("location").map(|of| String::from_utf8_lossy(of.as_bytes()));
            let place = location.as_deref().map(printable::line).unwrap_or_default();
            bail!("{url} points to {place:?}: give the address of the server itself");
        }
        let body = answer.body_mut().with_config().limit(MOST_BYTES).read_to_vec().map_err(failed)?;
        Ok(Answer { status, body })
    }

    fn late(&self) -> String {
        format!("{} has not answered within {} s", self.server, self.patience.as_secs_f64())
    }
}

/// The certificates in a file.
fn roots(file: &Path) -> anyhow::Result<RootCerts> {
    let failed = || format!("cannot read certificates from {}", file.display());
    let text = std::fs::read(file).with_context(failed)?;
    let mut certificates = Vec::new();
    for item in parse_pem(&text) {
        if let PemItem::Certificate(certificate) = item.with_context(failed)? {
            certificates.push(certificate);
        }
    }
    if certificates.is_empty() {
        bail!("{} has no certificate in PEM", file.display());
    }
    Ok(RootCerts::new_with_certs(&certificates))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;

    /// A server that sends `answer` byte by byte, whatever it is asked, and keeps the connection.
    fn server(answer: &'static str, pause: Duration) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("it has one");
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                std::thread::spawn(move || {
                    let mut stream = stream;
                    let _ = stream.read(&mut [0; 4096]);
                    answer.bytes().for_each(|byte| {
                        std::thread::sleep(pause);
                        let _ = stream.write_all(&[byte]);
                    });
                    std::thread::sleep(Duration::from_secs(60));
                });
            }
        });
        format!("http://{address}")
    }

    #[test]
    fn a_slow_server_costs_one_time_for_all_requests() {
        let server = server("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", Duration::from_millis(5));
        let patience = Duration::from_millis(700);
        let visit = Visit::within(patience, &server, Papers::default()).expect("it begins");
        let begun = Instant::now();
        for path in ["/stats", "/ready", "/metrics"] {
            let error = visit.get(path).err().expect("the body never ends");
            assert_eq!(error.to_string(), format!("{server} has not answered within 0.7 s"));
        }
        assert!(begun.elapsed() < patience * 3, "{:?}", begun.elapsed());
    }

    #[test]
    fn where_an_answer_points_is_told_and_not_asked() {
        let answer =
            "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\u{9b}2J\r\nContent-Length: 0\r\n\r\n";
        let visit = Visit::new(&server(answer, Duration::ZERO), Papers::default()).expect("it begins");
        let error = visit.get("/stats").err().expect("it points elsewhere").to_string();
        assert!(error.contains("points to") && error.contains("127.0.0.1:1/"), "{error}");
        assert!(!error.contains(char::is_control), "{error}");
    }

    #[test]
    fn https_needs_a_certificate() {
        let error = Visit::new("https://localhost", Papers::default()).err().expect("there is none");
        assert!(error.to_string().contains("--cacert"), "{error}");
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join("empty.pem");
        std::fs::write(&file, "nothing").expect("it is written");
        let papers = Papers { cacert: Some(&file), ..Papers::default() };
        assert!(
            Visit::new("https://localhost", papers).err().expect("none").to_string().contains("empty.pem")
        );
    }
}
