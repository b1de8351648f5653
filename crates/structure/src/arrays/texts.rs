//! A list of strings in one buffer.

use std::fmt;

/// A column of strings, stored as one buffer and the end offset of each string. The overhead is 8 bytes per string.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Texts {
    bytes: String,
    ends: Vec<usize>,
}

impl Texts {
    /// An empty column.
    pub fn new() -> Self {
        Self::default()
    }
    /// Number of strings.
    pub fn len(&self) -> usize {
        self.ends.len()
    }
    /// Whether there are no strings.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
    /// String `i`.
    ///
    /// # Panics
    /// If `i` is not below [`len`](Self::len).
    #[track_caller]
    pub fn get(&self, i: usize) -> &str {
        &self.bytes[if i == 0 { 0 } else { self.ends[i - 1] }..self.ends[i]]
    }
    /// All strings in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> + '_ {
        (0..self.len()).map(|i| self.get(i))
    }
    /// Appends a string.
    pub fn push(&mut self, text: &str) {
        self.bytes.push_str(text);
        self.ends.push(self.bytes.len());
    }
    /// Gathers the strings at `rows`, in this order.
    ///
    /// # Panics
    /// If a row is not below [`len`](Self::len).
    #[track_caller]
    #[must_use]
    pub fn select(&self, rows: impl IntoIterator<Item = usize>) -> Self {
        rows.into_iter().map(|r| self.get(r)).collect()
    }
    /// The buffer, and the end offset of each string.
    #[doc(hidden)]
    pub fn parts(&self) -> (&str, &[usize]) {
        (&self.bytes, &self.ends)
    }
    /// From [`parts`](Self::parts). Returns `None` unless the offsets ascend to the length of the buffer and are character
    /// boundaries.
    #[doc(hidden)]
    pub fn from_parts(bytes: String, ends: Vec<usize>) -> Option<Self> {
        let ascending = ends.windows(2).all(|w| w[0] <= w[1])
            && ends.last().copied().unwrap_or(0) == bytes.len();
        (ascending && ends.iter().all(|&e| bytes.is_char_boundary(e)))
            .then_some(Self { bytes, ends })
    }
    /// Appends the strings of another column.
    #[doc(hidden)]
    pub fn append(&mut self, other: &Self) {
        let before = self.bytes.len();
        self.bytes.push_str(&other.bytes);
        self.ends.extend(other.ends.iter().map(|e| before + e));
    }
}

impl fmt::Debug for Texts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<T: AsRef<str>> FromIterator<T> for Texts {
    fn from_iter<I: IntoIterator<Item = T>>(texts: I) -> Self {
        let mut out = Self::new();
        texts.into_iter().for_each(|t| out.push(t.as_ref()));
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_appended_selected_and_rebuilt() {
        let mut t: Texts = ["ä", "", "bc"].into_iter().collect();
        assert_eq!((t.get(0), t.get(1), t.get(2), t.len()), ("ä", "", "bc", 3));
        t.append(&["x", ""].into_iter().collect());
        assert_eq!(t.iter().collect::<Vec<_>>(), ["ä", "", "bc", "x", ""]);
        assert_eq!(t.select([3, 0, 3]), ["x", "ä", "x"].into_iter().collect());
        let (bytes, ends) = t.parts();
        assert_eq!(Texts::from_parts(bytes.to_owned(), ends.to_vec()), Some(t.clone()));
        for bad in [
            vec![1, 2, 4, 5, 5],
            vec![2, 1, 4, 5, 5],
            vec![2, 2, 4, 5],
            vec![2, 2, 4, 9, 5],
            vec![],
        ] {
            let bad_ends = bad != [2, 2, 4, 5];
            assert_eq!(Texts::from_parts(bytes.to_owned(), bad).is_none(), bad_ends);
        }
        assert_eq!(format!("{t:?}"), r#"["ä", "", "bc", "x", ""]"#);
    }
}
