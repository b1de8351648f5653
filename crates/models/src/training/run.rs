//! Holds the state of training, writes it to a file and reads it again.
//!
//! ```text
//! burn-gnn-fit-1\n      magic and version
//! u64                   hash of all that follows
//! u64 × 6               bytes of each section
//! model, best model, optimizer, schedule (records of Burn), history, counts and metric
//! ```
//!
//! Burn keeps the state of an optimizer by random parameter ids. In the file a parameter has its number in the order of
//! paths instead, so that files of equal states have equal bytes and a model made anew takes the state.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use burn::lr_scheduler::LrSchedulerRecord;
use burn::lr_scheduler::module_lr_scheduler::ModuleLrScheduler;
use burn::module::Module;
use burn::optim::ModuleOptimizer;
use burn::store::ModuleRecord;
use burn::tensor::Bytes;
use burn_gnn_data::write_atomic;
use burn_gnn_files::internal::{Hash, read_file};
use burn_pack::{Reader, Writer};

use crate::error::ModelError;
use crate::metrics::metric::Metric;
use crate::params::param_ids::ParamIds;
use crate::training::fit_config::FitConfig;
use crate::training::gradient_sync::{GradientSync, agree};
use crate::training::history::Epoch;

/// The state of a run, of which a checkpoint is made.
pub(crate) struct Run<M> {
    pub(crate) optimizer: ModuleOptimizer,
    pub(crate) schedule: ModuleLrScheduler,
    /// Batches so far.
    pub(crate) step: u64,
    pub(crate) history: Vec<Epoch>,
    /// The best epoch and its model.
    pub(crate) best: Option<(usize, M)>,
    /// Chosen by the labels of the first batch, where the caller gives none.
    pub(crate) metric: Option<Metric>,
    /// First epoch of the mean of parameters, if there is one.
    first_averaged: Option<usize>,
}

impl<M> Run<M> {
    pub(crate) fn new(config: &FitConfig) -> Self {
        Self {
            optimizer: config.optimizer(),
            schedule: config.schedule(),
            step: 0,
            history: vec![],
            best: None,
            metric: config.metric.clone(),
            first_averaged: config.first_averaged(),
        }
    }

    /// Whether an epoch is better than the best one so far.
    pub(crate) fn is_better(&self, row: &Epoch, metric: &Metric) -> bool {
        let Some(best) = self.best.as_ref().map(|best| &self.history[best.0]) else { return true };
        let (Some(score), Some(old)) = (row.val_score, best.val_score) else { return false };
        metric.is_better(score, old) || (score == old && row.val_loss < best.val_loss)
    }

    /// Whether the best epoch is `patience` epochs old.
    pub(crate) fn is_stopped(&self, patience: Option<usize>) -> bool {
        let waited = self.best.as_ref().map_or(0, |best| self.history.len() - 1 - best.0);
        patience.is_some_and(|patience| waited >= patience)
    }
}

const MAGIC: &[u8] = b"burn-gnn-fit-1\n";
const SECTIONS: usize = 6;
const HISTORY: usize = 4;
/// Numbers of a row of the history.
const ROW: usize = 5;

type Sections = [Vec<u8>; SECTIONS];

impl<M: Module> Run<M> {
    /// Writes the state after the last epoch. Collective.
    pub(crate) fn save(
        &self,
        model: &M,
        file: &Path,
        sync: &impl GradientSync,
    ) -> Result<(), ModelError> {
        let files = files(file, sync);
        let path = &files[self.history.len() % files.len()];
        let written = self.sections(model).map_err(|e| wrong(path, e)).and_then(|sections| {
            let mut body = Vec::new();
            sections.iter().for_each(|s| body.extend((s.len() as u64).to_le_bytes()));
            sections.iter().for_each(|s| body.extend(s));
            let mut hash = Hash::new();
            hash.bytes(&body);
            let hash = hash.text();
            Ok(write_atomic(path, |out| {
                out.write_all(MAGIC)?;
                out.write_all(hash.as_bytes())?;
                out.write_all(&body)
            })?)
        });
        // No rank overwrites its older file before all have this one.
        agree(written, sync)
    }

    /// The model and state of the file, or `model` and this state where there is none. Collective.
    pub(crate) fn resume(
        &mut self,
        model: M,
        file: &Path,
        sync: &impl GradientSync,
    ) -> Result<M, ModelError> {
        let read = files(file, sync).into_iter().filter(|path| path.exists()).map(|path| {
            let sections = read(&path)?;
            Ok((sections[HISTORY].len() / (8 * ROW), path, sections))
        });
        let mut found = agree(read.collect::<Result<Vec<_>, ModelError>>(), sync)?;
        // The last epoch that every rank has: ranks may have been stopped at different ones.
        let own = found.iter().map(|of| of.0).max().unwrap_or(0);
        let longest = sync.gather(vec![own as f64]).into_iter().fold(0.0, f64::max) as usize;
        let mut holders = vec![0.0; longest + 1];
        found.iter().for_each(|of| holders[of.0] = 1.0);
        sync.sum(&mut holders);
        let common = holders.iter().rposition(|ranks| *ranks as usize == sync.size());
        let Some(at) = found.iter().position(|of| Some(of.0) == common) else { return Ok(model) };
        let (_, path, sections) = found.swap_remove(at);
        agree(self.restore(model, sections).map_err(|e| wrong(&path, e)), sync)
    }

    fn sections(&self, model: &M) -> Result<Sections, String> {
        let ids = ParamIds::of(model).sorted();
        let numbers = ids.iter().copied().zip(0..).collect();
        let record = |model: &M| {
            let bytes = model.clone().into_record().into_bytes().map_err(|e| e.to_string())?;
            renumbered(bytes, &numbers, false)
        };
        let best = self.best.as_ref().map(|best| record(&best.1)).transpose()?;
        let optimizer = self.optimizer.to_record().into_bytes().map_err(|e| e.to_string())?;
        let schedule = self.schedule.to_record().into_bytes().map_err(|e| e.to_string())?;
        let row = |e: &Epoch| {
            let none = f64::NAN;
            let score = |of: Option<f64>| of.unwrap_or(none);
            [e.lr, e.loss, score(e.train_score), score(e.val_score), score(e.val_loss)]
        };
        let history = self.history.iter().flat_map(row).flat_map(f64::to_le_bytes).collect();
        let metric = self.history.last().map_or("", |e| e.metric);
        let best_epoch = self.best.as_ref().map_or(u64::MAX, |best| best.0 as u64);
        let first_averaged = self.first_averaged.map_or(u64::MAX, |epoch| epoch as u64);
        let mut last = [self.step, best_epoch, first_averaged].map(u64::to_le_bytes).concat();
        last.extend(metric.as_bytes());
        Ok([
            record(model)?,
            best.unwrap_or_default(),
            renumbered(optimizer, &numbers, true)?,
            schedule.to_vec(),
            history,
            last,
        ])
    }

    fn restore(&mut self, model: M, sections: Sections) -> Result<M, String> {
        let [model_bytes, best, optimizer, schedule, history, last] = sections;
        let own = ParamIds::of(&model);
        let ids: HashMap<u64, u64> = (0..).zip(own.sorted()).collect();
        let load = |model: M, bytes: Vec<u8>| -> Result<M, String> {
            let ids = ParamIds::of(&model);
            let record = ModuleRecord::from_bytes(Bytes::from_bytes_vec(bytes));
            let loaded = record.and_then(|record| model.try_load_record(record));
            Ok(ids.restore(loaded.map_err(|e| e.to_string())?))
        };
        let bytes = renumbered(Bytes::from_bytes_vec(optimizer), &ids, true)?;
        self.optimizer = self
            .optimizer
            .clone()
            .from_bytes(Bytes::from_bytes_vec(bytes))
            .map_err(|e| e.to_string())?;
        let record = LrSchedulerRecord::from_bytes(Bytes::from_bytes_vec(schedule));
        self.schedule = self.schedule.clone().load_record(record.map_err(|e| e.to_string())?);
        let (words, metric) = last.split_at_checked(24).ok_or("its last section is too short")?;
        let word =
            |at: usize| words[at..at + 8].iter().rev().fold(0u64, |w, &b| w << 8 | u64::from(b));
        let metric = match (self.metric.take(), metric) {
            (Some(metric), name) if metric.name().as_bytes() == name => metric,
            (None, b"accuracy") => Metric::accuracy(),
            (None, b"loss") => Metric::loss(),
            (_, name) => {
                let name = String::from_utf8_lossy(name);
                return Err(format!("its run chose by the metric `{name}`, this one has another"));
            }
        };
        let numbers: Vec<f64> =
            history.as_chunks::<8>().0.iter().map(|b| f64::from_le_bytes(*b)).collect();
        let some = |x: f64| (!x.is_nan()).then_some(x);
        let row = |(epoch, row): (usize, &[f64; ROW])| Epoch {
            epoch,
            lr: row[0],
            loss: row[1],
            train_score: some(row[2]),
            val_score: some(row[3]),
            val_loss: some(row[4]),
            metric: metric.name(),
        };
        self.history = numbers.as_chunks::<ROW>().0.iter().enumerate().map(row).collect();
        (self.step, self.metric) = (word(0), Some(metric.clone()));
        let best_epoch = usize::try_from(word(8)).ok().filter(|&e| e < self.history.len());
        let averaged = usize::try_from(word(16)).ok().filter(|_| word(16) != u64::MAX);
        let epochs = self.history.len();
        let begun = self.first_averaged.filter(|first| *first < epochs && averaged != Some(*first));
        if let Some(first) = begun {
            let found =
                averaged.map_or("none".to_owned(), |epoch| format!("one from epoch {epoch}"));
            let why = format!(
                "expected a mean of parameters from epoch {first}, found {found}; use the epochs and the weight averaging of its run"
            );
            return Err(why);
        }
        // No epoch before the mean is kept.
        let is_own = self.first_averaged.is_none() || self.first_averaged == averaged;
        let best_epoch = best_epoch.filter(|_| is_own);
        self.best = match best_epoch {
            Some(epoch) => Some((epoch, load(model.valid(), best)?)),
            None => None,
        };
        load(model, model_bytes)
    }
}

/// The files of this rank: two on several ranks, written in turn, so that there is always an epoch that all ranks have.
fn files(file: &Path, sync: &impl GradientSync) -> Vec<PathBuf> {
    if sync.size() == 1 {
        return vec![file.to_owned()];
    }
    let of_turn = |turn| {
        let mut name = file.as_os_str().to_owned();
        name.push(format!(".rank{}.{turn}", sync.rank()));
        PathBuf::from(name)
    };
    vec![of_turn(0), of_turn(1)]
}

fn read(path: &Path) -> Result<Sections, ModelError> {
    let bytes = read_file(path)?;
    let damaged = || wrong(path, "it is damaged, or no checkpoint of `fit`");
    let body = bytes.strip_prefix(MAGIC).and_then(|rest| rest.split_at_checked(16));
    let (hash, body) = body.ok_or_else(damaged)?;
    let mut expected = Hash::new();
    expected.bytes(body);
    if expected.text().as_bytes() != hash {
        return Err(damaged());
    }
    let (lengths, mut rest) = body.split_at_checked(8 * SECTIONS).ok_or_else(damaged)?;
    let mut sections = Sections::default();
    for (length, section) in lengths.as_chunks::<8>().0.iter().zip(&mut sections) {
        let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| damaged())?;
        let (own, others) = rest.split_at_checked(length).ok_or_else(damaged)?;
        (*section, rest) = (own.to_vec(), others);
    }
    Ok(sections)
}

/// A record of Burn with other parameter ids, tensors in the order of their names. The names of an optimizer's record
/// begin with the id.
fn renumbered(bytes: Bytes, ids: &HashMap<u64, u64>, in_names: bool) -> Result<Vec<u8>, String> {
    let reader = Reader::from_bytes(bytes).map_err(|e| e.to_string())?;
    let (scalars, metadata) = (reader.scalars().clone(), reader.metadata().clone());
    let renamed = |name: &str| {
        let (id, rest) = name.split_at(name.find('.').unwrap_or(name.len()));
        match id.parse().ok().and_then(|id: u64| ids.get(&id)) {
            Some(id) if in_names => format!("{id}{rest}"),
            _ => name.to_owned(),
        }
    };
    let mut tensors = reader.into_tensors().map_err(|e| e.to_string())?;
    for tensor in &mut tensors {
        tensor.name = renamed(&tensor.name);
        tensor.param_id = tensor.param_id.and_then(|id| ids.get(&id).copied());
    }
    tensors.sort_by(|a, b| a.name.cmp(&b.name));
    let mut writer = Writer::new(tensors);
    for (name, value) in scalars {
        writer = writer.with_scalar(&renamed(&name), value);
    }
    for (name, value) in metadata {
        writer = writer.with_metadata(&renamed(&name), &value);
    }
    Ok(writer.into_bytes().map_err(|e| e.to_string())?.to_vec())
}

fn wrong(path: &Path, message: impl ToString) -> ModelError {
    ModelError::Checkpoint { file: path.to_owned(), message: message.to_string() }
}
