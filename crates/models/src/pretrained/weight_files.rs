//! Saves and loads parameters in Burn's own format.

use std::path::Path;

use burn::module::Module;
use burn::store::{ModuleRecord, RecordError};
use burn_gnn_data::{DataError, write_atomic};
use burn_gnn_files::internal::open;

use crate::error::ModelError;
use crate::params::param_ids::ParamIds;

/// Saves all parameters of `model` to a file. The file is written under a temporary name and renamed, so that the old file
/// or the new one exists if the process is killed at any time.
///
/// The file contains parameters by path, not the options of the model. Save its config separately (`Config::save` of
/// Burn).
///
/// # Errors
/// [`ModelError::Weights`] if Burn cannot record the model, [`ModelError::Graph`] if the file cannot be written. Both
/// contain the path.
///
/// ```
/// use burn::tensor::Device;
/// use burn_gnn_models::{GcnConfig, load_weights, save_weights};
/// let (device, dir) = (Device::flex(), tempfile::tempdir()?);
/// let model = GcnConfig::new(8, 3).init(&device);
/// save_weights(&model, dir.path().join("gcn.bpk"))?;
/// let same = load_weights(GcnConfig::new(8, 3).init(&device), dir.path().join("gcn.bpk"))?;
/// assert_eq!(same.layers[0].weight.as_ref().unwrap().to_data(), model.layers[0].weight.as_ref().unwrap().to_data());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn save_weights<M: Module>(model: &M, path: impl AsRef<Path>) -> Result<(), ModelError> {
    let path = path.as_ref();
    let remedy = "use a model whose parameters Burn can record";
    let bytes =
        model.clone().into_record().into_bytes().map_err(|e| weights(path, record(e), remedy))?;
    Ok(write_atomic(path, |file| file.write_all(&bytes))?)
}

/// Loads the parameters of `model` from a file of [`save_weights`].
///
/// Parameters keep their ids. Burn's `load_record` restores the ids of the record instead, so that two parts of a model
/// that load the same file would have the same ids and mix their gradients
/// ([`check_param_ids`](crate::check_param_ids)). To resume training with the record of an optimizer, which refers to
/// parameters by id, use [`resume_weights`].
///
/// # Errors
/// [`ModelError::Weights`] with the path: the file does not exist or has another format, or a parameter is missing or has
/// another shape.
pub fn load_weights<M: Module>(model: M, path: impl AsRef<Path>) -> Result<M, ModelError> {
    let ids = ParamIds::of(&model);
    Ok(ids.restore(resume_weights(model, path)?))
}

/// Loads the parameters of `model` and their ids, to which the record of an optimizer refers, to resume training. Load a
/// file into one part of a model only.
///
/// ```
/// use burn::module::Module;
/// use burn::optim::GradientsParams;
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_models::{FusedAdamConfig, Mlp, MlpConfig, resume_weights, save_weights};
/// let (device, dir) = (Device::flex().autodiff(), tempfile::tempdir()?);
/// let new = || (MlpConfig::new(vec![4, 2]).init(&device), FusedAdamConfig::new().init());
/// let grads = |model: &Mlp| {
///     let loss = model.forward(Tensor::ones([3, 4], &device)).powi_scalar(2).mean();
///     GradientsParams::from_grads(loss.backward(), model)
/// };
/// let (mut model, mut adam) = new();
/// model = adam.step(0.1, model.clone(), grads(&model));
///
/// // Save parameters and the moments of Adam.
/// save_weights(&model, dir.path().join("model.bpk"))?;
/// adam.save(dir.path().join("adam.bpk"))?;
/// let (again, adam_again) = new();
/// let again = resume_weights(again, dir.path().join("model.bpk"))?;
/// let mut adam_again = adam_again.load(dir.path().join("adam.bpk"))?;
///
/// let next = adam.step(0.1, model.clone(), grads(&model));
/// let resumed = adam_again.step(0.1, again.clone(), grads(&again));
/// assert_eq!(resumed.layers[0].weight.to_data(), next.layers[0].weight.to_data());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// As [`load_weights`].
pub fn resume_weights<M: Module>(model: M, path: impl AsRef<Path>) -> Result<M, ModelError> {
    let path = path.as_ref();
    let unreadable = "pass a file that `save_weights` wrote";
    // Burn returns the same error for a missing and a damaged file, and blocks on a pipe.
    open(path).map_err(|e| match e {
        DataError::Io { source, .. } => weights(path, source.to_string(), unreadable),
        DataError::Format { message, .. } => weights(path, message, unreadable),
        other => other.into(),
    })?;
    let saved = ModuleRecord::load(path).map_err(|e| weights(path, record(e), unreadable))?;
    let other = "initialize the model with the options that it had when the weights were saved";
    model.try_load_record(saved).map_err(|e| weights(path, record(e), other))
}

fn weights(path: &Path, message: String, remedy: &'static str) -> ModelError {
    ModelError::Weights { file: path.to_owned(), message, remedy }
}

/// Returns the message of Burn's error without its kind, which adds nothing to the remedy.
fn record(e: RecordError) -> String {
    let (RecordError::Io(message) | RecordError::Validation(message)) = e;
    let names = ["I/O error: ", "Validation error: ", "Apply errors: "];
    match names.iter().find_map(|name| message.strip_prefix(name)) {
        Some(rest) => rest.to_owned(),
        None => message,
    }
}

#[cfg(test)]
mod tests {
    use burn::module::Param;
    use burn::nn::LinearConfig;
    use burn::optim::GradientsParams;
    use burn::tensor::{Device, Tensor};
    use burn_gnn_testutil::faults::{files, full_disk, killed, small_disk, write_until_killed};

    use super::*;
    use crate::layers::dense::mlp::{Mlp, MlpConfig};
    use crate::networks::sage::SageConfig;
    use crate::params::param_ids::check_param_ids;
    use crate::training::fused_adam::FusedAdamConfig;
    use crate::training::gradient_sync::{GradientSync, NoSync};
    use burn_gnn_ops::seeded;

    #[test]
    fn what_was_saved_is_loaded() {
        let (device, dir) = (Device::flex(), tempfile::tempdir().unwrap());
        let new =
            |seed, hidden| seeded(seed, || SageConfig::new(4, 2).with_hidden(hidden).init(&device));
        let file = dir.path().join("sage.bpk");
        save_weights(&new(0, 8), &file).unwrap();
        let bytes = |file: &Path| std::fs::read(file).unwrap();
        let saved = bytes(&file);
        // Another model takes the weights and ids: saved again they are the same file.
        save_weights(&resume_weights(new(1, 8), &file).unwrap(), &file).unwrap();
        assert_eq!(bytes(&file), saved);
        save_weights(&new(1, 8), &file).unwrap();
        assert_ne!(bytes(&file), saved, "the file tells other weights from these");
    }

    /// A teacher and a student of one file: gradients go to the student alone.
    #[test]
    fn parts_that_load_one_file_have_their_own_ids() {
        let (device, dir) = (Device::flex().autodiff(), tempfile::tempdir().unwrap());
        let new = || MlpConfig::new(vec![3, 2]).init(&device);
        let file = dir.path().join("mlp.bpk");
        save_weights(&new(), &file).unwrap();
        let student = load_weights(new(), &file).unwrap();
        let teacher = load_weights(new(), &file).unwrap().freeze();
        let both = (teacher, student);
        check_param_ids(&both).unwrap();
        let weight = |m: &Mlp| m.layers[0].weight.val().inner().into_data();
        assert_eq!(weight(&both.0), weight(&both.1));
        let step = |both: (Mlp, Mlp)| {
            let y = both.1.forward(Tensor::ones([4, 3], &device)).sum();
            let grads = GradientsParams::from_grads(y.backward(), &both);
            FusedAdamConfig::new().init().step(0.1, both, grads)
        };
        let after = step(both.clone());
        assert_eq!(weight(&after.0), weight(&both.0), "the frozen teacher moved");
        assert_ne!(weight(&after.1), weight(&both.1));

        // With the ids of the file they clash, which is an error.
        let shared = || resume_weights(new(), &file).unwrap();
        let text = check_param_ids(&(shared().freeze(), shared())).unwrap_err().to_string();
        assert!(text.contains("`0.layers.0.weight` and `1.layers.0.weight`"), "{text}");
        assert!(NoSync.check_replicas(&(shared(), shared()), &|_| false).is_err());
        // Ids of the model stay, so an optimizer that knows them goes on.
        let model = new();
        let id = model.layers[0].weight.id;
        assert_eq!(load_weights(model.clone(), &file).unwrap().layers[0].weight.id, id);
        assert_ne!(resume_weights(model, &file).unwrap().layers[0].weight.id, id);
    }

    #[test]
    fn errors_name_the_file() {
        let (device, dir) = (Device::flex(), tempfile::tempdir().unwrap());
        let new = |hidden| SageConfig::new(4, 2).with_hidden(hidden).init(&device);
        let file = dir.path().join("sage.bpk");
        let refused = |part: &str| {
            let e = load_weights(new(16), &file).unwrap_err();
            assert!(matches!(e, ModelError::Weights { .. }));
            let text = e.to_string();
            assert!(text.contains(&file.display().to_string()) && text.contains(part), "{text}");
            assert!(!text.contains("rror: "), "the name of an error says nothing more: {text}");
        };
        refused("pass a file that `save_weights` wrote");
        save_weights(&new(8), &file).unwrap();
        refused("16");
        refused("initialize the model with the options");
        std::fs::write(&file, b"no weights").unwrap();
        refused("pass a file that `save_weights` wrote");
        #[cfg(unix)]
        {
            std::fs::remove_file(&file).unwrap();
            std::os::unix::fs::symlink("/dev/zero", &file).unwrap();
            refused("expected a regular file, found a device");
        }
        let nowhere = dir.path().join("none/sage.bpk");
        let text = save_weights(&new(8), &nowhere).unwrap_err().to_string();
        assert!(text.contains(&nowhere.display().to_string()), "{text}");
        assert!(text.contains("create it first"), "{text}");
    }

    /// Saves a layer whose weights are its version.
    fn saved(dir: &Path, version: u64) -> Result<(), ModelError> {
        let device = Device::flex();
        let mut layer = LinearConfig::new(64, 64).with_bias(false).init(&device);
        layer.weight = Param::from_tensor(Tensor::full([64, 64], version as f32, &device));
        save_weights(&layer, dir.join("layer.bpk"))
    }

    fn version(dir: &Path) -> Option<u64> {
        let path = dir.join("layer.bpk");
        path.exists().then(|| {
            let layer = LinearConfig::new(64, 64).with_bias(false).init(&Device::flex());
            let layer = load_weights(layer, path).unwrap();
            let all: Vec<f32> = layer.weight.val().into_data().iter::<f32>().collect();
            assert!(all.iter().all(|x| *x == all[0]));
            all[0] as u64
        })
    }

    #[test]
    fn weights_to_be_killed() {
        write_until_killed(|dir, version| saved(dir, version).unwrap());
    }

    #[test]
    fn writers_killed_at_any_moment() {
        let dir =
            killed("weights", "pretrained::weight_files::tests::weights_to_be_killed", version);
        saved(dir.path(), 0).unwrap();
        assert_eq!(files(dir.path()), [dir.path().join("layer.bpk")]);
    }

    #[test]
    fn writers_on_a_full_disk() {
        let test = "pretrained::weight_files::tests::writers_on_a_full_disk";
        let Some(disk) = small_disk(test, 512) else { return };
        let write = |version| move |dir: &Path| saved(dir, version).map_err(|e| e.to_string());
        let name = |dir: &Path| if version(dir) == Some(1) { "old" } else { "new" };
        full_disk("weights", &disk, |dir| write(1)(dir).unwrap(), write(2), name);
    }
}
