//! Rights of users: a file of tokens, each with a name, rights and limits.
//!
//! 1. A token is 32 random bytes; the file has its SHA-256, not itself. None can be guessed, so a
//!    slow hash would protect nothing.
//! 2. A request names it as `Authorization: Bearer TOKEN`, or as the password of Basic, with the
//!    token's name as the user.
//! 3. The file is read again when it has changed: `snowmelt token` works without a restart. A file
//!    that cannot be read leaves the tokens as they were.
//!
//! The file is TOML with a table for each token:
//!
//! ```toml
//! [[token]]
//! name = "reports"
//! sha256 = "…"
//! rights = "read"       # read, write or admin: each includes the one before
//! timeout = 60          # seconds, of each request
//! memory = 1073741824   # bytes, of each query
//! rows = 1000000        # of each answer
//! datasets = ["wiki"]   # of a server of several; all when not given
//! graphs = ["default", "http://example.org/public/"]
//!                       # prefixes of the names of graphs; all when not given
//! services = ["https://query.example.org/"]
//!                       # of endpoints that its queries may ask, of those that the server
//!                       # may; all when not given
//! ```

use std::io::{self, Write};
use std::ops::Deref;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use hyper::HeaderMap;
use hyper::header;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use snowmelt_base::tell;
use snowmelt_graph::GraphView;

/// How often the file is looked at.
const LOOK: Duration = Duration::from_secs(1);
/// Begins each token, so that one that leaked is recognised.
const PREFIX: &str = "snowmelt_";

/// Rights of a token; each includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rights {
    /// queries
    Read,
    /// and changes
    Write,
    /// and what is for administrators: meters, running requests
    Admin,
}

impl Rights {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Admin => "admin",
        }
    }
}

impl std::str::FromStr for Rights {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "read" => Ok(Self::Read),
            "write" => Ok(Self::Write),
            "admin" => Ok(Self::Admin),
            _ => Err(format!("no rights are called {name:?}: there are read, write and admin")),
        }
    }
}

/// A token, as the file has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Token {
    /// the user's name
    pub name: String,
    /// of the token, in hexadecimal digits
    pub sha256: String,
    /// what it may do
    pub rights: Rights,
    /// seconds that a request of it may take
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u64>,
    /// bytes that a query of it may hold
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<usize>,
    /// rows of an answer
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<u64>,
    /// datasets that it is for; none: all
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub datasets: Option<Vec<String>>,
    /// prefixes of graphs that are there for it, `default` for the default graph; none: all
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graphs: Option<Vec<String>>,
    /// prefixes of endpoints that it may ask, of those that the server may; none: all of them
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub services: Option<Vec<String>>,
}

impl Token {
    /// A token without limits.
    pub fn new(name: &str, rights: Rights) -> Self {
        Self {
            name: name.to_owned(),
            sha256: String::new(),
            rights,
            timeout: None,
            memory: None,
            rows: None,
            datasets: None,
            graphs: None,
            services: None,
        }
    }

    /// Why it cannot be.
    fn fault(&self) -> Option<String> {
        let name = &self.name;
        if !is_name(name) {
            return Some(format!("{name:?} is no name: use letters, digits, '-', '_' and '.'"));
        }
        if self.rights == Rights::Admin && self.graphs.is_some() {
            // Meters, plans and running requests are of all graphs.
            return Some(format!(
                "{name} cannot be admin of some graphs: leave out graphs, or give it write"
            ));
        }
        None
    }
}

/// Faults of a file of tokens.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// it cannot be read or written
    #[error("{path}: {source}")]
    File {
        /// the file
        path: PathBuf,
        /// the system's answer
        source: io::Error,
    },
    /// it is not what it should be
    #[error("{path}: {message}")]
    Content {
        /// the file
        path: PathBuf,
        /// why
        message: String,
    },
    /// a server was to ask it
    #[error("{path}: there is no such file; make it with `snowmelt token add {path} NAME`")]
    Missing {
        /// the file
        path: PathBuf,
    },
    /// a name that is there, or is not
    #[error("{0}")]
    Name(String),
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TokenTables {
    #[serde(default)]
    token: Vec<Token>,
}

/// The tokens of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TokenFile {
    path: PathBuf,
    /// in the order of the file
    pub list: Vec<Token>,
}

impl TokenFile {
    /// Reads a file; one that is not there has no tokens.
    ///
    /// # Errors
    /// It cannot be read, or is not a file of tokens.
    pub fn read(path: &Path) -> Result<Self, TokenError> {
        let content = |message: String| TokenError::Content { path: path.to_owned(), message };
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(source) => return Err(TokenError::File { path: path.to_owned(), source }),
        };
        let TokenTables { token: list } = toml::from_str(&text).map_err(|e| content(e.to_string()))?;
        for (at, token) in list.iter().enumerate() {
            if let Some(fault) = token.fault() {
                return Err(content(fault));
            }
            if list[..at].iter().any(|other| other.name == token.name) {
                return Err(content(format!("{} is the name of two tokens", token.name)));
            }
            if token.sha256.len() != 64 || !token.sha256.bytes().all(|b| b.is_ascii_hexdigit()) {
                return Err(content(format!("the sha256 of {} has not 64 hexadecimal digits", token.name)));
            }
        }
        Ok(Self { path: path.to_owned(), list })
    }

    /// Changes a file: read, changed and replaced while no other process changes it.
    ///
    /// # Errors
    /// It cannot be read or written; those of `change`, which leave it as it was.
    pub fn change<T>(
        path: &Path,
        change: impl FnOnce(&mut Self) -> Result<T, TokenError>,
    ) -> Result<T, TokenError> {
        // Of a link, its target is replaced and not the link itself.
        let path = &std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        // The lock is on a file of its own: the other one is replaced.
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".lock");
        let lock_path = path.with_file_name(name);
        let failed = |source| TokenError::File { path: lock_path.clone(), source };
        let mut options = std::fs::OpenOptions::new();
        let options = options.write(true).create(true).truncate(false).mode(0o600);
        let lock = options.open(&lock_path).map_err(failed)?;
        lock.lock().map_err(failed)?;
        give_to_owner_of(path, &lock).map_err(failed)?;
        let mut file = Self::read(path)?;
        let done = change(&mut file)?;
        file.write()?;
        Ok(done)
    }

    /// Adds a token and gives it out: it is shown once.
    ///
    /// # Errors
    /// The name is taken, or is none.
    pub fn add(&mut self, token: Token) -> Result<String, TokenError> {
        if let Some(fault) = token.fault() {
            return Err(TokenError::Name(fault));
        }
        if self.list.iter().any(|other| other.name == token.name) {
            let message = format!("there is a token called {}: remove it first", token.name);
            return Err(TokenError::Name(message));
        }
        let secret: [u8; 32] = rand::random();
        let secret = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(secret));
        self.list.push(Token { sha256: hash(&secret), ..token });
        Ok(secret)
    }

    /// Removes a token.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn remove(&mut self, name: &str) -> Result<(), TokenError> {
        let before = self.list.len();
        self.list.retain(|token| token.name != name);
        match self.list.len() < before {
            true => Ok(()),
            false => Err(TokenError::Name(format!("there is no token called {name}"))),
        }
    }

    /// Writes the file, readable for its owner alone; a crash leaves the old one or the new one.
    fn write(&self) -> Result<(), TokenError> {
        let failed = |source| TokenError::File { path: self.path.clone(), source };
        let text =
            toml::to_string(&TokenTables { token: self.list.clone() }).expect("tokens are written as TOML");
        let new = self.path.with_extension("new");
        let mut options = std::fs::OpenOptions::new();
        let mut file =
            options.write(true).create(true).truncate(true).mode(0o600).open(&new).map_err(failed)?;
        // Before the secret hashes are in it.
        give_to_owner_of(&self.path, &file).map_err(failed)?;
        let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
        written.and_then(|()| std::fs::rename(&new, &self.path)).map_err(failed)?;
        let dir = self.path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        std::fs::File::open(dir).and_then(|dir| dir.sync_all()).map_err(failed)
    }
}

/// Gives a file to the owner of another one, if that is there: a file that root changes stays the
/// server's.
fn give_to_owner_of(other: &Path, file: &std::fs::File) -> io::Result<()> {
    let Ok(wanted) = std::fs::metadata(other) else { return Ok(()) };
    let made = file.metadata()?;
    if (made.uid(), made.gid()) == (wanted.uid(), wanted.gid()) {
        return Ok(());
    }
    match std::os::unix::fs::fchown(file, Some(wanted.uid()), Some(wanted.gid())) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        given => given,
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
}

fn hash(secret: &str) -> String {
    Sha256::digest(secret.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The tokens of a server, and the rights of clients without one.
#[derive(Debug)]
pub struct Keeper {
    path: Option<PathBuf>,
    /// of those without a token
    public: Option<Rights>,
    known: Mutex<Known>,
}

#[derive(Debug)]
struct Known {
    tokens: Arc<Vec<Arc<Holder>>>,
    looked: Instant,
    stamp: Option<FileStamp>,
    /// the file that could not be read, once that was logged
    told: Option<FileStamp>,
}

/// The stamp that tells one content of a file from the next. A time alone has steps, in which the
/// content may change twice.
type FileStamp = (SystemTime, u64, u64);

/// A token, and what it means.
#[derive(Debug, PartialEq, Eq)]
pub struct Holder {
    token: Token,
    /// graphs that are there for it; none: all
    view: Option<Arc<GraphView>>,
}

impl Holder {
    fn all(tokens: Vec<Token>) -> Arc<Vec<Arc<Self>>> {
        let view = |token: &Token| token.graphs.as_ref().map(|graphs| Arc::new(GraphView::new(graphs)));
        let holder = |token| Arc::new(Self { view: view(&token), token });
        Arc::new(tokens.into_iter().map(holder).collect())
    }
}

impl Deref for Holder {
    type Target = Token;

    fn deref(&self) -> &Token {
        &self.token
    }
}

/// A user of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// none: without a token
    pub token: Option<Arc<Holder>>,
    /// what it may do
    pub rights: Rights,
}

impl User {
    /// Graphs that are there for it; none: all.
    pub fn view(&self) -> Option<Arc<GraphView>> {
        self.token.as_ref()?.view.clone()
    }

    /// Whether a dataset is there for it.
    pub fn may_see(&self, dataset: &str) -> bool {
        let datasets = self.token.as_ref().and_then(|token| token.datasets.as_ref());
        datasets.is_none_or(|datasets| datasets.iter().any(|name| name == dataset))
    }

    /// Refuses a user whose token is for other datasets.
    ///
    /// # Errors
    /// The user is refused.
    pub fn check_dataset(&self, name: &str) -> Result<(), Denied> {
        if self.may_see(name) { Ok(()) } else { Err(Denied::Dataset) }
    }

    /// Refuses a user whose token is for some datasets, where all are shown.
    ///
    /// # Errors
    /// The user is refused.
    pub fn check_all_datasets(&self) -> Result<(), Denied> {
        match self.token.as_ref().is_none_or(|token| token.datasets.is_none()) {
            true => Ok(()),
            false => Err(Denied::Dataset),
        }
    }
}

/// Why a request is turned away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denied {
    /// it has no token, or one that is not known
    Unknown,
    /// its token may not do this
    Forbidden(Rights),
    /// its token is for other datasets
    Dataset,
    /// it names its user twice: a proxy may have checked the other name
    Twice,
}

impl Keeper {
    /// Allows everything to all, for servers on loopback.
    pub fn open_to_all() -> Self {
        Self::new(None, Some(Rights::Admin), Vec::new())
    }

    /// Of a file; without a token one may read if `public_read`.
    ///
    /// # Errors
    /// The file is not there, cannot be read, or is not a file of tokens.
    pub fn of_file(path: &Path, public_read: bool) -> Result<Self, TokenError> {
        if !path.try_exists().map_err(|source| TokenError::File { path: path.to_owned(), source })? {
            return Err(TokenError::Missing { path: path.to_owned() });
        }
        let file = TokenFile::read(path)?;
        Ok(Self::new(Some(path.to_owned()), public_read.then_some(Rights::Read), file.list))
    }

    /// All may read, and none may do more.
    pub fn public_read() -> Self {
        Self::new(None, Some(Rights::Read), Vec::new())
    }

    fn new(path: Option<PathBuf>, public: Option<Rights>, tokens: Vec<Token>) -> Self {
        let stamp = path.as_deref().and_then(stamp);
        let known = Known { tokens: Holder::all(tokens), looked: Instant::now(), stamp, told: None };
        Self { path, public, known: Mutex::new(known) }
    }

    /// The user of a request that needs these rights.
    ///
    /// # Errors
    /// It has none.
    pub fn user(&self, headers: &HeaderMap, needed: Rights) -> Result<User, Denied> {
        if headers.get_all(header::AUTHORIZATION).iter().nth(1).is_some() {
            return Err(Denied::Twice);
        }
        let user = match credentials(headers) {
            Some((name, secret)) => {
                let hashed = hash(&secret);
                let tokens = self.tokens();
                let mut matching = tokens.iter().filter(|token| token.sha256.eq_ignore_ascii_case(&hashed));
                let token = matching.find(|token| name.as_ref().is_none_or(|name| *name == token.name));
                match token {
                    Some(token) => User { rights: token.rights, token: Some(token.clone()) },
                    None if self.path.is_some() => return Err(Denied::Unknown),
                    // Where there are no tokens, a header for another server does no harm.
                    None => self.anybody()?,
                }
            }
            None => self.anybody()?,
        };
        self.check(&user, needed)?;
        Ok(user)
    }

    /// Refuses a user without the rights. Where there are tokens, the answer asks for one.
    ///
    /// # Errors
    /// It has not.
    pub fn check(&self, user: &User, needed: Rights) -> Result<(), Denied> {
        match (user.rights >= needed, &user.token) {
            (true, _) => Ok(()),
            (false, None) if self.path.is_some() => Err(Denied::Unknown),
            (false, _) => Err(Denied::Forbidden(needed)),
        }
    }

    /// Whether everything is allowed to all.
    pub fn is_open_to_all(&self) -> bool {
        self.public == Some(Rights::Admin)
    }

    fn anybody(&self) -> Result<User, Denied> {
        self.public.map(|rights| User { token: None, rights }).ok_or(Denied::Unknown)
    }

    /// The tokens as the file has them now.
    fn tokens(&self) -> Arc<Vec<Arc<Holder>>> {
        let mut known = self.known.lock().expect("no holder panics");
        if let Some(path) = &self.path
            && known.looked.elapsed() >= LOOK
        {
            known.looked = Instant::now();
            let now = stamp(path);
            if now != known.stamp {
                match TokenFile::read(path) {
                    Ok(file) => (known.tokens, known.stamp) = (Holder::all(file.list), now),
                    // Tokens that were removed in it still work: that is said, once.
                    Err(error) if known.told != now => {
                        tell!("snowmelt: the tokens stay as they were: {error}");
                        known.told = now;
                    }
                    Err(_) => {}
                }
            }
        }
        Arc::clone(&known.tokens)
    }
}

fn stamp(path: &Path) -> Option<FileStamp> {
    let meta = std::fs::metadata(path).ok()?;
    Some((meta.modified().ok()?, meta.ino(), meta.len()))
}

/// The name, if one is said, and the secret of a request.
fn credentials(headers: &HeaderMap) -> Option<(Option<String>, String)> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, rest) = value.split_once(' ')?;
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some((None, rest.trim().to_owned()));
    }
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let decoded = String::from_utf8(STANDARD.decode(rest.trim()).ok()?).ok()?;
    let (name, secret) = decoded.split_once(':')?;
    Some((Some(name.to_owned()), secret.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(name: &str, rights: Rights) -> Token {
        Token::new(name, rights)
    }

    fn bearer(secret: &str) -> HeaderMap {
        HeaderMap::from_iter([(header::AUTHORIZATION, format!("Bearer {secret}").parse().unwrap())])
    }

    fn basic(name: &str, secret: &str) -> HeaderMap {
        let value = format!("basic {}", STANDARD.encode(format!("{name}:{secret}")));
        HeaderMap::from_iter([(header::AUTHORIZATION, value.parse().unwrap())])
    }

    #[test]
    fn tokens_do_what_they_may_and_no_more() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tokens.toml");
        let add = |name, rights| TokenFile::change(&path, |file| file.add(token(name, rights)));
        assert!(matches!(Keeper::of_file(&path, true), Err(TokenError::Missing { .. })));
        let secret = add("reports", Rights::Read).unwrap();
        let admin = add("anna", Rights::Admin).unwrap();
        assert!(matches!(add("anna", Rights::Read), Err(TokenError::Name(_))));
        assert!(matches!(add("a b", Rights::Read), Err(TokenError::Name(_))));
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(!text.contains(&secret) && text.contains("reports"), "{text}");
        assert_eq!(TokenFile::read(&path).unwrap().list.len(), 2);

        let keeper = Keeper::of_file(&path, false).unwrap();
        let name = |headers: &HeaderMap, needed| {
            keeper.user(headers, needed).map(|user| user.token.map(|token| token.name.clone()))
        };
        assert_eq!(name(&bearer(&secret), Rights::Read), Ok(Some("reports".into())));
        assert_eq!(name(&basic("reports", &secret), Rights::Read), Ok(Some("reports".into())));
        assert_eq!(name(&bearer(&secret), Rights::Write), Err(Denied::Forbidden(Rights::Write)));
        assert_eq!(name(&bearer(&admin), Rights::Write), Ok(Some("anna".into())));
        for wrong in [bearer("snowmelt_x"), basic("anna", &secret), HeaderMap::new()] {
            assert_eq!(name(&wrong, Rights::Read), Err(Denied::Unknown), "{wrong:?}");
        }
        let mut twice = bearer(&secret);
        twice.append(header::AUTHORIZATION, bearer(&admin)[header::AUTHORIZATION].clone());
        assert_eq!(name(&twice, Rights::Read), Err(Denied::Twice));
        assert_eq!(Keeper::open_to_all().user(&twice, Rights::Read), Err(Denied::Twice));
    }

    #[test]
    fn all_tokens_that_are_added_at_once_are_there() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tokens.toml");
        let secrets: Vec<String> = std::thread::scope(|scope| {
            let add = |n: usize| {
                TokenFile::change(&path, |file| file.add(token(&format!("user{n}"), Rights::Read))).unwrap()
            };
            let threads: Vec<_> = (0..16).map(|n| scope.spawn(move || add(n))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let keeper = Keeper::of_file(&path, false).unwrap();
        assert!(secrets.iter().all(|secret| keeper.user(&bearer(secret), Rights::Read).is_ok()));
        // One that fails leaves the others.
        assert!(TokenFile::change(&path, |file| file.remove("nobody")).is_err());
        assert_eq!(TokenFile::read(&path).unwrap().list.len(), 16);
    }

    /// Root adds a token for a server of another user.
    #[test]
    fn the_file_stays_its_owners_and_a_link_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let (path, link) = (dir.path().join("tokens.toml"), dir.path().join("link.toml"));
        std::fs::write(&path, "").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let is_root = rustix::process::geteuid().is_root();
        let owner = if is_root { 1234 } else { rustix::process::geteuid().as_raw() };
        std::os::unix::fs::chown(&path, Some(owner), None).unwrap();
        TokenFile::change(&link, |file| file.add(token("late", Rights::Read))).unwrap();
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        for file in [path.clone(), path.with_file_name("tokens.toml.lock")] {
            let meta = std::fs::metadata(&file).unwrap();
            assert_eq!((meta.uid(), meta.mode() & 0o777), (owner, 0o600), "{}", file.display());
        }
        assert_eq!(TokenFile::read(&path).unwrap().list.len(), 1);
        if !is_root {
            eprintln!("skipped: another owner, which needs root");
        }
    }

    #[test]
    fn those_without_a_token_may_read_where_that_is_public() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tokens.toml");
        std::fs::write(&path, "").unwrap();
        let keeper = Keeper::of_file(&path, true).unwrap();
        assert!(keeper.user(&HeaderMap::new(), Rights::Read).is_ok());
        assert_eq!(keeper.user(&HeaderMap::new(), Rights::Write), Err(Denied::Unknown), "a token would help");
        assert_eq!(keeper.user(&bearer("x"), Rights::Read), Err(Denied::Unknown), "a wrong one is told");
        let keeper = Keeper::public_read();
        assert_eq!(keeper.user(&bearer("x"), Rights::Write), Err(Denied::Forbidden(Rights::Write)));
        assert!(Keeper::open_to_all().user(&HeaderMap::new(), Rights::Admin).is_ok());
    }

    #[test]
    fn a_changed_file_is_read_again_and_a_broken_one_changes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tokens.toml");
        std::fs::write(&path, "").unwrap();
        let keeper = Keeper::of_file(&path, false).unwrap();
        let look_again = || keeper.known.lock().unwrap().looked = Instant::now() - LOOK;
        let secret = TokenFile::change(&path, |file| file.add(token("late", Rights::Read))).unwrap();
        let kept = std::fs::read(&path).unwrap();
        look_again();
        assert!(keeper.user(&bearer(&secret), Rights::Read).is_ok());
        std::fs::write(&path, "[[token]]\nname = 7").unwrap();
        look_again();
        assert!(keeper.user(&bearer(&secret), Rights::Read).is_ok(), "it is as it was");
        std::fs::write(&path, kept).unwrap();
        TokenFile::change(&path, |file| file.remove("late")).unwrap();
        assert!(TokenFile::change(&path, |file| file.remove("late")).is_err());
        look_again();
        assert_eq!(keeper.user(&bearer(&secret), Rights::Read), Err(Denied::Unknown));
    }
}
