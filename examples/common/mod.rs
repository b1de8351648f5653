//! What the training examples share: data, devices, ranks, the report.

#![allow(dead_code)] // each example uses its part

pub(crate) mod curves;
pub(crate) mod data;
pub(crate) mod launch;
pub(crate) mod ranks;
pub(crate) mod report;
pub(crate) mod seeds;

use anyhow::{Context, Result, bail};
use burn::tensor::{Device, DeviceConfig, FloatDType};
use clap::ValueEnum;

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum BackendName {
    /// Burn's pure Rust CPU backend.
    Flex,
    /// Burn's ndarray backend.
    Ndarray,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Precision {
    F32,
    F64,
}

/// The device asked for, with its default precision set. Call before any tensor is made: Burn lets a
/// device's defaults be set once per process.
pub(crate) fn device(backend: BackendName, precision: Precision) -> Result<Device> {
    let mut device = match backend {
        BackendName::Flex => Device::flex(),
        // Deprecated by Burn, still asked for.
        #[allow(deprecated)]
        BackendName::Ndarray => Device::ndarray(),
    };
    let dtype = match precision {
        Precision::F32 => FloatDType::F32,
        Precision::F64 => FloatDType::F64,
    };
    if let Err(e) = device.configure(DeviceConfig::default().float_dtype(dtype)) {
        bail!("setting the precision of {device:?} failed: {e:?}");
    }
    Ok(device)
}

/// A folder for files of this run: the one asked for, or a temporary one that goes away with the guard.
pub(crate) fn out_dir(asked: Option<&std::path::Path>) -> Result<(std::path::PathBuf, Option<tempfile::TempDir>)> {
    if let Some(dir) = asked {
        std::fs::create_dir_all(dir).with_context(|| format!("creating {}", dir.display()))?;
        return Ok((dir.to_owned(), None));
    }
    let guard = tempfile::tempdir().context("creating a temporary folder")?;
    Ok((guard.path().to_owned(), Some(guard)))
}
