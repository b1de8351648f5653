//! Reads pickles of NumPy arrays, SciPy matrices, PyTorch tensors and containers; runs no code.
//!
//! A pickle is a program for a stack machine that may call any function of Python. This reader implements the opcodes of
//! protocols 0 to 5 that data need and, in place of functions, a list of constructors of such data; any other name is an
//! error. Memory is bounded: values take at most 3 bytes for each byte of the pickle and 6 MiB.

mod blocks;
mod construct;
mod machine;
mod reader;
mod value;
mod values;

pub(crate) use reader::Pickle;
pub(crate) use value::{Id, Value, Vocabulary};
#[cfg(feature = "torch")]
pub(crate) use value::{StorageType, View};
