//! A server that answers by hand: what good servers never say.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use parking_lot::Mutex;
use snowmelt_cloud::{CloudOptions, Credentials};

/// A server of canned answers; its threads end with the process.
pub struct Canned {
    at: SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
}

/// Method and path, then headers in lower case.
type Answer = fn(request: &str) -> Option<String>;

impl Canned {
    /// `answer` gives the bytes of an answer, after which the connection ends; `None`: none ever.
    pub fn start(answer: Answer) -> Canned {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let noted = seen.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let noted = noted.clone();
                thread::spawn(move || serve(stream, answer, &noted));
            }
        });
        Canned { at, seen }
    }

    pub fn options(&self) -> CloudOptions {
        CloudOptions {
            credentials: Credentials::Key {
                id: "KEYFORTESTS".into(),
                secret: "secret-of-tests".into(),
                session: Some("token-of-tests".into()),
            },
            endpoint: Some(format!("http://{}", self.at)),
            ..CloudOptions::default()
        }
    }

    /// Requests so far, without bodies.
    pub fn seen(&self) -> Vec<String> {
        self.seen.lock().clone()
    }
}

fn serve(stream: TcpStream, answer: Answer, seen: &Mutex<Vec<String>>) {
    let mut reader = BufReader::new(&stream);
    let (mut request, mut body_bytes) = (String::new(), 0);
    loop {
        let mut line = String::new();
        match reader.read_line(&mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) if line.trim().is_empty() => break,
            Ok(_) => {}
        }
        if let Some(length) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            body_bytes = length.trim().parse().unwrap();
        }
        request.push_str(&line);
    }
    std::io::copy(&mut reader.by_ref().take(body_bytes), &mut std::io::sink()).unwrap();
    seen.lock().push(request.clone());
    match answer(&request) {
        Some(answer) => {
            let _ = (&stream).write_all(answer.as_bytes());
        }
        // until the client goes away
        None => {
            let _ = reader.read(&mut [0]);
            seen.lock().push("gone".to_owned());
        }
    }
}

/// An answer with a status, some headers and a body.
pub fn answer(status: u16, headers: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status} Said\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n{body}")
}

/// A refusal as S3 writes it.
pub fn refusal(status: u16, code: &str) -> String {
    let body = format!("<Error><Code>{code}</Code><Message>Said secret-of-tests.</Message></Error>");
    answer(status, "Content-Type: application/xml\r\n", &body)
}
