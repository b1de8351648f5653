//! A vector that grows by blocks.

use std::ops::{Index, IndexMut};

/// Values per block.
const BLOCK: usize = 1 << 12;

/// Values by position. A vector that doubles takes three times its memory while it grows; this takes it once.
#[derive(Debug)]
pub(super) struct Blocks<T>(Vec<Vec<T>>);

impl<T> Default for Blocks<T> {
    fn default() -> Self {
        Self(vec![])
    }
}

impl<T> Blocks<T> {
    /// Appends a value and returns its position.
    pub(super) fn push(&mut self, value: T) -> u32 {
        if self.0.last().is_none_or(|block| block.len() == BLOCK) {
            self.0.push(vec![]);
        }
        let before = (self.0.len() - 1) * BLOCK;
        let Some(block) = self.0.last_mut() else { unreachable!("a block was added") };
        block.push(value);
        (before + block.len()) as u32 - 1
    }
}

impl<T> Index<u32> for Blocks<T> {
    type Output = T;

    fn index(&self, at: u32) -> &T {
        &self.0[at as usize / BLOCK][at as usize % BLOCK]
    }
}

impl<T> IndexMut<u32> for Blocks<T> {
    fn index_mut(&mut self, at: u32) -> &mut T {
        &mut self.0[at as usize / BLOCK][at as usize % BLOCK]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_consecutive() {
        let mut all = Blocks::default();
        for i in 0..3 * BLOCK as u32 {
            assert_eq!(all.push(i), i);
        }
        all[BLOCK as u32] = 7;
        assert_eq!([all[0], all[BLOCK as u32 - 1], all[BLOCK as u32]], [0, BLOCK as u32 - 1, 7]);
        assert_eq!(all[3 * BLOCK as u32 - 1], 3 * BLOCK as u32 - 1);
    }
}
