//! Keeps the state of training in a file, so that a run that was killed goes on in the middle of its epoch.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use burn::module::Module;
use burn::store::ModuleRecord;
use burn::tensor::Bytes;
use burn_gnn_files::write_atomic;
use serde::{Deserialize, Serialize};

use crate::args::Args;
use crate::learn::State;

/// The first line of the file; parameters and the state of the optimizer follow.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    /// What the training is a function of.
    settings: serde_json::Value,
    /// Bits of the loss of every step.
    losses: Vec<u32>,
    parameter_bytes: usize,
    optimizer_bytes: usize,
}

/// A checkpoint of one training. It is written under a temporary name, forced to disk and renamed: killed at any
/// moment, the one before or the new one is there.
pub(crate) struct Checkpoint {
    path: PathBuf,
    settings: serde_json::Value,
}

impl Checkpoint {
    /// The checkpoint at `path` of training on `count` nodes.
    pub(crate) fn new(path: &Path, args: &Args, count: usize) -> Result<Self> {
        let settings = serde_json::json!({
            "graph": serde_json::to_value(args)?,
            "hidden": args.hidden,
            "fanouts": args.fanouts,
            "batch": args.batch,
            "train": count,
        });
        Ok(Self { path: path.into(), settings })
    }

    pub(crate) fn save(&self, state: &State) -> Result<()> {
        let parameters = state.net.clone().into_record().into_bytes()?;
        let optimizer = state.optimizer.into_bytes()?;
        let head = Head {
            settings: self.settings.clone(),
            losses: state.losses.iter().map(|l| l.to_bits()).collect(),
            parameter_bytes: parameters.len(),
            optimizer_bytes: optimizer.len(),
        };
        let head = serde_json::to_string(&head)?;
        let parts: [&[u8]; 4] = [head.as_bytes(), b"\n", &parameters, &optimizer];
        Ok(write_atomic(&self.path, |file| parts.iter().try_for_each(|part| file.write_all(part)))?)
    }

    /// The state in the file, instead of one before the first step; that one where there is no file.
    pub(crate) fn load(&self, new: State) -> Result<State> {
        let bytes = match std::fs::read(&self.path) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(new),
            Err(e) => return Err(e).with_context(|| format!("reading {}", self.path.display())),
        };
        let path = self.path.display();
        let end = bytes
            .iter()
            .position(|&b| b == b'\n')
            .with_context(|| format!("{path}: expected a line of JSON, found none"))?;
        let head: Head = serde_json::from_slice(&bytes[..end])
            .with_context(|| format!("{path}: expected the head of a checkpoint"))?;
        if head.settings != self.settings {
            bail!(
                "{path}: expected a checkpoint of {}, found one of {}; remove the file to train anew, or choose another folder",
                self.settings,
                head.settings
            );
        }
        let (parameters, rest) = (&bytes[end + 1..], head.parameter_bytes);
        if parameters.len() != rest + head.optimizer_bytes {
            bail!(
                "{path}: expected {} bytes after the header, found {}",
                rest + head.optimizer_bytes,
                parameters.len()
            );
        }
        let (parameters, optimizer) = parameters.split_at(rest);
        let record = ModuleRecord::from_bytes(Bytes::from_bytes_vec(parameters.to_vec()))?;
        let net = new.net.try_load_record(record).with_context(|| format!("{path}: parameters"))?;
        let optimizer = new.optimizer.from_bytes(Bytes::from_bytes_vec(optimizer.to_vec()))?;
        Ok(State { net, optimizer, losses: head.losses.into_iter().map(f32::from_bits).collect() })
    }

    /// Removes the file, where there is one.
    pub(crate) fn remove(&self) {
        // A file that stays is a checkpoint at the end of the epoch: the next run has nothing to train.
        let _ = std::fs::remove_file(&self.path);
    }
}
