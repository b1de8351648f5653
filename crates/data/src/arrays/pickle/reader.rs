//! Reads the first pickle of some bytes and gives access to its values.

use std::path::Path;

use burn_gnn_files::DataError;

#[cfg(feature = "torch")]
use super::construct::MOST_AXES;
use super::machine::Machine;
use super::value::{Array, Id, Value, Vocabulary};
#[cfg(feature = "torch")]
use super::value::{StorageType, View};
use super::values::Values;
use crate::columns::narrow;
use crate::files::{cut, format_error};

/// A pickle whose values were read.
pub(crate) struct Pickle<'a> {
    path: &'a Path,
    values: Values<'a>,
    top: Id,
    /// Number of bytes that were read.
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
        Ok(Self { path, end: m.at, values: m.values, top })
    }
    /// Memory that the values have left of their bound.
    #[cfg(feature = "torch")]
    pub(crate) fn memory_left(&self) -> u64 {
        self.values.budget.left as u64
    }
    /// The pickled object.
    pub(crate) fn top(&self) -> Id {
        self.top
    }
    pub(crate) fn get(&self, id: Id) -> Value {
        self.values.get(id)
    }
    /// The items of a list; `None` for another value.
    pub(crate) fn list(&self, id: Id) -> Option<&[Id]> {
        match self.get(id) {
            Value::List(Some(at)) => Some(&self.values.lists[at]),
            Value::List(None) => Some(&[]),
            _ => None,
        }
    }
    /// The items of a tuple or a list; none for another value.
    pub(crate) fn items(&self, id: Id) -> &[Id] {
        self.list(id).unwrap_or_else(|| self.values.items(id))
    }
    /// The entries of a dictionary; `None` for another value.
    pub(crate) fn dict(&self, id: Id) -> Option<&[(Id, Id)]> {
        match self.get(id) {
            Value::Dict(Some(at)) => Some(&self.values.dicts[at]),
            Value::Dict(None) => Some(&[]),
            _ => None,
        }
    }
    /// The error for a value of another kind than expected.
    pub(crate) fn wrong(&self, expected: &str, id: Id) -> DataError {
        let found = match self.get(id) {
            Value::List(_) => format!("a list of {}", self.items(id).len()),
            Value::Tuple(_) => format!("a tuple of {}", self.items(id).len()),
            Value::Dict(_) => format!("a dictionary of {}", self.dict(id).map_or(0, <[_]>::len)),
            Value::Bytes(v) => format!("{} bytes", v.len()),
            Value::Text(v) => {
                format!("the text `{}`", cut(&String::from_utf8_lossy(self.values.part(v))))
            }
            Value::Int(v) => format!("the number {v}"),
            Value::Array(Some(at)) => {
                let array = self.values.arrays[at as usize];
                format!(
                    "an array {:?} of {}",
                    self.values.lengths(array.shape).unwrap_or_default(),
                    array.dtype
                )
            }
            Value::Other => "a float or another value".into(),
            other => format!("{other:?}"),
        };
        format_error(self.path, format!("expected {expected}, found {found}"))
    }
    pub(crate) fn int(&self, id: Id) -> Result<i64, DataError> {
        if let Value::Int(i) = self.get(id) { Ok(i) } else { Err(self.wrong("a whole number", id)) }
    }
    /// Shape of an array.
    pub(crate) fn shape(&self, id: Id) -> Result<Vec<usize>, DataError> {
        Ok(self.values.lengths(self.array(id)?.shape).unwrap_or_default())
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
        match self.get(id) {
            Value::Array(Some(at)) => Ok(&self.values.arrays[at as usize]),
            _ => Err(self.wrong("a NumPy array", id)),
        }
    }
    fn data(&self, id: Id) -> Result<(&'static str, &[u8]), DataError> {
        let array = self.array(id)?;
        Ok((array.dtype, self.values.part(array.bytes)))
    }
    /// A text, or bytes in UTF-8.
    #[cfg(feature = "torch")]
    pub(crate) fn text(&self, id: Id) -> Option<&str> {
        match self.get(id) {
            Value::Text(span) | Value::Bytes(span) => {
                std::str::from_utf8(self.values.part(span)).ok()
            }
            _ => None,
        }
    }
    /// Key and element type of each storage in the pickle.
    #[cfg(feature = "torch")]
    pub(crate) fn storages(&self) -> impl Iterator<Item = (&str, StorageType)> {
        self.values.storages.iter().map(|s| (self.values.name(s.key), s.kind))
    }
    /// Key of the storage of tensor `at`.
    #[cfg(feature = "torch")]
    pub(crate) fn storage_key(&self, at: u32) -> &str {
        let storage = self.values.storages[self.values.tensors[at as usize].storage as usize];
        self.values.name(storage.key)
    }
    /// Element type of tensor `at`, and its part of the storage.
    #[cfg(feature = "torch")]
    pub(crate) fn tensor(&self, at: u32) -> Result<(StorageType, View), DataError> {
        let tensor = self.values.tensors[at as usize];
        let storage = self.values.storages[tensor.storage as usize];
        let (axes, strides) =
            (self.values.items(tensor.shape).len(), self.values.items(tensor.strides).len());
        if axes > MOST_AXES || axes != strides {
            let most = MOST_AXES;
            return Err(format_error(
                self.path,
                format!(
                    "expected a tensor of up to {most} axes, found {axes} lengths and {strides} strides"
                ),
            ));
        }
        let lengths =
            |tuple| self.values.lengths(tuple).ok_or_else(|| self.wrong("lengths of axes", tuple));
        let (shape, strides) = (lengths(tensor.shape)?, lengths(tensor.strides)?);
        Ok((storage.kind, View { offset: tensor.offset, shape, strides }))
    }
    /// The entry of a dictionary with a text as key. The last of several entries counts.
    pub(crate) fn entry(&self, dict: Id, key: &str) -> Result<Id, DataError> {
        let entries = self.dict(dict).ok_or_else(|| self.wrong("a dictionary", dict))?;
        let is_key = |id: Id| match self.get(id) {
            Value::Text(k) | Value::Bytes(k) => self.values.part(k) == key.as_bytes(),
            _ => false,
        };
        let found = entries.iter().rev().find(|e| is_key(e.0));
        found.map(|e| e.1).ok_or_else(|| {
            format_error(self.path, format!("expected an entry `{key}`, found none"))
        })
    }
}
