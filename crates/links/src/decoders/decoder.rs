//! The interface of decoders.

use burn::module::Module;
use burn::tensor::{Int, Tensor};

use super::check::accept_pairs;
use super::comparison::Comparison;

/// The endpoint of a pair that candidates replace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// The source (head); the destination is given.
    Head,
    /// The destination (tail); the source is given.
    Tail,
}

/// Scores pairs of embeddings; a larger score means a likelier link.
///
/// A decoder combines the given endpoint and the relation to a [`query`](Self::query), and compares it with candidates
/// for the other endpoint. The scores of pairs and of queries against all candidates follow from
/// [`comparison`](Self::comparison). A decoder whose score is no comparison of a query with a candidate overrides
/// [`score`](Self::score) and [`score_all`](Self::score_all).
///
/// | decoder | score of `h`, `r`, `t` |
/// | --- | --- |
/// | [`Dot`](crate::Dot) | `Σ h t` |
/// | [`Bilinear`](crate::Bilinear) | `h W t` |
/// | [`MlpDecoder`](crate::MlpDecoder) | `MLP(h, r, t)` |
/// | [`DistMult`](crate::DistMult) | `Σ h r t` |
/// | [`ComplEx`](crate::ComplEx) | `Re Σ h r conj(t)` |
/// | [`RotatE`](crate::RotatE) | `-‖h e^(i r) - t‖` |
/// | [`TransE`](crate::TransE) | `-‖h + r - t‖` |
/// | [`Rescal`](crate::Rescal) | `h R_r t` |
/// | [`TuckEr`](crate::TuckEr) | `W ×₁ r ×₂ h ×₃ t` |
///
/// A user-defined decoder:
///
/// ```
/// use burn::module::{Module, Param};
/// use burn::tensor::{Device, Int, Tensor};
/// use burn_gnn_links::{Decoder, Side};
///
/// /// `Σ w h t`, one learned weight per feature.
/// #[derive(Module, Debug)]
/// struct Weighted {
///     weight: Param<Tensor<1>>,
/// }
///
/// impl Decoder for Weighted {
///     fn query(&self, given: Tensor<2>, _: Option<Tensor<1, Int>>, _: Side) -> Tensor<2> {
///         given * self.weight.val().unsqueeze()
///     }
/// }
///
/// let device = Device::flex();
/// let decoder = Weighted { weight: Param::from_tensor(Tensor::from_data([1.0, 2.0], &device)) };
/// let (src, dst) = (Tensor::ones([3, 2], &device), Tensor::ones([3, 2], &device));
/// assert_eq!(decoder.score(src, None, dst).into_data().try_to_vec::<f32>()?, [3.0; 3]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Decoder: Module {
    /// Combines the given endpoints with the relations.
    ///
    /// # Shapes
    /// `given: [n, d]`, `relations: [n]`, result `[n, columns]`, usually `[n, d]`.
    ///
    /// # Panics
    /// Shapes differ from those of the decoder, a relation is out of range, or relations are given to a decoder without
    /// relations or missing for one with relations.
    fn query(
        &self,
        given: Tensor<2>,
        relations: Option<Tensor<1, Int>>,
        replaced: Side,
    ) -> Tensor<2>;

    /// Comparison of queries with candidates.
    fn comparison(&self) -> Comparison {
        Comparison::Dot
    }

    /// Whether embeddings are complex numbers: real parts in the first half of the columns, imaginary parts in the second.
    fn is_complex(&self) -> bool {
        false
    }

    /// Embeddings of relations, `[relations, columns]`, for regularisation; `None` without relations.
    fn relation_embeddings(&self) -> Option<Tensor<2>> {
        None
    }

    /// Scores pairs.
    ///
    /// # Shapes
    /// `src` and `dst`: `[n, d]`, `relations`: `[n]`, result `[n]`.
    ///
    /// # Panics
    /// As [`query`](Self::query), and if `src` and `dst` have different shapes.
    fn score(
        &self,
        src: Tensor<2>,
        relations: Option<Tensor<1, Int>>,
        dst: Tensor<2>,
    ) -> Tensor<1> {
        accept_pairs("decoder", &src, &dst);
        self.comparison().pairs(self.query(src, relations, Side::Tail), dst)
    }

    /// Scores every query of [`query`](Self::query) with every candidate for the endpoint `replaced`.
    ///
    /// # Shapes
    /// `queries: [n, columns]`, `candidates: [m, d]`, result `[n, m]`.
    ///
    /// # Panics
    /// `candidates` has another feature size than the decoder.
    ///
    /// # Cost
    /// One matrix product if the comparison is one; otherwise blocks of candidates in bounded memory.
    fn score_all(&self, queries: Tensor<2>, candidates: Tensor<2>, _replaced: Side) -> Tensor<2> {
        self.comparison().all(queries, candidates)
    }
}
