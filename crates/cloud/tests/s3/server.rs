//! An S3 server in this process: s3s-fs, which keeps objects in a folder. It checks signatures.

use std::net::SocketAddr;
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use s3s::auth::SimpleAuth;
use s3s::service::{S3Service, S3ServiceBuilder};
use s3s_fs::FileSystem;
use snowmelt_cloud::{CloudOptions, Credentials};
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Mutex;

/// The name of the key that the server knows.
pub const KEY: &str = "KEYFORTESTS";
/// Its secret.
pub const SECRET: &str = "secret-of-tests";

/// A server with bucket `data`; dropped, it ends.
pub struct Server {
    at: SocketAddr,
    folder: TempDir,
    _runtime: Runtime,
}

impl Server {
    pub fn start() -> Server {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("data")).unwrap();
        let mut builder = S3ServiceBuilder::new(FileSystem::new(folder.path()).unwrap());
        builder.set_auth(SimpleAuth::from_single(KEY, SECRET));
        let service = builder.build();
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let at = listener.local_addr().unwrap();
        runtime.spawn(async move {
            // The server looks at a condition and then writes: puts are let in one by one.
            let turn = Arc::new(Mutex::new(()));
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, service.clone(), turn.clone()));
            }
        });
        Server { at, folder, _runtime: runtime }
    }

    /// Its address as an endpoint.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.at)
    }

    /// Options of its key.
    pub fn options(&self) -> CloudOptions {
        CloudOptions {
            credentials: Credentials::Key { id: KEY.into(), secret: SECRET.into(), session: None },
            endpoint: Some(self.endpoint()),
            ..CloudOptions::default()
        }
    }

    /// Where it keeps bucket `data`.
    pub fn bucket(&self) -> std::path::PathBuf {
        self.folder.path().join("data")
    }
}

async fn serve(stream: TcpStream, service: S3Service, turn: Arc<Mutex<()>>) {
    let answer = move |request: Request<Incoming>| {
        let (service, turn) = (service.clone(), turn.clone());
        async move {
            let _turn = match *request.method() == Method::PUT {
                true => Some(turn.lock().await),
                false => None,
            };
            hyper::service::Service::call(&service, request).await
        }
    };
    let connection = hyper::server::conn::http1::Builder::new();
    // A client that goes away is no failure of the server.
    let _ = connection.serve_connection(TokioIo::new(stream), service_fn(answer)).await;
}
