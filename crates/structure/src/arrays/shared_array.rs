//! Holds the ids of a relation in own or shared memory.

use std::ops::Deref;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

use crate::memory::bytes::{Bytes, CountBytes};

/// Memory with another owner than the relation, such as a mapped file.
pub type SharedU32Array = Arc<dyn AsRef<[u32]> + Send + Sync + UnwindSafe + RefUnwindSafe>;

/// Node ids of edges; layouts read them as a slice and do not know where they are.
pub struct U32Array(Place);

enum Place {
    Own(Vec<u32>),
    Shared(Shared),
}

/// Numbers of another owner. Whoever changes them there (a mapped file that is written to) changes them after they were
/// checked: unsafe code must not rely on them.
struct Shared {
    /// What `owner` gave when it was asked, once.
    at: *const u32,
    len: usize,
    /// Keeps the numbers in place.
    _owner: SharedU32Array,
}

// SAFETY: `at` is a shared slice out of `_owner`, which may itself be sent and shared.
#[expect(unsafe_code, reason = "a slice beside its owner")]
unsafe impl Send for Shared {}
// SAFETY: as above.
#[expect(unsafe_code, reason = "a slice beside its owner")]
unsafe impl Sync for Shared {}

impl U32Array {
    /// The numbers that `owner` gives, which it is asked for once.
    pub fn shared(owner: SharedU32Array) -> Self {
        let words: &[u32] = (*owner).as_ref();
        let (at, len) = (words.as_ptr(), words.len());
        Self(Place::Shared(Shared { at, len, _owner: owner }))
    }
    /// Whether the memory is shared with another owner.
    pub fn is_shared(&self) -> bool {
        matches!(self.0, Place::Shared(_))
    }
}

impl From<Vec<u32>> for U32Array {
    fn from(v: Vec<u32>) -> Self {
        Self(Place::Own(v))
    }
}

impl Deref for U32Array {
    type Target = [u32];

    #[inline(always)]
    #[expect(unsafe_code, reason = "a slice beside its owner")]
    fn deref(&self) -> &[u32] {
        match &self.0 {
            Place::Own(v) => v,
            // SAFETY: the slice was borrowed from what `_owner` points to. That is neither moved nor changed through
            // safe code as long as it is borrowed: it lies behind an `Arc` of which one clone is here.
            Place::Shared(s) => unsafe { std::slice::from_raw_parts(s.at, s.len) },
        }
    }
}

/// Shared memory does not count.
impl CountBytes for U32Array {
    fn bytes(&self) -> Bytes {
        match &self.0 {
            Place::Own(v) => v.bytes(),
            Place::Shared(_) => Bytes::default(),
        }
    }
}

impl PartialEq for U32Array {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for U32Array {}

impl std::fmt::Debug for U32Array {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Weak;

    use super::*;

    /// An owner lives as long as its numbers are read, here and on other threads.
    #[test]
    fn numbers_of_another_owner() {
        let owner: Arc<Vec<u32>> = Arc::new(vec![3, 1, 2]);
        let gone: Weak<Vec<u32>> = Arc::downgrade(&owner);
        let words = U32Array::shared(owner);
        assert!(words.is_shared() && *words == [3, 1, 2] && words == U32Array::from(vec![3, 1, 2]));
        let words = std::thread::spawn(move || (words.iter().sum::<u32>(), words)).join().unwrap();
        assert_eq!((words.0, gone.upgrade().is_some()), (6, true));
        drop(words);
        assert!(gone.upgrade().is_none());
        assert_eq!(U32Array::shared(Arc::new(Vec::new())).len(), 0);
        assert!(!U32Array::from(vec![1]).is_shared());
    }
}
