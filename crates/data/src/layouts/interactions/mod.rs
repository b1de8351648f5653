//! Reads interactions of users and items, for recommendation.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use burn_gnn_files::DataError;
use burn_gnn_graph::{EdgeType, Graph, Relation};
use serde::Deserialize;

use crate::arrays::npy::NpyArray;
use crate::dataset::Features;
use crate::files::{
    format_error, ids_below, inside, node_count, read_json, referenced, same_count, unknown_ntype,
};
use crate::layouts::metadata::{FOR_NODES, Layout, METADATA, Part, only};
use crate::layouts::npy_layout::{FeatureEntry, Reader};
use crate::splits::node_split::wrong;

/// Value of `layout` in the description of interactions.
const INTERACTIONS: &str = "interactions";
const USER: &str = "user";
const ITEM: &str = "item";

#[derive(Deserialize)]
struct Metadata {
    name: String,
    node_types: BTreeMap<String, NodeType>,
    splits: BTreeMap<String, SplitEntry>,
    ratings: Option<Ratings>,
    time: Option<BTreeMap<String, serde_json::Value>>,
    #[serde(default)]
    edge_types: Vec<EdgeEntry>,
}

#[derive(Deserialize)]
struct NodeType {
    count: u64,
    features: Option<FeatureEntry>,
}

#[derive(Deserialize)]
struct SplitEntry {
    train: Part,
    #[serde(alias = "valid")]
    val: Option<Part>,
    test: Part,
}

#[derive(Deserialize)]
struct Ratings {
    train: String,
    #[serde(alias = "valid")]
    val: Option<String>,
    test: String,
    #[serde(default)]
    values: Vec<f32>,
}

#[derive(Deserialize)]
struct EdgeEntry {
    src: String,
    relation: String,
    dst: String,
    count: u64,
    file: String,
}

/// Interactions of users and items: purchases, check-ins, ratings.
///
/// Users and items are numbered from 0; readers check that all numbers are in range.
#[derive(Clone, Debug)]
pub struct Interactions {
    /// Short name.
    pub name: String,
    /// Number of users.
    pub num_users: usize,
    /// Number of items.
    pub num_items: usize,
    /// Values that a rating can have, ascending; empty without ratings.
    pub rating_values: Vec<f32>,
    /// Training interactions.
    pub train: InteractionPart,
    /// Validation interactions, where the set has them. Without them, hold a part of train out by
    /// [`InteractionPart::hold_out`].
    pub val: Option<InteractionPart>,
    /// Test interactions.
    pub test: InteractionPart,
    /// Edges among users or items, such as friendships. Its node types are `user` and `item`; interactions are not edges
    /// of it.
    pub graph: Graph,
    /// Features by node type.
    pub features: BTreeMap<String, Features>,
}

/// Interactions of one part, in parallel lists.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InteractionPart {
    /// User of each interaction.
    pub users: Vec<u32>,
    /// Its item.
    pub items: Vec<u32>,
    /// Its rating, if the set has ratings.
    pub ratings: Option<Vec<f32>>,
    /// Its time, if the set has times.
    pub times: Option<Vec<i64>>,
}

impl InteractionPart {
    /// Number of interactions.
    pub fn len(&self) -> usize {
        self.users.len()
    }

    /// Whether there is no interaction.
    pub fn is_empty(&self) -> bool {
        self.users.is_empty()
    }

    /// Pairs of user and item.
    pub fn pairs(&self) -> impl ExactSizeIterator<Item = (u32, u32)> + Clone + '_ {
        self.users.iter().copied().zip(self.items.iter().copied())
    }

    /// The interactions at the given positions, in this order.
    ///
    /// # Panics
    /// A position that is not below [`len`](Self::len).
    pub fn select(&self, positions: &[usize]) -> Self {
        fn at<T: Copy>(values: &[T], positions: &[usize]) -> Vec<T> {
            positions.iter().map(|&p| values[p]).collect()
        }
        Self {
            users: at(&self.users, positions),
            items: at(&self.items, positions),
            ratings: self.ratings.as_ref().map(|r| at(r, positions)),
            times: self.times.as_ref().map(|t| at(t, positions)),
        }
    }

    /// Holds a share of the interactions out, at random or, where they have times, the latest: the rest and the held-out
    /// part, both in the order of this part. The same seed returns the same parts.
    ///
    /// Interactions of one time are in the same part, the rest, so that the held-out part may be smaller than the share.
    ///
    /// ```
    /// use burn_gnn_data::InteractionPart;
    /// let all = InteractionPart { users: vec![0; 10], items: (0..10).collect(), ..Default::default() };
    /// let (train, val) = all.hold_out(0.3, 7)?;
    /// assert_eq!((train.len(), val.len()), (7, 3));
    /// # Ok::<(), burn_gnn_data::DataError>(())
    /// ```
    ///
    /// # Errors
    /// [`DataError::Split`] for a share outside of `0.0..=1.0`, and for lists of different lengths.
    pub fn hold_out(&self, share: f64, seed: u64) -> Result<(Self, Self), DataError> {
        let lengths = [
            Some(self.items.len()),
            self.ratings.as_ref().map(Vec::len),
            self.times.as_ref().map(Vec::len),
        ];
        if let Some(found) = lengths.into_iter().flatten().find(|&n| n != self.len()) {
            let expected =
                format!("{} entries in each list, one per user, got {found}", self.len());
            return Err(wrong("interactions", expected));
        }
        let cut =
            crate::splits::time_split::hold_out(self.len(), self.times.as_deref(), share, seed)?;
        Ok((self.select(&cut.0), self.select(&cut.1)))
    }
}

/// Reads interactions of users and items from a folder with `metadata.json` of layout `interactions`.
///
/// The arrays are `[2, T]` integers: row 0 users, row 1 items. Ratings and times are arrays of `T` numbers. The files are
/// not trusted: counts and ids are checked, and file names must be inside `dir`.
///
/// # Errors
/// * [`DataError::Io`] for a missing file.
/// * [`DataError::Version`] for another version of the layout.
/// * [`DataError::Format`] for all other deviations from the layout.
///
/// # Cost
/// One sequential pass over each file; 8 bytes per interaction, 4 more with ratings, 8 more with times.
pub fn load_interactions(dir: impl AsRef<Path>) -> Result<Interactions, DataError> {
    let dir = dir.as_ref();
    let json = dir.join(METADATA);
    read(dir, &json).map_err(|e| e.in_file(json))
}

fn read(dir: &Path, json: &Path) -> Result<Interactions, DataError> {
    Layout::expect(json, INTERACTIONS, FOR_NODES)?;
    let meta: Metadata = read_json(json)?;
    let (_, split) = only(json, "splits", &meta.splits)?;
    let path = |file: &str| inside(dir, json, file);
    let parts = [
        Some(("train", &split.train)),
        split.val.as_ref().map(|p| ("val", p)),
        Some(("test", &split.test)),
    ];
    let mut files: Vec<Result<PathBuf, DataError>> =
        parts.iter().flatten().map(|p| path(&p.1.file)).collect();
    files.extend(meta.edge_types.iter().map(|e| path(&e.file)));
    let bytes = referenced(json, files)?;
    let count = |name: &str| -> Result<usize, DataError> {
        let found = meta.node_types.get(name).ok_or_else(|| {
            format_error(json, format!("node_types: expected an entry for `{name}`, found none"))
        })?;
        node_count(json, name, found.count, bytes)
    };
    let (num_users, num_items) = (count(USER)?, count(ITEM)?);
    let array = |file: &str| NpyArray::read(&path(file)?);
    let part = |name: &str, p: &Part| -> Result<InteractionPart, DataError> {
        let pairs = array(&p.file)?;
        pairs.expect_shape(&[Some(2), None])?;
        let (from, n) = (pairs.path.clone(), pairs.shape[1]);
        same_count(&from, "number of interactions", p.count, n)?;
        let mut users = pairs.into_i64()?;
        let items = users.split_off(n);
        let rating_file = meta.ratings.as_ref().and_then(|r| match name {
            "train" => Some(r.train.as_str()),
            "val" => r.val.as_deref(),
            _ => Some(r.test.as_str()),
        });
        let times = meta.time.as_ref().and_then(|t| t.get(name)).and_then(|v| v.as_str());
        let of_each = |file: Option<&str>| -> Result<Option<NpyArray>, DataError> {
            let read = |file: &str| {
                let values = array(file)?;
                values.expect_shape(&[Some(n)])?;
                Ok(values)
            };
            file.map(read).transpose()
        };
        let ratings = of_each(rating_file)?.map(NpyArray::into_floats).transpose()?;
        if let (Some(ratings), Some(described)) = (&ratings, &meta.ratings)
            && let Some((i, r)) = ratings.iter().enumerate().find(|(_, r)| {
                !r.is_finite() || (!described.values.is_empty() && !described.values.contains(r))
            })
        {
            let expected = match &described.values[..] {
                [] => "a finite number".to_owned(),
                values => format!("one of {values:?}"),
            };
            let why = format!("rating of entry {i}: expected {expected}, found {r}");
            return Err(format_error(&path(rating_file.unwrap_or_default())?, why));
        }
        Ok(InteractionPart {
            users: ids_below(&from, "user", users, num_users)?,
            items: ids_below(&from, "item", items, num_items)?,
            ratings,
            times: of_each(times)?.map(NpyArray::into_i64).transpose()?,
        })
    };
    let mut rating_values = meta.ratings.as_ref().map_or(vec![], |r| r.values.clone());
    rating_values.sort_by(f32::total_cmp);
    let reader = Reader { dir, json };
    let mut features = BTreeMap::new();
    for (name, t) in &meta.node_types {
        if let Some(entry) = &t.features {
            features.insert(name.clone(), reader.features(name, t.count, entry)?);
        }
    }
    let mut graph = Graph::builder().nodes(USER, num_users).nodes(ITEM, num_items);
    for e in &meta.edge_types {
        let nodes = |ntype: &String| match ntype.as_str() {
            USER => Ok(num_users),
            ITEM => Ok(num_items),
            _ => Err(unknown_ntype(ntype, [USER, ITEM])),
        };
        let edges = array(&e.file)?;
        edges.expect_shape(&[Some(2), None])?;
        let (from, n) = (edges.path.clone(), edges.shape[1]);
        same_count(&from, "number of edges", e.count, n)?;
        let mut src = edges.into_i64()?;
        let dst = src.split_off(n);
        let etype = EdgeType::new(&*e.src, &*e.relation, &*e.dst);
        let relation = Relation::from_coo_i64(nodes(&e.src)?, nodes(&e.dst)?, &src, &dst)
            .map_err(|e| DataError::from(e.in_relation(&etype.to_string())).in_file(&from))?;
        graph = graph.relation(etype, relation);
    }
    Ok(Interactions {
        num_users,
        num_items,
        rating_values,
        train: part("train", &split.train)?,
        val: split.val.as_ref().map(|p| part("val", p)).transpose()?,
        test: part("test", &split.test)?,
        graph: graph.build()?,
        features,
        name: meta.name,
    })
}
