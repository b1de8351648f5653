//! Predicts ratings from biases and from neighbours among items and users.
//!
//! # Algorithm
//! ```text
//! mean μ; biases b_u, b_i by alternating least squares, each divided by its count plus a shrinkage
//! residuals r_ui = rating - μ - b_u - b_i
//! similarity of items i, j over common users:  s_ij = Σ r_ui r_uj / √(Σ r_ui² Σ r_uj²) · n / (n + shrinkage)
//!                      or, by counts alone:    s_ij = n / √((n_i + 1) (n_j + 1))
//! neighbours of items:  x_ui = Σ_j w_ij r_uj / (Σ_j w_ij + damping)      w = max(s, 0)^power, j rated by u
//! neighbours of users:  likewise with users and items exchanged
//! prediction = μ + b_u + b_i + Σ_k weight_k x^k_ui
//! ```
//! The similarities of one item are computed from its users when a prediction needs them, so that memory is linear in
//! ratings.

use burn_gnn_data::InteractionPart;
use burn_gnn_models::ModelError;
use rayon::prelude::*;

use crate::errors::{check_length, check_range, out_of_range};

/// Whose similarity is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NeighboursOf {
    /// Items that the user has rated.
    Items,
    /// Users who have rated the item.
    Users,
}

/// Similarity of two items, or two users.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Similarity {
    /// Correlation of the residuals of common ratings; negative ones count as 0.
    Residuals {
        /// Common ratings at which a similarity is halved.
        shrinkage: f64,
    },
    /// Number of common ratings, divided by the root of the product of both numbers: what is rated by the same users is
    /// similar, whatever the ratings are.
    Counts,
}

/// Settings of one kind of neighbours.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct NeighbourConfig {
    /// Whose similarity is used.
    pub of: NeighboursOf,
    /// How similar two of them are.
    pub similarity: Similarity,
    /// Exponent of similarities, from 1.
    pub power: i32,
    /// Added to the sum of weights, above 0: without similar neighbours the prediction is the bias.
    pub damping: f64,
    /// Weight in the prediction, a finite number.
    pub weight: f64,
}

/// Settings of a [`RatingModel`].
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct RatingModelConfig {
    /// Shrinkage of the biases of users.
    pub user_shrinkage: f64,
    /// Shrinkage of the biases of items.
    pub item_shrinkage: f64,
    /// Kinds of neighbours; none for biases alone.
    pub neighbours: Vec<NeighbourConfig>,
}

impl Default for RatingModelConfig {
    fn default() -> Self {
        let kind = |of, similarity, power, damping, weight| NeighbourConfig {
            of,
            similarity,
            power,
            damping,
            weight,
        };
        let residuals = Similarity::Residuals { shrinkage: 5.0 };
        Self {
            user_shrinkage: 4.0,
            item_shrinkage: 2.0,
            neighbours: vec![
                kind(NeighboursOf::Items, Similarity::Counts, 2, 0.1, 0.6),
                kind(NeighboursOf::Items, residuals, 3, 0.3, 0.2),
                kind(NeighboursOf::Users, Similarity::Counts, 2, 0.1, 0.4),
                kind(NeighboursOf::Users, residuals, 3, 1.0, 0.1),
            ],
        }
    }
}

/// Predicts ratings of users for items from biases and neighbours; [`RatingModelConfig::fit`] makes it.
///
/// # Source
/// Koren, "Factor in the neighbors: scalable and accurate collaborative filtering", TKDD 2010, with similarities instead
/// of learned weights.
///
/// ```
/// use burn_gnn_data::InteractionPart;
/// use burn_gnn_links::RatingModelConfig;
/// let train = InteractionPart {
///     users: vec![0, 0, 1],
///     items: vec![0, 1, 0],
///     ratings: Some(vec![5.0, 3.0, 4.0]),
///     times: None,
/// };
/// let model = RatingModelConfig::default().fit(2, 2, &train)?;
/// assert!(model.predict(&[(1, 1)])?[0] < 4.0); // item 1 is rated below item 0
/// # Ok::<(), burn_gnn_models::ModelError>(())
/// ```
#[derive(Clone, Debug)]
pub struct RatingModel {
    config: RatingModelConfig,
    mean: f64,
    /// Smallest and largest rating.
    range: (f64, f64),
    bias_of_users: Vec<f64>,
    bias_of_items: Vec<f64>,
    /// Residuals of items by user, and of users by item.
    by_user: Residuals,
    by_item: Residuals,
}

/// Lists of (id, residual).
#[derive(Clone, Debug)]
struct Residuals {
    lists: Vec<Vec<(u32, f64)>>,
}

impl RatingModelConfig {
    /// Fits biases and residuals to ratings.
    ///
    /// # Errors
    /// A part without ratings, or with none; lists of different lengths; a rating that is not finite; a user or item out
    /// of range; a shrinkage or damping that is not a number above 0; a power below 1; a weight that is not finite.
    ///
    /// # Cost
    /// Ten passes over the ratings for biases. Memory: 32 bytes per rating.
    pub fn fit(
        &self,
        num_users: usize,
        num_items: usize,
        train: &InteractionPart,
    ) -> Result<RatingModel, ModelError> {
        let positive = |arg: &str, x: f64| {
            check_range(arg, "finite numbers above 0", x, x.is_finite() && x > 0.0)
        };
        positive("user_shrinkage", self.user_shrinkage)?;
        positive("item_shrinkage", self.item_shrinkage)?;
        for kind in &self.neighbours {
            if let Similarity::Residuals { shrinkage } = kind.similarity {
                positive("shrinkage", shrinkage)?;
            }
            positive("damping", kind.damping)?;
            check_range("power", "1..", kind.power, kind.power >= 1)?;
            check_range("weight", "finite numbers", kind.weight, kind.weight.is_finite())?;
        }
        let Some(ratings) = train.ratings.as_ref().filter(|r| !r.is_empty()) else {
            return Err(out_of_range("ratings", "at least one rating", "none"));
        };
        check_length("ratings", "one per interaction", train.len(), ratings.len())?;
        check_length("items", "one per interaction", train.len(), train.items.len())?;
        check_finite(ratings)?;
        check_pairs(train.pairs(), num_users, num_items)?;
        let ratings: Vec<f64> = ratings.iter().map(|&r| f64::from(r)).collect();
        let mean = ratings.iter().sum::<f64>() / ratings.len() as f64;
        let (mut of_users, mut of_items) = (vec![0.0; num_users], vec![0.0; num_items]);
        for _ in 0..10 {
            biases(&mut of_items, self.item_shrinkage, &train.items, |k| {
                ratings[k] - mean - of_users[train.users[k] as usize]
            });
            biases(&mut of_users, self.user_shrinkage, &train.users, |k| {
                ratings[k] - mean - of_items[train.items[k] as usize]
            });
        }
        let mut by_user = Residuals { lists: vec![vec![]; num_users] };
        let mut by_item = Residuals { lists: vec![vec![]; num_items] };
        for ((user, item), rating) in train.pairs().zip(&ratings) {
            let rest = rating - mean - of_users[user as usize] - of_items[item as usize];
            by_user.lists[user as usize].push((item, rest));
            by_item.lists[item as usize].push((user, rest));
        }
        let range = ratings
            .iter()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &r| (low.min(r), high.max(r)));
        let (bias_of_users, bias_of_items) = (of_users, of_items);
        let config = self.clone();
        Ok(RatingModel { config, mean, range, bias_of_users, bias_of_items, by_user, by_item })
    }
}

fn biases(out: &mut [f64], shrinkage: f64, ids: &[u32], rest: impl Fn(usize) -> f64) {
    let (mut sums, mut counts) = (vec![0.0; out.len()], vec![0.0; out.len()]);
    for (k, &id) in ids.iter().enumerate() {
        sums[id as usize] += rest(k);
        counts[id as usize] += 1.0;
    }
    out.iter_mut().zip(sums.iter().zip(&counts)).for_each(|(b, (s, n))| *b = s / (n + shrinkage));
}

fn check_finite(ratings: &[f32]) -> Result<(), ModelError> {
    match ratings.iter().find(|r| !r.is_finite()) {
        Some(r) => Err(out_of_range("ratings", "finite numbers", r)),
        None => Ok(()),
    }
}

fn check_pairs(
    mut pairs: impl Iterator<Item = (u32, u32)>,
    users: usize,
    items: usize,
) -> Result<(), ModelError> {
    match pairs.find(|&(u, i)| u as usize >= users || i as usize >= items) {
        Some((u, _)) if u as usize >= users => Err(out_of_range("user", format!("0..{users}"), u)),
        Some((_, i)) => Err(out_of_range("item", format!("0..{items}"), i)),
        None => Ok(()),
    }
}

impl RatingModel {
    /// Predicted ratings of pairs of user and item, within the range of the training ratings.
    ///
    /// # Errors
    /// A user or item out of range.
    ///
    /// # Cost
    /// For each distinct item, all ratings of its users, in parallel over items; likewise for users. Memory: 32 bytes per
    /// item or user and thread.
    pub fn predict(&self, pairs: &[(u32, u32)]) -> Result<Vec<f64>, ModelError> {
        let mut out = self.predict_biases(pairs)?;
        for (kind, x) in self.config.neighbours.iter().zip(self.neighbour_terms(pairs)?) {
            out.iter_mut().zip(x).for_each(|(p, x)| *p += kind.weight * x);
        }
        out.iter_mut().for_each(|p| *p = p.clamp(self.range.0, self.range.1));
        Ok(out)
    }

    /// Sets the weights of the kinds of neighbours by least squares with a ridge of 1, on ratings that [`fit`] has not read:
    /// neighbours predict ratings of training too well.
    ///
    /// The weights are fitted to these ratings, so that the error on them is too small an estimate. Measure it on others.
    /// Without ratings all weights are 0.
    ///
    /// # Errors
    /// Ratings of another number than pairs, or that are not finite, and as [`predict`](Self::predict).
    ///
    /// [`fit`]: RatingModelConfig::fit
    pub fn fit_weights(&mut self, pairs: &[(u32, u32)], ratings: &[f32]) -> Result<(), ModelError> {
        check_length("ratings", "one per pair", pairs.len(), ratings.len())?;
        check_finite(ratings)?;
        let base = self.predict_biases(pairs)?;
        let terms = self.neighbour_terms(pairs)?;
        let n = terms.len();
        let mut a = vec![vec![0.0; n + 1]; n];
        for (i, x) in terms.iter().enumerate() {
            for (j, y) in terms.iter().enumerate() {
                a[i][j] = x.iter().zip(y).map(|(x, y)| x * y).sum();
            }
            a[i][i] += 1.0;
            let rest = base.iter().zip(ratings).map(|(b, &r)| f64::from(r) - b);
            a[i][n] = x.iter().zip(rest).map(|(x, r)| x * r).sum();
        }
        // Gauss-Jordan; the ridge makes the matrix positive definite.
        for i in 0..n {
            let row: Vec<f64> = a[i].iter().map(|v| v / a[i][i]).collect();
            for (j, other) in a.iter_mut().enumerate() {
                if j != i {
                    let factor = other[i];
                    other.iter_mut().zip(&row).for_each(|(v, r)| *v -= factor * r);
                }
            }
            a[i] = row;
        }
        for (kind, row) in self.config.neighbours.iter_mut().zip(&a) {
            kind.weight = row[n];
        }
        Ok(())
    }

    /// The settings, with the weights in use.
    pub fn config(&self) -> &RatingModelConfig {
        &self.config
    }

    fn predict_biases(&self, pairs: &[(u32, u32)]) -> Result<Vec<f64>, ModelError> {
        check_pairs(pairs.iter().copied(), self.bias_of_users.len(), self.bias_of_items.len())?;
        let of = |&(u, i): &(u32, u32)| {
            self.mean + self.bias_of_users[u as usize] + self.bias_of_items[i as usize]
        };
        Ok(pairs.iter().map(of).collect())
    }

    /// `x` of every kind of neighbours, per pair.
    fn neighbour_terms(&self, pairs: &[(u32, u32)]) -> Result<Vec<Vec<f64>>, ModelError> {
        check_pairs(pairs.iter().copied(), self.bias_of_users.len(), self.bias_of_items.len())?;
        let swapped: Vec<(u32, u32)> = pairs.iter().map(|&(u, i)| (i, u)).collect();
        let of_kind = |kind: &NeighbourConfig| match kind.of {
            NeighboursOf::Items => terms(kind, &self.by_item, &self.by_user, pairs),
            NeighboursOf::Users => terms(kind, &self.by_user, &self.by_item, &swapped),
        };
        Ok(self.config.neighbours.iter().map(of_kind).collect())
    }
}

/// Common ratings of one id and another.
#[derive(Clone, Copy, Default)]
struct Common {
    product: f64,
    own: f64,
    other: f64,
    count: f64,
}

/// `x` of pairs (a, b) by the similarity of `b` to other ids that `a` has rated. `of` lists the residuals of each `b`,
/// `across` those of each `a`.
fn terms(
    kind: &NeighbourConfig,
    of: &Residuals,
    across: &Residuals,
    pairs: &[(u32, u32)],
) -> Vec<f64> {
    let mut order: Vec<usize> = (0..pairs.len()).collect();
    order.sort_by_key(|&p| (pairs[p].1, p));
    let groups: Vec<&[usize]> = order.chunk_by(|&p, &q| pairs[p].1 == pairs[q].1).collect();
    // `common` has an entry per id and is all 0 between groups.
    let of_group = |common: &mut Vec<Common>, group: &&[usize]| -> Vec<f64> {
        let own = pairs[group[0]].1;
        for &(a, r) in &of.lists[own as usize] {
            for &(b, s) in &across.lists[a as usize] {
                let c = &mut common[b as usize];
                c.product += r * s;
                c.own += r * r;
                c.other += s * s;
                c.count += 1.0;
            }
        }
        let weight = |b: u32| {
            let c = common[b as usize];
            if b == own || c.count == 0.0 {
                return 0.0;
            }
            let similarity = match kind.similarity {
                Similarity::Residuals { shrinkage } => {
                    let correlation = c.product / ((c.own * c.other).sqrt() + 1e-9);
                    correlation.max(0.0) * c.count / (c.count + shrinkage)
                }
                Similarity::Counts => {
                    let ratings = |b: u32| of.lists[b as usize].len() as f64 + 1.0;
                    c.count / (ratings(own) * ratings(b)).sqrt()
                }
            };
            similarity.powi(kind.power)
        };
        let term = |&p: &usize| {
            let (mut sum, mut weights) = (0.0, kind.damping);
            for &(b, s) in &across.lists[pairs[p].0 as usize] {
                let w = weight(b);
                sum += w * s;
                weights += w;
            }
            sum / weights
        };
        let found = group.iter().map(term).collect();
        for &(a, _) in &of.lists[own as usize] {
            across.lists[a as usize].iter().for_each(|e| common[e.0 as usize] = Common::default());
        }
        found
    };
    let scratch = || vec![Common::default(); of.lists.len()];
    let values: Vec<Vec<f64>> = groups.par_iter().map_init(scratch, of_group).collect();
    let mut out = vec![0.0; pairs.len()];
    order.iter().zip(values.into_iter().flatten()).for_each(|(&p, x)| out[p] = x);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn_gnn_ops::Stream;

    fn part(users: u32, items: u32) -> InteractionPart {
        let s = Stream::new(2, "ratings", 0);
        let pairs: Vec<(u32, u32)> = (0..users)
            .flat_map(|u| (0..items).map(move |i| (u, i)))
            .filter(|&(u, i)| s.uniform(u.into(), i.into()) < 0.5)
            .collect();
        // Users like the even items, or the odd ones.
        let rating = |&(u, i): &(u32, u32)| {
            3.0 + if u % 2 == i % 2 { 1.0 } else { -1.0 }
                + 0.3 * s.normal(u.into(), (i + 99).into()) as f32
        };
        InteractionPart {
            ratings: Some(pairs.iter().map(rating).collect()),
            users: pairs.iter().map(|p| p.0).collect(),
            items: pairs.iter().map(|p| p.1).collect(),
            times: None,
        }
    }

    fn rmse(model: &RatingModel, test: &InteractionPart) -> f64 {
        let predicted = model.predict(&test.pairs().collect::<Vec<_>>()).unwrap();
        let ratings = test.ratings.as_ref().unwrap();
        let squares = predicted.iter().zip(ratings).map(|(p, &r)| (p - f64::from(r)).powi(2));
        (squares.sum::<f64>() / predicted.len() as f64).sqrt()
    }

    #[test]
    fn neighbours_find_what_biases_cannot() {
        let (train, test) = part(60, 40).hold_out(0.2, 1).unwrap();
        let biases = RatingModelConfig { neighbours: vec![], ..RatingModelConfig::default() };
        let alone = rmse(&biases.fit(60, 40, &train).unwrap(), &test);
        let (rest, val) = train.hold_out(0.2, 2).unwrap();
        let mut model = RatingModelConfig::default().fit(60, 40, &rest).unwrap();
        let pairs: Vec<_> = val.pairs().collect();
        model.fit_weights(&pairs, val.ratings.as_ref().unwrap()).unwrap();
        let with = rmse(&model.config().fit(60, 40, &train).unwrap(), &test);
        assert!(alone > 0.9 && with < 0.6, "biases {alone}, with neighbours {with}");
    }

    /// Derivatives of the squared error plus the squared weights are 0.
    #[test]
    fn weights_are_those_of_least_squares() {
        let (train, val) = part(30, 20).hold_out(0.3, 1).unwrap();
        let mut model = RatingModelConfig::default().fit(30, 20, &train).unwrap();
        let (pairs, ratings): (Vec<_>, _) = (val.pairs().collect(), val.ratings.unwrap());
        model.fit_weights(&pairs, &ratings).unwrap();
        let terms = model.neighbour_terms(&pairs).unwrap();
        let mut rest = model.predict_biases(&pairs).unwrap();
        rest.iter_mut().zip(&ratings).for_each(|(b, &r)| *b = f64::from(r) - *b);
        for (x, kind) in terms.iter().zip(&model.config.neighbours) {
            rest.iter_mut().zip(x).for_each(|(r, x)| *r -= kind.weight * x);
        }
        for (x, kind) in terms.iter().zip(&model.config.neighbours) {
            let slope = x.iter().zip(&rest).map(|(x, r)| x * r).sum::<f64>() - kind.weight;
            assert!(slope.abs() < 1e-9 && kind.weight != 0.0, "{slope} {kind:?}");
        }
    }

    #[test]
    fn errors_name_the_argument() {
        let train = part(3, 3);
        let text = |e: Result<RatingModel, ModelError>| e.unwrap_err().to_string();
        let config = RatingModelConfig::default();
        assert!(text(config.fit(2, 3, &train)).contains("`user` must lie in 0..2, got 2"));
        let none = InteractionPart { ratings: None, ..train.clone() };
        assert!(text(config.fit(3, 3, &none)).contains("`ratings`"));
        let wrong = RatingModelConfig { user_shrinkage: 0.0, ..config };
        assert!(text(wrong.fit(3, 3, &train)).contains("`user_shrinkage`"));
        let mut wrong = RatingModelConfig::default();
        wrong.neighbours[0].power = 0;
        assert_eq!(text(wrong.fit(3, 3, &train)), "`power` must lie in 1.., got 0");
        let config = RatingModelConfig::default();
        let mut nan = train.clone();
        nan.ratings.as_mut().unwrap()[0] = f32::NAN;
        let expected = "`ratings` must lie in finite numbers, got NaN";
        assert_eq!(text(config.fit(3, 3, &nan)), expected);
        let mut model = config.fit(3, 3, &train).unwrap();
        let e = model.fit_weights(&[(0, 0)], &[f32::NAN]).unwrap_err().to_string();
        assert_eq!(e, expected);
        let mut short = train;
        short.items.pop();
        assert!(text(config.fit(3, 3, &short)).starts_with("`items`: expected"));
    }
}
