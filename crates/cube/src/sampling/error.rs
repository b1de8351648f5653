//! Errors of sampling on a device.

use burn::backend::DispatchDevice;
use burn::tensor::Device;
use burn_cubecl::CubeDevice;

use crate::device::error::CubeError;

/// A sampler cannot run on a device.
#[derive(Debug)]
pub enum DeviceSampleError {
    /// The graph does not fit on the device.
    Device(CubeError),
    /// The device is not a GPU.
    NoKernels {
        /// The device.
        device: Box<Device>,
    },
    /// A setting is not supported on devices.
    Lacks {
        /// Name of the setting.
        what: &'static str,
    },
}

impl std::fmt::Display for DeviceSampleError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Device(e) => e.fmt(f),
            Self::NoKernels { device } => {
                write!(
                    f,
                    "sampling on a device needs a GPU device, got {device:?}; use the sampler on the host instead"
                )
            }
            Self::Lacks { what } => {
                write!(
                    f,
                    "GPU sampling does not support {what}; use the sampler on the host instead"
                )
            }
        }
    }
}

impl std::error::Error for DeviceSampleError {}

impl From<CubeError> for DeviceSampleError {
    fn from(e: CubeError) -> Self {
        Self::Device(e)
    }
}

/// The device on which kernels of `device` run.
pub(super) fn cube_device(device: &Device) -> Result<CubeDevice, DeviceSampleError> {
    match device.clone().without_autodiff().as_dispatch().clone() {
        DispatchDevice::Cube(device) => Ok(device),
        _ => Err(DeviceSampleError::NoKernels { device: Box::new(device.clone()) }),
    }
}
