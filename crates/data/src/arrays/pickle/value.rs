//! Defines the values of a pickle.

use burn::tensor::{BoolStore, DType};

/// A step of the reader; the error states what was expected and found.
pub(super) type Step<T = ()> = Result<T, String>;

/// Id of a value: its position among all values or, with the highest bit set, a whole number of 31 bits.
///
/// Pickles of graphs consist mainly of small whole numbers. Stored in the id, they take no other memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Id(u32);

impl Id {
    const SMALL: u32 = 1 << 31;

    /// The value at a position, which is below 2^31.
    pub(super) const fn at(position: u32) -> Self {
        Self(position)
    }
    /// A whole number, if it fits in 31 bits.
    pub(super) fn of_int(value: i64) -> Option<Self> {
        let range = -i64::from(Self::SMALL >> 1)..i64::from(Self::SMALL >> 1);
        range.contains(&value).then_some(Self(value as u32 | Self::SMALL))
    }
    /// The whole number, or the position as an error.
    pub(super) fn int(self) -> Result<i64, u32> {
        // The highest bit is the mark; the one below is the sign.
        let value = (self.0 << 1).cast_signed() >> 1;
        if self.0 & Self::SMALL > 0 { Ok(i64::from(value)) } else { Err(self.0) }
    }
}

/// A value. Containers store the ids of their items, which may be filled later.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value {
    None,
    Bool(bool),
    Int(i64),
    /// A float, or another value whose content is not read.
    Other,
    /// Bytes of the file, or decoded from a text.
    Bytes(Span),
    /// Text in UTF-8.
    Text(Span),
    /// Position among the lists; `None` for an empty list.
    List(Option<u32>),
    /// Range of the items of all tuples.
    Tuple(Span),
    /// Position among the dictionaries; `None` for an empty dictionary.
    Dict(Option<u32>),
    /// A constructor that a pickle may call.
    Constructor(Constructor),
    /// A dtype: its name, and its byte order once that is set.
    DType(Span, Option<u8>),
    /// Position among the arrays; `None` until its state is set.
    Array(Option<u32>),
    /// A SciPy matrix: its attributes, once they are set.
    Matrix(Option<Id>),
    /// Position among the storages of tensors.
    Storage(u32),
    /// Position among the tensors.
    #[cfg_attr(not(feature = "torch"), allow(dead_code))]
    Tensor(u32),
}

const _: () = assert!(size_of::<Value>() == 16, "one byte of a pickle makes a value");

/// A range of a buffer. Pickles have fewer than 2^30 bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Span {
    pub(super) start: u32,
    pub(super) len: u32,
}

impl Span {
    pub(super) fn new(start: usize, len: usize) -> Self {
        Self { start: start as u32, len: len as u32 }
    }
    pub(super) fn len(self) -> usize {
        self.len as usize
    }
    pub(super) fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.start as usize + self.len()
    }
}

/// A constructor that a pickle may call, or a class that it may name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Constructor {
    Reconstruct,
    NdArray,
    DType,
    CsrMatrix,
    DefaultDict,
    ListType,
    ObjectType,
    CopyReconstructor,
    Encode,
    OrderedDict,
    RebuildTensor,
    RebuildParameter,
    Set,
    /// A class whose values are not read, or that is named and not called.
    Other,
    /// A class of PyTorch Geometric.
    Pyg,
    Storage(StorageType),
}

/// The libraries whose constructors a pickle may call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Vocabulary {
    /// NumPy and SciPy.
    Numpy,
    /// PyTorch.
    #[cfg_attr(not(feature = "torch"), allow(dead_code))]
    Torch,
}

/// A pickled array.
#[derive(Clone, Copy, Debug)]
pub(super) struct Array {
    /// A tuple of lengths.
    pub(super) shape: Id,
    /// In NumPy's notation, such as `f4` or `i8`.
    pub(super) dtype: &'static str,
    /// Several arrays may share them.
    pub(super) bytes: Span,
}

/// Element type of a storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum StorageType {
    F64,
    F32,
    F16,
    BF16,
    I64,
    I32,
    I16,
    I8,
    U8,
    Bool,
}

impl StorageType {
    /// Each type with the name of its class in `torch` and Burn's element type.
    const ALL: [(Self, &str, DType); 10] = [
        (Self::F64, "DoubleStorage", DType::F64),
        (Self::F32, "FloatStorage", DType::F32),
        (Self::F16, "HalfStorage", DType::F16),
        (Self::BF16, "BFloat16Storage", DType::BF16),
        (Self::I64, "LongStorage", DType::I64),
        (Self::I32, "IntStorage", DType::I32),
        (Self::I16, "ShortStorage", DType::I16),
        (Self::I8, "CharStorage", DType::I8),
        (Self::U8, "ByteStorage", DType::U8),
        (Self::Bool, "BoolStorage", DType::Bool(BoolStore::Native)),
    ];

    pub(super) fn of(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|known| known.1 == name).map(|known| known.0)
    }
    #[cfg(feature = "torch")]
    pub(crate) fn dtype(self) -> DType {
        match Self::ALL.iter().find(|known| known.0 == self) {
            Some(known) => known.2,
            None => unreachable!("every type is in the list"),
        }
    }
}

/// The elements of tensors, which are stored outside of the pickle.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(feature = "torch"), allow(dead_code))]
pub(super) struct Storage {
    pub(super) kind: StorageType,
    pub(super) key: Span,
}

/// A pickled tensor: a strided view of a storage.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(feature = "torch"), allow(dead_code))]
pub(super) struct Strided {
    pub(super) storage: u32,
    pub(super) offset: u64,
    /// A tuple of lengths.
    pub(super) shape: Id,
    /// A tuple of distances, in elements.
    pub(super) strides: Id,
}

/// The part of a storage that is a tensor.
#[cfg(feature = "torch")]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct View {
    pub(crate) offset: u64,
    pub(crate) shape: Vec<usize>,
    /// In elements.
    pub(crate) strides: Vec<usize>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_store_whole_numbers_of_31_bits() {
        for value in [0, 1, -1, 255, 65_535, -(1 << 30), (1 << 30) - 1] {
            assert_eq!(Id::of_int(value).unwrap().int(), Ok(value));
        }
        for value in [1 << 30, -(1 << 30) - 1, i64::MAX, i64::MIN, 1 << 32] {
            assert_eq!(Id::of_int(value), None);
        }
        assert_eq!(Id::at(7).int(), Err(7));
    }
}
