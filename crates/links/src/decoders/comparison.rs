//! Compares queries with candidates: products and distances.

use burn::tensor::Tensor;
use burn_gnn_models::ModelError;
use burn_gnn_models::internal::root;
use burn_gnn_ops::matmul_rows;

use super::check::accept;

/// Numbers that a block of [`Comparison::all`] may allocate for distances that are not a matrix product.
const BLOCK: usize = 1 << 20;

/// Added to a sum of squares before its root, so that gradients stay finite.
const EPSILON: f64 = 1e-12;

/// How a query `q` and a candidate `c` become a score; larger is likelier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `Σ q · c`.
    Dot,
    /// `-Σ |q - c|`.
    L1,
    /// `-√(Σ (q - c)² + 1e-12)`.
    L2,
    /// `-Σ √(|q - c|² + 1e-12)` of complex numbers. The first half of the columns are real parts, the second half
    /// imaginary parts.
    Modulus,
}

impl Comparison {
    /// Compares row `i` of `queries` with row `i` of `candidates`.
    ///
    /// # Shapes
    /// Both `[n, d]`, result `[n]`.
    ///
    /// # Panics
    /// Shapes differ, or with [`Modulus`](Self::Modulus) the feature size is odd.
    #[track_caller]
    pub fn pairs(self, queries: Tensor<2>, candidates: Tensor<2>) -> Tensor<1> {
        let ([n, d], [rows, columns]) = (queries.dims(), candidates.dims());
        accept(
            "comparison",
            ModelError::check_length("rows of candidates", "one per query", n, rows)
                .and_then(|()| self.check_columns(d, columns)),
        );
        let scores = match self {
            Self::Dot => (queries * candidates).sum_dim(1),
            Self::L1 => (queries - candidates).abs().sum_dim(1).neg(),
            Self::L2 => root((queries - candidates).square().sum_dim(1), EPSILON).neg(),
            Self::Modulus => moduli(queries - candidates).sum_dim(1).neg(),
        };
        scores.squeeze_dim(1)
    }

    /// Compares every row of `queries` with every row of `candidates`.
    ///
    /// # Shapes
    /// `[n, d]` and `[m, d]`, result `[n, m]`.
    ///
    /// # Panics
    /// Feature sizes differ, or with [`Modulus`](Self::Modulus) they are odd.
    ///
    /// # Cost
    /// One matrix product for [`Dot`](Self::Dot) and [`L2`](Self::L2). The others are computed in blocks of candidates,
    /// which allocate at most 2²⁰ numbers, or `n · d`; on an autodiff device all blocks are kept for backward.
    #[track_caller]
    pub fn all(self, queries: Tensor<2>, candidates: Tensor<2>) -> Tensor<2> {
        let ([n, d], [m, columns]) = (queries.dims(), candidates.dims());
        accept("comparison", self.check_columns(d, columns));
        match self {
            Self::Dot => matmul_rows(queries, candidates.transpose()),
            Self::L2 => {
                let squares = |x: &Tensor<2>| x.clone().square().sum_dim(1);
                let both = squares(&queries) + squares(&candidates).transpose();
                root(both - matmul_rows(queries, candidates.transpose()) * 2.0, EPSILON).neg()
            }
            Self::L1 | Self::Modulus => {
                let block = (BLOCK / (n * d).max(1)).max(1);
                let rows = queries.unsqueeze_dim::<3>(1);
                let of_block = |from: usize| {
                    let to = m.min(from + block);
                    let part = candidates.clone().slice_dim(0, from..to).unsqueeze_dim::<3>(0);
                    let flat = (rows.clone() - part).reshape([n * (to - from), d]);
                    let terms = if self == Self::L1 { flat.abs() } else { moduli(flat) };
                    terms.sum_dim(1).neg().reshape([n, to - from])
                };
                if n == 0 || m == 0 {
                    // Connected to both operands, without entries.
                    return matmul_rows(rows.squeeze_dim::<2>(1), candidates.transpose());
                }
                Tensor::cat((0..m).step_by(block).map(of_block).collect(), 1)
            }
        }
    }

    /// Checks the feature sizes of queries and candidates.
    fn check_columns(self, queries: usize, candidates: usize) -> Result<(), ModelError> {
        let arg = "feature size of candidates";
        ModelError::check_length(arg, "that of the queries", queries, candidates)?;
        if self == Self::Modulus {
            let parts = ("parts of a complex number", 2);
            ModelError::check_divides(parts, ("feature size of queries", queries))?;
        }
        Ok(())
    }
}

/// Moduli of complex numbers.
fn moduli(x: Tensor<2>) -> Tensor<2> {
    let half = x.dims()[1] / 2;
    let squares = x.square();
    let sum = squares.clone().slice_dim(1, 0..half) + squares.slice_dim(1, half..2 * half);
    root(sum, EPSILON)
}
