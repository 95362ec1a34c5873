//! Addresses of published databases, and the object stores they lead to.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail};
use snowmelt_io::{FolderObjects, Objects};

/// Begins of addresses that name an object store.
const SCHEMES: [&str; 6] = ["file", "s3", "gs", "az", "abfs", "abfss"];

/// The address that a path on the command line is, if it is one: `s3://bucket/people`.
pub fn address(path: &Path) -> Option<&str> {
    let text = path.to_str()?;
    let (scheme, _) = text.split_once("://")?;
    SCHEMES.contains(&scheme).then_some(text)
}

/// The object store of an address.
///
/// # Errors
/// The address cannot be used, or this program was built without such stores.
pub fn objects(address: &str) -> anyhow::Result<Arc<dyn Objects>> {
    let (scheme, rest) = address.split_once("://").context("an address begins with a scheme, as s3://")?;
    if scheme == "file" {
        let dir = Path::new(rest);
        if !dir.is_absolute() {
            bail!("{address}: give the whole path: file:///mnt/people");
        }
        let folder = FolderObjects::open(dir).with_context(|| format!("cannot open {address}"))?;
        return Ok(Arc::new(folder));
    }
    bail!("{address}: this program was built without the object stores of clouds")
}
