//! The catalog: the one dataset of a server, or those of a folder, each below its name.

use std::sync::Arc;

use super::folder::{AnswerCommands, Datasets, is_name};
use super::{Dataset, Served};

/// The datasets of a server.
pub enum Catalog {
    /// one, at the root
    One(Arc<Dataset>),
    /// those of a folder
    Many(Arc<Datasets>),
}

/// A path, cut after the name of its dataset.
pub struct DatasetPath<'p> {
    /// none: the path begins with no name, or datasets have no names here
    pub dataset: Option<&'p str>,
    /// the path below the dataset
    pub rest: &'p str,
}

impl Catalog {
    /// Lists what is to be served; only the one dataset is open.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn new(served: Served) -> std::io::Result<Self> {
        Ok(match served {
            Served::One(engine) => Self::One(Arc::new(Dataset::new(String::new(), engine))),
            Served::Many(folder) => Self::Many(Arc::new(Datasets::new(folder)?)),
        })
    }

    /// The dataset of a server of one.
    pub fn only(&self) -> Option<&Arc<Dataset>> {
        match self {
            Self::One(one) => Some(one),
            Self::Many(_) => None,
        }
    }

    /// The datasets of a folder.
    pub fn folder(&self) -> Option<&Arc<Datasets>> {
        match self {
            Self::One(_) => None,
            Self::Many(datasets) => Some(datasets),
        }
    }

    /// The open datasets.
    pub fn open_ones(&self) -> Vec<Arc<Dataset>> {
        match self {
            Self::One(one) => vec![Arc::clone(one)],
            Self::Many(datasets) => datasets.open_ones(),
        }
    }

    /// Has `answer` begin for each dataset of a folder that is opened from now on.
    pub fn answer_commands(&self, answer: AnswerCommands) {
        if let Self::Many(datasets) = self {
            datasets.answer_commands(answer);
        }
    }

    /// Closes datasets that are idle for long.
    pub async fn close_idle(&self) {
        if let Self::Many(datasets) = self {
            datasets.close_idle().await;
        }
    }

    /// Cuts a path after the name of its dataset.
    pub fn split<'p>(&self, path: &'p str) -> DatasetPath<'p> {
        let named = || {
            let (name, _) = path.strip_prefix('/')?.split_once('/')?;
            is_name(name).then(|| DatasetPath { dataset: Some(name), rest: &path[1 + name.len()..] })
        };
        let named = if self.only().is_some() { None } else { named() };
        named.unwrap_or(DatasetPath { dataset: None, rest: path })
    }
}
