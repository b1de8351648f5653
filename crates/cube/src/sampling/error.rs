//! Errors of sampling on a device.

use burn::backend::DispatchDevice;
use burn::tensor::Device;
use burn_cubecl::CubeDevice;

use crate::device::error::CubeError;

/// Why a device cannot sample.
#[derive(Debug)]
pub enum DeviceSampleError {
    /// The graph does not fit.
    Device(CubeError),
    /// The device is not a GPU.
    NoKernels {
        /// The device.
        device: Box<Device>,
    },
    /// A setting that the host alone knows.
    Lacks {
        /// Which one.
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
                    "sampling on a device needs one of a GPU backend, got {device:?}; on others use the sampler on the host"
                )
            }
            Self::Lacks { what } => {
                write!(f, "devices do not sample with {what}; the sampler on the host does")
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

/// The device of kernels.
pub(super) fn cube_device(device: &Device) -> Result<CubeDevice, DeviceSampleError> {
    match device.clone().without_autodiff().as_dispatch().clone() {
        DispatchDevice::Cube(device) => Ok(device),
        _ => Err(DeviceSampleError::NoKernels { device: Box::new(device.clone()) }),
    }
}
