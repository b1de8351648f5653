//! Python pickles of NumPy arrays, SciPy matrices and plain containers; nothing else, and no code is run.
//!
//! A pickle is a program for a stack machine that may call any function of Python. This reader has the opcodes of protocols 0 to 4 that
//! data need, and in place of functions a list of the constructors that such data name; whatever else is named is refused. Values that
//! several places of a pickle share are kept once, so that memory stays a small multiple of the file.

use std::collections::HashMap;
use std::path::Path;

use crate::GraphError;
use crate::io::files::{cut, format_error};

/// NumPy's own limit.
const MOST_AXES: usize = 32;
/// Longest name of a dtype.
const MOST_NAME: usize = 16;

/// Place of a value among all.
pub(super) type Id = u32;

/// A value. Containers hold the places of others, which may be filled after they were put in.
#[derive(Clone, Debug)]
pub(super) enum Value {
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
pub(super) struct Array {
    pub(super) shape: Vec<usize>,
    /// As NumPy writes it, like `f4` or `i8`.
    dtype: String,
    /// Place of the bytes, which several arrays may share.
    bytes: Id,
}

/// What a pickle may name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Known {
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

/// A pickle that was read.
pub(super) struct Pickle<'a> {
    path: &'a Path,
    values: Vec<Value>,
    top: Id,
}

impl<'a> Pickle<'a> {
    /// Reads the first pickle of `bytes`.
    pub(super) fn read(path: &'a Path, bytes: &[u8]) -> Result<Self, GraphError> {
        let mut m = Machine { bytes, at: 0, values: vec![], stack: vec![], marks: vec![], memo: HashMap::new(), encoded: 0 };
        // None, False, True, the empty tuple.
        m.values.extend([Value::None, Value::Bool(false), Value::Bool(true), Value::Tuple(vec![])]);
        let top = m.run().map_err(|why| format_error(path, format!("pickle, byte {}: {why}", m.at)))?;
        Ok(Self { path, values: m.values, top })
    }
    /// What was pickled.
    pub(super) fn top(&self) -> Id {
        self.top
    }
    pub(super) fn get(&self, id: Id) -> &Value {
        &self.values[id as usize]
    }
    /// An error that says what was expected.
    pub(super) fn wrong(&self, expected: &str, id: Id) -> GraphError {
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
    pub(super) fn int(&self, id: Id) -> Result<i64, GraphError> {
        if let Value::Int(i) = *self.get(id) { Ok(i) } else { Err(self.wrong("a whole number", id)) }
    }
    /// Shape of an array.
    pub(super) fn shape(&self, id: Id) -> Result<&[usize], GraphError> {
        if let Value::Array(Some(a)) = self.get(id) { Ok(&a.shape) } else { Err(self.wrong("a NumPy array", id)) }
    }
    /// The whole numbers of an array.
    pub(super) fn ints(&self, id: Id) -> Result<Vec<i64>, GraphError> {
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
    pub(super) fn floats(&self, id: Id) -> Result<Vec<f32>, GraphError> {
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
    pub(super) fn entry(&self, dict: Id, key: &str) -> Result<Id, GraphError> {
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

struct Machine<'a> {
    bytes: &'a [u8],
    at: usize,
    values: Vec<Value>,
    stack: Vec<Id>,
    marks: Vec<usize>,
    memo: HashMap<u32, Id>,
    /// Characters that were made bytes; a text may be named again and again.
    encoded: usize,
}

const NONE: Id = 0;
const FALSE: Id = 1;
const TRUE: Id = 2;
const EMPTY_TUPLE: Id = 3;

type Step<T = ()> = Result<T, String>;

impl Machine<'_> {
    fn run(&mut self) -> Step<Id> {
        loop {
            let op = self.take(1)?[0];
            match op {
                // PROTO, FRAME
                0x80 => drop(self.take(1)?),
                0x95 => drop(self.take(8)?),
                b'.' => return self.pop(),
                b'(' => self.marks.push(self.stack.len()),
                b'0' => drop(self.pop()?),
                b'1' => drop(self.since_mark()?),
                b'2' => {
                    let top = self.peek()?;
                    self.stack.push(top);
                }
                b'N' => self.stack.push(NONE),
                0x89 => self.stack.push(FALSE),
                0x88 => self.stack.push(TRUE),
                b'J' => self.int_of(4)?,
                b'K' => self.int_of(1)?,
                b'M' => self.int_of(2)?,
                0x8a => {
                    let n = self.take(1)?[0];
                    self.long(usize::from(n))?;
                }
                b'I' => {
                    let line = self.line()?;
                    match line.as_str() {
                        "00" => self.stack.push(FALSE),
                        "01" => self.stack.push(TRUE),
                        _ => self.decimal(&line)?,
                    }
                }
                b'L' => {
                    let line = self.line()?;
                    self.decimal(line.trim_end_matches('L'))?;
                }
                b'F' => {
                    let line = self.line()?;
                    line.parse::<f64>().map_err(|_| format!("expected a float, found {:?}", cut(&line)))?;
                    self.push(Value::Float);
                }
                b'G' => {
                    self.take(8)?;
                    self.push(Value::Float);
                }
                b'S' => {
                    let line = self.line()?;
                    self.push(Value::Bytes(unquote(&line)?));
                }
                b'U' | b'C' => {
                    let n = self.length(1)?;
                    self.bytes(n)?;
                }
                b'T' | b'B' => {
                    let n = self.length(4)?;
                    self.bytes(n)?;
                }
                0x8e => {
                    let n = self.length(8)?;
                    self.bytes(n)?;
                }
                0x8c => {
                    let n = self.length(1)?;
                    self.text(n)?;
                }
                b'X' => {
                    let n = self.length(4)?;
                    self.text(n)?;
                }
                b'V' => {
                    let line = self.line()?;
                    self.push(Value::Text(line));
                }
                b')' => self.stack.push(EMPTY_TUPLE),
                b']' => self.push(Value::List(vec![])),
                b'}' => self.push(Value::Dict(vec![])),
                b't' => {
                    let items = self.since_mark()?;
                    self.push(Value::Tuple(items));
                }
                b'l' => {
                    let items = self.since_mark()?;
                    self.push(Value::List(items));
                }
                b'd' => {
                    let items = self.since_mark()?;
                    self.push(Value::Dict(pairs(&items)?));
                }
                0x85..=0x87 => {
                    let from = self.stack.len().checked_sub(usize::from(op) - 0x84).ok_or("expected values on the stack, found too few")?;
                    let items = self.stack.split_off(from);
                    self.push(Value::Tuple(items));
                }
                b'a' => {
                    let item = self.pop()?;
                    self.extend(&[item])?;
                }
                b'e' => {
                    let items = self.since_mark()?;
                    self.extend(&items)?;
                }
                b's' => {
                    let (value, key) = (self.pop()?, self.pop()?);
                    self.insert(&[(key, value)])?;
                }
                b'u' => {
                    let items = self.since_mark()?;
                    self.insert(&pairs(&items)?)?;
                }
                b'p' | b'g' => {
                    let line = self.line()?;
                    let key = line.parse().map_err(|_| format!("expected a place of the memo, found {:?}", cut(&line)))?;
                    self.memo(key, op == b'p')?;
                }
                b'q' | b'h' => {
                    let key = self.length(1)? as u32;
                    self.memo(key, op == b'q')?;
                }
                b'r' | b'j' => {
                    let key = self.length(4)? as u32;
                    self.memo(key, op == b'r')?;
                }
                0x94 => {
                    let key = self.memo.len() as u32;
                    self.memo(key, true)?;
                }
                b'c' => {
                    let (module, name) = (self.line()?, self.line()?);
                    self.global(&module, &name)?;
                }
                0x93 => {
                    let (name, module) = (self.pop()?, self.pop()?);
                    match (&self.values[module as usize], &self.values[name as usize]) {
                        (Value::Text(module), Value::Text(name)) => {
                            let (module, name) = (module.clone(), name.clone());
                            self.global(&module, &name)?;
                        }
                        _ => return Err("expected names of a module and what is in it, found others".into()),
                    }
                }
                // REDUCE and NEWOBJ: a constructor and its arguments.
                b'R' | 0x81 => {
                    let (arguments, constructor) = (self.pop()?, self.pop()?);
                    let made = self.call(constructor, arguments)?;
                    if let Value::Bytes(b) = &made {
                        self.encoded += b.len();
                    }
                    self.push(made);
                }
                b'b' => {
                    let (state, object) = (self.pop()?, self.peek()?);
                    self.build(object, state)?;
                }
                other => return Err(format!("expected an opcode of data, found {other:#04x}")),
            }
        }
    }

    fn take(&mut self, n: usize) -> Step<&[u8]> {
        let end = self.at.checked_add(n).filter(|&e| e <= self.bytes.len()).ok_or("expected more bytes, found the end of the file")?;
        let part = &self.bytes[self.at..end];
        self.at = end;
        Ok(part)
    }
    fn line(&mut self) -> Step<String> {
        let rest = &self.bytes[self.at..];
        let n = memchr::memchr(b'\n', rest).ok_or("expected a line, found the end of the file")?;
        let line = String::from_utf8(rest[..n].to_vec()).map_err(|_| "expected a line of text, found other bytes")?;
        self.at += n + 1;
        Ok(line)
    }
    /// An unsigned number of `n` bytes.
    fn length(&mut self, n: usize) -> Step<usize> {
        let mut b = [0; 8];
        b[..n].copy_from_slice(self.take(n)?);
        usize::try_from(u64::from_le_bytes(b)).map_err(|_| "expected a length that fits in memory".into())
    }
    fn push(&mut self, value: Value) {
        self.values.push(value);
        self.stack.push(self.values.len() as Id - 1);
    }
    fn peek(&self) -> Step<Id> {
        let floor = self.marks.last().copied().unwrap_or(0);
        self.stack.get(floor..).and_then(|s| s.last().copied()).ok_or_else(|| "expected a value on the stack, found none".into())
    }
    fn pop(&mut self) -> Step<Id> {
        let top = self.peek()?;
        self.stack.pop();
        Ok(top)
    }
    fn since_mark(&mut self) -> Step<Vec<Id>> {
        let from = self.marks.pop().ok_or("expected a mark, found none")?;
        if from > self.stack.len() {
            return Err("expected a mark below the top of the stack, found one above".into());
        }
        Ok(self.stack.split_off(from))
    }
    fn int_of(&mut self, n: usize) -> Step {
        let unsigned = self.length(n)? as i64;
        let value = if n == 4 { i64::from(unsigned as u32 as i32) } else { unsigned };
        self.push(Value::Int(value));
        Ok(())
    }
    fn long(&mut self, n: usize) -> Step {
        if n > 8 {
            return Err(format!("expected a whole number of at most 8 bytes, found {n}"));
        }
        let part = self.take(n)?;
        let mut b = [if part.last().is_some_and(|&top| top >= 0x80) { 0xff } else { 0 }; 8];
        b[..n].copy_from_slice(part);
        self.push(Value::Int(i64::from_le_bytes(b)));
        Ok(())
    }
    fn decimal(&mut self, text: &str) -> Step {
        let value = text.parse().map_err(|_| format!("expected a whole number, found {:?}", cut(text)))?;
        self.push(Value::Int(value));
        Ok(())
    }
    fn bytes(&mut self, n: usize) -> Step {
        let bytes = self.take(n)?.to_vec();
        self.push(Value::Bytes(bytes));
        Ok(())
    }
    fn text(&mut self, n: usize) -> Step {
        let text = String::from_utf8(self.take(n)?.to_vec()).map_err(|_| "expected text in UTF-8, found other bytes")?;
        self.push(Value::Text(text));
        Ok(())
    }
    fn extend(&mut self, items: &[Id]) -> Step {
        let list = self.peek()?;
        match &mut self.values[list as usize] {
            Value::List(v) => v.extend(items),
            _ => return Err("expected a list to append to, found another value".into()),
        }
        Ok(())
    }
    fn insert(&mut self, items: &[(Id, Id)]) -> Step {
        let dict = self.peek()?;
        match &mut self.values[dict as usize] {
            Value::Dict(v) => v.extend(items),
            _ => return Err("expected a dictionary to fill, found another value".into()),
        }
        Ok(())
    }
    fn memo(&mut self, key: u32, put: bool) -> Step {
        if put {
            let top = self.peek()?;
            self.memo.insert(key, top);
        } else {
            self.stack.push(*self.memo.get(&key).ok_or_else(|| format!("expected a place of the memo that is filled, found {key}"))?);
        }
        Ok(())
    }
    fn global(&mut self, module: &str, name: &str) -> Step {
        let known = known(module, name).ok_or_else(|| {
            format!("expected a constructor of NumPy or SciPy data, found `{}.{}`, which is not run", cut(module), cut(name))
        })?;
        self.push(Value::Known(known));
        Ok(())
    }
    fn items(&self, id: Id) -> &[Id] {
        if let Value::Tuple(v) = &self.values[id as usize] { v } else { &[] }
    }

    fn call(&mut self, constructor: Id, arguments: Id) -> Step<Value> {
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

    fn build(&mut self, object: Id, state: Id) -> Step {
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

fn pairs(items: &[Id]) -> Step<Vec<(Id, Id)>> {
    let (pairs, rest) = items.as_chunks::<2>();
    if rest.is_empty() {
        Ok(pairs.iter().map(|p| (p[0], p[1])).collect())
    } else {
        Err("expected keys and values, found an odd number".into())
    }
}

/// A Python 2 string literal.
fn unquote(line: &str) -> Step<Vec<u8>> {
    let inner = ['\'', '"'].iter().find_map(|&q| line.strip_prefix(q)?.strip_suffix(q));
    let inner = inner.ok_or("expected a text in quotes, found none")?.as_bytes();
    let (mut out, mut rest) = (Vec::with_capacity(inner.len()), inner);
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'\\' {
            out.push(*first);
            continue;
        }
        let [escape, after @ ..] = rest else { return Err("expected an escape, found the end of a text".into()) };
        rest = after;
        out.push(match escape {
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'\\' | b'\'' | b'"' => *escape,
            b'x' => {
                let hex = rest.get(..2).and_then(|h| std::str::from_utf8(h).ok()).and_then(|h| u8::from_str_radix(h, 16).ok());
                rest = rest.get(2..).unwrap_or(&[]);
                hex.ok_or("expected two digits behind \\x, found others")?
            }
            other => return Err(format!("expected an escape of a text, found {:?}", char::from(*other))),
        });
    }
    Ok(out)
}
