//! Holds node ids in owned or shared memory.

use std::ops::Deref;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

use crate::memory::bytes::{Bytes, CountBytes};

/// Memory that an object other than the relation owns, such as a mapped file.
pub type SharedU32Array = Arc<dyn AsRef<[u32]> + Send + Sync + UnwindSafe + RefUnwindSafe>;

/// Node ids of edges: a slice of owned memory or of a mapped file.
pub struct U32Array(Memory);

enum Memory {
    Owned(Vec<u32>),
    Shared(Shared),
}

/// A slice of memory that another object owns. The memory may change after validation, for example if a process writes
/// to a mapped file. So unsafe code must not rely on its contents.
struct Shared {
    /// The slice of the owner, read once.
    at: *const u32,
    len: usize,
    /// Keeps the slice alive.
    _owner: SharedU32Array,
}

// SAFETY: `at` points to a slice of `_owner`, which is `Send` and `Sync`.
#[expect(unsafe_code, reason = "a struct that holds a slice and its owner")]
unsafe impl Send for Shared {}
// SAFETY: as above.
#[expect(unsafe_code, reason = "a struct that holds a slice and its owner")]
unsafe impl Sync for Shared {}

impl U32Array {
    /// The slice that `owner.as_ref()` returns; it is called once.
    pub fn shared(owner: SharedU32Array) -> Self {
        let words: &[u32] = (*owner).as_ref();
        let (at, len) = (words.as_ptr(), words.len());
        Self(Memory::Shared(Shared { at, len, _owner: owner }))
    }
    /// Whether another object owns the memory.
    pub fn is_shared(&self) -> bool {
        matches!(self.0, Memory::Shared(_))
    }
}

impl From<Vec<u32>> for U32Array {
    fn from(v: Vec<u32>) -> Self {
        Self(Memory::Owned(v))
    }
}

impl Deref for U32Array {
    type Target = [u32];

    #[inline(always)]
    #[expect(unsafe_code, reason = "a struct that holds a slice and its owner")]
    fn deref(&self) -> &[u32] {
        match &self.0 {
            Memory::Owned(v) => v,
            // SAFETY: the slice was borrowed from the contents of the `Arc` `_owner`. This struct holds a clone of the
            // `Arc`, so safe code can neither move nor drop nor mutably borrow the contents.
            Memory::Shared(s) => unsafe { std::slice::from_raw_parts(s.at, s.len) },
        }
    }
}

/// Counts owned memory only.
impl CountBytes for U32Array {
    fn bytes(&self) -> Bytes {
        match &self.0 {
            Memory::Owned(v) => v.bytes(),
            Memory::Shared(_) => Bytes::default(),
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

    /// The owner is dropped with the last array that reads its slice, on any thread.
    #[test]
    fn shared_array_keeps_its_owner_alive() {
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
