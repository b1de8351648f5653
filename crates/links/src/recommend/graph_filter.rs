//! Scores items by a linear filter on the graph of interactions, without training.
//!
//! # Algorithm
//! With `N[u, i] = 1 / √(deg u · deg i)` for interactions, `P = Nᵀ N` is a graph of items with eigenvalues in `0..=1`. The
//! scores of a user with items `r` (a row of zeros and ones) are
//!
//! ```text
//! s = r (P + ideal · D^-½ V Vᵀ D^½) p(P)        p(λ) = Σ_(j = 0..=4) (-sharpen · λ)^j / j! ≈ e^(-sharpen · λ)
//! ```
//!
//! `V` are the eigenvectors of the `rank` largest eigenvalues, by subspace iteration; `D` are degrees of items. `P` smooths:
//! items of users who share items. The second term is an ideal low-pass filter, and `p` damps the largest eigenvalues,
//! which belong to items that are popular with all users. Where `sharpen` changes the first term beyond the `rank` eigenvalues, its
//! effect is below `sharpen · λ²` of the next eigenvalue, and left out:
//!
//! ```text
//! s = r P + (r V) (Λ p(Λ) - Λ) Vᵀ + ideal · (r D^-½ V) (Vᵀ D^½ p(P))
//! ```
//!
//! The first term walks the lists of users and items, the others are one matrix product of `2 · rank` columns.

use std::ops::Range;

use burn::config::Config;
use burn::tensor::{Device, Tensor, TensorData};
use burn_gnn_models::{ModelError, select_rows};
use burn_gnn_ops::{Stream, normal};
use rayon::prelude::*;

use crate::errors::{check_length, check_range};
use crate::ranking::id_lists::IdLists;
use crate::recommend::eigen;
use crate::recommend::interaction_graph::InteractionGraph;

/// Settings of a [`GraphFilter`].
#[derive(Config, Debug)]
pub struct GraphFilterConfig {
    /// Number of eigenvectors.
    #[config(default = 256)]
    pub rank: usize,
    /// Weight of the ideal low-pass filter, a finite number. With 0 and without sharpening the filter is the linear one.
    #[config(default = 0.3)]
    pub ideal: f64,
    /// Time of sharpening, in `0.0..=3.0`; 0 is no sharpening.
    #[config(default = 2.5)]
    pub sharpen: f64,
    /// Steps of subspace iteration.
    #[config(default = 6)]
    pub num_iterations: usize,
    /// Seed of the start of the iteration.
    #[config(default = 0)]
    pub seed: u64,
}

/// A linear filter on the graph of interactions.
///
/// # Cost
/// `O(num_iterations · rank · (interactions + num_items · rank))` once; per user a matrix product of `2 · rank` rows and
/// columns of all items, and a walk over the users of its items.
///
/// # Source
/// Shen et al., "How powerful is graph convolution for recommendation?" (GF-CF), CIKM 2021; Choi, Hong, Park, Cho,
/// "Blurring-sharpening process models for collaborative filtering", SIGIR 2023.
#[derive(Clone, Debug)]
pub struct GraphFilter {
    /// Eigenvectors, `[num_items, rank]`.
    vectors: Tensor<2>,
    values: Vec<f64>,
    left: Tensor<2>,
    right: Tensor<2>,
    seen: IdLists,
    users_of: IdLists,
    /// `1 / √deg` of items, `1 / deg` of users.
    item_scale: Vec<f32>,
    user_scale: Vec<f32>,
}

/// The largest eigenvalues and eigenvectors of the graph of items: what filters with different weights share.
#[derive(Clone, Debug)]
pub struct ItemSpectrum {
    vectors: Tensor<2>,
    values: Vec<f64>,
}

impl ItemSpectrum {
    /// The `rank` largest eigenvalues of `P`, by `num_iterations` steps of subspace iteration from a random start.
    ///
    /// The rank is at most the number of users and of items. `P` of fewer dimensions has eigenvalues of 0.
    ///
    /// # Errors
    /// A rank of 0; a graph without interactions.
    pub fn new(
        graph: &InteractionGraph,
        rank: usize,
        num_iterations: usize,
        seed: u64,
        device: &Device,
    ) -> Result<Self, ModelError> {
        check_range("rank", "1..", rank, rank > 0)?;
        let interactions = graph.num_interactions();
        check_range("interactions", "1..", interactions, interactions > 0)?;
        let n = graph.num_items();
        let rank = rank.min(n).min(graph.num_users());
        let width = (rank + 16).min(n);
        let start = normal(Stream::new(seed, "subspace", 0), 0.0, 1.0, [n, width]);
        let mut q = orthonormal(Tensor::from_data(start, device));
        let smooth = |x: Tensor<2>| graph.gather_items(graph.gather_users(x));
        for _ in 0..num_iterations {
            q = orthonormal(smooth(q));
        }
        let image = graph.gather_users(q.clone());
        let gram = values(image.clone().transpose().matmul(image));
        let (eigenvalues, vectors) = eigen::symmetric(gram, width);
        let vectors: Vec<f32> =
            (0..width * rank).map(|k| vectors[k / rank * width + k % rank] as f32).collect();
        let rotation = Tensor::<2>::from_data(TensorData::new(vectors, [width, rank]), device);
        Ok(Self { vectors: q.matmul(rotation), values: eigenvalues[..rank].to_vec() })
    }

    /// The eigenvalues, descending.
    pub fn values(&self) -> &[f64] {
        &self.values
    }
}

impl GraphFilterConfig {
    /// Computes the filter of a graph.
    ///
    /// # Errors
    /// A rank of 0; a graph without interactions; weights out of range.
    pub fn init(
        &self,
        graph: &InteractionGraph,
        device: &Device,
    ) -> Result<GraphFilter, ModelError> {
        let spectrum = ItemSpectrum::new(graph, self.rank, self.num_iterations, self.seed, device)?;
        self.with_spectrum(graph, &spectrum)
    }

    /// Computes the filter of a graph from its spectrum, of which the first `rank` eigenvectors are used.
    ///
    /// # Errors
    /// As [`init`](Self::init); a spectrum of another number of items.
    pub fn with_spectrum(
        &self,
        graph: &InteractionGraph,
        spectrum: &ItemSpectrum,
    ) -> Result<GraphFilter, ModelError> {
        check_range("ideal", "finite numbers", self.ideal, self.ideal.is_finite())?;
        check_range("sharpen", "0.0..=3.0", self.sharpen, (0.0..=3.0).contains(&self.sharpen))?;
        check_range("rank", "1..", self.rank, self.rank > 0)?;
        let items = spectrum.vectors.dims()[0];
        check_length("spectrum", "one row per item", graph.num_items(), items)?;
        let rank = self.rank.min(spectrum.values.len());
        let device = &spectrum.vectors.device();
        let vectors = spectrum.vectors.clone().slice_dim(1, 0..rank);
        let eigenvalues = spectrum.values[..rank].to_vec();
        let taylor: Vec<f64> = (1..5).fold(vec![1.0], |mut c, j| {
            c.push(c[j - 1] * -self.sharpen / j as f64);
            c
        });
        let scale: Vec<f32> =
            graph.item_degrees().iter().map(|&d| (d.max(1) as f32).sqrt().recip()).collect();
        let n = scale.len();
        let column = Tensor::<2>::from_data(TensorData::new(scale.clone(), [n, 1]), device);
        // Columns D^½ v, then p(P) by Horner's rule.
        let start = vectors.clone() / column.clone();
        let smooth = |x: Tensor<2>| graph.gather_items(graph.gather_users(x));
        let mut low = start.clone() * taylor[4];
        if self.sharpen > 0.0 {
            for c in taylor[..4].iter().rev() {
                low = smooth(low) + start.clone() * *c;
            }
        } else {
            low = start;
        }
        let gain: Vec<f32> = eigenvalues
            .iter()
            .map(|&l| {
                let p = taylor.iter().rev().fold(0.0, |sum, c| sum * l + c);
                (l * p - l) as f32
            })
            .collect();
        let gain = Tensor::<2>::from_data(TensorData::new(gain, [1, rank]), device);
        let left =
            Tensor::cat(vec![vectors.clone() * gain, vectors.clone() * column * self.ideal], 1);
        let right = Tensor::cat(vec![vectors.clone(), low], 1);
        // Sums over the items of a user, without normalisation: `r V` for a row of ones.
        let user_factor: Vec<f32> =
            graph.user_degrees().iter().map(|&d| (d.max(1) as f32).sqrt()).collect();
        let m = user_factor.len();
        let to_ones = Tensor::<2>::from_data(TensorData::new(user_factor, [m, 1]), device);
        let items = Tensor::<2>::from_data(TensorData::new(scale.clone(), [n, 1]), device);
        let left = graph.gather_users(left / items) * to_ones;
        let pairs = graph.seen_lists().pairs().map(|(user, item)| (item, user));
        Ok(GraphFilter {
            vectors,
            values: eigenvalues,
            left,
            right,
            users_of: IdLists::from_pairs(n, pairs)?,
            seen: graph.seen_lists().clone(),
            item_scale: scale,
            user_scale: graph.user_degrees().iter().map(|&d| (d.max(1) as f32).recip()).collect(),
        })
    }
}

impl GraphFilter {
    /// Eigenvectors of the graph of items, `[num_items, rank]`, and their eigenvalues, descending.
    pub fn spectrum(&self) -> (Tensor<2>, &[f64]) {
        (self.vectors.clone(), &self.values)
    }

    /// Scores of blocks, for [`RankingConfig::rank`](crate::RankingConfig::rank) and [`top_k_by`](crate::top_k_by).
    pub fn scores(&self) -> impl FnMut(&[usize], Range<usize>) -> Tensor<2> + '_ {
        move |users, items| {
            let device = &self.left.device();
            let width = items.len();
            let mut linear = vec![0f32; users.len() * width];
            linear
                .par_chunks_mut(width.max(1))
                .zip(users)
                .for_each(|(row, &user)| self.add_linear(row, user, &items));
            let linear =
                Tensor::<2>::from_data(TensorData::new(linear, [users.len(), width]), device);
            let right = self.right.clone().slice_dim(0, items).transpose();
            select_rows(self.left.clone(), users).matmul(right) + linear
        }
    }

    /// Adds `r P` of a user for the items of a block.
    fn add_linear(&self, row: &mut [f32], user: usize, block: &Range<usize>) {
        for &item in self.seen.of(user) {
            let of_item = self.item_scale[item as usize];
            for &other in self.users_of.of(item as usize) {
                let weight = of_item * self.user_scale[other as usize];
                let items = self.seen.of(other as usize);
                let from = items.partition_point(|&i| (i as usize) < block.start);
                for &i in items[from..].iter().take_while(|&&i| (i as usize) < block.end) {
                    row[i as usize - block.start] += weight;
                }
            }
        }
        row.iter_mut().zip(&self.item_scale[block.clone()]).for_each(|(s, scale)| *s *= scale);
    }
}

/// An orthonormal basis of the columns, by two Cholesky factorisations of their Gram matrix.
fn orthonormal(x: Tensor<2>) -> Tensor<2> {
    let once = |x: Tensor<2>| {
        let (device, [_, n]) = (x.device(), x.dims());
        let inverse = inverse_cholesky(values(x.clone().transpose().matmul(x.clone())), n);
        let inverse: Vec<f32> = inverse.into_iter().map(|v| v as f32).collect();
        x.matmul(Tensor::from_data(TensorData::new(inverse, [n, n]), &device))
    };
    once(once(x))
}

/// `R⁻¹` of the factorisation `A = Rᵀ R` of a positive matrix. A column that depends on those before becomes 0.
fn inverse_cholesky(a: Vec<f64>, n: usize) -> Vec<f64> {
    // Lower factor, L = Rᵀ.
    let mut l = vec![0.0; n * n];
    let largest = (0..n).map(|i| a[i * n + i]).fold(0.0, f64::max);
    for i in 0..n {
        for j in 0..=i {
            let dot: f64 = (0..j).map(|k| l[i * n + k] * l[j * n + k]).sum();
            let rest = a[i * n + j] - dot;
            l[i * n + j] = if i == j {
                if rest > 1e-12 * largest { rest.sqrt() } else { f64::INFINITY }
            } else {
                rest / l[j * n + j]
            };
        }
    }
    // Rows of L⁻¹ by forward substitution; R⁻¹ is its transpose.
    let mut inverse = vec![0.0; n * n];
    for j in 0..n {
        for i in j..n {
            let unit = f64::from(u8::from(i == j));
            let dot: f64 = (j..i)
                .map(|k| {
                    if inverse[j * n + k] == 0.0 { 0.0 } else { l[i * n + k] * inverse[j * n + k] }
                })
                .sum();
            inverse[j * n + i] = (unit - dot) / l[i * n + i];
        }
    }
    inverse
}

fn values(x: Tensor<2>) -> Vec<f64> {
    let data = x.into_data_dtype(burn::tensor::DType::F64);
    data.try_to_vec().unwrap_or_else(|e| unreachable!("converted to f64 before: {e:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Dense `P` of a small graph, and the filter by its definition.
    fn check(users: usize, items: usize, has: impl Fn(u32, u32) -> bool) {
        let pairs = (0..users as u32).flat_map(|u| (0..items as u32).map(move |i| (u, i)));
        let pairs: Vec<(u32, u32)> = pairs.filter(|&(u, i)| has(u, i)).collect();
        let graph = InteractionGraph::new(users, items, pairs.iter().copied()).unwrap();
        let (du, di) = (graph.user_degrees(), graph.item_degrees());
        let mut p = vec![0.0; items * items];
        for (u, &degree) in du.iter().enumerate() {
            for &i in graph.seen(u) {
                for &j in graph.seen(u) {
                    let (i, j) = (i as usize, j as usize);
                    p[i * items + j] += 1.0 / (f64::from(degree) * f64::from(di[i] * di[j]).sqrt());
                }
            }
        }
        let times = |row: &[f64]| -> Vec<f64> {
            (0..items).map(|j| (0..items).map(|i| row[i] * p[i * items + j]).sum()).collect()
        };
        let config = GraphFilterConfig::new().with_rank(items).with_ideal(0.4).with_sharpen(1.5);
        let filter = config.with_num_iterations(30).init(&graph, &Device::flex()).unwrap();
        let found = filter.scores()(&(0..users).collect::<Vec<_>>(), 0..items);
        let found = values(found);
        for u in 0..users {
            let mut r = vec![0.0; items];
            graph.seen(u).iter().for_each(|&i| r[i as usize] = 1.0);
            // At full rank the low-pass filter is the identity.
            let mut power: Vec<f64> = times(&r).iter().zip(&r).map(|(a, b)| a + 0.4 * b).collect();
            let mut expected = vec![0.0; items];
            let mut c = 1.0;
            for j in 0..5 {
                expected.iter_mut().zip(&power).for_each(|(s, x)| *s += c * x);
                power = times(&power);
                c *= -1.5 / (j + 1) as f64;
            }
            for i in 0..items {
                let got = found[u * items + i];
                assert!((got - expected[i]).abs() < 1e-4, "user {u}: {got} {}", expected[i]);
            }
        }
        let block = values(filter.scores()(&[3], 2..5));
        assert!(block.iter().zip(&found[3 * items + 2..]).all(|(a, b)| (a - b).abs() < 1e-5));
    }

    #[test]
    fn scores_equal_the_definition_at_full_rank() {
        let s = Stream::new(3, "pairs", 0);
        check(9, 7, |u, i| u % 7 == i || s.uniform(u.into(), i.into()) < 0.3);
    }

    /// Items in pairs that have the same users: half of the eigenvalues are 0.
    #[test]
    fn scores_equal_the_definition_where_items_depend_on_each_other() {
        let s = Stream::new(4, "pairs", 0);
        check(9, 8, |u, i| u % 4 == i / 2 || s.uniform(u.into(), (i / 2).into()) < 0.3);
    }
}
