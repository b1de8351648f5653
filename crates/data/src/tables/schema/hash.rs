//! Hashes texts and numbers into buckets, as GraphLearn and TensorFlow do.

use serde::{Deserialize, Serialize};

/// GraphLearn's seed of MurmurHash64A (`src/common/base/hash.cc`).
const SEED: u64 = 0x00DE_CAFC_AFFE;

/// The hash that maps a text to a bucket, `hash(bytes) mod buckets`, unsigned. Texts are not trimmed or case-folded.
///
/// The two hashes map a text to different buckets: with 800 buckets, `shanghai` is in 768 by the first and in 184 by the
/// second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TextHash {
    /// MurmurHash64A with the seed `0xDECAFCAFFE`, GraphLearn's hash of single-valued strings.
    #[serde(rename = "murmur_hash64a")]
    MurmurHash64A,
    /// FarmHash Fingerprint64: TensorFlow's `to_hash_bucket_fast`, which GraphLearn's models use for multi-valued
    /// strings.
    FarmFingerprint64,
}

impl TextHash {
    /// The 64-bit hash.
    ///
    /// ```
    /// use burn_gnn_data::TextHash;
    /// assert_eq!(TextHash::MurmurHash64A.hash("shanghai"), 0x6dd628a79985df40);
    /// assert_eq!(TextHash::FarmFingerprint64.hash("shanghai"), 0x84078fbed267f018);
    /// ```
    pub fn hash(self, text: &str) -> u64 {
        match self {
            Self::MurmurHash64A => murmur2::murmur64a(text.as_bytes(), SEED),
            Self::FarmFingerprint64 => farmhash::fingerprint64(text.as_bytes()),
        }
    }
    /// The bucket of `text` in `0..buckets`.
    pub(crate) fn bucket(self, text: &str, buckets: u32) -> i64 {
        (self.hash(text) % u64::from(buckets)) as i64
    }
}

/// The key of a text in a growing embedding table: Fingerprint64 modulo `2^63 - 1`, as TensorFlow's
/// `to_hash_bucket_fast(x, int64.max)`.
pub(crate) fn key(text: &str) -> i64 {
    (TextHash::FarmFingerprint64.hash(text) % i64::MAX as u64) as i64
}

/// How a whole number is mapped to a bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IntBuckets {
    /// Fingerprint64 of the decimal text, as in GraphLearn's models (with 1000 buckets, 7 is in 88). Numbers below the
    /// bucket count may share a bucket.
    #[default]
    FarmFingerprint64,
    /// The number itself, which must be in `0..buckets`.
    Identity,
    /// The number modulo the bucket count, never negative.
    Modulo,
}

impl IntBuckets {
    /// The bucket of `value`; `None` for [`Identity`](Self::Identity) of a value outside `0..buckets`.
    pub(crate) fn bucket(self, value: i64, buckets: u32) -> Option<i64> {
        match self {
            Self::FarmFingerprint64 => {
                Some(TextHash::FarmFingerprint64.bucket(&value.to_string(), buckets))
            }
            Self::Identity => (0..i64::from(buckets)).contains(&value).then_some(value),
            Self::Modulo => Some(value.rem_euclid(i64::from(buckets))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn murmur_hashes_equal_those_of_graphlearn() {
        let vectors = [
            ("", 0x8176_9421_199f_9e3b, [9, 399, 699, 899]),
            ("a", 0x2996_2dc0_26ea_c9fc, [8, 368, 668, 868]),
            ("abc", 0x4e86_5c82_2fec_8db6, [0, 210, 310, 710]),
            ("shanghai", 0x6dd6_28a7_9985_df40, [8, 368, 768, 368]),
            ("beijing", 0x0944_eac6_973d_80af, [9, 479, 79, 479]),
            ("hangzhou", 0xd244_6969_6f63_484f, [9, 279, 79, 279]),
            ("red", 0x4bbb_8238_095c_2ecb, [3, 63, 363, 563]),
            ("12345678", 0x05d8_26b6_2696_d2b7, [7, 287, 87, 287]),
            ("123456789", 0xc68e_e0a8_6083_59cb, [1, 471, 171, 971]),
            ("s2", 0xc5ed_03fc_fc03_112f, [3, 223, 623, 223]),
            ("上海", 0x6132_5094_ff5f_ad6d, [7, 377, 77, 877]),
        ];
        for (text, hash, buckets) in vectors {
            assert_eq!(TextHash::MurmurHash64A.hash(text), hash, "{text}");
            assert_eq!(
                [10, 500, 800, 1000].map(|b| TextHash::MurmurHash64A.bucket(text, b)),
                buckets,
                "{text}"
            );
        }
    }

    #[test]
    fn fingerprints_equal_those_of_tensorflow() {
        let vectors = [
            ("", 0x9ae1_6a3b_2f90_404f),
            ("a", 0xb345_4265_b6df_75e3),
            ("abc", 0x24a5_b3a0_74e7_f369),
            ("0", 0xd2ed_9607_3b81_823f),
            ("7", 0x8831_601f_3004_3498),
            ("1000", 0xffa3_3e0c_07a4_d679),
            ("123456789", 0x6290_b5b9_9f49_dc6a),
            ("shanghai", 0x8407_8fbe_d267_f018),
            ("red", 0x0dc1_119c_86e5_61f6),
            ("Hello", 0xd5c8_7c1e_326b_2087),
        ];
        for (text, hash) in vectors {
            assert_eq!(TextHash::FarmFingerprint64.hash(text), hash, "{text}");
        }
        // One text for each branch on the length; values of the C++ library through pyfarmhash 0.5.1.
        let long = "the quick brown fox jumps over the lazy dog, ".repeat(5);
        for (n, hash) in [
            (16, 0x53fd_fe1a_208a_5526),
            (17, 0x9d20_e2db_e4ab_1185),
            (32, 0xfa66_ee2d_8012_58cf),
            (33, 0xd4c3_4435_e5c9_e3cd),
            (64, 0xaa33_635d_112e_6f89),
            (65, 0xab0f_3f56_f483_5f3d),
            (100, 0x5704_aef0_c0ad_8d01),
            (200, 0xdbef_3bde_1a40_e147),
        ] {
            assert_eq!(TextHash::FarmFingerprint64.hash(&long[..n]), hash, "{n} bytes");
        }
        // The example of TensorFlow's documentation.
        assert_eq!(
            ["Hello", "TensorFlow", "2.x"].map(|t| TextHash::FarmFingerprint64.bucket(t, 3)),
            [0, 2, 2]
        );
        assert_eq!(
            (TextHash::FarmFingerprint64.bucket("shanghai", 800), key("a")),
            (184, (0xb345_4265_b6df_75e3 % i64::MAX as u64) as i64)
        );
    }

    #[test]
    fn numbers_are_mapped_to_buckets() {
        let all = |v| {
            [IntBuckets::FarmFingerprint64, IntBuckets::Identity, IntBuckets::Modulo]
                .map(|k| k.bucket(v, 1000))
        };
        assert_eq!(all(7), [Some(88), Some(7), Some(7)]);
        assert_eq!(all(1000), [Some(593), None, Some(0)]);
        assert_eq!(all(-1)[1..], [None, Some(999)]);
    }
}
