//! Holds the values of a pickle within a bound on memory.

use super::blocks::Blocks;
use super::value::{Array, Id, Span, Step, Storage, Strided, Value};

/// Memory of the values for each byte of a pickle.
const PER_BYTE: usize = 3;
/// Memory of the values of any pickle.
const FREE: usize = 6 << 20;

/// Values that every pickle shares.
pub(super) const NONE: Id = Id::at(0);
pub(super) const FALSE: Id = Id::at(1);
pub(super) const TRUE: Id = Id::at(2);
pub(super) const EMPTY_TUPLE: Id = Id::at(3);
pub(super) const OTHER: Id = Id::at(4);

/// The memory that is left to the values of a pickle.
///
/// One byte of a pickle may make a value, an entry of a list or a place of the memo, and a few bytes may copy a list
/// that others filled. So memory is charged before it is allocated.
pub(super) struct Budget {
    pub(super) left: usize,
    /// The whole budget, for errors.
    all: usize,
}

impl Budget {
    fn new(bytes: usize) -> Self {
        let all = bytes.saturating_mul(PER_BYTE).saturating_add(FREE);
        Self { left: all, all }
    }
    fn exceeded(&self) -> String {
        format!(
            "expected values that fit in {} bytes of memory ({PER_BYTE} for each byte and {FREE}), found more",
            self.all
        )
    }
    /// Charges memory of `bytes`.
    pub(super) fn charge(&mut self, bytes: usize) -> Step {
        self.left = self.left.checked_sub(bytes).ok_or_else(|| self.exceeded())?;
        Ok(())
    }
    /// Reserves room for `more` entries of a vector, which grows by half.
    pub(super) fn reserve<T>(&mut self, vec: &mut Vec<T>, more: usize) -> Step {
        let (len, before) = (vec.len(), vec.capacity());
        if before - len >= more {
            return Ok(());
        }
        let new = (len + more).max(before + before / 2).max(4);
        // The old and the new memory exist at the same time.
        if new.saturating_mul(size_of::<T>()) > self.left {
            return Err(self.exceeded());
        }
        vec.reserve_exact(new - len);
        self.left -= (vec.capacity() - before) * size_of::<T>();
        Ok(())
    }
}

/// All values of a pickle, and their contents.
pub(super) struct Values<'a> {
    pub(super) bytes: &'a [u8],
    /// Bytes that do not occur in the file, such as decoded texts. Their spans begin after the end of the file.
    decoded: Vec<u8>,
    values: Blocks<Value>,
    pub(super) items: Vec<Id>,
    pub(super) lists: Blocks<Vec<Id>>,
    pub(super) dicts: Blocks<Vec<(Id, Id)>>,
    pub(super) arrays: Vec<Array>,
    pub(super) storages: Vec<Storage>,
    pub(super) tensors: Vec<Strided>,
    pub(super) budget: Budget,
}

impl<'a> Values<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        let mut values = Blocks::default();
        let shared = [
            Value::None,
            Value::Bool(false),
            Value::Bool(true),
            Value::Tuple(Span::default()),
            Value::Other,
        ];
        for value in shared {
            values.push(value);
        }
        Self {
            bytes,
            decoded: vec![],
            values,
            items: vec![],
            lists: Blocks::default(),
            dicts: Blocks::default(),
            arrays: vec![],
            storages: vec![],
            tensors: vec![],
            budget: Budget::new(bytes.len()),
        }
    }

    pub(super) fn push(&mut self, value: Value) -> Step<Id> {
        if let Value::Int(i) = value
            && let Some(id) = Id::of_int(i)
        {
            return Ok(id);
        }
        self.budget.charge(size_of::<Value>())?;
        Ok(Id::at(self.values.push(value)))
    }
    pub(super) fn get(&self, id: Id) -> Value {
        match id.int() {
            Ok(i) => Value::Int(i),
            Err(position) => self.values[position],
        }
    }
    /// Replaces a value, which is not a whole number.
    pub(super) fn set(&mut self, id: Id, value: Value) {
        if let Err(position) = id.int() {
            self.values[position] = value;
        }
    }

    pub(super) fn part(&self, span: Span) -> &[u8] {
        match (span.start as usize).checked_sub(self.bytes.len()) {
            Some(start) if span.len > 0 => &self.decoded[start..start + span.len()],
            _ => &self.bytes[span.range()],
        }
    }
    pub(super) fn text(&self, id: Id) -> Option<&str> {
        if let Value::Text(span) = self.get(id) {
            std::str::from_utf8(self.part(span)).ok()
        } else {
            None
        }
    }
    /// A text that was validated; empty for other bytes.
    #[cfg(feature = "torch")]
    pub(super) fn name(&self, span: Span) -> &str {
        std::str::from_utf8(self.part(span)).unwrap_or_default()
    }
    /// The items of a tuple; none for another value.
    pub(super) fn items(&self, id: Id) -> &[Id] {
        if let Value::Tuple(span) = self.get(id) { &self.items[span.range()] } else { &[] }
    }

    /// Stores bytes that were decoded from a text. All together may not be longer than the file, since a pickle may
    /// decode the same text many times.
    pub(super) fn decode(&mut self, bytes: &[u8]) -> Step<Span> {
        if bytes.is_empty() {
            return Ok(Span::default());
        }
        if self.decoded.len() + bytes.len() > self.bytes.len() {
            return Err(
                "expected each text to be decoded once, found one that is decoded many times"
                    .into(),
            );
        }
        let span = Span::new(self.bytes.len() + self.decoded.len(), bytes.len());
        self.budget.reserve(&mut self.decoded, bytes.len())?;
        self.decoded.extend_from_slice(bytes);
        Ok(span)
    }
    pub(super) fn tuple(&mut self, items: &[Id]) -> Step<Value> {
        let span = Span::new(self.items.len(), items.len());
        self.budget.reserve(&mut self.items, items.len())?;
        self.items.extend_from_slice(items);
        Ok(Value::Tuple(span))
    }
    /// Appends items to a list.
    pub(super) fn extend(&mut self, list: Id, items: &[Id]) -> Step {
        let Value::List(mut at) = self.get(list) else {
            return Err("expected a list to append to, found another value".into());
        };
        let entries = entries(&mut at, &mut self.lists, &mut self.budget)?;
        self.budget.reserve(entries, items.len())?;
        entries.extend_from_slice(items);
        self.set(list, Value::List(at));
        Ok(())
    }
    /// Inserts keys and values, in turns, into a dictionary.
    pub(super) fn insert(&mut self, dict: Id, items: &[Id]) -> Step {
        let Value::Dict(mut at) = self.get(dict) else {
            return Err("expected a dictionary to fill, found another value".into());
        };
        let (pairs, rest) = items.as_chunks::<2>();
        if !rest.is_empty() {
            return Err("expected keys and values, found an odd number".into());
        }
        let entries = entries(&mut at, &mut self.dicts, &mut self.budget)?;
        self.budget.reserve(entries, pairs.len())?;
        entries.extend(pairs.iter().map(|&[key, value]| (key, value)));
        self.set(dict, Value::Dict(at));
        Ok(())
    }
}

/// The entries of a container, which gets a position among `all` with its first entry.
fn entries<'s, T>(
    at: &mut Option<u32>,
    all: &'s mut Blocks<Vec<T>>,
    budget: &mut Budget,
) -> Step<&'s mut Vec<T>> {
    let position = match *at {
        Some(position) => position,
        None => {
            budget.charge(size_of::<Vec<T>>())?;
            all.push(vec![])
        }
    };
    *at = Some(position);
    Ok(&mut all[position])
}
