//! Counter-based random words on the device, with the same bits as `burn_gnn_graph::philox4x32`.

use cubecl::prelude::*;

/// Four words for a counter and a key (Philox4x32-10).
#[cube]
pub(crate) fn philox(
    c0: u32,
    c1: u32,
    c2: u32,
    c3: u32,
    key_0: u32,
    key_1: u32,
) -> Vector<u32, Const<4>> {
    let mut a = c0;
    let mut b = c1;
    let mut c = c2;
    let mut d = c3;
    let mut k = key_0;
    let mut l = key_1;
    #[unroll]
    for _round in 0..10u32 {
        let high_a = a.mul_hi(0xD251_1F53u32);
        let low_a = a * 0xD251_1F53u32;
        let high_c = c.mul_hi(0xCD9E_8D57u32);
        let low_c = c * 0xCD9E_8D57u32;
        a = high_c ^ b ^ k;
        b = low_c;
        c = high_a ^ d ^ l;
        d = low_a;
        k += 0x9E37_79B9u32;
        l += 0xBB67_AE85u32;
    }
    let mut words = Vector::<u32, Const<4>>::new(a);
    words.insert(1usize, b);
    words.insert(2usize, c);
    words.insert(3usize, d);
    words
}

/// Word number `at` of four.
#[cube]
pub(crate) fn pick(words: Vector<u32, Const<4>>, at: u32) -> u32 {
    let mut word = words.extract(0usize);
    if at == 1u32 {
        word = words.extract(1usize);
    } else if at == 2u32 {
        word = words.extract(2usize);
    } else if at == 3u32 {
        word = words.extract(3usize);
    }
    word
}

/// The random words of a dropout, and the test whether a word keeps its entry.
#[derive(CubeType, CubeLaunch)]
pub(crate) struct Draws {
    pub(crate) key_0: u32,
    pub(crate) key_1: u32,
    /// Words of at least this keep their entry,
    pub(crate) from: u32,
    /// unless this is 1.
    pub(crate) none: u32,
    /// What kept entries are multiplied by.
    pub(crate) scale: InputScalar,
    /// Ids of rows, two words each, if they differ from row numbers.
    pub(crate) ids: ComptimeOption<Box<[u32]>>,
}

#[cube]
impl Draws {
    /// The words of columns `4 · block ..` of row `row`.
    pub(crate) fn words(&self, row: usize, block: u32) -> Vector<u32, Const<4>> {
        let mut low = row as u32;
        let mut high = 0u32;
        #[comptime]
        if let ComptimeOption::Some(ids) = &self.ids {
            low = ids[2 * row];
            high = ids[2 * row + 1];
        }
        philox(low, high, block, 0u32, self.key_0, self.key_1)
    }

    /// Whether a word keeps its entry.
    pub(crate) fn keeps(&self, word: u32) -> bool {
        word >= self.from && self.none == 0u32
    }
}
