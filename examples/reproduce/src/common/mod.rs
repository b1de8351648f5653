//! Shares devices, data, ranks and reports between the training examples.

#![allow(dead_code)] // each example uses its part

pub(crate) mod data;
pub(crate) mod launch;
pub(crate) mod plot;
pub(crate) mod report;
pub(crate) mod seeds;

use anyhow::{Context, Result, bail};
use burn::tensor::{Device, DeviceConfig, FloatDType};
use clap::ValueEnum;

/// Backends that were compiled in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum BackendName {
    /// Burn's pure Rust CPU backend.
    Flex,
    /// Burn's ndarray backend.
    #[cfg(feature = "ndarray")]
    Ndarray,
    /// The best GPU through WebGPU, software Vulkan where there is none.
    #[cfg(feature = "wgpu")]
    Wgpu,
    /// The same with shaders compiled to SPIR-V.
    #[cfg(feature = "vulkan")]
    Vulkan,
    /// The same with Metal's own shaders.
    #[cfg(feature = "metal")]
    Metal,
    /// The first AMD GPU, through ROCm.
    #[cfg(feature = "rocm")]
    Rocm,
    /// The first NVIDIA GPU, through CUDA.
    #[cfg(feature = "cuda")]
    Cuda,
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
        #[cfg(feature = "ndarray")]
        #[allow(deprecated)]
        BackendName::Ndarray => Device::ndarray(),
        #[cfg(feature = "wgpu")]
        BackendName::Wgpu => wgpu().context(
            "Vulkan, Metal and DirectX find no adapter here (software Vulkan: docs/gpu.md)",
        )?,
        #[cfg(feature = "vulkan")]
        BackendName::Vulkan => Device::vulkan(burn::tensor::DeviceKind::DefaultDevice),
        #[cfg(feature = "metal")]
        BackendName::Metal => Device::metal(burn::tensor::DeviceKind::DefaultDevice),
        #[cfg(feature = "rocm")]
        BackendName::Rocm => Device::rocm(0),
        #[cfg(feature = "cuda")]
        BackendName::Cuda => cuda().context("CUDA finds no GPU here")?,
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

/// The device that Burn's wgpu backend takes by itself: a GPU, else software Vulkan; `None` where the
/// system has no adapter, which making the device would panic about.
#[cfg(feature = "wgpu")]
pub(crate) fn wgpu() -> Option<Device> {
    use burn::tensor::{DeviceKind, DeviceType};
    (!Device::enumerate(DeviceType::Wgpu).is_empty())
        .then(|| Device::wgpu(DeviceKind::DefaultDevice))
}

/// Not compiled in.
#[cfg(not(feature = "wgpu"))]
pub(crate) fn wgpu() -> Option<Device> {
    None
}

/// The first NVIDIA GPU; `None` where there is none.
#[cfg(feature = "cuda")]
pub(crate) fn cuda() -> Option<Device> {
    (!Device::enumerate(burn::tensor::DeviceType::Cuda).is_empty()).then(|| Device::cuda(0))
}

/// Not compiled in.
#[cfg(not(feature = "cuda"))]
pub(crate) fn cuda() -> Option<Device> {
    None
}

/// A folder for files of this run: the one asked for, or a temporary one that goes away with the guard.
pub(crate) fn out_dir(
    asked: Option<&std::path::Path>,
) -> Result<(std::path::PathBuf, Option<tempfile::TempDir>)> {
    if let Some(dir) = asked {
        std::fs::create_dir_all(dir).with_context(|| format!("creating {}", dir.display()))?;
        return Ok((dir.to_owned(), None));
    }
    let guard = tempfile::tempdir().context("creating a temporary folder")?;
    Ok((guard.path().to_owned(), Some(guard)))
}
