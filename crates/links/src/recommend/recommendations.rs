//! Recommends items that users have not seen.

use burn::tensor::Tensor;
use burn_gnn_models::{ModelError, select_rows};

use crate::errors::check_range;
use crate::ranking::config::RankingConfig;
use crate::ranking::dot::dot_scores;
use crate::ranking::id_lists::IdLists;
use crate::ranking::ranks::Ranks;
use crate::ranking::top_k::{TopK, top_k};

/// Recommends items by inner products of embeddings, without those that a user has seen.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_links::{IdLists, Recommendations};
/// let device = Device::flex();
/// let users = Tensor::<2>::from_data([[1.0, 0.0], [0.0, 1.0]], &device);
/// let items = Tensor::<2>::from_data([[3.0, 0.0], [2.0, 1.0], [1.0, 2.0]], &device);
/// let shop = Recommendations::new(users, items, IdLists::from_pairs(2, [(0, 0)])?)?;
/// let best = shop.recommend(&[1, 0], 1)?;
/// assert_eq!((best.of(0)[0].0, best.of(1)[0].0), (2, 1)); // user 0 has seen item 0
/// # Ok::<(), burn_gnn_models::ModelError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Recommendations {
    users: Tensor<2>,
    items: Tensor<2>,
    seen: IdLists,
}

impl Recommendations {
    /// Creates it from embeddings on a device without autodiff.
    ///
    /// # Shapes
    /// `users`: `[num_users, d]`; `items`: `[num_items, d]`; a list of seen items per user.
    ///
    /// # Errors
    /// Another number of lists than users, or sizes of embeddings that differ.
    pub fn new(users: Tensor<2>, items: Tensor<2>, seen: IdLists) -> Result<Self, ModelError> {
        let ([n, d], [_, of_items]) = (users.dims(), items.dims());
        crate::errors::check_length("seen", "one list per user", n, seen.len())?;
        crate::errors::check_length("items", "the size of the embeddings of users", d, of_items)?;
        Ok(Self { users, items, seen })
    }

    /// The `k` best items of each of the users `ids`, without those that they have seen.
    ///
    /// # Errors
    /// A user that is out of range; `k = 0`.
    pub fn recommend(&self, ids: &[u32], k: usize) -> Result<TopK, ModelError> {
        let users = self.seen.len();
        if let Some(far) = ids.iter().find(|&&id| id as usize >= users) {
            check_range("ids", &format!("0..{users}"), far, false)?;
        }
        let seen = |row: usize| self.seen.of(ids[row] as usize);
        top_k(select_rows(self.users.clone(), ids), self.items.clone(), k, seen)
    }

    /// Ranks of the items `wanted` of every user among all items that it has not seen.
    ///
    /// # Errors
    /// As [`RankingConfig::rank`].
    pub fn rank(&self, wanted: &IdLists) -> Result<Ranks, ModelError> {
        let ranking = RankingConfig::new().with_competing_targets();
        let score = dot_scores(self.users.clone(), self.items.clone());
        ranking.rank(self.items.dims()[0], wanted, |user| self.seen.of(user), score)
    }
}
