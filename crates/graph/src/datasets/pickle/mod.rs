//! Python pickles of NumPy arrays, SciPy matrices and plain containers; nothing else, and no code is run.
//!
//! A pickle is a program for a stack machine that may call any function of Python. This reader has the opcodes of protocols 0 to 4 that
//! data need, and in place of functions a list of the constructors that such data name; whatever else is named is refused. Values that
//! several places of a pickle share are kept once, so that memory stays a small multiple of the file.

mod construct;
mod machine;

use std::path::Path;

use crate::GraphError;
use crate::io::files::{cut, format_error};
use construct::Known;
use machine::Machine;

/// Place of a value among all.
pub(in crate::datasets) type Id = u32;

/// A value. Containers hold the places of others, which may be filled after they were put in.
#[derive(Clone, Debug)]
pub(in crate::datasets) enum Value {
    None,
    Bool(bool),
    Int(i64),
    /// A float; none of what is read is one.
    Float,
    /// Bytes of the file, or made of a text.
    Bytes(Vec<u8>),
    Text(String),
    List(Vec<Id>),
    Tuple(Vec<Id>),
    Dict(Vec<(Id, Id)>),
    /// A constructor that is known.
    Known(Known),
    /// A dtype: its name, then its byte order.
    DType(String, Option<u8>),
    /// An array, `None` until its state is set.
    Array(Option<Array>),
    /// A SciPy matrix: its attributes, once they are set.
    Matrix(Option<Id>),
}

/// An array as it was pickled.
#[derive(Clone, Debug)]
pub(in crate::datasets) struct Array {
    pub(in crate::datasets) shape: Vec<usize>,
    /// As NumPy writes it, like `f4` or `i8`.
    dtype: String,
    /// Place of the bytes, which several arrays may share.
    bytes: Id,
}

/// A pickle that was read.
pub(in crate::datasets) struct Pickle<'a> {
    path: &'a Path,
    values: Vec<Value>,
    top: Id,
}

impl<'a> Pickle<'a> {
    /// Reads the first pickle of `bytes`.
    pub(in crate::datasets) fn read(path: &'a Path, bytes: &[u8]) -> Result<Self, GraphError> {
        let mut m = Machine::new(bytes);
        let top = m.run().map_err(|why| format_error(path, format!("pickle, byte {}: {why}", m.at)))?;
        Ok(Self { path, values: m.values, top })
    }
    /// What was pickled.
    pub(in crate::datasets) fn top(&self) -> Id {
        self.top
    }
    pub(in crate::datasets) fn get(&self, id: Id) -> &Value {
        &self.values[id as usize]
    }
    /// An error that says what was expected.
    pub(in crate::datasets) fn wrong(&self, expected: &str, id: Id) -> GraphError {
        let found = match self.get(id) {
            Value::List(v) => format!("a list of {}", v.len()),
            Value::Tuple(v) => format!("a tuple of {}", v.len()),
            Value::Dict(v) => format!("a dictionary of {}", v.len()),
            Value::Bytes(v) => format!("{} bytes", v.len()),
            Value::Array(Some(a)) => format!("an array {:?} of {}", a.shape, a.dtype),
            other => cut(&format!("{other:?}")),
        };
        format_error(self.path, format!("expected {expected}, found {found}"))
    }
    pub(in crate::datasets) fn int(&self, id: Id) -> Result<i64, GraphError> {
        if let Value::Int(i) = *self.get(id) { Ok(i) } else { Err(self.wrong("a whole number", id)) }
    }
    /// Shape of an array.
    pub(in crate::datasets) fn shape(&self, id: Id) -> Result<&[usize], GraphError> {
        if let Value::Array(Some(a)) = self.get(id) { Ok(&a.shape) } else { Err(self.wrong("a NumPy array", id)) }
    }
    /// The whole numbers of an array.
    pub(in crate::datasets) fn ints(&self, id: Id) -> Result<Vec<i64>, GraphError> {
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
    pub(in crate::datasets) fn floats(&self, id: Id) -> Result<Vec<f32>, GraphError> {
        let (dtype, b) = self.data(id)?;
        Ok(match dtype {
            "f4" => b.as_chunks().0.iter().map(|&x| f32::from_le_bytes(x)).collect(),
            "f8" => b.as_chunks().0.iter().map(|&x| f64::from_le_bytes(x) as f32).collect(),
            _ => self.ints(id)?.into_iter().map(|x| x as f32).collect(),
        })
    }
    fn data(&self, id: Id) -> Result<(&str, &[u8]), GraphError> {
        match self.get(id) {
            Value::Array(Some(a)) => match self.get(a.bytes) {
                Value::Bytes(b) => Ok((&a.dtype, b)),
                // Bytes stay bytes.
                other => unreachable!("an array of {other:?}"),
            },
            _ => Err(self.wrong("a NumPy array", id)),
        }
    }
    /// An entry of a dictionary.
    pub(in crate::datasets) fn entry(&self, dict: Id, key: &str) -> Result<Id, GraphError> {
        let Value::Dict(entries) = self.get(dict) else { return Err(self.wrong("a dictionary", dict)) };
        let is_key = |id: Id| match self.get(id) {
            Value::Text(t) => t == key,
            Value::Bytes(b) => b == key.as_bytes(),
            _ => false,
        };
        let found = entries.iter().rev().find(|e| is_key(e.0));
        found.map(|e| e.1).ok_or_else(|| format_error(self.path, format!("expected an entry `{key}`, found none")))
    }
}
