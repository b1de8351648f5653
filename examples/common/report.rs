//! What the examples print and save.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use burn::module::Module;
use burn::store::{ModuleSnapshot, SafetensorsStore};
use burn_gnn::models::Epoch;

pub(crate) fn epoch(e: &Epoch) {
    let val = match (e.val_accuracy, e.val_loss) {
        (Some(a), Some(l)) => format!("  val loss {l:.4}  val {:5.1} %", 100.0 * a),
        _ => String::new(),
    };
    println!("epoch {:>3}  loss {:.4}  train {:5.1} %{val}", e.epoch + 1, e.loss, 100.0 * e.train_accuracy);
}

/// The message with its causes, without a backtrace, and the exit status.
pub(crate) fn finish(result: Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("error: {e:#}");
            ExitCode::FAILURE
        }
    }
}

pub(crate) fn percent(x: f64) -> String {
    format!("{:.1} %", 100.0 * x)
}

/// Writes parameters under a temporary name, then renames.
pub(crate) fn save<M: Module>(model: &M, file: &Path) -> Result<()> {
    let tmp = file.with_extension("safetensors.tmp");
    let mut store = SafetensorsStore::from_file(&tmp).overwrite(true).metadata("producer", "burn-gnn");
    model.save_into(&mut store).with_context(|| format!("writing {}", tmp.display()))?;
    std::fs::rename(&tmp, file).with_context(|| format!("renaming {}", tmp.display()))
}

/// Reads parameters into a model of the same shape; every parameter must be in the file.
pub(crate) fn load<M: Module>(model: &mut M, file: &Path) -> Result<()> {
    model.load_from(&mut SafetensorsStore::from_file(file)).with_context(|| format!("reading {}", file.display()))?;
    Ok(())
}
