//! Numbers texts in order of first occurrence.

use std::hash::BuildHasher;

use burn_gnn_graph::Texts;
use hashbrown::hash_table::Entry;
use hashbrown::{DefaultHashBuilder, HashTable};

/// Maps texts to numbers, in order of first occurrence.
#[derive(Default)]
pub(crate) struct Interner {
    texts: Texts,
    hasher: DefaultHashBuilder,
    table: HashTable<u32>,
}

impl Interner {
    /// Returns the number of a text. A new text gets the next number.
    pub(crate) fn number(&mut self, text: &str) -> u32 {
        let Self { texts, hasher, table } = self;
        let found = table.entry(
            hasher.hash_one(text),
            |&n| texts.get(n as usize) == text,
            |&n| hasher.hash_one(texts.get(n as usize)),
        );
        match found {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(free) => {
                let number = texts.len() as u32;
                free.insert(number);
                texts.push(text);
                number
            }
        }
    }
    /// Returns the number of a known text.
    pub(crate) fn get(&self, text: &str) -> Option<u32> {
        let hash = self.hasher.hash_one(text);
        self.table.find(hash, |&n| self.texts.get(n as usize) == text).copied()
    }
    pub(crate) fn texts(&self) -> &Texts {
        &self.texts
    }
    pub(crate) fn into_texts(self) -> Texts {
        self.texts
    }
}
