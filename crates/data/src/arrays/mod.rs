//! Reads and writes binary files of arrays: `.npy`, Parquet columns, `.pt`, and the pickles in some of them.

pub(crate) mod npy;
#[cfg(feature = "parquet")]
pub(crate) mod parquet;
pub(crate) mod pickle;
#[cfg(feature = "torch")]
pub(crate) mod torch;
