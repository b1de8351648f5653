//! Damages files as a function of the case number: changes bytes, or changes values such that the
//! syntax of the format stays valid.

mod values;

pub use values::{json, npy, number, safetensors, text, times, word};

/// Random numbers of one case, by SplitMix64.
#[derive(Clone, Debug)]
pub struct Damage(u64);

/// Bytes with a meaning in file formats.
const MEANT: &[u8] = b"\t\n\r:,;|\"'\\ -+.eE0129{}[]()\x00\x1f\x8b\xff\xc3\xa9";

impl Damage {
    /// Creates the random numbers of a case.
    pub fn new(case: u64) -> Self {
        Self(case.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    /// Returns a number below `n`, or 0 if `n` is 0.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
    fn byte(&mut self) -> u8 {
        if self.below(2) == 0 { MEANT[self.below(MEANT.len())] } else { self.next() as u8 }
    }

    /// Makes one to four changes of bytes.
    pub fn spoil(&mut self, whole: &[u8]) -> Vec<u8> {
        let mut bytes = whole.to_vec();
        for _ in 0..=self.below(4) {
            let at = self.below(bytes.len());
            if bytes.is_empty() {
                break;
            }
            match self.below(8) {
                0 => bytes[at] ^= 1 << self.below(8),
                1 => bytes[at] = self.byte(),
                2 => bytes.insert(at, self.byte()),
                3 => drop(bytes.remove(at)),
                4 => bytes.truncate(at),
                // Sizes are written in digits.
                5 => bytes[at] = b'0' + self.below(10) as u8,
                6 => {
                    let end = (at + 1 + self.below(40)).min(bytes.len());
                    let piece = bytes[at..end].to_vec();
                    let to = self.below(bytes.len());
                    (0..=self.below(20))
                        .for_each(|_| drop(bytes.splice(to..to, piece.iter().copied())));
                }
                _ => {
                    let end = (at + 1 + self.below(12)).min(bytes.len());
                    bytes.drain(at..end);
                }
            }
        }
        bytes
    }
}
