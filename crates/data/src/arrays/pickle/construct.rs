//! Constructs the NumPy arrays, SciPy matrices, PyTorch tensors and containers of a pickle.

use super::value::{
    Array, Constructor, Id, Step, Storage, StorageType, Strided, Value, Vocabulary,
};
use super::values::Values;
use crate::files::cut;

/// Most axes of an array, NumPy's limit.
pub(super) const MOST_AXES: usize = 32;
/// Longest name of a dtype.
const MOST_NAME: usize = 16;

/// Looks up a constructor by its module and name.
pub(super) fn constructor(vocabulary: Vocabulary, module: &str, name: &str) -> Step<Constructor> {
    match vocabulary {
        Vocabulary::Numpy => known_numpy(module, name),
        Vocabulary::Torch => known_torch(module, name),
    }
}

fn known_torch(module: &str, name: &str) -> Step<Constructor> {
    let found = match (module, name) {
        ("collections", "OrderedDict") => Some(Constructor::OrderedDict),
        ("collections", "defaultdict") => Some(Constructor::DefaultDict),
        ("torch._utils", "_rebuild_tensor" | "_rebuild_tensor_v2") => {
            Some(Constructor::RebuildTensor)
        }
        ("torch._utils", "_rebuild_parameter" | "_rebuild_parameter_with_state") => {
            Some(Constructor::RebuildParameter)
        }
        ("__builtin__" | "builtins", "set" | "frozenset") => Some(Constructor::Set),
        ("_codecs", "encode") => Some(Constructor::Encode),
        (
            "__builtin__" | "builtins",
            "bool" | "bytearray" | "bytes" | "complex" | "dict" | "float" | "int" | "list"
            | "object" | "range" | "slice" | "str" | "tuple",
        )
        | ("copy_reg" | "copyreg", "_reconstructor")
        | ("argparse", "Namespace")
        | ("pathlib", "Path" | "PosixPath" | "PurePosixPath" | "PureWindowsPath" | "WindowsPath")
        | ("numpy", "dtype" | "ndarray")
        | ("numpy.core.multiarray" | "numpy._core.multiarray", "_reconstruct" | "scalar")
        | ("torch", "device" | "Size")
        | ("torch.serialization", "_get_layout") => Some(Constructor::Other),
        ("torch", dtype) if DTYPES.contains(&dtype) => Some(Constructor::Other),
        (module, _) if module.split('.').next() == Some("torch_geometric") => {
            Some(Constructor::Pyg)
        }
        ("torch", storage) => StorageType::of(storage).map(Constructor::Storage),
        _ => None,
    };
    found.ok_or_else(|| {
        let (module, name) = (cut(module), cut(name));
        format!("expected tensors in dictionaries, found `{module}.{name}`, which is not run; save `model.state_dict()` alone")
    })
}

/// Names of the dtypes of PyTorch.
const DTYPES: [&str; 18] = [
    "bfloat16",
    "bool",
    "complex128",
    "complex32",
    "complex64",
    "float16",
    "float32",
    "float64",
    "float8_e4m3fn",
    "float8_e5m2",
    "int16",
    "int32",
    "int64",
    "int8",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
];

fn known_numpy(module: &str, name: &str) -> Step<Constructor> {
    Ok(match (module, name) {
        ("numpy.core.multiarray" | "numpy._core.multiarray", "_reconstruct") => {
            Constructor::Reconstruct
        }
        ("numpy", "ndarray") => Constructor::NdArray,
        ("numpy", "dtype") => Constructor::DType,
        ("scipy.sparse.csr" | "scipy.sparse._csr", "csr_matrix") => Constructor::CsrMatrix,
        ("collections", "defaultdict") => Constructor::DefaultDict,
        ("__builtin__" | "builtins", "list") => Constructor::ListType,
        ("__builtin__" | "builtins", "object") => Constructor::ObjectType,
        ("copy_reg" | "copyreg", "_reconstructor") => Constructor::CopyReconstructor,
        ("_codecs", "encode") => Constructor::Encode,
        _ => {
            return Err(format!(
                "expected a constructor of NumPy or SciPy data, found `{}.{}`, which is not run",
                cut(module),
                cut(name)
            ));
        }
    })
}

impl Values<'_> {
    /// Calls a constructor.
    pub(super) fn call(&mut self, constructor: Id, arguments: Id) -> Step<Value> {
        let Value::Constructor(what) = self.get(constructor) else {
            return Err("expected a constructor, found another value".into());
        };
        let arguments = self.items(arguments);
        let value = |i: usize| arguments.get(i).map(|&id| self.get(id));
        match (what, value(0), value(1)) {
            (Constructor::Reconstruct, Some(Value::Constructor(Constructor::NdArray)), _) => {
                Ok(Value::Array(None))
            }
            (Constructor::DType, Some(Value::Bytes(name) | Value::Text(name)), _)
                if name.len() <= MOST_NAME =>
            {
                Ok(Value::DType(name, None))
            }
            (Constructor::CsrMatrix, None, _) => Ok(Value::Matrix(None)),
            (
                Constructor::CopyReconstructor,
                Some(Value::Constructor(Constructor::CsrMatrix)),
                Some(Value::Constructor(Constructor::ObjectType)),
            ) => Ok(Value::Matrix(None)),
            (Constructor::DefaultDict, None | Some(Value::Constructor(_) | Value::None), None)
            | (Constructor::OrderedDict, None, _) => Ok(Value::Dict(None)),
            // Python 2 writes a list of pairs.
            (Constructor::OrderedDict, Some(Value::List(Some(at))), None) => {
                let mut pairs = vec![];
                self.budget.charge(size_of::<Vec<(Id, Id)>>())?;
                self.budget.reserve(&mut pairs, self.lists[at].len())?;
                for &id in &self.lists[at] {
                    let pair = match self.get(id) {
                        Value::List(Some(at)) => self.lists[at].as_slice(),
                        _ => self.items(id),
                    };
                    let &[key, value] = pair else {
                        return Err("expected pairs of a key and a value, found others".into());
                    };
                    pairs.push((key, value));
                }
                Ok(Value::Dict(Some(self.dicts.push(pairs))))
            }
            (Constructor::Set, None, _) => Ok(Value::List(None)),
            (Constructor::Set, Some(list @ Value::List(_)), None) => Ok(list),
            (Constructor::Other, ..) => Ok(Value::Other),
            (Constructor::Pyg, ..) => {
                Err("expected tensors in dictionaries, found an object of PyTorch Geometric, \
                 which is not run; save `data.to_dict()` by `torch.save`"
                    .into())
            }
            (
                Constructor::RebuildTensor,
                Some(Value::Storage(storage)),
                Some(Value::Int(offset)),
            ) => {
                let (Some(&shape), Some(&strides)) = (arguments.get(2), arguments.get(3)) else {
                    return Err(
                        "expected the shape and the strides of a tensor, found neither".into()
                    );
                };
                let offset = u64::try_from(offset)
                    .map_err(|_| format!("expected an offset of 0 or more, found {offset}"))?;
                self.budget.reserve(&mut self.tensors, 1)?;
                self.tensors.push(Strided { storage, offset, shape, strides });
                Ok(Value::Tensor(self.tensors.len() as u32 - 1))
            }
            (Constructor::RebuildParameter, Some(tensor @ Value::Tensor(_)), _) => Ok(tensor),
            // Python 3 writes bytes in protocols without an opcode for them as text, one character for each byte.
            (Constructor::Encode, Some(Value::Text(text)), Some(Value::Text(codec)))
                if self.part(codec) == b"latin1" =>
            {
                let text = String::from_utf8_lossy(self.part(text));
                let bytes: Option<Vec<u8>> =
                    text.chars().map(|c| u8::try_from(u32::from(c)).ok()).collect();
                let bytes = bytes.ok_or("expected characters of Latin 1, found others")?;
                self.decode(&bytes).map(Value::Bytes)
            }
            _ => Err(format!("expected the arguments that {what:?} takes, found others")),
        }
    }

    /// Sets the state of an object (BUILD).
    pub(super) fn build(&mut self, object: Id, state: Id) -> Step {
        let new = match self.get(object) {
            Value::Array(None) => {
                let array = self.array(state)?;
                self.budget.reserve(&mut self.arrays, 1)?;
                self.arrays.push(array);
                Value::Array(Some(self.arrays.len() as u32 - 1))
            }
            Value::DType(name, None) => match self.items(state).get(1).map(|&id| self.get(id)) {
                Some(Value::Bytes(order) | Value::Text(order)) if order.len() == 1 => {
                    Value::DType(name, Some(self.part(order)[0]))
                }
                _ => return Err("expected the state of a dtype, found another".into()),
            },
            Value::Matrix(None) => Value::Matrix(Some(state)),
            // The attributes of an ordered dictionary are the versions of modules.
            kept @ (Value::Dict(_) | Value::Other) => kept,
            _ => return Err(
                "expected an array, a dtype or a matrix to set the state of, found another value"
                    .into(),
            ),
        };
        self.set(object, new);
        Ok(())
    }

    /// Makes the storage of a persistent id: `("storage", type, key, device, number of elements)`. Before PyTorch 1.6 a
    /// sixth item describes a part of another storage.
    pub(super) fn persistent(&mut self, id: Id) -> Step<Value> {
        let parts = self.items(id);
        let value = |i: usize| parts.get(i).map(|&id| self.get(id));
        match (value(0), value(1), value(2), value(4), value(5)) {
            (
                Some(Value::Text(what) | Value::Bytes(what)),
                Some(Value::Constructor(Constructor::Storage(kind))),
                Some(Value::Text(key) | Value::Bytes(key)),
                Some(Value::Int(_)),
                None | Some(Value::None),
            ) if self.part(what) == b"storage" && std::str::from_utf8(self.part(key)).is_ok() => {
                self.budget.reserve(&mut self.storages, 1)?;
                self.storages.push(Storage { kind, key });
                Ok(Value::Storage(self.storages.len() as u32 - 1))
            }
            _ => Err("expected the name of a storage of a tensor, found another value".into()),
        }
    }

    /// Parses the state of an array: version, shape, dtype, whether it is in Fortran order, bytes.
    fn array(&self, state: Id) -> Step<Array> {
        let parts = self.items(state);
        let value = |i: usize| parts.get(i).map(|&id| self.get(id));
        let (Some(Value::Tuple(_)), Some(Value::DType(name, order)), Some(Value::Bytes(bytes))) =
            (value(1), value(2), value(4))
        else {
            return Err("expected the state of a plain array, found another".into());
        };
        let axes = self.items(parts[1]);
        if axes.len() > MOST_AXES {
            return Err(format!("expected at most {MOST_AXES} axes, found {}", axes.len()));
        }
        let fortran = matches!(value(3), Some(Value::Bool(true) | Value::Int(1)));
        if matches!(order, Some(b'>')) {
            return Err("expected little endian, found big".into());
        }
        let shape = self.lengths(parts[1]).ok_or("expected lengths of axes, found others")?;
        if fortran && shape.iter().filter(|&&n| n > 1).count() > 1 {
            return Err("expected C order, found Fortran order".into());
        }
        let dtype = dtype(self.part(name));
        let (dtype, width) = dtype.ok_or_else(|| {
            format!(
                "expected numbers, found an array of dtype {:?}",
                cut(&String::from_utf8_lossy(self.part(name)))
            )
        })?;
        let size = shape.iter().try_fold(width, |a, &n| a.checked_mul(n));
        if size != Some(bytes.len()) {
            return Err(format!(
                "expected the bytes of an array {shape:?} of {dtype}, found {}",
                bytes.len()
            ));
        }
        Ok(Array { shape: parts[1], dtype, bytes })
    }

    /// The items of a tuple as lengths of axes.
    pub(super) fn lengths(&self, tuple: Id) -> Option<Vec<usize>> {
        let length = |&id: &Id| {
            if let Value::Int(n) = self.get(id) { usize::try_from(n).ok() } else { None }
        };
        self.items(tuple).iter().map(length).collect()
    }
}

/// A supported dtype, and the bytes of an element.
fn dtype(name: &[u8]) -> Option<(&'static str, usize)> {
    const KNOWN: [(&str, usize); 8] =
        [("b1", 1), ("i1", 1), ("u1", 1), ("i2", 2), ("i4", 4), ("f4", 4), ("i8", 8), ("f8", 8)];
    KNOWN.into_iter().find(|known| known.0.as_bytes() == name)
}
