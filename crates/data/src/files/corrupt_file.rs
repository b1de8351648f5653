//! Damages a random file of a folder, for tests of readers.

use std::path::{Path, PathBuf};

use proptest::prelude::*;

/// A change to one byte of one file: which file, which position, which change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Damage {
    file: prop::sample::Index,
    at: prop::sample::Index,
    how: u8,
    byte: u8,
}

pub(crate) fn damage() -> impl Strategy<Value = Damage> {
    (any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0u8..5, any::<u8>())
        .prop_map(|(file, at, how, byte)| Damage { file, at, how, byte })
}

/// Applies the damage to a file under `dir`.
pub(crate) fn spoil(dir: &Path, d: Damage) {
    let mut files = vec![];
    list(dir, &mut files);
    files.sort();
    let path = d.file.get(&files);
    let mut bytes = std::fs::read(path).unwrap();
    if bytes.is_empty() {
        return;
    }
    let at = d.at.index(bytes.len());
    match d.how {
        0 => bytes[at] = d.byte,
        1 => bytes[at] ^= 1 << (d.byte % 8),
        2 => bytes.truncate(at),
        3 => bytes.insert(at, d.byte),
        // A digit may be part of a size.
        _ => bytes[at] = b'0' + d.byte % 10,
    }
    std::fs::write(path, bytes).unwrap();
}

fn list(dir: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { list(&path, out) } else { out.push(path) }
    }
}
