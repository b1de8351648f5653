//! Errors of graphs that do not fit on a device.

/// A graph does not fit on a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CubeError {
    /// An array is larger than one buffer of the device.
    TooLarge {
        /// Name of the array.
        what: &'static str,
        /// Number of entries, of 4 bytes each.
        entries: usize,
        /// Size of the array in bytes.
        bytes: u64,
        /// Size of the largest buffer of the device in bytes.
        limit: u64,
        /// The device.
        device: String,
    },
    /// A kernel has more arrays than the device can bind.
    TooManyArrays {
        /// Number of arrays of the kernel.
        arrays: usize,
        /// Number of arrays that the device can bind.
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
                "{what} of the graph need {bytes} bytes ({entries} entries) in one buffer, but device {device} allows {limit} bytes per \
                 buffer; partition the graph, or sample it"
            ),
            Self::TooManyArrays { arrays, limit, device } => write!(
                f,
                "a kernel needs {arrays} arrays, but device {device} binds {limit}; use fewer of weights, masks, times, excluded edges \
                 and original ids, or sample on the host"
            ),
        }
    }
}

impl std::error::Error for CubeError {}
