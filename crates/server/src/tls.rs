//! TLS: a certificate and its key from files, which may be renewed while the server runs.

use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, RwLock};
use std::task::{Context, Poll};
use std::{fmt, io};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, crypto::ring};
use tokio_rustls::server::TlsStream;

/// A certificate with its key, as the files have them.
pub struct Tls {
    cert: PathBuf,
    key: PathBuf,
    acceptor: RwLock<TlsAcceptor>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("cert", &self.cert).field("key", &self.key).finish_non_exhaustive()
    }
}

/// Why files are no certificate with its key.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {message}")]
pub struct TlsError {
    path: PathBuf,
    message: String,
}

impl Tls {
    /// The certificate (PEM, with those that sign it) and its private key (PEM).
    ///
    /// # Errors
    /// A file cannot be read, or they do not belong together.
    pub fn of_files(cert: &Path, key: &Path) -> Result<Self, TlsError> {
        let acceptor = RwLock::new(acceptor(cert, key)?);
        Ok(Self { cert: cert.to_owned(), key: key.to_owned(), acceptor })
    }

    /// Reads the files again: new connections have what is in them now.
    ///
    /// # Errors
    /// As of [`Tls::of_files`]; all is as it was then.
    pub fn reload(&self) -> Result<(), TlsError> {
        let new = acceptor(&self.cert, &self.key)?;
        *self.acceptor.write().expect("no holder panics") = new;
        Ok(())
    }

    /// A connection on which the client has begun with TLS.
    pub(crate) async fn accept(&self, stream: TcpStream) -> io::Result<Stream> {
        let acceptor = self.acceptor.read().expect("no holder panics").clone();
        Ok(Stream::Tls(Box::new(acceptor.accept(stream).await?)))
    }
}

fn acceptor(cert: &Path, key: &Path) -> Result<TlsAcceptor, TlsError> {
    let failed = |path: &Path, error: &dyn fmt::Display| TlsError {
        path: path.to_owned(),
        message: error.to_string(),
    };
    let chain: Result<Vec<_>, _> = CertificateDer::pem_file_iter(cert).and_then(Iterator::collect);
    let chain = chain.map_err(|e| failed(cert, &e))?;
    if chain.is_empty() {
        return Err(failed(cert, &"there is no certificate in it (PEM)"));
    }
    let secret = PrivateKeyDer::from_pem_file(key).map_err(|e| failed(key, &e))?;
    let config = rustls::ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|e| failed(cert, &e))?
        .with_no_client_auth();
    let mut config = config.with_single_cert(chain, secret).map_err(|e| failed(cert, &e))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// The bytes of a connection.
pub(crate) enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Stream {
    /// Closes it so that the client sees a broken connection: with TLS the word of the end is
    /// missing.
    pub(crate) fn reset(self) {
        if let Stream::Plain(stream) = self {
            // Where it fails the connection is broken already.
            let _ = stream.set_zero_linger();
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Tls(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, bytes),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(stream) => stream.is_write_vectored(),
            Self::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
