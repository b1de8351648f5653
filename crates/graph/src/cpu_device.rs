//! The CPU device of this build.

use burn::tensor::Device;

/// Burn's CPU backend: Flex, or ndarray in a build without Flex. `Device::default` would be a GPU in a build with one,
/// also where another crate enables its backend.
pub fn cpu_device() -> Device {
    #[cfg(feature = "flex")]
    return Device::flex();
    #[cfg(all(feature = "ndarray", not(feature = "flex")))]
    #[allow(deprecated)]
    return Device::ndarray();
    #[cfg(not(any(feature = "flex", feature = "ndarray")))]
    Device::default()
}
