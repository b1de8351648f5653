//! Maps node type names to values.

use std::ops::Index;

use burn::serde::{Deserialize, Serialize};
use burn::tensor::Tensor;
use burn_gnn_graph::internal::OrPanic;
use burn_gnn_graph::{GraphError, NodeKey, Schema};
use burn_gnn_ops::GraphView;

/// Key of the only node type of a graph, written as `..`.
const ONLY: &str = "..";

/// Map from names of node types to values, sorted by name as the node types of every schema are.
///
/// ```
/// use burn_gnn_models::TypeMap;
/// let mut sizes = TypeMap::from([("paper", 128), ("author", 64)]);
/// assert_eq!((sizes["paper"], sizes.get("venue")), (128, None));
/// sizes.insert("venue", 32);
/// assert_eq!(sizes.iter().map(|(ntype, _)| ntype).collect::<Vec<_>>(), ["author", "paper", "venue"]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(crate = "burn::serde")]
pub struct TypeMap<T> {
    /// Ascending.
    names: Vec<String>,
    values: Vec<T>,
}

/// Features or results by node type: inputs and outputs of layers on several node types.
///
/// A single tensor converts to the features of the only node type of a graph.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_models::NodeTensors;
/// let device = Device::flex();
/// let x = NodeTensors::from([("paper", Tensor::zeros([3, 8], &device)), ("author", Tensor::ones([2, 4], &device))]);
/// assert_eq!(x["paper"].dims(), [3, 8]);
/// ```
pub type NodeTensors = TypeMap<Tensor<2>>;

impl<T> Default for TypeMap<T> {
    fn default() -> Self {
        Self { names: vec![], values: vec![] }
    }
}

impl<T> TypeMap<T> {
    /// Sets the value of a type, and returns its previous value.
    pub fn insert(&mut self, ntype: impl Into<String>, value: T) -> Option<T> {
        let ntype = ntype.into();
        match self.names.binary_search(&ntype) {
            Ok(i) => Some(std::mem::replace(&mut self.values[i], value)),
            Err(i) => {
                self.names.insert(i, ntype);
                self.values.insert(i, value);
                None
            }
        }
    }

    fn position(&self, ntype: &str) -> Option<usize> {
        self.names.binary_search_by(|name| name.as_str().cmp(ntype)).ok()
    }

    /// Returns the value of a type, if it has one.
    pub fn get(&self, ntype: &str) -> Option<&T> {
        self.position(ntype).map(|i| &self.values[i])
    }

    /// Removes and returns the value of a type.
    pub fn remove(&mut self, ntype: &str) -> Option<T> {
        let i = self.position(ntype)?;
        self.names.remove(i);
        Some(self.values.remove(i))
    }

    /// Number of types with a value.
    pub fn len(&self) -> usize {
        self.names.len()
    }
    /// Whether no type has a value.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Iterates over names and values, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        self.names.iter().map(String::as_str).zip(&self.values)
    }

    /// Returns the values, sorted by name.
    pub fn into_values(self) -> Vec<T> {
        self.values
    }

    /// Applies `f` to every name and value.
    pub fn map<U>(self, mut f: impl FnMut(&str, T) -> U) -> TypeMap<U> {
        let values =
            self.names.iter().zip(self.values).map(|(name, value)| f(name, value)).collect();
        TypeMap { names: self.names, values }
    }

    /// Creates a map from one entry per node type of `schema`, in its order. Types with `None` get no entry.
    pub fn from_list(schema: &Schema, values: impl IntoIterator<Item = Option<T>>) -> Self {
        schema
            .ntypes()
            .iter()
            .zip(values)
            .filter_map(|(name, value)| Some((name.clone(), value?)))
            .collect()
    }

    /// Returns one entry per node type of `schema`, in its order, so that callers look up names once and then index.
    ///
    /// # Errors
    /// The schema does not have a type of this map.
    pub fn into_list(self, schema: &Schema) -> Result<Vec<Option<T>>, GraphError> {
        let mut list: Vec<Option<T>> = schema.ntypes().iter().map(|_| None).collect();
        for (name, value) in self {
            let t = if name == ONLY { schema.ntype(..)? } else { schema.ntype(&name)? };
            list[t] = Some(value);
        }
        Ok(list)
    }
}

impl<T> IntoIterator for TypeMap<T> {
    type Item = (String, T);
    type IntoIter = std::iter::Zip<std::vec::IntoIter<String>, std::vec::IntoIter<T>>;
    fn into_iter(self) -> Self::IntoIter {
        self.names.into_iter().zip(self.values)
    }
}

impl<S: Into<String>, T> FromIterator<(S, T)> for TypeMap<T> {
    fn from_iter<I: IntoIterator<Item = (S, T)>>(iter: I) -> Self {
        let mut map = Self::default();
        iter.into_iter().for_each(|(name, value)| {
            map.insert(name, value);
        });
        map
    }
}

impl<S: Into<String>, T, const N: usize> From<[(S, T); N]> for TypeMap<T> {
    fn from(entries: [(S, T); N]) -> Self {
        entries.into_iter().collect()
    }
}

impl<S: Into<String>, T> From<Vec<(S, T)>> for TypeMap<T> {
    fn from(entries: Vec<(S, T)>) -> Self {
        entries.into_iter().collect()
    }
}

impl<T: Clone> From<&TypeMap<T>> for TypeMap<T> {
    fn from(map: &TypeMap<T>) -> Self {
        map.clone()
    }
}

impl From<Tensor<2>> for NodeTensors {
    fn from(x: Tensor<2>) -> Self {
        Self::from([(ONLY, x)])
    }
}

/// # Panics
/// There is no entry of this name. The message lists the names.
impl<T> Index<&str> for TypeMap<T> {
    type Output = T;
    #[track_caller]
    fn index(&self, ntype: &str) -> &T {
        match self.get(ntype) {
            Some(value) => value,
            None => panic!("no entry for node type `{ntype}`; there are {:?}", self.names),
        }
    }
}

/// Converts a map to one entry per node type of the graph that a layer or model runs on.
#[track_caller]
pub(crate) fn list_of<T>(call: &str, schema: &Schema, x: TypeMap<T>) -> Vec<Option<T>> {
    x.into_list(schema).map_err(|e| format!("{call}: {e}")).or_panic()
}

/// Converts features to one tensor per node type of a view, and checks that none is missing and that feature sizes are
/// `size(node type)`.
#[track_caller]
pub(crate) fn of_all_types(
    call: &str,
    g: &dyn GraphView,
    x: NodeTensors,
    size: impl Fn(usize) -> usize,
) -> Vec<Tensor<2>> {
    let schema = g.schema();
    let list = list_of(call, schema, x);
    let given = |(t, x): (usize, Option<Tensor<2>>)| {
        let ntype = &schema.ntypes()[t];
        let Some(x) = x else {
            return Err(format!(
                "{call}: no features of node type `{ntype}`; pass those of every node type"
            ));
        };
        match (size(t), x.dims()) {
            (expected, got) if got[1] != expected => Err(format!(
                "{call}: node type `{ntype}`: expected features of size {expected}, got {got:?}"
            )),
            _ => Ok(x),
        }
    };
    list.into_iter().enumerate().map(given).collect::<Result<_, _>>().or_panic()
}

/// Converts features to one tensor per node type of a view. Types without features get a tensor without columns.
#[track_caller]
pub(crate) fn of_read_types(call: &str, g: &dyn GraphView, x: NodeTensors) -> Vec<Tensor<2>> {
    let list = list_of(call, g.schema(), x);
    let first = list.iter().flatten().next().map(|x| (x.device(), x.dtype()));
    let Some((device, dtype)) = first else {
        panic!("{call}: no features; pass those of the node types that layers read")
    };
    let inputs = |t: usize| g.original_ids(t).map_or_else(|| g.num_dst(t), |ids| ids.len());
    let none = |t: usize| Tensor::zeros([inputs(t), 0], (&device, dtype));
    list.into_iter().enumerate().map(|(t, x)| x.unwrap_or_else(|| none(t))).collect()
}

/// Returns the features of the node type that a model reads.
#[track_caller]
pub(crate) fn features_of(
    model: &str,
    schema: &Schema,
    x: &NodeTensors,
    target: &str,
) -> Tensor<2> {
    let t = target.resolve(schema).map_err(|e| format!("{model}: {e}")).or_panic();
    list_of(model, schema, x.clone())
        .swap_remove(t)
        .ok_or_else(|| format!("{model}: no features of node type `{target}`"))
        .or_panic()
}
