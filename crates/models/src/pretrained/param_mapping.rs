//! Maps parameter names and layouts of another framework.

use std::ops::Range;

/// Where another framework keeps a parameter, and how it is laid out there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamMapping {
    /// Names it may have there: the first that a state dict has is read, the first is written.
    pub(super) places: Vec<Place>,
    /// None: as the module that holds the parameter says.
    transposed: Option<bool>,
    pub(super) negated: bool,
    /// Shape there, where the same entries stand in another one.
    pub(super) shape: Option<Vec<usize>>,
    pub(super) part: Part,
}

/// Names of the tensors of one parameter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) name: String,
    /// Of the tensors of the second row and so on, where each row has one.
    pub(super) rows: Vec<String>,
    /// Of the second half of the columns.
    pub(super) beside: Option<String>,
    /// Of tensors that must be equal to the first.
    pub(super) copies: Vec<String>,
}

impl Place {
    fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }
    fn each(&mut self, change: impl Fn(&mut String)) {
        change(&mut self.name);
        self.rows.iter_mut().for_each(&change);
        self.beside.iter_mut().for_each(&change);
        self.copies.iter_mut().for_each(&change);
    }
}

/// How a parameter and the tensor of that name belong together; axes in our order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// They are the same.
    Whole,
    /// The parameter is some of so many rows.
    Rows { range: Range<usize>, of: usize },
    /// The tensor is the first half of the columns.
    Beside,
    /// The tensor is the sum of this parameter and another: read as 0 here.
    Term,
    /// One tensor for every row (matrix of a stack), of which the parameter is some of so many columns.
    Stacked { columns: Range<usize>, of: usize },
    /// The columns of the parameter are so many copies of the tensor, of which the mean is taken.
    Repeated(usize),
}

impl ParamMapping {
    fn new(places: Vec<Place>, transposed: Option<bool>, part: Part) -> Self {
        Self { places, transposed, negated: false, shape: None, part }
    }

    /// Under `name`, with its axes in our order. Fields of Burn's `Linear` and norms are translated by themselves:
    /// `Linear` is transposed, `gamma` and `beta` are `weight` and `bias`.
    pub fn same(name: impl Into<String>) -> Self {
        Self::new(vec![Place::named(name)], None, Part::Whole)
    }
    /// Under `name`, a transposed matrix.
    pub fn transposed(name: impl Into<String>) -> Self {
        Self::new(vec![Place::named(name)], Some(true), Part::Whole)
    }
    /// Not transposed, though the parameter is in a `Linear`.
    #[must_use]
    pub fn untransposed(mut self) -> Self {
        self.transposed = Some(false);
        self
    }
    /// Row by row (a stack of matrices: matrix by matrix) under `names`, each as the columns `columns` of a tensor with
    /// `of` columns. Matrices may lie [transposed](Self::transpose) there. Without names, for a parameter of no rows,
    /// nothing is read or written.
    pub fn stacked(
        names: impl IntoIterator<Item = String>,
        columns: Range<usize>,
        of: usize,
    ) -> Self {
        let mut names = names.into_iter();
        let first = names.next().map(Place::named);
        let place = first.map(|first| Place { rows: names.collect(), ..first });
        Self::new(place.into_iter().collect(), None, Part::Stacked { columns, of })
    }
    /// With matrices transposed.
    #[must_use]
    pub fn transpose(mut self) -> Self {
        self.transposed = Some(true);
        self
    }
    /// Or under `name`, where a state dict has no tensor of the names so far.
    #[must_use]
    pub fn or(mut self, name: impl Into<String>) -> Self {
        self.places.push(Place::named(name));
        self
    }
    /// Under `name` too: PyTorch writes a shared parameter once for each of its names. If both tensors are there, they
    /// must be equal.
    #[must_use]
    pub fn also(mut self, name: impl Into<String>) -> Self {
        if let Some(place) = self.places.last_mut() {
            place.copies.push(name.into());
        }
        self
    }
    /// With the opposite sign.
    #[must_use]
    pub fn negated(mut self) -> Self {
        self.negated = true;
        self
    }
    /// With the same entries in another shape.
    #[must_use]
    pub fn shaped(mut self, shape: impl Into<Vec<usize>>) -> Self {
        self.shape = Some(shape.into());
        self
    }
    /// As the rows `range` (in our order of axes) of a tensor with `of` rows.
    #[must_use]
    pub fn rows(mut self, range: Range<usize>, of: usize) -> Self {
        self.part = Part::Rows { range, of };
        self
    }
    /// In two halves: the first columns under the name so far, the others under `second`.
    #[must_use]
    pub fn beside(mut self, second: impl Into<String>) -> Self {
        self.part = Part::Beside;
        if let Some(place) = self.places.last_mut() {
            place.beside = Some(second.into());
        }
        self
    }
    /// Added to another parameter of the same name, which the tensor is loaded into; this one becomes 0.
    #[must_use]
    pub fn term(mut self) -> Self {
        self.part = Part::Term;
        self
    }
    /// `times` times along the columns, of which the layer takes the mean: what belongs to heads here and to their mean
    /// there.
    #[must_use]
    pub fn repeated(mut self, times: usize) -> Self {
        self.part = Part::Repeated(times);
        self
    }
    /// With a prefix before every name.
    #[must_use]
    pub fn under(self, prefix: &str) -> Self {
        self.under_any(&[prefix])
    }
    /// With any of some prefixes before every name; the first is written.
    #[must_use]
    pub fn under_any(mut self, prefixes: &[impl AsRef<str>]) -> Self {
        let under = |prefix: &str| {
            let mut places = self.places.clone();
            places.iter_mut().for_each(|p| p.each(|name| name.insert_str(0, prefix)));
            places
        };
        self.places = prefixes.iter().flat_map(|prefix| under(prefix.as_ref())).collect();
        self
    }
    /// With a suffix behind every name.
    #[must_use]
    pub fn followed_by(mut self, suffix: &str) -> Self {
        self.places.iter_mut().for_each(|p| p.each(|name| name.push_str(suffix)));
        self
    }

    /// What fields of Burn's own modules add to it.
    pub(super) fn inside(mut self, container: &str, rank: usize) -> Self {
        match container {
            "Struct:Linear" if rank == 2 => self.transposed = self.transposed.or(Some(true)),
            "Struct:LayerNorm" | "Struct:BatchNorm" => {
                for (ours, theirs) in [("gamma", "weight"), ("beta", "bias")] {
                    self.places.iter_mut().for_each(|p| {
                        p.each(|name| {
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

    /// The names that are looked for, for an error.
    pub(super) fn names(&self) -> String {
        self.places.iter().map(|p| format!("`{}`", p.name)).collect::<Vec<_>>().join(" or ")
    }
}
