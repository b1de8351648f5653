//! Checks and restores the ids of parameters, the keys of gradients and optimizer states in Burn.

use std::collections::HashMap;

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param, ParamId};
use burn::tensor::{Bool, Int, Tensor};

use crate::error::ModelError;

/// Returns an error if two float parameters of a module have the same id and at least one of them requires gradients.
///
/// Burn stores gradients and optimizer states by id. If two parameters have the same id, the first one gets the gradient
/// of the other, even if it is frozen. This happens if a module is cloned into two fields, or if two fields load one
/// record by Burn's `load_record`, which restores ids ([`load_weights`](crate::load_weights) does not).
/// [`fit`](crate::fit) and the gradient sums over ranks call this function. Call it in a custom training loop once,
/// before the first step.
///
/// ```
/// use burn::tensor::Device;
/// use burn_gnn_models::{MlpConfig, check_param_ids};
/// let mlp = || MlpConfig::new(vec![4, 2]).init(&Device::flex().autodiff());
/// let one = mlp();
/// check_param_ids(&(one.clone(), mlp()))?;
/// assert!(check_param_ids(&(one.clone(), one)).is_err());
/// # Ok::<(), burn_gnn_models::ModelError>(())
/// ```
///
/// # Errors
/// [`ModelError::SharedParamId`] with the paths of both parameters.
pub fn check_param_ids<M: Module>(module: &M) -> Result<(), ModelError> {
    let mut check = Check::default();
    module.visit(&mut check);
    match check.duplicate {
        Some((first, second)) => Err(ModelError::SharedParamId { first, second }),
        None => Ok(()),
    }
}

/// Field names from the module to the current parameter.
#[derive(Default)]
struct Path(Vec<String>);

impl Path {
    fn text(&self) -> String {
        self.0.join(".")
    }
}

/// Implements `enter_module` and `exit_module` of a visitor or mapper with the field `path`.
macro_rules! walk_path {
    () => {
        fn enter_module(&mut self, name: &str, _: &str) {
            self.path.0.push(name.to_owned());
        }
        fn exit_module(&mut self, _: &str, _: &str) {
            self.path.0.pop();
        }
    };
}

#[derive(Default)]
struct Check {
    path: Path,
    /// Path of each id, and whether it requires gradients.
    seen: HashMap<ParamId, (String, bool)>,
    duplicate: Option<(String, String)>,
}

impl ModuleVisitor for Check {
    walk_path!();
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let (path, trains) = (self.path.text(), param.val().is_require_grad());
        if let Some((first, other)) = self.seen.get(&param.id) {
            // Buffers such as running means have no gradients and no optimizer state.
            if (trains || *other) && self.duplicate.is_none() {
                self.duplicate = Some((first.clone(), path.clone()));
            }
        }
        self.seen.entry(param.id).or_insert((path, trains));
    }
}

/// The ids of the parameters of a module, by path.
pub(crate) struct ParamIds {
    path: Path,
    ids: HashMap<String, ParamId>,
}

impl ParamIds {
    pub(crate) fn of<M: Module>(module: &M) -> Self {
        let mut ids = Self { path: Path::default(), ids: HashMap::new() };
        module.visit(&mut ids);
        ids
    }

    /// The ids in the order of paths.
    pub(crate) fn sorted(&self) -> Vec<u64> {
        let mut ids: Vec<_> = self.ids.iter().collect();
        ids.sort();
        ids.into_iter().map(|(_, id)| id.val()).collect()
    }

    /// Sets these ids in a module. A parameter whose path has no id gets a new one.
    pub(crate) fn restore<M: Module>(mut self, module: M) -> M {
        module.map(&mut self)
    }

    fn record(&mut self, id: ParamId) {
        self.ids.insert(self.path.text(), id);
    }

    fn recorded(&self) -> ParamId {
        self.ids.get(&self.path.text()).copied().unwrap_or_default()
    }
}

impl ModuleVisitor for ParamIds {
    walk_path!();
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.record(param.id);
    }
    fn visit_int<const D: usize>(&mut self, param: &Param<Tensor<D, Int>>) {
        self.record(param.id);
    }
    fn visit_bool<const D: usize>(&mut self, param: &Param<Tensor<D, Bool>>) {
        self.record(param.id);
    }
}

impl ModuleMapper for ParamIds {
    walk_path!();
    fn map_float<const D: usize>(&mut self, mut param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        param.id = self.recorded();
        param
    }
    fn map_int<const D: usize>(
        &mut self,
        mut param: Param<Tensor<D, Int>>,
    ) -> Param<Tensor<D, Int>> {
        param.id = self.recorded();
        param
    }
    fn map_bool<const D: usize>(
        &mut self,
        mut param: Param<Tensor<D, Bool>>,
    ) -> Param<Tensor<D, Bool>> {
        param.id = self.recorded();
        param
    }
}
