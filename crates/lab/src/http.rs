//! GET of a server that is measured, by ureq.
//!
//! Nothing but the server itself is asked: no proxy of the environment, no redirect. An answer has
//! a time limit for all of it, and a limit of its bytes.

use std::time::Duration;

/// Most bytes of a body; the head has at most 64 KiB.
const MOST_BYTES: u64 = 16 << 20;

/// An answer, its body not read yet.
pub struct HttpAnswer(ureq::http::Response<ureq::Body>);

/// Asks `http://…` for a document of the media type `accept`.
///
/// # Errors
/// The address is malformed, or there is no head of an answer within `patience`. Any status is an
/// answer.
pub fn get(url: &str, accept: &str, patience: Duration) -> Result<HttpAnswer, ureq::Error> {
    let config = ureq::Agent::config_builder()
        .timeout_global(Some(patience))
        .proxy(None)
        .max_redirects(0)
        .http_status_as_error(false)
        .build();
    ureq::Agent::from(config).get(url).header("Accept", accept).call().map(HttpAnswer)
}

impl HttpAnswer {
    /// Its status.
    pub fn status(&self) -> u16 {
        self.0.status().as_u16()
    }

    /// Its body.
    ///
    /// # Errors
    /// It is cut, late, longer than 16 MiB, or no text in UTF-8.
    pub fn text(mut self) -> Result<String, ureq::Error> {
        self.0.body_mut().with_config().limit(MOST_BYTES).read_to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;
    use std::process::Command;

    /// Serves one answer, and returns the server's address and the first line that it reads.
    fn serve(answer: Vec<u8>) -> (String, std::thread::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/x", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut line = String::new();
            BufReader::new(stream.try_clone().unwrap()).read_line(&mut line).unwrap();
            // The client may have seen enough.
            let _ = stream.write_all(&answer);
            line
        });
        (url, server)
    }

    fn ask(url: &str) -> Result<HttpAnswer, ureq::Error> {
        get(url, "*/*", Duration::from_secs(20))
    }

    #[test]
    fn status_and_body_are_read() {
        let (url, server) = serve(b"HTTP/1.1 503 No\r\n\r\nlater".to_vec());
        let answer = ask(&url).unwrap();
        assert_eq!(answer.status(), 503);
        assert_eq!(answer.text().unwrap(), "later");
        assert_eq!(server.join().unwrap(), "GET /x HTTP/1.1\r\n");
        assert!(ask("https://x").is_err());
    }

    #[test]
    fn a_redirect_is_an_answer() {
        let elsewhere = b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n";
        let (url, server) = serve(elsewhere.to_vec());
        assert_eq!(ask(&url).unwrap().status(), 302);
        server.join().unwrap();
    }

    #[test]
    fn no_proxy_of_the_environment_is_asked() {
        let mut again = Command::new(std::env::current_exe().unwrap());
        again.args(["--exact", "http::tests::status_and_body_are_read"]);
        for name in ["http_proxy", "HTTP_PROXY", "ALL_PROXY"] {
            again.env(name, "http://127.0.0.1:1");
        }
        let output = again.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("1 passed"), "{text}");
    }

    #[test]
    fn an_endless_body_ends_at_the_limit() {
        let mut answer = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
        answer.resize(answer.len() + MOST_BYTES as usize + 1, b'x');
        let (url, server) = serve(answer);
        assert!(matches!(ask(&url).unwrap().text(), Err(ureq::Error::BodyExceedsLimit(_))));
        server.join().unwrap();
    }
}
