//! The server's end of the socket.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use snowmelt_database::Account;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::perform::{CommandTarget, perform};
use super::{Address, Command, FILE_NAME, MOST_REQUEST_BYTES, Reply, Request, VERSION};
use crate::dataset::Dataset;
use crate::durations::RequestKind;
use crate::service::Admin;

/// Commands at the same time; others are refused.
const MOST_COMMANDS: usize = 8;
/// For a request to come, and for a reply to be read.
const PATIENCE: Duration = Duration::from_secs(30);

/// The listening socket of a database; its file goes when this is dropped.
pub struct ControlSocket {
    listener: UnixListener,
    path: PathBuf,
    /// The inode of its file: by the time it is removed, the name may be that of another server's.
    inode: u64,
}

impl ControlSocket {
    /// Makes the socket in the directory of a database that this process has open for writing.
    pub fn bind(dir: &Path) -> io::Result<Self> {
        let path = dir.join(FILE_NAME);
        // Of a server that was killed: this process is the only one now.
        if std::fs::symlink_metadata(&path).is_ok_and(|m| m.file_type().is_socket()) {
            std::fs::remove_file(&path)?;
        }
        let address = Address::in_dir(dir)?;
        let listener = UnixListener::bind(&address.path)?;
        std::fs::set_permissions(&path, Permissions::from_mode(0o600))?;
        let inode = std::fs::symlink_metadata(&path)?.ino();
        Ok(Self { listener, path, inode })
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        if std::fs::symlink_metadata(&self.path).is_ok_and(|m| m.ino() == self.inode) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Answers commands until `stopping`; then those under way are cancelled and waited for.
pub(crate) async fn answer_until(
    socket: ControlSocket,
    admin: Arc<Admin>,
    dataset: Weak<Dataset>,
    mut stopping: watch::Receiver<bool>,
) {
    let mut clients = JoinSet::new();
    loop {
        let stop = async { stopping.wait_for(|stop| *stop).await.map(|_| ()) };
        tokio::select! {
            accepted = socket.listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let full = clients.len() >= MOST_COMMANDS;
                    // One that is being closed answers no more.
                    let Some(dataset) = dataset.upgrade() else { continue };
                    let target = CommandTarget { admin: Arc::clone(&admin), dataset };
                    clients.spawn(answer(stream, target, full));
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            },
            Some(_) = clients.join_next() => {}
            _ = stop => break,
        }
    }
    drop(socket);
    admin.commands().cancel_all();
    while clients.join_next().await.is_some() {}
}

async fn answer(stream: UnixStream, target: CommandTarget, full: bool) {
    let peer = stream.peer_cred().map(|peer| peer.uid());
    let (read, mut write) = stream.into_split();
    let mut read = BufReader::new(read);
    // Read first: a client that is refused must not find the connection closed while it still
    // writes.
    let asked = request(&mut read).await;
    let command = match (peer, full) {
        (Ok(uid), _) if !is_trusted(uid) => {
            Err(format!("user {uid} may not do this: only the user of the server, and root"))
        }
        (Err(e), _) => Err(format!("the system does not say who asks: {e}")),
        (Ok(_), true) => Err(format!("{MOST_COMMANDS} commands are under way: wait for one to end")),
        (Ok(_), false) => asked,
    };
    match command {
        Ok(command) => run(command, target, read, write).await,
        Err(message) => drop(send(&mut write, &Reply::Failed { message }).await),
    }
}

/// The user of this process, and root.
fn is_trusted(uid: u32) -> bool {
    uid == 0 || uid == rustix::process::geteuid().as_raw()
}

async fn request(read: &mut BufReader<OwnedReadHalf>) -> Result<Command, String> {
    let mut line = String::new();
    let mut limited = read.take(MOST_REQUEST_BYTES as u64);
    match tokio::time::timeout(PATIENCE, limited.read_line(&mut line)).await {
        Ok(Ok(_)) if line.ends_with('\n') => {}
        Ok(Ok(n)) if n >= MOST_REQUEST_BYTES => {
            return Err(format!("the request exceeds {MOST_REQUEST_BYTES} bytes"));
        }
        Ok(Ok(_)) => return Err("the request broke off".into()),
        Ok(Err(e)) => return Err(format!("the request cannot be read: {e}")),
        Err(_) => return Err("the request did not come in time".into()),
    }
    let version = |value: &serde_json::Value| value.get("version").and_then(serde_json::Value::as_u64);
    let value: serde_json::Value =
        serde_json::from_str(&line).map_err(|e| format!("the request is not JSON: {e}"))?;
    match version(&value) {
        Some(v) if v == u64::from(VERSION) => {}
        other => {
            return Err(format!(
                "the server speaks version {VERSION} of its control protocol and the command {other:?}: use the same program"
            ));
        }
    }
    serde_json::from_value::<Request>(value)
        .map(|request| request.command)
        .map_err(|e| format!("no such command: {e}"))
}

/// Runs a command on a thread of its own and sends what it says.
async fn run(
    command: Command,
    target: CommandTarget,
    mut read: BufReader<OwnedReadHalf>,
    mut write: OwnedWriteHalf,
) {
    let account = Account::alone();
    let what = format!("{command:?}");
    let commands = target.admin.commands();
    let entry = commands.enter(RequestKind::Command, &target.dataset.name, &what, &account);
    let (replies, mut told) = mpsc::channel(16);
    let cancel = Arc::clone(&entry.task.cancel);
    tokio::task::spawn_blocking(move || perform(&target, command, &cancel, &replies));
    let mut watching = true;
    let mut byte = [0; 1];
    loop {
        tokio::select! {
            reply = told.recv() => {
                let Some(reply) = reply else { return };
                // After the last word the channel closes; a client that is gone has `entry`
                // cancel the command.
                if !send(&mut write, &reply).await {
                    return;
                }
            }
            // Nothing more is expected. The end of the client's side cancels the command.
            _ = read.read(&mut byte), if watching => {
                entry.task.cancel.store(true, Ordering::Relaxed);
                watching = false;
            }
        }
    }
}

async fn send(write: &mut OwnedWriteHalf, reply: &Reply) -> bool {
    let Ok(mut line) = serde_json::to_vec(reply) else { return false };
    line.push(b'\n');
    matches!(tokio::time::timeout(PATIENCE, write.write_all(&line)).await, Ok(Ok(())))
}
