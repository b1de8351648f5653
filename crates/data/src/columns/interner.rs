//! Numbers texts in the order in which they are met.

use std::hash::BuildHasher;

use burn_gnn_graph::Texts;
use hashbrown::hash_table::Entry;
use hashbrown::{DefaultHashBuilder, HashTable};

/// Texts numbered in the order in which they are met.
#[derive(Default)]
pub(crate) struct Interner {
    texts: Texts,
    hasher: DefaultHashBuilder,
    table: HashTable<u32>,
}

impl Interner {
    /// The number of a text, a new one if it was not met before.
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
    /// The number of a text that was met before.
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
