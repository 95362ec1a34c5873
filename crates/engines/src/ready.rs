//! Whether a server is ready.

use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use snowmelt_lab::http;

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
            && self
                .http
                .as_deref()
                .is_none_or(|url| http::get(url, "*/*", LOOK).is_ok_and(|answer| answer.status() < 400))
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
