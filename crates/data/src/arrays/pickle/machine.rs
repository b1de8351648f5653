//! Runs the stack machine of pickles: the opcodes of protocols 0 to 5 that data need.

use std::collections::HashMap;

use super::construct::constructor;
use super::value::{Id, Span, Step, Value, Vocabulary};
use super::values::{EMPTY_TUPLE, FALSE, NONE, OTHER, TRUE, Values};
use crate::files::cut;

/// A place of the memo with a key that does not follow the other keys takes so much memory in a growing hash map.
const FAR: usize = 48;

pub(super) struct Machine<'a> {
    pub(super) at: usize,
    pub(super) values: Values<'a>,
    stack: Vec<Id>,
    marks: Vec<u32>,
    /// The memo by keys in sequence, as picklers number them.
    memo: Vec<Id>,
    /// The memo by other keys.
    far: HashMap<u32, Id>,
    vocabulary: Vocabulary,
}

impl<'a> Machine<'a> {
    pub(super) fn new(bytes: &'a [u8], vocabulary: Vocabulary) -> Self {
        let (memo, far) = (vec![], HashMap::new());
        Self {
            at: 0,
            values: Values::new(bytes),
            stack: vec![],
            marks: vec![],
            memo,
            far,
            vocabulary,
        }
    }

    pub(super) fn run(&mut self) -> Step<Id> {
        loop {
            let op = self.byte()?;
            match op {
                // PROTO, FRAME
                0x80 => drop(self.take(1)?),
                0x95 => drop(self.take(8)?),
                b'.' => return self.pop(),
                b'(' => {
                    self.values.budget.reserve(&mut self.marks, 1)?;
                    self.marks.push(self.stack.len() as u32);
                }
                b'0' => drop(self.pop()?),
                b'1' => {
                    let from = self.mark()?;
                    self.stack.truncate(from);
                }
                b'2' => {
                    let top = self.peek()?;
                    self.put(top)?;
                }
                b'N' => self.put(NONE)?,
                0x89 => self.put(FALSE)?,
                0x88 => self.put(TRUE)?,
                b'J' => self.int_of(4)?,
                b'K' => self.int_of(1)?,
                b'M' => self.int_of(2)?,
                0x8a => self.long(1)?,
                0x8b => self.long(4)?,
                b'I' => {
                    let line = self.line()?;
                    match line {
                        "00" => self.put(FALSE)?,
                        "01" => self.put(TRUE)?,
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
                    self.put(OTHER)?;
                }
                b'G' => {
                    self.take(8)?;
                    self.put(OTHER)?;
                }
                b'S' => {
                    let line = self.line()?;
                    let bytes = unquote(line)?;
                    let span = self.values.decode(&bytes)?;
                    self.push(Value::Bytes(span))?;
                }
                b'U' | b'C' => self.bytes(1)?,
                b'T' | b'B' => self.bytes(4)?,
                // BYTEARRAY8 as well: mutable bytes are read as bytes.
                0x8e | 0x96 => self.bytes(8)?,
                0x8c => self.text(1)?,
                b'X' => self.text(4)?,
                b'V' => {
                    let len = self.line()?.len();
                    // The line ends with a line feed, which is not a part of the text.
                    self.push(Value::Text(Span::new(self.at - 1 - len, len)))?;
                }
                b')' => self.put(EMPTY_TUPLE)?,
                // A set is read as the list of its items.
                b']' | 0x8f => self.push(Value::List(None))?,
                b'}' => self.push(Value::Dict(None))?,
                b't' => {
                    let from = self.mark()?;
                    self.tuple(from)?;
                }
                b'l' | 0x91 => {
                    let from = self.mark()?;
                    let list = self.values.push(Value::List(None))?;
                    self.values.extend(list, &self.stack[from..])?;
                    self.replace(from, list)?;
                }
                b'd' => {
                    let from = self.mark()?;
                    let dict = self.values.push(Value::Dict(None))?;
                    self.values.insert(dict, &self.stack[from..])?;
                    self.replace(from, dict)?;
                }
                0x85..=0x87 => {
                    let from = self
                        .stack
                        .len()
                        .checked_sub(usize::from(op) - 0x84)
                        .ok_or("expected values on the stack, found too few")?;
                    self.tuple(from)?;
                }
                b'a' => {
                    let item = self.pop()?;
                    let list = self.peek()?;
                    self.values.extend(list, &[item])?;
                }
                b'e' | 0x90 => {
                    let from = self.mark()?;
                    let list = self.below(from)?;
                    self.values.extend(list, &self.stack[from..])?;
                    self.stack.truncate(from);
                }
                b's' => {
                    let (value, key) = (self.pop()?, self.pop()?);
                    let dict = self.peek()?;
                    self.values.insert(dict, &[key, value])?;
                }
                b'u' => {
                    let from = self.mark()?;
                    let dict = self.below(from)?;
                    self.values.insert(dict, &self.stack[from..])?;
                    self.stack.truncate(from);
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
                    let constructor = constructor(self.vocabulary, module, name)?;
                    self.push(Value::Constructor(constructor))?;
                }
                0x93 => {
                    let (name, module) = (self.pop()?, self.pop()?);
                    let named = self.values.text(module).zip(self.values.text(name));
                    let (module, name) = named
                        .ok_or("expected the names of a module and of its member, found others")?;
                    let constructor = constructor(self.vocabulary, module, name)?;
                    self.push(Value::Constructor(constructor))?;
                }
                // BINPERSID
                b'Q' => {
                    let id = self.pop()?;
                    let storage = self.values.persistent(id)?;
                    self.push(storage)?;
                }
                // REDUCE and NEWOBJ: a constructor and its arguments.
                b'R' | 0x81 => {
                    let (arguments, constructor) = (self.pop()?, self.pop()?);
                    let made = self.values.call(constructor, arguments)?;
                    self.push(made)?;
                }
                b'b' => {
                    let (state, object) = (self.pop()?, self.peek()?);
                    self.values.build(object, state)?;
                }
                other => return Err(format!("expected an opcode of data, found {other:#04x}")),
            }
        }
    }

    fn take(&mut self, n: usize) -> Step<&'a [u8]> {
        let bytes = self.values.bytes;
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
        let rest = &self.values.bytes[self.at..];
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
    fn push(&mut self, value: Value) -> Step {
        let id = self.values.push(value)?;
        self.put(id)
    }
    /// Pushes a value that exists.
    fn put(&mut self, id: Id) -> Step {
        self.values.budget.reserve(&mut self.stack, 1)?;
        self.stack.push(id);
        Ok(())
    }
    /// Replaces the values from a position of the stack on by one.
    fn replace(&mut self, from: usize, id: Id) -> Step {
        self.stack.truncate(from);
        self.put(id)
    }
    fn tuple(&mut self, from: usize) -> Step {
        let tuple = self.values.tuple(&self.stack[from..])?;
        let tuple = self.values.push(tuple)?;
        self.replace(from, tuple)
    }
    /// The top of the stack, above the last mark.
    fn peek(&self) -> Step<Id> {
        self.below(self.stack.len())
    }
    /// The value below a position of the stack, above the last mark.
    fn below(&self, at: usize) -> Step<Id> {
        let floor = self.marks.last().map_or(0, |&mark| mark as usize);
        self.stack
            .get(floor..at)
            .and_then(|s| s.last().copied())
            .ok_or_else(|| "expected a value on the stack, found none".into())
    }
    fn pop(&mut self) -> Step<Id> {
        let top = self.peek()?;
        self.stack.pop();
        Ok(top)
    }
    /// Removes the last mark and returns its position in the stack.
    fn mark(&mut self) -> Step<usize> {
        let from = self.marks.pop().ok_or("expected a mark, found none")? as usize;
        if from > self.stack.len() {
            return Err("expected a mark below the top of the stack, found one above".into());
        }
        Ok(from)
    }
    fn int_of(&mut self, n: usize) -> Step {
        let unsigned = self.length(n)? as i64;
        let value = if n == 4 { i64::from(unsigned as u32 as i32) } else { unsigned };
        self.push(Value::Int(value))
    }
    /// A number after its length, which has `width` bytes.
    fn long(&mut self, width: usize) -> Step {
        let n = self.length(width)?;
        let part = self.take(n)?;
        // Larger than any count or id. A reader that needs this number returns an error.
        if n > 8 {
            return self.put(OTHER);
        }
        let mut b = [if part.last().is_some_and(|&top| top >= 0x80) { 0xff } else { 0 }; 8];
        b[..n].copy_from_slice(part);
        self.push(Value::Int(i64::from_le_bytes(b)))
    }
    fn decimal(&mut self, text: &str) -> Step {
        let value =
            text.parse().map_err(|_| format!("expected a whole number, found {:?}", cut(text)))?;
        self.push(Value::Int(value))
    }
    /// Bytes after their number, which has `width` bytes.
    fn bytes(&mut self, width: usize) -> Step {
        let n = self.length(width)?;
        self.take(n)?;
        self.push(Value::Bytes(Span::new(self.at - n, n)))
    }
    /// Text after its number of bytes, which has `width` bytes.
    fn text(&mut self, width: usize) -> Step {
        let n = self.length(width)?;
        std::str::from_utf8(self.take(n)?)
            .map_err(|_| "expected text in UTF-8, found other bytes")?;
        self.push(Value::Text(Span::new(self.at - n, n)))
    }
    fn memo(&mut self, key: u32, put: bool) -> Step {
        if put {
            let (top, next) = (self.peek()?, self.memo.len());
            match self.memo.get_mut(key as usize) {
                Some(place) => *place = top,
                None if key as usize == next => {
                    self.values.budget.reserve(&mut self.memo, 1)?;
                    self.memo.push(top);
                }
                None => {
                    self.values.budget.charge(FAR)?;
                    self.far.insert(key, top);
                }
            }
            return Ok(());
        }
        let found = self.memo.get(key as usize).or_else(|| self.far.get(&key));
        let found = found.copied();
        self.put(found.ok_or_else(|| format!("expected a filled place of the memo, found {key}"))?)
    }
}

/// The bytes of a string literal of Python 2.
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
                hex.ok_or("expected two digits after \\x, found others")?
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
