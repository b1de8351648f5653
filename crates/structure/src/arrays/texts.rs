//! Stores many texts in one buffer.

use std::fmt;

/// A column of texts: all bytes in one buffer, with the end of each text. Costs 8 bytes a text beside its bytes.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Texts {
    bytes: String,
    ends: Vec<usize>,
}

impl Texts {
    /// No texts.
    pub fn new() -> Self {
        Self::default()
    }
    /// Number of texts.
    pub fn len(&self) -> usize {
        self.ends.len()
    }
    /// Whether there are no texts.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
    /// Text `i`.
    ///
    /// # Panics
    /// `i` is not below [`len`](Self::len).
    #[track_caller]
    pub fn get(&self, i: usize) -> &str {
        &self.bytes[if i == 0 { 0 } else { self.ends[i - 1] }..self.ends[i]]
    }
    /// All texts in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> + '_ {
        (0..self.len()).map(|i| self.get(i))
    }
    /// One more text.
    pub fn push(&mut self, text: &str) {
        self.bytes.push_str(text);
        self.ends.push(self.bytes.len());
    }
    /// The texts at `rows`, in that order.
    ///
    /// # Panics
    /// A row is not below [`len`](Self::len).
    #[track_caller]
    #[must_use]
    pub fn select(&self, rows: impl IntoIterator<Item = usize>) -> Self {
        rows.into_iter().map(|r| self.get(r)).collect()
    }
    /// All bytes, and where each text ends in them.
    #[doc(hidden)]
    pub fn parts(&self) -> (&str, &[usize]) {
        (&self.bytes, &self.ends)
    }
    /// From [`parts`](Self::parts); `None` unless the ends rise to the length and cut between characters.
    #[doc(hidden)]
    pub fn from_parts(bytes: String, ends: Vec<usize>) -> Option<Self> {
        let rises = ends.windows(2).all(|w| w[0] <= w[1])
            && ends.last().copied().unwrap_or(0) == bytes.len();
        (rises && ends.iter().all(|&e| bytes.is_char_boundary(e))).then_some(Self { bytes, ends })
    }
    /// The texts of another column behind these.
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
    fn texts_keep_their_places() {
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
