//! Checks that indices are a permutation of rows.

/// A validated permutation: every number below the length occurs exactly once. Kernels rely on it to write rows in
/// parallel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permutation(std::sync::Arc<[u32]>);

impl Permutation {
    /// Validates `numbers`.
    ///
    /// # Panics
    /// A number is not below the length, or occurs twice.
    pub fn new(numbers: Vec<u32>) -> Self {
        let mut seen = vec![0u64; numbers.len().div_ceil(64)];
        for &n in &numbers {
            let (word, bit) = (n as usize / 64, 1u64 << (n % 64));
            let new = (n as usize) < numbers.len() && seen[word] & bit == 0;
            assert!(
                new,
                "a permutation of {} numbers contains each of them once, found {n} twice or too large",
                numbers.len()
            );
            seen[word] |= bit;
        }
        Self(numbers.into())
    }
}

impl burn_gnn_structure::CountBytes for Permutation {
    fn bytes(&self) -> burn_gnn_structure::Bytes {
        self.0.bytes()
    }
}

impl std::ops::Deref for Permutation {
    type Target = [u32];

    #[inline(always)]
    fn deref(&self) -> &[u32] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_once() {
        assert_eq!(*Permutation::new(vec![2, 0, 1]), [2, 0, 1]);
        assert!(Permutation::new(vec![]).is_empty());
        let all: Vec<u32> = (0..200).map(|i| (i * 7) % 200).collect();
        assert_eq!(*Permutation::new(all.clone()), all);
        for wrong in [vec![0, 0], vec![1, 2], vec![u32::MAX]] {
            assert!(std::panic::catch_unwind(|| Permutation::new(wrong)).is_err());
        }
    }
}
