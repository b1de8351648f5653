//! Visitors that load the parameters of a module from a state dict, and that save them to one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use burn::module::{ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{DType, Device, Tensor, TensorData};

use burn_gnn_files::internal::cut;

use crate::error::ModelError;
use crate::params::autodiff::leaf_like;
use crate::pretrained::param_mapping::{ParamMapping, Part, TensorNames};

/// Tensors of a state dict by name.
pub(super) type NamedTensors = BTreeMap<String, Arc<TensorData>>;

/// Lists the first of many names, for an error.
pub(super) fn listed<'a>(names: impl Iterator<Item = &'a String>) -> String {
    const SHOWN: usize = 12;
    let names: Vec<&String> = names.collect();
    let shown: Vec<String> = names.iter().take(SHOWN).map(|name| cut(name)).collect();
    let more = match names.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{shown:?}{more}")
}

/// Position of a visitor in a module: field names, and the types that contain the fields.
#[derive(Default)]
struct Position(Vec<(String, String)>);

impl Position {
    fn path(&self) -> String {
        self.0.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(".")
    }
    fn param_mapping(&self, names: &dyn Fn(&str) -> ParamMapping, rank: usize) -> ParamMapping {
        names(&self.path()).in_module(self.0.last().map_or("", |(_, container)| container), rank)
    }
}

pub(super) struct Loader<'a> {
    state: &'a NamedTensors,
    names: &'a dyn Fn(&str) -> ParamMapping,
    position: Position,
    used: BTreeSet<String>,
    error: Option<ModelError>,
}

/// Shape, device and type of a parameter to load.
struct Target<'a, const D: usize> {
    shape: [usize; D],
    device: &'a Device,
    dtype: DType,
}

impl<'a> Loader<'a> {
    pub(super) fn new(state: &'a NamedTensors, names: &'a dyn Fn(&str) -> ParamMapping) -> Self {
        Self { state, names, position: Position::default(), used: BTreeSet::new(), error: None }
    }

    /// Returns the names of the loaded tensors, or the first error.
    pub(super) fn finish(self) -> Result<BTreeSet<String>, ModelError> {
        match self.error {
            Some(error) => Err(error),
            None => Ok(self.used),
        }
    }

    /// Loads the parameter at the current position.
    fn read<const D: usize>(&mut self, mut target: Target<'_, D>) -> Result<Tensor<D>, ModelError> {
        let mapping = self.position.param_mapping(self.names, D);
        // Another parameter gets the tensor of a sum (`Part::Term`), and a parameter without rows has no tensor: both are
        // zeros. For example, PyG's EdgeConv has one bias, which is loaded into `phi.bias`, and `theta.bias` becomes 0.
        if mapping.part == Part::Term || mapping.names.is_empty() {
            return Ok(Tensor::zeros(target.shape, (target.device, target.dtype)));
        }
        let found = mapping.names.iter().find(|n| self.state.contains_key(&n.name));
        let Some(tensors) = found else {
            return Err(self.missing(mapping.listed_names()));
        };
        match &mapping.part {
            Part::Stacked { columns, of } => {
                let names = std::iter::once(&tensors.name).chain(&tensors.rows);
                let row = |name: &String| {
                    Ok(self.row(name, &mapping, &target, *of)?.slice_dim(D - 1, columns.clone()))
                };
                let rows = names.map(row).collect::<Result<Vec<_>, ModelError>>()?;
                return Ok(Tensor::cat(rows, 0));
            }
            Part::Rows { of, .. } => target.shape[0] = *of,
            Part::FirstHalf => target.shape[D - 1] /= 2,
            Part::Repeated(times) => target.shape[D - 1] /= times,
            Part::Whole | Part::Term => {}
        }
        let first = self.tensor(&tensors.name, &mapping, &target)?;
        self.check_copies(tensors)?;
        let value = match &mapping.part {
            Part::Rows { range, .. } => first.slice_dim(0, range.clone()),
            Part::Repeated(times) => first.repeat_dim(D - 1, *times),
            Part::FirstHalf => match &tensors.second_half {
                Some(second) => {
                    Tensor::cat(vec![first, self.tensor(second, &mapping, &target)?], D - 1)
                }
                None => first,
            },
            Part::Whole | Part::Term | Part::Stacked { .. } => first,
        };
        Ok(if mapping.negated { value.neg() } else { value })
    }

    /// Reads the tensor `name` of one row of a parameter, with `of` columns, and adds an axis of length 1.
    fn row<const D: usize>(
        &mut self,
        name: &str,
        mapping: &ParamMapping,
        target: &Target<'_, D>,
        of: usize,
    ) -> Result<Tensor<D>, ModelError> {
        let (stored, expected) = row_shapes(target.shape, mapping, of);
        let row = plain(self.data(name, expected)?, stored, false, (target.device, target.dtype));
        Ok(if mapping.is_transposed() { row.swap_dims(D - 2, D - 1) } else { row })
    }

    /// Reads the tensor `name` of the shape of `target`, with axes in our order.
    fn tensor<const D: usize>(
        &mut self,
        name: &str,
        mapping: &ParamMapping,
        target: &Target<'_, D>,
    ) -> Result<Tensor<D>, ModelError> {
        let mut stored = target.shape;
        if mapping.is_transposed() {
            stored.reverse();
        }
        let data = self.data(name, mapping.shape.clone().unwrap_or_else(|| stored.to_vec()))?;
        Ok(plain(data, stored, mapping.is_transposed(), (target.device, target.dtype)))
    }

    /// Reads the data of the tensor `name`, which must have the shape `expected`.
    fn data(&mut self, name: &str, expected: Vec<usize>) -> Result<&'a TensorData, ModelError> {
        let Some(data) = self.state.get(name) else {
            return Err(self.missing(format!("`{name}`")));
        };
        let actual = data.shape().to_vec();
        if expected != actual {
            let (parameter, tensor) = (self.position.path(), name.to_owned());
            return Err(ModelError::WeightShape { parameter, tensor, expected, actual });
        }
        self.used.insert(name.to_owned());
        Ok(data)
    }

    fn missing(&self, tensor: String) -> ModelError {
        let (parameter, found) = (self.position.path(), listed(self.state.keys()));
        ModelError::WeightMissing { parameter, tensor, found }
    }

    /// Checks that tensors which PyTorch saves under several names are equal.
    fn check_copies(&mut self, tensors: &TensorNames) -> Result<(), ModelError> {
        for copy in &tensors.copies {
            let (Some(first), Some(other)) = (self.state.get(&tensors.name), self.state.get(copy))
            else {
                continue;
            };
            if first != other {
                let parameter = self.position.path();
                return Err(ModelError::WeightShared {
                    parameter,
                    tensor: tensors.name.clone(),
                    other: copy.clone(),
                });
            }
            self.used.insert(copy.clone());
        }
        Ok(())
    }
}

/// Returns the shape of one row of a parameter in a tensor with `of` columns: with an axis of length 1, and as saved.
fn row_shapes<const D: usize>(
    ours: [usize; D],
    mapping: &ParamMapping,
    of: usize,
) -> ([usize; D], Vec<usize>) {
    let mut stored = ours;
    stored[0] = 1;
    stored[D - 1] = of;
    if mapping.is_transposed() {
        stored.swap(D - 2, D - 1);
    }
    let saved = stored[usize::from(D > 1)..].to_vec();
    (stored, mapping.shape.clone().unwrap_or(saved))
}

/// Creates a tensor of shape `stored` from data, and transposes it if `transposed`.
fn plain<const D: usize>(
    data: &TensorData,
    stored: [usize; D],
    transposed: bool,
    (device, dtype): (&Device, DType),
) -> Tensor<D> {
    let (bytes, _, from) = data.clone().into_parts();
    let plain =
        Tensor::<D>::from_data(TensorData::from_bytes(bytes, stored, from), (device, dtype));
    if transposed { plain.transpose() } else { plain }
}

impl ModuleMapper for Loader<'_> {
    fn enter_module(&mut self, name: &str, container: &str) {
        self.position.0.push((name.to_owned(), container.to_owned()));
    }
    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.position.0.pop();
    }
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let value = param.val();
        match self.read(Target {
            shape: value.dims(),
            device: &value.device().without_autodiff(),
            dtype: value.dtype(),
        }) {
            Ok(plain) => param.map(|t| leaf_like(&t, plain)),
            Err(error) => {
                self.error.get_or_insert(error);
                param
            }
        }
    }
}

pub(super) struct Saver<'a> {
    names: &'a dyn Fn(&str) -> ParamMapping,
    position: Position,
    pub(super) state: NamedTensors,
    /// Tensors that contain one term of a sum, to which the other parameters are added.
    terms: BTreeSet<String>,
}

impl<'a> Saver<'a> {
    pub(super) fn new(names: &'a dyn Fn(&str) -> ParamMapping) -> Self {
        Self {
            names,
            position: Position::default(),
            state: NamedTensors::new(),
            terms: BTreeSet::new(),
        }
    }

    /// Returns the tensor saved under `name`, of shape `ours` in our order of axes, or zeros.
    fn saved_or_zeros<const D: usize>(
        &self,
        name: &str,
        transposed: bool,
        ours: [usize; D],
        like: &Tensor<D>,
    ) -> Tensor<D> {
        let on = (&like.device(), like.dtype());
        let mut stored = ours;
        if transposed {
            stored.reverse();
        }
        self.state
            .get(name)
            .map_or_else(|| Tensor::zeros(ours, on), |data| plain(data, stored, transposed, on))
    }

    fn put<const D: usize>(&mut self, name: &str, mapping: &ParamMapping, value: Tensor<D>) {
        let value = if mapping.is_transposed() { value.transpose() } else { value };
        self.insert(name, value.into_data(), mapping.shape.clone());
    }

    fn insert(&mut self, name: &str, mut data: TensorData, shape: Option<Vec<usize>>) {
        if let Some(shape) = shape {
            let (bytes, _, dtype) = data.into_parts();
            data = TensorData::from_bytes(bytes, shape, dtype);
        }
        self.state.insert(name.to_owned(), Arc::new(data));
    }
}

impl ModuleVisitor for Saver<'_> {
    fn enter_module(&mut self, name: &str, container: &str) {
        self.position.0.push((name.to_owned(), container.to_owned()));
    }
    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.position.0.pop();
    }
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let mapping = self.position.param_mapping(self.names, D);
        let Some(TensorNames { name, rows, second_half, copies }) = mapping.names.first() else {
            return;
        };
        let value = param.val().without_autodiff();
        let value = if mapping.negated { value.neg() } else { value };
        // Part `part` of the columns, split into `parts` equal parts.
        let columns = |part: usize, parts: usize| {
            let width = value.dims()[D - 1] / parts;
            value.clone().slice_dim(D - 1, part * width..(part + 1) * width)
        };
        match &mapping.part {
            Part::Whole | Part::Term => {
                let term = mapping.part == Part::Term;
                let add = self.terms.contains(name) || term && self.state.contains_key(name);
                let sum = if add {
                    self.saved_or_zeros(name, mapping.is_transposed(), value.dims(), &value)
                        + value.clone()
                } else {
                    value.clone()
                };
                if term {
                    self.terms.insert(name.clone());
                }
                self.put(name, &mapping, sum);
            }
            Part::Rows { range, of } => {
                let mut all = value.dims();
                all[0] = *of;
                let all_rows = self
                    .saved_or_zeros(name, mapping.is_transposed(), all, &value)
                    .slice_assign([range.clone()], value.clone());
                self.put(name, &mapping, all_rows);
            }
            Part::FirstHalf => {
                self.put(name, &mapping, columns(0, 2));
                if let Some(second) = second_half {
                    self.put(second, &mapping, columns(1, 2));
                }
            }
            Part::Stacked { columns, of } => {
                let ours = value.dims();
                for (i, name) in std::iter::once(name).chain(rows).enumerate() {
                    let (stored, saved) = row_shapes(ours, &mapping, *of);
                    let swap = |t: Tensor<D>| {
                        if mapping.is_transposed() { t.swap_dims(D - 2, D - 1) } else { t }
                    };
                    // Every entry of a vector is a row.
                    let row = value.clone().slice_dim(0, i..i + 1);
                    let saved_row = swap(self.saved_or_zeros(name, false, stored, &value));
                    let mut region = saved_row.dims().map(|len| 0..len);
                    region[D - 1] = columns.clone();
                    let row = swap(saved_row.slice_assign(region, row));
                    self.insert(name, row.into_data(), Some(saved));
                }
            }
            Part::Repeated(times) => {
                let sum =
                    (1..*times).fold(columns(0, *times), |sum, part| sum + columns(part, *times));
                self.put(name, &mapping, sum / *times as f64);
            }
        }
        for copy in copies {
            if let Some(data) = self.state.get(name).cloned() {
                self.state.insert(copy.clone(), data);
            }
        }
    }
}
