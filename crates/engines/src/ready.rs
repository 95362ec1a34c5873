//! Whether a server is ready.

use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use crate::adapter::Ready;
use crate::values::Values;

/// How long one look may take.
const LOOK: Duration = Duration::from_secs(5);

/// Looks that are made until a server is ready.
pub struct Probe {
    tcp: Option<String>,
    http: Option<String>,
    command: Vec<String>,
}

impl Probe {
    /// With the values of an engine.
    pub fn new(ready: &Ready, values: &Values) -> Self {
        Self {
            tcp: ready.tcp.as_deref().map(|text| values.fill(text)),
            http: ready.http.as_deref().map(|text| values.fill(text)),
            command: values.fill_all(&ready.command),
        }
    }

    /// Looks once. `succeeds` runs a command.
    pub fn is_ready(&self, succeeds: &dyn Fn(&[String]) -> bool) -> bool {
        self.tcp.as_deref().is_none_or(accepts)
            && self.http.as_deref().is_none_or(|url| status(url).is_some_and(|status| status < 400))
            && (self.command.is_empty() || succeeds(&self.command))
    }

    /// The looks in words.
    pub fn text(&self) -> String {
        let tcp = self.tcp.iter().map(|address| format!("a connection to {address}"));
        let http = self.http.iter().map(|url| format!("GET {url}"));
        let command = (!self.command.is_empty()).then(|| format!("`{}`", self.command.join(" ")));
        tcp.chain(http).chain(command).collect::<Vec<_>>().join(" and ")
    }
}

fn accepts(address: &str) -> bool {
    let socket = address.to_socket_addrs().ok().and_then(|mut sockets| sockets.next());
    socket.is_some_and(|socket| TcpStream::connect_timeout(&socket, LOOK).is_ok())
}

/// The status of the answer to a GET; None without one in time. It is the server's own: no proxy is
/// asked and no redirect followed. The body is not read, and a head has at most 64 KiB.
fn status(url: &str) -> Option<u16> {
    let config = ureq::Agent::config_builder()
        .timeout_global(Some(LOOK))
        .proxy(None)
        .max_redirects(0)
        .http_status_as_error(false)
        .build();
    let answer = ureq::Agent::from(config).get(url).call().ok()?;
    Some(answer.status().as_u16())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;
    use std::process::Command;

    /// The status of a server's only answer, and the first line that it read.
    fn ask_once(answer: &'static str) -> (Option<u16>, String) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/x", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut line = String::new();
            BufReader::new(stream.try_clone().unwrap()).read_line(&mut line).unwrap();
            stream.write_all(answer.as_bytes()).unwrap();
            line
        });
        (status(&url), server.join().unwrap())
    }

    #[test]
    fn the_status_is_read() {
        let (status_of_answer, line) = ask_once("HTTP/1.1 503 No\r\n\r\n");
        assert_eq!((status_of_answer, line.as_str()), (Some(503), "GET /x HTTP/1.1\r\n"));
        assert_eq!(status("https://x"), None);
    }

    #[test]
    fn a_redirect_is_an_answer() {
        let elsewhere = "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n";
        assert_eq!(ask_once(elsewhere).0, Some(302));
    }

    #[test]
    fn no_proxy_of_the_environment_is_asked() {
        let mut again = Command::new(std::env::current_exe().unwrap());
        again.args(["--exact", "ready::tests::the_status_is_read"]);
        for name in ["http_proxy", "HTTP_PROXY", "ALL_PROXY"] {
            again.env(name, "http://127.0.0.1:1");
        }
        let output = again.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("1 passed"), "{text}");
    }
}
