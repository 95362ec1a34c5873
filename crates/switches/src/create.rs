//! The switches of commands that may make a database: where it lies, and in which sizes.
//!
//! They say what a database is, so they count when it is made. One that exists is not changed
//! by them: it must be as they say, or the command is refused. A simulated device is not part
//! of that. It belongs to the run, since the same database is measured on one today and used on
//! the real one tomorrow; `--device STRIPE=DEVICE` names it in later runs. A profile says what
//! the real device costs, so it is kept beside the stripe, where `probe` keeps its own.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::bail;
use snowmelt_base::size;
use snowmelt_io::Profile;
use snowmelt_store::superblock::{FILE_NAME, SuperBlock, SuperBlockFile};
use snowmelt_store::{BlockDevices, PAGE_BYTES, Placement, StoreConfig};

use crate::device::{DeviceChoice, StripeDevices};

/// See the head of the file.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "New database")]
pub struct CreateArgs {
    /// Where the data goes: a file, a directory or a block device, normally each on another
    /// device (repeatable) [default: in DB]. device=DEVICE, as with --device, is for this run;
    /// profile=FILE, as probe --save writes it, is kept
    #[arg(long, value_name = "PATH[,device=DEVICE][,profile=FILE]")]
    pub stripe: Vec<StripeArg>,
    /// Take block devices as stripes, whatever is on them: all that is on them is lost
    #[arg(long)]
    pub destroy: bool,
    /// Bytes in an extent, the unit of read-ahead: a power of two from 8k to 512m [default: 2m]
    #[arg(long, value_name = "SIZE", value_parser = extent_pages)]
    pub extent_size: Option<u32>,
    /// Trees that have a stripe of their own, by the stripe's number; the others lie on all in
    /// turn. Trees: psog, posg, sp, op, gs, iri, lit, text, iri-hash, lit-hash, text-hash,
    /// triple, triple-spo, triple-pos, triple-osp
    #[arg(long, value_name = "TREE=STRIPE[,...]", value_parser = placement, default_value = "", hide_default_value = true)]
    pub place: Placement,
}

/// A stripe, as it is named on the command line.
#[derive(Clone, Debug, PartialEq)]
pub struct StripeArg {
    /// A file, directory or block device.
    pub path: PathBuf,
    /// The device of this run; as `--device` says if none is given.
    pub device: Option<DeviceChoice>,
    /// The profile to be kept.
    pub profile: Option<PathBuf>,
}

impl FromStr for StripeArg {
    type Err = String;

    fn from_str(text: &str) -> Result<StripeArg, String> {
        // The path may have commas; what follows begins with a key.
        let begins: Vec<usize> = text
            .match_indices(',')
            .map(|(at, _)| at)
            .filter(|at| ["device=", "profile="].iter().any(|key| text[at + 1..].starts_with(key)))
            .collect();
        let path = &text[..begins.first().copied().unwrap_or(text.len())];
        if path.is_empty() {
            return Err("name a path before the settings of the stripe".into());
        }
        let mut stripe = StripeArg { path: path.into(), device: None, profile: None };
        for (i, begin) in begins.iter().enumerate() {
            let end = begins.get(i + 1).copied().unwrap_or(text.len());
            match text[begin + 1..end].split_once('=') {
                Some(("device", name)) => stripe.device = Some(name.parse()?),
                Some((_, file)) => stripe.profile = Some(file.into()),
                None => unreachable!("it begins with a key and its sign"),
            }
        }
        Ok(stripe)
    }
}

fn extent_pages(text: &str) -> Result<u32, String> {
    const LEAST: u64 = PAGE_BYTES as u64;
    const MOST: u64 = 65_536 * PAGE_BYTES as u64;
    let bytes = size::parse(text)?;
    match (LEAST..=MOST).contains(&bytes) && bytes.is_power_of_two() {
        true => Ok((bytes / LEAST) as u32),
        false => Err(format!("use a power of two from {} to {}", size::exact(LEAST), size::exact(MOST))),
    }
}

fn placement(text: &str) -> Result<Placement, String> {
    let placement: Placement = text.parse()?;
    let names = snowmelt_graph::tree_names();
    if let Some((name, _)) = placement.iter().find(|(name, _)| !names.contains(name)) {
        return Err(format!("no tree is called {name:?}: there are {}", names.join(", ")));
    }
    Ok(placement)
}

impl CreateArgs {
    /// The paths of the stripes.
    pub fn paths(&self) -> Vec<PathBuf> {
        self.stripe.iter().map(|stripe| stripe.path.clone()).collect()
    }

    /// The devices of this run.
    pub fn devices(&self) -> StripeDevices {
        StripeDevices::from_choices(self.stripe.iter().map(|stripe| stripe.device.clone()))
    }

    /// Refuses stripes where several databases could be made.
    pub fn refuse_stripes(&self) -> anyhow::Result<()> {
        match self.stripe.first() {
            Some(stripe) => bail!(
                "--stripe {} is for one database: make those of a folder with snowmelt load, one by one",
                stripe.path.display()
            ),
            None => Ok(()),
        }
    }

    /// The settings with what a new database shall be.
    pub fn applied(&self, config: StoreConfig) -> StoreConfig {
        StoreConfig {
            extent_pages: self.extent_size.unwrap_or(config.extent_pages),
            placement: self.place.clone(),
            block_devices: if self.destroy { BlockDevices::Destroy } else { BlockDevices::Refuse },
            // `check` refuses those that cannot be read.
            new_profiles: self.profiles().unwrap_or_default(),
            ..config
        }
    }

    /// Refuses a database that exists and is not as the switches say, and profiles that are
    /// none. Returns whether there is a database.
    ///
    /// # Errors
    /// See above.
    pub fn check(&self, db: &Path) -> anyhow::Result<bool> {
        self.profiles()?;
        if !db.join(FILE_NAME).exists() {
            return Ok(false);
        }
        let block = SuperBlockFile::peek(db)?;
        if let Some(pages) = self.extent_size.filter(|pages| *pages != block.extent_pages) {
            let bytes = |pages: u32| size::exact(u64::from(pages) * PAGE_BYTES as u64);
            bail!(
                "{} has extents of {}, and keeps them: --extent-size {} is for new databases",
                db.display(),
                bytes(block.extent_pages),
                bytes(pages)
            );
        }
        if !self.stripe.is_empty() {
            self.check_stripes(db, &block)?;
        }
        Ok(true)
    }

    fn check_stripes(&self, db: &Path, block: &SuperBlock) -> anyhow::Result<()> {
        let is_same = |(arg, stripe): (&StripeArg, &PathBuf)| {
            let (named, file) = (std::path::absolute(&arg.path)?, std::path::absolute(db.join(stripe))?);
            Ok(named == file || (named.is_dir() && file.parent() == Some(&named)))
        };
        let same: Result<Vec<bool>, std::io::Error> =
            self.stripe.iter().zip(&block.stripes).map(is_same).collect();
        if self.stripe.len() != block.stripes.len() || same?.contains(&false) {
            let stripes: Vec<_> = block.stripes.iter().map(|path| path.display().to_string()).collect();
            bail!(
                "{} lies on the stripes {}, and keeps them: other --stripe are for new databases",
                db.display(),
                stripes.join(", ")
            );
        }
        Ok(())
    }

    /// The profiles that were named, with the numbers of their stripes.
    fn profiles(&self) -> anyhow::Result<Vec<(usize, Profile)>> {
        let named = self.stripe.iter().enumerate();
        let named = named.filter_map(|(i, stripe)| stripe.profile.as_ref().map(|path| (i, path)));
        named.map(|(i, path)| Ok((i, Profile::load(path)?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use clap::Args;

    use super::*;

    #[test]
    fn stripes_have_a_device_and_a_profile() {
        let parse = |text: &str| text.parse::<StripeArg>();
        let plain = StripeArg { path: "/a,b/c".into(), device: None, profile: None };
        assert_eq!(parse("/a,b/c"), Ok(plain.clone()));
        let full = parse("/a,b/c,profile=/p,q.json,device=sim:raid0:hdd*2,chunk=64k").unwrap();
        assert_eq!((full.path, full.profile), (plain.path, Some("/p,q.json".into())));
        assert_eq!(full.device, Some("sim:raid0:hdd*2,chunk=64k".parse().unwrap()));
        assert!(parse("/a,device=floppy").unwrap_err().contains("use real"));
        assert!(parse(",device=real").is_err());
    }

    #[test]
    fn trees_are_placed_by_their_names() {
        assert_eq!(placement("text=1,psog=0").unwrap().to_string(), "psog=0,text=1");
        let error = placement("texts=1").unwrap_err();
        assert!(error.contains("texts") && error.contains("text-hash"), "{error}");
        for name in snowmelt_graph::tree_names() {
            assert!(CreateArgs::augment_args(clap::Command::new("x")).get_arguments().any(|arg| {
                arg.get_id() == "place" && arg.get_help().is_some_and(|help| help.to_string().contains(name))
            }));
        }
    }

    #[test]
    fn extents_are_powers_of_two_within_the_format() {
        assert_eq!(extent_pages("64k"), Ok(8));
        assert_eq!((extent_pages("8k"), extent_pages("512m")), (Ok(1), Ok(65_536)));
        for wrong in ["4k", "1g", "24k", "3m", "x"] {
            assert!(extent_pages(wrong).is_err(), "{wrong}");
        }
        assert!(extent_pages("3m").unwrap_err().contains("from 8k to 512m"));
    }
}
