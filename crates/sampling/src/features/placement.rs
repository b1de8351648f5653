//! Defines the placement of data: in memory, in a mapped file or on a device.

use burn::tensor::Device;

/// Where the structure of a graph or a part of its feature rows lives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Placement {
    /// In memory: the file is read and closed, and may be changed, cut short or removed afterwards.
    #[default]
    Memory,
    /// In a file mapped into memory: the system reads what is asked for, keeps what is met often, and drops it when
    /// memory is short.
    ///
    /// Nodes at both endpoints of the edges stay in the file. Row offsets and edge ids, which kernels rely on, are in
    /// memory: 8 bytes per edge at most (4 for each layout whose order is not that of the edges) and 4 per node for
    /// each layout.
    ///
    /// The file must not be changed while it is mapped, by any program. A program that changes it all the same makes
    /// another graph of it, or a panic in whoever reads a node that does not exist; one that cuts it short ends the
    /// process (SIGBUS on Unix) when an edge behind the new end is read. The file has a shared advisory lock
    /// ([`File::lock_shared`](std::fs::File::lock_shared)) meanwhile, and a file that another program has locked to
    /// write it is refused.
    Mapped,
    /// In the memory of a device: for rows of features ([`UnifiedRows`](crate::UnifiedRows)), not for the structure,
    /// which operators copy to a device when they first need it there.
    Device(Device),
}
