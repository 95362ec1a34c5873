//! Addresses of published databases, the object stores they lead to, and the cache of a reader.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use snowmelt_base::size;
use snowmelt_io::{Clock, ExtentCache, FolderObjects, Objects, Patience, PatientObjects};

/// Begins of addresses that name an object store.
const SCHEMES: [&str; 6] = ["file", "s3", "gs", "az", "abfs", "abfss"];

/// Switches of object stores.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Object stores")]
pub struct ObjectStoreArgs {
    /// Server that speaks S3, as http://127.0.0.1:9000, or an emulator of Azure or Google
    /// [default: AWS_ENDPOINT_URL, else the service itself]
    #[arg(long, value_name = "URL")]
    pub store_endpoint: Option<String>,
    /// Region of the bucket [default: AWS_REGION, else us-east-1]
    #[arg(long, value_name = "REGION")]
    pub store_region: Option<String>,
    /// File with the credentials: AWS's format, or a service account's key of Google [default: the
    /// variables AWS_…, AZURE_…, GOOGLE_…, ~/.aws/credentials, or the role of the machine]
    #[arg(long, value_name = "FILE")]
    pub store_credentials: Option<PathBuf>,
    /// Keep extents that were read from an object store in this folder; the readers of a machine
    /// share it
    #[arg(long, value_name = "DIR")]
    pub cache: Option<PathBuf>,
    /// Most bytes of that folder
    #[arg(long, value_name = "SIZE", value_parser = size::parse, default_value = "10GiB", requires = "cache")]
    pub cache_size: u64,
}

impl ObjectStoreArgs {
    /// The object store of an address, asked with patience: see [`PatientObjects`].
    ///
    /// # Errors
    /// The address cannot be used, or this program was built without such stores.
    pub fn objects(&self, address: &str, clock: &Clock) -> anyhow::Result<Arc<dyn Objects>> {
        let (scheme, rest) =
            address.split_once("://").context("an address begins with a scheme, as s3://")?;
        let store: Arc<dyn Objects> = match scheme {
            "file" => folder(address, Path::new(rest))?,
            _ => self.cloud(address)?,
        };
        let patient = PatientObjects::new(store, clock, Patience::default());
        Ok(Arc::new(patient.context("cannot start a thread")?))
    }

    #[cfg(feature = "remote")]
    fn cloud(&self, address: &str) -> anyhow::Result<Arc<dyn Objects>> {
        use snowmelt_cloud::{CloudOptions, Credentials, Secret};
        let variables = std::env::vars_os().filter_map(|(name, value)| {
            let (name, value) = (name.into_string().ok()?, value.into_string().ok()?);
            let is_of_a_store = ["AWS_", "AZURE_", "GOOGLE_"].iter().any(|begin| name.starts_with(begin));
            is_of_a_store.then(|| (name, Secret::from(value)))
        });
        let mut settings: Vec<(String, Secret)> = variables.collect();
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let usual = variable("HOME").map(|home| format!("{home}/.aws/credentials"));
        if let Some(file) = usual.filter(|file| Path::new(file).exists())
            && variable("AWS_SHARED_CREDENTIALS_FILE").is_none()
        {
            settings.push(("AWS_SHARED_CREDENTIALS_FILE".into(), file.into()));
        }
        let credentials = match &self.store_credentials {
            Some(path) => Credentials::File { path: path.clone(), profile: variable("AWS_PROFILE") },
            None => Credentials::Ambient,
        };
        let options = CloudOptions {
            credentials,
            endpoint: self.store_endpoint.clone().or_else(|| variable("AWS_ENDPOINT_URL")),
            region: self.store_region.clone(),
            proxy: variable("HTTPS_PROXY").filter(|_| self.store_endpoint.is_none()),
            settings,
            ..CloudOptions::default()
        };
        Ok(snowmelt_cloud::open(address, &options)?)
    }

    #[cfg(not(feature = "remote"))]
    fn cloud(&self, address: &str) -> anyhow::Result<Arc<dyn Objects>> {
        bail!(
            "{address}: this program was built without the object stores of clouds: build it with `--features remote`, or take a package"
        )
    }

    /// The cache of extents, if there is to be one.
    ///
    /// # Errors
    /// The folder cannot be used as one.
    pub fn open_cache(&self) -> anyhow::Result<Option<Arc<ExtentCache>>> {
        let open = |dir: &PathBuf| {
            std::fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
            Ok(ExtentCache::open(dir, self.cache_size)?)
        };
        self.cache.as_ref().map(open).transpose()
    }
}

/// Refuses a store that ignores the conditions of puts, which keep two writers apart. A folder is
/// known to obey them.
///
/// # Errors
/// It ignores them, or cannot be asked.
#[cfg(feature = "remote")]
pub fn check_conditions(address: &str, objects: &dyn Objects, clock: &Clock) -> anyhow::Result<()> {
    match address.starts_with("file://") {
        true => Ok(()),
        false => Ok(snowmelt_cloud::conditional_puts_work(objects, clock, "")?),
    }
}

/// A folder, the only store of this build, is known to obey conditions.
///
/// # Errors
/// None.
#[cfg(not(feature = "remote"))]
pub fn check_conditions(_: &str, _: &dyn Objects, _: &Clock) -> anyhow::Result<()> {
    Ok(())
}

/// Makes the folder of an address that names one, if it is not there.
///
/// # Errors
/// It cannot be made.
pub fn make_folder(address: &str) -> anyhow::Result<()> {
    match address.strip_prefix("file://") {
        Some(dir) => std::fs::create_dir_all(dir).with_context(|| format!("cannot make {address}")),
        None => Ok(()),
    }
}

/// Refuses to write to a published database.
///
/// # Errors
/// The path is an address.
pub fn refuse(path: &Path) -> anyhow::Result<()> {
    match address(path) {
        Some(address) => {
            bail!("{address} is a published database: it is read, and changed where its writer is")
        }
        None => Ok(()),
    }
}

/// The address that a path on the command line is, if it is one: `s3://bucket/people`.
pub fn address(path: &Path) -> Option<&str> {
    let text = path.to_str()?;
    let (scheme, _) = text.split_once("://")?;
    SCHEMES.contains(&scheme).then_some(text)
}

fn folder(address: &str, dir: &Path) -> anyhow::Result<Arc<dyn Objects>> {
    if !dir.is_absolute() {
        bail!("{address}: give the whole path: file:///mnt/people");
    }
    let folder = FolderObjects::open(dir).with_context(|| format!("cannot open {address}"))?;
    Ok(Arc::new(folder))
}
