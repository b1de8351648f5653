//! Defines the errors of sampling on devices.

/// Why a graph cannot be worked on by a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CubeError {
    /// An array is larger than one buffer of the device.
    TooLarge {
        /// Which array.
        what: &'static str,
        /// Its entries, 4 bytes each.
        entries: usize,
        /// Bytes that it takes.
        bytes: u64,
        /// Bytes that one buffer of the device holds.
        limit: u64,
        /// The device.
        device: String,
    },
    /// A kernel reads and writes more arrays than the device binds at once.
    TooManyArrays {
        /// Arrays of the kernel.
        arrays: usize,
        /// Arrays that the device binds.
        limit: usize,
        /// The device.
        device: String,
    },
}

impl std::fmt::Display for CubeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::TooLarge { what, entries, bytes, limit, device } => write!(
                f,
                "{what} of the graph need {bytes} bytes ({entries} entries) in one buffer, device {device} holds {limit} bytes in a \
                 buffer; cut the graph into parts, or sample it"
            ),
            Self::TooManyArrays { arrays, limit, device } => write!(
                f,
                "a kernel needs {arrays} arrays, device {device} binds {limit}; sample with fewer of weights, masks, times, excluded edges \
                 and original ids, or on the host"
            ),
        }
    }
}

impl std::error::Error for CubeError {}
