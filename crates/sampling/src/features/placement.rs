//! Defines `Placement`: memory, mapped file or device.

use burn::tensor::Device;

/// Where the edges of a graph, or some of its feature rows, are stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Placement {
    /// In memory. The file is read and closed; it may be changed or removed afterwards.
    #[default]
    Memory,
    /// In a file that is mapped into memory. The operating system reads pages on access, caches them, and drops them
    /// when memory is short.
    ///
    /// For the edges of a graph, the endpoints stay in the file. Row offsets and edge ids, which unsafe kernels rely on,
    /// are in memory: at most 8 bytes per edge (4 per layout whose order differs from that of the edges) and 4 bytes per
    /// node and layout.
    ///
    /// No program may change the file while it is mapped. Changed contents are another graph, or cause a panic when a
    /// node does not exist. A truncated file terminates the process (SIGBUS on Unix) when an edge after the new end is
    /// read. The file holds a shared advisory lock ([`File::lock_shared`](std::fs::File::lock_shared)) while it is mapped;
    /// opening a file that another program has locked for writing is an error.
    Mapped,
    /// In the memory of a device: for feature rows ([`UnifiedRows`](crate::UnifiedRows)) only. Operators copy edges to a
    /// device when they first need them there.
    Device(Device),
}
