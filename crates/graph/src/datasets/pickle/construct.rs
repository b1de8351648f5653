//! What a pickle may name, and what comes of it: the constructors of NumPy arrays, SciPy matrices and plain containers.

use super::machine::{Machine, Step};
use super::{Array, Id, Value};
use crate::io::files::cut;

/// NumPy's own limit.
const MOST_AXES: usize = 32;
/// Longest name of a dtype.
const MOST_NAME: usize = 16;

/// What a pickle may name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::datasets) enum Known {
    Reconstruct,
    NdArray,
    DType,
    CsrMatrix,
    DefaultDict,
    ListType,
    ObjectType,
    CopyReconstructor,
    Encode,
}

fn known(module: &str, name: &str) -> Option<Known> {
    Some(match (module, name) {
        ("numpy.core.multiarray" | "numpy._core.multiarray", "_reconstruct") => Known::Reconstruct,
        ("numpy", "ndarray") => Known::NdArray,
        ("numpy", "dtype") => Known::DType,
        ("scipy.sparse.csr" | "scipy.sparse._csr", "csr_matrix") => Known::CsrMatrix,
        ("collections", "defaultdict") => Known::DefaultDict,
        ("__builtin__" | "builtins", "list") => Known::ListType,
        ("__builtin__" | "builtins", "object") => Known::ObjectType,
        ("copy_reg" | "copyreg", "_reconstructor") => Known::CopyReconstructor,
        ("_codecs", "encode") => Known::Encode,
        _ => return None,
    })
}

impl Machine<'_> {
    pub(super) fn global(&mut self, module: &str, name: &str) -> Step {
        let known = known(module, name).ok_or_else(|| {
            format!("expected a constructor of NumPy or SciPy data, found `{}.{}`, which is not run", cut(module), cut(name))
        })?;
        self.push(Value::Known(known));
        Ok(())
    }
    fn items(&self, id: Id) -> &[Id] {
        if let Value::Tuple(v) = &self.values[id as usize] { v } else { &[] }
    }

    pub(super) fn call(&mut self, constructor: Id, arguments: Id) -> Step<Value> {
        let Value::Known(what) = self.values[constructor as usize] else {
            return Err("expected a constructor, found another value".into());
        };
        let arguments = self.items(arguments);
        let value = |i: usize| arguments.get(i).map(|&id| &self.values[id as usize]);
        match (what, value(0), value(1)) {
            (Known::Reconstruct, Some(Value::Known(Known::NdArray)), _) => Ok(Value::Array(None)),
            (Known::DType, Some(Value::Bytes(name)), _) if name.len() <= MOST_NAME => {
                Ok(Value::DType(String::from_utf8_lossy(name).into_owned(), None))
            }
            (Known::DType, Some(Value::Text(name)), _) if name.len() <= MOST_NAME => Ok(Value::DType(name.clone(), None)),
            (Known::CsrMatrix, None, _) => Ok(Value::Matrix(None)),
            (Known::CopyReconstructor, Some(Value::Known(Known::CsrMatrix)), Some(Value::Known(Known::ObjectType))) => {
                Ok(Value::Matrix(None))
            }
            (Known::DefaultDict, Some(Value::Known(Known::ListType)), _) => Ok(Value::Dict(vec![])),
            // How Python 3 writes bytes in protocols that have none: as text, a character for each byte.
            (Known::Encode, Some(Value::Text(text)), Some(Value::Text(codec))) if codec == "latin1" => {
                if self.encoded + text.len() > self.bytes.len() {
                    return Err("expected every text once, found one that is made bytes again and again".into());
                }
                let bytes: Option<Vec<u8>> = text.chars().map(|c| u8::try_from(u32::from(c)).ok()).collect();
                bytes.map(Value::Bytes).ok_or_else(|| "expected characters of Latin 1, found others".into())
            }
            _ => Err(format!("expected the arguments that {what:?} takes, found others")),
        }
    }

    pub(super) fn build(&mut self, object: Id, state: Id) -> Step {
        let new = match &self.values[object as usize] {
            Value::Array(None) => Value::Array(Some(self.array(state)?)),
            Value::DType(name, None) => match self.items(state).get(1).map(|&id| &self.values[id as usize]) {
                Some(Value::Bytes(b)) if b.len() == 1 => Value::DType(name.clone(), Some(b[0])),
                Some(Value::Text(t)) if t.len() == 1 => Value::DType(name.clone(), Some(t.as_bytes()[0])),
                _ => return Err("expected the state of a dtype, found another".into()),
            },
            Value::Matrix(None) => Value::Matrix(Some(state)),
            _ => return Err("expected an array, a dtype or a matrix to set the state of, found another value".into()),
        };
        self.values[object as usize] = new;
        Ok(())
    }

    /// The state of an array: version, shape, dtype, whether columns come first, bytes.
    fn array(&self, state: Id) -> Step<Array> {
        let parts = self.items(state);
        let value = |i: usize| parts.get(i).map(|&id| &self.values[id as usize]);
        let (Some(Value::Tuple(shape)), Some(Value::DType(name, order)), Some(Value::Bytes(bytes))) = (value(1), value(2), value(4)) else {
            return Err("expected the state of a plain array, found another".into());
        };
        if shape.len() > MOST_AXES {
            return Err(format!("expected at most {MOST_AXES} axes, found {}", shape.len()));
        }
        let fortran = matches!(value(3), Some(Value::Bool(true) | Value::Int(1)));
        if matches!(order, Some(b'>')) {
            return Err("expected little endian, found big".into());
        }
        let shape: Option<Vec<usize>> =
            shape.iter().map(|&id| if let Value::Int(n) = self.values[id as usize] { usize::try_from(n).ok() } else { None }).collect();
        let shape = shape.ok_or("expected lengths of axes, found others")?;
        if fortran && shape.iter().filter(|&&n| n > 1).count() > 1 {
            return Err("expected C order, found Fortran order".into());
        }
        let width = match name.as_str() {
            "b1" | "i1" | "u1" => 1usize,
            "i2" => 2,
            "i4" | "f4" => 4,
            "i8" | "f8" => 8,
            other => return Err(format!("expected numbers, found an array of dtype {:?}", cut(other))),
        };
        let size = shape.iter().try_fold(width, |a, &n| a.checked_mul(n));
        if size != Some(bytes.len()) {
            return Err(format!("expected the bytes of an array {shape:?} of {name}, found {}", bytes.len()));
        }
        Ok(Array { shape, dtype: name.clone(), bytes: parts[4] })
    }
}
