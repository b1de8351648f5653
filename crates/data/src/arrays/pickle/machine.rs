//! Runs the stack machine of pickles: the opcodes of protocols 0 to 5 that data need.

use std::collections::HashMap;

use super::blocks::Blocks;
use super::construct::{Vocabulary, known};
use super::{Id, Span, Store, Value};
use crate::files::cut;

pub(super) struct Machine<'a> {
    pub(super) at: usize,
    pub(super) store: Store<'a>,
    stack: Vec<Id>,
    marks: Vec<Id>,
    /// By keys in sequence, as picklers number them.
    memo: Vec<Id>,
    /// By other keys.
    far: HashMap<u32, Id>,
    vocabulary: Vocabulary,
}

/// Places of the values that every pickle shares.
const NONE: Id = 0;
const FALSE: Id = 1;
const TRUE: Id = 2;
const EMPTY_TUPLE: Id = 3;
/// Of the numbers of one byte.
const NUMBERS: Id = 4;

pub(super) type Step<T = ()> = Result<T, String>;

impl<'a> Machine<'a> {
    pub(super) fn new(bytes: &'a [u8], vocabulary: Vocabulary) -> Self {
        let mut store = Store { bytes, ..Store::default() };
        let shared =
            [Value::None, Value::Bool(false), Value::Bool(true), Value::Tuple(Span::default())];
        for value in shared.into_iter().chain((0..256).map(Value::Int)) {
            store.values.push(value);
        }
        let (memo, far) = (vec![], HashMap::new());
        Self { at: 0, store, stack: vec![], marks: vec![], memo, far, vocabulary }
    }

    pub(super) fn run(&mut self) -> Step<Id> {
        loop {
            let op = self.byte()?;
            match op {
                // PROTO, FRAME
                0x80 => drop(self.take(1)?),
                0x95 => drop(self.take(8)?),
                b'.' => return self.pop(),
                b'(' => self.marks.push(self.stack.len() as Id),
                b'0' => drop(self.pop()?),
                b'1' => drop(self.since_mark()?),
                b'2' => self.stack.push(self.peek()?),
                b'N' => self.stack.push(NONE),
                0x89 => self.stack.push(FALSE),
                0x88 => self.stack.push(TRUE),
                b'J' => self.int_of(4)?,
                b'K' => {
                    let number = self.byte()?;
                    self.stack.push(NUMBERS + Id::from(number));
                }
                b'M' => self.int_of(2)?,
                0x8a => self.long(1)?,
                0x8b => self.long(4)?,
                b'I' => {
                    let line = self.line()?;
                    match line {
                        "00" => self.stack.push(FALSE),
                        "01" => self.stack.push(TRUE),
                        _ => self.decimal(line)?,
                    }
                }
                b'L' => {
                    let line = self.line()?;
                    self.decimal(line.trim_end_matches('L'))?;
                }
                b'F' => {
                    let line = self.line()?;
                    line.parse::<f64>()
                        .map_err(|_| format!("expected a float, found {:?}", cut(line)))?;
                    self.push(Value::Other);
                }
                b'G' => {
                    self.take(8)?;
                    self.push(Value::Other);
                }
                b'S' => {
                    let line = self.line()?;
                    let bytes = unquote(line)?;
                    let span = self.store.make(&bytes)?;
                    self.push(Value::Bytes(span));
                }
                b'U' | b'C' => self.bytes(1)?,
                b'T' | b'B' => self.bytes(4)?,
                // Bytes that may be changed are bytes.
                0x8e | 0x96 => self.bytes(8)?,
                0x8c => self.text(1)?,
                b'X' => self.text(4)?,
                b'V' => {
                    let len = self.line()?.len();
                    // Behind it stands the end of the line.
                    self.push(Value::Text(Span::new(self.at - 1 - len, len)));
                }
                b')' => self.stack.push(EMPTY_TUPLE),
                // A set is the list of what was put in.
                b']' | 0x8f => self.push(Value::List(None)),
                b'}' => self.push(Value::Dict(None)),
                b't' => {
                    let items = self.since_mark()?;
                    self.tuple(&items);
                }
                b'l' | 0x91 => {
                    let items = self.since_mark()?;
                    self.push(Value::List(None));
                    self.extend(&items)?;
                }
                b'd' => {
                    let items = self.since_mark()?;
                    self.push(Value::Dict(None));
                    self.insert(&pairs(&items)?)?;
                }
                0x85..=0x87 => {
                    let from = self
                        .stack
                        .len()
                        .checked_sub(usize::from(op) - 0x84)
                        .ok_or("expected values on the stack, found too few")?;
                    let items = self.stack.split_off(from);
                    self.tuple(&items);
                }
                b'a' => {
                    let item = self.pop()?;
                    self.extend(&[item])?;
                }
                b'e' | 0x90 => {
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
                    let key = line.parse().map_err(|_| {
                        format!("expected a place of the memo, found {:?}", cut(line))
                    })?;
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
                    let key = (self.memo.len() + self.far.len()) as u32;
                    self.memo(key, true)?;
                }
                b'c' => {
                    let (module, name) = (self.line()?, self.line()?);
                    self.push(Value::Known(known(self.vocabulary, module, name)?));
                }
                0x93 => {
                    let (name, module) = (self.pop()?, self.pop()?);
                    let named = self.store.text(module).zip(self.store.text(name));
                    let (module, name) = named
                        .ok_or("expected names of a module and what is in it, found others")?;
                    self.push(Value::Known(known(self.vocabulary, module, name)?));
                }
                // BINPERSID
                b'Q' => {
                    let id = self.pop()?;
                    let storage = self.store.persistent(id)?;
                    self.push(storage);
                }
                // REDUCE and NEWOBJ: a constructor and its arguments.
                b'R' | 0x81 => {
                    let (arguments, constructor) = (self.pop()?, self.pop()?);
                    let made = self.store.call(constructor, arguments)?;
                    self.push(made);
                }
                b'b' => {
                    let (state, object) = (self.pop()?, self.peek()?);
                    self.store.build(object, state)?;
                }
                other => return Err(format!("expected an opcode of data, found {other:#04x}")),
            }
        }
    }

    fn take(&mut self, n: usize) -> Step<&'a [u8]> {
        let bytes = self.store.bytes;
        let end = self
            .at
            .checked_add(n)
            .filter(|&e| e <= bytes.len())
            .ok_or("expected more bytes, found the end of the file")?;
        let part = &bytes[self.at..end];
        self.at = end;
        Ok(part)
    }
    fn byte(&mut self) -> Step<u8> {
        Ok(self.take(1)?[0])
    }
    fn line(&mut self) -> Step<&'a str> {
        let rest = &self.store.bytes[self.at..];
        let n = memchr::memchr(b'\n', rest).ok_or("expected a line, found the end of the file")?;
        let line = std::str::from_utf8(&rest[..n])
            .map_err(|_| "expected a line of text, found other bytes")?;
        self.at += n + 1;
        Ok(line)
    }
    /// An unsigned number of `n` bytes.
    fn length(&mut self, n: usize) -> Step<usize> {
        let mut b = [0; 8];
        b[..n].copy_from_slice(self.take(n)?);
        usize::try_from(u64::from_le_bytes(b))
            .map_err(|_| "expected a length that fits in memory".into())
    }
    pub(super) fn push(&mut self, value: Value) {
        let at = self.store.values.push(value);
        self.stack.push(at);
    }
    fn tuple(&mut self, items: &[Id]) {
        let tuple = self.store.tuple(items);
        self.push(tuple);
    }
    fn peek(&self) -> Step<Id> {
        let floor = self.marks.last().map_or(0, |&mark| mark as usize);
        self.stack
            .get(floor..)
            .and_then(|s| s.last().copied())
            .ok_or_else(|| "expected a value on the stack, found none".into())
    }
    fn pop(&mut self) -> Step<Id> {
        let top = self.peek()?;
        self.stack.pop();
        Ok(top)
    }
    fn since_mark(&mut self) -> Step<Vec<Id>> {
        let from = self.marks.pop().ok_or("expected a mark, found none")? as usize;
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
    /// A number behind that of its bytes, which has `width` bytes.
    fn long(&mut self, width: usize) -> Step {
        let n = self.length(width)?;
        let part = self.take(n)?;
        // No number of anything: whoever needs one refuses it.
        if n > 8 {
            self.push(Value::Other);
            return Ok(());
        }
        let mut b = [if part.last().is_some_and(|&top| top >= 0x80) { 0xff } else { 0 }; 8];
        b[..n].copy_from_slice(part);
        self.push(Value::Int(i64::from_le_bytes(b)));
        Ok(())
    }
    fn decimal(&mut self, text: &str) -> Step {
        let value =
            text.parse().map_err(|_| format!("expected a whole number, found {:?}", cut(text)))?;
        self.push(Value::Int(value));
        Ok(())
    }
    /// Bytes behind their number, which has `width` bytes.
    fn bytes(&mut self, width: usize) -> Step {
        let n = self.length(width)?;
        self.take(n)?;
        self.push(Value::Bytes(Span::new(self.at - n, n)));
        Ok(())
    }
    /// As [`bytes`](Self::bytes).
    fn text(&mut self, width: usize) -> Step {
        let n = self.length(width)?;
        std::str::from_utf8(self.take(n)?)
            .map_err(|_| "expected text in UTF-8, found other bytes")?;
        self.push(Value::Text(Span::new(self.at - n, n)));
        Ok(())
    }
    fn extend(&mut self, items: &[Id]) -> Step {
        let list = self.peek()?;
        match &mut self.store.values[list] {
            Value::List(at) => {
                entries(at, &mut self.store.lists).extend(items);
                Ok(())
            }
            _ => Err("expected a list to append to, found another value".into()),
        }
    }
    fn insert(&mut self, items: &[(Id, Id)]) -> Step {
        let dict = self.peek()?;
        match &mut self.store.values[dict] {
            Value::Dict(at) => {
                entries(at, &mut self.store.dicts).extend(items);
                Ok(())
            }
            _ => Err("expected a dictionary to fill, found another value".into()),
        }
    }
    fn memo(&mut self, key: u32, put: bool) -> Step {
        if put {
            let (top, next) = (self.peek()?, self.memo.len());
            match self.memo.get_mut(key as usize) {
                Some(place) => *place = top,
                None if key as usize == next => self.memo.push(top),
                None => {
                    self.far.insert(key, top);
                }
            }
        } else {
            let found = self.memo.get(key as usize).or_else(|| self.far.get(&key));
            self.stack.push(*found.ok_or_else(|| {
                format!("expected a place of the memo that is filled, found {key}")
            })?);
        }
        Ok(())
    }
}

/// What a container holds, which has a place among `all` once something is put in.
fn entries<'s, T>(at: &mut Option<u32>, all: &'s mut Blocks<Vec<T>>) -> &'s mut Vec<T> {
    let at = *at.get_or_insert_with(|| all.push(vec![]));
    &mut all[at]
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
        let [escape, after @ ..] = rest else {
            return Err("expected an escape, found the end of a text".into());
        };
        rest = after;
        out.push(match escape {
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'\\' | b'\'' | b'"' => *escape,
            b'x' => {
                let hex = rest
                    .get(..2)
                    .and_then(|h| std::str::from_utf8(h).ok())
                    .and_then(|h| u8::from_str_radix(h, 16).ok());
                rest = rest.get(2..).unwrap_or(&[]);
                hex.ok_or("expected two digits behind \\x, found others")?
            }
            other => {
                return Err(format!(
                    "expected an escape of a text, found {:?}",
                    char::from(*other)
                ));
            }
        });
    }
    Ok(out)
}
