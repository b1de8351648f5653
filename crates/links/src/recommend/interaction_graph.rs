//! Defines `InteractionGraph`, the bipartite graph of users and items.

use burn::tensor::Tensor;
use burn_gnn_graph::Relation;
use burn_gnn_models::ModelError;
use burn_gnn_ops::{AggregateOptions, DegreeScale, weighted_aggregate};

use crate::ranking::id_lists::IdLists;

/// Training interactions of users and items, each pair once.
///
/// ```
/// use burn_gnn_links::InteractionGraph;
/// let graph = InteractionGraph::new(2, 3, [(0, 2), (1, 0), (0, 2)])?;
/// assert_eq!((graph.seen(0), graph.num_interactions()), (&[2][..], 2));
/// # Ok::<(), burn_gnn_models::ModelError>(())
/// ```
#[derive(Clone, Debug)]
pub struct InteractionGraph {
    seen: IdLists,
    num_items: usize,
    to_items: Relation,
    to_users: Relation,
    of_users: DegreeScale,
    of_items: DegreeScale,
}

impl InteractionGraph {
    /// The graph of `(user, item)` pairs; repeated pairs count once.
    ///
    /// # Errors
    /// A user or an item that is out of range; more than `u32::MAX` pairs.
    pub fn new(
        num_users: usize,
        num_items: usize,
        pairs: impl IntoIterator<Item = (u32, u32)>,
    ) -> Result<Self, ModelError> {
        let seen = IdLists::from_pairs(num_users, pairs)?;
        let (users, items): (Vec<u32>, Vec<u32>) = seen.pairs().unzip();
        let to_items = Relation::from_coo(num_users, num_items, users, items)?;
        let to_users = to_items.reverse();
        let degrees = |r: &Relation| r.in_degrees().collect::<Vec<u32>>();
        let scale = |degrees: Vec<u32>| DegreeScale::new(&degrees, -0.5);
        let (of_users, of_items) = (scale(degrees(&to_users)), scale(degrees(&to_items)));
        Ok(Self { seen, num_items, to_items, to_users, of_users, of_items })
    }

    /// Number of users.
    pub fn num_users(&self) -> usize {
        self.seen.len()
    }
    /// Number of items.
    pub fn num_items(&self) -> usize {
        self.num_items
    }
    /// Number of pairs.
    pub fn num_interactions(&self) -> usize {
        self.seen.total()
    }
    /// Items of a user, ascending.
    pub fn seen(&self, user: usize) -> &[u32] {
        self.seen.of(user)
    }
    /// Items of all users.
    pub fn seen_lists(&self) -> &IdLists {
        &self.seen
    }
    /// Number of users of each item.
    pub fn item_degrees(&self) -> &[u32] {
        self.of_items.degrees()
    }
    /// Number of items of each user.
    pub fn user_degrees(&self) -> &[u32] {
        self.of_users.degrees()
    }

    /// Normalised sum over the items of each user, `out[u] = Σ_(i of u) x[i] / √(deg u · deg i)`. A user without
    /// items gets 0.
    ///
    /// # Shapes
    /// `items`: `[num_items, d]`; result `[num_users, d]`.
    ///
    /// # Panics
    /// Another number of rows.
    pub fn gather_users(&self, items: Tensor<2>) -> Tensor<2> {
        let options = AggregateOptions {
            source: Some(self.of_items.clone()),
            destination: Some(self.of_users.clone()),
            ..AggregateOptions::default()
        };
        weighted_aggregate(&self.to_users, items, None, None, &options)
    }

    /// Normalised sum over the users of each item, the transpose of [`gather_users`](Self::gather_users).
    ///
    /// # Shapes
    /// `users`: `[num_users, d]`; result `[num_items, d]`.
    ///
    /// # Panics
    /// Another number of rows.
    pub fn gather_items(&self, users: Tensor<2>) -> Tensor<2> {
        let options = AggregateOptions {
            source: Some(self.of_users.clone()),
            destination: Some(self.of_items.clone()),
            ..AggregateOptions::default()
        };
        weighted_aggregate(&self.to_items, users, None, None, &options)
    }
}
