//! Checks and restores the ids of parameters, by which gradients and states of optimizers are kept.

use std::collections::HashMap;

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param, ParamId};
use burn::tensor::{Bool, Int, Tensor};

use crate::error::ModelError;

/// An error where two float parameters of a module have one id, and one of them at least requires gradients.
///
/// Burn keeps gradients and states of optimizers by id: of two parameters with one id the first would take the gradient
/// of the other, also where it is frozen. It happens where a module is cloned into two fields, or where two fields load
/// one record by Burn's own `load_record`, which restores ids ([`load_weights`](crate::load_weights) does not).
/// [`train`](crate::train) and the gradient sums of ranks check it; a custom loop calls this once, before its first
/// step.
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
/// [`ModelError::SharedParamId`] with the paths of both.
pub fn check_param_ids<M: Module>(module: &M) -> Result<(), ModelError> {
    let mut check = Check::default();
    module.visit(&mut check);
    match check.clash {
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

/// `enter_module` and `exit_module` of a visitor or mapper with a `path`.
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
    clash: Option<(String, String)>,
}

impl ModuleVisitor for Check {
    walk_path!();
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let (path, trains) = (self.path.text(), param.val().is_require_grad());
        if let Some((first, other)) = self.seen.get(&param.id) {
            // Buffers, such as running means, have neither gradients nor states.
            if (trains || *other) && self.clash.is_none() {
                self.clash = Some((first.clone(), path.clone()));
            }
        }
        self.seen.entry(param.id).or_insert((path, trains));
    }
}

/// Ids of the parameters of a module by path.
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

    /// The module with these ids; a parameter that had none gets a new one.
    pub(crate) fn restore<M: Module>(mut self, module: M) -> M {
        module.map(&mut self)
    }

    fn keep(&mut self, id: ParamId) {
        self.ids.insert(self.path.text(), id);
    }

    fn kept(&self) -> ParamId {
        self.ids.get(&self.path.text()).copied().unwrap_or_default()
    }
}

impl ModuleVisitor for ParamIds {
    walk_path!();
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.keep(param.id);
    }
    fn visit_int<const D: usize>(&mut self, param: &Param<Tensor<D, Int>>) {
        self.keep(param.id);
    }
    fn visit_bool<const D: usize>(&mut self, param: &Param<Tensor<D, Bool>>) {
        self.keep(param.id);
    }
}

impl ModuleMapper for ParamIds {
    walk_path!();
    fn map_float<const D: usize>(&mut self, mut param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        param.id = self.kept();
        param
    }
    fn map_int<const D: usize>(
        &mut self,
        mut param: Param<Tensor<D, Int>>,
    ) -> Param<Tensor<D, Int>> {
        param.id = self.kept();
        param
    }
    fn map_bool<const D: usize>(
        &mut self,
        mut param: Param<Tensor<D, Bool>>,
    ) -> Param<Tensor<D, Bool>> {
        param.id = self.kept();
        param
    }
}
