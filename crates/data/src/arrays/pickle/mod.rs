//! Reads pickles of NumPy arrays, SciPy matrices, PyTorch tensors and containers; runs no code.
//!
//! A pickle is a program for a stack machine that may call any function of Python. This reader has the opcodes of
//! protocols 0 to 5 that data need, and in place of functions a list of the constructors that such data name; whatever
//! else is named is refused. Values that several places of a pickle share are kept once, so that memory stays a small
//! multiple of the file.

mod blocks;
mod construct;
mod machine;

use std::path::Path;

use burn::tensor::{BoolStore, DType};
use burn_gnn_files::DataError;

use crate::columns::narrow;
use crate::files::{cut, format_error};
use blocks::Blocks;
use construct::Known;
pub(crate) use construct::Vocabulary;
use machine::{Machine, Step};

/// Place of a value among all.
pub(crate) type Id = u32;

/// A value, as small as can be, since one byte of a pickle may make one. Containers hold the places of others, which
/// may be filled after they were put in.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value {
    None,
    Bool(bool),
    Int(i64),
    /// A float, or another value that nothing is read of.
    Other,
    /// Bytes of the file, or made of a text.
    Bytes(Span),
    /// Text in UTF-8.
    Text(Span),
    /// Place among the lists; `None` for one that nothing was put in.
    List(Option<u32>),
    /// Items among those of all tuples.
    Tuple(Span),
    /// Place among the dictionaries; `None` for one that nothing was put in.
    Dict(Option<u32>),
    /// A constructor that is known.
    Known(Known),
    /// A dtype: its name, then its byte order.
    DType(Span, Option<u8>),
    /// Place among the arrays, `None` until its state is set.
    Array(Option<u32>),
    /// A SciPy matrix: its attributes, once they are set.
    Matrix(Option<Id>),
    /// Place among the storages of tensors.
    Storage(u32),
    /// Place among the tensors.
    #[cfg_attr(not(feature = "torch"), allow(dead_code))]
    Tensor(u32),
}

const _: () = assert!(size_of::<Value>() == 16, "one byte of a pickle makes a value");

/// A part of a buffer. Files have less than 2^30 bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Span {
    start: u32,
    len: u32,
}

impl Span {
    fn new(start: usize, len: usize) -> Self {
        Self { start: start as u32, len: len as u32 }
    }
    fn len(self) -> usize {
        self.len as usize
    }
    fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.start as usize + self.len()
    }
}

/// An array as it was pickled.
#[derive(Clone, Copy, Debug)]
struct Array {
    /// A tuple of lengths.
    shape: Id,
    /// As NumPy writes it, like `f4` or `i8`.
    dtype: &'static str,
    /// Several arrays may share them.
    bytes: Span,
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
    /// Each with the name of its class in `torch`, and Burn's element type.
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

    fn of(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|known| known.1 == name).map(|known| known.0)
    }
    #[cfg(feature = "torch")]
    pub(crate) fn dtype(self) -> DType {
        match Self::ALL.iter().find(|known| known.0 == self) {
            Some(known) => known.2,
            None => unreachable!("every type is listed"),
        }
    }
}

/// Elements of tensors, which lie outside of the pickle.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(feature = "torch"), allow(dead_code))]
struct Storage {
    kind: StorageType,
    key: Span,
}

/// A tensor: a view of a storage.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(feature = "torch"), allow(dead_code))]
struct Strided {
    storage: u32,
    offset: u64,
    /// A tuple of lengths.
    shape: Id,
    /// A tuple of distances, in elements.
    strides: Id,
}

/// A tensor as it was pickled.
#[cfg(feature = "torch")]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct View {
    pub(crate) offset: u64,
    pub(crate) shape: Vec<usize>,
    /// In elements.
    pub(crate) strides: Vec<usize>,
}

/// All values, and what they hold.
#[derive(Default)]
struct Store<'a> {
    bytes: &'a [u8],
    /// Bytes that do not stand in the file as they are; their spans begin behind its end.
    made: Vec<u8>,
    values: Blocks<Value>,
    items: Vec<Id>,
    lists: Blocks<Vec<Id>>,
    dicts: Blocks<Vec<(Id, Id)>>,
    arrays: Vec<Array>,
    storages: Vec<Storage>,
    tensors: Vec<Strided>,
}

impl Store<'_> {
    fn get(&self, id: Id) -> &Value {
        &self.values[id]
    }
    fn part(&self, span: Span) -> &[u8] {
        match (span.start as usize).checked_sub(self.bytes.len()) {
            Some(start) if span.len > 0 => &self.made[start..start + span.len()],
            _ => &self.bytes[span.range()],
        }
    }
    fn text(&self, id: Id) -> Option<&str> {
        if let Value::Text(span) = *self.get(id) {
            std::str::from_utf8(self.part(span)).ok()
        } else {
            None
        }
    }
    /// A text that was checked, or nothing.
    #[cfg(feature = "torch")]
    fn name(&self, span: Span) -> &str {
        std::str::from_utf8(self.part(span)).unwrap_or_default()
    }
    /// What a tuple holds; nothing for another value.
    fn items(&self, id: Id) -> &[Id] {
        if let Value::Tuple(span) = *self.get(id) { &self.items[span.range()] } else { &[] }
    }
    /// Takes bytes up that were made of others. A text may be named again and again, so all together are no more than
    /// the file has.
    fn make(&mut self, bytes: &[u8]) -> Step<Span> {
        if bytes.is_empty() {
            return Ok(Span::default());
        }
        if self.made.len() + bytes.len() > self.bytes.len() {
            return Err(
                "expected every text once, found one that is made bytes again and again".into()
            );
        }
        let span = Span::new(self.bytes.len() + self.made.len(), bytes.len());
        self.made.extend_from_slice(bytes);
        Ok(span)
    }
    fn tuple(&mut self, items: &[Id]) -> Value {
        let span = Span::new(self.items.len(), items.len());
        self.items.extend_from_slice(items);
        Value::Tuple(span)
    }
}

/// A pickle that was read.
pub(crate) struct Pickle<'a> {
    path: &'a Path,
    store: Store<'a>,
    top: Id,
    /// Where it ends in the bytes.
    #[cfg_attr(not(feature = "torch"), allow(dead_code))]
    pub(crate) end: usize,
}

impl<'a> Pickle<'a> {
    /// Reads the first pickle of `bytes`, of which there are fewer than 2^30.
    pub(crate) fn read(
        path: &'a Path,
        bytes: &'a [u8],
        vocabulary: Vocabulary,
    ) -> Result<Self, DataError> {
        let mut m = Machine::new(bytes, vocabulary);
        let top =
            m.run().map_err(|why| format_error(path, format!("pickle, byte {}: {why}", m.at)))?;
        Ok(Self { path, end: m.at, store: m.store, top })
    }
    /// What was pickled.
    pub(crate) fn top(&self) -> Id {
        self.top
    }
    pub(crate) fn get(&self, id: Id) -> &Value {
        self.store.get(id)
    }
    /// What a list holds.
    pub(crate) fn list(&self, id: Id) -> Option<&[Id]> {
        match *self.get(id) {
            Value::List(Some(at)) => Some(&self.store.lists[at]),
            Value::List(None) => Some(&[]),
            _ => None,
        }
    }
    /// What a tuple or a list holds; nothing for another value.
    pub(crate) fn items(&self, id: Id) -> &[Id] {
        self.list(id).unwrap_or_else(|| self.store.items(id))
    }
    /// The entries of a dictionary.
    pub(crate) fn dict(&self, id: Id) -> Option<&[(Id, Id)]> {
        match *self.get(id) {
            Value::Dict(Some(at)) => Some(&self.store.dicts[at]),
            Value::Dict(None) => Some(&[]),
            _ => None,
        }
    }
    /// An error that says what was expected.
    pub(crate) fn wrong(&self, expected: &str, id: Id) -> DataError {
        let found = match *self.get(id) {
            Value::List(_) => format!("a list of {}", self.items(id).len()),
            Value::Tuple(_) => format!("a tuple of {}", self.items(id).len()),
            Value::Dict(_) => format!("a dictionary of {}", self.dict(id).map_or(0, <[_]>::len)),
            Value::Bytes(v) => format!("{} bytes", v.len()),
            Value::Text(v) => {
                format!("the text `{}`", cut(&String::from_utf8_lossy(self.store.part(v))))
            }
            Value::Int(v) => format!("the number {v}"),
            Value::Array(Some(at)) => {
                let array = self.store.arrays[at as usize];
                format!(
                    "an array {:?} of {}",
                    self.store.lengths(array.shape).unwrap_or_default(),
                    array.dtype
                )
            }
            Value::Other => "a float or another value".into(),
            other => format!("{other:?}"),
        };
        format_error(self.path, format!("expected {expected}, found {found}"))
    }
    pub(crate) fn int(&self, id: Id) -> Result<i64, DataError> {
        if let Value::Int(i) = *self.get(id) {
            Ok(i)
        } else {
            Err(self.wrong("a whole number", id))
        }
    }
    /// Shape of an array.
    pub(crate) fn shape(&self, id: Id) -> Result<Vec<usize>, DataError> {
        Ok(self.store.lengths(self.array(id)?.shape).unwrap_or_default())
    }
    /// The whole numbers of an array.
    pub(crate) fn ints(&self, id: Id) -> Result<Vec<i64>, DataError> {
        let (dtype, b) = self.data(id)?;
        Ok(match dtype {
            "i1" => b.iter().map(|&x| i64::from(x as i8)).collect(),
            "u1" | "b1" => b.iter().map(|&x| i64::from(x)).collect(),
            "i2" => b.as_chunks().0.iter().map(|&x| i64::from(i16::from_le_bytes(x))).collect(),
            "i4" => b.as_chunks().0.iter().map(|&x| i64::from(i32::from_le_bytes(x))).collect(),
            "i8" => b.as_chunks().0.iter().map(|&x| i64::from_le_bytes(x)).collect(),
            _ => return Err(self.wrong("an array of whole numbers", id)),
        })
    }
    /// The numbers of an array.
    pub(crate) fn floats(&self, id: Id) -> Result<Vec<f32>, DataError> {
        let (dtype, b) = self.data(id)?;
        Ok(match dtype {
            "f4" => b.as_chunks().0.iter().map(|&x| f32::from_le_bytes(x)).collect(),
            "f8" => {
                let doubles: Vec<f64> =
                    b.as_chunks().0.iter().map(|&x| f64::from_le_bytes(x)).collect();
                narrow::array(self.path, &doubles, narrow::from_f64)?
            }
            _ => narrow::array(self.path, &self.ints(id)?, narrow::from_i64)?,
        })
    }
    fn array(&self, id: Id) -> Result<&Array, DataError> {
        match *self.get(id) {
            Value::Array(Some(at)) => Ok(&self.store.arrays[at as usize]),
            _ => Err(self.wrong("a NumPy array", id)),
        }
    }
    fn data(&self, id: Id) -> Result<(&'static str, &[u8]), DataError> {
        let array = self.array(id)?;
        Ok((array.dtype, self.store.part(array.bytes)))
    }
    /// Text or bytes of the file.
    #[cfg(feature = "torch")]
    pub(crate) fn text(&self, id: Id) -> Option<&str> {
        match *self.get(id) {
            Value::Text(span) | Value::Bytes(span) => {
                std::str::from_utf8(self.store.part(span)).ok()
            }
            _ => None,
        }
    }
    /// Key and element type of every storage that was named.
    #[cfg(feature = "torch")]
    pub(crate) fn storages(&self) -> impl Iterator<Item = (&str, StorageType)> {
        self.store.storages.iter().map(|s| (self.store.name(s.key), s.kind))
    }
    /// Key of the storage of tensor `at`.
    #[cfg(feature = "torch")]
    pub(crate) fn storage_key(&self, at: u32) -> &str {
        let storage = self.store.storages[self.store.tensors[at as usize].storage as usize];
        self.store.name(storage.key)
    }
    /// Element type of tensor `at`, and which part of its storage it is.
    #[cfg(feature = "torch")]
    pub(crate) fn tensor(&self, at: u32) -> Result<(StorageType, View), DataError> {
        let tensor = self.store.tensors[at as usize];
        let storage = self.store.storages[tensor.storage as usize];
        let (axes, strides) =
            (self.store.items(tensor.shape).len(), self.store.items(tensor.strides).len());
        if axes > construct::MOST_AXES || axes != strides {
            let most = construct::MOST_AXES;
            return Err(format_error(
                self.path,
                format!(
                    "expected a tensor of up to {most} axes, found {axes} lengths and {strides} strides"
                ),
            ));
        }
        let lengths =
            |tuple| self.store.lengths(tuple).ok_or_else(|| self.wrong("lengths of axes", tuple));
        let (shape, strides) = (lengths(tensor.shape)?, lengths(tensor.strides)?);
        Ok((storage.kind, View { offset: tensor.offset, shape, strides }))
    }
    /// An entry of a dictionary.
    pub(crate) fn entry(&self, dict: Id, key: &str) -> Result<Id, DataError> {
        let entries = self.dict(dict).ok_or_else(|| self.wrong("a dictionary", dict))?;
        let is_key = |id: Id| match *self.get(id) {
            Value::Text(k) | Value::Bytes(k) => self.store.part(k) == key.as_bytes(),
            _ => false,
        };
        let found = entries.iter().rev().find(|e| is_key(e.0));
        found.map(|e| e.1).ok_or_else(|| {
            format_error(self.path, format!("expected an entry `{key}`, found none"))
        })
    }
}
