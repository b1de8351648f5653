//! Describes name and layout of a parameter in another framework.

use std::ops::Range;

/// Name and layout of a parameter in another framework.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamMapping {
    /// Alternative names. The first one that a state dict has is loaded; the first one is used for saving.
    pub(super) names: Vec<TensorNames>,
    /// `None`: depends on the module that contains the parameter.
    transposed: Option<bool>,
    pub(super) negated: bool,
    /// Shape in the other framework, if it differs.
    pub(super) shape: Option<Vec<usize>>,
    pub(super) part: Part,
}

/// Names of the tensors that contain a parameter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TensorNames {
    pub(super) name: String,
    /// Names of the second and further rows, if every row is a tensor.
    pub(super) rows: Vec<String>,
    /// Name of the second half of the columns, if it is a separate tensor.
    pub(super) second_half: Option<String>,
    /// Names of tensors that must be equal to the first.
    pub(super) copies: Vec<String>,
}

impl TensorNames {
    fn single(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }
    fn each(&mut self, change: impl Fn(&mut String)) {
        change(&mut self.name);
        self.rows.iter_mut().for_each(&change);
        self.second_half.iter_mut().for_each(&change);
        self.copies.iter_mut().for_each(&change);
    }
}

/// Relation between a parameter and the tensor of its name, with axes in our order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// The tensor is the parameter.
    Whole,
    /// The parameter is a range of the rows of the tensor, which has `of` rows.
    Rows { range: Range<usize>, of: usize },
    /// The tensor is the first half of the columns of the parameter.
    FirstHalf,
    /// The tensor is the sum of several parameters. It is loaded into another one, and this one becomes 0.
    Term,
    /// Every row (or matrix of a stack) is a range of the columns of a separate tensor, which has `of` columns.
    Stacked { columns: Range<usize>, of: usize },
    /// The columns of the parameter are this many copies of the tensor. The mean of the copies is saved.
    Repeated(usize),
}

impl ParamMapping {
    fn new(names: Vec<TensorNames>, transposed: Option<bool>, part: Part) -> Self {
        Self { names, transposed, negated: false, shape: None, part }
    }

    /// A tensor `name` with the axes of the parameter. Fields of Burn's modules are translated automatically: the weight of
    /// a `Linear` is transposed, and `gamma` and `beta` of norms are named `weight` and `bias`.
    pub fn same(name: impl Into<String>) -> Self {
        Self::new(vec![TensorNames::single(name)], None, Part::Whole)
    }
    /// A tensor `name` that is the transposed parameter.
    pub fn transposed(name: impl Into<String>) -> Self {
        Self::new(vec![TensorNames::single(name)], Some(true), Part::Whole)
    }
    /// Disables the transposition of the weight of a `Linear`.
    #[must_use]
    pub fn untransposed(mut self) -> Self {
        self.transposed = Some(false);
        self
    }
    /// A tensor per row (or per matrix of a stack), named by `names`. The row is the columns `columns` of the tensor, which
    /// has `of` columns. Matrices may be [transposed](Self::transpose). A parameter without rows has no names, and is
    /// neither loaded nor saved.
    pub fn stacked(
        names: impl IntoIterator<Item = String>,
        columns: Range<usize>,
        of: usize,
    ) -> Self {
        let mut names = names.into_iter();
        let first = names.next().map(TensorNames::single);
        let all = first.map(|first| TensorNames { rows: names.collect(), ..first });
        Self::new(all.into_iter().collect(), None, Part::Stacked { columns, of })
    }
    /// Transposes matrices.
    #[must_use]
    pub fn transpose(mut self) -> Self {
        self.transposed = Some(true);
        self
    }
    /// Adds an alternative name, for state dicts without a tensor of the previous names.
    #[must_use]
    pub fn or(mut self, name: impl Into<String>) -> Self {
        self.names.push(TensorNames::single(name));
        self
    }
    /// Adds a second name of the same tensor, because PyTorch saves a shared parameter once under each of its names. If
    /// a state dict has both tensors, they must be equal.
    #[must_use]
    pub fn also(mut self, name: impl Into<String>) -> Self {
        if let Some(names) = self.names.last_mut() {
            names.copies.push(name.into());
        }
        self
    }
    /// Inverts the sign.
    #[must_use]
    pub fn negated(mut self) -> Self {
        self.negated = true;
        self
    }
    /// Sets the shape in the other framework, with the same number of elements.
    #[must_use]
    pub fn shaped(mut self, shape: impl Into<Vec<usize>>) -> Self {
        self.shape = Some(shape.into());
        self
    }
    /// The parameter is the rows `range` (in our order of axes) of a tensor with `of` rows.
    #[must_use]
    pub fn rows(mut self, range: Range<usize>, of: usize) -> Self {
        self.part = Part::Rows { range, of };
        self
    }
    /// The first half of the columns has the previous name, the second half the name `second`.
    #[must_use]
    pub fn second_half(mut self, second: impl Into<String>) -> Self {
        self.part = Part::FirstHalf;
        if let Some(names) = self.names.last_mut() {
            names.second_half = Some(second.into());
        }
        self
    }
    /// The tensor is the sum of this parameter and another one of the same name. It is loaded into the other parameter, and
    /// this one becomes 0.
    #[must_use]
    pub fn term(mut self) -> Self {
        self.part = Part::Term;
        self
    }
    /// The parameter repeats the tensor `times` times along the columns, for example once per head if the layer averages
    /// heads.
    #[must_use]
    pub fn repeated(mut self, times: usize) -> Self {
        self.part = Part::Repeated(times);
        self
    }
    /// Adds a prefix to every name.
    #[must_use]
    pub fn under(self, prefix: &str) -> Self {
        self.under_any(&[prefix])
    }
    /// Adds alternative prefixes to every name. The first one is used for saving.
    #[must_use]
    pub fn under_any(mut self, prefixes: &[impl AsRef<str>]) -> Self {
        let under = |prefix: &str| {
            let mut names = self.names.clone();
            names.iter_mut().for_each(|n| n.each(|name| name.insert_str(0, prefix)));
            names
        };
        self.names = prefixes.iter().flat_map(|prefix| under(prefix.as_ref())).collect();
        self
    }
    /// Adds a suffix to every name.
    #[must_use]
    pub fn followed_by(mut self, suffix: &str) -> Self {
        self.names.iter_mut().for_each(|n| n.each(|name| name.push_str(suffix)));
        self
    }

    /// Translates the fields of Burn's modules.
    pub(super) fn in_module(mut self, container: &str, rank: usize) -> Self {
        match container {
            "Struct:Linear" if rank == 2 => self.transposed = self.transposed.or(Some(true)),
            "Struct:LayerNorm" | "Struct:BatchNorm" => {
                for (ours, theirs) in [("gamma", "weight"), ("beta", "bias")] {
                    self.names.iter_mut().for_each(|n| {
                        n.each(|name| {
                            if let Some(start) = name.strip_suffix(ours) {
                                *name = format!("{start}{theirs}");
                            }
                        });
                    });
                }
            }
            _ => {}
        }
        self
    }

    pub(super) fn is_transposed(&self) -> bool {
        self.transposed == Some(true)
    }

    /// Lists the accepted names, for an error.
    pub(super) fn listed_names(&self) -> String {
        self.names.iter().map(|n| format!("`{}`", n.name)).collect::<Vec<_>>().join(" or ")
    }
}
