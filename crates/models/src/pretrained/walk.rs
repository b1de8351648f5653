//! Walks through a module that read its parameters from a state dict, or write them into one.

use burn::module::{ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{DType, Device, Tensor, TensorData};

use super::StateDict;
use super::their::{Part, Their};
use crate::ModelError;

/// Where a walk through a module stands: field names, and the types that hold them.
#[derive(Default)]
struct Place(Vec<(String, String)>);

impl Place {
    fn path(&self) -> String {
        self.0.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(".")
    }
    fn their(&self, names: &dyn Fn(&str) -> Their, rank: usize) -> Their {
        names(&self.path()).inside(self.0.last().map_or("", |(_, container)| container), rank)
    }
}

pub(super) struct Loader<'a> {
    state: &'a StateDict,
    names: &'a dyn Fn(&str) -> Their,
    place: Place,
    used: Vec<String>,
    error: Option<ModelError>,
}

/// What a parameter is to be.
struct Wanted<'a, const D: usize> {
    shape: [usize; D],
    device: &'a Device,
    dtype: DType,
}

impl<'a> Loader<'a> {
    pub(super) fn new(state: &'a StateDict, names: &'a dyn Fn(&str) -> Their) -> Self {
        Self { state, names, place: Place::default(), used: vec![], error: None }
    }

    /// Names that parameters took, or the first error.
    pub(super) fn finish(self) -> Result<Vec<String>, ModelError> {
        match self.error {
            Some(error) => Err(error),
            None => Ok(self.used),
        }
    }

    /// The parameter at the current place.
    fn read<const D: usize>(&mut self, mut wanted: Wanted<'_, D>) -> Result<Tensor<D>, ModelError> {
        let Their { name, transposed, part } = self.place.their(self.names, D);
        match part {
            Part::Whole => self.tensor(&name, transposed, &wanted),
            Part::Rows { range, of } => {
                wanted.shape[0] = of;
                Ok(self.tensor(&name, transposed, &wanted)?.slice_dim(0, range))
            }
            Part::Beside(second) => {
                wanted.shape[D - 1] /= 2;
                Ok(Tensor::cat(vec![self.tensor(&name, transposed, &wanted)?, self.tensor(&second, transposed, &wanted)?], D - 1))
            }
            Part::Term => Ok(Tensor::zeros(wanted.shape, (wanted.device, wanted.dtype))),
        }
    }

    /// The tensor `name` of this shape, with its axes in our order.
    fn tensor<const D: usize>(&mut self, name: &str, transposed: bool, wanted: &Wanted<'_, D>) -> Result<Tensor<D>, ModelError> {
        let wrong = |message| Err(ModelError::StateDict { message });
        let Some(data) = self.state.tensors.get(name) else {
            let names: Vec<&String> = self.state.tensors.keys().collect();
            return wrong(format!("parameter `{}` is looked for under `{name}`, found only {names:?}", self.place.path()));
        };
        let mut expected = wanted.shape;
        if transposed {
            expected.reverse();
        }
        let actual = data.shape().to_vec();
        // Blocks of a diagonal may lie flat.
        let flat = !transposed && expected.iter().product::<usize>() == actual.iter().product::<usize>();
        if expected[..] != actual[..] && !flat {
            return wrong(format!("tensor `{name}` must have shape {expected:?}, got {actual:?}"));
        }
        self.used.push(name.to_owned());
        Ok(plain(data, expected, transposed, (wanted.device, wanted.dtype)))
    }
}

/// A tensor of `stored` shape from data, then with its axes in our order.
fn plain<const D: usize>(data: &TensorData, stored: [usize; D], transposed: bool, (device, dtype): (&Device, DType)) -> Tensor<D> {
    let (bytes, _, from) = data.clone().into_parts();
    let plain = Tensor::<D>::from_data(TensorData::from_bytes(bytes, stored, from), (device, dtype));
    if transposed { plain.transpose() } else { plain }
}

impl ModuleMapper for Loader<'_> {
    fn enter_module(&mut self, name: &str, container: &str) {
        self.place.0.push((name.to_owned(), container.to_owned()));
    }
    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.place.0.pop();
    }
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let value = param.val();
        match self.read(Wanted { shape: value.dims(), device: &value.device().without_autodiff(), dtype: value.dtype() }) {
            Ok(plain) => param.map(|t| {
                let (tracked, autodiff) = (t.is_require_grad(), t.is_autodiff());
                // A leaf is made anew on the plain device.
                if autodiff { plain.autodiff().set_require_grad(tracked) } else { plain }
            }),
            Err(error) => {
                self.error.get_or_insert(error);
                param
            }
        }
    }
}

pub(super) struct Saver<'a> {
    names: &'a dyn Fn(&str) -> Their,
    place: Place,
    pub(super) state: StateDict,
}

impl<'a> Saver<'a> {
    pub(super) fn new(names: &'a dyn Fn(&str) -> Their) -> Self {
        Self { names, place: Place::default(), state: StateDict::default() }
    }

    /// What was saved under `name` so far, of shape `ours` in our order of axes, or zeros.
    fn so_far<const D: usize>(&self, name: &str, transposed: bool, ours: [usize; D], like: &Tensor<D>) -> Tensor<D> {
        let on = (&like.device(), like.dtype());
        let mut stored = ours;
        if transposed {
            stored.reverse();
        }
        self.state.tensors.get(name).map_or_else(|| Tensor::zeros(ours, on), |data| plain(data, stored, transposed, on))
    }

    fn put<const D: usize>(&mut self, name: String, transposed: bool, value: Tensor<D>) {
        let value = if transposed { value.transpose() } else { value };
        self.state.tensors.insert(name, value.into_data());
    }
}

impl ModuleVisitor for Saver<'_> {
    fn enter_module(&mut self, name: &str, container: &str) {
        self.place.0.push((name.to_owned(), container.to_owned()));
    }
    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.place.0.pop();
    }
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let Their { name, transposed, part } = self.place.their(self.names, D);
        let value = param.val().without_autodiff();
        match part {
            // A term of it may be there.
            Part::Whole | Part::Term if self.state.tensors.contains_key(&name) => {
                let sum = self.so_far(&name, transposed, value.dims(), &value) + value;
                self.put(name, transposed, sum);
            }
            Part::Whole | Part::Term => self.put(name, transposed, value),
            Part::Rows { range, of } => {
                let mut all = value.dims();
                all[0] = of;
                let rows = self.so_far(&name, transposed, all, &value).slice_assign([range], value);
                self.put(name, transposed, rows);
            }
            Part::Beside(second) => {
                let [left, right] = [0, 1].map(|half| {
                    let columns = value.dims()[D - 1] / 2;
                    value.clone().slice_dim(D - 1, half * columns..(half + 1) * columns)
                });
                self.put(name, transposed, left);
                self.put(second, transposed, right);
            }
        }
    }
}
